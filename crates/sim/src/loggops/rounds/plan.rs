//! A pattern in which all ranks do the same, as a sequence of passes over all ranks.

use super::cost::{MessageCost, is_playable};
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
}

/// Maximum number of passes of an iteration: 30 MB.
const MAX_PASSES: u32 = 1 << 18;

impl Plan {
    /// All passes.
    pub(super) fn all(&self) -> impl Iterator<Item = &Pass> {
        [&self.first, &self.last].into_iter().chain(&self.passes)
    }

    /// The passes of a pattern; `None` if its ranks differ, or if they do something that a pass does not have.
    pub(super) fn new(program: &dyn StepProgram, costs: &[Cost]) -> Option<Self> {
        if program.rank_steps(0) > MAX_PASSES {
            return None;
        }
        let mut passes = vec![Pass::default()];
        for step in 0..program.rank_steps(0) {
            match program.uniform_step(step)? {
                UniformStep::Idle => {}
                UniformStep::Calc(shape) => {
                    let cost = costs.get(shape as usize).filter(|cost| cost.kind == Kind::Calc)?;
                    passes.last_mut()?.work += cost.work as i64;
                }
                UniformStep::Exchange { peers, sent, received } => {
                    let (send, receive) = (costs.get(sent as usize)?, costs.get(received as usize)?);
                    // What arrives costs what its send says.
                    let same =
                        send.tag == receive.tag && send.kind == Kind::Send && receive.kind == Kind::Recv;
                    if !same || send.rendezvous || !is_playable(send) || !is_playable(receive) {
                        return None;
                    }
                    let cost = MessageCost::new(send);
                    passes.last_mut()?.send = Some(cost);
                    passes.push(Pass { handling: Some(Handling { peers, cost }), ..Pass::default() });
                }
            }
        }
        let costs = || passes.iter().filter_map(|pass| pass.send);
        let latency = costs().next().map(|cost| cost.latency);
        // With one latency no message overtakes another. Copies delay a CPU and not its message, for which a pass has no time.
        if costs().any(|cost| cost.copy > 0 || Some(cost.latency) != latency) {
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
        Some(Self { first, passes, last, has_gaps })
    }
}
