//! Several MPI programs under one trace.

use super::*;

#[test]
fn of_two_processes_of_a_rank_the_first_one_counts() {
    let process = |pid: u64, begin: u64, thread: u64| {
        let mut one = log(0, 1, &[]);
        put(&mut one, field::PID, pid);
        put(&mut one, field::BEGIN_NS, begin);
        put(&mut one, field::THREAD, thread);
        one
    };
    // The other process is the first to be found, and began later.
    let logs = [process(50, 3_000, 0), process(60, 2_000, 0), process(60, 4_000, 1), process(70, 2_000, 0)];
    let run = LogRun::open(folder_with(&logs).path()).unwrap();
    assert_eq!(run.summary().others, [("here".to_owned(), 50), ("here".to_owned(), 70)]);
    assert_eq!(run.definitions().locations.len(), 2);
    assert_eq!(run.definitions().span_ns[0], 2_000);
}

/// As after `mpirun -n 2 A & mpirun -n 2 B`: the processes begin in any order.
#[test]
fn of_two_programs_at_a_time_the_ranks_of_one_count() {
    let process = |rank: u32, pid: u64, begin: u64, job: u64| {
        let mut one = log(rank, 2, &[]);
        put(&mut one, field::PID, pid);
        put(&mut one, field::BEGIN_NS, begin);
        put(&mut one, field::JOB, job);
        one
    };
    let first = [process(0, 50, 2_000, 7), process(1, 51, 2_300, 7)];
    let second = [process(0, 60, 2_200, 9), process(1, 61, 2_100, 9)];
    let logs: Vec<_> = first.into_iter().chain(second).collect();
    let run = LogRun::open(folder_with(&logs).path()).unwrap();
    assert!(run.summary().missing.is_empty());
    assert_eq!(run.summary().others, [60, 61].map(|pid| ("here".to_owned(), pid)));
}

/// As after `mpirun -n 2 A; mpirun -n 4 B`.
#[test]
fn of_two_programs_the_first_one_counts() {
    let process = |rank: u32, ranks: u32, pid: u64, begin: u64| {
        let mut one = log(rank, ranks, &[]);
        put(&mut one, field::PID, pid);
        put(&mut one, field::BEGIN_NS, begin);
        one
    };
    let second = (0..4).map(|rank| process(rank, 4, 50 + u64::from(rank), 3_000));
    let first = (0..2).map(|rank| process(rank, 2, 90 + u64::from(rank), 2_000));
    let thread = process(3, 4, 53, 3_500);
    let logs: Vec<_> = second.chain(first).chain([thread]).collect();
    let run = LogRun::open(folder_with(&logs).path()).unwrap();
    let Summary { ranks, missing, others, .. } = run.summary();
    assert_eq!((*ranks, missing.len()), (2, 0));
    assert_eq!(run.definitions().locations.len(), 2);
    assert_eq!(*others, [50, 51, 52, 53].map(|pid| ("here".to_owned(), pid)));
}
