//! Whether replayed noise equals the recorded noise: compares a probe's recording of it with the original (De et al. 2008, §IV-D).

use quell_recording::columns::{Columns, describe};
use quell_recording::{Detour, Nanos, Span, Trace};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Warning;
use crate::compare::{self, CompareError, Comparison, Options, Side, kolmogorov_smirnov};
use crate::stats::{Durations, mean};

/// The schema's name and version.
pub const SCHEMA: &str = "quell.validate/2";

/// A comparison of original and emulated noise.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Validation {
    /// Always `quell.validate/2`.
    pub schema: &'static str,
    /// The method of injection: `timer` or `process`.
    pub context: String,
    /// The factor by which it was scaled; all that follows is scaled back.
    pub scale: f64,
    /// Overhead of one detour in addition to the burned time, which is reduced by it; 0 if it was not compensated.
    pub overhead_ns: u64,
    /// Share of the original's detours that could be injected, in percent.
    pub detours_percent: f64,
    /// Number of detours that were injected while the probe ran.
    pub injected: u64,
    /// Number of these that the probe saw.
    pub seen: u64,
    /// The machine's own noise during the emulation: detours that were not injected. The comparison excludes it.
    pub own: Own,
    /// The machine's own noise before the emulation.
    pub before: Own,
    /// Kullback-Leibler divergence D(emulated‖original) of the Parzen densities over log10 of the duration, in nats.
    pub kl_nats: Option<f64>,
    /// The reverse divergence: D(original‖emulated), which is large if a part of the original is missing.
    pub kl_reverse_nats: Option<f64>,
    /// D(emulated‖original) including the machine's own noise.
    pub kl_with_own_nats: Option<f64>,
    /// Wasserstein-1 distance of the durations.
    pub wasserstein_ns: Option<f64>,
    /// Kolmogorov-Smirnov distance of the durations, from 0 to 1.
    pub kolmogorov_smirnov: Option<f64>,
    /// The detours by duration, in classes of a decade each.
    pub classes: Vec<Class>,
    /// All further figures of a comparison of two recordings: the original is before, the emulated after.
    pub comparison: Comparison,
    /// Limits of the results.
    pub warnings: Vec<Warning>,
}

/// The machine's own noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Own {
    /// Detours per second.
    pub rate_per_s: f64,
    /// Their time over the time observed, in percent.
    pub overhead_percent: f64,
}

/// Detours of one class of durations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct Class {
    /// Minimum duration, inclusive.
    pub from_ns: u64,
    /// Maximum duration, exclusive.
    pub to_ns: u64,
    /// Number per second in the original.
    #[column(title = "original /s")]
    pub original_per_s: f64,
    /// Number per second when emulated.
    #[column(title = "emulated /s")]
    pub emulated_per_s: f64,
    /// Their mean in the original; null if there are none.
    #[column]
    pub original_mean_ns: Option<f64>,
    /// Their mean when emulated; null if there are none.
    #[column]
    pub emulated_mean_ns: Option<f64>,
}

/// An injected detour, on the recording's timeline, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    /// When burning began.
    pub start_ns: u64,
    /// When burning ended.
    pub end_ns: u64,
}

/// A recording, divided into injected and own detours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitTrace {
    /// Detours during which time was burned.
    pub emulated: Trace,
    /// All other detours: the machine's own.
    pub own: Trace,
    /// Number of injected detours while the probe ran.
    pub injected: u64,
    /// Number of these that a recorded detour overlaps.
    pub seen: u64,
}

/// Separates injected detours from the machine's own: a detour is injected if it holds a part of a burn. Both are ordered by start.
pub fn split_injected(recorded: &Trace, injected: &[Injected]) -> SplitTrace {
    let within = |event: &&Injected| {
        event.start_ns >= recorded.span.start.as_nanos() && event.end_ns <= recorded.span.end.as_nanos()
    };
    let mut events = injected.iter().filter(within).peekable();
    let (mut emulated, mut own) = (Vec::new(), Vec::new());
    let (mut all, mut seen) = (0, 0);
    for &detour in recorded.detours.iter().filter(|detour| !detour.own) {
        while events.next_if(|event| event.end_ns < detour.start.as_nanos()).is_some() {
            all += 1;
        }
        let mut touched = false;
        while events.next_if(|event| event.start_ns <= detour.end().as_nanos()).is_some() {
            (all, seen, touched) = (all + 1, seen + 1, true);
        }
        if touched { emulated.push(detour) } else { own.push(detour) }
    }
    all += events.count() as u64;
    let of =
        |detours| Trace { detours, ..Trace { cpu: recorded.cpu, span: recorded.span, detours: Vec::new() } };
    SplitTrace { emulated: of(emulated), own: of(own), injected: all, seen }
}

/// A trace with all its times divided by a factor.
pub fn scaled_back(trace: &Trace, scale: f64) -> Trace {
    let back = |time: Nanos| Nanos::from_nanos((time.as_nanos() as f64 / scale).round() as u64);
    let detour =
        |detour: &Detour| Detour { start: back(detour.start), duration: back(detour.duration), ..*detour };
    let span = Span { start: back(trace.span.start), end: back(trace.span.end) };
    Trace { cpu: trace.cpu, span, detours: trace.detours.iter().map(detour).collect() }
}

/// The recordings to compare, all on one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// The name of the recording that was replayed, or of its model.
    pub name: &'a str,
    /// Its traces.
    pub original: &'a [Trace],
    /// The probe's recording under emulation, divided, not scaled back.
    pub parted: &'a SplitTrace,
    /// The probe's recording before the emulation.
    pub before: &'a Trace,
    /// The factor by which the noise was scaled.
    pub scale: f64,
    /// The seed of the confidence intervals.
    pub seed: u64,
}

/// Compares the sides. The caller fills in the fields that describe the injection.
///
/// # Errors
/// When nothing was observed on one side.
pub fn validate(sides: &Sides<'_>) -> Result<Validation, CompareError> {
    let parted = sides.parted;
    let emulated = scaled_back(&parted.emulated, sides.scale);
    let options = Options { seed: sides.seed, ..Options::default() };
    let original = Side { name: sides.name, traces: sides.original };
    let traces = [emulated];
    let comparison = compare::compare(&original, &Side { name: "emulated", traces: &traces }, &options)?;
    let mut all = parted.emulated.clone();
    all.detours.extend(&parted.own.detours);
    all.detours.sort_by_key(|detour| detour.start);
    let all = [scaled_back(&all, sides.scale)];
    let [a, b] = [sides.original, &traces[..]].map(Durations::from_noise);
    let mut warnings = Vec::new();
    if parted.seen < parted.injected {
        warnings.push(Warning::InjectedUnseen { seen: parted.seen, injected: parted.injected });
    }
    Ok(Validation {
        schema: SCHEMA,
        context: String::new(),
        scale: sides.scale,
        overhead_ns: 0,
        detours_percent: 100.0,
        injected: parted.injected,
        seen: parted.seen,
        own: Own::from_trace(&parted.own),
        before: Own::from_trace(sides.before),
        kl_nats: comparison.kl_nats,
        kl_reverse_nats: comparison.kl_reverse_nats,
        kl_with_own_nats: compare::divergence(sides.original, &all),
        wasserstein_ns: comparison.wasserstein_ns,
        kolmogorov_smirnov: kolmogorov_smirnov(a.as_slice(), b.as_slice()),
        classes: classes(sides.original, &traces),
        comparison,
        warnings,
    })
}

impl Own {
    fn from_trace(trace: &Trace) -> Self {
        let seconds = trace.observed().as_nanos() as f64 / 1e9;
        let lost: f64 = trace.noise().map(|detour| detour.duration.as_nanos() as f64).sum();
        if seconds <= 0.0 {
            return Self::default();
        }
        Self { rate_per_s: trace.noise().count() as f64 / seconds, overhead_percent: lost / seconds / 1e7 }
    }
}

/// The classes: decades from a microsecond to ten milliseconds, and one class each below and above. Empty classes are omitted.
fn classes(original: &[Trace], emulated: &[Trace]) -> Vec<Class> {
    const ENDS: [u64; 7] = [0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, u64::MAX];
    let side = |traces: &[Trace], from: u64, to: u64| {
        let seconds: f64 = traces.iter().map(|trace| trace.observed().as_nanos() as f64 / 1e9).sum();
        let lengths: Vec<f64> = traces
            .iter()
            .flat_map(Trace::noise)
            .map(|detour| detour.duration.as_nanos())
            .filter(|length| (from..to).contains(length))
            .map(|length| length as f64)
            .collect();
        let mean = mean(lengths.iter().copied());
        (if seconds > 0.0 { lengths.len() as f64 / seconds } else { 0.0 }, mean)
    };
    let class = |ends: &[u64]| {
        let (from_ns, to_ns) = (ends[0], ends[1]);
        let (original_per_s, original_mean_ns) = side(original, from_ns, to_ns);
        let (emulated_per_s, emulated_mean_ns) = side(emulated, from_ns, to_ns);
        Class { from_ns, to_ns, original_per_s, emulated_per_s, original_mean_ns, emulated_mean_ns }
    };
    let classes = ENDS.windows(2).map(class);
    classes.filter(|class| class.original_mean_ns.is_some() || class.emulated_mean_ns.is_some()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use quell_recording::Cpu;

    fn trace(detours: &[(u64, u64)], end: u64) -> Trace {
        let detour = |&(start, duration): &(u64, u64)| Detour {
            start: Nanos::from_nanos(start),
            duration: Nanos::from_nanos(duration),
            own: false,
        };
        let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(end) };
        Trace { cpu: Cpu(1), span, detours: detours.iter().map(detour).collect() }
    }

    fn event(start_ns: u64, end_ns: u64) -> Injected {
        Injected { start_ns, end_ns }
    }

    #[test]
    fn burns_are_distinguished_from_the_machines_own() {
        let recorded = trace(&[(100, 50), (300, 10), (500, 100), (900, 5)], 1000);
        // One within a detour, two in one, one that the probe did not see, one after the end.
        let events = [event(110, 140), event(400, 410), event(510, 520), event(550, 590), event(2000, 2100)];
        let parted = split_injected(&recorded, &events);
        assert_eq!(parted.emulated, trace(&[(100, 50), (500, 100)], 1000));
        assert_eq!(parted.own, trace(&[(300, 10), (900, 5)], 1000));
        assert_eq!((parted.injected, parted.seen), (4, 3));
    }

    #[test]
    fn noise_scaled_up_and_back_is_the_same() {
        let original =
            [trace(&(0..1000).map(|i| (i * 10_000, 500 + i % 7 * 900)).collect::<Vec<_>>(), 10_000_000)];
        let scaled = scaled_back(&original[0], 1.0 / 3.0);
        let events: Vec<Injected> =
            scaled.detours.iter().map(|d| event(d.start.as_nanos(), d.end().as_nanos())).collect();
        let parted = split_injected(&scaled, &events);
        let before = trace(&[(5, 10)], 1_000_000);
        let sides =
            Sides { name: "x", original: &original, parted: &parted, before: &before, scale: 3.0, seed: 1 };
        let found = validate(&sides).unwrap();
        assert_eq!((found.injected, found.seen), (1000, 1000));
        assert!(found.kl_nats.unwrap() < 1e-6 && found.kolmogorov_smirnov == Some(0.0), "{found:?}");
        assert!(found.classes.iter().all(|class| (class.original_per_s - class.emulated_per_s).abs() < 1e-6));
        assert!((found.before.rate_per_s - 1000.0).abs() < 1e-6);
    }
}
