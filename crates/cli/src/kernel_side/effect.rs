//! The recorder's own effect: how much longer the detours of the recorded CPUs become while its programs are attached.
//!
//! Before a recording, blocks with the programs attached alternate with blocks without them, under the same probes. The order turns
//! round with each pair (off, on; on, off), so that a steady change of the machine cancels out, and half of the attaching is saved.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quell_analysis::observer::{self, Block};
use quell_kernel::{KernelError, Recorder};
use quell_node::clock::monotonic_ns;
use quell_node::probe::{self, Plan, Sink, Status};
use quell_recording::{Cpu, Detour, Error, Manifest, Method, Nanos, Progress, Quantum, RecorderEffect};

/// Length of a block.
const BLOCK: Nanos = Nanos::from_nanos(100_000_000);
/// After programs were attached or detached, the kernel has work of its own to do.
const SETTLING: Duration = Duration::from_millis(5);

/// Length of a pair, with the time to attach and detach the programs.
pub const PAIR: Duration = Duration::from_millis(215);
/// Number of pairs below which there is no interval, and above which a recording measures only if that was requested.
const FEWEST_PAIRS: u64 = 6;
const MOST_PAIRS: u64 = 30;
/// Shorter recordings are not made longer unless that was requested.
const SHORTEST: Nanos = Nanos::from_secs(8);

/// An effect above this, in percent, is a warning of the recording, if it is certain that there is one.
const WORTH_SAYING_PERCENT: f64 = 2.0;

/// Whether the reader of any figure of the recording must know of the effect.
pub fn is_worth_saying(effect: &RecorderEffect) -> bool {
    effect.low_percent > 0.0 && effect.percent > WORTH_SAYING_PERCENT
}

/// The number of pairs for a plan: those that were asked for, or as many as fit a tenth of its duration. With a count, the duration
/// is only the longest one.
pub fn pairs(asked: Option<u64>, plan: &Plan) -> u64 {
    let fitting = |duration: Nanos| {
        let pairs = (Duration::from(duration) / 10).as_nanos() / PAIR.as_nanos();
        (pairs as u64).clamp(FEWEST_PAIRS, MOST_PAIRS)
    };
    let known = plan.duration.filter(|duration| plan.count.is_none() && *duration >= SHORTEST);
    if plan.method == Method::Detour { asked.unwrap_or_else(|| known.map_or(0, fitting)) } else { 0 }
}

/// Measures pairs of blocks; `None` if `stop` was set before there were enough of them. The programs are attached when this returns.
///
/// # Errors
/// Those of the probes; when the programs cannot be attached again.
pub fn measure(
    recorder: &mut Recorder,
    plan: &Plan,
    pairs: u64,
    stop: &AtomicBool,
) -> anyhow::Result<Option<RecorderEffect>> {
    let done = AtomicBool::new(false);
    let plan = Plan { duration: None, count: None, realtime: None, ..plan.clone() };
    let mut blocks = Blocks {
        recorder,
        wanted: 2 * pairs as usize,
        stop,
        done: &done,
        zero_ns: 0,
        attached: true,
        windows: Vec::new(),
        refused: None,
    };
    let run = probe::stream(&plan, &done, &mut blocks);
    let Blocks { attached, windows, refused, .. } = blocks;
    if !attached {
        recorder.attach()?;
    }
    run?;
    refused.map_or(Ok(()), Err)?;
    let mut windows = windows.into_iter();
    let pair = || {
        let (a, b) = (windows.next()?, windows.next()?);
        Some(if a.attached { (b.block, a.block) } else { (a.block, b.block) })
    };
    Ok(observer::effect(&std::iter::from_fn(pair).collect::<Vec<_>>(), BLOCK))
}

/// A block: when it is, and what the probes found in it.
#[derive(Debug)]
struct Window {
    attached: bool,
    start_ns: u64,
    end_ns: u64,
    block: Block,
}

/// Takes what the probes find, and attaches and detaches the programs in turn.
struct Blocks<'a> {
    recorder: &'a mut Recorder,
    wanted: usize,
    stop: &'a AtomicBool,
    done: &'a AtomicBool,
    zero_ns: u64,
    attached: bool,
    windows: Vec<Window>,
    refused: Option<KernelError>,
}

impl Blocks<'_> {
    /// Begins the next block, once this one is over.
    fn turn(&mut self) -> Result<(), KernelError> {
        let now = monotonic_ns();
        if self.windows.last().is_some_and(|window| now < window.end_ns) {
            return Ok(());
        }
        if self.windows.len() >= self.wanted || self.stop.load(Ordering::SeqCst) {
            self.done.store(true, Ordering::SeqCst);
            return Ok(());
        }
        let attached = matches!(self.windows.len() % 4, 1 | 2);
        if attached && !self.attached {
            self.recorder.attach()?;
        } else if !attached && self.attached {
            self.recorder.detach();
        }
        self.attached = attached;
        let start_ns = monotonic_ns() + SETTLING.as_nanos() as u64;
        let end_ns = start_ns + BLOCK.as_nanos();
        self.windows.push(Window { attached, start_ns, end_ns, block: Block::default() });
        Ok(())
    }
}

impl Sink for Blocks<'_> {
    fn begin(&mut self, manifest: &mut Manifest) -> Result<(), Error> {
        self.zero_ns = manifest.zero_monotonic_ns.unwrap_or(0);
        Ok(())
    }

    fn detours(&mut self, rows: &[(Cpu, Detour)]) -> Result<(), Error> {
        for (_, detour) in rows.iter().filter(|(_, detour)| !detour.own) {
            let start = self.zero_ns + detour.start.as_nanos();
            let end = start + detour.duration.as_nanos();
            // The blocks follow one another, with gaps between them.
            let begun = self.windows.partition_point(|window| window.start_ns <= start);
            if let Some(window) = self.windows[..begun].last_mut().filter(|window| end <= window.end_ns) {
                window.block.add(detour.duration);
            }
        }
        Ok(())
    }

    fn quanta(&mut self, _: &[(Cpu, Quantum)]) -> Result<(), Error> {
        Ok(())
    }

    fn progress(&mut self, _: &Progress) -> Result<(), Error> {
        Ok(())
    }

    fn look(&mut self) -> Result<f64, Error> {
        // In blocks without programs too, so that this thread disturbs all blocks alike.
        self.recorder.discard();
        if let Err(error) = self.turn() {
            self.refused = Some(error);
            self.done.store(true, Ordering::SeqCst);
        }
        Ok(0.0)
    }

    fn drain_interval(&self) -> Duration {
        self.recorder.drain_interval()
    }

    fn lost(&self) -> u64 {
        0
    }

    fn status(&mut self, _: Status) {}

    fn next_flush(&self, flushed: Nanos) -> Nanos {
        flushed + BLOCK
    }

    /// To the end of the block, and no longer.
    fn sleep_for(&mut self, length: Duration) {
        let end_ns = self.windows.last().map_or(0, |window| window.end_ns);
        let left = Duration::from_nanos(end_ns.saturating_sub(monotonic_ns()));
        std::thread::sleep(length.min(left));
    }

    fn end(&mut self, _: &mut Manifest, written: Result<(), Error>) -> Result<(), Error> {
        written
    }
}
