//! A whole schedule in memory, and how an engine reads operations from it.

use std::borrow::Cow;

use super::rank_part::{AT_START, Base, DEPENDENT, Op, RankPart};
use super::steps::{StepEnds, StepPlace};
use crate::loggops::{ANY, Kind, Program, ReadyOp, ReadyTrigger, Shape, StepProgram, UniformStep, prefetch};

/// A schedule: for each rank its operations and which of them wait for which. 12 bytes per operation, 4 per
/// dependency, 16 per rank, and each [`Shape`] once. If all ranks go through steps, 4 bytes per step and 8 per rank instead of those of the
/// dependencies.
///
/// Every schedule is sound: peers are ranks, no operation waits for itself, and sizes are at most
/// [`MAX_SIZE`](super::MAX_SIZE).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub(super) ops: Vec<Op>,
    /// Per operation the dependents of its end, then those of its start, each in the order of the text. None if there are steps, from which
    /// they follow.
    pub(super) edges: Vec<u32>,
    /// One per rank, and one more for the end.
    pub(super) bases: Vec<Base>,
    pub(super) shapes: Vec<Shape>,
    pub(super) cpus: u32,
    pub(super) nics: u32,
    pub(super) sends: u64,
    /// Whether any operation waits for the start of another.
    pub(super) at_starts: bool,
    /// The steps, if all ranks go through steps.
    pub(super) steps: Option<StepEnds>,
}

impl Schedule {
    /// The operations of a rank.
    pub(super) fn rank_list(&self, rank: u32) -> &[Op] {
        &self.ops[self.bases[rank as usize].ops as usize..self.bases[rank as usize + 1].ops as usize]
    }

    pub(super) fn part(&self, rank: u32) -> RankPart<'_> {
        let [begin, end] = [rank, rank + 1].map(|rank| self.bases[rank as usize].edges as usize);
        let edges = match &self.steps {
            Some(steps) => {
                let mut edges = Vec::with_capacity(end - begin);
                steps.add_edges(rank, &mut edges);
                Cow::Owned(edges)
            }
            None => Cow::Borrowed(&self.edges[begin..end]),
        };
        RankPart { ops: self.rank_list(rank), edges }
    }

    /// Number of dependencies of all ranks together.
    pub fn dependencies(&self) -> u64 {
        self.bases.last().map_or(0, |end| end.edges)
    }

    /// Number of operations of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn ops(&self, rank: u32) -> u32 {
        self.rank_list(rank).len() as u32
    }

    /// The operations of a rank, with what each waits for.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn rank_ops(&self, rank: u32) -> RankOps<'_> {
        RankOps::new(self, rank)
    }

    /// Whether rounds can play it: in steps, on one CPU, and all that a receive takes is named.
    fn has_rounds(&self) -> bool {
        let is_wild = || {
            let peers = self.ops.iter().any(|op| op.peer == ANY);
            peers || self.shapes.iter().any(|shape| shape.kind != Kind::Calc && shape.tag == ANY)
        };
        self.steps.is_some() && self.cpus == 1 && self.nics == 1 && !is_wild()
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
        let state = match state {
            Waiting::InSteps(place) => {
                let Some(steps) = &self.steps else { return };
                return place.done(steps, rank, self.rank_list(rank), (op, at), free);
            }
            Waiting::Each(state) => state,
        };
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
pub enum Waiting {
    /// Those of the next step for the current one.
    InSteps(StepPlace),
    /// Each for its own.
    Each(EachWaits),
}

/// What each operation of a rank waits for.
#[derive(Clone, Debug)]
pub struct EachWaits {
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
        match (&self.steps, self.at_starts) {
            (Some(_), _) => ReadyTrigger::InSteps,
            (None, true) => ReadyTrigger::AtStarts,
            (None, false) => ReadyTrigger::AtEnds,
        }
    }

    fn begin(&self, rank: u32, free: &mut Vec<ReadyOp>) -> Waiting {
        if let Some(steps) = &self.steps {
            return Waiting::InSteps(StepPlace::new(steps, rank, self.rank_list(rank), free));
        }
        let part = self.part(rank);
        let mut waits = vec![Waits::default(); part.ops.len()].into_boxed_slice();
        part.edges.iter().for_each(|edge| waits[(edge & DEPENDENT) as usize].needs += 1);
        let before = free.len();
        for (number, op) in part.ops.iter().enumerate().filter(|(number, _)| waits[*number].needs == 0) {
            free.push(ReadyOp { op: number as u32, peer: op.peer, shape: op.shape, ready: 0 });
        }
        Waiting::Each(EachWaits { waits, freed: (free.len() - before) as u64, last: 0 })
    }

    #[inline]
    fn prepare(&self, rank: u32, state: &Waiting) {
        let base = self.bases[rank as usize];
        let (last, waits) = match state {
            Waiting::InSteps(place) => (place.op(), None),
            Waiting::Each(state) => (state.last, state.waits.get(state.last as usize)),
        };
        let last = last as usize;
        if let Some(op) = self.ops.get(base.ops as usize + last) {
            prefetch::<_, 2>(op);
        }
        let Some(waits) = waits else { return };
        prefetch::<_, 2>(waits);
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

    fn in_steps(&self) -> Option<&dyn StepProgram> {
        if self.has_rounds() { Some(self) } else { None }
    }

    fn unfreed(&self, rank: u32, state: &Waiting) -> u64 {
        let freed = match (state, &self.steps) {
            (Waiting::InSteps(place), Some(steps)) => place.freed(steps, rank),
            (Waiting::InSteps(_), None) => 0,
            (Waiting::Each(state), _) => state.freed,
        };
        u64::from(self.ops(rank)).saturating_sub(freed)
    }
}

impl StepProgram for Schedule {
    fn iterations(&self) -> u32 {
        1
    }

    fn iteration_totals(&self) -> Option<(u64, u64)> {
        self.totals()
    }

    fn rank_steps(&self, rank: u32) -> u32 {
        self.steps.as_ref().map_or(0, |steps| steps.ends(rank).len() as u32)
    }

    fn step(&self, rank: u32, step: u32, ops: &mut Vec<ReadyOp>) {
        if let Some(steps) = &self.steps {
            StepPlace::before(step).advance(steps.ends(rank), self.rank_list(rank), ops);
        }
    }

    fn meets_in_steps(&self) -> bool {
        false
    }

    fn uniform_step(&self, _: u32) -> Option<UniformStep> {
        None
    }
}

/// An operation of a rank, with what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Its number in its rank, from 0.
    pub number: u32,
    /// What it does.
    pub shape: Shape,
    /// The rank that it sends to or receives from ([`ANY`]: from any); 0 for work.
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
    fn new(schedule: &'a Schedule, rank: u32) -> Self {
        let part = schedule.part(rank);
        let slot = |edge: u32| 2 * (edge & DEPENDENT) as usize + usize::from(edge & AT_START != 0);
        // Counts, shifted by two, become the beginnings of the lists, and move to their ends as the lists fill.
        let mut begins = vec![0u32; 2 * part.ops.len() + 2];
        for &edge in part.edges.iter() {
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
        Self { shapes: &schedule.shapes, ops: schedule.rank_list(rank), needed, begins }
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
