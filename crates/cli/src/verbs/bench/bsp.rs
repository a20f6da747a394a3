//! `quell bench bsp`: De et al.'s Parallel Benchmark, and a prediction of the same run.

use std::path::{Path, PathBuf};

use quell_analysis::bench::job::RunFacts;
use quell_analysis::predict::{NodeNoise, Options, Prediction};
use quell_node::machine::Cpus;
use quell_node::probe::{Plan, Threshold};
use quell_recording::{Method, Nanos, Recording, State, atomic_write};

use super::job::Job;
use super::run::{PREDICTION, Run};
use super::{Site, conclude, job_of, ranks};
use crate::args::{BenchBsp, Operation, SourcesMode};
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::steps::predict::curve;
use crate::steps::record;
use quell_request::Usage;
use quell_request::noise::{self, ModelScale};

/// Minimum length of a recording of the noise; shorter ones hold too few detours.
const SHORTEST_RECORDING: Nanos = Nanos::from_secs(2);
/// Number of phases of the predicted run.
const PREDICTED_PHASES: u64 = 20_000;

/// Runs once for each number of ranks, and shows the results.
pub fn run(args: &BenchBsp, printer: Printer) -> anyhow::Result<Outcome> {
    quell_request::positive(args.quantum, "--quantum")?;
    quell_request::positive(args.duration, "--duration")?;
    let counts = ranks(&args.job)?;
    let cpus = Cpus::from_this_machine()?.allowed.len();
    if args.predict.is_some() && counts.iter().any(|&n| n as usize > cpus) && args.job.launcher_args.is_none()
    {
        return Err(Usage(format!(
            "--predict needs a CPU for each rank, and this node has {cpus}: give fewer ranks, or --launcher-args with more hosts"
        ))
        .into());
    }
    if let Some(missing) = args.predict.iter().flatten().find(|path| !path.exists()) {
        return Err(Usage(format!("there is no {} to predict from", missing.display())).into());
    }
    let site = Site::prepare(&args.job, "bsp", printer)?;
    let mut runs = Vec::new();
    for &count in &counts {
        runs.push(run_one(args, job(args, &site, counts.len() > 1, count), printer)?);
        if runs.last().is_some_and(|run: &Run| run.facts.state != "complete") {
            break;
        }
    }
    conclude(&site, &args.job, &runs, args.seed, printer)
}

/// One run, with a recording of the noise before and after it if requested.
fn run_one(args: &BenchBsp, job: Job<'_>, printer: Printer) -> anyhow::Result<Run> {
    let (folder, count) = (job.folder.clone(), job.layout.ranks);
    fs_err::create_dir_all(&folder)?;
    let records = args.predict.as_ref().is_some_and(Vec::is_empty);
    let mut noise = Vec::new();
    if records {
        noise.push(record_noise(args, count, &folder.join("before.quell"), printer)?);
    }
    let run = job.run(printer)?;
    if records && run.facts.state == "complete" {
        noise.push(record_noise(args, count, &folder.join("after.quell"), printer)?);
    }
    let predictions = predictions(args, count, &noise, printer)?;
    if !predictions.is_empty() {
        let text = serde_json::to_string_pretty(&predictions)? + "\n";
        atomic_write(&folder.join(PREDICTION), text.as_bytes())?;
    }
    Ok(run)
}

fn job<'a>(args: &'a BenchBsp, site: &'a Site, several: bool, count: u32) -> Job<'a> {
    let (quantum, op) = (args.quantum.as_nanos(), args.op.name());
    let lead = if args.op == Operation::None { "none" } else { "phase" };
    let words = vec![
        "bench=bsp".into(),
        format!("work_ns={quantum}"),
        format!("duration_ns={}", args.duration.as_nanos()),
        format!("count={}", args.phases.unwrap_or(0)),
        // In Algorithm 1, ranks look at the time after each phase. Without an operation no rank may wait for another, so they look less
        // often.
        format!("every={}", u8::from(args.op != Operation::None)),
        format!("op={op}"),
        format!("bytes={}", args.bytes.0),
        format!("lead={lead}"),
    ];
    let facts = RunFacts {
        bench: "bsp".into(),
        quantum_ns: quantum,
        operation: op,
        bytes: args.bytes.0,
        ..RunFacts::default()
    };
    job_of(site, &args.job, several, count, words, facts)
}

/// Records the noise of the CPUs that ranks are bound to first.
fn record_noise(args: &BenchBsp, count: u32, output: &Path, printer: Printer) -> anyhow::Result<NodeNoise> {
    let mut cpus = Cpus::from_this_machine()?.one_of_each_core_first();
    cpus.truncate(count as usize);
    cpus.sort_unstable();
    let half = Nanos::from_nanos(args.duration.as_nanos() / 2);
    let plan = Plan {
        cpus,
        method: Method::Detour,
        threshold: Threshold::Absolute(Nanos::from_nanos(150)),
        quantum: args.quantum,
        duration: Some(half.max(SHORTEST_RECORDING)),
        count: None,
        realtime: None,
        command: std::env::args().collect(),
    };
    let manifest = record::record(&plan, SourcesMode::Off.into(), output, printer)?;
    anyhow::ensure!(manifest.state != State::Interrupted, "interrupted while the node's noise was recorded");
    noise::from_recording(&Recording::open(output)?)
}

fn predictions(
    args: &BenchBsp,
    count: u32,
    recorded: &[NodeNoise],
    printer: Printer,
) -> anyhow::Result<Vec<Prediction>> {
    let ranks = u64::from(count);
    let options = Options {
        quantum: args.quantum,
        phases: PREDICTED_PHASES,
        seed: args.seed,
        ..Options::new(vec![ranks])
    };
    let scale = ModelScale { quantum: args.quantum, ranks, seed: args.seed };
    let given = args.predict.as_deref().unwrap_or_default();
    let given = given.iter().map(|path: &PathBuf| noise::open(path, scale));
    let given = given.collect::<anyhow::Result<Vec<_>>>()?;
    // The noise before and after are two views of one node; named recordings are the nodes of one job.
    let sets = recorded.chunks(1).chain((!given.is_empty()).then_some(given.as_slice()));
    sets.map(|noise| curve(noise, &options, printer)).collect()
}
