//! How much the kernel recorder lengthens what it observes, from pairs of blocks with its programs attached and without.

use quell_recording::{Nanos, RecorderEffect};

use crate::stats::centre;

/// Longer detours are mostly other tasks, which come and go without regard for the recorder.
pub const BELOW: Nanos = Nanos::from_nanos(100_000);

/// The lengths of the detours of one block, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block(Vec<u64>);

impl Block {
    /// Adds a detour, if it is short enough to count.
    pub fn add(&mut self, duration: Nanos) {
        if duration < BELOW {
            self.0.push(duration.as_nanos());
        }
    }

    fn total_ns(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The length at which half of the time is reached, if the detours are added up by their length. Most of the time is in a few
    /// interrupts that recur, and this is their length, whatever else happens in the block.
    fn half_time_length(&self) -> Option<f64> {
        let mut lengths = self.0.clone();
        lengths.sort_unstable();
        let half = self.total_ns().div_ceil(2);
        let mut sum = 0;
        let reached = |length: &&u64| {
            sum += **length;
            sum >= half
        };
        lengths.iter().find(reached).map(|length| *length as f64)
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
    fn too_few_pairs_and_empty_blocks_say_nothing() {
        assert_eq!(effect(&pairs(5, 1.0), Nanos::from_nanos(1)), None);
        let empty = vec![(Block::default(), block(20, 1, 1.0)); 40];
        assert_eq!(effect(&empty, Nanos::from_nanos(1)), None);
    }
}
