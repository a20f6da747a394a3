//! Long calls: they leave the interpreter to others, tell how far they are, and end when Python says so.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use quell_analysis::Progress;

use crate::error;

/// How often Python is asked whether to go on.
const STEP: Duration = Duration::from_millis(50);
/// So long work that is told to stop is waited for; what takes longer ends by itself, and nobody hears of it.
const PATIENCE: Duration = Duration::from_millis(500);

/// The process that has the pool: after a fork its threads are gone.
static POOL: OnceLock<u32> = OnceLock::new();

/// Between the work and who waits for it.
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

/// Does the work on a thread of its own. Meanwhile signals are handled, and `progress(done, all)` is called now and then; what either
/// raises ends the work.
pub fn long<T, W>(py: Python<'_>, progress: Option<&Py<PyAny>>, work: W) -> PyResult<T>
where
    T: Send + 'static,
    W: FnOnce(Progress<'_>) -> anyhow::Result<T> + Send + 'static,
{
    // Threads are called after who starts them, and these stay when the work has gone.
    let here = std::process::id();
    let maker = POOL.get_or_init(|| {
        let pool = rayon::ThreadPoolBuilder::new().thread_name(|number| format!("quell-pool-{number}"));
        // Without it the pool makes itself.
        let _ = pool.build_global();
        here
    });
    if *maker != here {
        let why = "this process was forked from one in which quell had begun its threads, which are not here: \
                   start workers afresh, as by multiprocessing.get_context(\"spawn\")";
        return Err(error::told(&anyhow::anyhow!(why)));
    }
    let shared = Arc::new(Shared::default());
    let (send, mut receive) = channel();
    let theirs = Arc::clone(&shared);
    let run = move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&|done, all| theirs.tell(done, all))));
        // Who does not listen any more has gone.
        let _ = send.send(result);
    };
    std::thread::Builder::new().name("quell".to_owned()).spawn(run)?;
    loop {
        let waited;
        (waited, receive) = wait(py, receive, STEP);
        match waited {
            Ok(Ok(result)) => return result.map_err(|error| error::told(&error)),
            Ok(Err(_)) => return Err(PyRuntimeError::new_err("quell made a mistake, and said above which")),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the work ended without a word"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(stopped) = py.check_signals().and_then(|()| show(py, progress, &shared)) {
            shared.stop.store(true, Ordering::Relaxed);
            drop(wait(py, receive, PATIENCE));
            return Err(stopped);
        }
    }
}

/// Waits with the interpreter left to others, and gives the receiver back.
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
