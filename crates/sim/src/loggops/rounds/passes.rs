//! Plays passes over all ranks: block after block where the cache holds a block's ranks, on several threads.

use std::ops::{ControlFlow, Range};

use rayon::prelude::*;

use super::arrays::Arrays;
use super::kernel::{Isa, Own, Times};
use super::plan::{Pass, Plan};
use super::walk::Walks;

/// Numbers of ranks whose times fit the second and the first cache of a core.
const CACHES: [usize; 2] = [1 << 14, 1 << 10];
/// Minimum number of ranks of a block for a thread: below, threads wait more than they work.
const MIN_BLOCK: usize = if cfg!(debug_assertions) { 8 } else { 1 << 12 };

/// Plays a plan.
#[derive(Debug)]
pub(super) struct Player<'a> {
    pub(super) plan: &'a Plan,
    pub(super) iterations: u32,
    pub(super) walks: Option<&'a Walks<'a>>,
    pub(super) isa: Isa,
    pub(super) pool: Option<&'a rayon::ThreadPool>,
    /// Number of ranks that a thread plays before it has to wait for others.
    pub(super) share: usize,
}

/// Number of ranks of a thread's block.
pub(super) fn share(ranks: usize, threads: usize) -> usize {
    if threads == 1 {
        return ranks.next_power_of_two();
    }
    let share = (ranks / threads).max(MIN_BLOCK);
    // Partners by bits of their numbers are closed within blocks of a power of two.
    if share.is_power_of_two() { share } else { share.next_power_of_two() / 2 }
}

impl Player<'_> {
    /// Plays some passes of the run. Calls `played` with the number of passes since its last call; it may stop the run.
    pub(super) fn play(
        &self,
        arrays: &mut Arrays,
        mut numbers: Range<u64>,
        played: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while !numbers.is_empty() {
            let passes = self.plan.passes_of(numbers.clone(), self.iterations);
            self.list(passes, arrays, played)?;
            numbers.start += passes.len() as u64;
        }
        ControlFlow::Continue(())
    }

    /// The same, and records what each rank waited for last in each pass: pass after pass, a byte per rank.
    pub(super) fn record(
        &self,
        arrays: &mut Arrays,
        numbers: Range<u64>,
        choices: &mut Vec<u8>,
        played: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let ranks = arrays.times.len();
        choices.resize((numbers.end - numbers.start) as usize * ranks, 0);
        for (number, choices) in numbers.zip(choices.chunks_mut(ranks.max(1))) {
            self.over_all(self.plan.turn(number, self.iterations).pass, arrays, choices);
            std::mem::swap(&mut arrays.times, &mut arrays.after);
            played(1)?;
        }
        ControlFlow::Continue(())
    }

    /// Plays passes over all ranks, one group after the other.
    fn list(
        &self,
        mut passes: &[Pass],
        arrays: &mut Arrays,
        played: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while !passes.is_empty() {
            let closed = closed(passes, self.share);
            if closed > 0 {
                self.within_blocks(&passes[..closed], arrays);
            } else {
                self.over_all(&passes[0], arrays, &mut []);
            }
            let (group, rest) = passes.split_at(closed.max(1));
            if group.len() % 2 == 1 {
                std::mem::swap(&mut arrays.times, &mut arrays.after);
            }
            passes = rest;
            played(group.len() as u64)?;
        }
        ControlFlow::Continue(())
    }

    /// Plays passes that need nothing from outside their block, all on one block after the other.
    fn within_blocks(&self, passes: &[Pass], arrays: &mut Arrays) {
        let share = self.share;
        let (before, after, own) = arrays.parts();
        let blocks = before.chunks_mut(share).zip(after.chunks_mut(share)).zip(own.blocks(share));
        let play = |((before, after), mut own): ((&mut [i64], &mut [i64]), Own<'_>)| {
            self.block(passes, before, after, &mut own, &CACHES);
        };
        match self.pool {
            None => blocks.for_each(play),
            Some(pool) => {
                let blocks: Vec<_> = blocks.collect();
                pool.install(|| blocks.into_par_iter().for_each(play));
            }
        }
    }

    /// Plays a pass that needs any rank.
    fn over_all(&self, pass: &Pass, arrays: &mut Arrays, choices: &mut [u8]) {
        let share = if self.pool.is_some() { self.share } else { usize::MAX };
        let (before, after, own) = arrays.parts();
        let own = Own { choices, ..own };
        let (before, share) = (&*before, share.min(after.len()).max(1));
        let blocks = after.chunks_mut(share).zip(own.blocks(share)).enumerate();
        let play = |(number, (after, mut own)): (usize, (&mut [i64], Own<'_>))| {
            self.isa.play(pass, self.walks, Times { before, at: number * share, after }, &mut own);
        };
        match self.pool {
            None => blocks.for_each(play),
            Some(pool) => {
                let blocks: Vec<_> = blocks.collect();
                pool.install(|| blocks.into_par_iter().for_each(play));
            }
        }
    }

    /// Plays passes on a block, those of close partners within smaller blocks.
    fn block(
        &self,
        mut passes: &[Pass],
        before: &mut [i64],
        after: &mut [i64],
        own: &mut Own<'_>,
        caches: &[usize],
    ) {
        let (mut before, mut after) = (before, after);
        while let Some(pass) = passes.first() {
            let smaller = caches.iter().position(|&size| size < before.len());
            let group = match smaller.map(|at| (caches[at], &caches[at + 1..])) {
                Some((size, caches)) if closed(passes, size) > 1 => {
                    let group = closed(passes, size);
                    let blocks = before.chunks_mut(size).zip(after.chunks_mut(size));
                    for ((before, after), mut own) in blocks.zip(own.reborrow().blocks(size)) {
                        self.block(&passes[..group], before, after, &mut own, caches);
                    }
                    group
                }
                _ => {
                    self.isa.play(pass, self.walks, Times { before, at: 0, after }, own);
                    1
                }
            };
            if group % 2 == 1 {
                std::mem::swap(&mut before, &mut after);
            }
            passes = &passes[group..];
        }
    }
}

/// Number of passes from the first on that need nothing from outside aligned blocks of `size` ranks.
fn closed(passes: &[Pass], size: usize) -> usize {
    passes.iter().take_while(|pass| pass.closed_within().is_some_and(|within| within <= size)).count()
}
