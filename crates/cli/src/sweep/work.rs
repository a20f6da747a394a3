//! Computes one process's share: its threads take chunk after chunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use quell_analysis::sweep::Unit;
use schemars::JsonSchema;
use serde::Serialize;

use super::folder::{Folder, Held};
use super::{Context, Failure, Row, Sweepable};
use quell_request::threads;

use crate::printer::Printer;
use crate::progress::Step;
use crate::share::Share;
use crate::signals::stopped_by_signals;

/// What the threads of a process share.
#[derive(Debug)]
pub struct Shared<V> {
    verb: V,
    /// The plan.
    pub context: Context,
    /// The dataset's folder.
    pub folder: Folder,
    /// The chunks of this process's share.
    chunks: Vec<u64>,
    next: AtomicUsize,
}

/// The results of a process's share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Number of files that this run wrote.
    pub computed: u64,
    /// Number of these files that existed but were damaged.
    pub repaired: u64,
    /// Number of rows in this process's share of the files.
    pub rows: u64,
    /// Number of these rows that hold an error instead of a result.
    pub failed_rows: u64,
}

/// A finished chunk.
struct Done {
    held: Held,
    computed: bool,
    repaired: bool,
}

impl<V: Sweepable> Shared<V> {
    /// The state before the work.
    pub fn new(verb: V, context: Context, folder: Folder, share: &Share) -> Arc<Self> {
        let chunks = (0..context.plan.chunks()).filter(|chunk| share.holds(*chunk)).collect();
        Arc::new(Self { verb, context, folder, chunks, next: AtomicUsize::new(0) })
    }

    /// The work of one thread: takes chunks until none are left.
    fn go(&self, done: &Sender<anyhow::Result<Done>>) {
        while let Some(&chunk) = self.chunks.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let result = self.chunk(chunk);
            // The receiver is gone when the process is about to end.
            if done.send(result).is_err() {
                return;
            }
        }
    }

    fn chunk(&self, chunk: u64) -> anyhow::Result<Done> {
        let was_there = self.folder.has(chunk);
        if let Some(held) = was_there.then(|| self.folder.held(chunk)).flatten() {
            return Ok(Done { held, computed: false, repaired: false });
        }
        let units = self.context.plan.units_of(chunk).map(|number| {
            let unit = self.context.plan.unit(number);
            let rows = self.verb.rows(&self.context, &unit)?;
            Ok((unit, rows))
        });
        let units: Vec<(Unit, Vec<Row>)> = units.collect::<Result<_, Failure>>()?;
        let table = self.folder.table(&self.context, &units);
        self.folder.write(chunk, &table)?;
        let failed = units.iter().flat_map(|(_, rows)| rows).filter(|row| row.cells.is_err()).count() as u64;
        let held = Held { rows: table.rows.len() as u64, failed };
        Ok(Done { held, computed: true, repaired: was_there })
    }
}

/// How often to check for a signal.
const GLANCE: Duration = Duration::from_millis(50);

/// Computes the share. Each worker has a thread pool of its own, so that chunks do not wait for one another. If there are fewer chunks than
/// cores, each pool has several threads.
pub fn run<V: Sweepable>(
    shared: &Arc<Shared<V>>,
    threads: Option<u16>,
    printer: Printer,
) -> anyhow::Result<Counts> {
    let stop = stopped_by_signals()?;
    let cores =
        threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let all = shared.chunks.len();
    let workers = cores.min(all);
    let (sender, receiver) = mpsc::channel();
    for worker in 0..workers {
        // The first workers get the remaining cores.
        let share = cores / workers + usize::from(worker < cores % workers);
        let pool = threads::pool(share)?;
        let (shared, sender) = (Arc::clone(shared), sender.clone());
        // Workers are not joined: a process that a signal ends does not wait for its points.
        std::thread::Builder::new()
            .name("sweep".into())
            .spawn(move || pool.install(|| shared.go(&sender)))?;
    }
    drop(sender);
    let step = Step::long(printer, "sweep", Some(all as u64));
    let mut counts = Counts::default();
    let mut finished = 0;
    while finished < all {
        let done = match receiver.recv_timeout(GLANCE) {
            Ok(done) => done?,
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::SeqCst) => return Err(interrupted(shared)),
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => {
                anyhow::bail!("a thread of the sweep ended early")
            }
        };
        finished += 1;
        counts.computed += u64::from(done.computed);
        counts.repaired += u64::from(done.repaired);
        counts.rows += done.held.rows;
        counts.failed_rows += done.held.failed;
        step.set(finished as u64, all as u64);
        if stop.load(Ordering::SeqCst) && finished < all {
            return Err(interrupted(shared));
        }
    }
    stop.store(true, Ordering::SeqCst);
    Ok(counts)
}

fn interrupted<V: Sweepable>(shared: &Shared<V>) -> anyhow::Error {
    anyhow::anyhow!(
        "interrupted: {} of {} files are complete in {}; run the same command again to continue",
        shared.folder.there(),
        shared.context.plan.chunks(),
        shared.folder.path.display()
    )
}
