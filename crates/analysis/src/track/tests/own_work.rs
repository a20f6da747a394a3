//! What the kernel counts and is no noise.

use std::convert::Infallible;

use quell_recording::mpi::{Operation, UNKNOWN, What};

use super::archives::Made;
use crate::track::{Given, NoiseOnly, Tracked, goal, track};

/// Each of two ranks works for 1 ms, with 10 us of ticks and 300 us of page faults, and then they meet in a barrier.
fn run() -> Made {
    let mut made = Made::new(2, &["fault", "tick"]);
    for rank in [0, 1] {
        made.at(rank, 0, What::Noise { source: 0, total_ns: 0 }).at(rank, 0, What::Enter(0));
        made.at(rank, 1_000_000, What::Noise { source: 0, total_ns: 300_000 });
        made.at(rank, 1_000_000, What::Noise { source: 1, total_ns: 10_000 });
        made.collective(rank, [1_000_000, 1_001_000], Operation::Barrier, UNKNOWN).at(
            rank,
            1_001_000,
            What::Leave(0),
        );
    }
    made
}

fn tracked(own_work: bool) -> Tracked {
    let Ok(reading) =
        track(|| Ok::<_, Infallible>(NoiseOnly::new(run(), own_work)), &Given::default(), &mut ());
    reading.tracked
}

#[test]
fn page_faults_are_no_noise_unless_asked_for() {
    let found = tracked(false);
    assert_eq!(found.compensated_runtime_ns, 991_000);
    assert_eq!(found.compensated_runtime_by_source_ns.keys().collect::<Vec<_>>(), ["tick"]);
    assert_eq!(found.own_work_ns.get("fault"), Some(&600_000), "of both ranks");

    let found = tracked(true);
    assert_eq!(found.compensated_runtime_ns, 691_000);
    assert_eq!(found.compensated_runtime_by_source_ns["fault"], 701_000);
    assert!(found.own_work_ns.is_empty());
}

#[test]
fn page_faults_stay_in_the_work_of_a_schedule() {
    let quiet_ns = |own_work| {
        goal(
            &mut NoiseOnly::new(run(), own_work),
            None,
            &quell_sim::loggops::Network::default().into(),
            &mut |_| (),
        )
        .unwrap()
        .quiet_ns
    };
    assert_eq!(quiet_ns(false) - quiet_ns(true), 300_000);
}
