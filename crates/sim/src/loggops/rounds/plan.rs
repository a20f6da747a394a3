//! A pattern in which all ranks do the same, as a sequence of passes over all ranks.

use std::ops::Range;

use super::cost::{MessageCost, is_playable};
use super::ordered::has_one_latency;
use crate::loggops::play::Cost;
use crate::loggops::{Kind, Peers, StepProgram, UniformStep};

/// A message that each rank handles at the beginning of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handling {
    pub(super) peers: Peers,
    pub(super) cost: MessageCost,
}

/// What all ranks do between two points at which they wait: handle a message, work, send the next one.
///
/// The send of a round goes with the handling of the round before, so that a pass needs of other ranks only when their last
/// message left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) handling: Option<Handling>,
    /// Nanoseconds of work.
    pub(super) work: i64,
    pub(super) send: Option<MessageCost>,
}

impl Pass {
    /// An upper bound of its noise-free time, in nanoseconds.
    pub(super) fn longest(&self) -> u128 {
        let costs = self.handling.map(|handling| handling.cost).into_iter().chain(self.send);
        self.work as u128 + costs.map(|cost| cost.longest()).sum::<u128>()
    }

    /// Size of the aligned blocks of ranks that need nothing of other ranks in this pass; `None` if it is all ranks.
    pub(super) fn closed_within(&self) -> Option<usize> {
        match self.handling.map(|handling| handling.peers) {
            None => Some(1),
            // The highest bit: a pass that follows passes of all lower bits needs their blocks.
            Some(Peers::Xor(bits)) => Some((bits as usize + 1).next_power_of_two()),
            Some(Peers::Ahead(_)) => None,
        }
    }
}

impl MessageCost {
    /// An upper bound of its noise-free time, in nanoseconds.
    fn longest(&self) -> u128 {
        [self.latency, self.overhead, self.gap, self.wire].map(|part| part as u128).into_iter().sum()
    }
}

/// The passes of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// What ranks do before they first wait.
    pub(super) first: Pass,
    /// The passes of each iteration. The last one begins the next iteration too.
    pub(super) passes: Vec<Pass>,
    /// The last pass of the last iteration.
    pub(super) last: Pass,
    /// Whether interfaces can be busy for longer than the CPUs that use them.
    pub(super) has_gaps: bool,
    /// The pieces of work before the first message of an iteration, and those that follow each of its messages.
    works: Vec<Vec<i64>>,
}

/// One pass of a run, with what it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn<'a> {
    pub(super) pass: &'a Pass,
    /// The iteration that its message belongs to, and the pieces of work that follow.
    pub(super) iteration: u32,
    pub(super) works: &'a [i64],
    /// The iteration that its send belongs to, and the pieces of work with which that iteration begins.
    pub(super) next: u32,
    pub(super) begins: &'a [i64],
}

/// Maximum number of passes of an iteration: 30 MB.
const MAX_PASSES: u32 = 1 << 18;

impl Plan {
    /// All passes.
    pub(super) fn all(&self) -> impl Iterator<Item = &Pass> {
        [&self.first, &self.last].into_iter().chain(&self.passes)
    }

    /// Number of passes of a run.
    pub(super) fn total(&self, iterations: u32) -> u64 {
        let iterations = u64::from(iterations);
        match self.passes.len() as u64 {
            // No rank waits for another.
            0 => iterations,
            passes => {
                if iterations == 0 {
                    0
                } else {
                    1 + iterations * passes
                }
            }
        }
    }

    /// The iteration of a pass of a run, and its index in the iteration; `None` for what comes before the first message.
    fn place(&self, number: u64) -> Option<(u32, usize)> {
        let passes = self.passes.len() as u64;
        let after_first = number.checked_sub(1).filter(|_| passes > 0)?;
        Some(((after_first / passes) as u32, (after_first % passes) as usize))
    }

    /// The first of some passes of a run, and those that follow it in its iteration.
    pub(super) fn passes_of(&self, numbers: Range<u64>, iterations: u32) -> &[Pass] {
        let Some((iteration, at)) = self.place(numbers.start) else {
            return std::slice::from_ref(&self.first);
        };
        let alone = usize::from(iteration + 1 == iterations);
        let most = (numbers.end - numbers.start).min(self.passes.len() as u64) as usize;
        match &self.passes[at..(self.passes.len() - alone).max(at)] {
            [] => std::slice::from_ref(&self.last),
            passes => &passes[..passes.len().min(most)],
        }
    }

    /// A pass of a run.
    pub(super) fn turn(&self, number: u64, iterations: u32) -> Turn<'_> {
        let pass = &self.passes_of(number..number + 1, iterations)[0];
        let Some((iteration, at)) = self.place(number) else {
            let iteration = if self.passes.is_empty() { number as u32 } else { 0 };
            return Turn { pass, iteration, works: &[], next: iteration, begins: &self.works[0] };
        };
        let works = &self.works[at + 1];
        if at + 1 < self.passes.len() || iteration + 1 == iterations {
            return Turn { pass, iteration, works, next: iteration, begins: &[] };
        }
        Turn { pass, iteration, works, next: iteration + 1, begins: &self.works[0] }
    }

    /// The passes of a pattern; `None` if its ranks differ, or if they do something that a pass does not have.
    pub(super) fn new(program: &dyn StepProgram, costs: &[Cost]) -> Option<Self> {
        // A first rank that does nothing stands for no other.
        if program.rank_steps(0) == 0 || program.rank_steps(0) > MAX_PASSES {
            return None;
        }
        let mut passes = vec![Pass::default()];
        let mut works = vec![Vec::new()];
        let mut sent_costs = Vec::new();
        for step in 0..program.rank_steps(0) {
            match program.uniform_step(step)? {
                UniformStep::Idle => {}
                UniformStep::Calc(shape) => {
                    let cost = costs.get(shape as usize).filter(|cost| cost.kind == Kind::Calc)?;
                    passes.last_mut()?.work += cost.work as i64;
                    works.last_mut()?.push(cost.work as i64);
                }
                UniformStep::Exchange { peers, sent, received } => {
                    let (send, receive) = (costs.get(sent as usize)?, costs.get(received as usize)?);
                    // What arrives costs what its send says.
                    let same =
                        send.tag == receive.tag && send.kind == Kind::Send && receive.kind == Kind::Recv;
                    if !same || send.rendezvous || !is_playable(send) || !is_playable(receive) {
                        return None;
                    }
                    sent_costs.push(*send);
                    let cost = MessageCost::new(send);
                    passes.last_mut()?.send = Some(cost);
                    passes.push(Pass { handling: Some(Handling { peers, cost }), ..Pass::default() });
                    works.push(Vec::new());
                }
            }
        }
        // Copies delay a CPU and not its message, for which a pass has no time.
        let costs = || passes.iter().filter_map(|pass| pass.send);
        if costs().any(|cost| cost.copy > 0) || !has_one_latency(&sent_costs) {
            return None;
        }
        let has_gaps = costs().any(|cost| cost.has_gaps());
        let first = passes.remove(0);
        let last = match passes.last_mut() {
            None => first,
            Some(last) => {
                let alone = *last;
                last.work += first.work;
                last.send = first.send;
                alone
            }
        };
        Some(Self { first, passes, last, has_gaps, works })
    }
}
