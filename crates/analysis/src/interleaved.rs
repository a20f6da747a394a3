//! The cost of noise from one run in which blocks of phases with noise alternate with blocks without it.
//!
//! Two runs on a machine whose speed strays differ by more than some percent of noise cost. Neighbouring blocks of one run do not: the
//! core's speed is common to both blocks of a pair, whose order is random. What else stops the ranks, such as a hypervisor, stops them in
//! both kinds of blocks alike, but seldom and for long, so a mean of pairs strays widely. The slowdown is therefore taken from a robust
//! line of the pairs' differences over the noise that was injected into them, at its mean: Tukey's biweight (Beaton & Tukey, Technometrics
//! 16, 1974), with the scale of the median absolute deviation. Noise that is rare and long keeps its weight, because the line explains it.
//! The interval is a percentile bootstrap over pairs (Efron & Tibshirani, An Introduction to the Bootstrap, 1993, §9.5, §13.3).

use quell_sim::Draws;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Warning;
use crate::stats::{MAD_TO_SIGMA, ascending, mean, median, median_absolute_deviation, type7_lower};

/// Number of pairs below which there is no slowdown.
pub const FEWEST_PAIRS: usize = 10;
/// Number of resamples of the bootstrap.
const RESAMPLES: u64 = 1000;
/// Ranks whose blocks differ by more than this share of a block count different phases.
const APART: f64 = 0.1;
/// A pair's length without noise is the median of this many pairs around it.
const NEIGHBOURS: usize = 11;
/// The biweight leaves out residuals above this many standard deviations: 95 % efficient where they are Gaussian.
const CUT: f64 = 4.685;
/// Maximum number of rounds of the fit, which ends when it moves by less than this share of the cut.
const FIT_ROUNDS: usize = 30;
const SETTLED: f64 = 1e-4;

/// The slowdown of an interleaved run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Interleaved {
    /// Number of phases in a block.
    pub block_phases: u64,
    /// Mean length of a phase without noise.
    pub phase_ns: f64,
    /// Noise injected while a block had any, over the time of the block without noise, in percent; the mean of the ranks.
    pub noise_percent: f64,
    /// How much longer the blocks with noise were, in percent of those without.
    pub slowdown_percent: f64,
    /// The lower end of its 95 % interval.
    pub low_percent: f64,
    /// The upper end.
    pub high_percent: f64,
    /// The same by sums over all pairs: equal, but for what else stopped the ranks.
    pub mean_percent: f64,
    /// The slowdown of each pair, in order, in percent.
    pub pairs_percent: Vec<f64>,
    /// Number of pairs left out, because something else than this noise made their blocks differ.
    pub left_out: u64,
}

/// One block as one rank saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankBlock {
    /// Noise that was injected in it, in ns.
    pub injected_ns: u64,
    /// Its length, in ns.
    pub length_ns: u64,
}

/// A block of the job: the mean length of its ranks' blocks, and the noise of all of them.
#[derive(Clone, Copy, Debug)]
struct Block {
    injected_ns: f64,
    length_ns: f64,
}

/// A pair of blocks: what the noise in one of them explains, over the length of a block without noise.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// Noise that was injected into all ranks.
    injected: f64,
    /// How much longer the block with noise was.
    added: f64,
}

/// The slowdown, from each rank's blocks in order. `has_noise` says which blocks have noise: from block 1 on, one of each two.
///
/// # Errors
/// The warning that says why there is none.
pub fn interleaved(
    ranks: &[Vec<RankBlock>],
    block_phases: u64,
    seed: u64,
    has_noise: impl Fn(u64) -> bool,
) -> Result<Interleaved, Warning> {
    let blocks = of_job(ranks)?;
    let pairs: Vec<(Block, Block)> = (1..)
        .step_by(2)
        .zip(blocks.get(1..).unwrap_or_default().as_chunks::<2>().0)
        .map(|(number, &[first, second])| if has_noise(number) { (first, second) } else { (second, first) })
        .collect();
    if pairs.len() < FEWEST_PAIRS {
        return Err(few(pairs.len()));
    }
    let usual = usual_lengths(&pairs.iter().map(|(_, off)| off.length_ns).collect::<Vec<_>>());
    let relative: Vec<Pair> = pairs
        .iter()
        .zip(&usual)
        .map(|((on, off), usual)| Pair {
            injected: on.injected_ns / usual,
            added: (on.length_ns - off.length_ns) / usual,
        })
        .collect();
    let fit = Fit::from_pairs(&relative, Fit::start(&relative));
    let draws = Draws::new(seed, &[202]);
    let count = relative.len() as u64;
    let resamples = (0..RESAMPLES).map(|resample| {
        let pick = |place: u64| relative[draws.below(resample * count + place, count) as usize];
        let drawn: Vec<Pair> = (0..count).map(pick).collect();
        Fit::from_pairs(&drawn, fit).slowdown
    });
    let resampled = ascending(resamples);
    let end = |p: f64| 100.0 * type7_lower(&resampled, p).unwrap_or(f64::NAN);
    let sum = |of: fn(&(Block, Block)) -> f64| pairs.iter().map(of).sum::<f64>();
    let off_ns = sum(|pair| pair.1.length_ns);
    Ok(Interleaved {
        block_phases,
        phase_ns: median(&ascending(usual)).unwrap_or(0.0) / block_phases.max(1) as f64,
        noise_percent: 100.0 * sum(|pair| pair.0.injected_ns) / off_ns / ranks.len() as f64,
        slowdown_percent: 100.0 * fit.slowdown,
        low_percent: end(0.025),
        high_percent: end(0.975),
        mean_percent: 100.0 * (sum(|pair| pair.0.length_ns) / off_ns - 1.0),
        left_out: relative.iter().filter(|pair| fit.weight(pair) == 0.0).count() as u64,
        pairs_percent: relative.iter().map(|pair| 100.0 * pair.added).collect(),
    })
}

/// The usual length around each place: medians, so that one long block changes none, and a core that becomes slower changes all.
fn usual_lengths(lengths_ns: &[f64]) -> Vec<f64> {
    let around = |place: usize| {
        let begin = place.saturating_sub(NEIGHBOURS / 2).min(lengths_ns.len().saturating_sub(NEIGHBOURS));
        let window = &lengths_ns[begin..lengths_ns.len().min(begin + NEIGHBOURS)];
        median(&ascending(window.iter().copied())).unwrap_or(0.0).max(1.0)
    };
    (0..lengths_ns.len()).map(around).collect()
}

/// A robust line of what was added over what was injected.
#[derive(Clone, Copy, Debug)]
struct Fit {
    /// What is added where the mean of the noise is injected.
    slowdown: f64,
    /// What is added for each unit of noise that is injected on top.
    slope: f64,
    /// The mean of the injected noise.
    injected: f64,
    /// Residuals above this do not count; 0 if all that matter are equal.
    cut: f64,
}

impl Fit {
    /// The line through the origin with the least absolute residuals: rare noise has its weight in it, and long stops have little.
    fn start(pairs: &[Pair]) -> Self {
        let injected = mean(pairs.iter().map(|pair| pair.injected)).unwrap_or(0.0);
        let mut slopes: Vec<(f64, f64)> = pairs
            .iter()
            .filter(|pair| pair.injected > 0.0)
            .map(|pair| (pair.added / pair.injected, pair.injected))
            .collect();
        slopes.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let half = 0.5 * injected * pairs.len() as f64;
        let mut before = 0.0;
        let middle = slopes.iter().find(|(_, weight)| {
            before += weight;
            before >= half
        });
        let slope = middle.map_or(0.0, |&(slope, _)| slope);
        Self { slowdown: slope * injected, slope, injected, cut: 0.0 }
    }

    /// The line of these pairs, from a line that is near it.
    fn from_pairs(pairs: &[Pair], near: Self) -> Self {
        let injected = mean(pairs.iter().map(|pair| pair.injected)).unwrap_or(0.0);
        let mut fit = near.at(injected);
        let residuals: Vec<f64> = pairs.iter().map(|pair| fit.residual(pair)).collect();
        let centre = median(&ascending(residuals.iter().copied())).unwrap_or(0.0);
        fit.slowdown += centre;
        fit.cut = CUT * MAD_TO_SIGMA * median_absolute_deviation(&residuals, centre).unwrap_or(0.0);
        if fit.cut == 0.0 {
            return fit;
        }
        for _ in 0..FIT_ROUNDS {
            let next = fit.refined(pairs);
            let moved = (next.slowdown - fit.slowdown).abs();
            fit = next;
            if moved < SETTLED * fit.cut {
                break;
            }
        }
        fit
    }

    /// The same line, read at another mean of the injected noise.
    fn at(self, injected: f64) -> Self {
        Self { slowdown: self.slowdown + self.slope * (injected - self.injected), injected, ..self }
    }

    /// The weighted least squares line.
    fn refined(self, pairs: &[Pair]) -> Self {
        let sum =
            |of: &dyn Fn(&Pair) -> f64| pairs.iter().map(|pair| self.weight(pair) * of(pair)).sum::<f64>();
        let all = sum(&|_| 1.0);
        let (x, y) = (sum(&|pair| pair.injected) / all, sum(&|pair| pair.added) / all);
        let square = sum(&|pair| (pair.injected - x).powi(2));
        let slope = if square > 0.0 {
            sum(&|pair| (pair.injected - x) * (pair.added - y)) / square
        } else {
            self.slope
        };
        Self { slowdown: y + slope * (self.injected - x), slope, ..self }
    }

    fn residual(&self, pair: &Pair) -> f64 {
        pair.added - self.slowdown - self.slope * (pair.injected - self.injected)
    }

    /// Tukey's biweight.
    fn weight(&self, pair: &Pair) -> f64 {
        let residual = self.residual(pair).abs();
        match residual < self.cut {
            true => (1.0 - (residual / self.cut).powi(2)).powi(2),
            false => f64::from(u8::from(residual == 0.0)),
        }
    }
}

fn few(pairs: usize) -> Warning {
    Warning::FewBlocks { pairs: pairs as u64, needed: FEWEST_PAIRS as u64 }
}

/// The mean of the ranks, block by block, up to the last block that all of them ended.
fn of_job(ranks: &[Vec<RankBlock>]) -> Result<Vec<Block>, Warning> {
    let most = ranks.iter().map(Vec::len).max().unwrap_or(0);
    let count = ranks.iter().map(Vec::len).min().unwrap_or(0);
    let mut blocks = Vec::with_capacity(count);
    let mut apart = Vec::with_capacity(count);
    for number in 0..count {
        let lengths = || ranks.iter().map(|rank| rank[number].length_ns as f64);
        let length_ns = lengths().sum::<f64>() / ranks.len() as f64;
        let spread = lengths().fold(f64::MIN, f64::max) - lengths().fold(f64::MAX, f64::min);
        apart.push(if length_ns > 0.0 { spread / length_ns } else { 0.0 });
        let injected_ns = ranks.iter().map(|rank| rank[number].injected_ns as f64).sum();
        blocks.push(Block { injected_ns, length_ns });
    }
    // Leaving a collective some microseconds apart is usual; half of all blocks are not that far apart unless ranks count other calls.
    let apart = median(&ascending(apart)).unwrap_or(0.0) > APART;
    if apart || (most > count + 1 && most > 0 && (most - count) as f64 > APART * most as f64) {
        return Err(Warning::BlocksApart);
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    /// Odd blocks have noise.
    fn odd(block: u64) -> bool {
        block % 2 == 1
    }

    fn blocks(lengths: impl IntoIterator<Item = u64>) -> Vec<RankBlock> {
        lengths.into_iter().map(|length_ns| RankBlock { injected_ns: 0, length_ns }).collect()
    }

    fn found(lengths: impl IntoIterator<Item = u64>) -> Interleaved {
        interleaved(&[blocks(lengths)], 1, 1, odd).unwrap()
    }

    #[test]
    fn a_core_that_becomes_slower_is_in_both_blocks_of_a_pair() {
        // The core is 40 % slower in the end; noise costs 10 % all the time.
        let lengths = std::iter::once(1000).chain((0..41).flat_map(|pair| {
            let quiet = 1_000_000 + 10_000 * pair;
            [quiet + quiet / 10, quiet]
        }));
        let found = found(lengths);
        assert!((found.slowdown_percent - 10.0).abs() < 0.05, "{found:?}");
        assert!(found.low_percent > 9.9 && found.high_percent < 10.1, "{found:?}");
        assert!((found.mean_percent - 10.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.pairs_percent.len(), 41);
    }

    /// Stops of 15 ms in one of six blocks, whichever kind it is.
    #[test]
    fn what_stops_both_kinds_of_blocks_changes_neither_slowdown_nor_interval() {
        let draws = Draws::new(5, &[1]);
        let stopped = |block: u64| if draws.below(block, 6) == 0 { 15_000_000 } else { 0 };
        let strayed = |block: u64| draws.below(1_000_000 + block, 1_000_000);
        let lengths = (0..401).map(|block| {
            50_000_000 + if odd(block) { 2_500_000 } else { 0 } + stopped(block) + strayed(block)
        });
        let found = found(lengths);
        assert!((found.slowdown_percent - 5.0).abs() < 0.3, "{found:?}");
        assert!(found.high_percent - found.low_percent < 0.6, "{found:?}");
        assert!(found.left_out > 40, "{found:?}");
    }

    /// A detour of 20 ms in one of ten blocks is injected: a mean of 4 %, a median of 0.
    #[test]
    fn rare_long_noise_keeps_its_weight_because_it_was_injected() {
        let draws = Draws::new(6, &[1]);
        let strayed = |block: u64| draws.below(block, 500_000);
        let block = |number: u64| {
            let injected_ns = if odd(number) && number % 20 == 1 { 20_000_000 } else { 0 };
            RankBlock { injected_ns, length_ns: 50_000_000 + injected_ns + strayed(number) }
        };
        let found = interleaved(&[(0..401).map(block).collect()], 1, 1, odd).unwrap();
        assert!((found.slowdown_percent - 4.0).abs() < 0.2, "{found:?}");
        assert!((found.noise_percent - 4.0).abs() < 0.1, "{found:?}");
        assert_eq!(found.left_out, 0);
    }

    /// Gaussian differences: the interval must hold the truth in 95 of 100 runs.
    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let held = (0..200).filter(|&run| {
            let draws = Draws::new(run, &[3]);
            // Sums of twelve uniform draws of variance 1/12 are nearly Gaussian.
            let gauss = |block: u64| (0..12).map(|n| draws.below(12 * block + n, 100_000)).sum::<u64>();
            let lengths =
                (0..81).map(|block| 10_000_000 + if odd(block) { 500_000 } else { 0 } + gauss(block));
            let found = found(lengths);
            let truth = 100.0 * 500_000.0 / 10_600_000.0;
            (found.low_percent..=found.high_percent).contains(&truth)
        });
        let held = held.count();
        assert!((180..=198).contains(&held), "{held} of 200");
    }

    #[test]
    fn short_runs_and_ranks_that_disagree_give_no_slowdown() {
        let lengths = || std::iter::once(100).chain((0..9).flat_map(|_| [110, 100]));
        assert_eq!(interleaved(&[blocks(lengths())], 1, 1, odd), Err(few(9)));
        assert_eq!(interleaved(&[], 1, 1, odd), Err(few(0)));
        let long = || std::iter::once(100).chain((0..20).flat_map(|_| [110, 100]));
        let half = blocks(long().map(|length| length / 2));
        assert_eq!(interleaved(&[blocks(long()), half], 1, 1, odd), Err(Warning::BlocksApart));
        let fewer = blocks(long().take(21));
        assert_eq!(interleaved(&[blocks(long()), fewer], 1, 1, odd), Err(Warning::BlocksApart));
        let one_less = blocks(long().take(40));
        assert!(interleaved(&[blocks(long()), one_less], 1, 1, odd).is_ok());
    }
}
