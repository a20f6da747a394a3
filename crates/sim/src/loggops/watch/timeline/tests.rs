use std::collections::HashSet;

use super::*;
use crate::loggops::watch::run_for_timeline;
use crate::loggops::{NO_PROGRESS, Network, Noise, Rules, Run};
use crate::pattern::{Params, by_name};

#[test]
fn a_sample_is_evenly_spaced_and_holds_those_that_exist() {
    assert_eq!(Timeline::sample(8, 4, &[]), [0, 2, 4, 6]);
    assert_eq!(Timeline::sample(8, 3, &[7, 2]), [0, 2, 5, 7]);
    assert_eq!(Timeline::sample(4, 2, &[3, 4, 9]), [0, 2, 3]);
    assert_eq!(Timeline::sample(3, 9, &[]), [0, 1, 2]);
    assert_eq!(Timeline::sample(3, 0, &[]), [0]);
}

/// Under progress in the call a send starts later than its turn if it waits for its interface.
#[test]
fn every_message_is_found_from_its_receive() {
    let params = Params { ranks: 8, bytes: 8192, iterations: 3, ..Params::default() };
    let program = by_name("alltoall", &params).unwrap();
    for rules in [Rules::Call, Rules::Physical] {
        let run = Run {
            net: Network::default(),
            ranges: &[],
            levels: &[],
            rules,
            noise: &Noise::None,
            threads: 1,
            progress: NO_PROGRESS,
        };
        let mut timeline = Timeline::new((0..8).collect(), usize::MAX);
        run_for_timeline(&program, &run, &mut timeline).unwrap();
        let (mut sends, mut receives) = (HashSet::new(), 0);
        for slice in timeline.slices() {
            match slice.activity {
                Activity::Send { sent, .. } => {
                    sends.insert((slice.rank, slice.op, sent));
                }
                Activity::Receive { from, sent } => {
                    receives += 1;
                    assert!(sends.contains(&(from, slice.op, sent)), "{rules:?}: {slice:?}");
                }
                Activity::Work => {}
            }
        }
        assert_eq!(receives, 8 * 7 * 3, "{rules:?}");
    }
}
