//! How sizes change with the number of ranks.

use quell_recording::mpi::Operation as Op;
use rustc_hash::FxHashMap;

use super::expand::What;
use super::grid::Grid;
use super::lockstep::{Line, Merged, Message};
use super::way::Way;

/// What more ranks do with the program's problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// Each rank has as much of it as the traced ones had.
    #[default]
    Weak,
    /// The same problem is divided among them.
    Strong,
}

/// Blocks of up to this many bytes are one number for each rank, such as a count, and stay as they are.
const NUMBER_BYTES: u64 = 8;

impl Scaling {
    /// Work of a rank of `to`, where one of `from` worked for `ns`.
    pub(super) fn work(self, ns: u64, from: u32, to: u32) -> u64 {
        match self {
            Self::Weak => ns,
            Self::Strong => divided(ns, u64::from(from), u64::from(to)),
        }
    }

    /// A collective of `from` ranks as one of `to`.
    pub(super) fn collective(self, what: &What, from: u32, to: u32) -> What {
        // How often the block of a rank is divided by the number of ranks.
        let weak = match what.operation {
            Op::Alltoall | Op::Alltoallv | Op::Alltoallw => 1,
            Op::Allgather | Op::Allgatherv | Op::Gather | Op::Gatherv | Op::Scatter | Op::Scatterv => 0,
            Op::ReduceScatter | Op::ReduceScatterBlock => 0,
            // The same vector on all ranks.
            _ => return *what,
        };
        let divisions = weak + u32::from(self == Self::Strong);
        if what.bytes <= NUMBER_BYTES {
            return *what;
        }
        let power = |ranks: u32| u64::from(ranks).saturating_pow(divisions);
        What { bytes: divided(what.bytes, power(from), power(to)).max(1), ..*what }
    }
}

fn divided(total: u64, times: u64, by: u64) -> u64 {
    let exact = (u128::from(total) * u128::from(times)).div_ceil(u128::from(by.max(1)));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

/// The place among `from` that is like this one of `to`: ends are like ends, and what is between is spread evenly.
pub(super) fn corresponding(at: u32, from: u32, to: u32) -> u32 {
    let (at, from, to) = (u64::from(at), u64::from(from), u64::from(to));
    let place = if at == 0 || from <= 1 {
        0
    } else if at + 1 >= to {
        from - 1
    } else if from == 2 {
        u64::from(2 * at >= to)
    } else {
        1 + (at - 1) * (from - 2) / (to - 2)
    };
    place as u32
}

/// The ranks of a dimension that have a message, by their coordinates.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u32,
    count: u32,
}

fn span(message: &Message, grid: &Grid, dimension: usize) -> Span {
    match message.line {
        Some(line) if line.dimension == dimension => Span { first: line.at(grid), count: 1 },
        _ => {
            let (first, count) = message.way.span(grid, dimension);
            Span { first, count }
        }
    }
}

/// The sizes of a message, the direction that it takes, the dimensions across to it, and its ranks if they are at an end.
type Distribution = (u32, Way, Vec<bool>, Option<Line>);

/// Sizes of the messages of the ranks of another grid.
#[derive(Debug)]
pub(super) struct Sizes<'a> {
    merged: &'a Merged,
    from: &'a Grid,
    to: &'a Grid,
    scaling: Scaling,
    /// For each distribution of sizes in a direction, those of all new ranks, if the problem is divided.
    divided: FxHashMap<Distribution, Vec<u64>>,
}

impl<'a> Sizes<'a> {
    pub fn new(merged: &'a Merged, from: &'a Grid, to: &'a Grid, scaling: Scaling) -> Self {
        Self { merged, from, to, scaling, divided: FxHashMap::default() }
    }

    /// The bytes that a rank sends; `None` if it sends nothing.
    pub fn bytes(&mut self, message: &Message, rank: u32) -> Option<u64> {
        if message.line.is_some_and(|line| !line.has(self.to, rank)) {
            return None;
        }
        let bytes = self.merged.sizes[message.sizes as usize][self.like(message, rank)?]?;
        if self.scaling == Scaling::Weak || bytes <= NUMBER_BYTES {
            return Some(bytes);
        }
        let Self { merged, from, to, .. } = *self;
        let key = (message.sizes, message.way.clone(), message.across.clone(), message.line);
        let all = self.divided.entry(key).or_insert_with(|| divide(merged, message, from, to));
        all.get(rank as usize).map(|bytes| (*bytes).max(1))
    }

    /// The traced rank whose place is like that of a new one, among those that have the message.
    fn like(&self, message: &Message, rank: u32) -> Option<usize> {
        let (mut like, mut stride, mut left) = (0, 1, rank);
        for dimension in (0..self.to.dims.len()).rev() {
            let at = left % self.to.dims[dimension];
            left /= self.to.dims[dimension];
            let (old, new) = (span(message, self.from, dimension), span(message, self.to, dimension));
            if old.count == 0 || !(new.first..new.first + new.count).contains(&at) {
                return None;
            }
            like += stride * (old.first + corresponding(at - new.first, old.count, new.count)) as usize;
            stride *= self.from.dims[dimension] as usize;
        }
        Some(like)
    }
}

/// The sizes of all new ranks, if the same problem is divided among them: across the message, the sum of a line of ranks stays the same.
fn divide(merged: &Merged, message: &Message, from: &Grid, to: &Grid) -> Vec<u64> {
    let traced = &merged.sizes[message.sizes as usize];
    let mut sizes: Vec<u64> = traced.iter().map(|bytes| bytes.unwrap_or(0)).collect();
    let mut inner: usize = from.dims.iter().map(|dim| *dim as usize).product();
    for dimension in 0..from.dims.len() {
        let (old_dim, new_dim) = (from.dims[dimension] as usize, to.dims[dimension] as usize);
        inner /= old_dim;
        let (old, new) = (span(message, from, dimension), span(message, to, dimension));
        let on_line = message.line.is_some_and(|line| line.dimension == dimension);
        let across = message.across[dimension] && !on_line;
        let outer = sizes.len() / (old_dim * inner);
        let mut more = vec![0; outer * new_dim * inner];
        for (row, column) in (0..outer).flat_map(|row| (0..inner).map(move |column| (row, column))) {
            let place = |at: u32, dim: usize| (row * dim + at as usize) * inner + column;
            let line: Vec<u64> =
                (old.first..old.first + old.count).map(|at| sizes[place(at, old_dim)]).collect();
            let resized = if across { redistributed(&line, new.count) } else { picked(&line, new.count) };
            for (at, bytes) in (new.first..).zip(resized) {
                more[place(at, new_dim)] = bytes;
            }
        }
        sizes = more;
    }
    sizes
}

fn picked(line: &[u64], count: u32) -> Vec<u64> {
    let like = |at| line.get(corresponding(at, line.len() as u32, count) as usize).copied().unwrap_or(0);
    (0..count).map(like).collect()
}

/// The sum of these sizes, as evenly as possible in units that divide them; the larger parts where they were.
fn redistributed(line: &[u64], count: u32) -> Vec<u64> {
    let total = line.iter().fold(0u64, |total, bytes| total.saturating_add(*bytes));
    let (Some(first), Some(last)) = (line.first(), line.last()) else { return vec![0; count as usize] };
    let parts = u64::from(count.max(1));
    let unit = if line.iter().any(|bytes| bytes != first) {
        line.iter().fold(0, |unit, bytes| gcd(unit, *bytes))
    } else {
        // Words, unless there are smaller elements.
        gcd(NUMBER_BYTES, *first)
    };
    let units = total / unit.max(1);
    let (each, rest) = (units / parts, units % parts);
    let larger = |at: u64| if first >= last { at < rest } else { at >= parts - rest };
    (0..parts).map(|at| (each + u64::from(larger(at))) * unit).collect()
}

fn gcd(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests;
