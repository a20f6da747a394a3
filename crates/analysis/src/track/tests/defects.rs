//! Runs with defects: who goes on without what it waits for, and what is reported.

use quell_recording::mpi::{BLOCKING, Comm, Operation, Region, UNKNOWN, What};

use super::archives::Made;
use super::both::{complete, received, run, send};
use crate::track::Findings;
use crate::warning::track::ArchiveWarning;

fn comm(name: &str, members: &[u32]) -> Comm {
    Comm { name: name.to_owned(), members: members.to_vec(), remote: None }
}

/// Number of receives without a send, of sends without a receive, and of incomplete collectives.
fn missing(findings: &Findings) -> [u64; 3] {
    [findings.receives_without_send, findings.sends_without_receive, findings.incomplete_collectives]
}

fn barrier(comm: u32) -> What {
    let (operation, root) = (Operation::Barrier, UNKNOWN);
    What::Collective { operation, comm, root, sent: 0, received: 0, request: BLOCKING }
}

#[test]
fn who_waits_for_a_rank_that_is_over_goes_on_before_who_waits_for_one_that_waits() {
    // Rank 0 waits for rank 1, and rank 1 for rank 2, which is over, or for a rank without a trace.
    for from in [2, 3] {
        let mut run = run(3);
        run.definitions.comms[0].members.push(9);
        run.waits(0, [100, 150], "MPI_Recv", &[received(1, 0, BLOCKING)]);
        run.waits(1, [200, 300], "MPI_Recv", &[received(from, 5, BLOCKING)]);
        run.calls(1, 400, "MPI_Send", &[send(0, 0)]);
        let findings = run.track().findings;
        assert_eq!(missing(&findings), [1, 0, 0], "{from}");
        assert_eq!((findings.before_cause.times, findings.before_cause.largest_ns), (1, 250));
    }
}

#[test]
fn a_collective_whose_missing_ranks_are_over_goes_on_before_a_receive_that_may_get_its_message() {
    let mut run = run(3);
    run.definitions.comms.push(comm("some", &[1, 2]));
    run.waits(0, [100, 150], "MPI_Recv", &[received(1, 0, BLOCKING)]);
    run.waits(1, [200, 300], "MPI_Barrier", &[barrier(1)]).calls(1, 400, "MPI_Send", &[send(0, 0)]);
    assert_eq!(missing(&run.track().findings), [0, 0, 1]);
}

#[test]
fn a_receive_that_gets_nothing_goes_on_before_a_collective_that_may_complete() {
    let mut run = run(3);
    run.definitions.comms.push(comm("some", &[0, 1]));
    run.waits(0, [100, 150], "MPI_Barrier", &[barrier(1)]);
    run.waits(1, [200, 300], "MPI_Recv", &[received(2, 5, BLOCKING)]);
    run.waits(1, [400, 410], "MPI_Barrier", &[barrier(1)]);
    assert_eq!(missing(&run.track().findings), [1, 0, 0]);
}

#[test]
fn a_send_that_need_not_wait_goes_on_first() {
    let mut run = run(2);
    run.waits(0, [200, 210], "MPI_Ssend", &[send(1, 0)]).calls(0, 220, "MPI_Send", &[send(1, 7)]);
    run.waits(1, [100, 150], "MPI_Recv", &[received(0, 7, BLOCKING)]);
    run.waits(1, [300, 310], "MPI_Recv", &[received(0, 0, BLOCKING)]);
    assert_eq!(missing(&run.track().findings), [0, 0, 0]);
}

#[test]
fn the_first_eight_missing_ranks_are_listed() {
    let mut made = Made::new(12, &["tick"]);
    made.definitions.comms.push(comm("", &[0, 1, 2, 3]));
    made.definitions.span_ns[0] = 40;
    made.collective(5, [90, 130], Operation::Barrier, UNKNOWN);
    made.at(0, 140, What::Enter(3)).at(0, 150, barrier(1)).at(0, 150, What::Leave(3));
    made.at(2, 40, What::Enter(0));
    let findings = made.track().findings;
    assert_eq!(findings.incomplete_collectives, 2);
    let all: Vec<_> = findings
        .warnings
        .into_iter()
        .filter_map(|warning| match warning {
            ArchiveWarning::RanksMissing { collective, operation, ranks, more } => {
                Some((collective.communicator, collective.entered_ns, operation, ranks, more))
            }
            _ => None,
        })
        .collect();
    let operation = Some("Barrier".to_owned());
    let world = ("world".to_owned(), 50, operation.clone(), vec![0, 1, 2, 3, 4, 6, 7, 8], 3);
    let some = ("communicator 1".to_owned(), 100, operation, vec![1, 2, 3], 0);
    assert_eq!(all, [some, world]);
}

#[test]
fn a_collective_that_all_entered_and_one_did_not_leave_is_reported() {
    let mut made = Made::new(2, &["tick"]);
    made.definitions.span_ns[0] = 90;
    made.collective(0, [100, 130], Operation::Barrier, UNKNOWN);
    made.at(1, 90, What::Enter(3)).at(1, 120, complete(Operation::Barrier, UNKNOWN, BLOCKING));
    let findings = made.track().findings;
    assert_eq!(findings.incomplete_collectives, 1);
    let is = |is: fn(&ArchiveWarning) -> bool| findings.warnings.iter().filter(|one| is(one)).count();
    assert_eq!(is(|one| matches!(one, ArchiveWarning::NotLeft { .. })), 1);
    assert_eq!(is(|one| matches!(one, ArchiveWarning::EndsWithin { at_ns: 30, .. })), 1, "{findings:?}");
    assert_eq!(findings.warnings.len(), 2);
}

#[test]
fn a_collective_that_was_posted_and_not_waited_for_counts_once_if_ranks_are_missing() {
    let posts = |ranks: u32, waits: &[u32]| {
        let mut run = run(3);
        for rank in 0..ranks {
            run.calls(rank, 100, "MPI_Ibarrier", &[What::CollectivePosted { comm: 0, request: 1 }]);
        }
        for rank in waits {
            run.calls(*rank, 200, "MPI_Wait", &[complete(Operation::Barrier, UNKNOWN, 1)]);
        }
        run.track().findings.incomplete_collectives
    };
    assert_eq!(posts(2, &[]), 1);
    assert_eq!(posts(2, &[1]), 1, "it was reported where rank 1 waited");
    assert_eq!(posts(2, &[0, 1]), 1);
    assert_eq!(posts(3, &[1]), 0, "all entered");
    assert_eq!(posts(3, &[]), 0);
}

#[test]
fn of_each_kind_all_are_counted_and_twenty_reported() {
    type Count = fn(&Findings) -> u64;
    let check = |what: &str, count: Count, make: &dyn Fn(&mut Made, u64)| {
        let mut made = Made::new(2, &["tick"]);
        made.definitions.regions.push(Region { name: "inner".to_owned(), ..Region::default() });
        for number in 1..=25 {
            make(&mut made, number);
        }
        let findings = made.track().findings;
        assert_eq!((count(&findings), findings.warnings.len()), (25, 20), "{what}: {findings:?}");
    };
    check("receive", |all| all.receives_without_send, &|made, at| {
        made.receives(0, [at, at], 1, 0);
    });
    check("send", |all| all.sends_without_receive, &|made, at| {
        made.sends(0, [at, at], 1, 0);
    });
    check("post", |all| all.incomplete_collectives, &|made, at| {
        made.at(0, at, What::CollectivePosted { comm: 0, request: at });
    });
    check("barrier", |all| all.incomplete_collectives, &|made, at| {
        made.collective(0, [at, at], Operation::Barrier, UNKNOWN);
    });
    check("counter", |all| all.counters_backwards, &|made, at| {
        if at == 1 {
            made.noise(0, 0, 1000);
        }
        made.noise(0, at, 1000 - at);
    });
    check("clock", |all| all.clock_backwards.times, &|made, at| {
        if at == 1 {
            made.noise(0, 1000, 0);
        }
        made.noise(0, 900, 0);
    });
    check("source", |all| all.undefined, &|made, at| {
        made.at(0, at, What::Noise { source: 9, total_ns: 1 });
    });
    check("leave", |all| all.unbalanced, &|made, at| {
        made.at(0, at, What::Leave(0));
    });
    check("open", |all| all.unbalanced, &|made, at| {
        made.at(0, at, What::Enter(0)).at(0, at, What::Enter(5)).at(0, at, What::Leave(0));
    });
    check("operation", |all| all.mismatched_collectives, &|made, at| {
        made.collective(0, [at, at], Operation::Barrier, UNKNOWN);
        made.collective(1, [at, at], Operation::Allreduce, UNKNOWN);
    });
    check("cause", |all| all.before_cause.times, &|made, at| {
        made.sends(0, [100 * at + 50, 100 * at + 50], 1, 0).receives(1, [100 * at, 100 * at + 1], 0, 0);
    });
}

#[test]
fn regions_that_one_leave_closes_are_one_finding() {
    let mut made = Made::new(1, &["tick"]);
    made.definitions.regions.push(Region { name: "inner".to_owned(), ..Region::default() });
    for leave in [10, 20] {
        made.at(0, leave, What::Enter(0)).at(0, leave, What::Enter(5)).at(0, leave, What::Enter(5));
        made.at(0, leave, What::Enter(5)).at(0, leave + 5, What::Leave(0));
    }
    let findings = made.track().findings;
    assert_eq!(findings.unbalanced, 6);
    let open = |warning: &ArchiveWarning| match warning {
        ArchiveWarning::LeavesOpen { region, open, .. } => (region.clone(), *open),
        other => panic!("{other}"),
    };
    let all: Vec<_> = findings.warnings.iter().map(open).collect();
    assert_eq!(all, [("main".to_owned(), 3), ("main".to_owned(), 3)]);
}

#[test]
fn a_region_that_is_never_left_lasts_until_the_end() {
    let mut made = Made::new(1, &["tick"]);
    made.definitions.regions.push(Region { name: "inner".to_owned(), ..Region::default() });
    made.at(0, 0, What::Enter(0)).at(0, 10, What::Enter(5)).at(0, 30, What::Leave(5));
    made.at(0, 40, What::Enter(5)).noise(0, 100, 0);
    let tracked = made.track();
    let time = |path: &[&str]| tracked.paths.iter().find(|one| one.path == path).unwrap().time_ns;
    assert_eq!((time(&["main"]), time(&["main", "inner"])), (100, 20 + 60));
}

#[test]
fn without_a_finalize_only_the_ranks_that_lack_it_are_named() {
    let mut made = Made::new(3, &["tick"]);
    made.definitions.span_ns[0] = 50;
    made.definitions.locations[2].rank = 1;
    made.definitions.locations[2].thread = 1;
    made.definitions.comms[0].members = vec![0, 1];
    made.definitions.regions.push(Region { name: "MPI_Finalize".to_owned(), mpi: true, ..Region::default() });
    made.at(0, 100, What::Enter(5)).at(0, 110, What::Leave(5));
    for location in [1, 2] {
        made.at(location, 50, What::Enter(0)).at(location, 90, What::Leave(0));
    }
    let warnings = made.track().findings.warnings;
    let [ArchiveWarning::WithoutFinalize { location, at_ns: 40 }] = warnings.as_slice() else {
        panic!("{warnings:?}")
    };
    assert_eq!(location.thread, Some([1, 0]));
}

#[test]
fn the_run_begins_where_the_archive_says_unless_that_is_another_clock() {
    let took = |begin: u64| {
        let mut made = Made::new(1, &["tick"]);
        made.definitions.span_ns[0] = begin;
        made.at(0, 1_100_000, What::Enter(0)).at(0, 1_101_000, What::Leave(0));
        made.track().runtime_ns
    };
    // It is believed up to a hundred times the 1000 between the first event and the last.
    assert_eq!([1_099_000, 1_000_000, 999_999, 0].map(took), [2000, 101_000, 1000, 1000]);
    assert_eq!([1_100_000, 1_100_001, u64::MAX].map(took), [1000; 3]);
}

#[test]
fn noise_without_time_is_summed_over_the_ranks() {
    let mut made = Made::new(2, &["tick"]);
    for (rank, total) in [(0, 150), (1, 230)] {
        made.at(rank, 0, What::Enter(0)).noise(rank, 100, total).at(rank, 100, What::Leave(0));
    }
    let tracked = made.track();
    assert_eq!(tracked.findings.noise_without_time_ns, 50 + 130);
    assert_eq!(tracked.ranks.iter().map(|rank| rank.noise_without_time_ns).collect::<Vec<_>>(), [50, 130]);
}

/// A run that ends within a call, as one that was killed: the noise of that call has found no time yet.
#[test]
fn noise_of_a_call_that_is_never_left_has_no_time() {
    let mut made = Made::new(2, &["tick"]);
    made.at(1, 90, What::Enter(3)).noise(1, 120, 20);
    let tracked = made.track();
    let rank = &tracked.ranks[1];
    let sums = (rank.local_ns, rank.accumulated_ns, rank.noise_without_time_ns);
    assert_eq!((sums, tracked.findings.noise_without_time_ns), ((20, 0, 20), 20));
}

#[test]
fn times_beyond_36_years_are_the_longest_and_no_clock_that_goes_back() {
    let mut made = Made::new(1, &["tick"]);
    made.at(0, u64::MAX, What::Enter(0)).at(0, u64::MAX - 5, What::Leave(0));
    let findings = made.track().findings;
    assert_eq!((findings.clock_backwards.times, findings.clock_backwards.largest_ns), (0, 0));
}

/// Ten ranks of 36 years each in one region, half of which never leave it.
#[test]
fn times_of_a_region_that_no_number_holds_are_the_largest() {
    let mut made = Made::new(10, &["tick"]);
    for rank in 0..10 {
        made.at(rank, 0, What::Enter(0)).noise(rank, u64::MAX, 0);
        if rank % 2 == 0 {
            made.at(rank, u64::MAX, What::Leave(0));
        }
    }
    let tracked = made.track();
    assert_eq!(tracked.paths.iter().find(|one| one.path == ["main"]).unwrap().time_ns, i64::MAX);
}

#[test]
fn a_request_that_ends_with_another_message_gives_its_own_back() {
    // The end is too many events ahead to be known where the receive is posted.
    let mut run = run(2);
    run.calls(0, 10, "MPI_Send", &[send(1, 1)]).calls(0, 20, "MPI_Send", &[send(1, 2)]);
    run.calls(1, 5, "MPI_Irecv", &[What::RecvPosted { comm: 0, from: 0, tag: 1, request: 1 }]);
    for _ in 0..2100 {
        run.at(1, 30, What::Enter(0)).at(1, 30, What::Leave(0));
    }
    run.calls(1, 40, "MPI_Wait", &[received(0, 2, 1)]).calls(1, 50, "MPI_Recv", &[received(0, 1, BLOCKING)]);
    let tracked = run.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
}

#[test]
fn the_communicator_of_the_post_counts() {
    let mut run = run(2);
    run.definitions.comms.push(comm("some", &[0, 1]));
    run.calls(0, 100, "MPI_Ibarrier", &[What::CollectivePosted { comm: 1, request: 1 }]);
    run.calls(0, 200, "MPI_Wait", &[complete(Operation::Barrier, UNKNOWN, 1)]);
    run.calls(1, 100, "MPI_Ibarrier", &[What::CollectivePosted { comm: 1, request: 1 }]);
    let over = What::Collective {
        operation: Operation::Barrier,
        comm: 1,
        root: UNKNOWN,
        sent: 0,
        received: 0,
        request: 1,
    };
    run.calls(1, 200, "MPI_Wait", &[over]);
    assert_eq!(run.track().findings.incomplete_collectives, 0);
}

#[test]
fn time_outside_of_all_regions_is_the_program_s_own() {
    let mut made = Made::new(2, &["tick"]);
    made.noise(0, 0, 0).at(0, 10, What::Enter(0)).at(0, 20, What::Enter(0)).at(0, 30, What::Leave(0));
    made.at(0, 60, What::Leave(0)).noise(0, 100, 30);
    made.noise(1, 20, 0).noise(1, 25, 0);
    let tracked = made.track();
    let own = tracked.paths.iter().find(|path| path.path.is_empty()).unwrap();
    // Rank 0 was in main for 50 of 100, and rank 1 lasted 5.
    assert_eq!((own.time_ns, own.local_ns, own.calls), (50 + 5, 30, 0));
    let paths: Vec<_> = tracked.paths.iter().map(|path| path.path.join("/")).collect();
    assert_eq!(paths, ["", "main", "main/main"], "the costliest first");
}

/// One that shows how it waits, as a collective or a receive, is tracked, so that its time is no work.
#[test]
fn calls_that_may_wait_unseen_are_named_with_their_time_unless_their_events_show_how() {
    let mut run = run(2);
    run.waits(0, [100, 300], "MPI_Win_wait", &[]).waits(1, [100, 150], "MPI_Win_wait", &[]);
    run.waits(0, [400, 1000], "MPI_Comm_accept", &[]);
    run.waits(0, [1100, 1200], "MPI_Win_unlock", &[received(1, 0, BLOCKING)]);
    run.waits(0, [1300, 1400], "MPI_Win_flush", &[barrier(0)]);
    run.waits(1, [1000, 1400], "MPI_Barrier", &[barrier(0)]);
    run.waits(1, [1500, 1900], "MPI_Wtime", &[]);
    let tracked = run.track();
    let waits: Vec<_> =
        tracked.unknown_waits.iter().map(|wait| (wait.call.as_str(), wait.calls, wait.time_ns)).collect();
    assert_eq!(waits, [("MPI_Comm_accept", 1, 600), ("MPI_Win_wait", 2, 250)]);
}

#[test]
fn the_time_of_init_and_finalize_is_the_mean_of_the_ranks() {
    let mut run = run(2);
    run.waits(0, [0, 100], "MPI_Init", &[]).waits(1, [0, 300], "MPI_Init_thread", &[]);
    run.waits(0, [500, 540], "MPI_Finalize", &[]).waits(1, [540, 560], "MPI_Finalize", &[]);
    let tracked = run.track();
    assert_eq!([tracked.init_ns, tracked.finalize_ns, tracked.runtime_ns], [200, 30, 560]);
}
