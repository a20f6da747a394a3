//! Sends that wait for their receivers, for which the times without noise are known in closed form.

use quell_recording::mpi::{BLOCKING, What};
use quell_sim::loggops::{Network, PerByte};

use super::archives::Made;
use crate::track::{EagerLimit, Tracked};

/// Work of the sender before each message, and noise of the receiver, in ns. Sends and receives only take the time that they wait.
const WORK: u64 = 100_000;
const NOISE: u64 = 40_000;

impl Made {
    fn sends_bytes(&mut self, rank: u32, [begin, end]: [u64; 2], to: u32, bytes: u64) -> &mut Self {
        self.at(rank, begin, What::Enter(1))
            .at(rank, begin, What::Send { comm: 0, to, tag: 7, bytes, request: BLOCKING })
            .at(rank, end, What::Leave(1))
    }

    fn receives_bytes(&mut self, rank: u32, [begin, end]: [u64; 2], from: u32, bytes: u64) -> &mut Self {
        self.at(rank, begin, What::Enter(2))
            .at(rank, end, What::Recv { comm: 0, from, tag: 7, bytes, request: BLOCKING })
            .at(rank, end, What::Leave(2))
    }
}

/// Rank 0 sends messages of these sizes to rank 1; both work before each. Noise strikes rank 1 in the phases of `noisy`. A send above `limit`
/// ends when its receive has begun; others end at once.
fn sends(sizes: &[u64], limit: u64, noisy: impl Fn(usize) -> bool) -> Made {
    let mut made = Made::new(2, &["tick"]);
    let (mut now, mut total) = ([0, 0], 0);
    made.at(0, 0, What::Enter(0)).at(1, 0, What::Enter(0));
    for (phase, &bytes) in sizes.iter().enumerate() {
        let noise = if noisy(phase) { NOISE } else { 0 };
        // Without noise the sender is the later of the two, so that it waits only for noise.
        let [send, receive] = [now[0] + WORK, now[1] + WORK - 10_000 + noise];
        total += noise;
        let sent = if bytes > limit { send.max(receive) } else { send };
        let received = receive.max(send);
        made.sends_bytes(0, [send, sent], 1, bytes);
        made.noise(1, receive, total).receives_bytes(1, [receive, received], 0, bytes);
        now = [sent, received];
    }
    made.at(0, now[0], What::Leave(0)).at(1, now[1], What::Leave(0));
    made
}

fn accumulated(tracked: &Tracked) -> [i64; 2] {
    [0, 1].map(|rank| tracked.ranks[rank].accumulated_ns)
}

fn only_limit(tracked: &Tracked) -> &EagerLimit {
    assert_eq!(tracked.eager_limits.len(), 1, "{:?}", tracked.eager_limits);
    &tracked.eager_limits[0]
}

/// Each detour of 40 us is late by 30 us for a sender that waits: the receiver came 10 us too early without it.
const LATE: i64 = 30_000;

#[test]
fn noise_of_a_receiver_delays_a_sender_that_waits() {
    let noisy = |phase: usize| phase % 2 == 1;
    let made = || sends(&[1024; 20], 256, noisy);
    let tracked = made().track();
    assert_eq!(accumulated(&tracked), [10 * LATE; 2]);
    assert_eq!((tracked.ranks[0].amplified_ns, tracked.ranks[0].local_ns), (10 * LATE, 0));
    let limit = only_limit(&tracked);
    assert_eq!((limit.between.as_str(), limit.origin.as_str()), ("one host", "learned"));
    assert_eq!((limit.limit_bytes, limit.sends, limit.waiting_bytes), (1023, 10, Some(1024)));
    // The same with the limit given; with a larger one each send ends when it did, whatever the receiver did.
    let given = |bytes| {
        let tracked = made().track_with_limit(bytes);
        assert_eq!(
            (only_limit(&tracked).limit_bytes, only_limit(&tracked).origin.as_str()),
            (bytes, "given")
        );
        accumulated(&tracked)
    };
    assert_eq!(given(256), [10 * LATE; 2]);
    assert_eq!(given(4096)[0], 0);
}

#[test]
fn the_limit_holds_from_the_beginning_wherever_the_run_shows_it() {
    for sizes in [[1024, 256], [256, 1024]] {
        let sizes = sizes.map(|bytes| [bytes; 12]).concat();
        // An eager message leaves the receiver behind by 30 us, of which it makes up 10 us in each further phase.
        let tracked = sends(&sizes, 256, |phase| phase % 4 == 0).track();
        assert_eq!(accumulated(&tracked), [3 * LATE; 2], "only messages of 1 KiB made the sender late");
        let limit = only_limit(&tracked);
        assert_eq!((limit.eager_bytes, limit.waiting_bytes), (Some(256), Some(1024)));
        assert_eq!((limit.limit_bytes, limit.origin.as_str(), limit.sends), (1023, "learned", 3 * 3 + 3));
    }
}

#[test]
fn a_large_send_that_is_eager_does_not_wait_for_whoever_comes_while_it_copies() {
    // The first messages of 64 KiB show that they are eager. During the last, the receiver happens to come.
    let mut made = sends(&[65536; 4], 1 << 20, |_| true);
    let last =
        made.events.iter().filter_map(|events| events.last()).map(|event| event.time_ns).max().unwrap_or(0);
    made.events.iter_mut().for_each(|events| events.truncate(events.len() - 1));
    let begin = last + WORK;
    made.sends_bytes(0, [begin, begin + 1_000], 1, 65536).at(0, begin + 1_000, What::Leave(0));
    made.noise(1, begin + 500, 4 * NOISE + 100_000);
    made.receives_bytes(1, [begin + 500, begin + 2_000], 0, 65536).at(1, begin + 2_000, What::Leave(0));
    let tracked = made.track();
    let limit = only_limit(&tracked);
    assert_eq!((limit.limit_bytes, limit.sends, limit.eager_bytes), (65536, 5, Some(65536)));
    assert_eq!(tracked.ranks[0].accumulated_ns, 0);
    assert_eq!(
        made.track_with_limit(4096).ranks[0].accumulated_ns,
        1_000,
        "its own work would count as a wait"
    );
}

#[test]
fn hosts_have_limits_of_their_own() {
    // Ranks 0 and 1 are on one host, 2 and 3 on two others.
    let mut made = sends(&[1024; 8], 256, |_| true);
    let far = sends(&[1024; 8], 1 << 20, |_| true);
    made.definitions = Made::new(4, &["tick"]).definitions;
    for (rank, host) in [(0, "a"), (1, "a"), (2, "b"), (3, "c")] {
        made.definitions.locations[rank].host = host.to_owned();
    }
    for mut events in far.events {
        for event in &mut events {
            match &mut event.what {
                What::Send { to, .. } => *to = 3,
                What::Recv { from, .. } => *from = 2,
                _ => {}
            }
        }
        made.events.push(events);
    }
    let tracked = made.track();
    assert!(!tracked.findings.broken());
    let limits: Vec<_> = tracked
        .eager_limits
        .iter()
        .map(|one| (one.between.as_str(), one.limit_bytes, one.origin.as_str()))
        .collect();
    assert_eq!(limits, [("one host", 1023, "learned"), ("different hosts", 4096, "assumed")]);
    assert_eq!([0, 2].map(|rank| tracked.ranks[rank].accumulated_ns), [8 * LATE, 0]);
}

#[test]
fn a_receiver_that_is_in_mpi_shows_nothing() {
    // Rank 1 is in a receive from rank 2 when rank 0 sends to it. That may advance the message, so the limit stays unknown.
    let mut made = Made::new(3, &["tick"]);
    for phase in 0..10 {
        let begin = 1_000_000 * (phase + 1);
        made.sends_bytes(0, [begin, begin], 1, 1 << 16);
        made.receives(1, [begin - 500, begin + 50_000], 2, 8).sends(
            2,
            [begin + 49_000, begin + 49_100],
            1,
            8,
        );
        made.receives_bytes(1, [begin + 60_000, begin + 61_000], 0, 1 << 16);
    }
    let tracked = made.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    let limit = only_limit(&tracked);
    assert_eq!((limit.limit_bytes, limit.origin.as_str(), limit.eager_bytes), (4096, "assumed", None));
}

#[test]
fn a_buffered_send_never_waits_and_shows_nothing() {
    let mut made = sends(&[65536; 6], 1 << 20, |_| true);
    made.definitions.regions[1].name = "MPI_Bsend".to_owned();
    let tracked = made.track();
    assert_eq!((accumulated(&tracked)[0], tracked.eager_limits.as_slice()), (0, &[][..]));
}

#[test]
fn the_send_of_a_request_waits_where_it_is_completed() {
    // The send is posted; the call that completes it ends only after the receive began.
    let mut made = Made::new(2, &["tick"]);
    let wait = made.definitions.regions.len() as u32;
    for name in ["MPI_Wait", "MPI_Isend"] {
        let region = quell_recording::mpi::Region { name: name.to_owned(), site: None, mpi: true };
        made.definitions.regions.push(region);
    }
    let (mut now, mut total) = (0, 0);
    for request in 1..=8 {
        let posted = now + WORK;
        let receive = posted + 5_000 + NOISE;
        total += NOISE;
        made.at(0, posted, What::Enter(wait + 1))
            .at(0, posted, What::Send { comm: 0, to: 1, tag: 7, bytes: 2048, request })
            .at(0, posted, What::Leave(wait + 1))
            .at(0, posted + 4_000, What::Enter(wait))
            .at(0, receive, What::SendDone { request })
            .at(0, receive, What::Leave(wait));
        made.noise(1, receive, total).receives_bytes(1, [receive, receive], 0, 2048);
        now = receive;
    }
    let tracked = made.track();
    assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    let limit = only_limit(&tracked);
    assert_eq!((limit.limit_bytes, limit.sends, limit.origin.as_str()), (2047, 8, "learned"));
    assert_eq!(accumulated(&tracked), [8 * NOISE as i64; 2]);
}

#[test]
fn a_network_with_times_does_not_hide_what_sends_show() {
    let net =
        Network { latency: 0, overhead: 0, gap: 0, gap_per_byte: PerByte::default(), ..Network::default() };
    let tracked = sends(&[1024; 20], 256, |_| true).track_with(Some(&net.into()));
    assert_eq!((only_limit(&tracked).origin.as_str(), accumulated(&tracked)), ("learned", [20 * LATE; 2]));
}
