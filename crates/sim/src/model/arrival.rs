//! When a component's detours start.

use quell_recording::Nanos;
use rand_distr::{Distribution, Exp1, Uniform};
use rand_pcg::Pcg64;

/// The starts of a component's detours.
#[derive(Clone, Debug)]
pub(super) enum Arrival {
    /// At `phase + k·period`, each late by a uniform draw from `0..=jitter`.
    Periodic { period: Nanos, jitter: Nanos, phase: Phase },
    /// A Poisson process: exponential gaps, without memory.
    Poisson { per_ns: f64 },
}

/// The start of a periodic component.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// The first detour comes this long after the beginning of the trace, on every CPU.
    Fixed(Nanos),
    /// Drawn uniformly from one period, separately for each CPU.
    Random,
}

impl Arrival {
    /// Expected number of detours in `span`.
    pub(super) fn expected(&self, span: Nanos) -> f64 {
        let span = span.as_nanos() as f64;
        match self {
            Self::Periodic { period, .. } => span / period.as_nanos() as f64,
            Self::Poisson { per_ns } => span * per_ns,
        }
    }

    /// Calls `at` for each start within `span`, in order except for jitter.
    pub(super) fn each(&self, span: Nanos, rng: &mut Pcg64, mut at: impl FnMut(Nanos, &mut Pcg64)) {
        match *self {
            Self::Periodic { period, jitter, phase } => {
                let first = match phase {
                    Phase::Fixed(first) => first,
                    Phase::Random => even(Nanos::ZERO, period - Nanos::from_nanos(1), rng),
                };
                let mut due = Some(first);
                while let Some(start) = due.filter(|&start| start < span) {
                    let late = start + even(Nanos::ZERO, jitter, rng);
                    if late < span {
                        at(late, rng);
                    }
                    due = start.checked_add(period);
                }
            }
            Self::Poisson { per_ns } => {
                let mut t = 0.0;
                loop {
                    let gap: f64 = Exp1.sample(rng);
                    t += gap / per_ns;
                    match Nanos::from_nanos_f64(t).filter(|&start| start < span) {
                        Some(start) => at(start, rng),
                        None => break,
                    }
                }
            }
        }
    }
}

/// A uniform draw from `low..=high`.
pub(super) fn even(low: Nanos, high: Nanos, rng: &mut Pcg64) -> Nanos {
    match Uniform::new_inclusive(low.as_nanos(), high.as_nanos()) {
        Ok(range) if low < high => Nanos::from_nanos(range.sample(rng)),
        _ => low,
    }
}
