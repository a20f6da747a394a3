//! Applies what all ranks of a run did to more or fewer ranks: each works as long as one of the traced ranks did at the same step.

use quell_sim::goal::{Schedule, ScheduleBuilder};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::emit::Emitter;
use super::expand::{Expansions, What};
use super::grid::Grid;
use super::lockstep::{Doing, Message, Step};
use super::matching::collective_tag;
use super::regular::Regular;
use super::repeats::{Planned, plan};
use super::scaling::{Scaling, Sizes};
use super::{Extrapolation, GoalError, MOST_OPERATIONS};

/// The schedule of this number of ranks, and what was assumed.
pub(super) fn schedule(regular: &Regular, to: &Extrapolation) -> Result<(Schedule, String), GoalError> {
    let Some(grid) = regular.resized(to.ranks, to.dims.as_deref()) else {
        return Err(GoalError::NoGrid { ranks: to.ranks, grid: regular.grid.words() });
    };
    // The sizes of a problem that is divided are computed for all ranks at once.
    let sizes = if to.scaling == Scaling::Strong { regular.kinds_of_messages().max(1) as u64 } else { 1 };
    if sizes.saturating_mul(u64::from(to.ranks)) > MOST_OPERATIONS {
        return Err(GoalError::TooLarge);
    }
    let traced = regular.grid.ranks();
    let steps = &regular.merged.steps;
    let planned = plan(steps, &regular.repeats, &grid);
    let mut sizes = Sizes::new(&regular.merged, &regular.grid, &grid, to.scaling);
    let mut random = Pcg64Mcg::seed_from_u64(to.seed);
    let mut draw = |gaps: &[u64]| match gaps {
        [] => 0,
        _ => to.scaling.work(gaps[random.random_range(0..gaps.len())], traced, to.ranks),
    };
    let mut builder = ScheduleBuilder::new(to.ranks);
    let mut expansions = Expansions::default();
    let mut operations = 0;
    for rank in 0..to.ranks {
        let mut emitter = Emitter::begin(&mut builder);
        let mut work = 0u64;
        for (number, one) in planned.iter().enumerate() {
            let place = number as u32;
            let step = &steps[one.step];
            // A rank at an end of the grid has the work, but no neighbour.
            work = work.saturating_add(draw(&step.gaps));
            let message = message(one, step, steps, &grid, &mut sizes, rank);
            if message.is_none() && matches!(step.doing, Doing::Send(_) | Doing::Receive(..)) {
                continue;
            }
            let (peer, tag, bytes) = message.unwrap_or_default();
            emitter.work(std::mem::take(&mut work));
            match &step.doing {
                Doing::Send(_) => emitter.send(place, peer, tag, bytes),
                Doing::Receive(..) => emitter.receive(place, peer, tag, bytes),
                Doing::Wait(_) => emitter.wait(one.on),
                Doing::Collective { what, blocking } => {
                    // If the root does not exist any more, the last rank replaces it.
                    let what = What { root: what.root.min(to.ranks - 1), ..*what };
                    let what = to.scaling.collective(&what, traced, to.ranks);
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
        emitter.work(work.saturating_add(draw(&regular.merged.rests)));
        operations += u64::from(emitter.end());
    }
    if operations == 0 {
        return Err(GoalError::Empty);
    }
    Ok((builder.finish()?, regular.describe(&grid)))
}

/// Peer, tag and bytes of a rank's message at a step; `None` if it has none.
fn message(
    planned: &Planned,
    step: &Step,
    steps: &[Step],
    grid: &Grid,
    sizes: &mut Sizes<'_>,
    rank: u32,
) -> Option<(u32, u32, u64)> {
    let peer = |message: &Message| planned.way.as_ref().unwrap_or(&message.way).at(grid, rank);
    match &step.doing {
        Doing::Send(sent) => {
            let to = peer(sent)?;
            Some((to, sent.tag, sizes.bytes(sent, rank)?))
        }
        Doing::Receive(received, sent_by) => {
            let from = peer(received)?;
            // A receive is as large as its send.
            match steps.get(*sent_by as usize).map(|step| &step.doing) {
                Some(Doing::Send(sent)) => Some((from, sent.tag, sizes.bytes(sent, from)?)),
                _ => Some((from, received.tag, sizes.bytes(received, rank)?)),
            }
        }
        _ => None,
    }
}
