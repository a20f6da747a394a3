//! Operations of a rank. What begins waits for all that the program had waited for by then; work waits besides for the start of the send before it.

use std::convert::Infallible;

use quell_sim::goal::ScheduleBuilder;
use quell_sim::loggops::{Kind, Shape};
use quell_sim::pattern::{AnyPattern, Steps, UnrollTo, unroll_rank};
use rustc_hash::FxHashMap;

/// Makes the operations of a rank.
pub(super) struct Emitter<'a> {
    builder: &'a mut ScheduleBuilder,
    /// Operations that must be done before the next begins.
    awaited: Vec<u32>,
    /// The last that began, and how many of those it waited for.
    last: Option<(u32, usize)>,
    /// A send that must have started before there is more work: the program was within its call.
    sent: Option<u32>,
    /// By the number of the step that began them, operations whose end was not waited for.
    open: FxHashMap<u32, Vec<u32>>,
}

impl<'a> Emitter<'a> {
    pub fn begin(builder: &'a mut ScheduleBuilder) -> Self {
        builder.begin_rank();
        Self { builder, awaited: Vec::new(), last: None, sent: None, open: FxHashMap::default() }
    }

    /// Works for so many ns, if any.
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

    /// What the step began is done before anything else begins.
    pub fn wait(&mut self, step: u32) {
        for op in self.open.remove(&step).unwrap_or_default() {
            if let Some((_, waited)) = self.last.take_if(|(last, _)| *last == op) {
                // It waited for these itself.
                self.awaited.drain(..waited);
            }
            self.sent.take_if(|sent| *sent == op);
            self.awaited.push(op);
        }
    }

    /// The same of what waited for all that was to be waited for, and after which nothing began.
    pub fn wait_alone(&mut self, step: u32) {
        let ends = self.open.remove(&step).unwrap_or_default();
        if !ends.is_empty() {
            (self.awaited, self.last) = (ends, None);
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

    /// Puts one operation in the place of many, so that not each that begins waits for each of them.
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
