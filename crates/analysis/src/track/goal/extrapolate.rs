//! Applies what all ranks of a run did to more or fewer ranks: each works as long as one of the traced ranks did at the same step.

use quell_sim::goal::{Schedule, ScheduleBuilder};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::emit::Emitter;
use super::expand::Expansions;
use super::matching::collective_tag;
use super::regular::{Regular, RelativeOperation};
use super::{Extrapolation, GoalError, MOST_OPERATIONS};

/// The schedule of this number of ranks. Sizes and work per rank stay the same.
pub(super) fn schedule(regular: &Regular, to: Extrapolation) -> Result<Schedule, GoalError> {
    let Some(grid) = regular.grid.resized(to.ranks, regular.ways()) else {
        return Err(GoalError::NoGrid { ranks: to.ranks, grid: regular.grid.words() });
    };
    let mut random = Pcg64Mcg::seed_from_u64(to.seed);
    let mut draw = |gaps: &[u64]| if gaps.is_empty() { 0 } else { gaps[random.random_range(0..gaps.len())] };
    let mut builder = ScheduleBuilder::new(to.ranks);
    let mut expansions = Expansions::default();
    let mut operations = 0;
    for rank in 0..to.ranks {
        let mut emitter = Emitter::begin(&mut builder);
        let mut work = 0u64;
        for (number, (op, way, gaps)) in regular.ops.iter().enumerate() {
            let place = number as u32;
            let there = way.as_ref().map(|way| grid.at(rank, way));
            // A rank at an end of the grid has the work, but no neighbour.
            work = work.saturating_add(draw(gaps));
            if there == Some(None) {
                continue;
            }
            let there = there.flatten().unwrap_or(0);
            emitter.work(std::mem::take(&mut work));
            match op {
                RelativeOperation::Send { tag, bytes, .. } => emitter.send(place, there, *tag, *bytes),
                RelativeOperation::Receive { tag, bytes, .. } => emitter.receive(place, there, *tag, *bytes),
                RelativeOperation::Wait(on) => emitter.wait(*on),
                RelativeOperation::Collective { what, blocking } => {
                    // If the root does not exist any more, the last rank replaces it.
                    let what = super::expand::What { root: what.root.min(to.ranks - 1), ..*what };
                    let pattern = expansions.get(&what, to.ranks)?;
                    emitter.collective(place, pattern, rank, None, collective_tag(number));
                    if *blocking {
                        emitter.wait_alone(place);
                    }
                }
            }
            if operations + u64::from(emitter.len()) > MOST_OPERATIONS {
                return Err(GoalError::TooLarge);
            }
        }
        emitter.work(work.saturating_add(draw(&regular.rests)));
        operations += u64::from(emitter.end());
    }
    if operations == 0 { Err(GoalError::Empty) } else { Ok(builder.finish()?) }
}
