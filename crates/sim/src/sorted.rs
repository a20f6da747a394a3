//! Sorted keys that count the keys below a value in constant time on average.

/// Ascending keys with an index of buckets of equal width over them, about one bucket per key.
///
/// Many keys in one bucket cost a binary search within it, never a linear one.
#[derive(Clone, Debug)]
pub(crate) struct Sorted {
    keys: Vec<u64>,
    shift: u32,
    /// Number of keys below bucket `b`, which begins at `b << shift`.
    below_bucket: Vec<u32>,
}

impl Sorted {
    /// Indexes ascending keys, fewer than 2³² of them.
    pub(crate) fn new(keys: Vec<u64>) -> Self {
        debug_assert!(keys.is_sorted());
        let top = keys.last().copied().unwrap_or(0);
        let shift = (0..63).find(|shift| top >> shift <= keys.len() as u64).unwrap_or(63);
        let buckets = (top >> shift) as usize + 1;
        let mut below_bucket = Vec::with_capacity(buckets + 1);
        let mut below = 0;
        for bucket in 0..=buckets as u64 {
            while keys.get(below).is_some_and(|key| key >> shift < bucket) {
                below += 1;
            }
            below_bucket.push(below as u32);
        }
        Self { keys, shift, below_bucket }
    }

    /// Sorts keys of any order and drops duplicates; for evenly distributed keys in linear time.
    pub(crate) fn from_any_order(keys: &[u64]) -> Self {
        let top = keys.iter().copied().max().unwrap_or(0);
        let shift = (0..63).find(|shift| top >> shift <= keys.len() as u64).unwrap_or(63);
        let bucket = |key: u64| (key >> shift) as usize;
        // Where the next key of each bucket goes; after all keys were placed, where the bucket ends.
        let mut ends = vec![0; bucket(top) + 2];
        keys.iter().for_each(|&key| ends[bucket(key) + 1] += 1);
        (1..ends.len()).for_each(|b| ends[b] += ends[b - 1]);
        let mut sorted = vec![0; keys.len()];
        for &key in keys {
            let place = &mut ends[bucket(key)];
            sorted[*place] = key;
            *place += 1;
        }
        let mut first = 0;
        for end in ends {
            sorted[first..end].sort_unstable();
            first = end;
        }
        sorted.dedup();
        Self::new(sorted)
    }

    /// Number of keys below `value`.
    pub(crate) fn below(&self, value: u64) -> usize {
        let bucket = (value >> self.shift) as usize;
        let Some(&[first, end]) = self.below_bucket.get(bucket..).and_then(|b| b.first_chunk()) else {
            return self.keys.len();
        };
        let (first, end) = (first as usize, end as usize);
        first + self.keys[first..end].partition_point(|&key| key < value)
    }

    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_order_becomes_ascending(
            keys in proptest::collection::vec(prop_oneof![0u64..50, 0u64..10_000, any::<u64>()], 0..200),
        ) {
            let sorted = Sorted::from_any_order(&keys);
            let expected: std::collections::BTreeSet<u64> = keys.into_iter().collect();
            prop_assert_eq!(sorted.keys(), expected.into_iter().collect::<Vec<u64>>());
        }

        #[test]
        fn counts_like_a_walk(
            mut keys in proptest::collection::vec(prop_oneof![0u64..50, 0u64..10_000, any::<u64>()], 0..60),
            probes in proptest::collection::vec(prop_oneof![0u64..60, any::<u64>()], 1..40),
        ) {
            keys.sort_unstable();
            let sorted = Sorted::new(keys.clone());
            for value in probes.into_iter().chain(keys.clone()).chain([0, u64::MAX]) {
                prop_assert_eq!(sorted.below(value), keys.iter().filter(|&&key| key < value).count());
            }
        }
    }
}
