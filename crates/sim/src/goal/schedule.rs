//! A whole schedule in memory, and how an engine reads operations from it.

use crate::loggops::{Kind, Program, ReadyOp, ReadyTrigger, Shape, prefetch};

/// Marks an edge whose dependent waits for the start of an operation, not for its end.
pub(super) const AT_START: u32 = 1 << 31;
/// The number of the dependent in an edge.
pub(super) const DEPENDENT: u32 = AT_START - 1;

/// One operation, without the data that it shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Op {
    pub(super) peer: u32,
    pub(super) shape: u32,
    /// Index after its last edge among those of its rank. The edges begin where those of the operation before it end.
    pub(super) edges_end: u32,
}

/// Where the operations and edges of a rank begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) ops: u64,
    pub(super) edges: u64,
}

/// A schedule: for each rank its operations and which of them wait for which. 12 bytes per operation, 4 per
/// dependency, 16 per rank, and each [`Shape`] once.
///
/// Every schedule is sound: peers are ranks, no operation waits for itself, and sizes are at most
/// [`MAX_SIZE`](super::MAX_SIZE).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub(super) ops: Vec<Op>,
    /// Per operation the dependents of its end, then those of its start, each in the order of the text.
    pub(super) edges: Vec<u32>,
    /// One per rank, and one more for the end.
    pub(super) bases: Vec<Base>,
    pub(super) shapes: Vec<Shape>,
    pub(super) cpus: u32,
    pub(super) nics: u32,
    pub(super) sends: u64,
    /// Whether any operation waits for the start of another.
    pub(super) at_starts: bool,
}

/// The part of a schedule that belongs to one rank.
#[derive(Clone, Copy)]
pub(super) struct RankPart<'a> {
    pub(super) ops: &'a [Op],
    pub(super) edges: &'a [u32],
}

impl<'a> RankPart<'a> {
    /// The dependents of an operation, with [`AT_START`] where they wait for its start.
    pub(super) fn edges_of(&self, op: usize) -> &'a [u32] {
        let begin = if op == 0 { 0 } else { self.ops[op - 1].edges_end };
        &self.edges[begin as usize..self.ops[op].edges_end as usize]
    }

    /// As [`edges_of`](Self::edges_of), split into the dependents of its end and those of its start.
    pub(super) fn edges_by_kind(&self, op: usize) -> (&'a [u32], &'a [u32]) {
        let edges = self.edges_of(op);
        edges.split_at(edges.partition_point(|edge| edge & AT_START == 0))
    }

    /// Number of dependencies of each operation.
    pub(super) fn needs(&self) -> Vec<u32> {
        let mut needs = vec![0u32; self.ops.len()];
        for edge in self.edges {
            needs[(edge & DEPENDENT) as usize] += 1;
        }
        needs
    }
}

impl Schedule {
    pub(super) fn part(&self, rank: u32) -> RankPart<'_> {
        let (begin, end) = (self.bases[rank as usize], self.bases[rank as usize + 1]);
        RankPart {
            ops: &self.ops[begin.ops as usize..end.ops as usize],
            edges: &self.edges[begin.edges as usize..end.edges as usize],
        }
    }

    /// Number of dependencies of all ranks together.
    pub fn dependencies(&self) -> u64 {
        self.edges.len() as u64
    }

    /// Number of operations of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn ops(&self, rank: u32) -> u32 {
        self.part(rank).ops.len() as u32
    }

    /// The operations of a rank, with what each waits for.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn rank_ops(&self, rank: u32) -> RankOps<'_> {
        RankOps::new(self, self.part(rank))
    }

    /// Notifies the dependents of an operation that it has started (`edge_kind` is [`AT_START`]) or is done (0).
    fn notify(
        &self,
        rank: u32,
        state: &mut Waiting,
        op: u32,
        at: u64,
        edge_kind: u32,
        free: &mut Vec<ReadyOp>,
    ) {
        state.last = op;
        let part = self.part(rank);
        for &edge in part.edges_of(op as usize) {
            if edge & AT_START != edge_kind {
                continue;
            }
            let dependent = edge & DEPENDENT;
            let index = dependent as usize;
            let waits = &mut state.waits[index];
            let ready = waits.notify(at);
            if waits.needs == 0 {
                let Op { peer, shape, .. } = part.ops[index];
                state.freed += 1;
                free.push(ReadyOp { op: dependent, peer, shape, ready });
            }
        }
    }
}

/// What the operations of one rank still wait for, while its program runs.
#[derive(Clone, Debug)]
pub struct Waiting {
    waits: Box<[Waits]>,
    freed: u64,
    /// The last operation whose dependents were notified. The next one is close to it in most programs.
    last: u32,
}

/// What one operation waits for, in 12 bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    /// Number of notifications that it still needs. LogGOPSim can notify twice: the count then wraps past 0 and frees no second time.
    needs: u32,
    /// The latest time of a notification, in nanoseconds, low half first. It need not be the last one's: ends are notified when known.
    ready: [u32; 2],
}

impl Waits {
    /// Counts one need as met at `at`, and returns the latest time at which one was.
    #[inline(always)]
    fn notify(&mut self, at: u64) -> u64 {
        let [low, high] = self.ready;
        let ready = at.max(u64::from(high) << 32 | u64::from(low));
        self.ready = [ready as u32, (ready >> 32) as u32];
        self.needs = self.needs.wrapping_sub(1);
        ready
    }
}

impl Program for Schedule {
    type Rank = Waiting;

    fn ranks(&self) -> u32 {
        (self.bases.len() - 1) as u32
    }

    fn cpus(&self) -> u32 {
        self.cpus
    }

    fn nics(&self) -> u32 {
        self.nics
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    fn totals(&self) -> Option<(u64, u64)> {
        Some((self.ops.len() as u64, self.sends))
    }

    fn frees(&self) -> ReadyTrigger {
        if self.at_starts { ReadyTrigger::AtStarts } else { ReadyTrigger::AtEnds }
    }

    fn begin(&self, rank: u32, free: &mut Vec<ReadyOp>) -> Waiting {
        let part = self.part(rank);
        let mut waits = vec![Waits::default(); part.ops.len()].into_boxed_slice();
        part.edges.iter().for_each(|edge| waits[(edge & DEPENDENT) as usize].needs += 1);
        let before = free.len();
        for (number, op) in part.ops.iter().enumerate().filter(|(number, _)| waits[*number].needs == 0) {
            free.push(ReadyOp { op: number as u32, peer: op.peer, shape: op.shape, ready: 0 });
        }
        Waiting { waits, freed: (free.len() - before) as u64, last: 0 }
    }

    #[inline]
    fn prepare(&self, rank: u32, state: &Waiting) {
        let (base, last) = (self.bases[rank as usize], state.last as usize);
        if let Some(waits) = state.waits.get(last) {
            prefetch::<_, 2>(waits);
        }
        if let Some(op) = self.ops.get(base.ops as usize + last) {
            prefetch::<_, 2>(op);
        }
        // Programs have about as many dependencies as operations.
        if let Some(edge) = self.edges.get(base.edges as usize + last / 2) {
            prefetch::<_, 2>(edge);
        }
    }

    fn started(&self, rank: u32, state: &mut Waiting, op: u32, at: u64, free: &mut Vec<ReadyOp>) {
        if self.at_starts {
            self.notify(rank, state, op, at, AT_START, free);
        }
    }

    fn done(&self, rank: u32, state: &mut Waiting, op: u32, at: u64, free: &mut Vec<ReadyOp>) {
        self.notify(rank, state, op, at, 0, free);
    }

    fn unfreed(&self, _rank: u32, state: &Waiting) -> u64 {
        (state.waits.len() as u64).saturating_sub(state.freed)
    }
}

/// An operation of a rank, with what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Its number in its rank, from 0.
    pub number: u32,
    /// What it does.
    pub shape: Shape,
    /// The rank that it sends to or receives from ([`ANY`](crate::loggops::ANY): from any); 0 for work.
    pub peer: u32,
    /// The numbers of the operations that must be done before it starts, ascending.
    pub requires: &'a [u32],
    /// The numbers of the operations that must have started before it starts, ascending.
    pub irequires: &'a [u32],
}

/// The operations of one rank with inverted edges: each with what it waits for. Made by [`Schedule::rank_ops`].
#[derive(Debug)]
pub struct RankOps<'a> {
    shapes: &'a [Shape],
    ops: &'a [Op],
    /// For each operation what it requires, then what it irequires.
    needed: Vec<u32>,
    /// Where the two lists of operation `i` begin: `2 i` and `2 i + 1`.
    begins: Vec<u32>,
}

impl<'a> RankOps<'a> {
    fn new(schedule: &'a Schedule, part: RankPart<'a>) -> Self {
        let slot = |edge: u32| 2 * (edge & DEPENDENT) as usize + usize::from(edge & AT_START != 0);
        // Counts, shifted by two, become the beginnings of the lists, and move to their ends as the lists fill.
        let mut begins = vec![0u32; 2 * part.ops.len() + 2];
        for &edge in part.edges {
            begins[slot(edge) + 2] += 1;
        }
        for index in 1..begins.len() {
            begins[index] += begins[index - 1];
        }
        let mut needed = vec![0; part.edges.len()];
        for op in 0..part.ops.len() {
            for &edge in part.edges_of(op) {
                let next = &mut begins[slot(edge) + 1];
                needed[*next as usize] = op as u32;
                *next += 1;
            }
        }
        Self { shapes: &schedule.shapes, ops: part.ops, needed, begins }
    }

    /// Iterates over the operations.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Operation<'_>> {
        self.ops.iter().enumerate().map(|(index, op)| {
            let [a, b, c] = [0, 1, 2].map(|k| self.begins[2 * index + k] as usize);
            Operation {
                number: index as u32,
                shape: self.shapes[op.shape as usize],
                peer: op.peer,
                requires: &self.needed[a..b],
                irequires: &self.needed[b..c],
            }
        })
    }
}

/// Whether an operation of this kind names a peer.
pub(super) fn has_peer(kind: Kind) -> bool {
    kind != Kind::Calc
}
