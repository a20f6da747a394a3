//! What an engine runs: the operations of each rank and their dependencies.

use std::collections::HashMap;

/// Any: the peer of a receive from any rank, or the tag of one that takes any tag (GOAL's -1).
pub const ANY: u32 = u32::MAX;

/// The kind of an operation. The order is LogGOPSim's: of operations that become free together, sends go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Sends a message to a peer.
    Send,
    /// Receives a message from a peer.
    Recv,
    /// Works on a CPU.
    Calc,
}

/// All of an operation except its peer. A program has few shapes, so an operation or a message in flight only
/// holds the number of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The kind of operation.
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

    /// The same operation on another CPU.
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
    /// The number of a shape; a new number if the shape was not seen before.
    pub fn number(&mut self, shape: Shape) -> u32 {
        *self.index.entry(shape).or_insert_with(|| {
            self.list.push(shape);
            (self.list.len() - 1) as u32
        })
    }

    /// All shapes, by number.
    pub fn into_list(self) -> Vec<Shape> {
        self.list
    }
}

/// An operation whose dependencies are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyOp {
    /// Its number in its rank.
    pub op: u32,
    /// The rank that it sends to or receives from; 0 for work.
    pub peer: u32,
    /// The number of its shape.
    pub shape: u32,
    /// When the last of its dependencies was met, in nanoseconds.
    pub ready: u64,
}

/// What makes operations of a rank ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyTrigger {
    /// Only when all operations of the previous step have ended.
    InSteps,
    /// The end of any operation.
    AtEnds,
    /// The end or the start of any operation.
    AtStarts,
}

/// A parallel program: for each rank a graph of operations. The engine never asks for all of them at once.
pub trait Program: Sync {
    /// State of one rank while the program runs.
    type Rank: Send;

    /// Number of ranks.
    fn ranks(&self) -> u32;

    /// Number of CPUs of each rank: one more than the highest that an operation names.
    fn cpus(&self) -> u32;

    /// Number of network interfaces of each rank.
    fn nics(&self) -> u32;

    /// The shapes that operations name by number.
    fn shapes(&self) -> &[Shape];

    /// Number of operations of all ranks together, and of the sends among them; `None` if they were not counted.
    fn totals(&self) -> Option<(u64, u64)>;

    /// What can free operations; the more orderly, the faster the program is played.
    fn frees(&self) -> ReadyTrigger {
        ReadyTrigger::AtStarts
    }

    /// Begins a rank: adds the operations without dependencies to `free`, in the order of the program.
    fn begin(&self, rank: u32, free: &mut Vec<ReadyOp>) -> Self::Rank;

    /// Notifies the program that an operation has started at `at`: adds the operations that `irequires` it and need nothing more.
    fn started(&self, rank: u32, state: &mut Self::Rank, op: u32, at: u64, free: &mut Vec<ReadyOp>);

    /// Notifies the program that an operation was done at `at`: adds the operations that `requires` it and need nothing more.
    fn done(&self, rank: u32, state: &mut Self::Rank, op: u32, at: u64, free: &mut Vec<ReadyOp>);

    /// Hints that events of the rank will follow soon, so that the state that they use can be prefetched.
    fn prepare(&self, _rank: u32, _state: &Self::Rank) {}

    /// The iteration that a rank is in, from 0, for a program that repeats itself.
    fn iteration(&self, _state: &Self::Rank) -> u32 {
        0
    }

    /// The program as steps, if it is no more than that.
    fn in_steps(&self) -> Option<&dyn StepProgram> {
        None
    }

    /// Number of operations of a rank that were never freed.
    fn unfreed(&self, rank: u32, state: &Self::Rank) -> u64;
}

/// A program in which each rank goes through steps, one after the other, and repeats them. The operations of a step become free when all of
/// the step before are done.
pub trait StepProgram {
    /// Number of times that each rank goes through its steps.
    fn iterations(&self) -> u32;

    /// Number of operations of all ranks together in one iteration, and of the sends among them; `None` if they were not counted.
    fn iteration_totals(&self) -> Option<(u64, u64)>;

    /// Number of steps of a rank.
    fn rank_steps(&self, rank: u32) -> u32;

    /// Adds the operations of a rank in a step, all ready at 0.
    fn step(&self, rank: u32, step: u32, ops: &mut Vec<ReadyOp>);

    /// Whether ranks meet in steps: where one sends to another and receives from it in the same step, so does the other.
    fn meets_in_steps(&self) -> bool;

    /// What every rank does in a step, if all do the same.
    fn uniform_step(&self, step: u32) -> Option<UniformStep>;
}

/// What all ranks do in a step that is the same for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniformStep {
    /// Nothing.
    Idle,
    /// Work of this shape.
    Calc(u32),
    /// A send to one partner and a receive from one.
    Exchange {
        /// The partners.
        peers: Peers,
        /// The shape of the send.
        sent: u32,
        /// The shape of the receive.
        received: u32,
    },
}

/// Who exchanges messages with whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Each rank with the one whose number differs in these bits. The number of ranks is a power of two.
    Xor(u32),
    /// Each rank sends to the one this far after it, and receives from the one this far before it, on a ring of all ranks.
    Ahead(u32),
}
