//! `quell watch`: shows the noise of this node live.

mod columns;
mod display_state;
mod meter;
mod panes;
mod plain;
mod screen;
#[cfg(test)]
mod tests;
mod tty;
mod view;

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use quell_analysis::live::{Frame, Gatherer, Overhead};
use quell_node::clock::monotonic_ns;
use quell_node::probe::{self, Plan, Sink, Status};
use quell_recording::{Cpu, Detour, Error, Manifest, Method, Nanos, Progress, Quantum, format_cpu_list};

use crate::args::{SourcesMode, Watch};
use crate::kernel_side::KernelSide;
use crate::kernel_side::record as record_kernel;
use crate::outcome::Outcome;
use crate::plan;
use crate::printer::Printer;
use crate::signals::stopped_by_signals;
use meter::Meter;
use plain::{block, summary};
use tty::Tty;
use view::View;

/// Maximum time between two reads of the rows, which keeps buffers small and the response to signals fast.
const PACE: Nanos = Nanos::from_nanos(250_000_000);

/// The rest of the run after the last full interval is reported if it is at least an interval divided by this number.
const SHORTEST_PART: u64 = 20;

/// Watches until the time is up, or a key or a signal ends it.
pub fn run(args: &Watch, printer: Printer) -> anyhow::Result<Outcome> {
    let plan = plan::for_watch(args)?;
    // Work in other threads would be noise on the probed CPUs that is not marked as quell's own.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    let mode = if args.passive { SourcesMode::On } else { args.watching.sources };
    let watched = quell_kernel::Plan { cpus: plan.cpus.clone(), ..Default::default() };
    let side = KernelSide::start(mode, watched, printer)?;
    let stop = stopped_by_signals()?;
    let face = Face::choose(args, &plan, printer)?;
    let mut live = Live::new(args, &plan, side, face, printer, Arc::clone(&stop));
    match plan.method {
        Method::Kernel => passive(&plan, &stop, &mut live)?,
        _ => {
            probe::stream(&plan, &stop, &mut live)?;
        }
    }
    // From here on a signal ends quell as usual.
    stop.store(true, Ordering::SeqCst);
    live.finish()?;
    Ok(Outcome::Done)
}

/// The loop without probes.
fn passive(plan: &Plan, stop: &AtomicBool, live: &mut Live) -> anyhow::Result<()> {
    let _ = record_kernel::leave(&plan.cpus);
    let zero = monotonic_ns();
    let mut manifest = probe::first_manifest(Method::Kernel, &plan.cpus, &plan.command);
    manifest.zero_monotonic_ns = Some(zero);
    live.begin(&mut manifest)?;
    let mut flushed = Nanos::ZERO;
    loop {
        let elapsed = Nanos::from_nanos(monotonic_ns() - zero);
        let end = plan.duration.unwrap_or(Nanos::MAX);
        let next = live.next_flush(flushed).min(end);
        live.sleep_for(Duration::from(next.saturating_sub(elapsed)).min(Duration::from_millis(50)));
        live.look()?;
        let elapsed = Nanos::from_nanos(monotonic_ns() - zero);
        let over = stop.load(Ordering::SeqCst) || elapsed >= end;
        if over || elapsed >= next {
            flushed = elapsed;
            let lost = vec![0; plan.cpus.len()];
            live.progress(&Progress { until_ns: elapsed, lost, intervals_lost: live.lost() })?;
        }
        if over {
            return Ok(());
        }
    }
}

/// The output of frames.
#[derive(Debug)]
enum Face {
    Screen(Box<Tty>),
    Plain,
    Json,
}

impl Face {
    fn choose(args: &Watch, plan: &Plan, printer: Printer) -> anyhow::Result<Self> {
        if args.json {
            return Ok(Self::Json);
        }
        let title = format!("CPUs {}", format_cpu_list(&plan.cpus));
        if args.plain || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            printer.status(&format!("watching {title}"));
            return Ok(Self::Plain);
        }
        let view = View::new(args.sort, &args.filter);
        let tty = Tty::take(view, title).context("cannot draw on this terminal (try --plain)")?;
        Ok(Self::Screen(Box::new(tty)))
    }
}

/// The state between the rows and the display.
struct Live {
    side: KernelSide,
    gatherer: Gatherer,
    meter: Meter,
    face: Face,
    view: View,
    printer: Printer,
    stop: Arc<AtomicBool>,
    interval: Nanos,
    due: Nanos,
    until: Nanos,
    last: Option<Frame>,
    lost_detours: u64,
    failed: Option<anyhow::Error>,
}

impl Live {
    fn new(
        args: &Watch,
        plan: &Plan,
        side: KernelSide,
        face: Face,
        printer: Printer,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let unknown = match &side {
            KernelSide::Known(_) => None,
            KernelSide::Unknown(why) => Some(why.clone()),
            KernelSide::Unwanted => Some("they were not requested (--sources off)".into()),
        };
        let probed = plan.method != Method::Kernel;
        let meter = Meter::start(recorder(&side));
        Self {
            gatherer: Gatherer::new(&plan.cpus, probed, unknown, std::process::id()),
            side,
            meter,
            face,
            view: View::new(args.sort, &args.filter),
            printer,
            stop,
            interval: args.interval,
            due: args.interval,
            until: Nanos::ZERO,
            last: None,
            lost_detours: 0,
            failed: None,
        }
    }

    fn frame(&mut self) -> Frame {
        let cost = self.meter.read(recorder(&self.side));
        self.gatherer.frame(self.until, Overhead { lost_detours: self.lost_detours, ..cost })
    }

    fn show(&mut self, frame: Frame) -> anyhow::Result<()> {
        match &mut self.face {
            Face::Screen(tty) => tty.show(frame.clone())?,
            Face::Plain => self.printer.result(&block(&frame, &self.view))?,
            Face::Json => self.printer.json_line(&frame)?,
        }
        self.last = Some(frame);
        Ok(())
    }

    /// Stops the run after an error, which is reported at the end.
    fn fail(&mut self, outcome: anyhow::Result<()>) {
        if let Err(error) = outcome {
            self.failed.get_or_insert(error);
            self.stop.store(true, Ordering::SeqCst);
        }
    }

    /// Restores the terminal, and prints the summary.
    fn finish(mut self) -> anyhow::Result<()> {
        let shown = self.last.as_ref().is_some_and(|frame| frame.time_ns == self.until.as_nanos());
        let reported = self.last.as_ref().map_or(0, |frame| frame.time_ns);
        let last = if shown { self.last.take() } else { Some(self.frame()) };
        let json = matches!(self.face, Face::Json);
        drop(self.face);
        if let Some(error) = self.failed {
            return Err(error);
        }
        match last.filter(|frame| frame.time_ns > 0) {
            Some(frame)
                if json && !shown && frame.time_ns - reported >= self.interval.as_nanos() / SHORTEST_PART =>
            {
                self.printer.json_line(&frame)
            }
            Some(frame) if !json => Ok(self.printer.result(&summary(&frame))?),
            _ => Ok(()),
        }
    }
}

fn recorder(side: &KernelSide) -> Option<&quell_kernel::Recorder> {
    match side {
        KernelSide::Known(rows) => Some(rows.recorder()),
        _ => None,
    }
}

impl Sink for Live {
    fn begin(&mut self, manifest: &mut Manifest) -> Result<(), Error> {
        quell_node::probe::RowSource::begin(&mut self.side, manifest);
        // The cost of starting is not part of the first interval.
        self.meter.read(recorder(&self.side));
        Ok(())
    }

    fn detours(&mut self, rows: &[(Cpu, Detour)]) -> Result<(), Error> {
        self.gatherer.detours(rows);
        Ok(())
    }

    fn quanta(&mut self, _: &[(Cpu, Quantum)]) -> Result<(), Error> {
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) -> Result<(), Error> {
        self.until = progress.until_ns;
        self.lost_detours = progress.lost.iter().sum();
        if self.until >= self.due && self.failed.is_none() {
            // Intervals that were missed are skipped, so that the next one ends on time.
            while self.due <= self.until {
                self.due += self.interval;
            }
            let frame = self.frame();
            let shown = self.show(frame);
            self.fail(shown);
        }
        Ok(())
    }

    fn look(&mut self) -> Result<f64, Error> {
        let fill = match &mut self.side {
            KernelSide::Known(rows) => rows.drain(|rows| self.gatherer.intervals(rows)),
            _ => 0.0,
        };
        if let Face::Screen(tty) = &mut self.face {
            match tty.keys() {
                Ok(quit) if quit => self.stop.store(true, Ordering::SeqCst),
                Ok(_) => {}
                Err(error) => self.fail(Err(error.into())),
            }
        }
        Ok(fill)
    }

    fn lost(&self) -> u64 {
        quell_node::probe::RowSource::lost(&self.side)
    }

    fn status(&mut self, _: Status) {}

    fn next_flush(&self, flushed: Nanos) -> Nanos {
        (flushed + PACE).min(self.due)
    }

    fn sleep_for(&mut self, length: Duration) {
        match &self.face {
            Face::Screen(tty) if tty.sleep_for(length) => {}
            _ => std::thread::sleep(length),
        }
    }

    fn end(&mut self, _: &mut Manifest, written: Result<(), Error>) -> Result<(), Error> {
        written
    }
}
