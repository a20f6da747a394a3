//! Confidence by resampling blocks of time.
//!
//! Detours come in bursts and trains, so they are not resampled one by one: the span of each side is cut into
//! equal blocks of time, the same for all its CPUs, and whole blocks are drawn with replacement (Künsch, "The
//! Jackknife and the Bootstrap for General Stationary Observations", Ann. Statist. 17, 1989; here without overlap,
//! Carlstein 1986). A block keeps its detours as counts on a fine logarithmic scale, so that a replicate costs the
//! same for a thousand detours as for a hundred million.

use std::ops::RangeInclusive;

use quell_recording::Trace;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::Options;
use crate::density::log10;
use crate::stats::{ascending, nearest_rank, nearest_rank_in_counts};

/// Number of blocks of time per side.
const BLOCKS: usize = 64;

/// Bins per decade of duration: 1.2 % each. Quantiles within a bin are interpolated.
const PER_DECADE: f64 = 200.0;

/// Number of figures: overhead, rate, p50, p90, p99, p99.9, max.
const FIGURES: usize = 7;

type Figures = [f64; FIGURES];

/// One side, cut into blocks of time.
pub(super) struct Blocks {
    blocks: Vec<Block>,
    /// The first bin that this side uses.
    first: usize,
}

#[derive(Clone, Default)]
struct Block {
    observed_ns: f64,
    noise_ns: f64,
    counts: Vec<u32>,
    longest_ns: u64,
}

impl Blocks {
    pub fn from_traces(traces: &[&Trace]) -> Self {
        let noise = || traces.iter().flat_map(|trace| trace.noise().map(|d| d.duration.as_nanos()));
        let first = bin(noise().min().unwrap_or(1));
        let bins = bin(noise().max().unwrap_or(1)) - first + 1;
        let mut blocks = vec![Block { counts: vec![0; bins], ..Block::default() }; BLOCKS];
        for trace in traces {
            let length = trace.span.length().as_nanos() as f64;
            blocks.iter_mut().for_each(|block| block.observed_ns += length / BLOCKS as f64);
            for detour in &trace.detours {
                let place = (detour.start - trace.span.start).as_nanos() as f64 / length.max(1.0);
                let block = &mut blocks[((place * BLOCKS as f64) as usize).min(BLOCKS - 1)];
                let ns = detour.duration.as_nanos();
                if detour.own {
                    block.observed_ns = (block.observed_ns - ns as f64).max(0.0);
                } else {
                    block.noise_ns += ns as f64;
                    block.counts[bin(ns) - first] += 1;
                    block.longest_ns = block.longest_ns.max(ns);
                }
            }
        }
        Self { blocks, first }
    }

    /// The time in which noise could be observed, over all CPUs.
    pub fn observed_ns(&self) -> f64 {
        self.blocks.iter().map(|block| block.observed_ns).sum()
    }

    /// The figures of a side in which each block occurs this number of times.
    fn figures(&self, times: &[u32; BLOCKS]) -> Figures {
        let (mut observed, mut noise, mut longest) = (0.0, 0.0, 0);
        let mut counts = vec![0u64; self.blocks[0].counts.len()];
        for (block, &times) in self.blocks.iter().zip(times).filter(|(_, times)| **times > 0) {
            observed += block.observed_ns * f64::from(times);
            noise += block.noise_ns * f64::from(times);
            longest = longest.max(block.longest_ns);
            for (sum, &count) in counts.iter_mut().zip(&block.counts) {
                *sum += u64::from(count) * u64::from(times);
            }
        }
        let total: u64 = counts.iter().sum();
        let observed = f64::max(observed, 1.0);
        let [p50, p90, p99, p99_9] = [0.5, 0.9, 0.99, 0.999].map(|p| self.quantile(&counts, total, p));
        [100.0 * noise / observed, total as f64 / (observed / 1e9), p50, p90, p99, p99_9, longest as f64]
    }

    /// The nearest-rank quantile, interpolated on the log axis within its bin; 0 without detours.
    fn quantile(&self, counts: &[u64], total: u64, p: f64) -> f64 {
        let Some((bin, rank)) = nearest_rank_in_counts(counts.iter().copied(), total, p) else { return 0.0 };
        let within = rank as f64 / counts[bin] as f64;
        10f64.powf(((self.first + bin) as f64 + within) / PER_DECADE)
    }
}

/// The bin of a duration.
fn bin(ns: u64) -> usize {
    (log10(ns) * PER_DECADE) as usize
}

/// The scatter of each figure's difference over resampled recordings.
pub(super) struct Intervals {
    /// Per figure, in ascending order: the replicate's difference less that of the recordings themselves.
    errors: Vec<Vec<f64>>,
}

impl Intervals {
    /// The middle 95 % of the errors of `figure` (the percentile interval of Efron, around the exact difference).
    pub fn error(&self, figure: usize) -> RangeInclusive<f64> {
        let errors = &self.errors[figure];
        // There is at least one replicate: `replicates` guarantees it.
        let at = |p| nearest_rank(errors, p).unwrap_or(0.0);
        at(0.025)..=at(0.975)
    }
}

/// The number of replicates in `options`, within limits.
pub(super) fn replicates(options: &Options) -> u32 {
    options.replicates.clamp(40, 100_000)
}

/// Resamples both sides. Each replicate has its own generator, so the result does not depend on threads; `stream`
/// separates the bootstraps of one seed.
pub(super) fn intervals(a: &Blocks, b: &Blocks, options: &Options, stream: u64) -> Intervals {
    let difference = |from: &[u32; BLOCKS], to: &[u32; BLOCKS]| {
        let (from, to) = (a.figures(from), b.figures(to));
        std::array::from_fn::<f64, FIGURES, _>(|i| to[i] - from[i])
    };
    let exact = difference(&[1; BLOCKS], &[1; BLOCKS]);
    let replicate = |number: u32| {
        let mut rng = Pcg64Mcg::seed_from_u64(mixed(options.seed, stream, number));
        let (from, to) = (draw(&mut rng), draw(&mut rng));
        difference(&from, &to)
    };
    let replicates: Vec<Figures> = (0..replicates(options)).into_par_iter().map(replicate).collect();
    let errors = |figure: usize| ascending(replicates.iter().map(|r| r[figure] - exact[figure]));
    Intervals { errors: (0..FIGURES).map(errors).collect() }
}

/// Draws as many blocks as there are, with replacement; returns how often each is drawn.
fn draw(rng: &mut Pcg64Mcg) -> [u32; BLOCKS] {
    let mut times = [0; BLOCKS];
    (0..BLOCKS).for_each(|_| times[rng.random_range(0..BLOCKS)] += 1);
    times
}

/// One seed from three numbers, by the finaliser of SplitMix64 (Steele, Lea & Flood 2014).
fn mixed(seed: u64, stream: u64, number: u32) -> u64 {
    [stream, u64::from(number)].into_iter().fold(seed, |state, next| {
        let z = state.wrapping_add(next).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

#[cfg(test)]
mod tests;
