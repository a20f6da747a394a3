//! The threads that run the ranks of a phase, one bound to each CPU.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use quell_recording::Cpu;

use super::strikes::gather;
use super::task::PlannedDetour;
use super::work_calibration::CalibratedWork;
use super::{Phase, PhasesError, Plan, Start, Tally};
use crate::clock::{Clock, ClockKind, Scale, with_clock};
use crate::machine;

/// Each CPU runs one quantum without noise per this many ranks.
const RANKS_PER_REFERENCE: u64 = 16;
/// How long the clock is compared with CLOCK_MONOTONIC to get its rate.
const CLOCK_WAIT: Duration = Duration::from_millis(100);

/// What the threads share.
#[derive(Debug)]
struct Shared {
    /// The ranks of the current phase.
    starts: RwLock<Vec<Start>>,
    /// Index of the next rank that no thread has taken.
    next: AtomicUsize,
    /// All threads wait here before and after each phase.
    gate: Barrier,
    /// Whether the threads are to end.
    over: AtomicBool,
    /// The threads' results for the phase.
    share: Mutex<Share>,
    tally: Mutex<Tally>,
    failure: Mutex<Option<PhasesError>>,
}

impl Shared {
    /// For this many threads and their leader.
    fn new(threads: usize) -> Self {
        Self {
            starts: RwLock::default(),
            next: AtomicUsize::new(0),
            gate: Barrier::new(threads + 1),
            over: AtomicBool::new(false),
            share: Mutex::default(),
            tally: Mutex::default(),
            failure: Mutex::new(None),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    ranks: u64,
    max: f64,
    sum: f64,
}

/// The leader's handle on the threads.
#[derive(Debug)]
pub struct Team<'a> {
    shared: &'a Shared,
}

impl Team<'_> {
    /// Runs one phase of all ranks and returns when the last is done. If `stop` is set while it runs, some ranks did not run, and there
    /// is no result.
    pub fn phase(&mut self, starts: impl Iterator<Item = Start>, stop: &AtomicBool) -> Option<Phase> {
        let ranks = {
            let mut all = self.shared.starts.write().unwrap_or_else(PoisonError::into_inner);
            all.clear();
            all.extend(starts);
            all.len() as u64
        };
        self.shared.next.store(0, Ordering::SeqCst);
        *held(&self.shared.share) = Share::default();
        // The first wait starts the phase in all threads, and the second ends it.
        self.shared.gate.wait();
        self.shared.gate.wait();
        let share = *held(&self.shared.share);
        // A maximum over fewer ranks than requested would be too low, so a phase that was stopped has no result.
        let whole = share.ranks == ranks && ranks > 0 && !stop.load(Ordering::Relaxed);
        whole.then(|| Phase { max_ns: share.max, mean_ns: share.sum / share.ranks as f64 })
    }

    /// What the CPUs measured since the last call.
    pub fn tally(&mut self) -> Tally {
        std::mem::take(&mut *held(&self.shared.tally))
    }
}

/// Starts a thread on each CPU, calibrates its work, and lets `lead` run phases. Once `stop` is set, no further rank starts.
///
/// # Errors
/// A thread cannot be bound to its CPU, or one panics, which sets `stop`.
pub fn emulate<T>(
    plan: &Plan<'_>,
    stop: &AtomicBool,
    lead: impl FnOnce(&mut Team<'_>) -> T,
) -> Result<T, PhasesError> {
    if plan.cpus.is_empty() {
        return Err(PhasesError::NoCpu);
    }
    let (kind, _) = ClockKind::choose();
    let scale = Scale::estimate(kind, CLOCK_WAIT);
    let shared = Shared::new(plan.cpus.len());
    std::thread::scope(|scope| {
        for &cpu in &plan.cpus {
            let (plan, shared) = (plan, &shared);
            scope.spawn(move || {
                with_clock!(kind, clock => member(clock, cpu, scale, plan, shared, stop));
            });
        }
        // Wait until all are calibrated, or one has failed.
        shared.gate.wait();
        let failure = held(&shared.failure).take();
        let result = match failure {
            Some(failure) => Err(failure),
            None => Ok(catch_unwind(AssertUnwindSafe(|| lead(&mut Team { shared: &shared })))),
        };
        shared.over.store(true, Ordering::SeqCst);
        shared.gate.wait();
        let failure = held(&shared.failure).take();
        match failure {
            Some(failure) => Err(failure),
            None => result.map(|led| led.unwrap_or_else(|panic| resume_unwind(panic))),
        }
    })
}

/// The main function of a thread.
fn member<C: Clock>(clock: C, cpu: Cpu, scale: Scale, plan: &Plan<'_>, shared: &Shared, stop: &AtomicBool) {
    // A thread that fails still comes to the barrier. Otherwise all others would wait there forever.
    let break_off = |_| {
        *held(&shared.failure) = Some(PhasesError::Broken(cpu));
        stop.store(true, Ordering::SeqCst);
    };
    let mut worker = match machine::pin(&[cpu]) {
        Ok(()) => catch_unwind(AssertUnwindSafe(|| Worker::new(clock, scale, plan))).map_err(break_off).ok(),
        Err(reason) => {
            *held(&shared.failure) = Some(PhasesError::Pin { cpu, reason });
            None
        }
    };
    shared.gate.wait();
    loop {
        shared.gate.wait();
        if shared.over.load(Ordering::SeqCst) {
            return;
        }
        if let Some(working) = &mut worker
            && let Err(panic) = catch_unwind(AssertUnwindSafe(|| working.work(shared, stop)))
        {
            break_off(panic);
            worker = None;
        }
        shared.gate.wait();
    }
}

/// The state of a thread.
struct Worker<'a, C> {
    plan: &'a Plan<'a>,
    work: CalibratedWork<C>,
    /// Ticks of the clock per ns of the trace, with the scale included.
    ticks_per_ns: f64,
    strikes: Vec<PlannedDetour>,
    since_reference: u64,
}

impl<'a, C: Clock> Worker<'a, C> {
    fn new(clock: C, scale: Scale, plan: &'a Plan<'a>) -> Self {
        let per_ns = scale.ticks_per_second() / 1e9;
        let work = CalibratedWork::new(
            clock,
            per_ns,
            plan.scaled_quantum_ns() * per_ns,
            (plan.limit_ns() * per_ns) as u64,
        );
        let ticks_per_ns = per_ns * plan.scale;
        Self { plan, work, ticks_per_ns, strikes: Vec::with_capacity(64), since_reference: 0 }
    }

    /// Runs ranks until none is left.
    fn work(&mut self, shared: &Shared, stop: &AtomicBool) {
        let starts = shared.starts.read().unwrap_or_else(PoisonError::into_inner);
        let (mut share, mut tally) = (Share::default(), Tally::default());
        let quantum = self.plan.quantum.as_nanos();
        // Relaxed: a counter hands out each rank once in any order, and the barrier publishes the results.
        while !stop.load(Ordering::Relaxed)
            && let Some(start) = starts.get(shared.next.fetch_add(1, Ordering::Relaxed))
        {
            // References run between the ranks, so that both meet the same speed of the core and the same other programs.
            if self.since_reference == 0 {
                self.strikes.clear();
                let reference = self.run(&mut Tally::default());
                tally.references_ns.push(reference);
            }
            self.since_reference = (self.since_reference + 1) % RANKS_PER_REFERENCE;
            match self.plan.tracks.get(start.track) {
                Some(track) => {
                    gather(track, start.at_ns, quantum, self.ticks_per_ns, &mut self.strikes);
                }
                None => self.strikes.clear(),
            }
            let taken = self.run(&mut tally);
            share.ranks += 1;
            share.max = share.max.max(taken);
            share.sum += taken;
        }
        let mut all = held(&shared.share);
        *all =
            Share { ranks: all.ranks + share.ranks, max: all.max.max(share.max), sum: all.sum + share.sum };
        drop(all);
        let mut all = held(&shared.tally);
        *all = std::mem::take(&mut *all).join(tally);
    }

    /// Runs a phase and returns its duration, in unscaled ns.
    fn run(&mut self, tally: &mut Tally) -> f64 {
        let measured = self.work.measure(&self.strikes, self.plan.tries);
        tally.runs += 1;
        tally.runs_again += u64::from(measured.again > 0);
        tally.thrown_away += u64::from(measured.again);
        tally.disturbed += u64::from(!measured.good);
        tally.with_own += u64::from(measured.own > 0);
        tally.own_ns += measured.own as f64 / self.ticks_per_ns;
        tally.drift_ns += measured.drift.abs() / self.ticks_per_ns;
        measured.taken / self.ticks_per_ns
    }
}

/// Locks, and ignores poisoning: the data is valid even if a holder of the lock panicked.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quell_recording::Nanos;

    #[derive(Clone, Copy)]
    struct Broken;

    impl Clock for Broken {
        #[expect(clippy::panic, reason = "what the test is about")]
        fn now(self) -> u64 {
            panic!("a clock without hands")
        }
    }

    /// The CPU that this thread runs on.
    fn here() -> Cpu {
        // SAFETY: the call takes nothing.
        Cpu(u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0))
    }

    #[test]
    fn a_thread_that_breaks_off_ends_the_run() {
        let (kind, _) = ClockKind::choose();
        let scale = Scale::estimate(kind, Duration::from_millis(1));
        let plan =
            Plan { cpus: vec![], quantum: Nanos::from_nanos(100_000), scale: 1.0, tracks: vec![], tries: 1 };
        let (shared, stop, cpu) = (Shared::new(1), AtomicBool::new(false), here());
        std::thread::scope(|scope| {
            scope.spawn(|| member(Broken, cpu, scale, &plan, &shared, &stop));
            shared.gate.wait();
            assert!(Team { shared: &shared }.phase(std::iter::empty(), &stop).is_none());
            shared.over.store(true, Ordering::SeqCst);
            shared.gate.wait();
        });
        let failure = held(&shared.failure).take();
        assert!(matches!(failure, Some(PhasesError::Broken(found)) if found == cpu), "{failure:?}");
        assert!(stop.into_inner());
    }
}
