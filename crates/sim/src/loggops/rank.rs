//! State of one rank in a simulation.

use std::collections::HashMap;

use super::event::{Event, Pending};
use super::free::{IdleTimes, Layout};
use super::matching::{Granted, Queue};

/// State of all ranks at the end of a run.
pub(super) struct Played<S, F> {
    pub(super) ranks: Vec<Rank<S, F>>,
    /// The noise that struck each rank, in nanoseconds.
    pub(super) noise: Vec<u64>,
    /// Number of events.
    pub(super) events: u64,
}

/// When the last message of a rank reaches each other rank. Few programs need it, so ranks stay small without.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "a map takes most of a cache line of each rank")]
pub(super) struct LastArrivals(Option<Box<HashMap<u32, u64>>>);

impl LastArrivals {
    /// The arrival of a message to `peer` that is sent at `now` and would arrive at `time`: no earlier than those sent before.
    pub(super) fn in_order(&mut self, peer: u32, now: u64, time: u64) -> u64 {
        let all = self.0.get_or_insert_default();
        if all.len() == all.capacity() {
            // What has arrived holds back nothing. Space for as much as is left keeps this rare.
            all.retain(|_, last| *last > now);
            all.reserve(all.len() + 1);
        }
        let last = all.entry(peer).or_default();
        *last = time.max(*last);
        *last
    }
}

/// One rank. `S` is the state that its program keeps.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Rank<S, F> {
    pub(super) pending: Pending,
    pub(super) free: F,
    /// No detour strikes an operation that ends before this time.
    pub(super) quiet: u64,
    pub(super) state: S,
    /// Receives without a message, and messages without a receive.
    pub(super) posted: Queue,
    pub(super) arrived: Queue,
    /// Receives that wait for the data of a rendezvous, by sender and send, and requests that wait for their handling, by sender and receive.
    pub(super) granted: Granted,
    pub(super) last_arrivals: LastArrivals,
}

impl<S, F: IdleTimes> Rank<S, F> {
    pub(super) fn new(layout: Layout, state: S) -> Self {
        Self {
            pending: Pending::default(),
            free: F::new(layout),
            quiet: 0,
            state,
            posted: Queue::default(),
            arrived: Queue::default(),
            granted: Granted::default(),
            last_arrivals: LastArrivals::default(),
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, event: Event, me: u32) {
        self.pending.push(event, me);
    }
}
