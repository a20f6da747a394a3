//! The thread on one probed CPU: bind, calibrate, wait for the others, measure.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use quell_recording::{Cpu, LoopFacts, Method};

use super::loops::{self, Control, Observed};
use super::memory::{Levels, Walk};
use super::ring::{Ring, Row};
use super::{Plan, ProbeError, Threshold};
use crate::clock::{ClockKind, Scale, granularity_ticks, with_clock};
use crate::{machine, realtime};

/// Bytes of memory for all rings together; a short run fits entirely.
const RING_BYTES: usize = 96 << 20;
const RING_ROWS_MOST: usize = 1 << 20;
const RING_ROWS_LEAST: usize = 1 << 14;
/// Number of readings for the loop's quantiles.
const CALIBRATION: usize = 1 << 17;

/// What all threads of a run share.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub plan: &'a Plan,
    pub kind: ClockKind,
    /// A first estimate, accurate to a few parts per million.
    pub rate: Scale,
    pub gate: Gate,
    pub deadline_ticks: AtomicU64,
    /// What the memory probe loads.
    pub levels: Option<Levels>,
    /// Cancels the run: loops do not begin. Those that run are ended by their probes' `stop`.
    pub halt: AtomicBool,
}

/// Where the probes wait for each other before they measure. `halt` opens it too, so that no probe waits for a thread that never
/// started.
#[derive(Debug, Default)]
pub(super) struct Gate {
    ready: AtomicUsize,
    open: AtomicBool,
}

impl Gate {
    const POLL: Duration = Duration::from_micros(100);

    /// Called by a probe that is calibrated; returns when all are.
    fn wait(&self, halt: &AtomicBool) {
        self.ready.fetch_add(1, Ordering::SeqCst);
        while !self.open.load(Ordering::SeqCst) && !halt.load(Ordering::SeqCst) {
            std::thread::sleep(Self::POLL);
        }
    }

    /// Waits until all probes are calibrated, or the run is cancelled.
    pub fn wait_for(&self, probes: &[Probe], halt: &AtomicBool) {
        while self.ready.load(Ordering::SeqCst) < probes.len() && !halt.load(Ordering::SeqCst) {
            // A thread that ended before it was ready has panicked.
            if probes.iter().any(|probe| probe.done.load(Ordering::SeqCst)) {
                halt.store(true, Ordering::SeqCst);
            }
            std::thread::sleep(Self::POLL);
        }
    }

    /// Releases all probes.
    pub fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }
}

/// Marks a probe as done, however its thread ends.
struct DoneOnDrop<'a>(&'a AtomicBool);

impl Drop for DoneOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// One probed CPU, shared between its thread and the writer.
#[derive(Debug)]
pub(super) struct Probe {
    pub cpu: Cpu,
    pub ring: Ring,
    /// The loop's median turn in ticks. A detour is a gap less this turn.
    pub turn_ticks: AtomicU64,
    pub thread: AtomicI32,
    /// Ends its loop.
    pub stop: AtomicBool,
    pub done: AtomicBool,
}

/// The result of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub observed: Observed,
    pub calibration: Calibration,
    /// Whether the kernel moved the thread away, because the CPU went offline or was removed from its cpuset.
    pub moved: bool,
}

/// Quantiles of an undisturbed turn of the loop, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Calibration {
    pub granularity: u32,
    pub min: u32,
    pub p50: u32,
    pub p99: u32,
    pub p99_9: u32,
}

impl Calibration {
    fn from_gaps(mut gaps: Vec<u32>) -> Self {
        let granularity = granularity_ticks(&gaps);
        gaps.sort_unstable();
        let at = |share: f64| gaps[((gaps.len() - 1) as f64 * share) as usize];
        Self { granularity, min: at(0.0), p50: at(0.5), p99: at(0.99), p99_9: at(0.999) }
    }

    /// The gap above which a turn is a detour. A quantised clock shows turns shorter than its step, so a multiple is taken of the
    /// step then.
    fn threshold_ticks(&self, threshold: Threshold, rate: Scale) -> u64 {
        match threshold {
            Threshold::Absolute(length) => rate.ticks(length).saturating_add(u64::from(self.p50)),
            Threshold::TimesMinimum(factor) => (f64::from(self.min.max(self.granularity)) * factor) as u64,
        }
    }

    /// See [`quell_recording::CpuFacts::resolution_ns`].
    pub fn resolution_ticks(&self) -> u32 {
        self.p99_9 - self.p50 + self.granularity
    }
}

impl Seen {
    /// The loop's statistics in ns.
    pub fn loop_facts(&self, scale: Scale) -> LoopFacts {
        let Observed { first, last, iterations, detours, detour_ticks } = self.observed;
        let turns = (iterations - detours).max(1) as f64;
        let ns = |ticks: u32| scale.length_f64(f64::from(ticks));
        LoopFacts {
            iterations,
            mean_ns: scale.length_f64((last - first).saturating_sub(detour_ticks) as f64 / turns),
            min_ns: ns(self.calibration.min),
            p50_ns: ns(self.calibration.p50),
            p99_ns: ns(self.calibration.p99),
            p99_9_ns: ns(self.calibration.p99_9),
        }
    }
}

impl Probe {
    /// A probe with its buffer, one of `probes`.
    pub fn new(cpu: Cpu, probes: usize) -> Result<Self, ProbeError> {
        let rows = RING_BYTES / size_of::<Row>() / probes.max(1);
        // The largest power of two that fits, because the ring rounds up.
        let rows = (rows / 2 + 1).next_power_of_two().clamp(RING_ROWS_LEAST, RING_ROWS_MOST);
        Ok(Self {
            cpu,
            ring: Ring::new(rows).map_err(|source| ProbeError::Buffer { cpu, source })?,
            turn_ticks: AtomicU64::new(0),
            thread: AtomicI32::new(0),
            stop: AtomicBool::new(false),
            done: AtomicBool::new(false),
        })
    }

    /// Whether its thread is where it was bound.
    pub fn is_on_its_cpu(&self) -> bool {
        machine::is_bound(self.thread.load(Ordering::SeqCst), self.cpu)
    }

    /// The main function of the thread.
    pub fn run(&self, run: &Run) -> Result<Seen, ProbeError> {
        let _done = DoneOnDrop(&self.done);
        let calibration = self.prepare(run).inspect_err(|_| run.halt.store(true, Ordering::SeqCst))?;
        let walks = run.levels.as_ref().map_or_else(Vec::new, |levels| levels.walks(self.cpu));
        run.gate.wait(&run.halt);
        if run.halt.load(Ordering::SeqCst) {
            self.stop.store(true, Ordering::SeqCst);
        }
        let observed = with_clock!(run.kind, clock => self.measure(clock, (calibration, walks), run));
        Ok(Seen { observed, calibration, moved: !self.is_on_its_cpu() })
    }

    fn prepare(&self, run: &Run) -> Result<Calibration, ProbeError> {
        realtime::block_signals();
        self.thread.store(realtime::thread_id(), Ordering::SeqCst);
        machine::pin(&[self.cpu]).map_err(|source| ProbeError::Pin { cpu: self.cpu, source })?;
        let mut gaps = vec![0; CALIBRATION];
        // Twice, because the first pass warms up caches and clock speed.
        with_clock!(run.kind, clock => {
            loops::gaps(clock, &mut gaps);
            loops::gaps(clock, &mut gaps);
        });
        let calibration = Calibration::from_gaps(gaps);
        self.turn_ticks.store(u64::from(calibration.p50), Ordering::SeqCst);
        if let Some(priority) = run.plan.realtime {
            realtime::promote(priority).map_err(ProbeError::Realtime)?;
        }
        Ok(calibration)
    }

    fn measure<C: crate::clock::Clock>(
        &self,
        clock: C,
        (calibration, walks): (Calibration, Vec<Walk<'_>>),
        run: &Run,
    ) -> Observed {
        let control = Control { stop: &self.stop, deadline_ticks: run.deadline_ticks.load(Ordering::SeqCst) };
        let quantum = run.rate.ticks(run.plan.quantum);
        match run.plan.method {
            Method::Detour => {
                let threshold = calibration.threshold_ticks(run.plan.threshold, run.rate);
                loops::detours(clock, threshold, &self.ring, &control)
            }
            Method::Fwq => {
                let steps = loops::steps_per_quantum(clock, quantum);
                loops::fixed_work(clock, steps, &self.ring, &control)
            }
            Method::Ftq => loops::fixed_time(clock, quantum, &self.ring, &control),
            Method::Memory => loops::memory(clock, walks, &self.ring, &control),
            // Nothing to run: a recording with one of these methods has no probes.
            Method::Kernel | Method::Phases | Method::Histogram => Observed::default(),
        }
    }
}
