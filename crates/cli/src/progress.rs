//! Progress bars: drawn on a terminal, silent in a pipe, and never by a thread of their own, which would be noise.

use std::ops::ControlFlow;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quell_node::probe::Status;
use quell_recording::Nanos;

use crate::printer::Printer;

/// One step of a command.
#[derive(Debug)]
pub struct Step(ProgressBar);

impl Step {
    /// A step of `length` units; without a length, the bar only shows that it runs.
    pub fn new(printer: Printer, name: &'static str, length: Option<u64>) -> Self {
        let target = if printer.draws() {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(length, target);
        let template = match length {
            Some(_) => "{prefix:>10} {bar:32} {percent:>3}% {msg}",
            None => "{prefix:>10} {elapsed:>4} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name);
        bar.tick();
        Self(bar)
    }

    /// A step that may take long, with an estimate of the remaining time.
    pub fn long(printer: Printer, name: &'static str, length: Option<u64>) -> Self {
        let step = Self::new(printer, name, length);
        if let (Some(_), Ok(style)) =
            (length, ProgressStyle::with_template("{prefix:>10} {bar:32} {percent:>3}% {eta:>4} left {msg}"))
        {
            step.0.set_style(style);
        }
        step
    }

    /// A step of a recording: measured in time if it has a duration, otherwise in rows.
    pub fn recording(printer: Printer, duration: Option<Nanos>, count: Option<u64>) -> Self {
        Self::new(printer, "record", duration.map(Nanos::as_nanos).or(count))
    }

    /// Updates the progress of a recording.
    pub fn recorded(&self, status: Status, by_time: bool) {
        // The text would be made on the thread that empties the recorder's rings.
        if self.0.is_hidden() {
            return;
        }
        let lost = if status.lost > 0 { format!(", {} lost", status.lost) } else { String::new() };
        self.0.set_message(format!("{}, {} rows{lost}", status.elapsed, status.rows));
        self.0.set_position(if by_time { status.elapsed.as_nanos() } else { status.rows });
    }

    /// Updates how much of the step is done.
    pub fn reach(&self, done: u64) {
        match self.0.length() {
            Some(length) => self.0.set_position(done.min(length)),
            None => self.0.set_message(format!("{done} events")),
        }
    }

    /// Updates the progress of work that can be stopped. `all` is 0 if the total is not known.
    pub fn go_on(&self, done: u64, all: u64) -> ControlFlow<()> {
        match all {
            0 => self.reach(done),
            all => self.set(done, all),
        }
        ControlFlow::Continue(())
    }

    /// Updates how much is done, and the total.
    pub fn set(&self, done: u64, all: u64) {
        self.0.set_length(all);
        self.0.set_position(done);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
