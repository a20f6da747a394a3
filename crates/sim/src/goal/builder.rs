//! From operations and dependencies, rank after rank, to a schedule.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::cycle;
use super::defect::{BuildError, Defect};
use super::intern::Interner;
use super::rank_part::{AT_START, Base, DEPENDENT, Op, RankPart, has_peer};
use super::schedule::Schedule;
use super::steps::StepEnds;
use super::{MAX_OPS, MAX_SIZE};
use crate::loggops::{ANY, Kind, Shape};

/// Maximum number of defects that are kept until [`ScheduleBuilder::take_defect`] takes them.
const MAX_DEFECTS: usize = 64;

/// A dependency of the rank that is being built.
#[derive(Clone, Copy, Debug)]
struct Pending {
    on: u32,
    /// The dependent, with [`AT_START`] if it waits only for the start.
    edge: u32,
}

/// Builds a [`Schedule`], rank after rank, each with its operations and what they wait for.
///
/// Errors are reported by [`finish`](Self::finish), which returns the first one.
///
/// ```
/// use quell_sim::goal::ScheduleBuilder;
/// use quell_sim::loggops::Shape;
///
/// let mut builder = ScheduleBuilder::new(2);
/// builder.begin_rank();
/// let work = builder.op(Shape::calc(1_000), 0);
/// let send = builder.op(Shape::send(8, 0), 1);
/// builder.requires(send, work);
/// builder.end_rank();
/// builder.begin_rank();
/// builder.op(Shape::recv(8, 0), 0);
/// builder.end_rank();
/// assert_eq!(builder.finish()?.dependencies(), 1);
/// # Ok::<(), quell_sim::goal::BuildError>(())
/// ```
#[derive(Debug)]
pub struct ScheduleBuilder {
    ranks: u32,
    /// The rank that was built first.
    first: u32,
    ops: Vec<Op>,
    edges: Vec<u32>,
    bases: Vec<Base>,
    /// The steps of the ranks so far, as long as all go through steps.
    steps: Option<StepEnds>,
    shapes: Interner,
    pending: Vec<Pending>,
    in_rank: bool,
    /// Whether a dependency of this rank leads back to an earlier operation: only then can there be a cycle.
    leads_back: bool,
    top_cpu: u8,
    top_nic: u8,
    sends: u64,
    misuse: Option<BuildError>,
    broken: bool,
    defects: VecDeque<BuildError>,
}

impl ScheduleBuilder {
    /// Begins a schedule of this number of ranks, at rank 0.
    pub fn new(ranks: u32) -> Self {
        Self::from_rank(0, ranks)
    }

    /// Begins the part of a schedule from a rank on.
    pub(super) fn from_rank(first: u32, ranks: u32) -> Self {
        Self {
            ranks,
            first,
            ops: Vec::new(),
            edges: Vec::new(),
            bases: vec![Base::default()],
            steps: Some(StepEnds::new()),
            shapes: Interner::new(),
            pending: Vec::new(),
            in_rank: false,
            leads_back: false,
            top_cpu: 0,
            top_nic: 0,
            sends: 0,
            misuse: None,
            broken: false,
            defects: VecDeque::new(),
        }
    }

    /// Begins the next rank.
    pub fn begin_rank(&mut self) {
        if self.in_rank || self.rank() >= self.ranks {
            let (begun, ranks) = (self.rank() + u32::from(self.in_rank), self.ranks);
            self.misuse.get_or_insert(BuildError::ExtraRank { begun, ranks });
        }
        self.in_rank = true;
    }

    /// The number of the rank that is being built, or would be next.
    pub(super) fn rank(&self) -> u32 {
        self.first.saturating_add((self.bases.len() - 1) as u32)
    }

    /// Number of ranks of the schedule.
    pub(super) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Adds the part that begins with the next rank; `None` if it begins with another, or if anything is wrong with it.
    pub(super) fn append(&mut self, mut part: Self) -> Option<()> {
        let is_next = !self.in_rank && part.first == self.rank() && part.ranks == self.ranks;
        let is_whole = !part.in_rank && part.misuse.is_none() && !part.broken;
        if !is_next || !is_whole {
            return None;
        }
        if self.steps.is_none() || part.steps.is_none() {
            self.leave_steps();
            part.leave_steps();
        }
        let from = *self.bases.last()?;
        let shapes = part.shapes.into_list();
        let numbers: Vec<u32> = shapes.into_iter().map(|shape| self.shapes.number(shape)).collect();
        self.ops.extend(part.ops.iter().map(|op| Op { shape: numbers[op.shape as usize], ..*op }));
        self.edges.extend(part.edges);
        if let Some((steps, more)) = self.steps.as_mut().zip(part.steps) {
            steps.append(more);
        }
        let bases = part.bases.iter().skip(1);
        self.bases
            .extend(bases.map(|base| Base { ops: from.ops + base.ops, edges: from.edges + base.edges }));
        self.top_cpu = self.top_cpu.max(part.top_cpu);
        self.top_nic = self.top_nic.max(part.top_nic);
        self.sends += part.sends;
        Some(())
    }

    fn first_op(&self) -> usize {
        self.bases.last().map_or(0, |base| base.ops as usize)
    }

    /// Where the edges of the rank begin: those of ranks in steps are not kept.
    fn first_edge(&self) -> usize {
        match &self.steps {
            Some(_) => 0,
            None => self.bases.last().map_or(0, |base| base.edges as usize),
        }
    }

    /// Adds the steps of the rank; `false` if it has none, or if a rank before it has none.
    fn add_steps(&mut self, first_op: usize) -> bool {
        let Some(steps) = &mut self.steps else { return false };
        steps.add(&RankPart { ops: &self.ops[first_op..], edges: Cow::Borrowed(&self.edges) })
    }

    /// Keeps the edges of all ranks from now on.
    fn leave_steps(&mut self) {
        if let Some(steps) = self.steps.take() {
            let mut edges = Vec::new();
            (0..steps.ranks()).for_each(|rank| steps.add_edges(rank, &mut edges));
            edges.append(&mut self.edges);
            self.edges = edges;
        }
    }

    /// How many operations the rank has so far.
    pub fn rank_len(&self) -> u32 {
        (self.ops.len() - self.first_op()) as u32
    }

    /// Adds an operation to the rank and returns its number. `peer` is the rank that it sends to or receives from
    /// ([`ANY`]: from any); work has none. Of work's shape only CPU and size count.
    pub fn op(&mut self, shape: Shape, peer: u32) -> u32 {
        let number = self.rank_len();
        if !self.in_rank {
            self.misuse.get_or_insert(BuildError::OutsideRank);
        }
        let (shape, peer) = match shape.kind {
            Kind::Calc => (Shape::calc(shape.size).on_cpu(shape.cpu), 0),
            _ => (shape, peer),
        };
        if shape.size > MAX_SIZE {
            self.defect(number, Defect::Size { size: shape.size });
        }
        if has_peer(shape.kind) && peer >= self.ranks {
            match (peer, shape.kind) {
                (ANY, Kind::Recv) => (),
                (ANY, _) => self.defect(number, Defect::SendToAny),
                _ => self.defect(number, Defect::Peer { peer, ranks: self.ranks }),
            }
        }
        if number >= MAX_OPS {
            self.defect(number, Defect::TooMany);
            return number;
        }
        self.top_cpu = self.top_cpu.max(shape.cpu);
        self.top_nic = self.top_nic.max(shape.nic);
        self.sends += u64::from(shape.kind == Kind::Send);
        let shape = self.shapes.number(shape);
        self.ops.push(Op { peer, shape, edges_end: 0 });
        number
    }

    /// Makes an operation of the rank wait until another one of it is done.
    pub fn requires(&mut self, op: u32, on: u32) {
        self.depend(op, on, 0);
    }

    /// Makes an operation of the rank wait until another one of it has started.
    pub fn irequires(&mut self, op: u32, on: u32) {
        self.depend(op, on, AT_START);
    }

    fn depend(&mut self, op: u32, on: u32, kind: u32) {
        if self.may_depend(op, on, self.pending.len()) {
            self.pending.push(Pending { on, edge: op | kind });
        }
    }

    /// Adds what waits for an operation: for its end, and for its start. All operations of the rank were added, this is called for each of
    /// them in order, and neither [`requires`](Self::requires) nor [`irequires`](Self::irequires) for any.
    pub(super) fn dependents(&mut self, on: u32, at_end: &[u32], at_start: &[u32]) {
        let (first, ops) = (self.first_edge(), self.rank_len());
        for (list, kind) in [(at_end, 0), (at_start, AT_START)] {
            for &op in list {
                // Almost all lead forward.
                let is_plain = on < op && op < ops && self.edges.len() - first < MAX_OPS as usize;
                if is_plain || self.may_depend(op, on, self.edges.len() - first) {
                    self.edges.push(op | kind);
                }
            }
        }
        let at = self.first_op() + on as usize;
        self.ops[at].edges_end = (self.edges.len() - first) as u32;
    }

    /// Whether an operation can wait for another one in a rank that has `before` dependencies; if not, adds the defect.
    fn may_depend(&mut self, op: u32, on: u32, before: usize) -> bool {
        let ops = self.rank_len();
        if let Some(missing) = [op, on].into_iter().find(|&number| number >= ops) {
            self.defect(op, Defect::NoSuchOp { op: missing, ops });
        } else if op == on {
            self.defect(op, Defect::Itself);
        } else if before >= MAX_OPS as usize {
            self.defect(op, Defect::TooMany);
        } else {
            self.leads_back |= op < on;
            return true;
        }
        false
    }

    /// Ends the rank.
    pub fn end_rank(&mut self) {
        if !self.in_rank {
            let (begun, ranks) = (self.rank(), self.ranks);
            self.misuse.get_or_insert(BuildError::ExtraRank { begun, ranks });
        }
        let first = self.first_op();
        if !self.pending.is_empty() {
            self.sort_pending(first);
        }
        if std::mem::take(&mut self.leads_back)
            && let Some(ops) = cycle::find(&self.part(first))
        {
            self.defect(ops.first().map_or(0, |op| op & DEPENDENT), Defect::Cycle(ops));
        }
        self.pending.clear();
        let before = self.bases.last().map_or(0, |base| base.edges);
        let edges = before + (self.edges.len() - self.first_edge()) as u64;
        let are_steps = self.add_steps(first);
        match are_steps {
            true => self.edges.clear(),
            false => self.leave_steps(),
        }
        self.bases.push(Base { ops: self.ops.len() as u64, edges });
        self.in_rank = false;
    }

    /// Gives the rank's operations the dependents that were added, in any order.
    fn sort_pending(&mut self, first: usize) {
        // The sort is stable, so that dependents stay in the order in which they were added.
        self.pending.sort_by_key(|pending| (pending.on, pending.edge & AT_START));
        let mut rest = self.pending.iter().peekable();
        let mut end = 0;
        for (number, op) in self.ops[first..].iter_mut().enumerate() {
            while let Some(pending) = rest.next_if(|pending| pending.on == number as u32) {
                self.edges.push(pending.edge);
                end += 1;
            }
            op.edges_end = end;
        }
    }

    fn part(&self, first_op: usize) -> RankPart<'_> {
        RankPart { ops: &self.ops[first_op..], edges: Cow::Borrowed(&self.edges[self.first_edge()..]) }
    }

    fn defect(&mut self, op: u32, defect: Defect) {
        self.broken = true;
        if self.defects.len() < MAX_DEFECTS {
            self.defects.push_back(BuildError::Op { rank: self.rank(), op, defect });
        }
    }

    /// Removes the oldest defect that was not yet taken.
    pub(super) fn take_defect(&mut self) -> Option<BuildError> {
        self.defects.pop_front()
    }

    /// The schedule.
    ///
    /// # Errors
    /// [`BuildError`] for the first operation, dependency or rank that was wrong, if any.
    pub fn finish(mut self) -> Result<Schedule, BuildError> {
        let defect = self.take_defect();
        if let Some(error) = self.misuse.take().or(defect) {
            return Err(error);
        }
        debug_assert!(!self.broken, "whoever takes defects must not ask for a schedule");
        self.finish_anyhow()
    }

    /// Whether there was any defect, taken or not.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// The schedule even if it has defects, to check it for more of them; it must not run.
    pub(super) fn finish_anyhow(mut self) -> Result<Schedule, BuildError> {
        if self.rank() < self.ranks || self.in_rank {
            return Err(BuildError::MissingRanks { given: self.rank(), ranks: self.ranks });
        }
        if self.ops.is_empty() {
            return Err(BuildError::Empty);
        }
        self.ops.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.bases.shrink_to_fit();
        self.steps.iter_mut().for_each(StepEnds::shrink_to_fit);
        let at_starts = self.edges.iter().any(|edge| edge & AT_START != 0);
        Ok(Schedule {
            at_starts,
            ops: self.ops,
            edges: self.edges,
            bases: self.bases,
            shapes: self.shapes.into_list(),
            cpus: u32::from(self.top_cpu) + 1,
            nics: u32::from(self.top_nic) + 1,
            sends: self.sends,
            steps: self.steps,
        })
    }
}
