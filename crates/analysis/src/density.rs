//! Densities and histograms of durations on a logarithmic axis: durations of noise span seven decades.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::{Durations, mean, population_variance};

/// The minimum width of a window, in decades (4.7 %). Clocks tick in steps of up to some tens of nanoseconds, and a window
/// narrower than such a step would show each step as a spike.
const NARROWEST: f64 = 0.02;

/// Number of cells per window on the fine grid on which durations are counted first.
const CELLS_PER_WINDOW: f64 = 8.0;

/// Number of windows that the Gaussian extends to each side; less than 1e-5 of it lies outside.
const REACH: f64 = 4.5;

/// A probability density of durations over log10(duration in ns); a duration of zero counts as 1 ns.
///
/// It is a Parzen window estimate with a Gaussian window (Parzen, "On Estimation of a Probability Density Function
/// and Mode", Ann. Math. Statist. 33, 1962), as De et al., "A Trace-driven Emulation Framework to Predict
/// Scalability of Large Clusters in Presence of OS Jitter", 2008, Figures 1, 3, 4 and 7, plot their traces.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Density {
    /// The grid: evenly spaced values of log10(duration in ns).
    pub log10_ns: Vec<f64>,
    /// Probability per decade of duration at each value; times the spacing, it sums to about 1. All zero for an empty sample.
    pub density: Vec<f64>,
}

impl Density {
    /// The density of `sample` on `grid`, with a window of `bandwidth` decades. Takes linear time in the sample, which is
    /// counted on a fine grid first.
    pub fn on(grid: Grid, sample: &Durations, bandwidth: f64) -> Self {
        let bandwidth = bandwidth.max(NARROWEST);
        let cells = Cells::from_sample(sample, bandwidth / CELLS_PER_WINDOW);
        let log10_ns: Vec<f64> = grid.points().collect();
        let density = log10_ns.iter().map(|&x| cells.window(x, bandwidth)).collect();
        Self { log10_ns, density }
    }

    /// The density of one sample on its own grid, with Silverman's bandwidth.
    pub fn estimate(sample: &Durations) -> Self {
        let bandwidth = silverman(sample);
        Self::on(Grid::covering(&[sample], bandwidth), sample, bandwidth)
    }
}

/// Silverman's rule of thumb for the bandwidth, in decades: 0.9 min(σ, IQR/1.34) n^(-1/5) (Silverman, "Density
/// Estimation for Statistics and Data Analysis", 1986, eq. 3.31), but at least 0.02 decades.
pub fn silverman(sample: &Durations) -> f64 {
    let Some((first, third)) = sample.quantile(0.25).zip(sample.quantile(0.75)) else { return NARROWEST };
    let count = sample.len() as f64;
    let logs = || sample.as_slice().iter().map(|&ns| log10(ns));
    let deviation = mean(logs()).and_then(|mean| population_variance(logs(), mean)).unwrap_or(0.0).sqrt();
    // If half of the sample is a single value, the quartiles do not describe the rest.
    let quartiles = (log10(third) - log10(first)) / 1.34;
    let spread = if quartiles > 0.0 { deviation.min(quartiles) } else { deviation };
    (0.9 * spread * count.powf(-0.2)).max(NARROWEST)
}

/// Evenly spaced values of log10(duration in ns).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    first: f64,
    step: f64,
    count: usize,
}

impl Grid {
    /// A common grid for `samples`, with two points per window of `bandwidth` decades and wide enough for the tails.
    pub fn covering(samples: &[&Durations], bandwidth: f64) -> Self {
        let bandwidth = bandwidth.max(NARROWEST);
        let ends = |sample: &&Durations| sample.quantile(0.0).zip(sample.quantile(1.0));
        let ends: Vec<(u64, u64)> = samples.iter().filter_map(ends).collect();
        let lowest = log10(ends.iter().map(|e| e.0).min().unwrap_or(1)) - REACH * bandwidth;
        let highest = log10(ends.iter().map(|e| e.1).max().unwrap_or(1)) + REACH * bandwidth;
        let step = bandwidth / 2.0;
        Self { first: lowest, step, count: ((highest - lowest) / step).ceil() as usize + 1 }
    }

    /// The spacing, in decades.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// The values.
    pub fn points(self) -> impl Iterator<Item = f64> {
        (0..self.count).map(move |i| self.first + i as f64 * self.step)
    }
}

/// A sample counted on a fine grid; each duration is divided between the two nearest cells, so that the mean of
/// the sample is preserved.
struct Cells {
    first: f64,
    width: f64,
    share: Vec<f64>,
}

impl Cells {
    fn from_sample(sample: &Durations, width: f64) -> Self {
        let first = sample.quantile(0.0).map_or(0.0, log10);
        let last = sample.quantile(1.0).map_or(0.0, log10);
        let mut share = vec![0.0; ((last - first) / width) as usize + 2];
        let unit = 1.0 / sample.len().max(1) as f64;
        for &ns in sample.as_slice() {
            let place = ((log10(ns) - first) / width).max(0.0);
            let cell = (place as usize).min(share.len() - 2);
            let beyond = (place - cell as f64).clamp(0.0, 1.0);
            share[cell] += unit * (1.0 - beyond);
            share[cell + 1] += unit * beyond;
        }
        Self { first, width, share }
    }

    /// The Gaussian window of `bandwidth` around `x`.
    fn window(&self, x: f64, bandwidth: f64) -> f64 {
        let place = |x: f64| ((x - self.first) / self.width).max(0.0);
        let low = (place(x - REACH * bandwidth) as usize).min(self.share.len());
        let high = (place(x + REACH * bandwidth) as usize + 1).clamp(low, self.share.len());
        let weight = |cell: usize| {
            let z = (self.first + cell as f64 * self.width - x) / bandwidth;
            (-0.5 * z * z).exp()
        };
        let sum: f64 = (low..high).map(|cell| self.share[cell] * weight(cell)).sum();
        sum / (bandwidth * std::f64::consts::TAU.sqrt())
    }
}

/// Counts of durations in bins of equal width on a logarithmic axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogHistogram {
    /// The edges in nanoseconds, ascending, one more than there are bins: a bin includes its lower edge, but not its upper.
    pub edges_ns: Vec<f64>,
    /// Number of durations in each bin.
    pub counts: Vec<u64>,
}

impl LogHistogram {
    /// Counts `sample` in `bins_per_decade` (at least 1, at most 1,000) bins from the decade bin of its shortest to
    /// that of its longest. Empty for an empty sample. A duration of zero counts as 1 ns.
    pub fn from_sample(sample: &Durations, bins_per_decade: u32) -> Self {
        let Some((shortest, longest)) = sample.quantile(0.0).zip(sample.quantile(1.0)) else {
            return Self { edges_ns: Vec::new(), counts: Vec::new() };
        };
        let per_decade = f64::from(bins_per_decade.clamp(1, 1_000));
        // A duration equal to an edge, such as 1 us, must not fall below it by rounding.
        let bin = |ns: u64| (log10(ns) * per_decade + 1e-9).floor() as usize;
        let first = bin(shortest);
        let mut counts = vec![0; bin(longest) - first + 1];
        for &ns in sample.as_slice() {
            counts[bin(ns) - first] += 1;
        }
        let edge = |i: usize| 10f64.powf((first + i) as f64 / per_decade);
        Self { edges_ns: (0..=counts.len()).map(edge).collect(), counts }
    }
}

/// log10 of a duration in nanoseconds; zero counts as 1 ns.
pub(crate) fn log10(ns: u64) -> f64 {
    (ns.max(1) as f64).log10()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mass(density: &Density) -> f64 {
        let step = density.log10_ns[1] - density.log10_ns[0];
        density.density.iter().sum::<f64>() * step
    }

    #[test]
    fn an_empty_sample_has_no_density() {
        let none = Durations::default();
        assert!(Density::estimate(&none).density.iter().all(|&d| d == 0.0));
        assert!(LogHistogram::from_sample(&none, 5).counts.is_empty());
    }

    #[test]
    fn a_lognormal_sample_peaks_where_it_should() {
        // Quantiles of a triangular distribution on the log axis around 10 us replace a random sample.
        let sample = (0..10_000).map(|i| {
            let u = (f64::from(i) + 0.5) / 10_000.0;
            10f64.powf(4.0 + if u < 0.5 { (2.0 * u).sqrt() - 1.0 } else { 1.0 - (2.0 - 2.0 * u).sqrt() })
                as u64
        });
        let density = Density::estimate(&Durations::new(sample.collect()));
        let peak = density.density.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        assert!((density.log10_ns[peak.0] - 4.0).abs() < 0.03);
        assert!((peak.1 - 1.0).abs() < 0.1, "{}", peak.1);
    }

    #[test]
    fn a_coarse_clock_gives_no_spikes() {
        let sample = Durations::new((0..100_000u64).map(|i| 2_000 + (i % 50) * 40).collect());
        let density = Density::estimate(&sample);
        let inner = density.log10_ns.iter().zip(&density.density).filter(|(x, _)| (3.4..3.55).contains(*x));
        let (low, high) = inner.fold((f64::MAX, 0f64), |(l, h), (_, &d)| (l.min(d), h.max(d)));
        assert!(high / low < 1.6, "{low} {high}");
    }

    #[test]
    fn edges_of_bins_belong_to_the_bin_above() {
        let histogram = LogHistogram::from_sample(&Durations::new(vec![1_000, 9_999, 10_000, 1_000_000]), 1);
        assert_eq!(histogram.counts, [2, 1, 0, 1]);
        assert_eq!(histogram.edges_ns.len(), 5);
    }

    proptest! {
        #[test]
        fn densities_integrate_to_one(values in prop::collection::vec(any::<u64>(), 1..300)) {
            let density = Density::estimate(&Durations::new(values));
            prop_assert!((mass(&density) - 1.0).abs() < 1e-3, "{}", mass(&density));
            prop_assert!(density.density.iter().all(|d| d.is_finite() && *d >= 0.0));
        }

        #[test]
        fn histograms_lose_nothing(values in prop::collection::vec(any::<u64>(), 0..300), per_decade in 0u32..50) {
            let histogram = LogHistogram::from_sample(&Durations::new(values.clone()), per_decade);
            prop_assert_eq!(histogram.counts.iter().sum::<u64>(), values.len() as u64);
        }
    }
}
