//! `quell bench fwq`: fixed work quanta on all ranks.

use quell_analysis::bench::job::RunFacts;

use super::{Site, job_of, ranks, run_and_show};
use crate::args::BenchFwq;
use crate::outcome::Outcome;
use crate::printer::Printer;

/// Runs once for each number of ranks, and shows the results.
pub fn run(args: &BenchFwq, printer: Printer) -> anyhow::Result<Outcome> {
    quell_request::positive(args.quantum, "--quantum")?;
    quell_request::positive(args.duration, "--duration")?;
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
        job_of(&site, &args.job, counts.len() > 1, count, words, facts)
    };
    run_and_show(&site, &args.job, counts.iter().map(job), printer)
}
