//! Work calibration of one CPU: how much work fills the quantum at the core's current speed.

use super::task::{Generator, PlannedDetour, Ran, Task, run};
use crate::clock::Clock;
use crate::injector::median::median_high;

/// Approximate length of a slice, in ns.
const SLICE_NS: f64 = 250.0;
/// A slice that takes this much longer than usual, in ns, was disturbed. The limit is above what a change of the core's speed adds to a
/// slice, and low enough that disturbances below it do not show in a maximum over thousands of ranks.
const LATE_NS: f64 = 30.0;
/// If the core's speed changes by more than this share, the slices are recalibrated before the next run.
const MOVED: f64 = 0.002;
/// A run is not valid if its speed differs by more than this share from the one that its slices were calibrated for.
const ASTRAY: f64 = 0.02;
/// Number of slices from which a speed is measured.
const SLICES: usize = 4_000;

/// Calibrated work on one CPU. Times are in ticks of its clock.
#[derive(Debug)]
pub(super) struct CalibratedWork<C> {
    clock: C,
    generator: Generator,
    task: Task,
    /// The quantum.
    quantum: f64,
    /// The mean length of an undisturbed slice at the calibrated speed …
    pace: f64,
    /// … and the number of such slices in the quantum.
    slices: f64,
    /// A run with more own noise than this is repeated.
    limit: u64,
}

/// The result of a run, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// qt by the clock, without this machine's own noise, corrected to the calibrated speed.
    pub(super) taken: f64,
    /// How much longer the work took because of the core's speed; negative if it took less.
    pub(super) drift: f64,
    /// This machine's own noise, which `taken` does not include.
    pub(super) own: u64,
    /// Number of discarded attempts.
    pub(super) again: u32,
    /// Whether its own noise and its speed are within the limits.
    pub(super) good: bool,
}

impl<C: Clock> CalibratedWork<C> {
    /// Calibrates the work: `quantum` ticks of it, on a clock with `per_ns` ticks per ns.
    pub(super) fn new(clock: C, per_ns: f64, quantum: f64, limit: u64) -> Self {
        let task = Task { late: (LATE_NS * per_ns) as u64, ..Task::default() };
        let mut work =
            Self { clock, generator: Generator::new(), task, quantum, pace: 1.0, slices: 1.0, limit };
        // Two lengths separate the fixed time of a slice, which is mostly the clock reading, from the time of a step.
        let (short, long) = (work.slice_of(20), work.slice_of(100));
        let step = ((long - short) / 80.0).max(1e-3);
        let fixed = (short - 20.0 * step).max(0.0);
        // At least four slices, also in a very short quantum: own noise is seen only at the end of a slice.
        work.task.steps = (((SLICE_NS * per_ns).min(quantum / 4.0) - fixed) / step).round().max(1.0) as u32;
        work.pace = work.slice_of(work.task.steps);
        work.slices = quantum / work.pace;
        work.count_slices();
        // Whole phases differ from the sum of their slices by what the loop around them takes.
        for _ in 0..3 {
            let taken = (0..100).map(|_| work.measure(&[], 20).taken).collect();
            let taken = median_high(taken, f64::total_cmp).unwrap_or(0.0);
            work.slices += (quantum - taken) / work.pace;
            work.count_slices();
        }
        work.task.cost = work.cost_of_a_detour((400.0 * per_ns) as u64).round() as i64;
        work
    }

    /// Runs a phase, and repeats it while this machine disturbs it, up to `tries` attempts. If none is valid, the least disturbed counts.
    pub(super) fn measure(&mut self, strikes: &[PlannedDetour], tries: u32) -> Measured {
        let mut best: Option<Measured> = None;
        for again in 0..tries.max(1) {
            let (clock, generator) = (self.clock, &mut self.generator);
            let ran = run(clock, |steps| generator.steps(steps), &self.task, strikes);
            let (drift, moved) = self.drift(&ran);
            let good = ran.own <= self.limit && moved.abs() <= ASTRAY;
            let measured = Measured { taken: ran.taken as f64 - drift, drift, own: ran.own, again, good };
            if moved.abs() > MOVED {
                // A clock that stood still or jumped says nothing about the core. The clamp keeps such a run from making the work
                // vanish or grow without bound.
                let factor = (1.0 + moved).clamp(0.5, 2.0);
                self.slices /= factor;
                self.pace *= factor;
                self.count_slices();
            }
            if good {
                return measured;
            }
            let worse = |one: &Measured| one.own as f64 + one.drift.abs();
            best = match best {
                Some(best) if worse(&best) <= worse(&measured) => Some(Measured { again, ..best }),
                _ => Some(measured),
            };
        }
        best.unwrap_or(Measured { taken: self.quantum, drift: 0.0, own: 0, again: 0, good: false })
    }

    /// How much longer a run's work took because of the core's speed: in ticks, and as a share.
    fn drift(&self, ran: &Ran) -> (f64, f64) {
        if ran.plain == 0 {
            return (0.0, 0.0);
        }
        let moved = ran.plain_ticks as f64 / (ran.plain as f64 * self.pace) - 1.0;
        if !moved.is_finite() {
            return (0.0, 0.0);
        }
        (moved * self.slices * self.pace, moved)
    }

    fn count_slices(&mut self) {
        self.task.slice = self.pace.round() as u64;
        self.task.slices = self.slices as u64;
        self.task.rest = (self.slices.fract() * f64::from(self.task.steps)).round() as u32;
    }

    /// The length of an undisturbed slice of this many steps.
    fn slice_of(&mut self, steps: u32) -> f64 {
        let mut times = vec![0u64; SLICES];
        let mut last = self.clock.now();
        for time in &mut times {
            self.generator.steps(steps);
            let now = self.clock.now();
            *time = now.saturating_sub(last);
            last = now;
        }
        times.sort_unstable();
        // Noise lengthens the slowest, and a jump of the clock shortens the quickest.
        let quiet = &times[SLICES / 20..SLICES * 3 / 4];
        quiet.iter().sum::<u64>() as f64 / quiet.len() as f64
    }

    /// The overhead of a detour in addition to its length.
    pub(super) fn cost_of_a_detour(&mut self, length: u64) -> f64 {
        // Undisturbed slices between two burns show what a burn leaves behind in them.
        let apart = 4 * self.task.slice + length;
        let strikes: Vec<PlannedDetour> = (0..(self.task.slices / 8).clamp(1, 200))
            .map(|i| PlannedDetour { at: i * apart, length })
            .collect();
        let burned = (strikes.len() as u64 * length) as f64;
        // Each against a plain phase just before it, because the speed of the core strays.
        let cost = |_| {
            let plain = self.measure(&[], 20).taken;
            (self.measure(&strikes, 20).taken - plain - burned) / strikes.len() as f64
        };
        median_high((0..60).map(cost).collect(), f64::total_cmp).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ClockKind, Scale, with_clock};

    /// On the kernel that runs the tests.
    mod on_this_machine {
        use super::*;

        #[test]
        fn work_is_counted_and_detours_are_burned() {
            let (kind, _) = ClockKind::choose();
            let scale = Scale::estimate(kind, std::time::Duration::from_millis(10));
            let ticks = |us: f64| us * scale.ticks_per_second() / 1e6;
            quell_testing::measure(|_| {
                with_clock!(kind, clock => {
                    let mut work = CalibratedWork::new(clock, ticks(1e-3), ticks(100.0), ticks(1.0) as u64);
                    // A read of the clock may take as long as the steps of a slice.
                    if work.task.slices <= 10 || work.task.steps <= 1 {
                        return Err(format!("{:?}", work.task));
                    }
                    // The minimum of many runs is the one that no other work on the core disturbed.
                    let least = |work: &mut CalibratedWork<_>, strikes: &[PlannedDetour]| {
                        (0..50).map(|_| work.measure(strikes, 20).taken).fold(f64::INFINITY, f64::min)
                    };
                    let quiet = least(&mut work, &[]);
                    let strike = PlannedDetour { at: ticks(30.0) as u64, length: ticks(200.0) as u64 };
                    let struck = least(&mut work, &[strike]);
                    if struck > quiet + ticks(150.0) { Ok(()) } else { Err(format!("{quiet} {struck}")) }
                })
            });
        }
    }
}
