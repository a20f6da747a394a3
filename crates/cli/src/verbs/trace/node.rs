//! `quell trace-node`: the recorder of a host on which `quell trace` itself does not run. Ranks start it (`mpi/trace/node.c`). It follows
//! the processes that ask for the container, and ends when all of them have ended.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use quell_kernel::container;

use super::folder::{recording_in, this_host};
use crate::args::TraceNode;
use crate::kernel_side::record as record_kernel;
use crate::outcome::Outcome;
use crate::printer::Printer;

/// Extension of a file that exists while a host's recorder runs.
const RUNNING: &str = "recording";
/// Extension of a file with the reason why a host has no recorder.
const UNKNOWN: &str = "unknown";
/// The variable that is set where page faults are to be counted.
pub const OWN_WORK: &str = "QUELL_TRACE_OWN_WORK";
/// How long a host's recorder may outlive the command.
const LINGER: Duration = Duration::from_secs(15);

/// Records this host.
pub fn run(args: &TraceNode, printer: Printer) -> anyhow::Result<Outcome> {
    let name = std::env::var(container::VARIABLE).context("QUELL_METRICS names no container to serve")?;
    let run = args.logs.parent().context("the folder of logs is not in a run's folder")?;
    let mark = |kind: &str| args.logs.join(format!("{}.{kind}", this_host()));
    let running = mark(RUNNING);
    fs_err::write(&running, std::process::id().to_string())?;
    let own_work = std::env::var_os(OWN_WORK).is_some();
    let recorded = record_kernel::adopt(&name, own_work, &recording_in(run), printer);
    let recorded = recorded.map_err(|error| error.0);
    if let Err(error) = &recorded {
        // No one reads the output of this process.
        let _ = fs_err::write(mark(UNKNOWN), format!("{error:#}"));
    }
    let _ = fs_err::remove_file(&running);
    recorded.map(|_| Outcome::Done)
}

/// The outcome of the other hosts' recorders.
#[derive(Debug, Default)]
pub struct Nodes {
    /// Hosts without a recorder, with the reason.
    pub unknown: Vec<(String, String)>,
    /// Hosts whose recorder has not finished.
    pub unfinished: Vec<String>,
}

/// Waits for the recorders of all hosts, for a limited time.
pub fn wait_for_all(logs: &Path) -> Nodes {
    let begun = Instant::now();
    let mut unfinished = hosts_with(logs, RUNNING);
    while !unfinished.is_empty() && begun.elapsed() < LINGER {
        std::thread::sleep(Duration::from_millis(50));
        unfinished = hosts_with(logs, RUNNING);
    }
    let reason = |host: String| {
        let printed = fs_err::read_to_string(logs.join(format!("{host}.{UNKNOWN}"))).unwrap_or_default();
        (host, printed)
    };
    Nodes { unknown: hosts_with(logs, UNKNOWN).into_iter().map(reason).collect(), unfinished }
}

fn hosts_with(logs: &Path, kind: &str) -> Vec<String> {
    let entries = logs.read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut hosts: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(kind)?.strip_suffix('.')?.to_owned())).collect();
    hosts.sort_unstable();
    hosts
}
