//! Measures the overhead of a detour injected by timer and signal on this machine: the same engine that programs load, run on a loop
//! of quell's own.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::thread;

use quell_recording::Cpu;
use quell_replay::ProgressClockView;
use quell_replay::report::{EVENT, Field, Report, WORDS};
use quell_replay::spin::now_ns;
use quell_replay::timer::Engine;
use quell_replay::timer::thread::Thread;
use quell_replay::timer::timer_schedule::Plan;

use super::median::median_high;
use crate::machine;

/// The overhead of a detour on this machine, in ns: medians, and median absolute deviations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// What a thread loses in addition to the time that the handler burns.
    pub overhead_ns: u64,
    /// The deviation of that.
    pub overhead_mad_ns: u64,
    /// How long after a timer expires the thread loses its CPU, as the thread sees it, not the handler. 0 in virtual machines whose
    /// timers wake the host ahead of time.
    pub early_ns: u64,
    /// The deviation of that.
    pub early_mad_ns: u64,
    /// The shortest time after a detour at which the next timer may expire so that the thread makes progress in between.
    pub smallest_gap_ns: u64,
    /// The shortest possible detour: one that burns nothing.
    pub shortest_ns: u64,
}

/// Why calibration failed.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// No CPU or no thread is available for it.
    #[error("cannot calibrate the timer: {0}")]
    Io(#[from] io::Error),
    /// No signal or no timer is available.
    #[error("cannot calibrate the timer: every realtime signal is in use, or no timer is left (`ulimit -i`)")]
    NoTimer,
    /// The timers did not interrupt the loop.
    #[error(
        "cannot calibrate the timer: only {struck} of {wanted} timers interrupted quell's own loop; is the CPU shared with others? \
         give --overhead"
    )]
    Silent {
        /// Number of timers that did.
        struck: usize,
        /// Number of timers that were set.
        wanted: usize,
    },
}

impl Calibration {
    /// The minimum distance between two detours at which the second is on time: the program must make progress in between (see
    /// `Plan::peace_ns`), and the timer must expire before.
    pub fn apart_ns(&self) -> u64 {
        self.smallest_gap_ns.max(2 * self.overhead_ns) + self.early_ns
    }
}

/// Range of the period at which timers expire. Timers expire at the rate of the noise to replay, because rarer ones cost more: caches
/// and the host have forgotten them by then. The period is clamped to this range, and the next constants bound the length of a round.
const PERIODS_NS: std::ops::RangeInclusive<u64> = 200_000..=10_000_000;
const ROUND_NS: u64 = 250_000_000;
const STRIKES: std::ops::RangeInclusive<u64> = 60..=400;
/// Gaps that the search for the smallest gap tries, in ns.
const GAPS_NS: [u64; 7] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000];
const GAP_ROUND_NS: u64 = 4_000_000;
/// Maximum number of rounds: where other programs have the CPU most of the time, few timers of one round interrupt the loop.
const ROUNDS: u64 = 12;
/// Minimum number of timers that must interrupt the loop for a result.
const LEAST: usize = 25;
/// The share of timers after which the loop must make progress.
const THROUGH: f64 = 0.9;
/// A turn of the loop that takes longer than two usual ones and this was interrupted.
const INTERRUPTED_NS: u64 = 1_000;

/// Measures on one of the CPUs, for about 0.3 s, or longer where other programs disturb it or detours are rare. `period_ns` is the mean
/// time from one detour to the next in the noise to replay.
///
/// # Errors
/// No CPU, signal or timer is available, or the timers do not interrupt the loop.
pub fn calibrate(cpu: Option<Cpu>, period_ns: u64) -> Result<Calibration, CalibrationError> {
    // The signal's handler belongs to the whole process, so only one calibration runs at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let measured = thread::Builder::new().name("quell-calibrate".into()).spawn(move || {
        if let Some(cpu) = cpu {
            machine::pin(&[cpu])?;
        }
        if !Engine::install(None) {
            return Err(CalibrationError::NoTimer);
        }
        measure(period_ns)
    })?;
    let measured = measured.join().unwrap_or(Err(CalibrationError::NoTimer));
    quell_replay::timer::signal::uninstall();
    measured
}

fn measure(period_ns: u64) -> Result<Calibration, CalibrationError> {
    let (mut costs, mut delays, mut whole) = (vec![], vec![], vec![]);
    let period = period_ns.clamp(*PERIODS_NS.start(), *PERIODS_NS.end());
    let wanted = (ROUND_NS / period).clamp(*STRIKES.start(), *STRIKES.end());
    let mut set = 0;
    while costs.len() < LEAST {
        if set == wanted * ROUNDS {
            return Err(CalibrationError::Silent { struck: costs.len(), wanted: set as usize });
        }
        set += wanted;
        let round = Round::new(period, 0, period * wanted)?;
        let turn = round.turn_ns;
        for (gap, entry) in round.struck() {
            let length = (gap.end - gap.start).saturating_sub(turn);
            // Two entries in one gap do not show what one costs.
            if let [entry] = entry {
                costs.push(length as i64 - entry.took as i64);
                whole.push(length as i64);
                // Timers expire in the middle of each period.
                let since = (gap.start + turn).saturating_sub(round.since_ns) % period;
                delays.push(since as i64 - (period / 2) as i64);
            }
        }
    }
    let smallest_gap_ns = smallest_gap()?;
    let ((overhead_ns, overhead_mad_ns), (early_ns, early_mad_ns)) = (spread(&costs), spread(&delays));
    let shortest_ns = spread(&whole).0;
    Ok(Calibration { overhead_ns, overhead_mad_ns, early_ns, early_mad_ns, smallest_gap_ns, shortest_ns })
}

/// The first gap after which the loop makes progress after nearly every detour.
fn smallest_gap() -> Result<u64, CalibrationError> {
    for gap in GAPS_NS {
        let round = Round::new(INTERRUPTED_NS, gap, GAP_ROUND_NS)?;
        let alone = round.struck().filter(|(_, entries)| entries.len() == 1).count();
        if alone > 0 && alone as f64 >= THROUGH * round.entries.len() as f64 {
            return Ok(gap);
        }
    }
    Ok(GAPS_NS[GAPS_NS.len() - 1])
}

/// Median, and median absolute deviation. A negative median counts as 0.
fn spread(values: &[i64]) -> (u64, u64) {
    let middle = |values| median_high(values, i64::cmp).unwrap_or(0);
    let median = middle(values.to_vec());
    let off = values.iter().map(|value| (value - median).abs()).collect();
    (u64::try_from(median).unwrap_or(0), middle(off) as u64)
}

/// A time in which the loop made no progress.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: u64,
    end: u64,
}

/// A run of the handler.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    took: u64,
}

/// A loop that is interrupted by a timer whose handler burns nothing.
#[derive(Debug)]
struct Round {
    since_ns: u64,
    turn_ns: u64,
    gaps: Vec<Gap>,
    entries: Vec<Entry>,
}

impl Round {
    /// Runs the loop for `length_ns` with a detour of zero length in each period.
    fn new(period: u64, gap_ns: u64, length_ns: u64) -> Result<Self, CalibrationError> {
        const MOST: usize = 4096;
        // Leaked, because a handler may read it as long as the process lives; about 100 KiB per calibration.
        let words: &'static [u64] = Vec::leak(vec![period / 2, period, period / 2, period]);
        let reported: &'static [AtomicU64] =
            Vec::leak((0..WORDS + EVENT * MOST).map(|_| AtomicU64::new(0)).collect());
        let track = ProgressClockView::from_words(1, words).map_err(|_| CalibrationError::NoTimer)?;
        let thread = Thread::take().ok_or(CalibrationError::NoTimer)?;
        let mut gaps = Vec::with_capacity(MOST);
        let turn_ns = median_turn();
        let since_ns = now_ns();
        let until_ns = since_ns + length_ns;
        let plan = Plan {
            track,
            since_ns,
            place: 0,
            overhead_ns: 0,
            early_ns: 0,
            smallest_gap_ns: gap_ns,
            until_ns,
            apart: false,
        };
        let engine: &'static Engine =
            Box::leak(Box::new(Engine { plan, report: Report::over(reported), spares: false }));
        if !engine.begin(thread) {
            Engine::end(thread);
            return Err(CalibrationError::NoTimer);
        }
        let mut last = now_ns();
        while last < until_ns && gaps.len() < MOST {
            let now = now_ns();
            if now - last > 2 * turn_ns + INTERRUPTED_NS {
                gaps.push(Gap { start: last, end: now });
            }
            last = now;
        }
        Engine::end(thread);
        let events = engine.report.get(Field::Events) as usize;
        let word = |index: usize| reported[index].load(std::sync::atomic::Ordering::Relaxed);
        let entry = |event| Entry { at: word(WORDS + event * EVENT), took: word(WORDS + event * EVENT + 2) };
        Ok(Self { since_ns, turn_ns, gaps, entries: (0..events.min(MOST)).map(entry).collect() })
    }

    /// The gaps in which the handler ran, each with its runs.
    fn struck(&self) -> impl Iterator<Item = (Gap, &[Entry])> {
        let within = |gap: Gap| {
            let first = self.entries.partition_point(|entry| entry.at < gap.start);
            let end = self.entries.partition_point(|entry| entry.at < gap.end);
            (gap, &self.entries[first..end])
        };
        self.gaps.iter().map(move |&gap| within(gap)).filter(|(_, entries)| !entries.is_empty())
    }
}

/// The median time of an uninterrupted turn of the loop.
fn median_turn() -> u64 {
    let mut last = now_ns();
    let turns = (0..1_000)
        .map(|_| {
            let now = now_ns();
            let turn = now - last;
            last = now;
            turn
        })
        .collect();
    median_high(turns, u64::cmp).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    mod on_this_machine {
        use super::*;

        #[test]
        fn calibration_finds_what_a_detour_costs() {
            let _turn = quell_testing::machine();
            quell_testing::measure(|_| {
                let found = match calibrate(None, 1_000_000) {
                    Err(error @ CalibrationError::Silent { .. }) => return Err(error.to_string()),
                    found => found.unwrap(),
                };
                assert!(found.overhead_ns > 0 && found.shortest_ns >= found.overhead_ns, "{found:?}");
                assert!(found.apart_ns() >= 2 * found.overhead_ns, "{found:?}");
                Ok(())
            });
        }
    }
}
