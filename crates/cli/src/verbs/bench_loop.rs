//! `quell bench-loop`: compares the probe's loop with a bare clock loop.

use quell_node::probe;
use quell_recording::Cpu;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::args::BenchLoop;
use crate::outcome::Outcome;
use crate::printer::Printer;

/// Times both loops in random order and prints the means as JSON.
pub fn run(args: &BenchLoop, printer: Printer) -> anyhow::Result<Outcome> {
    let mut random = rand_pcg::Pcg64::seed_from_u64(args.seed);
    let order: Vec<bool> = (0..args.rounds).map(|_| random.random()).collect();
    let bench = probe::bench_loop(Cpu(args.cpu), args.duration, &order)?;
    printer.json(&json!({
        "schema": "quell.bench-loop/1",
        "clock": bench.clock,
        "bare_mean_ns": bench.bare_mean_ns,
        "probe_mean_ns": bench.probe_mean_ns,
    }))?;
    Ok(Outcome::Done)
}
