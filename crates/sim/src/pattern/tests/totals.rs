//! Closed forms of the number of operations, compared with a count.

use super::play::play;
use super::*;
use crate::loggops::Program;

#[test]
fn totals_are_what_is_counted() {
    for ranks in (1..=40).chain([64, 77]) {
        for (name, params) in every(ranks) {
            let params = Params { iterations: 2, ..params };
            let steps = by_name(name, &params).unwrap();
            let outcome = play(&steps, 1);
            assert_eq!(steps.totals(), Some((outcome.operations, outcome.sends)), "{name} {params:?}");
        }
    }
}

/// Number of messages in one iteration.
fn sends(name: &str, ranks: u32) -> u64 {
    by_name(name, &Params { ranks, ..Params::default() }).unwrap().totals().unwrap().1
}

#[test]
fn messages_are_as_many_as_the_papers_say() {
    assert_eq!(sends("dissemination", 65_536), 65_536 * 16);
    assert_eq!(sends("dissemination", 65_537), 65_537 * 17);
    assert_eq!(sends("nway-dissemination", 6561), 6561 * 8 * 2);
    assert_eq!(sends("linear-scatter", 1000), 999);
    assert_eq!(sends("allreduce-recursive-doubling", 4096), 4096 * 12);
    assert_eq!(sends("allreduce-recursive-doubling", 4099), 4096 * 12 + 6);
    assert_eq!(sends("allreduce-ring", 1000), 1000 * 2 * 999);
    assert_eq!(sends("allreduce-rabenseifner", 4096), 4096 * 2 * 12);
    assert_eq!(sends("binomial-bcast", 1000), 999);
    assert_eq!(sends("alltoall-pairwise", 100), 100 * 99);
    assert_eq!(sends("alltoall-bruck", 100), 100 * 7);
    assert_eq!(sends("allgather-bruck", 100), 100 * 7);
    assert_eq!(sends("scan", 1024), 1024 * 10);
    assert_eq!(sends("allreduce-hierarchical", 1024), 2 * 7 * 128 + 128 * 7);
    assert_eq!(sends("training-step", 8), 16 * 8 * 14);
    assert_eq!(sends("sweep", 64), 8 * 10 * 2 * 56);
    assert_eq!(sends("halo", 1000), 6 * 900);
}

/// A grid of 2 × 2 has four pairs of neighbours and four ranks: as many messages as works, for each block of an octant.
#[test]
fn a_sweep_without_work_only_sends() {
    let of = |work_ns| {
        let params = Params { ranks: 4, work_ns, ..Params::default() };
        by_name("sweep", &params).unwrap().pattern().totals().unwrap()
    };
    let ((idle, sends), (busy, same)) = (of(0), of(1));
    assert_eq!((idle, same), (2 * sends, sends));
    assert_eq!(busy - idle, sends, "one work for each message");
}
