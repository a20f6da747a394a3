//! A second engine for message simulation, slow and obvious, written from the texts of the rules alone.

pub mod compatible;
pub mod physical;
pub mod strikes;

use quell_sim::loggops::{Kind, Outcome, Shape, Stuck, Waiting};

/// Result of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub finish: Vec<u64>,
    pub events: u64,
    pub noise: Vec<u64>,
    /// Number of receives without a message, messages without a receive, operations that were never freed.
    pub left_over: [u64; 3],
}

impl From<&Outcome> for Found {
    fn from(outcome: &Outcome) -> Self {
        let counts = |stuck: &Stuck| [stuck.receives_total, stuck.messages_total, stuck.unfreed_total];
        Self {
            finish: outcome.finish.clone(),
            events: outcome.events,
            noise: outcome.noise.clone(),
            left_over: outcome.stuck.as_ref().map_or([0; 3], counts),
        }
    }
}

/// Result of the reference.
#[derive(Debug, Default)]
pub struct Reference {
    pub found: Found,
    /// Every receive without a message.
    pub receives: Vec<Waiting>,
    /// Every message without a receive.
    pub messages: Vec<Waiting>,
    /// The latest time that any rule computed, used or not.
    pub latest: u64,
    /// Maximum number of operations of one rank that became free at once.
    pub widest: usize,
}

/// A message in flight or waiting.
#[derive(Clone, Copy, Debug)]
struct Message {
    from: u32,
    /// The number of its send.
    op: u32,
    shape: Shape,
}

impl Message {
    fn waiting(self, rank: u32) -> Waiting {
        Waiting { rank, op: self.op, peer: self.from, tag: self.shape.tag, size: self.shape.size }
    }
}

/// A posted receive, or any other operation whose needs are met.
#[derive(Clone, Copy, Debug)]
struct Operation {
    op: u32,
    peer: u32,
    shape: Shape,
}

impl Operation {
    fn waiting(self, rank: u32) -> Waiting {
        Waiting { rank, op: self.op, peer: self.peer, tag: self.shape.tag, size: self.shape.size }
    }

    /// Whether this receive takes that message.
    fn takes(self, message: &Message) -> bool {
        assert_eq!(self.shape.kind, Kind::Recv);
        let any = u32::MAX;
        (self.peer == message.from || self.peer == any)
            && (self.shape.tag == message.shape.tag || self.shape.tag == any || message.shape.tag == any)
    }
}
