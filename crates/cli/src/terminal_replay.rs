//! What came of replayed noise, as text for a terminal.

use quell_analysis::replay::{Process, Replay, Slowdown};

use crate::printer::one_line;
use crate::terminal::{table_with_words, time};

/// A table of the processes, and the slowdown.
pub fn replay(document: &Replay) -> String {
    let mut text = String::new();
    if !document.processes.is_empty() {
        text += &processes(&document.processes);
    }
    if let Some(slowdown) = &document.slowdown {
        text += &self::slowdown(slowdown);
    }
    text.trim_end().to_owned()
}

fn processes(processes: &[Process]) -> String {
    let head =
        ["rank", "host", "CPU", "calls", "burned", "asked", "took", "99 % over by", "absorbed", "noise"];
    let ns = |ns: u64| time(ns as f64);
    let row = |process: &Process| {
        vec![
            process.rank.map_or_else(|| format!("pid {}", process.pid), |rank| rank.to_string()),
            one_line(&process.host),
            process.cpu.to_string(),
            process.calls.to_string(),
            process.burns.to_string(),
            ns(process.asked_ns),
            ns(process.took_ns),
            ns(process.over_p99_ns),
            ns(process.absorbed_ns),
            format!("{:.3} %", process.overhead_percent()),
        ]
    };
    table_with_words(2, &head, processes.iter().map(row))
}

fn slowdown(slowdown: &Slowdown) -> String {
    let of = if slowdown.of == "mpi" { "from MPI's beginning to its end" } else { "from start to end" };
    let pairs = slowdown.pairs_percent.len();
    format!(
        "slowdown {:.2} % ({:.2} to {:.2} over {pairs} pair{} of runs, {of})\n",
        slowdown.median_percent,
        slowdown.least_percent,
        slowdown.most_percent,
        if pairs == 1 { "" } else { "s" }
    )
}
