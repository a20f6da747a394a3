//! Operations of a rank. An operation waits for all that the program had waited for when it began; work also waits for the start of the send before it.

use std::convert::Infallible;

use quell_sim::goal::ScheduleBuilder;
use quell_sim::loggops::{Kind, Shape};
use quell_sim::pattern::{AnyPattern, Steps, UnrollTo, unroll_rank};
use rustc_hash::FxHashMap;

/// Adds the operations of a rank to the schedule.
pub(super) struct Emitter<'a> {
    builder: &'a mut ScheduleBuilder,
    /// Operations that must be done before the next begins.
    awaited: Vec<u32>,
    /// The last operation that began, and how many of those it waited for.
    last: Option<(u32, usize)>,
    /// A send that must have started before there is more work, because the program was in its call.
    sent: Option<u32>,
    /// Operations that the program has not waited for, by the number of the step that began them.
    open: FxHashMap<u32, Vec<u32>>,
}

impl<'a> Emitter<'a> {
    pub fn begin(builder: &'a mut ScheduleBuilder) -> Self {
        builder.begin_rank();
        Self { builder, awaited: Vec::new(), last: None, sent: None, open: FxHashMap::default() }
    }

    /// Adds work of `ns` nanoseconds, if any.
    pub fn work(&mut self, ns: u64) {
        if ns > 0 {
            self.calc(ns);
        }
    }

    fn calc(&mut self, ns: u64) {
        let op = self.builder.op(Shape::calc(ns), 0);
        self.depend(op);
        if let Some(send) = self.sent.take() {
            self.builder.irequires(op, send);
        }
        (self.awaited, self.last) = (vec![op], None);
    }

    pub fn send(&mut self, step: u32, to: u32, tag: u32, bytes: u64) {
        self.start(step, Shape::send(bytes, tag), to);
    }

    pub fn receive(&mut self, step: u32, from: u32, tag: u32, bytes: u64) {
        self.start(step, Shape::recv(bytes, tag), from);
    }

    fn start(&mut self, step: u32, shape: Shape, peer: u32) {
        self.join();
        let op = self.builder.op(shape, peer);
        self.depend(op);
        self.last = Some((op, self.awaited.len()));
        if shape.kind == Kind::Send {
            self.sent = Some(op);
        }
        self.open.insert(step, vec![op]);
    }

    /// Makes later operations wait for those that the step began.
    pub fn wait(&mut self, step: u32) {
        for op in self.open.remove(&step).unwrap_or_default() {
            if let Some((_, waited)) = self.last.take_if(|(last, _)| *last == op) {
                // It waited for these itself, so later operations need not.
                self.awaited.drain(..waited);
            }
            self.sent.take_if(|sent| *sent == op);
            self.awaited.push(op);
        }
    }

    /// As [`Self::wait`], if the step waited for everything before it and no operation began after it.
    pub fn wait_alone(&mut self, step: u32) {
        let ends = self.open.remove(&step).unwrap_or_default();
        if !ends.is_empty() {
            (self.awaited, self.last) = (ends, None);
        }
    }

    /// Adds the rank's part in a collective; `members` are its ranks, or `None` if all ranks take part under their own numbers.
    pub fn collective(
        &mut self,
        step: u32,
        pattern: Option<&Steps<AnyPattern>>,
        place: u32,
        members: Option<&[u32]>,
        tag: u32,
    ) {
        let Some(pattern) = pattern else { return };
        self.join();
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

    /// Number of operations of the rank so far.
    pub fn len(&self) -> u32 {
        self.builder.rank_len()
    }

    /// Ends the rank; returns its number of operations.
    pub fn end(self) -> u32 {
        let operations = self.builder.rank_len();
        self.builder.end_rank();
        operations
    }

    /// Replaces many awaited operations by one that waits for them, so that later operations need only one dependency.
    fn join(&mut self) {
        if self.awaited.len() > 2 {
            self.calc(0);
        }
    }

    fn depend(&mut self, op: u32) {
        for on in &self.awaited {
            self.builder.requires(op, *on);
        }
    }
}

/// Adds a rank's part in a pattern to the schedule.
struct Part<'a> {
    builder: &'a mut ScheduleBuilder,
    first: u32,
    members: Option<&'a [u32]>,
    tag: u32,
    /// For each operation, whether it waits for another one of the pattern, and whether another one waits for it.
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
