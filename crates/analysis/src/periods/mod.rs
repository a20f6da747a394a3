//! Periods in the noise of one CPU: timer ticks, and tasks that wake on a timer.
//!
//! The starts of detours are a point process. If it contains a train of (nearly) evenly spaced events, its
//! spectrum has lines at the train's frequency and its multiples (Bartlett, "The Spectral Analysis of Point
//! Processes", J. R. Statist. Soc. B 25, 1963). Short detours are numerous enough to drown all others, so each band
//! of durations is searched separately. A line is only a suspicion: `fold` then returns to the events
//! themselves, follows the train through them and decides.

mod fold;
mod spectrum;

use quell_recording::Trace;
use quell_recording::columns::{Columns, describe};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use fold::Train;
use spectrum::Line;

/// The probability that noise without any period (a Poisson process) yields a finding, over all bands and
/// frequencies of one trace. The bounds behind it are conservative: the measured rate is lower.
pub const FALSE_ALARM: f64 = 0.01;

/// The shortest period that is searched for, in nanoseconds.
pub const SHORTEST_NS: u64 = 50_000;

/// Minimum number of cycles of a period in the span of the trace.
pub const FEWEST_CYCLES: u64 = 8;

/// A train must be found in at least this share of its cycles.
const LEAST_FILL: f64 = 0.25;

/// Below this share of its band, a train cannot be distinguished from the shadow of one with the same period in another band.
const WEAK: f64 = 0.2;

/// The search in one band ends after this number of lines that were not trains.
const MOST_FAILURES: usize = 5;

/// One train of evenly spaced detours.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Period {
    /// The mean distance of its events, in nanoseconds.
    #[column]
    #[column(title = "Hz", number, with = per_second)]
    pub period_ns: f64,
    /// Number of detours that belong to it, net of chance.
    #[column(title = "detours")]
    pub events: u64,
    /// The median duration of its detours, in nanoseconds.
    #[column(title = "median")]
    pub median_duration_ns: u64,
    /// The share of the band's detours that belong to it, 0 to 1, net of those that match by chance.
    #[column(title = "fit %", percent, precision = 0, with = in_percent)]
    pub strength: f64,
    /// The time that it took, in nanoseconds, net of chance.
    #[column(title = "noise")]
    pub noise_ns: u64,
    /// The band of durations in which it was found.
    pub band: Band,
}

/// Frequency of a period, in Hz.
fn per_second(period_ns: &f64) -> f64 {
    1e9 / period_ns
}

fn in_percent(share: &f64) -> f64 {
    100.0 * share
}

/// A range of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Band {
    /// The shortest duration in it, in nanoseconds.
    pub low_ns: u64,
    /// The longest duration in it, in nanoseconds.
    pub high_ns: u64,
}

impl Band {
    fn holds(self, ns: u64) -> bool {
        (self.low_ns..=self.high_ns).contains(&ns)
    }

    fn contains(self, other: Self) -> bool {
        self.low_ns <= other.low_ns && other.high_ns <= self.high_ns
    }

    fn touches(self, other: Self) -> bool {
        self.low_ns <= other.high_ns.saturating_add(1) && other.low_ns <= self.high_ns.saturating_add(1)
    }
}

/// The trains of evenly spaced detours in `trace`, by time taken.
///
/// Finds periods from 50 us to an eighth of the span, with a false-alarm probability of [`FALSE_ALARM`]. Wake-ups may jitter, drift and be
/// missed, as long as a quarter of the cycles is hit.
pub fn periods(trace: &Trace) -> Vec<Period> {
    let length = trace.span.length().as_nanos();
    if length / FEWEST_CYCLES < SHORTEST_NS {
        return Vec::new();
    }
    let bands = bands(trace);
    let allowance = FALSE_ALARM / bands.len().max(1) as f64;
    let found: Vec<Vec<Found>> =
        bands.par_iter().map(|&band| Events::from_trace(trace, band).trains(allowance)).collect();
    let mut periods: Vec<Period> =
        without_duplicates(found.into_iter().flatten().collect()).into_iter().map(|f| f.period).collect();
    periods.sort_by(|a, b| b.noise_ns.cmp(&a.noise_ns).then(a.period_ns.total_cmp(&b.period_ns)));
    periods
}

/// The bands: all durations, half decades, and the decades that begin at each of these, for trains on the edge of two.
/// Omits bands with too few detours, or with the same detours as a narrower one.
fn bands(trace: &Trace) -> Vec<Band> {
    let edge = |half_decade: i32| match half_decade {
        0 => 0,
        1..=38 => 10f64.powf(f64::from(half_decade) / 2.0).round() as u64,
        _ => u64::MAX,
    };
    let mut counts = [0u64; 39];
    for detour in trace.noise() {
        let half = (crate::density::log10(detour.duration.as_nanos()) * 2.0) as usize;
        counts[half.min(38)] += 1;
    }
    let mut bands: Vec<(Band, u64)> = Vec::new();
    for width in [1, 2, 39] {
        for first in 0..=39 - width {
            let count = counts[first..first + width].iter().sum();
            let high = edge((first + width) as i32).saturating_sub(u64::from(first + width < 39));
            let band = Band { low_ns: edge(first as i32), high_ns: high };
            let within =
                |b: &(Band, u64)| b.1 == count && band.low_ns <= b.0.low_ns && b.0.high_ns <= band.high_ns;
            if count >= FEWEST_CYCLES && !bands.iter().any(within) {
                bands.push((band, count));
            }
        }
    }
    bands.into_iter().map(|(band, _)| band).collect()
}

/// The detours of one band.
struct Events {
    band: Band,
    /// Starts, in nanoseconds since the start of the span, ascending.
    starts: Vec<f64>,
    /// Durations, in nanoseconds.
    durations: Vec<u64>,
    /// The span, in nanoseconds.
    length: f64,
}

/// A period with a measure of its evidence.
struct Found {
    period: Period,
    /// The train's events squared over the band's: the height of its line in the spectrum. It weighs how much of
    /// the train a band contains against how much else it contains.
    height: f64,
}

impl Events {
    fn from_trace(trace: &Trace, band: Band) -> Self {
        let span = trace.span;
        let within = trace
            .noise()
            .filter(|d| band.holds(d.duration.as_nanos()) && d.start >= span.start && d.start < span.end);
        let (starts, durations) =
            within.map(|d| ((d.start - span.start).as_nanos() as f64, d.duration.as_nanos())).unzip();
        let mut events = Self { band, starts, durations, length: span.length().as_nanos() as f64 };
        events.sort();
        events
    }

    /// Every `n`-th event only (all for 0 and 1).
    fn each(&self, n: usize) -> Self {
        let starts = self.starts.iter().copied().step_by(n.max(1)).collect();
        Self { starts, durations: Vec::new(), ..*self }
    }

    /// Sorts the events: recorded traces are sorted, but hostile ones may not be.
    fn sort(&mut self) {
        if !self.starts.is_sorted() {
            let mut both: Vec<(f64, u64)> = self.starts.drain(..).zip(self.durations.drain(..)).collect();
            both.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            (self.starts, self.durations) = both.into_iter().unzip();
        }
    }

    /// The trains in this band. Each is found in the lines that remain after the stronger ones.
    fn trains(&self, allowance: f64) -> Vec<Found> {
        if (self.starts.len() as u64) < FEWEST_CYCLES {
            return Vec::new();
        }
        let (mut lines, tests) = spectrum::lines(self, allowance);
        let mut found = Vec::new();
        let mut failures = 0;
        while failures < MOST_FAILURES {
            let Some(line) = fundamental(&lines) else { break };
            match fold::follow(self, &line, allowance / tests) {
                Some(train) => {
                    lines.retain(|other| !explained(other, &line, train.frequency));
                    found.push(self.found(&train));
                }
                None => failures += 1,
            }
            lines.retain(|other| (other.frequency - line.frequency).abs() > 2.0 * line.resolution);
        }
        found
    }

    fn found(&self, train: &Train) -> Found {
        let count = self.starts.len() as f64;
        let period = Period {
            period_ns: 1.0 / train.frequency,
            strength: (train.events / count).clamp(0.0, 1.0),
            events: train.events.round() as u64,
            median_duration_ns: train.median_duration_ns,
            noise_ns: train.noise_ns.round() as u64,
            band: self.band,
        };
        Found { period, height: train.events * train.events / count }
    }
}

/// The strongest line, or the lowest line that it is a multiple of and that is about as strong: sharp trains have
/// harmonics as strong as the fundamental.
fn fundamental(lines: &[Line]) -> Option<Line> {
    let strongest = lines.iter().max_by(|a, b| a.surprise.total_cmp(&b.surprise))?;
    let divides = |line: &&Line| {
        let ratio = strongest.frequency / line.frequency;
        let error = (ratio - ratio.round()).abs() * line.frequency;
        ratio > 1.5
            && error < strongest.resolution + ratio * 0.5 * line.resolution
            && error < 0.1 * line.frequency
    };
    let as_strong = |line: &&Line| line.power >= 0.25 * strongest.power;
    let lowest =
        lines.iter().filter(divides).filter(as_strong).min_by(|a, b| a.frequency.total_cmp(&b.frequency));
    // The frequency of the lowest line is most precise where that line is strongest.
    let near = |line: &&Line, to: &Line| (line.frequency - to.frequency).abs() <= 2.0 * to.resolution;
    let best = lowest.and_then(|to| {
        lines.iter().filter(|line| near(line, to)).max_by(|a, b| a.surprise.total_cmp(&b.surprise))
    });
    Some(best.unwrap_or(strongest).clone())
}

/// Whether `other` is a harmonic of the train whose fundamental is `line`. Jitter only weakens harmonics, so one
/// that is much stronger than the fundamental is a train of its own.
fn explained(other: &Line, line: &Line, frequency: f64) -> bool {
    let harmonic = (other.frequency / frequency).round();
    let error = (other.frequency - harmonic * frequency).abs();
    let tolerance = (2.0 * other.resolution + 0.002 * other.frequency).min(0.3 * frequency);
    harmonic >= 1.0 && error <= tolerance && other.power <= 2.0 * line.power
}

/// Keeps each train once, from the band where it stands out most. A simple multiple or fraction of a kept train
/// among detours of similar durations is the same train, seen in a band that cuts it.
fn without_duplicates(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by(|a, b| {
        b.height.total_cmp(&a.height).then(a.period.period_ns.total_cmp(&b.period.period_ns))
    });
    let mut kept: Vec<Found> = Vec::new();
    for candidate in found {
        if !kept.iter().any(|k| same_train(&k.period, &candidate.period)) {
            kept.push(candidate);
        }
    }
    kept
}

fn same_train(kept: &Period, other: &Period) -> bool {
    let ratio = kept.period_ns.max(other.period_ns) / kept.period_ns.min(other.period_ns);
    let multiple = ratio.round();
    let (short, long) = (kept.median_duration_ns.max(1), other.median_duration_ns.max(1));
    let alike = short.max(long) / short.min(long) < 3;
    // A wider band shows harmonics of what a narrower one in it resolved.
    let harmonic = other.band.contains(kept.band) && other.period_ns < kept.period_ns;
    // While a train runs no other detour can begin: its period shows, weakly, in all bands.
    let shadow = other.strength < WEAK;
    (ratio - multiple).abs() < 0.01 * multiple
        && match multiple {
            0.0..=1.0 => shadow || kept.band.touches(other.band),
            0.0..=16.0 => kept.band.touches(other.band) && (alike || harmonic),
            _ => false,
        }
}
