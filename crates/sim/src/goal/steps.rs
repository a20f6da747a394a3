//! Schedules in which ranks go through steps: each operation waits for all operations of the step before its own.
//!
//! Such a schedule is played as a pattern is: without a count of what each operation still waits for, and in rounds under progress
//! in the call.

use super::rank_part::{Op, RankPart};
use crate::loggops::ReadyOp;

/// Where the steps of each rank end. Steps are runs of consecutive operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepEnds {
    /// For each step of each rank the number after that of its last operation.
    ends: Vec<u32>,
    /// Where those of each rank begin, and one more for the end.
    bases: Vec<u64>,
}

impl StepEnds {
    pub(super) fn new() -> Self {
        Self { ends: Vec::new(), bases: vec![0] }
    }

    /// Adds the steps of the next rank; `false` if it has other dependencies than those of steps.
    pub(super) fn add(&mut self, part: &RankPart<'_>) -> bool {
        let before = self.ends.len();
        let are_steps = self.find(part).is_some();
        match are_steps {
            true => self.bases.push(self.ends.len() as u64),
            false => self.ends.truncate(before),
        }
        are_steps
    }

    fn find(&mut self, part: &RankPart<'_>) -> Option<()> {
        let ops = part.ops.len();
        let (mut begin, mut end) = (0, part.edges.first().map_or(ops, |edge| *edge as usize));
        while begin < ops {
            // Edges of starts and those that lead back are beyond all operations, or before the end of the step.
            if end <= begin || end > ops {
                return None;
            }
            let next = part.edges_of(begin);
            let are_consecutive = next.iter().zip(end..).all(|(edge, number)| *edge as usize == number);
            // Slices this short are compared sooner one by one.
            let are_all_needed = (begin + 1..end).all(|op| part.edges_of(op).iter().eq(next));
            if !are_consecutive || !are_all_needed || (next.is_empty() && end < ops) {
                return None;
            }
            self.ends.push(end as u32);
            (begin, end) = (end, end + next.len());
        }
        Some(())
    }

    /// Adds the dependents of each operation of a rank to a list.
    pub(super) fn add_edges(&self, rank: u32, edges: &mut Vec<u32>) {
        let (ends, mut begin) = (self.ends(rank), 0);
        for step in ends.windows(2) {
            for _ in begin..step[0] {
                edges.extend(step[0]..step[1]);
            }
            begin = step[0];
        }
    }

    /// Adds the steps of the ranks that follow.
    pub(super) fn append(&mut self, more: Self) {
        let before = self.ends.len() as u64;
        self.ends.extend(more.ends);
        self.bases.extend(more.bases.iter().skip(1).map(|base| before + base));
    }

    pub(super) fn shrink_to_fit(&mut self) {
        self.ends.shrink_to_fit();
        self.bases.shrink_to_fit();
    }

    /// Number of ranks.
    pub(super) fn ranks(&self) -> u32 {
        (self.bases.len() - 1) as u32
    }

    /// Where the steps of a rank end.
    pub(super) fn ends(&self, rank: u32) -> &[u32] {
        &self.ends[self.bases[rank as usize] as usize..self.bases[rank as usize + 1] as usize]
    }
}

/// A rank's place in its steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepPlace {
    /// When the last operation of the steps so far was done.
    latest: u64,
    /// The next step.
    next: u32,
    /// The operations of the current step begin here …
    begin: u32,
    /// … and as many of them are not done.
    open: u32,
}

impl StepPlace {
    /// The operation at which its rank is.
    pub(super) fn op(&self) -> u32 {
        self.begin
    }

    /// The place of a rank that begins a step next.
    pub(super) fn before(step: u32) -> Self {
        Self { next: step, ..Self::default() }
    }

    /// Frees the first step.
    pub(super) fn new(steps: &StepEnds, rank: u32, ops: &[Op], free: &mut Vec<ReadyOp>) -> Self {
        let mut place = Self::default();
        place.advance(steps.ends(rank), ops, free);
        place
    }

    /// Notes that an operation was done, and frees the next step after the last one.
    #[inline]
    pub(super) fn done(
        &mut self,
        steps: &StepEnds,
        rank: u32,
        ops: &[Op],
        (op, at): (u32, u64),
        free: &mut Vec<ReadyOp>,
    ) {
        // LogGOPSim can notify twice, also of a step that is over.
        if op < self.begin || self.open == 0 {
            return;
        }
        self.latest = self.latest.max(at);
        self.open -= 1;
        if self.open == 0 {
            self.advance(steps.ends(rank), ops, free);
        }
    }

    /// Frees the next step, if there is one.
    #[inline]
    pub(super) fn advance(&mut self, ends: &[u32], ops: &[Op], free: &mut Vec<ReadyOp>) {
        let Some(&end) = ends.get(self.next as usize) else { return };
        self.begin = (self.next as usize).checked_sub(1).map_or(0, |before| ends[before]);
        self.next += 1;
        self.open = end - self.begin;
        let ops = (self.begin..end).zip(&ops[self.begin as usize..end as usize]);
        free.extend(ops.map(|(op, what)| ReadyOp {
            op,
            peer: what.peer,
            shape: what.shape,
            ready: self.latest,
        }));
    }

    /// Number of operations of its rank that were freed.
    pub(super) fn freed(&self, steps: &StepEnds, rank: u32) -> u64 {
        let current = (self.next as usize).checked_sub(1);
        current.map_or(0, |step| steps.ends(rank)[step].into())
    }
}
