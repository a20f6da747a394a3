//! The kernel recorder as part of a run: whether it is requested, whether it can run, and its rows.

pub mod effect;
pub mod record;

use std::convert::Infallible;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quell_kernel::{KernelError, Plan, Recorder, drain_portions};
use quell_node::doctor;
use quell_node::probe::{Plan as ProbePlan, RowSource};
use quell_recording::{
    Cpu, Error, Interval, Manifest, RecorderEffect, SourcesFacts, Thread, Warning, Writer,
};

use crate::args::SourcesMode;
use crate::printer::Printer;

/// Intervals are written once there are this many, which stay in the core's cache until then.
const BATCH_ROWS: usize = 1 << 10;

/// Whether the sources of a run are recorded.
#[derive(Debug)]
pub enum KernelSide {
    /// They are recorded.
    Known(Box<Rows>),
    /// They cannot be recorded, with the reason.
    Unknown(String),
    /// They were not requested.
    Unwanted,
}

/// The kernel recorder, and its rows that are not written yet.
#[derive(Debug)]
pub struct Rows {
    recorder: Recorder,
    intervals: Vec<(Cpu, Interval)>,
    threads: Vec<(Cpu, Thread)>,
    effect: Option<RecorderEffect>,
}

impl KernelSide {
    /// Starts the recorder as requested. If it cannot start and is not required, this prints a warning.
    pub fn start(mode: SourcesMode, plan: Plan, printer: Printer) -> anyhow::Result<Self> {
        if mode == SourcesMode::Off {
            return Ok(Self::Unwanted);
        }
        match Recorder::start(plan) {
            Ok(recorder) => Ok(Self::Known(Box::new(Rows::new(recorder)))),
            Err(error) if mode == SourcesMode::On => Err(refusal(error)),
            Err(error) => {
                let why = format!("{:#}", refusal(error));
                printer.warn(&format!("the sources of noise stay unknown: {why}"));
                Ok(Self::Unknown(why))
            }
        }
    }
}

/// The error, with the limit of this machine that explains it.
pub fn refusal(error: KernelError) -> anyhow::Error {
    if matches!(error, KernelError::TooManyFiles) {
        return error.into();
    }
    let error = anyhow::Error::new(error);
    match doctor::why_no_sources() {
        Some(why) => error.context(why),
        None => error.context("the kernel recorder cannot run"),
    }
}

impl Rows {
    /// Wraps a recorder that has started.
    pub fn new(recorder: Recorder) -> Self {
        Self { recorder, intervals: Vec::new(), threads: Vec::new(), effect: None }
    }

    /// Measures what the recorder does to detours, before rows are taken from it. Does nothing for no pairs.
    pub fn measure_effect(
        &mut self,
        plan: &ProbePlan,
        pairs: u64,
        stop: &AtomicBool,
        printer: Printer,
    ) -> anyhow::Result<()> {
        if pairs > 0 {
            let seconds = effect::PAIR.as_secs_f64() * pairs as f64;
            printer.status(&format!("measuring for {seconds:.1} s what the recorder adds to the detours"));
            self.effect = effect::measure(&mut self.recorder, plan, pairs, stop)?;
        }
        Ok(())
    }

    /// The recorder.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Passes the rows since the last call to `take` instead of a writer, a portion at a time, so that a full ring needs little memory; returns
    /// how full the fullest ring was.
    pub fn drain(&mut self, mut take: impl FnMut(std::vec::Drain<'_, (Cpu, Interval)>)) -> f64 {
        let Ok(fill) = drain_portions(|| {
            let portion = self.recorder.drain(&mut self.intervals, &mut self.threads);
            take(self.intervals.drain(..));
            self.threads.clear();
            Ok::<_, Infallible>(portion)
        });
        fill
    }

    fn write(&mut self, writer: &mut Writer) -> Result<(), Error> {
        writer.intervals(&self.intervals)?;
        writer.threads(&self.threads)?;
        self.intervals.clear();
        self.threads.clear();
        Ok(())
    }

    /// Writes all remaining rows, and the current state of the threads that are still alive.
    pub fn end_threads(&mut self, now_ns: u64, writer: &mut Writer) -> Result<(), Error> {
        self.collect(writer)?;
        let mut living = self.recorder.living(now_ns);
        // A thread that has ended since then has reported its own end.
        let Ok(_) = drain_portions(|| {
            Ok::<_, Infallible>(self.recorder.drain(&mut self.intervals, &mut self.threads))
        });
        let ended = |thread: &Thread| {
            self.threads.iter().any(|(_, e)| (e.tid, e.start) == (thread.tid, thread.start))
        };
        living.retain(|(_, thread)| !ended(thread));
        self.threads.extend(living);
        self.collect(writer).map(drop)
    }
}

impl RowSource for Rows {
    fn discard(&mut self) {
        self.recorder.discard();
    }

    fn begin(&mut self, manifest: &mut Manifest) {
        self.recorder.set_zero(manifest.zero_monotonic_ns.unwrap_or(0));
        // What came before takes no room in the rings any more.
        let Ok(_) = drain_portions(|| {
            Ok::<_, Infallible>(self.recorder.drain(&mut self.intervals, &mut self.threads))
        });
        manifest.sources = Some(self.recorder.facts());
    }

    fn collect(&mut self, writer: &mut Writer) -> Result<f64, Error> {
        let fill = drain_portions(|| {
            let portion = self.recorder.drain(&mut self.intervals, &mut self.threads);
            if self.intervals.len() >= BATCH_ROWS {
                self.write(writer)?;
            }
            Ok::<_, Error>(portion)
        })?;
        self.write(writer)?;
        Ok(fill)
    }

    fn drain_interval(&self) -> Duration {
        self.recorder.drain_interval()
    }

    fn lost(&self) -> u64 {
        self.recorder.lost()
    }

    fn complete(&mut self, manifest: &mut Manifest) {
        let facts = self.recorder.facts();
        if facts.lost > 0 {
            manifest.warnings.push(Warning::IntervalsLost { intervals: facts.lost });
        }
        if let Some(effect) = self.effect.as_ref().filter(|effect| effect::is_worth_saying(effect)) {
            manifest.warnings.push(Warning::LongerByRecorder {
                percent: effect.percent,
                low_percent: effect.low_percent,
                high_percent: effect.high_percent,
                below_ns: effect.below_ns,
            });
        }
        if facts.lost_threads > 0 {
            manifest.warnings.push(Warning::ThreadsNotFollowed { threads: facts.lost_threads });
        }
        let before = manifest.sources.take().unwrap_or_default();
        let (command_pid, command_exit_code) = (before.command_pid, before.command_exit_code);
        manifest.sources =
            Some(SourcesFacts { command_pid, command_exit_code, effect: self.effect.clone(), ..facts });
    }
}

impl RowSource for KernelSide {
    fn discard(&mut self) {
        if let Self::Known(rows) = self {
            rows.discard();
        }
    }

    fn begin(&mut self, manifest: &mut Manifest) {
        match self {
            Self::Known(rows) => rows.begin(manifest),
            Self::Unknown(why) => {
                let unknown_because = Some(why.clone());
                manifest.sources = Some(SourcesFacts { unknown_because, ..SourcesFacts::default() });
            }
            Self::Unwanted => {}
        }
    }

    fn collect(&mut self, writer: &mut Writer) -> Result<f64, Error> {
        match self {
            Self::Known(rows) => rows.collect(writer),
            _ => Ok(0.0),
        }
    }

    fn drain_interval(&self) -> Duration {
        match self {
            Self::Known(rows) => rows.drain_interval(),
            _ => Duration::MAX,
        }
    }

    fn lost(&self) -> u64 {
        match self {
            Self::Known(rows) => rows.lost(),
            _ => 0,
        }
    }

    fn complete(&mut self, manifest: &mut Manifest) {
        if let Self::Known(rows) = self {
            rows.complete(manifest);
        }
    }
}
