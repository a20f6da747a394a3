//! A pattern as a program: each rank's place in it, and when its next step becomes free.

use super::Pattern;
use super::ops::{LANE, StepOps};
use crate::loggops::{Program, ReadyOp, ReadyTrigger, Shape, StepProgram, UniformStep};

/// A pattern with a number of iterations, as a program that the engine runs.
///
/// Numbers of operations ascend within a lane. Those of lane 1 are above those of lane 0.
#[derive(Clone, Copy, Debug)]
pub struct Steps<P> {
    pattern: P,
    iterations: u32,
}

/// A rank's place in its program.
#[derive(Debug)]
pub struct Rank {
    first: Lane,
    /// Set only if the pattern has a second lane.
    pair: Option<Box<Pair>>,
}

/// A rank's position in a lane.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// When the last operation so far was done.
    latest: u64,
    /// Number of operations of the current step that are not done.
    open: u32,
    /// The number of the next operation.
    next: u32,
    /// The next iteration, and the next step in it. At the end the iteration equals the number of iterations.
    iteration: u32,
    step: u32,
}

/// State that a rank with two lanes has in addition to its first lane.
#[derive(Debug)]
struct Pair {
    second: Lane,
    /// For each lane the last non-empty step of this iteration that is done, and when that was.
    done: [Option<(u32, u64)>; 2],
    /// For each lane the current step.
    runs: [u32; 2],
}

impl Lane {
    fn new(next: u32) -> Self {
        Self { latest: 0, open: 0, next, iteration: 0, step: 0 }
    }

    /// Whether a step of this iteration is done.
    fn passed(&self, step: u32) -> bool {
        self.step > step + 1 || (self.step == step + 1 && self.open == 0)
    }
}

impl<P: Pattern> Steps<P> {
    /// A pattern that runs `iterations` times.
    pub fn new(pattern: P, iterations: u32) -> Self {
        Self { pattern, iterations }
    }

    /// The pattern that is iterated.
    pub fn pattern(&self) -> &P {
        &self.pattern
    }

    /// Number of iterations.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Frees the next non-empty step of the only lane.
    #[inline]
    fn advance(&self, rank: u32, lane: &mut Lane, free: &mut Vec<ReadyOp>) {
        let steps = self.pattern.steps(rank, 0);
        let before = free.len();
        let mut begun = false;
        while lane.iteration < self.iterations {
            while lane.step < steps {
                self.pattern.step(rank, 0, lane.step, &mut StepOps::new(free, lane.next, lane.latest));
                lane.step += 1;
                let freed = (free.len() - before) as u32;
                if freed > 0 {
                    (lane.open, lane.next) = (freed, following(lane.next, freed));
                    return;
                }
            }
            // A rank that does nothing in one iteration does nothing in any.
            lane.iteration = if begun { self.iterations } else { lane.iteration + 1 };
            lane.step = 0;
            begun = true;
        }
    }

    /// Frees all steps of two lanes that can be freed.
    fn advance_pair(&self, rank: u32, first: &mut Lane, pair: &mut Pair, free: &mut Vec<ReadyOp>) {
        let steps = [self.pattern.steps(rank, 0), self.pattern.steps(rank, 1)];
        while first.iteration < self.iterations {
            while self.move_lane(rank, 0, first, pair, steps[0], free)
                | self.move_lane(rank, 1, first, pair, steps[1], free)
            {}
            let ended = first.step == steps[0] && pair.second.step == steps[1];
            if !ended || first.open > 0 || pair.second.open > 0 {
                return;
            }
            // A rank that does nothing in one iteration does nothing in any.
            let nothing = pair.done == [None; 2];
            first.iteration = if nothing { self.iterations } else { first.iteration + 1 };
            let latest = first.latest.max(pair.second.latest);
            for lane in [&mut *first, &mut pair.second] {
                (lane.step, lane.latest) = (0, latest);
            }
            pair.done = [None; 2];
        }
    }

    /// Advances one of two lanes by a step, if possible; returns whether it did.
    fn move_lane(
        &self,
        rank: u32,
        number: usize,
        first: &mut Lane,
        pair: &mut Pair,
        steps: u32,
        free: &mut Vec<ReadyOp>,
    ) -> bool {
        let (lane, other) = if number == 0 { (first, &mut pair.second) } else { (&mut pair.second, first) };
        if lane.open > 0 || lane.step == steps {
            return false;
        }
        let before = free.len();
        let mut ops = StepOps::new(free, lane.next, lane.latest);
        self.pattern.step(rank, number as u32, lane.step, &mut ops);
        let held_by = ops.held_by();
        if free.len() > before
            && let Some((_, step)) = held_by
        {
            if !other.passed(step) {
                free.truncate(before);
                return false;
            }
            // If the other lane has done a later step since, the rank is already past the time of that step.
            let at = pair.done[1 - number].filter(|&(done, _)| done <= step).map_or(0, |(_, at)| at);
            lane.latest = lane.latest.max(at);
            free[before..].iter_mut().for_each(|op| op.ready = lane.latest);
        }
        pair.runs[number] = lane.step;
        lane.step += 1;
        lane.open = (free.len() - before) as u32;
        lane.next = following(lane.next, lane.open);
        true
    }

    /// Notifies a rank with two lanes that an operation was done.
    #[cold]
    #[inline(never)]
    fn done_in_pair(&self, rank: u32, state: &mut Rank, op: u32, at: u64, free: &mut Vec<ReadyOp>) {
        let Rank { first, pair: Some(pair) } = state else { return };
        let number = usize::from(op & LANE != 0);
        let lane = if number == 0 { &mut *first } else { &mut pair.second };
        lane.latest = lane.latest.max(at);
        lane.open -= 1;
        if lane.open == 0 {
            pair.done[number] = Some((pair.runs[number], lane.latest));
            self.advance_pair(rank, first, pair, free);
        }
    }

    /// Number of operations of a rank in a lane, from a step on.
    fn count_from(&self, rank: u32, lane: u32, step: u32, scratch: &mut Vec<ReadyOp>) -> u64 {
        let steps = step..self.pattern.steps(rank, lane);
        let count = steps.map(|step| {
            scratch.clear();
            self.pattern.step(rank, lane, step, &mut StepOps::new(scratch, 0, 0));
            scratch.len() as u64
        });
        count.sum()
    }
}

/// The number `count` after `number`, in its lane.
#[inline]
fn following(number: u32, count: u32) -> u32 {
    (number & LANE) | (number.wrapping_add(count) & !LANE)
}

impl<P: Pattern> Program for Steps<P> {
    type Rank = Rank;

    fn ranks(&self) -> u32 {
        self.pattern.ranks()
    }

    fn cpus(&self) -> u32 {
        self.pattern.cpus()
    }

    fn nics(&self) -> u32 {
        1
    }

    fn shapes(&self) -> &[Shape] {
        self.pattern.shapes()
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let (operations, sends) = self.pattern.totals()?;
        let iterations = u64::from(self.iterations);
        Some((operations.checked_mul(iterations)?, sends.checked_mul(iterations)?))
    }

    fn frees(&self) -> ReadyTrigger {
        if self.pattern.lanes() == 1 { ReadyTrigger::InSteps } else { ReadyTrigger::AtEnds }
    }

    fn begin(&self, rank: u32, free: &mut Vec<ReadyOp>) -> Rank {
        let mut first = Lane::new(0);
        if self.pattern.lanes() == 1 {
            self.advance(rank, &mut first, free);
            return Rank { first, pair: None };
        }
        let mut pair = Pair { second: Lane::new(LANE), done: [None; 2], runs: [0; 2] };
        self.advance_pair(rank, &mut first, &mut pair, free);
        Rank { first, pair: Some(Box::new(pair)) }
    }

    #[inline]
    fn started(&self, _: u32, _: &mut Rank, _: u32, _: u64, _: &mut Vec<ReadyOp>) {}

    #[inline]
    fn done(&self, rank: u32, state: &mut Rank, op: u32, at: u64, free: &mut Vec<ReadyOp>) {
        if state.pair.is_some() {
            return self.done_in_pair(rank, state, op, at, free);
        }
        let lane = &mut state.first;
        lane.latest = lane.latest.max(at);
        lane.open -= 1;
        if lane.open == 0 {
            self.advance(rank, lane, free);
        }
    }

    fn in_steps(&self) -> Option<&dyn StepProgram> {
        if self.pattern.lanes() == 1 { Some(self) } else { None }
    }

    fn iteration(&self, state: &Rank) -> u32 {
        state.first.iteration
    }

    fn unfreed(&self, rank: u32, state: &Rank) -> u64 {
        let left = u64::from(self.iterations - state.first.iteration);
        if left == 0 {
            return 0;
        }
        let mut scratch = Vec::new();
        let lanes = [Some(&state.first), state.pair.as_ref().map(|pair| &pair.second)];
        let count = |(number, lane): (usize, &Lane)| {
            let (number, scratch) = (number as u32, &mut scratch);
            let here = self.count_from(rank, number, lane.step, scratch);
            if left == 1 {
                return here;
            }
            here.saturating_add(self.count_from(rank, number, 0, scratch).saturating_mul(left - 1))
        };
        lanes.into_iter().flatten().enumerate().map(count).fold(0, u64::saturating_add)
    }
}

impl<P: Pattern> StepProgram for Steps<P> {
    fn iterations(&self) -> u32 {
        self.iterations
    }

    fn iteration_totals(&self) -> Option<(u64, u64)> {
        self.pattern.totals()
    }

    fn rank_steps(&self, rank: u32) -> u32 {
        self.pattern.steps(rank, 0)
    }

    fn step(&self, rank: u32, step: u32, ops: &mut Vec<ReadyOp>) {
        self.pattern.step(rank, 0, step, &mut StepOps::new(ops, 0, 0));
    }

    fn meets_in_steps(&self) -> bool {
        true
    }

    fn uniform_step(&self, step: u32) -> Option<UniformStep> {
        self.pattern.uniform_step(step)
    }
}
