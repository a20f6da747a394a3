//! `quell serve-metrics`: serves the noise of this node as counters for Prometheus and compatible tools.

mod http;

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use quell_analysis::live::{Counters, openmetrics};
use quell_node::clock::monotonic_ns;
use quell_node::machine;
use quell_node::probe::{self, Plan, Sink, Status};
use quell_recording::{Cpu, Detour, Error, Manifest, Method, Nanos, Progress, Quantum, format_cpu_list};

use crate::args::{ServeMetrics, SourcesMode};
use crate::kernel_side::KernelSide;
use crate::kernel_side::record as record_kernel;
use crate::outcome::Outcome;
use crate::plan;
use crate::printer::Printer;
use crate::signals::stopped_by_signals;

/// Maximum time between two reads of the rows, which keeps buffers small.
const PACE: Nanos = Nanos::from_nanos(250_000_000);
/// Maximum time until a signal is noticed.
const LONGEST_NAP: Duration = Duration::from_millis(50);

/// The page to serve; replaced as a whole at the end of each interval.
pub type Page = Arc<Mutex<Arc<str>>>;

/// Serves until a signal.
pub fn run(args: &ServeMetrics, printer: Printer) -> anyhow::Result<Outcome> {
    let plan = plan::for_metrics(args)?;
    // Work in other threads would be noise on the watched CPUs.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    let listener = listen(args)?;
    let watched = quell_kernel::Plan { cpus: plan.cpus.clone(), ..Default::default() };
    let mode = if args.probe { SourcesMode::Auto } else { SourcesMode::On };
    let side = KernelSide::start(mode, watched, printer)?;
    let stop = stopped_by_signals()?;
    if !args.listen.ip().is_loopback() {
        printer.warn("process names are served without authentication to anyone who can reach this address");
    }
    let address = listener.local_addr()?;
    printer.status(&format!("CPUs {}: http://{address}/metrics", format_cpu_list(&plan.cpus)));
    let served = serve(&plan, args.interval, side, &listener, &stop);
    // From here on a signal ends quell as usual.
    stop.store(true, Ordering::SeqCst);
    served?;
    Ok(Outcome::Done)
}

fn listen(args: &ServeMetrics) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(args.listen).with_context(|| {
        format!(
            "cannot listen on {} (choose another address with --listen; port 0 takes a free one)",
            args.listen
        )
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Runs the recorder on this thread and the server on another; neither outlives the other.
fn serve(
    plan: &Plan,
    interval: Nanos,
    side: KernelSide,
    listener: &TcpListener,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let mut live = Live::new(plan, interval, side);
    live.publish();
    let page = Arc::clone(&live.page);
    std::thread::scope(|scope| {
        if plan.method == Method::Kernel {
            // This must come before the server's thread starts, so that the server is off the watched CPUs too, if there are others.
            let _ = record_kernel::leave(&plan.cpus);
        }
        let server = scope.spawn(|| {
            let served = http::serve(listener, &page, stop);
            stop.store(true, Ordering::SeqCst);
            served
        });
        let gathered = match plan.method {
            Method::Kernel => passive(plan, stop, &mut live),
            _ => probe::stream(plan, stop, &mut live).map(drop).map_err(anyhow::Error::new),
        };
        stop.store(true, Ordering::SeqCst);
        let served = server.join().map_err(|_| anyhow::anyhow!("the server thread failed"))?;
        gathered.and(served.context("the server cannot continue"))
    })
}

/// The loop without probes.
fn passive(plan: &Plan, stop: &AtomicBool, live: &mut Live) -> anyhow::Result<()> {
    let zero = monotonic_ns();
    let mut manifest = probe::first_manifest(Method::Kernel, &plan.cpus, &plan.command);
    manifest.zero_monotonic_ns = Some(zero);
    live.begin(&mut manifest)?;
    while !stop.load(Ordering::SeqCst) {
        live.sleep_for(LONGEST_NAP);
        live.look()?;
        let elapsed = Nanos::from_nanos(monotonic_ns() - zero);
        live.observe(elapsed);
        if elapsed >= live.due {
            let (lost, intervals_lost) = (Vec::new(), live.lost());
            live.progress(&Progress { until_ns: elapsed, lost, intervals_lost })?;
        }
    }
    Ok(())
}

/// The state between the rows and the page.
struct Live {
    side: KernelSide,
    counters: Counters,
    page: Page,
    interval: Nanos,
    due: Nanos,
    /// CPUs whose probe has ended.
    closed: Vec<Cpu>,
    /// CPUs that were online at the last look; `None` where the list could not be read, and all count as online.
    online: Option<Vec<Cpu>>,
}

impl Live {
    fn new(plan: &Plan, interval: Nanos, side: KernelSide) -> Self {
        let counters = Counters::new(&plan.cpus, plan.method != Method::Kernel, std::process::id());
        Self {
            side,
            counters,
            page: Arc::new(Mutex::new("".into())),
            interval,
            due: interval,
            closed: Vec::new(),
            online: None,
        }
    }

    /// The time since the last look counts as observed on the CPUs that were online at both.
    fn observe(&mut self, until: Nanos) {
        let before = std::mem::replace(&mut self.online, machine::Cpus::online().ok());
        let was_online =
            |list: &Option<Vec<Cpu>>, cpu| list.as_ref().is_none_or(|list| list.binary_search(&cpu).is_ok());
        self.counters.observe(until, |cpu| {
            !self.closed.contains(&cpu) && was_online(&before, cpu) && was_online(&self.online, cpu)
        });
    }

    fn publish(&self) {
        let text: Arc<str> = openmetrics(&self.counters, env!("CARGO_PKG_VERSION")).into();
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

impl Sink for Live {
    fn begin(&mut self, manifest: &mut Manifest) -> Result<(), Error> {
        quell_node::probe::RowSource::begin(&mut self.side, manifest);
        Ok(())
    }

    fn detours(&mut self, rows: &[(Cpu, Detour)]) -> Result<(), Error> {
        self.counters.detours(rows);
        Ok(())
    }

    fn quanta(&mut self, _: &[(Cpu, Quantum)]) -> Result<(), Error> {
        Ok(())
    }

    fn progress(&mut self, progress: &Progress) -> Result<(), Error> {
        if progress.until_ns >= self.due {
            while self.due <= progress.until_ns {
                self.due += self.interval;
            }
            self.observe(progress.until_ns);
            self.counters.turn(self.lost(), progress.lost.iter().sum());
            self.publish();
        }
        Ok(())
    }

    fn closed(&mut self, cpu: Cpu, _last: Nanos) {
        self.closed.push(cpu);
    }

    fn look(&mut self) -> Result<f64, Error> {
        Ok(match &mut self.side {
            KernelSide::Known(rows) => rows.drain(|rows| self.counters.intervals(rows)),
            _ => 0.0,
        })
    }

    fn lost(&self) -> u64 {
        quell_node::probe::RowSource::lost(&self.side)
    }

    fn status(&mut self, _: Status) {}

    fn next_flush(&self, flushed: Nanos) -> Nanos {
        (flushed + PACE).min(self.due)
    }

    fn sleep_for(&mut self, length: Duration) {
        std::thread::sleep(length);
    }

    fn end(&mut self, _: &mut Manifest, written: Result<(), Error>) -> Result<(), Error> {
        written
    }
}
