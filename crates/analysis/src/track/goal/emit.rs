//! Operations of a rank, in the order of its program: each waits until the one before has started, and after a wait until that is done.

use std::convert::Infallible;

use quell_sim::goal::ScheduleBuilder;
use quell_sim::loggops::{Kind, Shape};
use quell_sim::pattern::{AnyPattern, Steps, UnrollTo, unroll_rank};
use rustc_hash::FxHashMap;

/// What of the operation before must have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    Started,
    Done,
}

/// Makes the operations of a rank.
pub(super) struct Emitter<'a> {
    builder: &'a mut ScheduleBuilder,
    /// The last operation in the order of the program.
    before: Option<(u32, Until)>,
    /// Others that must be done before the next.
    joins: Vec<u32>,
    /// By the number of the step that began them, operations whose end was not waited for.
    open: FxHashMap<u32, Vec<u32>>,
}

impl<'a> Emitter<'a> {
    pub fn begin(builder: &'a mut ScheduleBuilder) -> Self {
        builder.begin_rank();
        Self { builder, before: None, joins: Vec::new(), open: FxHashMap::default() }
    }

    /// Works for so many ns, if any.
    pub fn work(&mut self, ns: u64) {
        if ns > 0 {
            let op = self.add(Shape::calc(ns), 0);
            self.goes_on(op, Until::Done);
        }
    }

    pub fn send(&mut self, step: u32, to: u32, tag: u32, bytes: u64) {
        self.start(step, Shape::send(bytes, tag), to);
    }

    pub fn receive(&mut self, step: u32, from: u32, tag: u32, bytes: u64) {
        self.start(step, Shape::recv(bytes, tag), from);
    }

    fn start(&mut self, step: u32, shape: Shape, peer: u32) {
        let op = self.add(shape, peer);
        self.goes_on(op, Until::Started);
        self.open.insert(step, vec![op]);
    }

    /// What the step began is done before anything else begins.
    pub fn wait(&mut self, step: u32) {
        for op in self.open.remove(&step).unwrap_or_default() {
            match &mut self.before {
                Some((before, until)) if *before == op => *until = Until::Done,
                _ => self.joins.push(op),
            }
        }
    }

    /// The same where nothing else began since: all of the rank so far is done then.
    pub fn wait_alone(&mut self, step: u32) {
        let mut ends = self.open.remove(&step).unwrap_or_default().into_iter();
        if let Some(end) = ends.next() {
            self.goes_on(end, Until::Done);
            self.joins.extend(ends);
        }
    }

    /// Begins the rank's part in a collective; `members` are its ranks, all of them under their own numbers if `None`.
    pub fn collective(
        &mut self,
        step: u32,
        pattern: Option<&Steps<AnyPattern>>,
        place: u32,
        members: Option<&[u32]>,
        tag: u32,
    ) {
        let Some(pattern) = pattern else { return };
        if self.joins.len() > 2 {
            // One operation that stands for all, so that not each of the first waits for each of them.
            self.join();
        }
        let first = self.builder.rank_len();
        let mut part =
            Part { builder: &mut *self.builder, first, members, tag, waits: Vec::new(), awaited: Vec::new() };
        let Ok(()) = unroll_rank(pattern, place, &mut part);
        let Part { waits, awaited, .. } = part;
        for (op, _) in (first..).zip(&waits).filter(|(_, waits)| !**waits) {
            self.depend(op);
        }
        let ends = (first..).zip(&awaited).filter(|(_, awaited)| !**awaited).map(|(op, _)| op);
        self.open.insert(step, ends.collect());
    }

    /// How many operations the rank has so far.
    pub fn len(&self) -> u32 {
        self.builder.rank_len()
    }

    /// Ends the rank; gives how many operations it has.
    pub fn end(self) -> u32 {
        let operations = self.builder.rank_len();
        self.builder.end_rank();
        operations
    }

    fn join(&mut self) {
        let op = self.add(Shape::calc(0), 0);
        self.goes_on(op, Until::Done);
    }

    fn add(&mut self, shape: Shape, peer: u32) -> u32 {
        let op = self.builder.op(shape, peer);
        self.depend(op);
        op
    }

    fn depend(&mut self, op: u32) {
        match self.before {
            Some((before, Until::Done)) => self.builder.requires(op, before),
            Some((before, Until::Started)) => self.builder.irequires(op, before),
            None => {}
        }
        for join in &self.joins {
            self.builder.requires(op, *join);
        }
    }

    fn goes_on(&mut self, op: u32, until: Until) {
        self.before = Some((op, until));
        self.joins.clear();
    }
}

/// Takes a rank's part in a pattern into the schedule.
struct Part<'a> {
    builder: &'a mut ScheduleBuilder,
    first: u32,
    members: Option<&'a [u32]>,
    tag: u32,
    /// For each operation whether it waits for another of the pattern, and whether another waits for it.
    waits: Vec<bool>,
    awaited: Vec<bool>,
}

impl UnrollTo for Part<'_> {
    type Error = Infallible;

    fn begin_rank(&mut self, _: u32) -> Result<(), Infallible> {
        Ok(())
    }

    fn op(&mut self, shape: &Shape, peer: u32) -> Result<(), Infallible> {
        let peer = match (shape.kind, self.members) {
            (Kind::Calc, _) => 0,
            (_, None) => peer,
            (_, Some(members)) => members.get(peer as usize).copied().unwrap_or(peer),
        };
        let tag = if shape.kind == Kind::Calc { 0 } else { self.tag };
        self.builder.op(Shape { tag, ..*shape }, peer);
        self.waits.push(false);
        self.awaited.push(false);
        Ok(())
    }

    fn requires(&mut self, op: u32, on: u32) -> Result<(), Infallible> {
        self.waits[op as usize] = true;
        self.awaited[on as usize] = true;
        self.builder.requires(self.first + op, self.first + on);
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
