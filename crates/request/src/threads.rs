//! The threads that analyses share.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::Context as _;
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

/// Starts them: `wanted`, or one for each core, or as many as can be had. Where there are none, this thread does all the work, later. Each has a
/// name, because threads inherit the name of the one that starts them.
pub fn share(wanted: Option<u16>) {
    let wanted = wanted.filter(|one| *one > 0).map(usize::from);
    let wanted =
        wanted.or_else(|| std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok().filter(|one| *one > 0));
    let wanted = wanted.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    // They start before the pool is made: a pool for which a thread is missing cannot be made again.
    let mut ready: Vec<Sender<ThreadBuilder>> = (0..wanted).map_while(waiting).collect();
    // It fails where a pool exists already.
    let _ = match ready.len() {
        0 => ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global(),
        threads => ThreadPoolBuilder::new()
            .num_threads(threads)
            .spawn_handler(|member| {
                let gone = || std::io::Error::other("a thread ended early");
                ready.pop().ok_or_else(gone)?.send(member).map_err(|_| gone())
            })
            .build_global(),
    };
}

/// A thread that becomes a member of the pool that it gets; `None` if there can be none.
fn waiting(number: usize) -> Option<Sender<ThreadBuilder>> {
    let (sender, receiver) = channel::<ThreadBuilder>();
    let work = move || {
        if let Ok(member) = receiver.recv() {
            member.run();
        }
    };
    thread::Builder::new().name(format!("quell-pool-{number}")).spawn(work).ok()?;
    Some(sender)
}

/// A pool of this number of threads for one piece of work.
///
/// # Errors
/// If they cannot be had.
pub fn pool(threads: usize) -> anyhow::Result<ThreadPool> {
    let failed = || {
        format!(
            "{threads} threads cannot be started, because of a limit on processes or memory: give fewer with --threads"
        )
    };
    ThreadPoolBuilder::new().num_threads(threads).build().with_context(failed)
}
