//! Selects the detours of a long series that a plot draws: the same in a terminal, on a page and from Python.

use std::cmp::Reverse;

/// The indices of the detours to draw, in order; `durations_ns` are those of one CPU in order of time. All of them if they
/// are at most `most`. Otherwise at most `most`: one half are the longest of all, which are the tail; the other half are the longest of
/// each run of equally many consecutive detours, which preserve the shape of the cloud over time. The longest is always included;
/// of equal ones among the longest of all, the earliest is taken.
pub fn downsample(durations_ns: &[u64], most: usize) -> Vec<usize> {
    let all = durations_ns.len();
    if all <= most {
        return (0..all).collect();
    }
    let run = all.div_ceil((most / 2).max(1));
    let longest_of_run =
        |start: usize| (start..all.min(start + run)).max_by_key(|&place| durations_ns[place]);
    let mut kept: Vec<usize> = (0..all).step_by(run).filter_map(longest_of_run).collect();
    let mut places: Vec<usize> = (0..all).collect();
    let (longest, ..) =
        places.select_nth_unstable_by_key(most / 2, |&place| (Reverse(durations_ns[place]), place));
    kept.extend_from_slice(longest);
    kept.sort_unstable();
    kept.dedup();
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_are_all_drawn() {
        assert!(downsample(&[], 0).is_empty());
        assert_eq!(downsample(&[5, 1, 3], 3), [0, 1, 2]);
    }

    #[test]
    fn the_longest_and_those_of_each_run_are_kept() {
        // Two of the longest, and one from each of two runs of four.
        assert_eq!(downsample(&[1, 2, 9, 8, 1, 1, 3, 1], 4), [2, 3, 6]);
        assert_eq!(downsample(&[1, 2, 9, 8, 1, 1, 3, 1], 1), [2]);
        assert_eq!(downsample(&[7; 8], 4), [0, 1, 3, 7]);
    }

    proptest! {
        #[test]
        fn what_is_kept_is_as_stated(durations in prop::collection::vec(0u64..50, 1..300), most in 1usize..100) {
            let kept = downsample(&durations, most);
            prop_assert!(kept.len() <= most && kept.is_sorted_by(|a, b| a < b));
            let has = |place: usize| kept.binary_search(&place).is_ok();
            if durations.len() > most {
                let mut places: Vec<usize> = (0..durations.len()).collect();
                places.sort_by_key(|&place| Reverse(durations[place]));
                prop_assert!(places.into_iter().take(most / 2).all(has));
                let run = durations.len().div_ceil((most / 2).max(1));
                for (number, run_of) in durations.chunks(run).enumerate() {
                    let longest = run_of.iter().max();
                    prop_assert!((0..run_of.len()).any(|at| run_of.get(at) == longest && has(number * run + at)));
                }
            } else {
                prop_assert_eq!(kept.len(), durations.len());
            }
        }
    }
}
