//! Random numbers by index, so that a draw does not depend on the order in which threads ask for it.

/// A stream of random numbers in which the n-th is a pure function of seed, stream name and n.
///
/// SplitMix64 read by position (Steele, Lea & Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014), in the counter-based manner of Salmon et al. (SC 2011). Two jobs that share a seed share the
/// draws of the nodes that they share: common random numbers, which make curves over scale smooth.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    key: u64,
}

/// 2⁶⁴ / golden ratio, odd: SplitMix64's step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Draws {
    /// The stream named by `path` under a seed; any two different paths give unrelated streams.
    pub fn new(seed: u64, path: &[u64]) -> Self {
        let key = path
            .iter()
            .fold(mix(seed ^ STEP), |key, &part| mix(mix(key).wrapping_add(part.wrapping_mul(STEP))));
        Self { key }
    }

    /// The `index`-th number: uniform over all 64-bit values.
    pub fn at(&self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_add(1).wrapping_mul(STEP)))
    }

    /// The `index`-th number as a fraction of `bound`: uniform in `0..bound` (0 for bound 0), biased by less
    /// than `bound`/2⁶⁴.
    pub fn below(&self, index: u64, bound: u64) -> u64 {
        ((u128::from(self.at(index)) * u128::from(bound)) >> 64) as u64
    }

    /// The `index`-th number as a real in `[0, 1)`.
    pub fn unit(&self, index: u64) -> f64 {
        (self.at(index) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The `index`-th number as a real in `[-1, 1)`.
    pub fn signed(&self, index: u64) -> f64 {
        2.0 * self.unit(index) - 1.0
    }
}

/// SplitMix64's finaliser (Stafford's variant 13).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_its_range_evenly() {
        let draws = Draws::new(7, &[1, 2]);
        let mut counts = [0u32; 10];
        (0..100_000).for_each(|i| counts[draws.below(i, 10) as usize] += 1);
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        let mean = (0..100_000).map(|i| draws.signed(i)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.01, "{mean}");
    }

    #[test]
    fn streams_differ_by_every_part_of_their_name() {
        let first = |seed, path: &[u64]| Draws::new(seed, path).at(0);
        let all =
            [first(1, &[0, 0]), first(1, &[0, 1]), first(1, &[1, 0]), first(2, &[0, 0]), first(1, &[0])];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b));
        }
    }
}
