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

/// Number of keys that are compared faster than a search takes to branch.
const FEW: usize = 4;

impl Sorted {
    /// Indexes ascending keys, fewer than 2³² of them.
    pub(crate) fn new(keys: Vec<u64>) -> Self {
        debug_assert!(keys.is_sorted());
        let top = keys.last().copied().unwrap_or(0);
        let (shift, below_bucket) = count(&keys, top);
        Self { keys, shift, below_bucket }
    }

    /// Sorts fewer than 2³² keys of any order and drops duplicates; for evenly distributed keys in linear time.
    pub(crate) fn from_any_order(keys: &[u64]) -> Self {
        let top = keys.iter().copied().max().unwrap_or(0);
        let (shift, mut below_bucket) = count(keys, top);
        // Where the next key of each bucket goes.
        let mut next = below_bucket.clone();
        let mut sorted = vec![0; keys.len()];
        for &key in keys {
            let place = &mut next[(key >> shift) as usize];
            sorted[*place as usize] = key;
            *place += 1;
        }
        let mut kept = 0;
        for bucket in 0..below_bucket.len() - 1 {
            let (first, end) = (below_bucket[bucket] as usize, below_bucket[bucket + 1] as usize);
            below_bucket[bucket] = kept as u32;
            if end - first > 1 {
                sorted[first..end].sort_unstable();
            }
            for at in first..end {
                if kept == 0 || sorted[kept - 1] != sorted[at] {
                    sorted[kept] = sorted[at];
                    kept += 1;
                }
            }
        }
        if let Some(all) = below_bucket.last_mut() {
            *all = kept as u32;
        }
        sorted.truncate(kept);
        Self { keys: sorted, shift, below_bucket }
    }

    /// Number of keys below `value`.
    pub(crate) fn below(&self, value: u64) -> usize {
        let bucket = (value >> self.shift) as usize;
        let Some(&[first, end]) = self.below_bucket.get(bucket..).and_then(|b| b.first_chunk()) else {
            return self.keys.len();
        };
        let (first, end) = (first as usize, end as usize);
        // Keys of later buckets are not below the value, so that a few can be compared without a branch.
        if end - first <= FEW
            && let Some(few) = self.keys.get(first..first + FEW)
        {
            return first + few.iter().map(|&key| usize::from(key < value)).sum::<usize>();
        }
        first + self.keys[first..end].partition_point(|&key| key < value)
    }

    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }
}

/// The width of a bucket, as a power of two, for about one bucket per key up to `top`, and the number of keys below each.
fn count(keys: &[u64], top: u64) -> (u32, Vec<u32>) {
    let shift = (0..63).find(|shift| top >> shift <= keys.len() as u64).unwrap_or(63);
    let mut below = vec![0u32; (top >> shift) as usize + 2];
    keys.iter().for_each(|&key| below[(key >> shift) as usize + 1] += 1);
    (1..below.len()).for_each(|bucket| below[bucket] += below[bucket - 1]);
    (shift, below)
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
            for value in expected.iter().copied().chain([0, 7, u64::MAX]) {
                prop_assert_eq!(sorted.below(value), expected.range(..value).count());
            }
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
