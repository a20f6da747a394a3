//! Every pattern finishes, with nothing left over, on any number of ranks.

use super::play::play;
use super::*;

fn ends(name: &str, params: &Params) {
    let steps = by_name(name, params).unwrap();
    let outcome = play(&steps, 3);
    assert_eq!((outcome.left, outcome.unfreed), (0, 0), "{name} {params:?}");
}

#[test]
fn every_pattern_ends() {
    for ranks in (1..=40).chain([64, 100]) {
        for (name, params) in every(ranks) {
            ends(name, &params);
        }
    }
}

#[test]
fn every_pattern_ends_when_it_repeats() {
    for ranks in [1, 2, 3, 8, 13] {
        for (name, params) in every(ranks) {
            ends(name, &Params { iterations: 4, ..params });
        }
    }
}

#[test]
fn a_million_iterations_of_nothing_end_at_once() {
    for (name, params) in every(1) {
        let params = Params { iterations: 1_000_000_000, work_ns: 0, ..params };
        ends(name, &params);
    }
}

#[test]
fn what_was_not_freed_is_counted() {
    use crate::loggops::Program;
    let params = Params { ranks: 8, iterations: 5, ..Params::default() };
    let steps = by_name("dissemination", &params).unwrap();
    let mut free = Vec::new();
    let mut state = steps.begin(0, &mut free);
    assert_eq!(steps.unfreed(0, &state), 5 * 6 - 2);
    steps.done(0, &mut state, 0, 1, &mut free);
    steps.done(0, &mut state, 1, 1, &mut free);
    assert_eq!(steps.unfreed(0, &state), 5 * 6 - 4);
}
