//! Renders the result of replayed noise as text for a terminal.

use quell_analysis::interleaved::Interleaved;
use quell_analysis::replay::{Process, Replay, Slowdown};
use quell_recording::columns::Columns;

use super::rows::rows;
use super::table::time;

/// A table of the processes, and the slowdown.
pub fn replay(document: &Replay) -> String {
    let mut text = String::new();
    if !document.processes.is_empty() {
        text += &processes(&document.processes);
    }
    if let Some(slowdown) = &document.slowdown {
        text += &self::slowdown(slowdown);
    }
    if let Some(interleaved) = &document.interleaved {
        text += &self::interleaved(interleaved);
    }
    text.trim_end().to_owned()
}

/// Maximum number of processes with a row, and of those without a rank (such as a script's children); the rest is summed up.
const MOST_ROWS: usize = 64;
const MOST_OTHERS: usize = 6;

/// A row for a process.
#[derive(Debug, Columns)]
struct ProcessRow<'a> {
    #[column]
    rank: String,
    #[column(flatten)]
    process: &'a Process,
    #[column(title = "noise", precision = 3, suffix = " %")]
    noise_percent: f64,
}

impl<'a> ProcessRow<'a> {
    fn new(process: &'a Process) -> Self {
        let called = || format!("{} {}", process.name, process.pid);
        let rank = process.rank.map_or_else(called, |rank| rank.to_string());
        Self { rank, process, noise_percent: process.overhead_percent() }
    }
}

fn processes(processes: &[Process]) -> String {
    // First the ranks in order, then the processes that lost most.
    let (mut shown, mut others): (Vec<&Process>, Vec<&Process>) =
        processes.iter().partition(|process| process.rank.is_some());
    others.sort_by_key(|process| std::cmp::Reverse(process.took_ns));
    let mut rest = others.split_off(others.len().min(MOST_OTHERS));
    shown.extend(others);
    rest.extend(shown.split_off(shown.len().min(MOST_ROWS)));
    let mut text = rows(&shown.into_iter().map(ProcessRow::new).collect::<Vec<_>>());
    if !rest.is_empty() {
        let took: u64 = rest.iter().map(|process| process.took_ns).sum();
        text += &format!(" and {} more, which lost {} together\n", rest.len(), time(took as f64));
    }
    text
}

/// Which part of the noise could be injected.
pub fn plan(document: &Replay) -> String {
    let plan = &document.plan;
    format!(
        "{} of {} detours ({:.1} %) and {:.1} % of their time can be injected by {}{}; {} follow the previous one immediately, {} are too \
         short\n",
        plan.kept,
        plan.detours,
        plan.detours_percent,
        plan.time_percent,
        plan.context,
        if plan.scale == 1.0 { String::new() } else { format!(", scaled {}x", plan.scale) },
        plan.merged,
        plan.dropped
    )
}

fn slowdown(slowdown: &Slowdown) -> String {
    let of = if slowdown.of == "mpi" { "from MPI's beginning to its end" } else { "from start to end" };
    let pairs = slowdown.pairs_percent.len();
    format!(
        "slowdown {:.2} % (least {:.2}, most {:.2} over {pairs} pair{} of runs, {of})\n",
        slowdown.median_percent,
        slowdown.least_percent,
        slowdown.most_percent,
        if pairs == 1 { "" } else { "s" }
    )
}

fn interleaved(interleaved: &Interleaved) -> String {
    let Interleaved { slowdown_percent, low_percent, high_percent, noise_percent, .. } = interleaved;
    let pairs = interleaved.pairs_percent.len();
    let left_out = match interleaved.left_out {
        0 => String::new(),
        many => format!("; {many} of them left out, because something else made their blocks differ"),
    };
    format!(
        "slowdown {slowdown_percent:.2} % (95 % interval {low_percent:.2} to {high_percent:.2}) under {noise_percent:.2} % of noise\n\
         over {pairs} pairs of blocks with and without noise in one run, {} phases of {} each{left_out}\n",
        interleaved.block_phases,
        time(interleaved.phase_ns),
    )
}
