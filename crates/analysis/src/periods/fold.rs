//! From a line in the spectrum to the train behind it: its events, its exact period, and whether it is a train at all.
//!
//! The starts are folded at the suspected period. A train's phase is followed through groups of cycles, using as few
//! groups as its drift allows. Then the cycles with an event within a window around that phase are counted: the
//! binomial tail (Chernoff, Ann. Math. Statist. 23, 1952) bounds the probability that chance hits as many. Counting
//! hit cycles, not events, keeps bursts from looking like trains.

use std::f64::consts::TAU;

use super::spectrum::Line;
use super::{Events, FEWEST_CYCLES, LEAST_FILL};
use crate::stats::{mean, median_high};

/// Maximum number of cells of time in which phases are summed before they are grouped; a power of 4.
const MOST_CELLS: usize = 4_096;

/// Number of bins of the histogram of phases; a power of 2.
const PHASES: usize = 1_024;

/// The half-widths of windows that are tried, in bins of that histogram: up to an eighth of a cycle to each side.
const HALF_WIDTHS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Harmonics up to this power of 2 refine a frequency.
const HIGHEST_HARMONIC: i32 = 8;

/// Minimum ratio of a harmonic's power to that of chance for refining a frequency with it.
const STANDS_OUT: f64 = 8.0;

/// Approximate number of events that is enough to refine a frequency.
const ENOUGH_EVENTS: f64 = 65_536.0;

/// A train among the events of a band.
#[derive(Clone, Debug)]
pub(super) struct Train {
    /// Frequency, in cycles per nanosecond.
    pub frequency: f64,
    /// Number of its events, net of chance.
    pub events: f64,
    /// Their median duration, in nanoseconds.
    pub median_duration_ns: u64,
    /// Sum of their times, in nanoseconds, net of chance.
    pub noise_ns: f64,
}

/// The train behind `line`, if the probability that chance makes such a train is at most `allowance`.
pub(super) fn follow(events: &Events, line: &Line, allowance: f64) -> Option<Train> {
    let frequency = sharpened(events, line);
    let cycles = (frequency * events.length).round();
    if cycles < FEWEST_CYCLES as f64 - 0.5 {
        return None;
    }
    let cells = Cells::fold(events, frequency);
    let groups = cells.groups();
    let phases = Phases::fold(events, frequency, &cells.group_phases(groups));
    let window = phases.best_window();
    let hits = phases.hits(&window);
    // Correction for choices: a phase is fitted for each group, and the window is one of several.
    let choices = (groups as f64 + 1.0) * (1.0 / window.share()).ln() + (HALF_WIDTHS.len() as f64).ln();
    let chance = hits.by_chance.max(-(-(events.starts.len() as f64) / cycles * window.share()).exp_m1());
    let surprise = cycles * binary_divergence(hits.train / cycles, chance) - choices;
    let filled = hits.train / cycles - chance >= LEAST_FILL * (1.0 - chance);
    if !filled || surprise <= -allowance.ln() {
        return None;
    }
    let slower = phases.only_each(&window).and_then(|n| {
        let line = Line { frequency: frequency / n as f64, ..line.clone() };
        follow(events, &line, allowance)
    });
    slower.or_else(|| phases.train(events, frequency, &window))
}

/// The frequency of `line`, as precise as the train allows: each harmonic that still stands out halves the
/// error of the previous one.
fn sharpened(events: &Events, line: &Line) -> f64 {
    // A strong train is equally sharp in a part of its events.
    let spare = (line.power / (8.0 * STANDS_OUT)).min(events.starts.len() as f64 / ENOUGH_EVENTS);
    let events = &events.each(spare as usize);
    let coarse = Cells::fold(events, line.frequency).refined(1.5 * line.resolution);
    // In the second pass, cells no longer lose power to an error of the frequency.
    let mut frequency = Cells::fold(events, coarse).refined(0.2 * line.resolution);
    for harmonic in (1..=HIGHEST_HARMONIC).map(|doublings| f64::from(1 << doublings)) {
        let cells = Cells::fold(events, harmonic * frequency);
        let refined = cells.refined(1.0 / events.length);
        let power = cells.power(refined - cells.frequency) / events.starts.len() as f64;
        if cells.groups() > 1 || power < STANDS_OUT {
            break;
        }
        frequency = refined / harmonic;
    }
    frequency
}

/// The sum of e^(−2πi f t) over the starts in each of a number of equal cells of time.
struct Cells {
    frequency: f64,
    /// The length of a cell, in nanoseconds.
    length: f64,
    sums: Vec<(f64, f64)>,
    counts: Vec<f64>,
}

impl Cells {
    fn fold(events: &Events, frequency: f64) -> Self {
        let most = (frequency * events.length / 2.0).min(MOST_CELLS as f64);
        let mut cells = 1;
        while (cells * 4) as f64 <= most {
            cells *= 4;
        }
        let (mut sums, mut counts) = (vec![(0.0, 0.0); cells], vec![0.0; cells]);
        let length = events.length / cells as f64;
        for &start in &events.starts {
            let cell = ((start / length) as usize).min(cells - 1);
            let (sin, cos) = ((frequency * start).fract() * TAU).sin_cos();
            sums[cell].0 += cos;
            sums[cell].1 -= sin;
            counts[cell] += 1.0;
        }
        Self { frequency, length, sums, counts }
    }

    /// The frequency with the most power within `reach`; if a train drifts, its mean frequency.
    fn refined(&self, reach: f64) -> f64 {
        let groups = self.groups();
        if groups > 1 {
            return self.frequency + self.drift(groups);
        }
        let span = self.length * self.sums.len() as f64;
        let step = (0.05 / span).max(reach / 100.0);
        let steps = (reach / step).ceil() as i32;
        let power = |i: i32| self.power(f64::from(i) * step);
        let best =
            (-steps..=steps).map(|i| (power(i), i)).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let (top, i) = best.unwrap_or((0.0, 0));
        self.frequency + step * (f64::from(i) + vertex(power(i - 1), top, power(i + 1)))
    }

    /// The power at the frequency plus `offset`.
    fn power(&self, offset: f64) -> f64 {
        let (turn_sin, turn_cos) = (TAU * offset * self.length).sin_cos();
        // Each cell is turned on from the one before it: a sine for each would take most of the time of an analysis.
        let (mut sin, mut cos, mut re, mut im) = (0.0, 1.0, 0.0, 0.0);
        for z in &self.sums {
            re += z.0 * cos + z.1 * sin;
            im += z.1 * cos - z.0 * sin;
            (sin, cos) = (sin * turn_cos + cos * turn_sin, cos * turn_cos - sin * turn_sin);
        }
        re * re + im * im
    }

    /// The correction to the frequency from the linear regression of the groups' phases on time.
    fn drift(&self, groups: usize) -> f64 {
        let phases = unwrapped(&self.group_phases(groups));
        let middle = (groups - 1) as f64 / 2.0;
        let mean = mean(phases.iter().copied()).unwrap_or(0.0);
        let (mut above, mut below) = (0.0, 0.0);
        for (i, phase) in phases.iter().enumerate() {
            above += (i as f64 - middle) * (phase - mean);
            below += (i as f64 - middle).powi(2);
        }
        let group_length = self.length * (self.sums.len() / groups) as f64;
        -above / below / group_length
    }

    /// The number of groups in which the phase must be followed: the fewest that keep most of the train. A train of n events
    /// that keeps its phase within a group has, over the groups, a power of n²/groups above the events' own, N.
    fn groups(&self) -> usize {
        // In a group of few cycles, evenly spaced events do not cancel.
        let cycles = self.frequency * self.length * self.sums.len() as f64;
        let most = self.sums.len().min((cycles / FEWEST_CYCLES as f64) as usize);
        let candidates = || (0..6).map(|i| 4usize.pow(i)).take_while(|&groups| groups <= most);
        let train = |groups: usize| {
            let (mut excess, mut variance) = (0.0, 0.0);
            for (z, count) in self.grouped(groups) {
                excess += z.0 * z.0 + z.1 * z.1 - count;
                variance += count * count;
            }
            // The contribution of chance is subtracted; otherwise the many phases of many groups would always fit best.
            groups as f64 * (excess - 3.0 * f64::sqrt(variance)).max(0.0)
        };
        let most = candidates().map(train).fold(0.0, f64::max);
        candidates().find(|&groups| train(groups) >= 0.8 * most).unwrap_or(1)
    }

    fn grouped(&self, groups: usize) -> impl Iterator<Item = ((f64, f64), f64)> {
        let size = self.sums.len() / groups;
        self.sums.chunks(size).zip(self.counts.chunks(size)).map(|(sums, counts)| {
            let sum = sums.iter().fold((0.0, 0.0), |s, z| (s.0 + z.0, s.1 + z.1));
            (sum, counts.iter().sum())
        })
    }

    /// The phase of the train in each group, in cycles: the position in its cycle at which it strikes.
    fn group_phases(&self, groups: usize) -> Vec<f64> {
        self.grouped(groups).map(|((re, im), _)| -im.atan2(re) / TAU).collect()
    }
}

/// The position of the vertex of a parabola through three equally spaced heights, from the middle one, in steps.
fn vertex(before: f64, top: f64, after: f64) -> f64 {
    let bend = before - 2.0 * top + after;
    if bend < 0.0 { (0.5 * (before - after) / bend).clamp(-0.5, 0.5) } else { 0.0 }
}

/// Phases in cycles, each shifted by whole cycles to within half a cycle of the previous one.
fn unwrapped(phases: &[f64]) -> Vec<f64> {
    let mut last = phases.first().copied().unwrap_or(0.0);
    let near = |&phase: &f64| {
        last += centred(phase - last);
        last
    };
    phases.iter().map(near).collect()
}

/// A phase as a distance from the nearest whole cycle, −½ to ½.
fn centred(phase: f64) -> f64 {
    phase - phase.round()
}

/// The starts as phases of the train: the integer part is the number of the cycle, the fraction the distance from the train's place.
struct Phases {
    phases: Vec<f64>,
    histogram: Vec<usize>,
}

/// A window of phases.
struct Window {
    centre: f64,
    half_width: f64,
}

impl Window {
    fn holds(&self, phase: f64) -> bool {
        centred(phase - self.centre).abs() <= self.half_width
    }

    /// The share of a cycle that the window covers.
    fn share(&self) -> f64 {
        2.0 * self.half_width
    }
}

/// Number of cycles with an event in the train's window, and the share of cycles with one in another window of that width.
struct Hits {
    train: f64,
    by_chance: f64,
}

impl Phases {
    fn fold(events: &Events, frequency: f64, groups: &[f64]) -> Self {
        let followed = unwrapped(groups);
        let per_ns = groups.len() as f64 / events.length;
        let mut histogram = vec![0; PHASES];
        let phase = |&start: &f64| {
            let group = ((start * per_ns) as usize).min(followed.len() - 1);
            let phase = frequency * start - followed[group];
            histogram[bin_of(phase)] += 1;
            phase
        };
        Self { phases: events.starts.iter().map(phase).collect(), histogram }
    }

    /// The window with most events above chance, by the binomial divergence.
    fn best_window(&self) -> Window {
        let total = self.phases.len() as f64;
        let mut best = (-1.0, 0, HALF_WIDTHS[0]);
        for half in HALF_WIDTHS {
            let chance = (2 * half) as f64 / PHASES as f64;
            let mut inside: usize = (0..2 * half).map(|i| self.histogram[i]).sum();
            for first in 0..PHASES {
                let score = binary_divergence(inside as f64 / total, chance);
                if score > best.0 {
                    best = (score, first, half);
                }
                inside += self.histogram[(first + 2 * half) % PHASES];
                inside -= self.histogram[first];
            }
        }
        let (_, first, half) = best;
        Window { centre: (first + half) as f64 / PHASES as f64, half_width: half as f64 / PHASES as f64 }
    }

    fn hits(&self, window: &Window) -> Hits {
        // The train's window and others of the same width, evenly spaced over the cycle.
        let places = (0.5 / window.half_width / 2.0).clamp(2.0, 8.0) as usize;
        let mut last = vec![f64::NAN; places];
        let mut hits = vec![0u64; places];
        for phase in &self.phases {
            let from_centre = phase - window.centre;
            let place = (from_centre.rem_euclid(1.0) * places as f64).round() as usize % places;
            let offset = from_centre - place as f64 / places as f64;
            let cycle = offset.round();
            if (offset - cycle).abs() <= window.half_width && cycle != last[place] {
                last[place] = cycle;
                hits[place] += 1;
            }
        }
        let train = hits[0] as f64;
        let cycles =
            (self.phases.last().zip(self.phases.first())).map_or(1.0, |(l, f)| (l - f).abs().max(1.0));
        let by_chance = hits[1..].iter().max().map_or(0.0, |&most| most as f64 / cycles);
        Hits { train, by_chance: by_chance.min(1.0) }
    }

    /// The number n if only each n-th cycle is hit: then the line was a harmonic.
    fn only_each(&self, window: &Window) -> Option<usize> {
        let cycle = |phase: &f64| (phase - window.centre).round() as i64;
        let inside = || self.phases.iter().filter(|&&phase| window.holds(phase)).map(cycle);
        let count = inside().count() as f64;
        let chance = window.share() / (1.0 - window.share()) * (self.phases.len() as f64 - count);
        [2, 3, 5].into_iter().find(|&n| {
            let mut hits = vec![0.0; n];
            inside().for_each(|cycle| hits[cycle.rem_euclid(n as i64) as usize] += 1.0);
            let most = hits.into_iter().fold(0.0, f64::max);
            most - chance / n as f64 >= 0.7 * (count - chance)
        })
    }

    /// The train in `window`, widened to include all of its jitter.
    fn train(&self, events: &Events, frequency: f64, window: &Window) -> Option<Train> {
        let window = self.widened(window);
        let (mut inside, mut time_inside, mut time_outside) = (Vec::new(), 0.0, 0.0);
        for (&phase, &duration) in self.phases.iter().zip(&events.durations) {
            if window.holds(phase) {
                inside.push(duration);
                time_inside += duration as f64;
            } else {
                time_outside += duration as f64;
            }
        }
        let odds = window.share() / (1.0 - window.share());
        let found = inside.len() as f64 - odds * (self.phases.len() - inside.len()) as f64;
        if found < 0.5 * FEWEST_CYCLES as f64 {
            return None;
        }
        let median_duration_ns = median_high(&mut inside, u64::cmp)?;
        let noise_ns = (time_inside - odds * time_outside).clamp(0.0, time_inside);
        (noise_ns > 0.0).then_some(Train { frequency, events: found, median_duration_ns, noise_ns })
    }

    /// The window around the same centre with most events above chance, by more than the error of that number.
    fn widened(&self, window: &Window) -> Window {
        let total = self.phases.len() as f64;
        let centre = (window.centre * PHASES as f64).round() as usize;
        let gain = |half: usize| {
            let first = centre + PHASES - half;
            let inside: usize = (0..2 * half).map(|i| self.histogram[(first + i) % PHASES]).sum();
            let share = (2 * half) as f64 / PHASES as f64;
            let odds = share / (1.0 - share);
            let chance = odds * (total - inside as f64);
            inside as f64 - chance - 2.0 * chance.sqrt()
        };
        let narrowest = (window.half_width * PHASES as f64).round() as usize;
        let wider = HALF_WIDTHS.into_iter().chain([192, 256]).filter(|&half| half >= narrowest);
        let half = wider.max_by(|&a, &b| gain(a).total_cmp(&gain(b)).then(b.cmp(&a))).unwrap_or(narrowest);
        Window { centre: window.centre, half_width: half as f64 / PHASES as f64 }
    }
}

fn bin_of(phase: f64) -> usize {
    (phase.rem_euclid(1.0) * PHASES as f64) as usize % PHASES
}

/// The Kullback-Leibler divergence of a coin with probability `observed` from one with `expected`, in nats; 0 if no more
/// than expected was observed.
fn binary_divergence(observed: f64, expected: f64) -> f64 {
    let observed = observed.min(1.0);
    if observed <= expected || expected >= 1.0 {
        return 0.0;
    }
    let term = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
    term(observed, expected) + term(1.0 - observed, 1.0 - expected)
}
