//! Compares the detour loop with a bare fenced clock loop, in one run.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quell_recording::{Cpu, Nanos};

use super::ProbeError;
use super::loops::{self, Control};
use super::ring::Ring;
use crate::clock::{Clock, ClockKind, Scale, with_clock};
use crate::machine;

/// Mean time of a turn per round, in ns, in the order of the rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopBench {
    /// A loop of fenced clock readings and nothing else.
    pub bare_mean_ns: Vec<f64>,
    /// The probe's detour loop at its default threshold, its detours left out.
    pub probe_mean_ns: Vec<f64>,
    /// The clock.
    pub clock: String,
}

/// Times both loops `rounds` times on one CPU, each for about `length`; `bare_first` says which comes first in each
/// round. Of a bare round only the undisturbed parts count, because the probe's mean leaves its detours out too.
///
/// # Errors
/// [`ProbeError`] if the CPU or the buffer is not available.
pub fn bench_loop(cpu: Cpu, length: Nanos, bare_first: &[bool]) -> Result<LoopBench, ProbeError> {
    machine::Cpus::from_this_machine()?.check(&[cpu])?;
    let ring = Ring::new(1 << 18).map_err(|source| ProbeError::Buffer { cpu, source })?;
    machine::pin(&[cpu]).map_err(|source| ProbeError::Pin { cpu, source })?;
    let (kind, _) = ClockKind::choose();
    let scale = Scale::estimate(kind, Duration::from_millis(20));
    let mut result = LoopBench { clock: kind.name().into(), ..LoopBench::default() };
    for &bare_first in bare_first {
        for bare in [bare_first, !bare_first] {
            with_clock!(kind, clock => {
                if bare {
                    result.bare_mean_ns.push(time_bare(clock, scale, length));
                } else {
                    result.probe_mean_ns.push(time_probe(clock, scale, length, &ring));
                }
            });
        }
    }
    Ok(result)
}

/// The mean turn of a bare loop, without blocks that a detour hit: those above 1.5 times the fastest block.
fn time_bare<C: Clock>(clock: C, scale: Scale, length: Nanos) -> f64 {
    const TURNS: u64 = 512;
    let end = clock.now().saturating_add(scale.ticks(length));
    let mut blocks = Vec::new();
    while clock.now() < end {
        blocks.push(loops::bare(clock, TURNS));
    }
    let fastest = blocks.iter().copied().min().unwrap_or(1);
    let calm: Vec<u64> = blocks.into_iter().filter(|&ticks| ticks <= fastest + fastest / 2).collect();
    let mean = calm.iter().sum::<u64>() as f64 / (calm.len() as f64).max(1.0);
    scale.length_f64(mean / TURNS as f64)
}

fn time_probe<C: Clock>(clock: C, scale: Scale, length: Nanos, ring: &Ring) -> f64 {
    let control = Control {
        stop: &AtomicBool::new(false),
        deadline_ticks: clock.now().saturating_add(scale.ticks(length)),
    };
    let threshold = scale.ticks(Nanos::from_nanos(150));
    let seen = loops::detours(clock, threshold, ring, &control);
    ring.drain(u64::MAX, |_| ());
    let turns = (seen.iterations - seen.detours).max(1) as f64;
    scale.length_f64((seen.last - seen.first).saturating_sub(seen.detour_ticks) as f64 / turns)
}
