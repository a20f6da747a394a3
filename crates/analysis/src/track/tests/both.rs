//! Runs in which the analysis of noise and the schedule must agree: on the calls that polled, and on the matches of messages and collectives.
//! Here calls only take the time that they wait, so that a run without noise ends when its schedule does.

use quell_recording::mpi::{BLOCKING, Location, Operation, Region, UNKNOWN, What};
use quell_sim::loggops::{Network, PerByte};

use super::archives::Made;
use super::goals::{finish, made};
use crate::track::Tracked;

pub fn run(ranks: u32) -> Made {
    let mut run = Made::new(ranks, &["tick"]);
    for rank in 0..ranks {
        run.at(rank, 0, What::Enter(0));
    }
    run
}

impl Made {
    /// A call of this name and zero duration, with these events.
    pub fn calls(&mut self, rank: u32, at: u64, name: &str, events: &[What]) -> &mut Self {
        self.waits(rank, [at, at], name, events)
    }

    /// As [`Self::calls`], for a call that waits.
    pub fn waits(&mut self, rank: u32, [begin, end]: [u64; 2], name: &str, events: &[What]) -> &mut Self {
        let regions = &mut self.definitions.regions;
        let known = regions.iter().position(|region| region.name == name);
        let region = known.unwrap_or_else(|| {
            regions.push(Region { name: name.to_owned(), site: None, mpi: true });
            regions.len() - 1
        }) as u32;
        self.at(rank, begin, What::Enter(region));
        for what in events {
            self.at(rank, end, *what);
        }
        self.at(rank, end, What::Leave(region))
    }
}

pub fn send(to: u32, tag: u32) -> What {
    What::Send { comm: 0, to, tag, bytes: 8, request: BLOCKING }
}

pub fn posted(from: u32, tag: u32, request: u64) -> What {
    What::RecvPosted { comm: 0, from, tag, request }
}

pub fn received(from: u32, tag: u32, request: u64) -> What {
    What::Recv { comm: 0, from, tag, bytes: 8, request }
}

pub fn complete(operation: Operation, root: u32, request: u64) -> What {
    What::Collective { operation, comm: 0, root, sent: 8, received: 8, request }
}

/// A network on which messages take no time.
pub fn free() -> Network {
    Network { latency: 0, overhead: 0, gap: 0, gap_per_byte: PerByte::default(), ..Network::default() }
}

/// The end of each rank without noise, by both methods.
fn both(make: impl Fn() -> Made) -> (Vec<i64>, Vec<i64>) {
    let tracked = make().track();
    let ends = finish(&made(&mut make(), None).unwrap().schedule, free());
    let compensated = |tracked: Tracked| tracked.ranks.iter().map(|rank| rank.compensated_ns).collect();
    (compensated(tracked), ends.into_iter().map(|end| end as i64).collect())
}

#[test]
fn whoever_asks_for_the_status_of_a_request_again_and_again_waits() {
    let make = || {
        let mut run = run(2);
        run.noise(0, 9000, 5000).calls(0, 9000, "MPI_Send", &[send(1, 0)]);
        run.calls(1, 100, "MPI_Irecv", &[posted(0, 0, 1)]);
        for at in (200..9000).step_by(100) {
            run.calls(1, at, "MPI_Request_get_status", &[What::Pending { request: 1 }]);
        }
        run.calls(1, 9000, "MPI_Test", &[received(0, 0, 1)]);
        run
    };
    assert_eq!(both(make), (vec![4000, 4000], vec![4000, 4000]));
}

/// The message would have come 50 ns after the first poll.
#[test]
fn polls_that_end_in_a_call_that_blocks_are_one_wait() {
    for name in ["MPI_Test", "MPI_Wait"] {
        let make = || {
            let mut run = run(2);
            run.noise(0, 9000, 8750).calls(0, 9000, "MPI_Send", &[send(1, 0)]);
            run.calls(1, 100, "MPI_Irecv", &[posted(0, 0, 1)]);
            for at in (200..9000).step_by(100) {
                run.calls(1, at, "MPI_Test", &[What::Pending { request: 1 }]);
            }
            run.calls(1, 9000, name, &[received(0, 0, 1)]);
            run
        };
        assert_eq!(both(make), (vec![250, 250], vec![250, 250]), "{name}");
    }
}

#[test]
fn a_call_that_completes_nothing_ends_a_wait_of_polls() {
    let make = || {
        let mut run = run(1);
        run.calls(0, 100, "MPI_Irecv", &[posted(0, 0, 1)]);
        run.calls(0, 1000, "MPI_Test", &[What::Pending { request: 1 }]);
        run.noise(0, 2500, 300).calls(0, 2500, "MPI_Comm_rank", &[]).at(0, 3000, What::Leave(0));
        run
    };
    assert_eq!(both(make), (vec![2700], vec![2700]));
}

#[test]
fn work_between_calls_that_do_not_poll_is_work() {
    for name in ["MPI_Mprobe", "MPI_Test_cancelled", "MPI_Waitany"] {
        let make = || {
            let mut run = run(1);
            run.calls(0, 1000, name, &[]).noise(0, 2500, 300).calls(0, 2500, name, &[]);
            run.at(0, 3000, What::Leave(0));
            run
        };
        assert_eq!(both(make), (vec![2700], vec![2700]), "{name}");
    }
}

#[test]
fn a_poll_that_finds_its_request_cancelled_is_not_in_vain() {
    let make = || {
        let mut run = run(1);
        run.calls(0, 500, "MPI_Irecv", &[posted(0, 0, 1)]);
        run.calls(0, 1000, "MPI_Test", &[What::Cancelled { request: 1 }]);
        run.noise(0, 2500, 300).calls(0, 2500, "MPI_Test", &[]).at(0, 3000, What::Leave(0));
        run
    };
    assert_eq!(both(make), (vec![2700], vec![2700]));
}

#[test]
fn a_receive_that_never_ends_has_taken_its_message() {
    let make = || {
        let mut run = run(2);
        run.calls(0, 1000, "MPI_Send", &[send(1, 0)]);
        run.noise(0, 2000, 500).calls(0, 2000, "MPI_Send", &[send(1, 0)]);
        run.calls(1, 0, "MPI_Irecv", &[posted(0, 0, 1)]).calls(1, 0, "MPI_Irecv", &[posted(0, 0, 2)]);
        run.waits(1, [0, 2000], "MPI_Wait", &[received(0, 0, 2)]);
        run
    };
    assert_eq!(both(make), (vec![1500, 1500], vec![1500, 1500]));
    let skipped = made(&mut make(), None).unwrap().skipped;
    assert_eq!((skipped.sends, skipped.receives), (1, 1), "{skipped:?}");
}

#[test]
fn a_receive_from_anybody_has_its_turn_before_one_that_was_posted_later() {
    let make = || {
        let mut run = run(2);
        run.calls(0, 1000, "MPI_Send", &[send(1, 0)]);
        run.noise(0, 2000, 500).calls(0, 2000, "MPI_Send", &[send(1, 0)]);
        run.calls(1, 0, "MPI_Irecv", &[posted(UNKNOWN, UNKNOWN, 1)]);
        run.calls(1, 0, "MPI_Irecv", &[posted(0, 0, 2)]);
        run.waits(1, [0, 2000], "MPI_Wait", &[received(0, 0, 2)]).calls(
            1,
            2000,
            "MPI_Wait",
            &[received(0, 0, 1)],
        );
        run
    };
    assert_eq!(both(make), (vec![1500, 1500], vec![1500, 1500]));
}

#[test]
fn a_receive_that_is_cancelled_takes_no_message() {
    let make = || {
        let mut run = run(2);
        run.noise(0, 1000, 500).calls(0, 1000, "MPI_Send", &[send(1, 0)]);
        run.calls(1, 0, "MPI_Irecv", &[posted(0, 0, 1)]).calls(1, 0, "MPI_Irecv", &[posted(0, 0, 2)]);
        run.waits(1, [0, 1000], "MPI_Wait", &[received(0, 0, 2)]);
        run.calls(1, 1000, "MPI_Wait", &[What::Cancelled { request: 1 }]);
        run
    };
    assert_eq!(both(make), (vec![500, 500], vec![500, 500]));
    assert!(!make().track().findings.broken());
    assert_eq!(made(&mut make(), None).unwrap().skipped.notes, Vec::<String>::new());
}

#[test]
fn collectives_are_in_the_order_in_which_they_were_posted() {
    let make = || {
        let mut run = run(2);
        let kinds = [Operation::Barrier, Operation::Allreduce];
        for (rank, order) in [(0, [0, 1]), (1, [1, 0])] {
            for request in 0..2 {
                run.calls(rank, 100, "MPI_Istart", &[What::CollectivePosted { comm: UNKNOWN, request }]);
            }
            for request in order {
                run.calls(rank, 200, "MPI_Wait", &[complete(kinds[request as usize], UNKNOWN, request)]);
            }
        }
        run
    };
    assert_eq!(make().track().findings.mismatched_collectives, 0);
    assert_eq!(made(&mut make(), None).unwrap().skipped.collectives, 0);
}

#[test]
fn a_root_that_one_rank_does_not_tell_and_one_of_what_has_none_are_no_contradiction() {
    let make = || {
        let mut run = run(2);
        for (rank, root) in [(0, UNKNOWN), (1, 1)] {
            run.calls(rank, 100, "MPI_Bcast", &[complete(Operation::Bcast, root, BLOCKING)]);
            run.calls(rank, 200, "MPI_Allreduce", &[complete(Operation::Allreduce, rank, BLOCKING)]);
        }
        run
    };
    assert_eq!(make().track().findings.mismatched_collectives, 0);
    assert_eq!(made(&mut make(), None).unwrap().skipped.collectives, 0);
}

#[test]
fn another_thread_may_complete_a_request() {
    let make = || {
        let mut run = run(3);
        run.definitions.comms[0].members = vec![0, 1];
        run.definitions.locations[2] = Location { id: 2, rank: 1, thread: 1, ..Location::default() };
        run.noise(0, 1000, 500).calls(0, 1000, "MPI_Send", &[send(1, 0)]);
        run.calls(1, 100, "MPI_Irecv", &[posted(0, 0, 1)]).at(1, 200, What::Leave(0));
        run.calls(2, 1000, "MPI_Wait", &[received(0, 0, 1)]);
        run
    };
    let tracked = make().track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    let skipped = made(&mut make(), None).unwrap().skipped;
    assert_eq!((skipped.threads, skipped.notes), (1, Vec::new()));
}

#[test]
fn threads_of_a_rank_count_their_messages_together() {
    let make = || {
        let mut run = run(3);
        run.definitions.comms[0].members = vec![0, 1];
        run.definitions.locations[2] = Location { id: 2, rank: 1, thread: 1, ..Location::default() };
        run.calls(0, 1000, "MPI_Send", &[send(1, 0)]);
        run.noise(0, 2000, 500).calls(0, 2000, "MPI_Send", &[send(1, 0)]);
        // The second thread receives the first message.
        run.waits(2, [0, 1000], "MPI_Recv", &[received(0, 0, BLOCKING)]);
        run.waits(1, [0, 2000], "MPI_Recv", &[received(0, 0, BLOCKING)]);
        run
    };
    let ends: Vec<i64> = make().track().ranks.iter().map(|rank| rank.compensated_ns).collect();
    assert_eq!(ends, [1500, 1500]);
    let again = made(&mut make(), None).unwrap();
    assert_eq!((again.skipped.sends, again.skipped.receives), (1, 0), "{:?}", again.skipped);
    assert_eq!(finish(&again.schedule, free()), [1500, 1500]);
}

#[test]
fn time_in_a_collective_that_no_region_stands_around_is_no_work() {
    let mut run = run(2);
    for (rank, begin) in [(0, 100), (1, 500)] {
        run.at(rank, begin, What::CollectiveBegin);
        run.at(rank, 900, complete(Operation::Barrier, UNKNOWN, BLOCKING));
    }
    assert_eq!(finish(&made(&mut run, None).unwrap().schedule, free()), [500, 500]);
}

#[test]
fn a_synchronous_send_that_does_not_block_waits_for_its_receiver_where_it_is_completed() {
    let mut run = run(2);
    let small = What::Send { comm: 0, to: 1, tag: 0, bytes: 8, request: 1 };
    run.calls(0, 100, "MPI_Issend", &[small]);
    run.waits(0, [300, 5000], "MPI_Wait", &[What::SendDone { request: 1 }]);
    run.noise(1, 5000, 4000).calls(1, 5000, "MPI_Recv", &[received(0, 0, BLOCKING)]);
    let ends: Vec<i64> = run.track().ranks.iter().map(|rank| rank.compensated_ns).collect();
    assert_eq!(ends, [1000, 1000]);
}

#[test]
fn a_long_send_waits_for_a_receive_from_anybody_too() {
    let mut run = run(2);
    let long = What::Send { comm: 0, to: 1, tag: 0, bytes: 1 << 20, request: BLOCKING };
    run.at(0, 100, What::Enter(1)).at(0, 100, long).at(0, 5000, What::Leave(1)).at(0, 5000, What::Leave(0));
    run.noise(1, 5000, 4000).calls(1, 5000, "MPI_Irecv", &[posted(UNKNOWN, UNKNOWN, 1)]);
    // Its message is known although the receive ends only after the sender continued.
    run.calls(1, 5500, "MPI_Comm_rank", &[]);
    run.at(1, 6000, What::Enter(2)).at(1, 6000, received(0, 0, 1)).at(1, 6000, What::Leave(2));
    let ends: Vec<i64> = run.track().ranks.iter().map(|rank| rank.compensated_ns).collect();
    assert_eq!(ends, [1000, 2000]);
}
