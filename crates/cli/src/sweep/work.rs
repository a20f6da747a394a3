//! The share of one process: its threads go from chunk to chunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use quell_analysis::sweep::Unit;
use schemars::JsonSchema;
use serde::Serialize;

use super::folder::{Folder, Held};
use super::{Context, Row, Swept};
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
    /// Where the chunks go.
    pub folder: Folder,
    /// The chunks of this process.
    chunks: Vec<u64>,
    next: AtomicUsize,
}

/// What became of a process's share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Files that this run made.
    pub computed: u64,
    /// Of these, such as were there and damaged.
    pub repaired: u64,
    /// Rows in this process's share of the files.
    pub rows: u64,
    /// Of these, such as have an error in place of a result.
    pub failed_rows: u64,
}

/// A chunk that is done.
struct Done {
    held: Held,
    computed: bool,
    repaired: bool,
}

impl<V: Swept> Shared<V> {
    /// Before the work.
    pub fn new(verb: V, context: Context, folder: Folder, share: &Share) -> Arc<Self> {
        let chunks = (0..context.plan.chunks()).filter(|chunk| share.holds(*chunk)).collect();
        Arc::new(Self { verb, context, folder, chunks, next: AtomicUsize::new(0) })
    }

    /// One thread's work: chunk after chunk until there are none.
    fn go(&self, done: &Sender<anyhow::Result<Done>>) {
        while let Some(&chunk) = self.chunks.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let result = self.chunk(chunk);
            // Nobody listens when the process is about to end.
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
            let rows = self.verb.rows(&self.context, &unit);
            (unit, rows)
        });
        let units: Vec<(Unit, Vec<Row>)> = units.collect();
        let table = self.folder.table(&self.context, &units);
        self.folder.write(chunk, &table)?;
        let failed = units.iter().flat_map(|(_, rows)| rows).filter(|row| row.cells.is_err()).count() as u64;
        let held = Held { rows: table.rows.len() as u64, failed };
        Ok(Done { held, computed: true, repaired: was_there })
    }
}

/// How often a signal is looked for.
const GLANCE: Duration = Duration::from_millis(50);

/// Does the share. Each thread has a pool of its own: chunks do not wait for one another, and where there are fewer of them than cores a
/// chunk's points take several.
pub fn run<V: Swept>(
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
        // The first ones take what is left over.
        let share = cores / workers + usize::from(worker < cores % workers);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(share).build()?;
        let (shared, sender) = (Arc::clone(shared), sender.clone());
        // Not joined: a process that is told to end does not wait for points.
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
                anyhow::bail!("a thread of the sweep ended before its work")
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

fn interrupted<V: Swept>(shared: &Shared<V>) -> anyhow::Error {
    anyhow::anyhow!(
        "interrupted: {} of {} files are complete in {}; the same command goes on from there",
        shared.folder.there(),
        shared.context.plan.chunks(),
        shared.folder.path.display()
    )
}
