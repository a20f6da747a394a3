//! The spectrum of a point process, and the lines in it that chance does not explain.

use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use super::{Events, FEWEST_CYCLES, SHORTEST_NS};
use crate::stats::median_high;

/// Maximum length of a transform, in points. It bounds the memory; longer recordings are cut into segments.
const MOST_POINTS: usize = 1 << 19;

/// Maximum number of segments that are transformed; if a recording has more, evenly spaced ones are selected.
const MOST_SEGMENTS: usize = 64;

/// Number of segments of the pass for trains that drift: their line is too broad for the resolution of the whole span.
const DRIFT_SEGMENTS: usize = 32;

/// Maximum length of a transform of that pass, in points: trains faster than a few hundred per second that drift are rare.
const MOST_DRIFT_POINTS: usize = 1 << 16;

/// Minimum number of events for the pass for trains that drift.
const DRIFT_EVENTS: usize = 1 << 14;

/// Numbers of harmonics that are summed and tested, because a sharp train spreads its power over harmonics. Searches for pulsars do the same
/// (Taylor & Huguenin, Nature 221, 1969).
const HARMONICS: [usize; 4] = [1, 2, 4, 8];

/// Maximum number of lines that are kept per pass.
const MOST_LINES: usize = 2_048;

/// A frequency at which the spectrum is higher than chance explains.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Frequency, in cycles per nanosecond.
    pub frequency: f64,
    /// The spacing of independent frequencies where it was found, in cycles per nanosecond.
    pub resolution: f64,
    /// −ln of the probability that a spectrum without lines is as high here.
    pub surprise: f64,
    /// Power relative to the background, mean of the harmonics that were summed.
    pub power: f64,
}

/// How a recording is cut into segments for one spectrum.
#[derive(Clone, Copy)]
struct Pass {
    segments: usize,
    points: usize,
}

/// The lines among `events` with a false-alarm probability of `allowance`, and the number of frequencies that were tested.
pub(super) fn lines(events: &Events, allowance: f64) -> (Vec<Line>, f64) {
    let highest = highest_frequency(events);
    let passes = passes(events, highest);
    let tests: f64 = passes.iter().map(|pass| (HARMONICS.len() * pass.points / 2) as f64).sum();
    let surprise = (tests / allowance).ln();
    let mut lines = Vec::new();
    for pass in passes {
        if let Some(spectrum) = Spectrum::from_events(events, pass) {
            lines.extend(spectrum.lines(surprise, highest));
        }
    }
    (lines, tests)
}

/// A train has at most two cycles per event of its band; otherwise it would miss more than half of them.
fn highest_frequency(events: &Events) -> f64 {
    (2.0 * events.starts.len() as f64 / events.length).min(1.0 / SHORTEST_NS as f64)
}

/// The whole span at once, and in segments if the highest frequencies need it or drift may have broadened lines.
fn passes(events: &Events, highest: f64) -> Vec<Pass> {
    let cycles = highest * events.length;
    // A quarter more than the Nyquist rate, and room for harmonics if the transform stays small.
    let needed = |cycles: f64, harmonics: f64| (2.5 * cycles * harmonics) as usize;
    let points = |cycles: f64| needed(cycles, 8.0).clamp(64, MOST_POINTS).next_power_of_two();
    let mut passes = vec![Pass { segments: 1, points: points(cycles) }];
    let segments = needed(cycles, 1.0).div_ceil(MOST_POINTS);
    if segments > 1 {
        passes.push(Pass { segments, points: MOST_POINTS });
    }
    if segments < DRIFT_SEGMENTS && events.starts.len() >= DRIFT_EVENTS {
        let points = points(cycles / DRIFT_SEGMENTS as f64).min(MOST_DRIFT_POINTS);
        passes.push(Pass { segments: DRIFT_SEGMENTS, points });
    }
    passes
}

/// Power relative to the background: about a Gamma variable of shape `averaged` and mean 1 where there is no line.
struct Spectrum {
    power: Vec<f64>,
    averaged: usize,
    resolution: f64,
}

impl Spectrum {
    /// Welch's mean of the segments' periodograms under a Hann window, each normalised by its count, so that a
    /// Poisson process has the mean 1 at all frequencies (Bartlett 1963). `None` if no segment has enough events.
    fn from_events(events: &Events, pass: Pass) -> Option<Self> {
        let segment = events.length / pass.segments as f64;
        let transform = RealFftPlanner::<f64>::new().plan_fft_forward(pass.points);
        let mut input = transform.make_input_vec();
        let mut output = transform.make_output_vec();
        let mut scratch = transform.make_scratch_vec();
        let hann = hann(pass.points);
        let mut power = vec![0.0; output.len()];
        let mut averaged = 0;
        for begin in chosen(pass.segments).map(|i| i as f64 * segment) {
            let inside = between(&events.starts, begin, begin + segment);
            if (inside.len() as u64) < FEWEST_CYCLES {
                continue;
            }
            count_into(&mut input, inside, begin, segment, &hann);
            transform
                .process_with_scratch(&mut input, &mut output, &mut scratch)
                .expect("the buffers were made by this transform");
            let unit = 1.0 / (inside.len() as f64 * 0.375);
            power
                .iter_mut()
                .zip(&output)
                .for_each(|(p, x): (&mut f64, &Complex<f64>)| *p += x.norm_sqr() * unit);
            averaged += 1;
        }
        if averaged == 0 {
            return None;
        }
        power.iter_mut().for_each(|p| *p /= f64::from(averaged));
        let averaged = averaged as usize;
        over_background(&mut power, averaged);
        Some(Self { power, averaged, resolution: 1.0 / segment })
    }

    /// The lines with at least this `surprise`.
    fn lines(&self, surprise: f64, highest: f64) -> Vec<Line> {
        let mut lines = Vec::new();
        for harmonics in HARMONICS {
            let threshold = gamma_threshold(harmonics * self.averaged, surprise) / self.averaged as f64;
            let last = self.power.len() - 1;
            for top in harmonics * FEWEST_CYCLES as usize..=last {
                let frequency = top as f64 / harmonics as f64 * self.resolution;
                if frequency > highest {
                    break;
                }
                let sum = self.sum(top, harmonics);
                if sum >= threshold && self.has_fundamental(top, harmonics, sum) {
                    let surprise = -ln_gamma_tail(harmonics * self.averaged, sum * self.averaged as f64);
                    let power = sum / harmonics as f64;
                    lines.push(Line { frequency, resolution: self.resolution, surprise, power });
                }
            }
        }
        lines.sort_by(|a, b| b.surprise.total_cmp(&a.surprise).then(a.frequency.total_cmp(&b.frequency)));
        lines.truncate(MOST_LINES);
        lines
    }

    /// The power at the multiples of `top / harmonics` up to `top`.
    fn sum(&self, top: usize, harmonics: usize) -> f64 {
        (1..=harmonics).map(|h| self.power[(top * h + harmonics / 2) / harmonics]).sum()
    }

    /// Rejects a frequency whose multiples contain two trains while it is itself none.
    fn has_fundamental(&self, top: usize, harmonics: usize, sum: f64) -> bool {
        self.power[(top + harmonics / 2) / harmonics] >= 0.25 * sum / harmonics as f64
    }
}

/// The segments to transform: all of them, or the maximum number, evenly spaced.
fn chosen(segments: usize) -> impl Iterator<Item = usize> {
    let count = segments.min(MOST_SEGMENTS);
    (0..count).map(move |i| i * segments / count)
}

fn between(starts: &[f64], begin: f64, end: f64) -> &[f64] {
    let first = starts.partition_point(|&t| t < begin);
    let last = starts.partition_point(|&t| t < end);
    &starts[first..last]
}

/// Counts events in bins, subtracts the mean and applies the window.
fn count_into(bins: &mut [f64], starts: &[f64], begin: f64, length: f64, hann: &[f64]) {
    bins.fill(-(starts.len() as f64) / bins.len() as f64);
    let per_ns = bins.len() as f64 / length;
    let last = bins.len() - 1;
    for start in starts {
        bins[(((start - begin) * per_ns) as usize).min(last)] += 1.0;
    }
    bins.iter_mut().zip(hann).for_each(|(bin, weight)| *bin *= weight);
}

fn hann(points: usize) -> Vec<f64> {
    let angle = |i: usize| std::f64::consts::TAU * (i as f64 + 0.5) / points as f64;
    (0..points).map(|i| 0.5 - 0.5 * angle(i).cos()).collect()
}

/// Divides `power` by its local background: the running median, which lines do not affect. Real noise comes in
/// bursts, so its background is not flat. Below the Poisson level of 1, that level is used.
fn over_background(power: &mut [f64], averaged: usize) {
    // Wilson & Hilferty's median of a Gamma variable over its mean.
    let median_of_mean = (1.0 - 1.0 / (9.0 * averaged as f64)).powi(3);
    let mut window = Vec::new();
    let mut background = vec![1.0; power.len()];
    let mut next = 1;
    while next < power.len() {
        let reach = (next / 3).clamp(6, 64);
        let end = (next + (reach / 4).max(1)).min(power.len());
        window.clear();
        window.extend_from_slice(&power[next.saturating_sub(reach).max(1)..(end + reach).min(power.len())]);
        let median = median_high(&mut window, f64::total_cmp).unwrap_or(0.0);
        background[next..end].fill((median / median_of_mean).max(1.0));
        next = end;
    }
    power.iter_mut().zip(&background).for_each(|(p, b)| *p /= b);
}

/// ln of the probability that a Gamma variable of integer `shape` and scale 1 exceeds `x`; 0 below its mean.
fn ln_gamma_tail(shape: usize, x: f64) -> f64 {
    if x <= shape as f64 {
        return 0.0;
    }
    // e^-x Σ x^i/i!, summed from its largest term down.
    let mut term = 1.0;
    let mut sum = 1.0;
    for i in (1..shape).rev() {
        term *= i as f64 / x;
        sum += term;
        if term < 1e-12 * sum {
            break;
        }
    }
    let ln_factorial: f64 = (1..shape).map(|i| (i as f64).ln()).sum();
    (shape - 1) as f64 * x.ln() - ln_factorial - x + f64::ln(sum)
}

/// The value that a Gamma variable of integer `shape` exceeds with a probability of e^-`surprise`.
fn gamma_threshold(shape: usize, surprise: f64) -> f64 {
    let (mut low, mut high) = (shape as f64, 4.0 * (shape as f64 + surprise));
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if -ln_gamma_tail(shape, middle) < surprise { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_tails_are_right() {
        assert!((ln_gamma_tail(1, 20.0) + 20.0).abs() < 1e-9);
        // Q(4, 20) = e^-20 (1 + 20 + 200 + 8000/6)
        assert!((ln_gamma_tail(4, 20.0) - (1_554.333_333_f64.ln() - 20.0)).abs() < 1e-6);
        assert!((gamma_threshold(1, 25.0) - 25.0).abs() < 1e-6);
        assert!((ln_gamma_tail(512, gamma_threshold(512, 22.0)) + 22.0).abs() < 1e-6);
    }
}
