//! What a reader is told: names, and why a pattern cannot be.

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
fn an_unknown_name_is_told_those_that_are() {
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
    assert_eq!(refused("halo2d", &params), "a grid of 3 dimensions is not one of `halo2d`; give 2 to 2");
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
