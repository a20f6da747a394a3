//! Turns traces into detours that can be injected, and counts what is lost on the way.

use std::time::Duration;

use quell_recording::{Cpu, Nanos, Span, Trace};
use quell_replay::schedule::Context;
use quell_replay::spin::LONGEST_BURN_NS;
use quell_replay::{LEAST_APART_NS, LEAST_USEFUL, LONGEST_DETOUR_NS};

/// The longest burn at real-time priority.
pub(super) const LONGEST_BURN: Duration = Duration::from_secs(1);
/// The maximum share of a CPU's time that is burned at real-time priority.
pub(super) const MOST_SHARE: f64 = 0.9;

/// The limits of a context, and the factor by which noise is scaled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Detours and the time between them are multiplied by this.
    pub scale: f64,
    /// Injection overhead per detour: shorter detours cannot be injected.
    pub overhead_ns: u64,
    /// The minimum time between two detours for the second to be injected on its own.
    pub smallest_gap_ns: u64,
    /// Longer detours are cut to this.
    pub longest_ns: u64,
    /// The minimum mean time from one detour to the next.
    pub apart_ns: u64,
    /// The maximum share of the time that is injected.
    pub most_share: f64,
}

impl Limits {
    /// A context without limits.
    pub const NONE: Self = Self {
        scale: 1.0,
        overhead_ns: 0,
        smallest_gap_ns: 0,
        longest_ns: u64::MAX,
        apart_ns: 0,
        most_share: 1.0,
    };

    /// What the injectors of a context refuse, or would cut, whatever it costs.
    pub fn from_context(context: Context) -> Self {
        let most_share = 1.0 - 1.0 / LEAST_USEFUL as f64;
        match context {
            Context::Boundary => Self { longest_ns: LONGEST_BURN_NS, most_share, ..Self::NONE },
            Context::Timer => {
                Self { longest_ns: LONGEST_DETOUR_NS, apart_ns: LEAST_APART_NS, most_share, ..Self::NONE }
            }
            Context::Process => {
                Self { longest_ns: LONGEST_BURN.as_nanos() as u64, most_share: MOST_SHARE, ..Self::NONE }
            }
        }
    }
}

/// The noise of one CPU, counted from the beginning of its node's trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuNoise {
    /// The CPU that it was recorded on.
    pub cpu: Cpu,
    /// The period after which it repeats, in ns.
    pub period_ns: u64,
    /// Start and length of each detour in ns, in order, without overlap.
    pub detours: Vec<(u64, u64)>,
}

impl CpuNoise {
    /// Noise in one period, in ns.
    pub fn noise_ns(&self) -> u64 {
        self.detours.iter().map(|detour| detour.1).sum()
    }
}

/// How much of the noise can be injected (De et al. 2008, §IV-A: “77 % of the jitter samples” at a scale of 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Detours in the traces.
    pub detours: u64,
    /// Those that are injected, merged ones included.
    pub kept: u64,
    /// Those that were merged into the detour before, because the gap between them is too small.
    pub merged: u64,
    /// Those too short to be injected.
    pub dropped: u64,
    /// Injected ones that were cut, because the context injects none that is as long.
    pub cut: u64,
    /// Time of all detours, in ns, before scaling.
    pub noise_ns: u64,
    /// Time of those that are injected, in ns, before scaling.
    pub kept_ns: u64,
}

impl Coverage {
    /// Share of the detours that are injected; 1 where there are none.
    pub fn detours_share(&self) -> f64 {
        if self.detours == 0 { 1.0 } else { self.kept as f64 / self.detours as f64 }
    }

    /// Share of their time that is injected; 1 where there is none.
    pub fn time_share(&self) -> f64 {
        if self.noise_ns == 0 { 1.0 } else { self.kept_ns as f64 / self.noise_ns as f64 }
    }
}

/// Noise of nodes, ready to write to a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The CPUs of each node.
    pub groups: Vec<Vec<CpuNoise>>,
    /// How many of the detours are injected.
    pub coverage: Coverage,
}

/// Why nothing can be injected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CompileError {
    /// There are no traces, or none that spans any time.
    #[error(
        "{0}: its CPUs were not observed at the same time, so they cannot be replayed together; record them together"
    )]
    Apart(String),
    /// No useful time is left.
    #[error(
        "{name}: the noise of CPU {cpu} leaves no time for a program; record a CPU that the probe can run on"
    )]
    AllNoise {
        /// The node's noise.
        name: String,
        /// The CPU.
        cpu: Cpu,
    },
    /// More of the time is noise than the context injects.
    #[error(
        "{name}: the noise of CPU {cpu} takes {percent:.1} % of the time, and this context injects {most:.0} % at most; use \
         another recording"
    )]
    TooMuch {
        /// The node's noise.
        name: String,
        /// The CPU.
        cpu: Cpu,
        /// Noise, as a percentage of the time.
        percent: f64,
        /// The context's limit, as a percentage.
        most: f64,
    },
    /// Detours are so frequent that the program would starve.
    #[error(
        "{name}: a detour every {period} on CPU {cpu} is too often for this context, in which each costs \
         {overhead}: with a period below {least}, the program starves. Scale the noise with --scale {scale}, or use --context boundary"
    )]
    TooOften {
        /// The node's noise.
        name: String,
        /// The CPU.
        cpu: Cpu,
        /// The mean time from one detour to the next.
        period: Nanos,
        /// Injection overhead per detour.
        overhead: Nanos,
        /// The shortest period that the context injects.
        least: Nanos,
        /// A scale that would work.
        scale: u64,
    },
    /// No scale injects the requested share of detours.
    #[error(
        "no factor up to {most} covers {wanted:.0} % of the detours; ask for less with --coverage, or use --context boundary"
    )]
    NoFactor {
        /// The largest scale that was tried.
        most: u64,
        /// The requested share, in percent.
        wanted: f64,
    },
}

/// Compiles the noise of nodes, each a name with the traces of its CPUs.
///
/// Where the gap between two detours is too small, the second is merged into the first (De et al. §IV-B). Detours that are still too
/// short after that are dropped (§IV-A). quell's own detours are not noise and are left out.
///
/// # Errors
/// [`CompileError`], except `NoFactor`.
pub fn compile(nodes: &[(&str, &[Trace])], limits: Limits) -> Result<Compiled, CompileError> {
    let mut coverage = Coverage::default();
    let mut groups = Vec::new();
    for &(name, traces) in nodes {
        let span = shared_span(traces).ok_or_else(|| CompileError::Apart(name.to_owned()))?;
        let mut group = Vec::new();
        for trace in traces {
            let noise = compile_cpu(trace, span, limits, &mut coverage);
            check(name, &noise, limits)?;
            group.push(noise);
        }
        groups.push(group);
    }
    Ok(Compiled { groups, coverage })
}

/// The smallest whole factor at which at least `wanted` (0 to 1) of the detours can be injected without starving the program.
///
/// # Errors
/// [`CompileError`].
pub fn smallest_scale(nodes: &[(&str, &[Trace])], limits: Limits, wanted: f64) -> Result<u64, CompileError> {
    const MOST: u64 = 1 << 14;
    let covers = |scale: u64| match compile(nodes, Limits { scale: scale as f64, ..limits }) {
        Ok(compiled) => Ok(compiled.coverage.detours_share() >= wanted),
        Err(CompileError::TooOften { .. }) => Ok(false),
        Err(error) => Err(error),
    };
    // A larger factor lengthens detours and gaps alike, so the share does not fall: doubling brackets the factor, halving finds it.
    let mut enough = 1;
    while !covers(enough)? {
        if enough == MOST {
            return Err(CompileError::NoFactor { most: MOST, wanted: 100.0 * wanted });
        }
        enough *= 2;
    }
    let mut too_few = enough / 2;
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if covers(middle)? {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    Ok(enough)
}

/// The time during which all CPUs of a node were observed.
fn shared_span(traces: &[Trace]) -> Option<Span> {
    let start = traces.iter().map(|trace| trace.span.start).max()?;
    let end = traces.iter().map(|trace| trace.span.end).min()?;
    (start < end).then_some(Span { start, end })
}

fn compile_cpu(trace: &Trace, span: Span, limits: Limits, coverage: &mut Coverage) -> CpuNoise {
    // CPUs of a node stay aligned only on the time that all of them observed.
    let place = |at: Nanos| (at.clamp(span.start, span.end) - span.start).as_nanos();
    let mut noise: Vec<(u64, u64)> =
        trace.noise().map(|d| (place(d.start), place(d.end()))).filter(|(start, end)| start < end).collect();
    noise.sort_unstable();
    let mut injected = Injected { limits, coverage, detours: Vec::new(), end: 0 };
    let mut now: Option<Pending> = None;
    for (start, end) in noise {
        // Detours of imported traces may overlap: the shared time counts once.
        let start = start.max(injected.end);
        if start >= end {
            continue;
        }
        injected.end = end;
        injected.coverage.detours += 1;
        injected.coverage.noise_ns += end - start;
        let next = Pending::new(start, end, limits.scale);
        now = match now {
            Some(before) if next.start.saturating_sub(before.end()) < limits.smallest_gap_ns => {
                injected.coverage.merged += 1;
                Some(before.join(next))
            }
            before => {
                before.into_iter().for_each(|before| injected.push(before));
                Some(next)
            }
        };
    }
    now.into_iter().for_each(|last| injected.push(last));
    let detours = injected.detours;
    CpuNoise { cpu: trace.cpu, period_ns: scaled(span.length().as_nanos(), limits.scale), detours }
}

fn scaled(ns: u64, scale: f64) -> u64 {
    if scale == 1.0 { ns } else { (ns as f64 * scale).round() as u64 }
}

/// A scaled detour into which the next one may still be merged.
#[derive(Clone, Copy, Debug)]
struct Pending {
    start: u64,
    length: u64,
    /// The number of detours in it, and their time before scaling.
    count: u64,
    noise_ns: u64,
}

impl Pending {
    /// Rounds both ends rather than the length, so that two detours with a gap between them keep one.
    fn new(start: u64, end: u64, scale: f64) -> Self {
        let (first, last) = (scaled(start, scale), scaled(end, scale));
        Self { start: first, length: last - first, count: 1, noise_ns: end - start }
    }

    fn end(&self) -> u64 {
        self.start + self.length
    }

    fn join(self, next: Self) -> Self {
        // Without the gap between them, which is useful time: together they take as long as the two did.
        Self {
            length: self.length + next.length,
            count: self.count + next.count,
            noise_ns: self.noise_ns + next.noise_ns,
            ..self
        }
    }
}

struct Injected<'a> {
    limits: Limits,
    coverage: &'a mut Coverage,
    detours: Vec<(u64, u64)>,
    /// Where the last detour of the trace ended, before scaling.
    end: u64,
}

impl Injected<'_> {
    fn push(&mut self, detour: Pending) {
        if detour.length == 0 || detour.length < self.limits.overhead_ns {
            self.coverage.dropped += detour.count;
            return;
        }
        let length = detour.length.min(self.limits.longest_ns);
        let is_cut = length < detour.length;
        let share = length as f64 / detour.length as f64;
        self.coverage.kept += detour.count;
        self.coverage.cut += u64::from(is_cut);
        self.coverage.kept_ns +=
            if is_cut { (detour.noise_ns as f64 * share) as u64 } else { detour.noise_ns };
        self.detours.push((detour.start, length));
    }
}

/// Checks that a program can make progress under this noise.
fn check(name: &str, noise: &CpuNoise, limits: Limits) -> Result<(), CompileError> {
    let (name, cpu) = (name.to_owned(), noise.cpu);
    if noise.noise_ns() >= noise.period_ns {
        return Err(CompileError::AllNoise { name, cpu });
    }
    let share = noise.noise_ns() as f64 / noise.period_ns as f64;
    if share > limits.most_share {
        return Err(CompileError::TooMuch {
            name,
            cpu,
            percent: 100.0 * share,
            most: 100.0 * limits.most_share,
        });
    }
    let Some(period) = noise.period_ns.checked_div(noise.detours.len() as u64) else { return Ok(()) };
    // With less than three overheads per period, injection alone would take more than a third of the CPU.
    let least = (3 * limits.overhead_ns).max(limits.apart_ns);
    if period < least {
        let scale = (limits.scale * least as f64 / period as f64).ceil() as u64;
        let [period, overhead, least] = [period, limits.overhead_ns, least].map(Nanos::from_nanos);
        return Err(CompileError::TooOften { name, cpu, period, overhead, least, scale });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use quell_recording::Detour;

    fn trace(detours: &[(u64, u64)], end: u64) -> Trace {
        let detour = |&(start, duration): &(u64, u64)| Detour {
            start: Nanos::from_nanos(start),
            duration: Nanos::from_nanos(duration),
            own: false,
        };
        let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(end) };
        Trace { cpu: Cpu(3), span, detours: detours.iter().map(detour).collect() }
    }

    fn compiled(trace: Trace, limits: Limits) -> Compiled {
        compile(&[("node", &[trace])], limits).unwrap()
    }

    #[test]
    fn without_limits_nothing_is_lost() {
        let detours = [(100, 5), (200, 1), (201, 2), (900, 100)];
        let whole = compiled(trace(&detours, 1000), Limits::NONE);
        assert_eq!(whole.groups[0][0].detours, detours);
        assert_eq!(
            whole.coverage,
            Coverage { detours: 4, kept: 4, noise_ns: 108, kept_ns: 108, ..Coverage::default() }
        );
    }

    #[test]
    fn short_gaps_vanish_and_short_detours_are_dropped() {
        let limits = Limits { overhead_ns: 10, smallest_gap_ns: 20, ..Limits::NONE };
        // Two that are long enough once merged, one too short, one long enough.
        let found = compiled(trace(&[(100, 6), (115, 6), (400, 9), (800, 10)], 1000), limits);
        assert_eq!(found.groups[0][0].detours, [(100, 12), (800, 10)]);
        let expected =
            Coverage { detours: 4, kept: 3, merged: 1, dropped: 1, cut: 0, noise_ns: 31, kept_ns: 22 };
        assert_eq!(found.coverage, expected);
    }

    #[test]
    fn long_ones_are_cut() {
        let limits = Limits { longest_ns: 60, ..Limits::NONE };
        let found = compiled(trace(&[(100, 60), (300, 120)], 1000), limits);
        assert_eq!(found.groups[0][0].detours, [(100, 60), (300, 60)]);
        let expected =
            Coverage { detours: 2, kept: 2, cut: 1, noise_ns: 180, kept_ns: 120, ..Coverage::default() };
        assert_eq!(found.coverage, expected);
    }

    #[test]
    fn a_factor_makes_short_ones_long_enough() {
        let limits = Limits { overhead_ns: 14_000, smallest_gap_ns: 5_000, ..Limits::NONE };
        let noise = [trace(&[(1_000_000, 5_000), (3_000_000, 1_000), (5_000_000, 20_000)], 10_000_000)];
        let nodes: [(&str, &[Trace]); 1] = [("node", &noise)];
        assert_eq!(smallest_scale(&nodes, limits, 0.6), Ok(3));
        assert_eq!(smallest_scale(&nodes, limits, 1.0), Ok(14));
        let found = compile(&nodes, Limits { scale: 3.0, ..limits }).unwrap();
        assert_eq!(found.groups[0][0].detours, [(3_000_000, 15_000), (15_000_000, 60_000)]);
        assert_eq!(found.groups[0][0].period_ns, 30_000_000);
    }

    #[test]
    fn what_starves_a_program_is_refused() {
        let often: Vec<(u64, u64)> = (0..100).map(|i| (i * 10_000, 6_000)).collect();
        let noise = [trace(&often, 1_000_000)];
        let limits = Limits { overhead_ns: 5_000, smallest_gap_ns: 1_000, ..Limits::NONE };
        let error = compile(&[("node", &noise)], limits).unwrap_err();
        assert!(error.to_string().contains("--scale 2,"), "{error}");
        let error = compile(&[("node", &noise)], Limits { apart_ns: 20_000, ..Limits::NONE }).unwrap_err();
        assert!(error.to_string().contains("below 20us"), "{error}");
        let error = compile(&[("node", &noise)], Limits { most_share: 0.5, ..Limits::NONE }).unwrap_err();
        assert!(error.to_string().contains("60.0 % of the time, and this context injects 50 %"), "{error}");
        let all = [trace(&[(0, 1000)], 1000)];
        assert!(matches!(compile(&[("node", &all)], Limits::NONE), Err(CompileError::AllNoise { .. })));
        assert!(matches!(compile(&[("node", &[])], Limits::NONE), Err(CompileError::Apart(_))));
    }
}
