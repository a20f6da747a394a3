//! Text for users: names of patterns, and why a pattern cannot be made.

use super::super::grid::balanced;
use super::*;

fn refused(name: &str, params: &Params) -> String {
    by_name(name, params).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn every_name_makes_a_pattern_and_says_what_it_uses() {
    let mut names: Vec<&str> = Vec::new();
    for entry in LIST {
        assert!(!entry.help.is_empty() && entry.help.len() < 100, "{}", entry.name);
        names.push(entry.name);
        names.extend(entry.aliases);
    }
    for name in &names {
        assert!(by_name(name, &Params::default()).is_ok(), "{name}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn an_unknown_name_gets_a_list_of_the_known() {
    let error = refused("dissemnation", &Params::default());
    assert!(error.starts_with("there is no pattern `dissemnation`; give one of dissemination, "), "{error}");
}

#[test]
fn parameters_out_of_range_are_refused() {
    let params = Params { ranks: 0, ..Params::default() };
    assert_eq!(refused("barrier", &params), "ranks: 0 is out of range; give between 1 and 16777216");
    let params = Params { root: 64, ..Params::default() };
    assert_eq!(refused("linear-gather", &params), "root: 64 is out of range; give between 0 and 63");
}

#[test]
fn grids_that_do_not_fit_are_refused() {
    let params = Params { ranks: 1000, dims: vec![8, 8, 16], ..Params::default() };
    assert_eq!(
        refused("halo", &params),
        "a grid of 8x8x16 has 1024 places for 1000 ranks; give one with as many places as ranks, such as 10x10x10"
    );
    assert_eq!(refused("halo2d", &params), "`halo2d` cannot have a grid of 3 dimensions; give 2");
    let params = Params { dims: vec![2; 5], ..params };
    assert_eq!(refused("halo", &params), "`halo` cannot have a grid of 5 dimensions; give 1 to 4");
}

#[test]
fn grids_are_as_even_as_can_be() {
    assert_eq!(balanced(1024, 3), [16, 8, 8]);
    assert_eq!(balanced(12, 2), [4, 3]);
    assert_eq!(balanced(72, 3), [6, 4, 3]);
    assert_eq!(balanced(16, 4), [2, 2, 2, 2]);
    assert_eq!(balanced(13, 3), [13, 1, 1]);
    assert_eq!(balanced(1, 4), [1, 1, 1, 1]);
    assert_eq!(balanced(1 << 24, 3), [256, 256, 256]);
}

#[test]
fn even_grids_have_a_place_for_every_rank() {
    for ranks in 1..2000 {
        for dimensions in 1..=4 {
            let dims = balanced(ranks, dimensions);
            assert_eq!(dims.iter().product::<u32>(), ranks);
            assert!(dims.is_sorted_by(|a, b| a >= b), "{dims:?}");
        }
    }
}

#[test]
fn patterns_that_do_not_fit_into_others_are_refused() {
    let within = |inner: &str| Params { inner: Some(inner.to_owned()), ..Params::default() };
    assert_eq!(
        refused("bsp", &within("training-step")),
        "`bsp` cannot have `training-step` within it; give a collective or a halo exchange"
    );
    assert_eq!(
        refused("allreduce-hierarchical", &within("halo")),
        "`allreduce-hierarchical` cannot have `halo` within it; give allreduce-recursive-doubling, \
         allreduce-rabenseifner or allreduce-ring"
    );
    assert!(refused("bsp", &within("nothing")).starts_with("there is no pattern `nothing`"));
}

#[test]
fn messages_whose_time_overflows_are_refused() {
    let params = Params { ranks: 1 << 24, bytes: 1 << 20, ..Params::default() };
    assert_eq!(
        refused("binomial-gather", &params),
        "blocks of 1048576 bytes of 16777216 ranks make messages above 1099511627776 bytes; \
         give smaller blocks or fewer ranks"
    );
    let params = Params { bytes: MAX_BYTES, segment_bytes: 1, ..Params::default() };
    assert_eq!(
        refused("pipelined-ring", &params),
        "segment bytes: 1 is out of range; give between 65536 and 1099511627776"
    );
    let params = Params { ranks: 1 << 24, buckets: 1000, ..Params::default() };
    assert_eq!(
        refused("training-step", &params),
        "a rank of `training-step` would have 33554430000 steps in an iteration, of at most 2³²; \
         give fewer buckets or ranks"
    );
}
