//! Runs made by hand, with and without defects.

use std::convert::Infallible;

use quell_recording::mpi::{
    BLOCKING, Comm, Damage, Definitions, Event, Location, Operation, Region, Run, UNKNOWN, What,
};

use quell_sim::loggops::NamedNetwork;

use crate::track::{Given, GivenLimit, Tracked, track};

/// A run in memory.
#[derive(Clone, Debug, Default)]
pub struct Made {
    pub definitions: Definitions,
    pub events: Vec<Vec<Event>>,
    pub damage: Option<(usize, String)>,
}

impl Made {
    /// A run with this number of ranks, and with these sources.
    pub fn new(ranks: u32, sources: &[&str]) -> Self {
        let region = |name: &str, mpi| Region { name: name.to_owned(), site: None, mpi };
        let world = Comm { name: "world".to_owned(), members: (0..ranks).collect(), remote: None };
        let locations = (0..ranks).map(|rank| Location { id: u64::from(rank), rank, ..Location::default() });
        let definitions = Definitions {
            regions: vec![
                region("main", false),
                region("MPI_Send", true),
                region("MPI_Recv", true),
                region("MPI_Barrier", true),
                region("MPI_Test", true),
            ],
            comms: vec![world],
            locations: locations.collect(),
            sources: sources.iter().map(|&name| name.to_owned()).collect(),
            span_ns: [0, 0],
        };
        Self { definitions, events: vec![Vec::new(); ranks as usize], damage: None }
    }

    pub fn at(&mut self, rank: u32, time_ns: u64, what: What) -> &mut Self {
        self.events[rank as usize].push(Event { time_ns, what });
        self
    }

    /// Sets the rank's cumulative noise of source 0.
    pub fn noise(&mut self, rank: u32, time_ns: u64, total_ns: u64) -> &mut Self {
        self.at(rank, time_ns, What::Noise { source: 0, total_ns })
    }

    pub fn sends(&mut self, rank: u32, [begin, end]: [u64; 2], to: u32, tag: u32) -> &mut Self {
        self.at(rank, begin, What::Enter(1))
            .at(rank, begin, What::Send { comm: 0, to, tag, bytes: 8, request: BLOCKING })
            .at(rank, end, What::Leave(1))
    }

    pub fn receives(&mut self, rank: u32, [begin, end]: [u64; 2], from: u32, tag: u32) -> &mut Self {
        self.at(rank, begin, What::Enter(2))
            .at(rank, end, What::Recv { comm: 0, from, tag, bytes: 8, request: BLOCKING })
            .at(rank, end, What::Leave(2))
    }

    pub fn collective(
        &mut self,
        rank: u32,
        [begin, end]: [u64; 2],
        operation: Operation,
        root: u32,
    ) -> &mut Self {
        self.collective_of(rank, [begin, end], operation, root, 0)
    }

    /// A collective in which each rank sends and receives `bytes`.
    pub fn collective_of(
        &mut self,
        rank: u32,
        [begin, end]: [u64; 2],
        operation: Operation,
        root: u32,
        bytes: u64,
    ) -> &mut Self {
        let (sent, received) = (bytes, bytes);
        let over = What::Collective { operation, comm: 0, root, sent, received, request: BLOCKING };
        self.at(rank, begin, What::Enter(3)).at(rank, begin, What::CollectiveBegin).at(rank, end, over).at(
            rank,
            end,
            What::Leave(3),
        )
    }

    pub fn track(&mut self) -> Tracked {
        self.track_with(None)
    }

    pub fn track_with(&mut self, network: Option<&NamedNetwork>) -> Tracked {
        self.track_given(&Given { network: network.cloned(), ..Given::default() })
    }

    pub fn track_with_limit(&mut self, bytes: u64) -> Tracked {
        let eager_limit = Some(GivenLimit { bytes, measured: false });
        self.track_given(&Given { eager_limit, ..Given::default() })
    }

    fn track_given(&self, given: &Given) -> Tracked {
        let Ok(read) = track(|| Ok::<_, Infallible>(self.clone()), given, &mut ());
        read.tracked
    }
}

impl Run for Made {
    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Returns five events at a time, so that a run has several blocks.
    fn read(&mut self, location: usize, events: &mut Vec<Event>) -> Result<bool, Damage> {
        let rest = &mut self.events[location];
        let some = rest.len().min(5);
        events.extend(rest.drain(..some));
        match &self.damage {
            Some((at, what)) if *at == location && rest.is_empty() => Err(Damage(what.clone())),
            _ => Ok(!rest.is_empty()),
        }
    }
}

/// Of two receives on one channel one lasts 80 µs longer, with 80 µs of noise. That is noise, whichever comes first. The other rank waits for an
/// answer to each, so that it has the delay too.
#[test]
fn the_shortest_wait_may_come_last() {
    let ends = |tails: [u64; 2]| {
        let mut made = Made::new(2, &["tick"]);
        let mut total = 0;
        for (number, tail) in tails.into_iter().enumerate() {
            let sent = 1_000_000 * (number as u64 + 1);
            made.noise(1, sent - 1000, total);
            total += if tail > 50_000 { 80_000 } else { 0 };
            made.at(1, sent - 1000, What::Enter(2));
            made.at(1, sent + tail, What::Recv { comm: 0, from: 0, tag: 7, bytes: 8, request: BLOCKING });
            made.noise(1, sent + tail, total).at(1, sent + tail, What::Leave(2));
            let answer = sent + tail + 500;
            made.sends(1, [answer, answer + 1], 0, 8);
            made.sends(0, [sent, sent + 1], 1, 7).receives(0, [sent + 2, answer + 5000], 1, 8);
        }
        let tracked = made.track();
        assert!(!tracked.findings.broken());
        [0, 1].map(|rank: usize| tracked.ranks[rank].accumulated_ns)
    };
    assert_eq!(ends([20_000, 100_000]), [80_000, 80_000]);
    assert_eq!(ends([100_000, 20_000]), [80_000, 80_000]);
}

/// A large collective takes longer than a small one, which is no noise: each size has its own shortest time.
#[test]
fn collectives_are_compared_with_those_of_their_size() {
    let noise_that_delays = |small: u64, large: &[(u64, u64)]| {
        let mut made = Made::new(2, &["tick"]);
        for rank in 0..2 {
            let all = [(small, 20_000, 0)].into_iter();
            let all = all.chain(large.iter().map(|(length, total)| (1 << 20, *length, *total)));
            for (number, (bytes, length, total_ns)) in all.enumerate() {
                let begin = 1_000_000 * (number as u64 + 1);
                let noise = What::Noise { source: 0, total_ns };
                made.collective_of(rank, [begin, begin + length], Operation::Allreduce, UNKNOWN, bytes);
                let events = &mut made.events[rank as usize];
                events.insert(events.len() - 2, Event { time_ns: begin + length, what: noise });
            }
        }
        accumulated(&made.track())
    };
    // 1 MB takes 500 us with and without 100 us of noise, which it therefore absorbed.
    assert_eq!(noise_that_delays(8, &[(500_000, 0), (500_000, 100_000)]), [0, 0]);
    // Another 100 us make it take 600 us.
    assert_eq!(noise_that_delays(8, &[(500_000, 0), (600_000, 100_000)]), [100_000, 100_000]);
}

fn accumulated(tracked: &Tracked) -> Vec<i64> {
    tracked.ranks.iter().map(|rank| rank.accumulated_ns).collect()
}

#[test]
fn nothing_is_nothing() {
    let tracked = Made::new(2, &["tick"]).track();
    assert_eq!((tracked.runtime_ns, tracked.compensated_runtime_ns), (0, 0));
    assert_eq!(tracked.orthogonal_sum_ratio, None);
    assert!(!tracked.findings.broken());
}

#[test]
fn a_receive_without_its_send_is_named() {
    let mut made = Made::new(2, &["tick"]);
    made.noise(1, 100, 40).receives(1, [100, 200], 0, 5);
    made.at(0, 300, What::Enter(0)).at(0, 400, What::Leave(0));
    let tracked = made.track();
    assert_eq!(tracked.findings.receives_without_send, 1);
    let text = tracked.findings.warnings[0].to_string();
    assert!(text.ends_with(" a message that was never sent: rank 0 to rank 1, tag 5, world"), "{text}");
    assert_eq!(accumulated(&tracked), [0, 40]);
}

#[test]
fn a_send_without_its_receive_is_named() {
    let mut made = Made::new(2, &["tick"]);
    made.sends(0, [100, 110], 1, 7);
    let tracked = made.track();
    assert_eq!(tracked.findings.sends_without_receive, 1);
    assert!(tracked.findings.broken());
}

#[test]
fn a_collective_that_lacks_a_rank_is_named_and_gone_on_without() {
    let mut made = Made::new(3, &["tick"]);
    made.noise(0, 100, 30).collective(0, [100, 130], Operation::Barrier, UNKNOWN);
    made.collective(1, [90, 130], Operation::Barrier, UNKNOWN);
    made.damage = Some((2, "torn".to_owned()));
    let tracked = made.track();
    assert_eq!(tracked.findings.incomplete_collectives, 1);
    let reported: Vec<String> = tracked.findings.warnings.iter().map(ToString::to_string).collect();
    let reported = reported.join("\n");
    assert!(reported.contains("lacks rank 2") && reported.contains("torn"), "{reported}");
    // Rank 1 entered at 90, so without noise both leave 30 after that.
    assert_eq!(accumulated(&tracked), [10, 10, 0]);
}

#[test]
fn ranks_that_do_not_agree_are_named() {
    let mut made = Made::new(2, &["tick"]);
    made.collective(0, [100, 130], Operation::Barrier, UNKNOWN);
    made.collective(1, [90, 130], Operation::Allreduce, UNKNOWN);
    assert_eq!(made.track().findings.mismatched_collectives, 1);
}

#[test]
fn clocks_that_run_backwards_are_counted_and_repaired() {
    let mut made = Made::new(2, &["tick"]);
    made.noise(0, 100, 10).sends(0, [100, 110], 1, 0);
    // Received 60 ns before it was sent: assumed to have been sent when it was received.
    made.receives(1, [20, 40], 0, 0);
    made.at(0, 90, What::Enter(0)).at(0, 120, What::Leave(0));
    let tracked = made.track();
    assert_eq!(
        (tracked.findings.clock_backwards.times, tracked.findings.clock_backwards.largest_ns),
        (1, 20)
    );
    assert_eq!((tracked.findings.before_cause.times, tracked.findings.before_cause.largest_ns), (1, 60));
    assert_eq!(accumulated(&tracked), [10, 10]);
}

#[test]
fn messages_of_one_channel_are_received_in_their_order() {
    let mut made = Made::new(2, &["tick"]);
    made.sends(0, [10, 12], 1, 0).noise(0, 100, 50).sends(0, [100, 102], 1, 0);
    made.receives(1, [5, 12], 0, 0).receives(1, [20, 102], 0, 0);
    let tracked = made.track();
    assert_eq!(accumulated(&tracked), [50, 50]);
    assert_eq!(tracked.ranks[1].amplified_ns, 50);
}

#[test]
fn receives_from_anybody_take_messages_in_the_order_in_which_they_were_posted() {
    let mut made = Made::new(2, &["tick"]);
    made.sends(0, [10, 12], 1, 0).noise(0, 100, 50).sends(0, [100, 102], 1, 0);
    for request in [1, 2] {
        let posted = What::RecvPosted { comm: 0, from: UNKNOWN, tag: UNKNOWN, request };
        made.at(1, 5, What::Enter(4)).at(1, 5, posted).at(1, 5, What::Leave(4));
    }
    // The second request completes first.
    for (request, begin, end) in [(2, 20, 105), (1, 106, 110)] {
        let came = What::Recv { comm: 0, from: 0, tag: 0, bytes: 8, request };
        made.at(1, begin, What::Enter(2)).at(1, end, came).at(1, end, What::Leave(2));
    }
    let tracked = made.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    assert_eq!(accumulated(&tracked), [50, 50]);
}

#[test]
fn asking_again_and_again_is_waiting() {
    let mut made = Made::new(2, &["tick"]);
    made.noise(0, 9000, 5000).sends(0, [9000, 9010], 1, 0);
    let posted = What::RecvPosted { comm: 0, from: 0, tag: 0, request: 1 };
    made.at(1, 100, What::Enter(4)).at(1, 100, posted).at(1, 100, What::Leave(4));
    for at in (200..9000).step_by(100) {
        made.at(1, at, What::Enter(4)).at(1, at + 50, What::Pending { request: 1 }).at(
            1,
            at + 50,
            What::Leave(4),
        );
    }
    let came = What::Recv { comm: 0, from: 0, tag: 0, bytes: 8, request: 1 };
    made.at(1, 9020, What::Enter(4)).at(1, 9030, came).at(1, 9030, What::Leave(4));
    assert_eq!(accumulated(&made.track()), [5000, 5000]);
}

#[test]
fn a_root_waits_for_all_and_no_one_for_others_in_a_reduction() {
    let mut made = Made::new(3, &["tick"]);
    made.collective(0, [50, 310], Operation::Reduce, 0);
    made.noise(1, 300, 100).collective(1, [300, 305], Operation::Reduce, 0);
    made.noise(2, 100, 60).collective(2, [100, 105], Operation::Reduce, 0);
    assert_eq!(accumulated(&made.track()), [100, 100, 60]);
}

#[test]
fn all_wait_for_the_root_of_a_broadcast() {
    let mut made = Made::new(3, &["tick"]);
    made.noise(0, 200, 70).collective(0, [200, 205], Operation::Bcast, 0);
    made.noise(1, 50, 20).collective(1, [50, 210], Operation::Bcast, 0);
    made.collective(2, [250, 255], Operation::Bcast, 0);
    let tracked = made.track();
    assert_eq!(accumulated(&tracked), [70, 70, 0]);
    assert_eq!((tracked.ranks[1].amplified_ns, tracked.ranks[1].absorbed_ns), (50, 0));
}

#[test]
fn an_empty_broadcast_waits_for_no_one() {
    let mut made = Made::new(2, &["tick"]);
    made.noise(0, 200, 70).collective(0, [200, 205], Operation::Bcast, 0);
    made.noise(1, 50, 20).collective(1, [50, 55], Operation::Bcast, 0);
    let tracked = made.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    assert_eq!(accumulated(&tracked), [70, 20]);
}

#[test]
fn a_rank_that_began_and_never_finished_is_named() {
    let mut made = Made::new(1, &["tick"]);
    made.definitions.regions.push(Region { name: "MPI_Init".to_owned(), mpi: true, ..Region::default() });
    made.at(0, 0, What::Enter(5)).at(0, 10, What::Leave(5));
    let warnings = made.track().findings.warnings;
    let reported: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(reported, ["rank 0 ends at 0.000000010 s without MPI_Finalize"]);
}

#[test]
fn a_part_of_a_program_has_its_own_account() {
    let mut made = Made::new(1, &["tick"]);
    made.definitions.regions.push(Region { name: "phase 1".to_owned(), ..Region::default() });
    made.at(0, 0, What::Enter(0)).at(0, 10, What::Enter(5)).noise(0, 50, 30).at(0, 60, What::Leave(5));
    made.noise(0, 80, 35).at(0, 100, What::Leave(0));
    let tracked = made.track();
    let phase = tracked.paths.iter().find(|path| path.path == ["main", "phase 1"]).unwrap();
    assert_eq!((phase.calls, phase.time_ns, phase.local_ns), (1, 50, 30));
    assert_eq!(tracked.ranks[0].compensated_ns, 65);
}
