//! A pattern as a list of operations, for files and for programs that are held as graphs.

use std::ops::Range;

use super::ops::StepOps;
use super::{Pattern, Steps};
use crate::loggops::{ReadyOp, Shape};

/// Receives the operations of a pattern: rank after rank, each rank's in the order of their numbers.
pub trait UnrollTo {
    /// Why it cannot accept more.
    type Error;

    /// Begins a rank; they come in order from 0.
    ///
    /// # Errors
    /// Those of the implementation.
    fn begin_rank(&mut self, rank: u32) -> Result<(), Self::Error>;

    /// Adds the rank's next operation. The first has the number 0, each further one the next. `peer` is 0 for work.
    ///
    /// # Errors
    /// Those of the implementation.
    fn op(&mut self, shape: &Shape, peer: u32) -> Result<(), Self::Error>;

    /// Adds a dependency: an operation of the rank does not start before another is done. Both were added before.
    ///
    /// # Errors
    /// Those of the implementation.
    fn requires(&mut self, op: u32, on: u32) -> Result<(), Self::Error>;

    /// Ends a rank.
    ///
    /// # Errors
    /// Those of the implementation.
    fn end_rank(&mut self) -> Result<(), Self::Error>;
}

/// Lists all operations of all iterations of a pattern, and what each requires.
///
/// Each operation of a step requires all operations of the last non-empty step of its lane, and of the step in the other lane
/// that it comes after: two steps of a and b operations make a·b requirements. Numbers wrap above 2³² operations in a rank.
///
/// # Errors
/// Those of `to`.
pub fn unroll<P: Pattern, T: UnrollTo>(steps: &Steps<P>, to: &mut T) -> Result<(), T::Error> {
    let mut lister = Lister::new(steps.pattern(), to);
    for rank in 0..steps.pattern().ranks() {
        lister.rank(rank, steps.iterations())?;
    }
    Ok(())
}

/// As [`unroll`], for one rank.
///
/// # Errors
/// Those of `to`.
pub fn unroll_rank<P: Pattern, T: UnrollTo>(steps: &Steps<P>, rank: u32, to: &mut T) -> Result<(), T::Error> {
    Lister::new(steps.pattern(), to).rank(rank, steps.iterations())
}

/// Numbers of operations that another one waits for.
type Numbers = Range<u32>;

struct Lister<'a, P, T> {
    pattern: &'a P,
    to: &'a mut T,
    scratch: Vec<ReadyOp>,
    /// For each lane and each of its steps in this iteration, the operations of the last non-empty step up to it.
    ends: [Vec<Numbers>; 2],
    /// Operations of this iteration that come after a step of another lane, with that lane and step.
    held: Vec<(Numbers, u32, u32)>,
    /// The next number of an operation of the rank.
    next: u32,
}

impl<'a, P: Pattern, T: UnrollTo> Lister<'a, P, T> {
    fn new(pattern: &'a P, to: &'a mut T) -> Self {
        Self { pattern, to, scratch: Vec::new(), ends: [vec![], vec![]], held: Vec::new(), next: 0 }
    }

    fn rank(&mut self, rank: u32, iterations: u32) -> Result<(), T::Error> {
        self.to.begin_rank(rank)?;
        self.next = 0;
        let mut before = Vec::new();
        for _ in 0..iterations {
            let start = self.next;
            before = self.iteration(rank, &before)?;
            if self.next == start {
                break;
            }
        }
        self.to.end_rank()
    }

    /// Lists one iteration of a rank, in which each lane waits for `before`; returns what the next one waits for.
    fn iteration(&mut self, rank: u32, before: &[Numbers]) -> Result<Vec<Numbers>, T::Error> {
        let lanes = self.pattern.lanes();
        for lane in 0..lanes {
            self.lane(rank, lane, before)?;
        }
        for (numbers, lane, step) in std::mem::take(&mut self.held) {
            let on = self.ends[lane as usize].get(step as usize).cloned().unwrap_or(0..0);
            self.require(&numbers, &on)?;
        }
        let last = self.ends[..lanes as usize].iter().filter_map(|steps| steps.last().cloned());
        Ok(last.collect())
    }

    fn lane(&mut self, rank: u32, lane: u32, before: &[Numbers]) -> Result<(), T::Error> {
        self.ends[lane as usize].clear();
        let mut previous = 0..0;
        for step in 0..self.pattern.steps(rank, lane) {
            let numbers = self.step(rank, lane, step)?;
            if !numbers.is_empty() {
                let first = Range::is_empty(&previous);
                for on in if first { before } else { std::slice::from_ref(&previous) } {
                    self.require(&numbers, on)?;
                }
                previous = numbers;
            }
            self.ends[lane as usize].push(previous.clone());
        }
        Ok(())
    }

    /// Lists the operations of a step.
    fn step(&mut self, rank: u32, lane: u32, step: u32) -> Result<Numbers, T::Error> {
        self.scratch.clear();
        let mut ops = StepOps::new(&mut self.scratch, 0, 0);
        self.pattern.step(rank, lane, step, &mut ops);
        let held_by = ops.held_by();
        for free in &self.scratch {
            self.to.op(&self.pattern.shapes()[free.shape as usize], free.peer)?;
        }
        let first = self.next;
        self.next = first.wrapping_add(self.scratch.len() as u32);
        let numbers = first..self.next;
        self.held.extend(held_by.map(|(lane, step)| (numbers.clone(), lane, step)));
        Ok(numbers)
    }

    fn require(&mut self, numbers: &Numbers, on: &Numbers) -> Result<(), T::Error> {
        for op in numbers.clone() {
            for on in on.clone() {
                self.to.requires(op, on)?;
            }
        }
        Ok(())
    }
}
