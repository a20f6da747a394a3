//! Long calls: they release the interpreter, report progress, and end when Python says so.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use quell_analysis::Progress;
use quell_request::threads;

use crate::error;

/// How often Python is asked whether to continue.
const STEP: Duration = Duration::from_millis(50);
/// How long the call waits for work that was asked to stop; work that takes longer ends by itself, and its result is dropped.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The process that created the thread pool. A forked child does not have its threads.
static POOL: OnceLock<u32> = OnceLock::new();

/// Shared between the work and the thread that waits for it.
#[derive(Debug, Default)]
struct Shared {
    done: AtomicU64,
    all: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    fn tell(&self, done: u64, all: u64) -> ControlFlow<()> {
        self.done.fetch_max(done, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Does the work on a thread of its own. While it runs, signals are handled, and `progress(done, all)` is called now and then; an exception
/// from either ends the work.
pub fn long<T, W>(py: Python<'_>, progress: Option<&Py<PyAny>>, work: W) -> PyResult<T>
where
    T: Send + 'static,
    W: FnOnce(Progress<'_>) -> anyhow::Result<T> + Send + 'static,
{
    // Threads inherit the name of the thread that starts them, and these outlive the work, so they get a name of their own.
    let here = std::process::id();
    let maker = POOL.get_or_init(|| {
        threads::share(None);
        here
    });
    if *maker != here {
        let why = "this process was forked after quell started its threads, and has no copy of them: start \
                   workers with multiprocessing.get_context(\"spawn\")";
        return Err(error::to_python(&anyhow::anyhow!(why)));
    }
    let shared = Arc::new(Shared::default());
    let (send, mut receive) = channel();
    let theirs = Arc::clone(&shared);
    let run = move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&|done, all| theirs.tell(done, all))));
        // The send fails if the caller no longer waits for the result.
        let _ = send.send(result);
    };
    std::thread::Builder::new().name("quell".to_owned()).spawn(run)?;
    loop {
        let waited;
        (waited, receive) = wait(py, receive, STEP);
        match waited {
            Ok(Ok(result)) => return result.map_err(|error| error::to_python(&error)),
            Ok(Err(_)) => {
                return Err(PyRuntimeError::new_err("this is a bug in quell: see the message above"));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the work ended without a result"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(stopped) = py.check_signals().and_then(|()| show(py, progress, &shared)) {
            shared.stop.store(true, Ordering::Relaxed);
            drop(wait(py, receive, TIMEOUT));
            return Err(stopped);
        }
    }
}

/// Waits with the interpreter released, and returns the receiver as well.
fn wait<T: Send>(
    py: Python<'_>,
    receive: Receiver<T>,
    time: Duration,
) -> (Result<T, RecvTimeoutError>, Receiver<T>) {
    py.detach(move || (receive.recv_timeout(time), receive))
}

fn show(py: Python<'_>, progress: Option<&Py<PyAny>>, shared: &Shared) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let (done, all) = (shared.done.load(Ordering::Relaxed), shared.all.load(Ordering::Relaxed));
    progress.call1(py, (done, all)).map(drop)
}
