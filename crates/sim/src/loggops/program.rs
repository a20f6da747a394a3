//! What an engine runs: operations of ranks, what each needs, and what waits for it.

use std::collections::HashMap;

/// The peer of a receive from anybody, or the tag of one that takes any tag (GOAL's -1).
pub const ANY: u32 = u32::MAX;

/// What an operation does. The order is LogGOPSim's: of operations that become free together, sends go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Sends a message to a peer.
    Send,
    /// Takes a message of a peer.
    Recv,
    /// Works on a CPU.
    Calc,
}

/// All of an operation but its peer. A program has few shapes, so that an operation and a message in flight need only
/// name theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// What it does.
    pub kind: Kind,
    /// The CPU of its rank that it runs on.
    pub cpu: u8,
    /// The network interface of its rank that it uses.
    pub nic: u8,
    /// The tag of its message, or [`ANY`]; 0 for work.
    pub tag: u32,
    /// Bytes of its message, or nanoseconds of its work.
    pub size: u64,
}

impl Shape {
    /// A send of `bytes`.
    pub fn send(bytes: u64, tag: u32) -> Self {
        Self { kind: Kind::Send, cpu: 0, nic: 0, tag, size: bytes }
    }

    /// A receive of `bytes`.
    pub fn recv(bytes: u64, tag: u32) -> Self {
        Self { kind: Kind::Recv, cpu: 0, nic: 0, tag, size: bytes }
    }

    /// Work of `ns` nanoseconds.
    pub fn calc(ns: u64) -> Self {
        Self { kind: Kind::Calc, cpu: 0, nic: 0, tag: 0, size: ns }
    }

    /// The same on another CPU.
    pub fn on_cpu(self, cpu: u8) -> Self {
        Self { cpu, ..self }
    }
}

/// The shapes of a program, each once.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    list: Vec<Shape>,
    index: HashMap<Shape, u32>,
}

impl Shapes {
    /// The number of a shape, which is new if it was not seen before.
    pub fn number(&mut self, shape: Shape) -> u32 {
        *self.index.entry(shape).or_insert_with(|| {
            self.list.push(shape);
            (self.list.len() - 1) as u32
        })
    }

    /// All of them, by number.
    pub fn into_list(self) -> Vec<Shape> {
        self.list
    }
}

/// An operation whose needs are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    /// Its number in its rank.
    pub op: u32,
    /// Whom it sends to or receives from; 0 for work.
    pub peer: u32,
    /// The number of its shape.
    pub shape: u32,
    /// When the last of what it needs was done, in nanoseconds.
    pub ready: u64,
}

/// What can set operations of a rank free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frees {
    /// The end of the last of those that were set free before, and nothing else: a rank goes in steps.
    InSteps,
    /// The end of any.
    AtEnds,
    /// The end or the start of any.
    AtStarts,
}

/// A parallel program: for each rank a graph of operations. It is never asked for all of them at once.
pub trait Program: Sync {
    /// What is kept of one rank while the program runs.
    type Rank: Send;

    /// How many ranks it has.
    fn ranks(&self) -> u32;

    /// How many CPUs each rank has: one more than the highest that an operation names.
    fn cpus(&self) -> u32;

    /// How many network interfaces each rank has.
    fn nics(&self) -> u32;

    /// The shapes that operations name by number.
    fn shapes(&self) -> &[Shape];

    /// How many operations all ranks have together, and how many of them are sends; `None` where nobody counted.
    fn totals(&self) -> Option<(u64, u64)>;

    /// What can set operations free; the more orderly, the faster it is played.
    fn frees(&self) -> Frees {
        Frees::AtStarts
    }

    /// Begins a rank: adds to `free`, in the order of the program, what needs nothing.
    fn begin(&self, rank: u32, free: &mut Vec<Free>) -> Self::Rank;

    /// Tells that an operation has started at `at`: adds what `irequires` it and now needs nothing more.
    fn started(&self, rank: u32, state: &mut Self::Rank, op: u32, at: u64, free: &mut Vec<Free>);

    /// Tells that an operation was done at `at`: adds what `requires` it and now needs nothing more.
    fn done(&self, rank: u32, state: &mut Self::Rank, op: u32, at: u64, free: &mut Vec<Free>);

    /// Hints that the rank's operations will be told of soon, so that what they wait for can be on its way from memory.
    fn prepare(&self, _rank: u32, _state: &Self::Rank) {}

    /// The iteration that a rank is in, from 0, for a program that repeats itself.
    fn iteration(&self, _state: &Self::Rank) -> u32 {
        0
    }

    /// How many operations of a rank were never freed.
    fn unfreed(&self, rank: u32, state: &Self::Rank) -> u64;
}
