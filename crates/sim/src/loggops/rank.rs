//! State of one rank in a simulation.

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
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, event: Event, me: u32) {
        self.pending.push(event, me);
    }
}
