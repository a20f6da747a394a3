//! `quell bench allreduce`: Jones et al.'s loop of small allreduces.

use quell_analysis::bench::job::RunFacts;

use super::{Site, job_of, ranks, run_and_show};
use crate::args::BenchAllreduce;
use crate::outcome::Outcome;
use crate::printer::Printer;
use quell_request::Usage;

/// The number of operations in the paper.
const FEWEST: u64 = 4_096;

/// Runs once for each number of ranks, and shows the results.
pub fn run(args: &BenchAllreduce, printer: Printer) -> anyhow::Result<Outcome> {
    quell_request::positive(args.duration, "--duration")?;
    if args.count.0 == 0 {
        return Err(Usage("--count 0 times nothing: give at least 1".into()).into());
    }
    if args.count.0 < FEWEST {
        printer.warn(&format!("{} operations are few: Jones et al. used {FEWEST}", args.count.0));
    }
    let counts = ranks(&args.job)?;
    let site = Site::prepare(&args.job, "allreduce", printer)?;
    let job = |&count: &u32| {
        let words = vec![
            "bench=allreduce".into(),
            format!("work_ns={}", args.work.as_nanos()),
            format!("duration_ns={}", args.duration.as_nanos()),
            format!("count={}", args.count.0),
            "op=allreduce".into(),
            format!("bytes={}", args.bytes.0),
            "lead=none".into(),
        ];
        let facts = RunFacts {
            bench: "allreduce".into(),
            quantum_ns: args.work.as_nanos(),
            operation: "allreduce".into(),
            bytes: args.bytes.0,
            ..RunFacts::default()
        };
        job_of(&site, &args.job, counts.len() > 1, count, words, facts)
    };
    run_and_show(&site, &args.job, counts.iter().map(job), printer)
}
