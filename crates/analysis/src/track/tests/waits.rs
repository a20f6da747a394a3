//! Calls whose ends without noise are computed by hand. All times in ns.

use quell_recording::mpi::{BLOCKING, Event, Operation, UNKNOWN, What};
use quell_sim::loggops::{NamedNetwork, Network};

use super::archives::Made;
use super::both::{complete, free, posted, received, run, send};
use super::goals::{finish, made};
use crate::track::{RunSource, Tracked};

pub fn compensated(tracked: &Tracked) -> Vec<i64> {
    tracked.ranks.iter().map(|rank| rank.compensated_ns).collect()
}

pub fn accumulated(tracked: &Tracked) -> Vec<i64> {
    tracked.ranks.iter().map(|rank| rank.accumulated_ns).collect()
}

/// Rank 2 waits from 700 to 1050 for a message that rank 0 sent at 1000, and for one of rank 1. Noise of 500 struck rank 0, and of 400 rank 2.
fn two_messages(second: u64) -> Made {
    let mut run = run(3);
    run.noise(0, 1000, 500).calls(0, 1000, "MPI_Send", &[send(2, 0)]);
    run.calls(1, second, "MPI_Send", &[send(2, 0)]);
    run.calls(2, 10, "MPI_Irecv", &[posted(0, 0, 1)]).calls(2, 10, "MPI_Irecv", &[posted(1, 0, 2)]);
    run.noise(2, 700, 400);
    run.waits(2, [700, 1050], "MPI_Waitall", &[received(0, 0, 1), received(1, 0, 2)]);
    run
}

#[test]
fn a_message_that_was_there_before_a_call_only_bounds_its_end() {
    let ends = |second| compensated(&two_messages(second).track())[2];
    // The first message comes at 500 without noise, and would let the call end at 550.
    assert_eq!(ends(100), 550);
    assert_eq!(ends(600), 600);
    assert_eq!(ends(700), 700);
    // This one came during the call too, so it also needs the 50 that the call took after its last message.
    assert_eq!(ends(800), 850);
}

#[test]
fn on_a_network_the_other_messages_of_a_call_take_their_transfer() {
    let net = NamedNetwork::from(Network { latency: 10, ..free() });
    let ends = |second| compensated(&two_messages(second).track_with(Some(&net)))[2];
    assert_eq!([100, 600, 695, 800].map(ends), [550, 610, 705, 810]);
}

#[test]
fn on_a_network_a_receive_takes_at_least_its_overhead() {
    let net = NamedNetwork::from(Network { overhead: 30, ..free() });
    let ends = |begin, noise| {
        let mut run = run(2);
        run.noise(0, 1000, 900).calls(0, 1000, "MPI_Send", &[send(1, 0)]);
        run.noise(1, begin, noise);
        run.waits(1, [begin, 1050], "MPI_Recv", &[received(0, 0, BLOCKING)]);
        compensated(&run.track_with(Some(&net)))[1]
    };
    assert_eq!(ends(700, 0), 730);
    assert_eq!(ends(700, 200), 530);
    // In flight at 1030: it arrives at 1060, and the call took 20.
    assert_eq!(ends(1030, 0), 1050);
    assert_eq!(ends(1030, 100), 950);
}

#[test]
fn only_a_receive_that_began_during_a_send_delayed_it() {
    let ends = |begin| {
        let mut run = run(2);
        run.noise(0, 100, 50).waits(0, [100, 110], "MPI_Ssend", &[]);
        run.events[0].insert(3, Event { time_ns: 100, what: send(1, 0) });
        run.waits(1, [begin, 120], "MPI_Recv", &[received(0, 0, BLOCKING)]);
        compensated(&run.track())[0]
    };
    // By itself the send is from 50 to 60.
    assert_eq!([90, 100, 101, 105, 110, 111].map(ends), [60, 60, 110, 110, 110, 60]);
}

#[test]
fn a_barrier_that_ends_before_the_last_entry_is_reported() {
    let mut made = Made::new(2, &["tick"]);
    made.collective(0, [100, 195], Operation::Barrier, UNKNOWN);
    made.noise(1, 200, 60).collective(1, [200, 210], Operation::Barrier, UNKNOWN);
    let tracked = made.track();
    let before = tracked.findings.before_cause;
    assert_eq!((before.times, before.largest_ns), (1, 5));
}

#[test]
fn a_broadcast_with_data_that_ends_before_its_root_came_is_reported() {
    let tracked = |bytes| {
        let mut made = Made::new(2, &["tick"]);
        made.noise(0, 200, 70).collective_of(0, [200, 205], Operation::Bcast, 0, bytes);
        made.collective_of(1, [50, 190], Operation::Bcast, 0, bytes);
        let tracked = made.track();
        (accumulated(&tracked), tracked.findings.before_cause.times, tracked.findings.before_cause.largest_ns)
    };
    assert_eq!(tracked(8), (vec![70, 70], 1, 10));
    assert_eq!(tracked(0), (vec![70, 0], 0, 0), "it carried nothing");
}

#[test]
fn who_leaves_early_waited_for_those_that_had_come() {
    let mut made = Made::new(3, &["tick"]);
    made.collective_of(0, [100, 150], Operation::Alltoallv, UNKNOWN, 8);
    made.noise(1, 120, 40).collective_of(1, [120, 260], Operation::Alltoallv, UNKNOWN, 8);
    made.collective_of(2, [200, 260], Operation::Alltoallv, UNKNOWN, 8);
    let tracked = made.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    // Rank 1 enters at 80 without noise, and rank 0 left 30 after that.
    assert_eq!(accumulated(&tracked), [40, 0, 0]);
    assert_eq!(tracked.ranks[1].absorbed_ns, 40);
}

#[test]
fn a_scan_waits_for_the_ranks_before() {
    let mut made = Made::new(3, &["tick"]);
    made.collective_of(0, [300, 305], Operation::Scan, UNKNOWN, 8);
    made.noise(1, 400, 100).collective_of(1, [400, 410], Operation::Scan, UNKNOWN, 8);
    made.collective_of(2, [50, 420], Operation::Scan, UNKNOWN, 8);
    let tracked = made.track();
    assert_eq!(accumulated(&tracked), [0, 100, 100]);
    assert_eq!(tracked.ranks[2].amplified_ns, 100);
}

#[test]
fn the_shortest_of_collectives_may_come_last() {
    let mut made = Made::new(2, &["tick"]);
    for rank in 0..2 {
        for (begin, length) in [(1_000_000, 600_000), (2_000_000, 500_000)] {
            made.collective_of(rank, [begin, begin + length], Operation::Allreduce, UNKNOWN, 1 << 20);
            // 100 us of noise, all in the first.
            let noise = What::Noise { source: 0, total_ns: 100_000 };
            let events = &mut made.events[rank as usize];
            events.insert(events.len() - 2, Event { time_ns: begin + length, what: noise });
        }
    }
    assert_eq!(accumulated(&made.track()), [100_000, 100_000]);
}

/// Rank 1 polls without success from 200 to 250, with noise before the next poll, and in it. Rank 0's message comes 60 before its end, on which
/// noise strikes but for the first 40.
fn polls([begin, end]: [u64; 2], [between, within]: [u64; 2]) -> Made {
    let mut run = run(2);
    run.definitions.sources.push("task".to_owned());
    let noise = |total_ns| What::Noise { source: 1, total_ns };
    run.at(0, end - 60, noise(end - 100)).calls(0, end - 60, "MPI_Send", &[send(1, 0)]);
    run.calls(1, 100, "MPI_Irecv", &[posted(0, 0, 1)]);
    run.waits(1, [200, 250], "MPI_Test", &[What::Pending { request: 1 }]);
    run.at(1, begin, noise(between));
    run.waits(1, [begin, end], "MPI_Test", &[noise(between + within), received(0, 0, 1)]);
    run
}

#[test]
fn polls_are_one_wait_if_they_follow_within_2_us_and_twice_the_last() {
    // The wait begins at 200 then; otherwise the program worked until the second poll, which took 10.
    assert_eq!(compensated(&polls([2350, 2360], [0, 0]).track())[1], 200);
    assert_eq!(compensated(&polls([2351, 2361], [0, 0]).track())[1], 2361);
    let schedule =
        |begin| finish(&made(&mut polls([begin, begin + 10], [0, 0]), None).unwrap().schedule, free());
    assert_eq!(schedule(2350)[1], 200);
    // Without the time of the calls: 50 and 10.
    assert_eq!(schedule(2351)[1], 2301);
}

#[test]
fn noise_between_two_polls_is_no_work_of_the_program() {
    let tracked = polls([2650, 3200], [300, 500]).track();
    assert_eq!(compensated(&tracked)[1], 200);
    let by_source = |source| tracked.ranks[1].by_source[source].accumulated_ns;
    assert_eq!((by_source("task"), by_source("tick")), (3000, 0));
    // 1 ns more is work, of 2351 without the noise.
    assert_eq!(compensated(&polls([2651, 3201], [300, 500]).track())[1], 2351);
}

/// Eight sends of 2 KiB, each of which ends as its receive begins, in a call of rank 0 with these further events. Before each, rank 1 sends
/// a message of 8 bytes, and both post a barrier.
fn observed(name: &str, further: &[What]) -> Tracked {
    let mut made = run(2);
    for phase in 0..8u64 {
        let begin = 1_000_000 * (phase + 1);
        let barrier = What::CollectivePosted { comm: 0, request: 3 };
        made.calls(1, begin - 3000, "MPI_Send", &[send(0, 9)]).calls(
            1,
            begin - 3000,
            "MPI_Ibarrier",
            &[barrier],
        );
        made.calls(0, begin - 3000, "MPI_Ibarrier", &[barrier]);
        let isend = |tag, bytes, request| What::Send { comm: 0, to: 1, tag, bytes, request };
        made.calls(0, begin, "MPI_Isend", &[isend(5, 8, 2)]).calls(
            0,
            begin,
            "MPI_Isend",
            &[isend(7, 2048, 1)],
        );
        let events = [&[What::SendDone { request: 1 }], further].concat();
        made.waits(0, [begin + 1000, begin + 50_000], name, &events);
        let is_there = |what: &What| further.contains(what);
        let [message, done, over] = [
            received(1, 9, BLOCKING),
            What::SendDone { request: 2 },
            complete(Operation::Barrier, UNKNOWN, 3),
        ];
        let rest: Vec<What> = [message, done, over].into_iter().filter(|what| !is_there(what)).collect();
        // The others end one by one, each in a call of its own.
        for what in rest {
            made.calls(0, begin + 60_000, "MPI_Wait", &[what]);
        }
        let big = What::Recv { comm: 0, from: 0, tag: 7, bytes: 2048, request: BLOCKING };
        made.calls(1, begin + 50_000, "MPI_Recv", &[big]).calls(
            1,
            begin + 60_000,
            "MPI_Recv",
            &[received(0, 5, BLOCKING)],
        );
        made.calls(1, begin + 60_000, "MPI_Wait", &[complete(Operation::Barrier, UNKNOWN, 3)]);
    }
    let tracked = made.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    tracked
}

#[test]
fn a_call_shows_that_it_waited_for_its_receiver_only_if_that_came_last() {
    let limit = |name: &str, further: &[What]| {
        let tracked = observed(name, further);
        let [limit] = tracked.eager_limits.as_slice() else { panic!("one way") };
        limit.waiting_bytes
    };
    assert_eq!(limit("MPI_Wait", &[]), Some(2048));
    assert_eq!(limit("MPI_Test", &[]), None, "it need not have waited");
    assert_eq!(limit("MPI_Waitall", &[received(1, 9, BLOCKING)]), Some(2048), "the message was there");
    assert_eq!(
        limit("MPI_Waitall", &[What::SendDone { request: 2 }]),
        Some(2048),
        "the other send was eager"
    );
    assert_eq!(limit("MPI_Testall", &[received(1, 9, BLOCKING)]), None);
    assert_eq!(limit("MPI_Waitall", &[complete(Operation::Barrier, UNKNOWN, 3)]), None);
    assert_eq!(limit("MPI_Waitall", &[What::Probed { comm: 0, from: 1, tag: 9 }]), None);
}

/// A barrier of two ranks that enter at 100 and 200; they leave this long after, and this noise strikes rank 1 within.
fn lags([first, second]: [u64; 2], noise: u64) -> (Vec<i64>, i64) {
    let mut made = Made::new(2, &["tick"]);
    made.collective(0, [100, 200 + first], Operation::Barrier, UNKNOWN);
    made.collective(1, [200, 200 + second], Operation::Barrier, UNKNOWN);
    let what = What::Noise { source: 0, total_ns: noise };
    made.events[1].insert(2, Event { time_ns: 200 + second, what });
    let tracked = made.track();
    (accumulated(&tracked), tracked.ranks[1].absorbed_ns)
}

#[test]
fn ranks_that_leave_a_collective_far_apart_have_a_lag_of_their_own() {
    // The later one is late by the noise within its call, but no earlier than the other.
    assert_eq!(lags([10, 40], 25), (vec![0, 25], 0));
    assert_eq!(lags([10, 40], 35), (vec![0, 30], 5));
    assert_eq!(lags([10, 21], 15), (vec![0, 11], 4));
    // As far apart as the first was from the last entry: together.
    assert_eq!(lags([10, 20], 15), (vec![0, 0], 15));
}

#[test]
fn a_root_that_leaves_early_waited_for_those_that_had_come() {
    for (operation, bytes) in [(Operation::Reduce, 0), (Operation::Gatherv, 8)] {
        let mut made = Made::new(3, &["tick"]);
        made.collective_of(0, [100, 150], operation, 0, bytes);
        made.noise(1, 120, 40).collective_of(1, [120, 125], operation, 0, bytes);
        made.collective_of(2, [200, 205], operation, 0, bytes);
        let tracked = made.track();
        assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
        assert_eq!(accumulated(&tracked), [40, 40, 0], "{operation:?}");
    }
}

#[test]
fn a_collective_that_does_not_block_was_entered_when_it_was_posted() {
    let ends = |first| {
        let mut run = run(2);
        let barrier = What::CollectivePosted { comm: 0, request: 1 };
        let over = complete(Operation::Barrier, UNKNOWN, 1);
        run.calls(0, first, "MPI_Ibarrier", &[barrier]).waits(0, [460, 510], "MPI_Wait", &[over]);
        run.noise(1, 500, 100).calls(1, 500, "MPI_Ibarrier", &[barrier]).waits(
            1,
            [500, 505],
            "MPI_Wait",
            &[over],
        );
        compensated(&run.track())
    };
    // Rank 1 posts at 400 without noise, so rank 0 need not wait; its call has 10 left.
    assert_eq!(ends(100), [460, 405]);
    // Without noise rank 0 is the last: at 450.
    assert_eq!(ends(450), [460, 450]);
}

#[test]
fn the_effect_of_a_source_is_summed_over_the_ranks() {
    let mut made = Made::new(2, &["tick", "task"]);
    made.at(0, 850, What::Noise { source: 1, total_ns: 30 });
    made.collective(0, [850, 1010], Operation::Barrier, UNKNOWN);
    made.noise(1, 1000, 100).collective(1, [1000, 1010], Operation::Barrier, UNKNOWN);
    let tracked = made.track();
    let all: Vec<_> = RunSource::from_run(&tracked)
        .into_iter()
        .map(|of| {
            let ns = [of.local_ns, of.accumulated_ns, of.amplified_ns, of.absorbed_ns, of.saved_ns];
            (of.source, ns, of.share_percent, of.ratio)
        })
        .collect();
    let task = ("task".to_owned(), [30, 0, 0, 30, 0], Some(0.0), Some(0.0));
    let tick = ("tick".to_owned(), [100, 200, 100, 0, 100], Some(100.0), Some(2.0));
    assert_eq!(all, [task, tick]);
    assert_eq!(tracked.orthogonal_sum_ratio, Some(1.0));
    let first = &tracked.ranks[0];
    assert_eq!((first.local_ns, first.amplified_ns, first.absorbed_ns), (30, 70, 0));
    assert_eq!(
        (first.amplification_ratio, first.most_local_source.as_deref()),
        (Some(100.0 / 30.0), Some("task"))
    );
}

#[test]
fn a_collective_that_a_rank_only_sent_in_carried_something() {
    for (sent, received, times) in [(8, 0, 1), (0, 8, 1), (0, 0, 0)] {
        let mut run = run(2);
        let over = What::Collective {
            operation: Operation::Bcast,
            comm: 0,
            root: 0,
            sent,
            received,
            request: BLOCKING,
        };
        run.waits(0, [200, 205], "MPI_Bcast", &[over]).waits(1, [50, 190], "MPI_Bcast", &[over]);
        assert_eq!(run.track().findings.before_cause.times, times, "{sent} {received}");
    }
}

#[test]
fn a_message_to_the_same_rank_shows_no_limit() {
    let mut run = run(1);
    let own = What::Send { comm: 0, to: 0, tag: 0, bytes: 8, request: 1 };
    run.calls(0, 100, "MPI_Isend", &[own]).calls(0, 200, "MPI_Recv", &[received(0, 0, BLOCKING)]);
    run.calls(0, 300, "MPI_Wait", &[What::SendDone { request: 1 }]);
    let tracked = run.track();
    assert!(!tracked.findings.broken() && tracked.eager_limits.is_empty(), "{:?}", tracked.eager_limits);
}

#[test]
fn a_receive_from_anybody_that_ends_too_far_ahead_takes_its_turn_where_it_ends() {
    let mut run = run(2);
    run.calls(0, 1000, "MPI_Send", &[send(1, 0)]);
    run.noise(0, 2000, 500).calls(0, 2000, "MPI_Send", &[send(1, 0)]);
    run.calls(1, 0, "MPI_Irecv", &[posted(UNKNOWN, UNKNOWN, 1)]).calls(1, 0, "MPI_Irecv", &[posted(0, 0, 2)]);
    run.waits(1, [0, 1000], "MPI_Wait", &[received(0, 0, 2)]);
    // Each is two events.
    for _ in 0..2100 {
        run.calls(1, 1000, "MPI_Comm_rank", &[]);
    }
    run.waits(1, [1000, 2000], "MPI_Wait", &[received(0, 0, 1)]);
    let tracked = run.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    assert_eq!(compensated(&tracked), [1500, 1500]);
}

#[test]
fn work_and_time_in_calls_are_apart() {
    let mut run = Made::new(2, &["tick"]);
    run.at(0, 0, What::Enter(0)).noise(0, 100, 20).sends(0, [100, 110], 1, 0).at(0, 200, What::Leave(0));
    run.at(1, 0, What::Enter(0)).receives(1, [50, 130], 0, 0).at(1, 130, What::Leave(0));
    let parts = run.track().ranks.into_iter().map(|rank| (rank.work_ns, rank.in_calls_ns));
    assert_eq!(parts.collect::<Vec<_>>(), [(170, 10), (50, 80)]);
}

/// Noise that strikes a rank before the end of its last call.
fn strike(run: &mut Made, rank: usize, time_ns: u64, total_ns: u64) {
    let last = run.events[rank].len() - 1;
    run.events[rank].insert(last, Event { time_ns, what: What::Noise { source: 0, total_ns } });
}

/// Rank 0 sends to rank 1.
fn exchange(run: &mut Made, sends: [u64; 2], receives: [u64; 2]) {
    run.sends(0, sends, 1, 0).receives(1, receives, 0, 0);
}

#[test]
fn noise_in_the_call_of_a_sender_delays_its_receiver() {
    let mut run = run(2);
    // A message usually takes 10.
    run.sends(0, [100, 105], 1, 0).receives(1, [50, 110], 0, 0);
    run.sends(0, [1_000, 2_100], 1, 0).receives(1, [990, 2_105], 0, 0);
    strike(&mut run, 0, 2_100, 1_000);
    let tracked = run.track();
    assert_eq!(compensated(&tracked), [1_100, 1_105]);
    assert_eq!((tracked.ranks[1].amplified_ns, tracked.ranks[0].absorbed_ns), (1_000, 0));

    // Without noise of its sender, a message that takes as long is just slow.
    let mut run = self::run(2);
    run.sends(0, [100, 105], 1, 0).receives(1, [50, 110], 0, 0);
    run.sends(0, [1_000, 2_100], 1, 0).receives(1, [990, 2_105], 0, 0);
    assert_eq!(compensated(&run.track()), [2_100, 2_105]);
}

#[test]
fn noise_in_the_call_of_a_receiver_delays_a_sender_that_waits_for_it() {
    let mut run = run(2);
    exchange(&mut run, [100, 120], [110, 115]);
    exchange(&mut run, [1_000, 2_110], [1_010, 2_105]);
    strike(&mut run, 1, 2_105, 1_000);
    assert_eq!(compensated(&run.track_with_limit(1)), [1_110, 1_105]);
}

#[test]
fn ranks_that_wait_for_each_others_noise_go_on() {
    let mut run = run(2);
    for begin in [0_u64, 1_000, 2_000] {
        for rank in 0..2_u32 {
            let other = 1 - rank;
            run.at(rank, begin, What::Enter(2)).at(rank, begin + 1, send(other, 0));
            run.at(rank, begin + 700 + 10 * u64::from(rank), received(other, 0, BLOCKING));
            run.at(rank, begin + 700 + 10 * u64::from(rank), What::Leave(2));
            strike(&mut run, rank as usize, begin + 600, (begin + 1) * u64::from(rank));
        }
    }
    let tracked = run.track();
    assert_eq!(tracked.findings.receives_without_send, 0);
    assert!(compensated(&tracked).iter().all(|end| (0..=2_710).contains(end)), "{:?}", compensated(&tracked));
}

#[test]
fn noise_of_either_end_delays_a_message_that_needs_both() {
    let mut run = run(2);
    let exchange = |run: &mut Made, sends: [u64; 2], receives: [u64; 2]| {
        let us = |time: u64| 1_000 * time;
        exchange(run, sends.map(us), receives.map(us));
    };
    // The receiver was there before: it is no cause of the sender's call, but has to answer.
    exchange(&mut run, [100, 120], [90, 115]);
    exchange(&mut run, [1_000, 2_110], [990, 2_105]);
    strike(&mut run, 1, 2_105_000, 1_000_000);
    assert_eq!(compensated(&run.track_with_limit(1)), [1_110_000, 1_105_000]);
    // Below the limit nothing waits for the receiver.
    assert_eq!(compensated(&run.track_with_limit(1_000)), [2_110_000, 1_105_000]);

    let mut run = self::run(2);
    // The sender was there before, and is struck before it can answer.
    exchange(&mut run, [100, 120], [110, 125]);
    exchange(&mut run, [1_000, 2_110], [1_010, 2_115]);
    strike(&mut run, 0, 2_105_000, 1_000_000);
    assert_eq!(compensated(&run.track_with_limit(1)), [1_110_000, 1_115_000]);
}

#[test]
fn ranks_whose_messages_are_never_received_do_not_wake_each_other_for_ever() {
    let mut run = run(2);
    for rank in 0..2 {
        run.waits(rank, [10, 2_000], "MPI_Ssend", &[send(1 - rank, 0)]).at(rank, 3_000, What::Leave(0));
    }
    assert_eq!(compensated(&run.track()), [3_000, 3_000]);
}
