//! A recording of the kernel alone, while it runs.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quell_kernel::Recorder;
use quell_node::clock::monotonic_ns;
use quell_node::probe::{Plan, RowSource as _, Status};
use quell_recording::{Nanos, Progress, Writer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::kernel_side::Rows;
use crate::printer::Printer;
use crate::progress::Step;

/// The longest time between two reads of the rings.
pub const LONGEST: Duration = Duration::from_millis(50);
/// The longest time between two reads while ranks compute on all CPUs, where each read is noise to them.
pub const LONGEST_WITH_RANKS: Duration = Duration::from_millis(300);
/// The shortest time between two reads of the rings.
const SHORTEST: Duration = Duration::from_millis(2);
/// How long a command may take to end by itself after a request to stop.
const GRACE_NS: u64 = 2_000_000_000;
/// How often the progress of the recording is written to its file.
const FLUSH_NS: u64 = 700_000_000;

/// The state of a recording that runs.
#[derive(Debug)]
pub struct Run<'a> {
    pub plan: &'a Plan,
    pub stop: &'a AtomicBool,
    pub child: Option<Child>,
    /// The followed processes that are not children of quell.
    pub guests: Option<AdoptedProcesses>,
    /// The time of the request to stop, from which the command's grace period counts.
    pub asked_ns: Option<u64>,
    pub zero_ns: u64,
    pub longest: Duration,
}

impl<'a> Run<'a> {
    /// A run that starts at `zero_ns`, for as long as the plan gives.
    pub fn new(plan: &'a Plan, stop: &'a AtomicBool, zero_ns: u64, longest: Duration) -> Self {
        Self { plan, stop, child: None, guests: None, asked_ns: None, zero_ns, longest }
    }

    /// Writes rows as they arrive, until the run is over.
    pub fn stream(
        &mut self,
        rows: &mut Rows,
        writer: &mut Writer,
        printer: Printer,
    ) -> Result<(), quell_recording::Error> {
        let step = Step::recording(printer, self.plan.duration, None);
        let longest = self.longest.min(rows.drain_interval());
        let command = self.command();
        let (mut sleep, mut flushed) = (SHORTEST, 0);
        loop {
            pause(sleep, command.as_ref());
            let over = self.over(writer.interval_rows(), rows.recorder());
            let now = monotonic_ns();
            if over {
                rows.end_threads(now, writer)?;
            }
            let fill = rows.collect(writer)?;
            let elapsed = now - self.zero_ns;
            if over || elapsed - flushed >= FLUSH_NS {
                flushed = elapsed;
                let lost = vec![0; self.plan.cpus.len()];
                let (until_ns, intervals_lost) = (Nanos::from_nanos(elapsed), rows.lost());
                writer.progress(&Progress { until_ns, lost, intervals_lost })?;
                let status = Status { elapsed: until_ns, rows: writer.interval_rows(), lost: intervals_lost };
                step.recorded(status, self.plan.duration.is_some());
            }
            if over {
                return Ok(());
            }
            let by_rate = Duration::try_from_secs_f64(sleep.as_secs_f64() * 0.25 / fill).unwrap_or(longest);
            sleep = by_rate.clamp(SHORTEST, longest);
        }
    }

    /// The command, to wait for; `None` without one, and on kernels without pidfds.
    fn command(&self) -> Option<OwnedFd> {
        let pid = Pid::from_raw(self.child.as_ref()?.id() as i32)?;
        pidfd_open(pid, PidfdFlags::empty()).ok()
    }

    /// Whether the command has ended; without a command, whether the time is up or a stop was requested.
    fn over(&mut self, rows: u64, recorder: &Recorder) -> bool {
        let stopped = self.stop.load(Ordering::SeqCst);
        if let Some(guests) = &mut self.guests {
            return stopped || guests.are_gone(recorder, self.zero_ns);
        }
        let Some(child) = &mut self.child else {
            let elapsed = Nanos::from_nanos(monotonic_ns() - self.zero_ns);
            return stopped
                || self.plan.duration.is_some_and(|length| elapsed >= length)
                || self.plan.count.is_some_and(|count| rows >= count);
        };
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        // The terminal has sent Ctrl-C to the command too, which may clean up before it ends; only later does quell send SIGTERM.
        let now = monotonic_ns();
        if stopped && now - *self.asked_ns.get_or_insert(now) >= GRACE_NS {
            // SAFETY: the child is ours and has not been waited for, so its process id is still valid.
            unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
            self.asked_ns = None;
        }
        false
    }
}

/// Waits this long, or until the command ends.
fn pause(length: Duration, command: Option<&OwnedFd>) {
    let Some(command) = command else { return std::thread::sleep(length) };
    let longest = Timespec::try_from(length).ok();
    let _ = poll(&mut [PollFd::new(command, PollFlags::IN)], longest.as_ref());
}

/// Processes that are followed because they asked for it, and that come and go.
#[derive(Debug, Default)]
pub struct AdoptedProcesses {
    came: bool,
    looked_ns: u64,
    /// The last time at which one of them was seen.
    seen_ns: u64,
}

impl AdoptedProcesses {
    /// Whether all of them have ended, or none ever came.
    fn are_gone(&mut self, recorder: &Recorder, begun_ns: u64) -> bool {
        const LOOK_NS: u64 = 200_000_000;
        /// A script may start its next job at once.
        const LINGER_NS: u64 = 1_000_000_000;
        const ABSENT_NS: u64 = 30_000_000_000;
        let now = monotonic_ns();
        if now - self.looked_ns < LOOK_NS {
            return false;
        }
        self.looked_ns = now;
        if recorder.follows_any() {
            (self.came, self.seen_ns) = (true, now);
        }
        if self.came { now - self.seen_ns >= LINGER_NS } else { now - begun_ns >= ABSENT_NS }
    }
}
