//! `quell bench fwq`: fixed work quanta on all ranks.

use quell_analysis::bench::job::RunFacts;
use quell_node::mpi::Layout;

use super::job::Job;
use super::{Outcome, Site, folder_of, ranks, run_and_show};
use crate::args::BenchFwq;
use crate::plan;
use crate::printer::Printer;

/// Runs, once for each number of ranks, and shows what came.
pub fn run(args: &BenchFwq, printer: Printer) -> anyhow::Result<Outcome> {
    plan::positive(args.quantum, "--quantum")?;
    plan::positive(args.duration, "--duration")?;
    let counts = ranks(&args.job)?;
    let site = Site::prepare(&args.job, "fwq", printer)?;
    let job = |&count: &u32| {
        let words = vec![
            "bench=fwq".into(),
            format!("work_ns={}", args.quantum.as_nanos()),
            format!("duration_ns={}", args.duration.as_nanos()),
            format!("count={}", args.count.unwrap_or(0)),
            format!("every={}", args.barrier_every),
            "op=none".into(),
            "lead=look".into(),
        ];
        let facts = RunFacts {
            bench: "fwq".into(),
            quantum_ns: args.quantum.as_nanos(),
            operation: "none".into(),
            ..RunFacts::default()
        };
        Job {
            site: &site,
            args: &args.job,
            folder: folder_of(&site, counts.len() > 1, &format!("n{count:05}")),
            layout: Layout { ranks: count, per_node: args.job.per_node, extra: args.job.extra_words() },
            words,
            facts,
        }
    };
    run_and_show(&site, &args.job, counts.iter().map(job), printer)
}
