//! How much the kernel recorder lengthens what it observes, from pairs of blocks with its programs attached and without.

use std::collections::BTreeMap;

use quell_recording::{Nanos, RecorderEffect};

use crate::stats::centre;

/// Longer detours are mostly other tasks, which come and go without regard for the recorder.
pub const BELOW: Nanos = Nanos::from_nanos(100_000);

/// How many detours of one block have each length, in ns. The lengths of a CPU fill the block at most, so it has fewer than √(2 · block)
/// of them: 14,142 in 100 ms, however many detours there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block(BTreeMap<u64, u64>);

impl Block {
    /// Adds a detour, if it is short enough to count.
    pub fn add(&mut self, duration: Nanos) {
        if duration < BELOW {
            *self.0.entry(duration.as_nanos()).or_default() += 1;
        }
    }

    fn total_ns(&self) -> u64 {
        self.0.iter().map(|(length, count)| length * count).sum()
    }

    /// The length at which half of the time is reached, if the detours are added up by their length. Most of the time is in a few
    /// interrupts that recur, and this is their length, whatever else happens in the block.
    fn half_time_length(&self) -> Option<f64> {
        let half = self.total_ns().div_ceil(2);
        let mut sum = 0;
        let reached = |(length, count): &(&u64, &u64)| {
            sum += **length * **count;
            sum >= half
        };
        self.0.iter().find(reached).map(|(length, _)| *length as f64)
    }
}

/// The effect, from pairs of a block without the programs and one with them: the centre of the ratios of their half-time lengths, on a
/// logarithmic scale, so that twice and half as long weigh the same. `None` if there are fewer than six pairs in which both blocks have
/// detours.
pub fn effect(pairs: &[(Block, Block)], block: Nanos) -> Option<RecorderEffect> {
    let ratio = |(without, with): &(Block, Block)| {
        Some((with.half_time_length()? / without.half_time_length()?).ln())
    };
    let ratios: Vec<f64> = pairs.iter().filter_map(ratio).collect();
    let found = centre(&ratios)?;
    let without: u64 = pairs.iter().map(|(without, _)| without.total_ns()).sum();
    let percent = |ratio: f64| 100.0 * ratio.exp_m1();
    Some(RecorderEffect {
        pairs: ratios.len() as u64,
        block_ns: block.as_nanos(),
        below_ns: BELOW.as_nanos(),
        without_ns_per_s: 1e9 * without as f64 / (pairs.len() as u64 * block.as_nanos()) as f64,
        percent: percent(found.centre),
        low_percent: percent(found.low),
        high_percent: percent(found.high),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    /// A block with `count` interrupts of about 10 µs, many short detours, and a rare long one.
    fn block(count: u64, seed: u64, factor: f64) -> Block {
        let mut block = Block::default();
        for i in 0..count {
            let wobble = (i * 7919 + seed * 104_729) % 2_000;
            block.add(Nanos::from_nanos(((10_000 + wobble) as f64 * factor) as u64));
            block.add(Nanos::from_nanos(200 + wobble / 10));
        }
        if seed.is_multiple_of(5) {
            block.add(Nanos::from_nanos(60_000 + 1_000 * seed));
        }
        block.add(Nanos::from_nanos(5_000_000));
        block
    }

    fn pairs(number: u64, factor: f64) -> Vec<(Block, Block)> {
        // Their number varies, which is not the recorder's doing.
        (0..number).map(|i| (block(20 + i % 7, 2 * i, 1.0), block(20 + i % 5, 2 * i + 1, factor))).collect()
    }

    #[test]
    fn the_length_is_found_whatever_else_happens() {
        let found = effect(&pairs(40, 1.05), Nanos::from_nanos(1_000_000)).unwrap();
        assert!(found.low_percent < 5.0 && 5.0 < found.high_percent, "{found:?}");
        assert!((found.high_percent - found.low_percent) < 4.0 && found.pairs == 40, "{found:?}");
        let none = effect(&pairs(40, 1.0), Nanos::from_nanos(1_000_000)).unwrap();
        assert!(none.low_percent < 0.0 && 0.0 < none.high_percent, "{none:?}");
    }

    #[test]
    fn half_of_the_time_is_reached_at_a_length_that_recurs() {
        let lengths = |lengths: &[u64]| {
            let mut block = Block::default();
            lengths.iter().for_each(|length| block.add(Nanos::from_nanos(*length)));
            block.half_time_length()
        };
        assert_eq!(lengths(&[]), None);
        assert_eq!(lengths(&[200_000]), None);
        assert_eq!(lengths(&[7]), Some(7.0));
        // 1,000 ns in all, of which the lengths up to 90 make 100, and those up to 100 make 700.
        assert_eq!(lengths(&[300, 100, 100, 10, 100, 100, 90, 100, 100]), Some(100.0));
        assert_eq!(lengths(&[501, 100, 100, 10, 100, 90, 99]), Some(501.0));
    }

    #[test]
    fn too_few_pairs_and_empty_blocks_say_nothing() {
        assert_eq!(effect(&pairs(5, 1.0), Nanos::from_nanos(1)), None);
        let empty = vec![(Block::default(), block(20, 1, 1.0)); 40];
        assert_eq!(effect(&empty, Nanos::from_nanos(1)), None);
    }
}
