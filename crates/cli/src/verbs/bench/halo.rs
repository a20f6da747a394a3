//! `quell bench halo`: halo exchange, on full nodes and on nodes with CPUs left to the system.

use quell_analysis::bench::job::RunFacts;
use quell_node::mpi::Layout;

use super::job::Job;
use super::{Site, folder_of, ranks, run_and_show};
use crate::args::BenchHalo;
use crate::outcome::Outcome;
use crate::printer::Printer;
use quell_request::Usage;

/// Runs the layouts in turn, and shows them side by side.
pub fn run(args: &BenchHalo, printer: Printer) -> anyhow::Result<Outcome> {
    quell_request::positive(args.duration, "--duration")?;
    if args.count.0 == 0 {
        return Err(Usage("--count 0 times nothing: give at least 1".into()).into());
    }
    let [count] = ranks(&args.job)?[..] else {
        return Err(Usage("bench halo takes one number of ranks".into()).into());
    };
    let layouts = layouts(args, count)?;
    let site = Site::prepare(&args.job, "halo", printer)?;
    let rounds = if layouts.len() > 1 { args.rounds } else { 1 };
    // Layouts alternate, so that changes over time affect both in the same way.
    let turns = (0..rounds).flat_map(|round| layouts.iter().map(move |layout| (round, layout)));
    let several = layouts.len() > 1;
    let jobs = turns.map(|(round, layout)| Job {
        site: &site,
        args: &args.job,
        folder: folder_of(&site, several, &format!("n{:05}-round{:02}", layout.ranks, round + 1)),
        layout: layout.clone(),
        words: words(args),
        facts: facts(args),
    });
    run_and_show(&site, &args.job, jobs, printer)
}

/// Full nodes and, if requested, the same nodes with fewer ranks on each.
fn layouts(args: &BenchHalo, count: u32) -> anyhow::Result<Vec<Layout>> {
    let extra = args.job.extra_words();
    let full = Layout { ranks: count, per_node: args.job.per_node, extra: extra.clone() };
    let Some(leave) = args.leave else { return Ok(vec![full]) };
    let per_node = args.job.per_node.unwrap_or(count);
    if !count.is_multiple_of(per_node) {
        let text = format!(
            "{count} ranks do not fill nodes of {per_node}: give a multiple, so that all nodes are alike"
        );
        return Err(Usage(text).into());
    }
    if leave >= per_node {
        let text = format!("--leave {leave} leaves no rank of the {per_node} on a node");
        return Err(Usage(text).into());
    }
    let (nodes, fewer) = (count / per_node, per_node - leave);
    Ok(vec![full, Layout { ranks: nodes * fewer, per_node: args.job.per_node.map(|_| fewer), extra }])
}

fn words(args: &BenchHalo) -> Vec<String> {
    vec![
        "bench=halo".into(),
        format!("work_ns={}", args.work.as_nanos()),
        format!("duration_ns={}", args.duration.as_nanos()),
        format!("count={}", args.count.0),
        "op=halo".into(),
        format!("dims={}", args.dims),
        format!("bytes={}", args.bytes.0),
        "lead=none".into(),
    ]
}

fn facts(args: &BenchHalo) -> RunFacts {
    RunFacts {
        bench: "halo".into(),
        quantum_ns: args.work.as_nanos(),
        operation: "halo".into(),
        bytes: args.bytes.0,
        dims: args.dims,
        ..RunFacts::default()
    }
}
