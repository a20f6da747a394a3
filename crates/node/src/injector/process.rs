//! Noise from outside the program (De et al. 2008, §III-C: the emulator in a process of its own): a thread bound to each disturbed CPU
//! sleeps until a detour is due, and then takes the CPU under SCHED_FIFO. Nothing is loaded into the program.
//!
//! A thread that spins at real-time priority owns its CPU, so there are four guards. One CPU is never disturbed. No burn is longer
//! than [`LONGEST_BURN`]. A watchdog on the undisturbed CPU lowers the priority of a thread that stops reporting. If the watchdog
//! itself starves, the kernel ends quell (RLIMIT_RTTIME).

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use quell_recording::{Cpu, format_cpu_list};
use quell_replay::report::{EVENT, Field, MAGIC, Report, VERSION, WORDS};
use quell_replay::schedule::{Context, RankAssignment, Schedule, ScheduleError, Sync};
use quell_replay::spin::{burn_until, now_ns, wall_ns};
use quell_replay::{Ahead, ProgressClockView};

use super::compile::{CpuNoise, LONGEST_BURN, MOST_SHARE};
use super::median::median_high;
use super::reports::ProcessReport;
use super::schedule::{self, Order};
use crate::{machine, realtime};

/// Below the kernel's own threads at 99, which keep the machine alive.
const PRIORITY: u8 = 50;
/// A thread that has not reported for this long is considered stuck.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The minimum pause between two burns.
const REST_NS: u64 = 5_000;
/// How often the watchdog checks, and how often sleeping threads check whether to end.
const LOOK: Duration = Duration::from_millis(50);

/// Why noise cannot be injected from outside the program.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// All CPUs were requested; one must stay undisturbed.
    #[error(
        "every CPU that quell may use ({}) would be disturbed, and none left to the system: name fewer with --cpus",
        format_cpu_list(.0)
    )]
    AllCpus(Vec<Cpu>),
    /// The kernel refused real-time priority.
    #[error(
        "no real-time priority: {0}; run as root or with CAP_SYS_NICE, or take --context timer, which needs no privilege"
    )]
    Priority(std::io::Error),
    /// A thread cannot be started.
    #[error("no thread can be started, because of a limit on processes or memory: {0}")]
    Thread(std::io::Error),
    /// A CPU cannot be used.
    #[error("CPU {cpu} cannot be disturbed: {reason}")]
    Cpu {
        /// The CPU.
        cpu: Cpu,
        /// The kernel's error.
        reason: std::io::Error,
    },
    /// The noise leaves the program no time.
    #[error(
        "the noise of CPU {cpu} takes {percent:.0} % of its time: more than 90 % is not injected at real-time priority"
    )]
    TooMuch {
        /// The CPU that it was recorded on.
        cpu: u64,
        /// Noise, as a percentage of the time.
        percent: f64,
    },
    /// The calibration saw no detour.
    #[error(
        "cannot calibrate: a loop on CPU {0} saw no detour of quell's own; is the CPU shared with others? give --overhead"
    )]
    Silent(Cpu),
    /// The schedule is not valid.
    #[error("the schedule cannot be read: {0}")]
    Schedule(&'static str),
}

/// The CPUs to disturb: the requested ones, or all that may be used but the first, which stays undisturbed.
///
/// # Errors
/// [`ProcessError::AllCpus`].
pub fn choose(wanted: Option<&[Cpu]>, allowed: &[Cpu]) -> Result<(Vec<Cpu>, Cpu), ProcessError> {
    let all = || ProcessError::AllCpus(allowed.to_vec());
    let cpus: Vec<Cpu> = match wanted {
        Some(wanted) => wanted.to_vec(),
        None => allowed.iter().copied().skip(1).collect(),
    };
    let alone = allowed.iter().copied().find(|cpu| !cpus.contains(cpu)).ok_or_else(all)?;
    if cpus.is_empty() { Err(all()) } else { Ok((cpus, alone)) }
}

/// The threads that disturb CPUs, until this is dropped or ended.
#[derive(Debug)]
pub struct Disturbers {
    stop: Arc<AtomicBool>,
    threads: Vec<(Arc<Shared>, Option<JoinHandle<()>>)>,
    watchdog: Option<JoinHandle<()>>,
}

/// The threads that the watchdog observes.
type Watched = Arc<Mutex<Vec<Arc<Shared>>>>;

/// What a thread and its watchdog share.
#[derive(Debug)]
struct Shared {
    words: Vec<AtomicU64>,
    thread: AtomicI32,
    /// When the thread last reported, in ns on CLOCK_MONOTONIC.
    seen_ns: AtomicU64,
    over: AtomicBool,
}

impl Shared {
    fn report(&self) -> Report<'_> {
        Report::over(&self.words)
    }
}

impl Disturbers {
    /// Starts a thread on each of `cpus`, which stand for ranks 0, 1, … of the schedule; `alone` stays undisturbed.
    ///
    /// # Errors
    /// [`ProcessError`]; no thread is left running then.
    pub fn start(words: &Arc<Vec<u64>>, cpus: &[Cpu], alone: Cpu) -> Result<Self, ProcessError> {
        let schedule = Schedule::from_words(words).map_err(|flaw| ProcessError::Schedule(flaw.reason()))?;
        // The last guard, set before any thread has real-time priority: the kernel ends quell if the watchdog starves.
        realtime::limit_cpu_time(TIMEOUT * 3).map_err(ProcessError::Priority)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut all = Self { stop, threads: Vec::new(), watchdog: None };
        let watched = Watched::default();
        all.watch(alone, &watched)?;
        for (rank, &cpu) in cpus.iter().enumerate() {
            let seat = schedule.seat(rank as u64);
            let track = track(&schedule, words, seat).map_err(ProcessError::Schedule)?;
            let percent =
                100.0 * track.noise_in(0, track.period().get()) as f64 / track.period().get() as f64;
            if percent > 100.0 * MOST_SHARE {
                let cpu = schedule.entry(seat.track).map_or(0, |entry| entry.cpu);
                return Err(ProcessError::TooMuch { cpu, percent });
            }
            all.add(words, rank as u64, seat, cpu, &watched)?;
        }
        Ok(all)
    }

    fn add(
        &mut self,
        words: &Arc<Vec<u64>>,
        rank: u64,
        seat: RankAssignment,
        cpu: Cpu,
        watched: &Watched,
    ) -> Result<(), ProcessError> {
        let events = Schedule::from_words(words).map_or(0, |schedule| schedule.head.events as usize);
        let shared = Arc::new(Shared {
            words: (0..WORDS + EVENT * events).map(|_| AtomicU64::new(0)).collect(),
            thread: AtomicI32::new(0),
            seen_ns: AtomicU64::new(now_ns()),
            over: AtomicBool::new(false),
        });
        let report = shared.report();
        report.set(Field::Magic, MAGIC);
        report.set(Field::Version, VERSION);
        report.set(Field::Pid, u64::from(std::process::id()));
        report.set(Field::Rank, rank);
        report.set(Field::Node, seat.node);
        report.set(Field::ProgressClockView, seat.track);
        report.set(Field::Threads, 1);
        watched.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&shared));
        let (ready, begun) = std::sync::mpsc::sync_channel(1);
        let (words, mine, stop) = (Arc::clone(words), Arc::clone(&shared), Arc::clone(&self.stop));
        let thread = std::thread::Builder::new().spawn(move || {
            realtime::block_signals();
            mine.thread.store(realtime::thread_id(), Ordering::SeqCst);
            let bound = machine::pin(&[cpu]).map_err(|reason| ProcessError::Cpu { cpu, reason });
            let bound = bound.and_then(|()| realtime::promote(PRIORITY).map_err(ProcessError::Priority));
            let good = bound.is_ok();
            let _ = ready.send(bound);
            if let (true, Ok(schedule)) = (good, Schedule::from_words(&words))
                && let Ok(track) = track(&schedule, &words, seat)
            {
                Disturber { schedule: &schedule, track, seat, shared: &mine, stop: &stop }.run();
            }
            mine.over.store(true, Ordering::SeqCst);
        });
        let thread = thread.map_err(ProcessError::Thread)?;
        self.threads.push((shared, Some(thread)));
        begun.recv().unwrap_or(Err(ProcessError::Schedule("the thread that was to burn is gone")))
    }

    /// Starts the watchdog, which lowers the priority of threads that stop reporting.
    fn watch(&mut self, alone: Cpu, watched: &Watched) -> Result<(), ProcessError> {
        let (watched, stop) = (Arc::clone(watched), Arc::clone(&self.stop));
        let watchdog = std::thread::Builder::new().spawn(move || {
            realtime::block_signals();
            // On another CPU it would still be scheduled, only later.
            let _ = machine::pin(&[alone]);
            let (mut looked_ns, mut running_ns) = (now_ns(), now_ns());
            while !stop.load(Ordering::SeqCst) {
                // Where quell itself was stopped, no thread could report.
                let now = now_ns();
                if Duration::from_nanos(now.saturating_sub(looked_ns)) > TIMEOUT / 2 {
                    running_ns = now;
                }
                looked_ns = now;
                let threads = watched.lock().unwrap_or_else(PoisonError::into_inner).clone();
                for shared in threads.iter().filter(|shared| !shared.over.load(Ordering::SeqCst)) {
                    let seen_ns = shared.seen_ns.load(Ordering::SeqCst).max(running_ns);
                    let unseen = now_ns().saturating_sub(seen_ns);
                    if Duration::from_nanos(unseen) > TIMEOUT {
                        realtime::demote(shared.thread.load(Ordering::SeqCst));
                    }
                }
                std::thread::sleep(LOOK);
            }
        });
        self.watchdog = Some(watchdog.map_err(ProcessError::Thread)?);
        Ok(())
    }

    /// Ends all threads and returns their reports.
    pub fn end(mut self) -> Vec<ProcessReport> {
        self.join();
        let host = machine::host().unwrap_or_default();
        let words = |shared: &Shared| shared.words.iter().map(|word| word.load(Ordering::SeqCst)).collect();
        self.threads
            .iter()
            .filter_map(|(shared, _)| ProcessReport::from_words(&host, words(shared)))
            .collect()
    }

    fn join(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let threads = self.threads.iter_mut().filter_map(|(_, thread)| thread.take());
        // A thread that panicked needs no further cleanup.
        threads.chain(self.watchdog.take()).for_each(|thread| drop(thread.join()));
    }
}

impl Drop for Disturbers {
    fn drop(&mut self) {
        self.join();
    }
}

fn track<'a>(
    schedule: &Schedule<'a>,
    words: &'a [u64],
    seat: RankAssignment,
) -> Result<ProgressClockView<'a>, &'static str> {
    let entry = schedule.entry(seat.track).ok_or("a track is missing")?;
    entry.within(words).map_err(ScheduleError::reason)
}

/// The loop of one thread.
struct Disturber<'a> {
    schedule: &'a Schedule<'a>,
    track: ProgressClockView<'a>,
    seat: RankAssignment,
    shared: &'a Shared,
    stop: &'a AtomicBool,
}

impl Disturber<'_> {
    fn run(&self) {
        let head = self.schedule.head;
        let report = self.shared.report();
        let now = now_ns();
        // Phases are not visible from outside the program, so with `phase` all ranks get one place, as with `start`.
        let phase = if head.sync == Sync::Phase { 0 } else { self.seat.node };
        let place = self.schedule.place(self.seat.node, phase, self.track.period());
        let epoch = now.wrapping_sub(wall_ns().saturating_sub(head.epoch_ns));
        let position = |now: u64| (now.wrapping_sub(epoch) % self.track.period()).wrapping_add(place);
        report.set(Field::BegunNs, now);
        report.set(Field::Place, position(now));
        let mut from = now;
        while !self.stop.load(Ordering::SeqCst) {
            let Some(Ahead { wait_ns, length_ns }) = self.track.ahead(position(from)) else {
                std::thread::sleep(LOOK);
                self.come_by(from);
                continue;
            };
            let due = from + wait_ns;
            if head.limit_ns > 0 && due.saturating_sub(now) > head.limit_ns {
                report.set(Field::UsedUp, 1);
                return;
            }
            if !self.sleep_until(due.saturating_sub(head.early_ns)) {
                return;
            }
            let length = length_ns.min(LONGEST_BURN.as_nanos() as u64);
            // The wakeup is early by `early_ns`; the rest is spun, so that the detour begins on time.
            let begun = burn_until(now_ns(), due);
            // A burn that starts late still has its full length if it starts before the detour would be over. A detour that is already
            // over is skipped, for instance where the host took the CPU.
            if begun < due + length && length > head.overhead_ns {
                let end = burn_until(begun, begun + length - head.overhead_ns);
                report.add(Field::Calls, 1);
                report.burned(begun, length, end - begun + head.overhead_ns);
            }
            // What was cut off a long detour is skipped, not burned in pieces.
            from = (due + length_ns).max(now_ns());
            self.come_by(now_ns());
        }
    }

    fn come_by(&self, now: u64) {
        self.shared.seen_ns.store(now, Ordering::SeqCst);
        self.shared.report().set(Field::LastNs, now);
    }

    /// Sleeps in pieces, and at least a little: the CPU is never taken twice without a pause. Returns whether to go on.
    fn sleep_until(&self, until: u64) -> bool {
        let until = until.max(now_ns() + REST_NS);
        loop {
            if self.stop.load(Ordering::SeqCst) {
                return false;
            }
            let now = now_ns();
            if now >= until {
                return true;
            }
            self.come_by(now);
            let to = until.min(now + LOOK.as_nanos() as u64);
            let at = libc::timespec { tv_sec: (to / 1_000_000_000) as _, tv_nsec: (to % 1_000_000_000) as _ };
            // SAFETY: `at` lives through the call, and a null pointer means that the remaining time is not requested.
            unsafe {
                libc::clock_nanosleep(
                    libc::CLOCK_MONOTONIC,
                    libc::TIMER_ABSTIME,
                    &raw const at,
                    std::ptr::null_mut(),
                )
            };
        }
    }
}

/// The overhead of a detour from outside the program, on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessCost {
    /// What a program loses in addition to the burned time, in ns: two context switches, and the timer.
    pub overhead_ns: u64,
    /// How long after it is due a detour begins, in ns. Wakeups are scheduled earlier by this.
    pub early_ns: u64,
}

/// Measures the overhead on a CPU for a quarter of a second or more: how long, and when, a loop there loses the CPU. `period_ns` is the mean
/// time from one detour to the next in the noise to replay: rarer detours cost more.
///
/// # Errors
/// As for [`Disturbers::start`].
pub fn calibrate(cpu: Cpu, alone: Cpu, period_ns: u64) -> Result<ProcessCost, ProcessError> {
    const LENGTH: u64 = 50_000;
    const ROUND: u64 = 250_000_000;
    const STRIKES: u64 = 60;
    /// Minimum number of detours. A loop that shares its CPU may not run at all in a round; it then continues for up to ten rounds.
    const FEWEST: usize = 10;
    let period = period_ns.clamp(4 * LENGTH, 10_000_000);
    let round = ROUND.max(STRIKES * period);
    let noise = CpuNoise { cpu, period_ns: period, detours: vec![(period / 2, LENGTH)] };
    let epoch_ns = wall_ns();
    let order = Order::new(Context::Process, epoch_ns);
    let words = Arc::new(schedule::words(&order, &[vec![noise]]));
    let since = now_ns().wrapping_sub(wall_ns() - epoch_ns);
    let disturbers = Disturbers::start(&words, &[cpu], alone)?;
    let gaps = std::thread::Builder::new().spawn(move || {
        machine::pin(&[cpu])?;
        let mut gaps = Vec::new();
        let (begun, mut last) = (now_ns(), now_ns());
        while last - begun < round || (gaps.len() < FEWEST && last - begun < 10 * round) {
            let now = now_ns();
            // Not a timer tick of a slow host, which begins anywhere in the period.
            let late = (last.wrapping_sub(since) % period).cast_signed() - (period / 2).cast_signed();
            let is_due = (-4 * LENGTH.cast_signed()..(period / 4).min(500_000).cast_signed()).contains(&late);
            if is_due && (LENGTH..LENGTH * 20).contains(&(now - last)) {
                gaps.push((last, now - last));
            }
            last = now;
        }
        Ok(gaps)
    });
    let gaps = gaps
        .map_err(ProcessError::Thread)?
        .join()
        .unwrap_or_else(|_| Ok(Vec::new()))
        .map_err(|reason| ProcessError::Cpu { cpu, reason })?;
    drop(disturbers);
    let length = median_high(gaps.iter().map(|gap| gap.1).collect(), u64::cmp);
    let late = gaps.iter().map(|gap| (gap.0.wrapping_sub(since) % period).saturating_sub(period / 2));
    let overhead_ns = length.ok_or(ProcessError::Silent(cpu))? - LENGTH;
    Ok(ProcessCost { overhead_ns, early_ns: median_high(late.collect(), u64::cmp).unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn a_cpu_is_always_left_alone() {
        let cpus: Vec<Cpu> = (0..3).map(Cpu).collect();
        assert_eq!(choose(None, &cpus).unwrap(), (vec![Cpu(1), Cpu(2)], Cpu(0)));
        assert_eq!(choose(Some(&[Cpu(0)]), &cpus).unwrap(), (vec![Cpu(0)], Cpu(1)));
        assert!(matches!(choose(Some(&cpus), &cpus), Err(ProcessError::AllCpus(_))));
        assert!(matches!(choose(None, &cpus[..1]), Err(ProcessError::AllCpus(_))));
    }
}
