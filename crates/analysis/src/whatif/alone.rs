//! An estimate of what each source would cost if there were no other noise, to choose which sources are worth a simulation.
//!
//! With `n` detours of a source in `T` of observed CPU time, a phase of `q` on `R` ranks meets `R q n / T` of them on average. If they come at
//! random, the phase is as late as the longest that it meets: the mean is the sum over the lengths, sorted from the longest, of the step from
//! one to the next times the chance to meet one at least that long (the expected maximum of a Poisson number of draws).

use std::collections::HashMap;

use super::attributed_noise::AttributedNoise;

/// The lengths of a family's detours, the longest first, and the CPU time that was observed.
#[derive(Debug)]
pub(super) struct Lengths<'a> {
    by_family: HashMap<&'a str, Vec<u64>>,
    observed_ns: f64,
}

impl<'a> Lengths<'a> {
    pub(super) fn from_nodes(nodes: &'a [AttributedNoise]) -> Self {
        let (mut by_family, mut observed_ns): (HashMap<&str, Vec<u64>>, f64) = (HashMap::new(), 0.0);
        for node in nodes {
            for trace in node.traces() {
                observed_ns += trace.span.length().as_nanos() as f64;
                for segments in trace.detours() {
                    for segment in segments {
                        let family = &*node.kinds()[segment.kind as usize].family;
                        by_family.entry(family).or_default().push(segment.ns);
                    }
                }
            }
        }
        for lengths in by_family.values_mut() {
            lengths.sort_unstable_by(|a, b| b.cmp(a));
        }
        Self { by_family, observed_ns }
    }

    /// The expected delay of a phase by each family alone, in nanoseconds.
    pub(super) fn alone_ns(&self, quantum_ns: f64, ranks: u64) -> HashMap<&'a str, f64> {
        let each = ranks as f64 * quantum_ns / self.observed_ns.max(1.0);
        self.by_family.iter().map(|(family, lengths)| (*family, expected_longest(lengths, each))).collect()
    }
}

/// The expected longest of a Poisson number of lengths, each of which is met `each` times on average.
fn expected_longest(longest_first: &[u64], each: f64) -> f64 {
    let shorter = |at: usize| longest_first.get(at + 1).copied().unwrap_or(0);
    let step = |(at, length): (usize, &u64)| {
        let met = -(-each * (at + 1) as f64).exp_m1();
        (*length - shorter(at)) as f64 * met
    };
    longest_first.iter().enumerate().map(step).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_met_as_often_as_ranks_and_phases_make_it() {
        let lengths = [5_000_000, 4_000, 4_000];
        assert!((expected_longest(&lengths, 1e9) - 5e6).abs() < 1.0, "many ranks always meet the longest");
        let seldom = 1e-6;
        // To first order each length adds its own chance times its length.
        assert!((expected_longest(&lengths, seldom) / (seldom * 5_008_000.0) - 1.0).abs() < 1e-3);
        assert_eq!(expected_longest(&[], 1.0), 0.0);
    }
}
