//! Networks with levels: what a message costs depends on how near its ranks are.
//!
//! The costs of all shapes stand in one table, again for each level. The shape of an operation is that of its program, moved to its
//! level, so that everything that looks up a cost finds the right one.

use super::{ANY, Level, Peers, ReadyOp, RunError, StepProgram, UniformStep};

/// Finds the costs of operations by the ranks that they are between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels<'a> {
    levels: &'a [Level],
    /// Number of shapes of the program.
    shapes: u32,
}

/// Maximum number of levels of a network.
pub const MOST_LEVELS: usize = 8;

impl<'a> Levels<'a> {
    /// Checks that the table of costs can be numbered.
    pub(super) fn new(shapes: usize, levels: &'a [Level]) -> Result<Self, RunError> {
        let is_held = levels.len() <= MOST_LEVELS && shapes.saturating_mul(1 + levels.len()) < ANY as usize;
        match is_held {
            true => Ok(Self { levels, shapes: shapes as u32 }),
            false => Err(RunError::TooManyLevels { levels: levels.len(), shapes }),
        }
    }

    /// The number of a shape at the level of two ranks. A receive from any rank has the shape of far ones; what its message costs
    /// its send says.
    #[inline(always)]
    pub(super) fn shape(&self, me: u32, peer: u32, shape: u32) -> u32 {
        if self.levels.is_empty() { shape } else { self.near(me, peer, shape) }
    }

    fn near(&self, me: u32, peer: u32, shape: u32) -> u32 {
        let level = Level::of_pair(self.levels, me, peer).filter(|_| peer != ANY);
        self.at(level, shape)
    }

    fn at(&self, level: Option<usize>, shape: u32) -> u32 {
        level.map_or(shape, |level| shape + (level as u32 + 1) * self.shapes)
    }

    /// The level of all pairs of partners, if it is the same.
    fn of_all(&self, peers: Peers) -> Option<Option<usize>> {
        if self.levels.is_empty() {
            return Some(None);
        }
        // Ranks whose numbers differ in some bits are near if all of these bits are within the number of near ranks.
        match peers {
            Peers::Xor(bits) if self.levels.iter().all(|level| level.ranks.is_power_of_two()) => {
                Some(self.levels.iter().position(|level| bits < level.ranks))
            }
            Peers::Xor(_) | Peers::Ahead(_) => None,
        }
    }
}

/// A program in steps whose operations have the shapes of their levels.
pub(super) struct OnLevels<'a> {
    pub(super) steps: &'a dyn StepProgram,
    pub(super) levels: Levels<'a>,
}

impl StepProgram for OnLevels<'_> {
    fn iterations(&self) -> u32 {
        self.steps.iterations()
    }

    fn iteration_totals(&self) -> Option<(u64, u64)> {
        self.steps.iteration_totals()
    }

    fn rank_steps(&self, rank: u32) -> u32 {
        self.steps.rank_steps(rank)
    }

    fn step(&self, rank: u32, step: u32, ops: &mut Vec<ReadyOp>) {
        let before = ops.len();
        self.steps.step(rank, step, ops);
        for op in &mut ops[before..] {
            op.shape = self.levels.shape(rank, op.peer, op.shape);
        }
    }

    fn meets_in_steps(&self) -> bool {
        self.steps.meets_in_steps()
    }

    fn uniform_step(&self, step: u32) -> Option<UniformStep> {
        Some(match self.steps.uniform_step(step)? {
            UniformStep::Exchange { peers, sent, received } => {
                let level = self.levels.of_all(peers)?;
                let [sent, received] = [sent, received].map(|shape| self.levels.at(level, shape));
                UniformStep::Exchange { peers, sent, received }
            }
            same => same,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::loggops::{NO_PROGRESS, Network, Noise, PerByte, Rules, Run, Speed, run, speed};
    use crate::pattern::{Params, by_name};

    fn network(latency: u64, overhead: u64) -> Network {
        let gap_per_byte = PerByte::default();
        Network { latency, overhead, gap: 0, gap_per_byte, ..Network::default() }
    }

    /// Two steps among near ranks, and one between far ones: three times 2·o + L, by hand.
    #[test]
    fn near_ranks_exchange_on_their_own_network() {
        let levels = [(2, network(100, 10)), (4, network(300, 20))];
        let levels = levels.map(|(ranks, network)| Level { ranks, network, ranges: Vec::new() });
        let params = Params { ranks: 8, bytes: 1, ..Params::default() };
        let time = |rules, levels: &[Level]| {
            let program = by_name("allreduce", &params).unwrap();
            let run_by = Run {
                net: network(1000, 30),
                ranges: &[],
                levels,
                rules,
                noise: &Noise::None,
                threads: 1,
                progress: NO_PROGRESS,
            };
            let finish = run(&program, &run_by).unwrap().finish;
            assert!(finish.iter().all(|time| *time == finish[0]), "{finish:?}");
            (finish[0], speed(&program, &run_by).unwrap())
        };
        let by_hand = 120 + 340 + 1060;
        assert_eq!(time(Rules::Call, &levels), (by_hand, Speed::Passes));
        assert_eq!(time(Rules::Physical, &levels), (by_hand, Speed::Events));
        assert_eq!(time(Rules::Call, &levels[..1]), (120 + 1060 + 1060, Speed::Passes));
        // Where steps have pairs of both levels, a list.
        let three = levels[..1].iter().map(|level| Level { ranks: 3, ..level.clone() }).collect::<Vec<_>>();
        let program = by_name("allreduce", &params).unwrap();
        let listed = Run {
            net: network(1000, 30),
            ranges: &[],
            levels: &three,
            rules: Rules::Call,
            noise: &Noise::None,
            threads: 1,
            progress: NO_PROGRESS,
        };
        assert_eq!(speed(&program, &listed).unwrap(), Speed::Listed);
    }
}
