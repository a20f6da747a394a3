//! The arrays of a run: one number per rank and quantity.

use super::kernel::Own;
use super::walk::{Cursor, Walks};
use crate::loggops::RankClocks;

/// All ranks.
#[derive(Clone, Debug)]
pub(super) struct Arrays {
    /// When each rank's last message left, or its CPU was free …
    pub(super) times: Vec<i64>,
    /// … and the same after the pass that is being played.
    pub(super) after: Vec<i64>,
    next: Vec<i64>,
    cursors: Vec<Cursor>,
    lost: Vec<u64>,
    out: Vec<i64>,
    inward: Vec<i64>,
}

impl Arrays {
    /// All ranks at time 0.
    pub(super) fn new(ranks: usize, noise: Option<(&Walks<'_>, &RankClocks)>, has_gaps: bool) -> Self {
        let gaps = if has_gaps { ranks } else { 0 };
        let places = noise.map_or(&[][..], |(_, clocks)| clocks.places());
        let mut this = Self {
            times: vec![0; ranks],
            after: vec![0; ranks],
            next: Vec::with_capacity(places.len()),
            cursors: Vec::with_capacity(places.len()),
            lost: vec![0; if noise.is_some() { ranks } else { 0 }],
            out: vec![0; gaps],
            inward: vec![0; gaps],
        };
        if let Some((walks, _)) = noise {
            for place in &places[..ranks] {
                let (cursor, next) = walks.start(place.clock, place.offset);
                this.cursors.push(cursor);
                this.next.push(next);
            }
        }
        this
    }

    /// The times before and after a pass, and all else of all ranks.
    pub(super) fn parts(&mut self) -> (&mut [i64], &mut [i64], Own<'_>) {
        let own = Own {
            next: &mut self.next,
            cursors: &mut self.cursors,
            lost: &mut self.lost,
            out: &mut self.out,
            inward: &mut self.inward,
            choices: &mut [],
        };
        (&mut self.times, &mut self.after, own)
    }

    /// When a rank's last message left, or its CPU was free, and when its interface is free to send and to receive.
    pub(super) fn of_rank(&self, rank: u32) -> (i64, i64, i64) {
        let rank = rank as usize;
        let of = |numbers: &[i64]| numbers.get(rank).copied().unwrap_or(0);
        (self.times[rank], of(&self.out), of(&self.inward))
    }

    /// When each rank finished, and the noise that struck it.
    pub(super) fn into_results(self) -> (Vec<u64>, Vec<u64>) {
        let ranks = self.times.len();
        let noise = if self.lost.is_empty() { vec![0; ranks] } else { self.lost };
        (self.times.into_iter().map(|time| time as u64).collect(), noise)
    }
}

fn split<T>(numbers: &mut [T], at: usize) -> (&mut [T], &mut [T]) {
    numbers.split_at_mut(at.min(numbers.len()))
}

impl Own<'_> {
    /// The same for shorter use.
    pub(super) fn reborrow(&mut self) -> Own<'_> {
        Own {
            next: self.next,
            cursors: self.cursors,
            lost: self.lost,
            out: self.out,
            inward: self.inward,
            choices: self.choices,
        }
    }
}

impl<'a> Own<'a> {
    /// The first ranks of a block, and the others.
    pub(super) fn split_at(self, at: usize) -> (Self, Self) {
        let (next, next_rest) = split(self.next, at);
        let (cursors, cursors_rest) = split(self.cursors, at);
        let (lost, lost_rest) = split(self.lost, at);
        let (out, out_rest) = split(self.out, at);
        let (inward, inward_rest) = split(self.inward, at);
        let (choices, choices_rest) = split(self.choices, at);
        let rest = Self {
            next: next_rest,
            cursors: cursors_rest,
            lost: lost_rest,
            out: out_rest,
            inward: inward_rest,
            choices: choices_rest,
        };
        (Self { next, cursors, lost, out, inward, choices }, rest)
    }

    /// Blocks of `size` ranks; the last one has what is left.
    pub(super) fn blocks(self, size: usize) -> impl Iterator<Item = Own<'a>> {
        let mut rest = Some(self);
        std::iter::repeat_with(move || {
            let (block, others) = rest.take()?.split_at(size);
            rest = Some(others);
            Some(block)
        })
        .flatten()
    }
}
