//! The worked examples of Nataraj et al. 2007, Fig. 2. Times in ms there, in ns here.

use quell_recording::mpi::{Operation, UNKNOWN};

use super::archives::Made;

const MS: u64 = 1_000_000;

fn accumulated(made: &mut Made) -> Vec<i64> {
    made.track().ranks.iter().map(|rank| rank.accumulated_ns / MS as i64).collect()
}

#[test]
fn a_noise_is_passed_on() {
    let mut made = Made::new(2, &["tick"]);
    made.noise(0, 1000 * MS, 100 * MS).sends(0, [1000 * MS, 1001 * MS], 1, 0);
    made.receives(1, [500 * MS, 1003 * MS], 0, 0);
    assert_eq!(accumulated(&mut made), [100, 100]);
}

#[test]
fn b_thirty_are_left_of_a_hundred() {
    let mut made = Made::new(2, &["tick"]);
    made.noise(0, 1990 * MS, 30 * MS).sends(0, [1990 * MS, 1991 * MS], 1, 0);
    made.noise(1, 1000 * MS, 100 * MS).receives(1, [1000 * MS, 2000 * MS], 0, 0);
    let tracked = made.track();
    assert_eq!(tracked.ranks[1].accumulated_ns, 30 * MS as i64);
    assert_eq!(tracked.ranks[1].absorbed_ns, 70 * MS as i64);
}

#[test]
fn c_thirty_three_are_left_of_a_hundred() {
    let mut made = Made::new(2, &["tick"]);
    made.noise(0, 1000 * MS, 30 * MS).sends(0, [1000 * MS, 1001 * MS], 1, 0);
    made.noise(1, 1001 * MS, 100 * MS).receives(1, [1001 * MS, 1003 * MS], 0, 0);
    let tracked = made.track();
    assert_eq!(tracked.ranks[1].accumulated_ns, 33 * MS as i64);
    assert_eq!(tracked.ranks[1].absorbed_ns, 67 * MS as i64);
}

#[test]
fn d_a_barrier() {
    let mut made = Made::new(3, &["tick"]);
    made.noise(0, 1000 * MS, 100 * MS).collective(0, [1000 * MS, 1020 * MS], Operation::Barrier, UNKNOWN);
    made.noise(1, 960 * MS, 20 * MS).collective(1, [960 * MS, 1022 * MS], Operation::Barrier, UNKNOWN);
    made.collective(2, [800 * MS, 1021 * MS], Operation::Barrier, UNKNOWN);
    // The last enters at 940 then, and the sync time is 22.
    assert_eq!(accumulated(&mut made), [58, 60, 59]);
}
