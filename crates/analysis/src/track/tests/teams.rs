//! Ranks with OpenMP threads.

use proptest::prelude::*;
use quell_recording::mpi::{BLOCKING, Location, Operation, Region, UNKNOWN, What};
use quell_sim::loggops::Network;

use super::archives::Made;
use super::both::{received, send};
use crate::track::{Tracked, goal};

const MS: u64 = 1_000_000;
const PARALLEL: u32 = 5;
const BARRIER: u32 = 6;

/// A run with this number of threads in each rank. The location of a thread is `rank * threads + thread`.
fn hybrid(ranks: u32, threads: u32) -> Made {
    let mut made = Made::new(ranks, &["task"]);
    let region = |name: &str| Region { name: name.to_owned(), site: None, mpi: false };
    made.definitions.regions.extend([region("omp parallel"), region("omp barrier")]);
    let location =
        |id: u32| Location { id: id.into(), rank: id / threads, thread: id % threads, ..Location::default() };
    made.definitions.locations = (0..ranks * threads).map(location).collect();
    made.events = vec![Vec::new(); (ranks * threads) as usize];
    made
}

impl Made {
    fn forks(&mut self, master: u32, time_ns: u64) -> &mut Self {
        self.at(master, time_ns, What::Enter(PARALLEL)).at(master, time_ns, What::Fork { threads: 0 })
    }

    fn joins(&mut self, master: u32, time_ns: u64) -> &mut Self {
        self.at(master, time_ns, What::Join).at(master, time_ns, What::Leave(PARALLEL))
    }

    /// A thread's share, with this total of noise at its end.
    fn shares(&mut self, location: u32, [begin, end]: [u64; 2], noise: u64) -> &mut Self {
        self.at(location, begin, What::TeamBegin).noise(location, end, noise).at(location, end, What::TeamEnd)
    }

    fn passes_barrier(&mut self, location: u32, [begin, end]: [u64; 2]) -> &mut Self {
        self.at(location, begin, What::Enter(BARRIER)).at(location, end, What::Leave(BARRIER))
    }
}

/// Each location's delay is what its figures add up to.
fn adds_up(tracked: &Tracked) {
    for rank in &tracked.ranks {
        let sum = rank.local_ns + rank.amplified_ns - rank.absorbed_ns - rank.noise_without_time_ns;
        assert_eq!(rank.accumulated_ns, sum, "{rank:?}");
    }
    for thread in &tracked.threads {
        let sum = thread.local_ns + thread.amplified_ns - thread.absorbed_ns - thread.noise_without_time_ns;
        assert_eq!(thread.accumulated_ns, sum, "{thread:?}");
    }
}

#[test]
fn the_noise_of_the_worker_that_came_last_reaches_its_rank() {
    let mut made = hybrid(1, 2);
    made.forks(0, MS).shares(0, [MS + 10, 21 * MS], 0);
    made.shares(1, [MS + 20, 31 * MS], 10 * MS);
    made.joins(0, 31 * MS + 50);
    let tracked = made.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    adds_up(&tracked);
    let (rank, worker) = (&tracked.ranks[0], &tracked.threads[0]);
    assert_eq!([rank.local_ns, rank.accumulated_ns, rank.amplified_ns], [0, 10 * MS as i64, 10 * MS as i64]);
    assert_eq!(tracked.compensated_runtime_ns, 21 * MS as i64 + 50);
    assert_eq!([worker.rank, worker.thread], [0, 1]);
    assert_eq!([worker.local_ns, worker.accumulated_ns], [10 * MS as i64; 2]);
    assert_eq!(worker.local_by_source_ns["task"], 10 * MS as i64);
    let place = tracked.paths.iter().find(|path| path.path == ["omp parallel"]).unwrap();
    assert_eq!((place.amplified_ns, place.calls), (10 * MS as i64, 1));
}

/// The first region is as long as its other worker takes. Then the thread that was struck waits, and begins the second region on time.
#[test]
fn the_noise_of_a_worker_that_did_not_come_last_is_absorbed() {
    let mut made = hybrid(1, 3);
    made.forks(0, MS).shares(0, [MS, 21 * MS], 0).shares(1, [MS, 31 * MS], 10 * MS);
    made.shares(2, [MS, 41 * MS], 0).joins(0, 41 * MS);
    made.forks(0, 50 * MS).shares(0, [50 * MS, 52 * MS], 0).shares(1, [50 * MS, 52 * MS], 10 * MS);
    made.shares(2, [50 * MS, 52 * MS], 0).joins(0, 52 * MS);
    let tracked = made.track();
    assert!(!tracked.findings.broken());
    adds_up(&tracked);
    assert_eq!([tracked.ranks[0].accumulated_ns, tracked.ranks[0].amplified_ns], [0, 0]);
    let struck = &tracked.threads[0];
    assert_eq!(
        [struck.local_ns, struck.accumulated_ns, struck.absorbed_ns],
        [10 * MS as i64, 0, 10 * MS as i64]
    );
}

#[test]
fn the_threads_of_a_team_wait_for_each_other_in_its_barriers() {
    let mut made = hybrid(1, 2);
    made.forks(0, MS);
    for (location, came, noise) in [(0, 11 * MS, 0), (1, 21 * MS, 10 * MS)] {
        made.at(location, MS, What::TeamBegin).noise(location, came, noise);
        made.passes_barrier(location, [came, 21 * MS + 30]);
        made.passes_barrier(location, [25 * MS, 25 * MS + 30]);
        made.at(location, 26 * MS, What::TeamEnd);
    }
    made.joins(0, 26 * MS);
    let tracked = made.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    adds_up(&tracked);
    assert_eq!(tracked.ranks[0].accumulated_ns, 10 * MS as i64);
    let amplified =
        |path: &[&str]| tracked.paths.iter().find(|place| place.path == path).unwrap().amplified_ns;
    assert_eq!(amplified(&["omp parallel", "omp barrier"]), 10 * MS as i64);
    assert_eq!(amplified(&["omp parallel"]), 0);
}

/// A thread that waits in a barrier may run a task: noise of the rank for which that waits delays the team.
#[test]
fn a_message_that_a_thread_waits_for_within_a_barrier_delays_its_team() {
    let mut made = hybrid(2, 2);
    made.forks(0, MS).at(0, MS, What::TeamBegin).at(1, MS, What::TeamBegin);
    made.passes_barrier(0, [11 * MS, 31 * MS]);
    made.at(1, 11 * MS, What::Enter(BARRIER));
    made.waits(1, [12 * MS, 31 * MS - 50], "MPI_Recv", &[received(1, 0, BLOCKING)]);
    made.at(1, 31 * MS, What::Leave(BARRIER));
    // A barrier after it is the same for both.
    made.passes_barrier(0, [32 * MS, 33 * MS]).passes_barrier(1, [33 * MS, 33 * MS]);
    made.at(0, 34 * MS, What::TeamEnd).at(1, 34 * MS, What::TeamEnd).joins(0, 34 * MS);
    made.at(2, 0, What::Enter(0)).noise(2, 30 * MS, 10 * MS).calls(
        2,
        31 * MS - 100,
        "MPI_Send",
        &[send(0, 0)],
    );
    let tracked = made.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    adds_up(&tracked);
    let lost: Vec<i64> = tracked.ranks.iter().map(|rank| rank.accumulated_ns).collect();
    assert_eq!((lost, tracked.threads[0].accumulated_ns), (vec![10 * MS as i64; 2], 10 * MS as i64));
}

/// A second share in the same team would pass its barriers again.
#[test]
fn a_thread_has_one_share_in_a_team() {
    let mut made = hybrid(1, 3);
    made.forks(2, 0);
    for location in [1, 0, 2] {
        made.at(location, 1, What::TeamBegin).passes_barrier(location, [10, 49 + u64::from(location != 1)]);
    }
    for _ in 0..2 {
        made.at(1, 50, What::TeamEnd).at(1, 50, What::TeamBegin).passes_barrier(1, [50, 50]);
    }
    made.track();
}

/// A late fork makes late shares: the delay of the thread that forked is not absorbed at the join.
#[test]
fn noise_before_the_fork_delays_all_shares() {
    let mut made = hybrid(1, 2);
    made.at(0, 0, What::Enter(0)).noise(0, 11 * MS, 10 * MS);
    made.forks(0, 11 * MS).shares(0, [11 * MS, 12 * MS], 10 * MS).shares(1, [11 * MS + 40, 15 * MS], 0);
    made.joins(0, 15 * MS);
    let tracked = made.track();
    adds_up(&tracked);
    let rank = &tracked.ranks[0];
    assert_eq!(
        [rank.local_ns, rank.accumulated_ns, rank.amplified_ns, rank.absorbed_ns],
        [10 * MS as i64, 10 * MS as i64, 0, 0]
    );
    assert_eq!([tracked.threads[0].amplified_ns, tracked.threads[0].accumulated_ns], [10 * MS as i64; 2]);
}

/// A worker's noise passes through its rank to the other rank.
#[test]
fn the_noise_of_a_worker_reaches_other_ranks() {
    let mut made = hybrid(2, 2);
    for (rank, end) in [(0, 11 * MS), (1, 16 * MS)] {
        let (master, worker) = (2 * rank, 2 * rank + 1);
        made.forks(master, MS).shares(master, [MS, 11 * MS], 0);
        made.shares(worker, [MS, end], end - 11 * MS).joins(master, end);
        made.collective(master, [end, 16 * MS + 10], Operation::Barrier, UNKNOWN);
    }
    let tracked = made.track();
    assert!(!tracked.findings.broken());
    adds_up(&tracked);
    let accumulated: Vec<i64> = tracked.ranks.iter().map(|rank| rank.accumulated_ns).collect();
    assert_eq!(accumulated, [5 * MS as i64; 2]);
}

/// Teams within a team, and a second one at the same time, are the work of the threads that have them.
#[test]
fn only_the_outermost_team_is_followed() {
    let mut made = hybrid(1, 4);
    made.forks(0, MS).at(0, MS, What::TeamBegin).at(1, MS, What::TeamBegin);
    made.at(1, 2 * MS, What::Fork { threads: 2 }).at(1, 2 * MS, What::TeamBegin);
    made.at(1, 3 * MS, What::TeamEnd).at(1, 3 * MS, What::Join);
    made.forks(3, 2 * MS).joins(3, 4 * MS);
    made.at(0, 5 * MS, What::TeamEnd).noise(1, 9 * MS, 4 * MS).at(1, 9 * MS, What::TeamEnd);
    made.joins(0, 9 * MS);
    let tracked = made.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    assert_eq!(tracked.ranks[0].accumulated_ns, 4 * MS as i64);
}

/// A worker whose log was full, or whose runtime ends shares late, is not waited for.
#[test]
fn a_share_without_an_end_holds_no_one_up() {
    for late in [false, true] {
        let mut made = hybrid(1, 2);
        made.forks(0, MS).shares(0, [MS, 2 * MS], 0).at(1, MS, What::TeamBegin).joins(0, 3 * MS);
        if late {
            made.noise(1, 4 * MS, MS).at(1, 4 * MS, What::TeamEnd);
        }
        made.forks(0, 5 * MS).shares(0, [5 * MS, 6 * MS], 0).joins(0, 7 * MS);
        let tracked = made.track();
        assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
        adds_up(&tracked);
        assert_eq!(tracked.ranks[0].accumulated_ns, 0);
    }
}

/// For a schedule, a parallel region is the work of the rank's first thread.
#[test]
fn a_team_is_work_in_a_schedule() {
    let mut made = hybrid(2, 2);
    for rank in 0..2 {
        let (master, worker) = (2 * rank, 2 * rank + 1);
        made.forks(master, MS).at(master, MS, What::TeamBegin).at(worker, MS, What::TeamBegin);
        made.passes_barrier(master, [2 * MS, 3 * MS]).passes_barrier(worker, [3 * MS, 3 * MS]);
        made.at(master, 4 * MS, What::TeamEnd).at(worker, 5 * MS, What::TeamEnd).joins(master, 5 * MS);
        made.collective(master, [5 * MS, 5 * MS], Operation::Barrier, UNKNOWN);
    }
    let schedule = goal(&mut made, None, &Network::default().into(), &mut |_| ()).unwrap();
    assert_eq!(schedule.skipped.threads, 2);
    let work = schedule.quiet_ns;
    assert!((4 * MS..4 * MS + MS / 2).contains(&work), "{work} ns");
}

/// Work and noise of each thread in a region: before its barrier, and after.
type Share = [[u64; 2]; 2];

/// Serial work and noise of the thread that forks, and the shares.
fn programs() -> impl Strategy<Value = Vec<([u64; 2], Vec<Share>)>> {
    let pair = || {
        (100u64..10_000, prop_oneof![2 => Just(0u64), 1 => 0u64..20_000])
            .prop_map(|(work, noise)| [work, noise])
    };
    (1usize..5).prop_flat_map(move |threads| {
        let share = (pair(), pair()).prop_map(|(before, after)| [before, after]);
        prop::collection::vec((pair(), prop::collection::vec(share, threads)), 1..6)
    })
}

/// Plays a program with or without its noise; each share begins `FORKED` after the fork, and a barrier takes `PASSED`.
fn play(program: &[([u64; 2], Vec<Share>)], noisy: bool, made: &mut Made) -> u64 {
    const FORKED: u64 = 7;
    const PASSED: u64 = 11;
    let threads = program[0].1.len();
    let (mut now, mut totals) = (0, vec![0; threads]);
    let length = |[work, noise]: [u64; 2]| work + if noisy { noise } else { 0 };
    for (serial, shares) in program {
        now += length(*serial);
        totals[0] += serial[1];
        made.noise(0, now, totals[0]).forks(0, now);
        let came: Vec<u64> = shares.iter().map(|share| now + FORKED + length(share[0])).collect();
        let passed = came.iter().max().unwrap() + PASSED;
        let mut joined = 0;
        for (thread, share) in shares.iter().enumerate() {
            let location = thread as u32;
            made.at(location, now + FORKED, What::TeamBegin);
            totals[thread] += share[0][1];
            made.noise(location, came[thread], totals[thread]);
            made.passes_barrier(location, [came[thread], passed]);
            let end = passed + length(share[1]);
            totals[thread] += share[1][1];
            made.noise(location, end, totals[thread]).at(location, end, What::TeamEnd);
            joined = joined.max(end);
        }
        now = joined;
        made.joins(0, now);
    }
    now
}

proptest! {
    /// The oracle plays the program without its noise.
    #[test]
    fn a_run_without_noise_is_what_the_program_does_without_noise(program in programs()) {
        let threads = program[0].1.len() as u32;
        let mut made = hybrid(1, threads);
        made.at(0, 0, What::Enter(0));
        let took = play(&program, true, &mut made);
        let quiet = play(&program, false, &mut hybrid(1, threads));
        let tracked = made.track();
        prop_assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
        adds_up(&tracked);
        prop_assert_eq!(tracked.runtime_ns, took as i64);
        prop_assert_eq!(tracked.compensated_runtime_ns, quiet as i64);
    }
}
