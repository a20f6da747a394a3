//! Why a program did not finish.

use super::matching::Entry;
use super::outcome::{Stuck, Waiting};
use super::program::{ANY, Program};
use super::rank::Rank;
use super::{Level, Run};

/// Maximum number of entries of each kind that are listed.
const NAMED: usize = 100;

/// What remains on the ranks when none can go on; `None` if the program has finished.
pub(super) fn find<P: Program, F>(program: &P, ranks: &[Rank<P::Rank, F>], run: &Run<'_>) -> Option<Stuck> {
    let mut stuck = Stuck::default();
    for (me, rank) in (0..).zip(ranks) {
        let waiting = |entry: &Entry| {
            let size = size(program, entry);
            Waiting { rank: me, op: entry.op, peer: entry.envelope.source, tag: entry.envelope.tag, size }
        };
        note(rank.posted.iter().map(waiting), &mut stuck.receives, &mut stuck.receives_total);
        note(rank.arrived.iter().map(waiting), &mut stuck.messages, &mut stuck.messages_total);
        let unfreed = program.unfreed(me, &rank.state);
        if unfreed > 0 && stuck.unfreed.len() < NAMED {
            stuck.unfreed.push((me, unfreed));
        }
        stuck.unfreed_total += unfreed;
    }
    if stuck == Stuck::default() {
        return None;
    }
    stuck.cycle = cycle(&waits(program, ranks, run));
    Some(stuck)
}

/// The size of a message or receive. Shapes repeat for each level of the network.
fn size<P: Program>(program: &P, entry: &Entry) -> u64 {
    let shapes = program.shapes();
    shapes[entry.shape as usize % shapes.len()].size
}

fn note(all: impl Iterator<Item = Waiting>, named: &mut Vec<Waiting>, total: &mut u64) {
    for waiting in all {
        if named.len() < NAMED {
            named.push(waiting);
        }
        *total += 1;
    }
}

/// The rank that each rank waits for: the source of its first receive, or the receiver that does not take its rendezvous;
/// [`ANY`] for none.
fn waits<P: Program, F>(program: &P, ranks: &[Rank<P::Rank, F>], run: &Run<'_>) -> Vec<u32> {
    let mut waits: Vec<u32> = ranks
        .iter()
        .map(|rank| {
            let mut sources = rank.posted.iter().map(|entry| entry.envelope.source);
            sources.find(|&source| (source as usize) < ranks.len()).unwrap_or(ANY)
        })
        .collect();
    for (me, rank) in (0..).zip(ranks) {
        for entry in rank.arrived.iter() {
            let near = Level::of_pair(run.levels, me, entry.envelope.source).map(|level| &run.levels[level]);
            let network = near.map_or(&run.net, |level| &level.network);
            let synchronous = size(program, entry) > network.eager_limit;
            let sender = &mut waits[entry.envelope.source as usize];
            if synchronous && *sender == ANY {
                *sender = me;
            }
        }
    }
    waits
}

/// A cycle of ranks that wait for one another, from its lowest rank on; empty if there is none.
fn cycle(waits: &[u32]) -> Vec<u32> {
    // 0: not seen; otherwise the number of the walk that saw it.
    let mut seen = vec![0u32; waits.len()];
    for start in 0..waits.len() {
        let walk = start as u32 + 1;
        let mut at = start;
        while seen[at] == 0 {
            seen[at] = walk;
            match waits[at] {
                ANY => break,
                next => at = next as usize,
            }
        }
        if seen[at] == walk && waits[at] != ANY {
            return circle_through(waits, at);
        }
    }
    Vec::new()
}

fn circle_through(waits: &[u32], start: usize) -> Vec<u32> {
    let mut ranks = vec![start as u32];
    let mut at = waits[start];
    while at as usize != start {
        ranks.push(at);
        at = waits[at as usize];
    }
    let lowest = ranks.iter().enumerate().min_by_key(|(_, rank)| **rank).map_or(0, |(index, _)| index);
    ranks.rotate_left(lowest);
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_circle_and_no_more() {
        assert_eq!(cycle(&[1, 2, 0]), [0, 1, 2]);
        assert_eq!(cycle(&[ANY, 3, 1, 2]), [1, 3, 2]);
        assert_eq!(cycle(&[1, ANY, 1]), [0u32; 0]);
        assert_eq!(cycle(&[1, 1]), [1]);
        assert_eq!(cycle(&[]), [0u32; 0]);
    }

    #[test]
    fn a_hundred_are_listed_and_all_are_counted() {
        let waiting = |op| Waiting { rank: 0, op, peer: 0, tag: 0, size: 0 };
        for (count, listed) in [(99, 99), (100, 100), (101, 100)] {
            let (mut named, mut total) = (Vec::new(), 0);
            note((0..count).map(waiting), &mut named, &mut total);
            assert_eq!((named.len(), total), (listed, u64::from(count)));
        }
    }
}
