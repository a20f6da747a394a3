//! Opens the noise of a simulation, and chooses the offset in it at which each rank starts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use quell_recording::{Nanos, whole_file};
use quell_sim::loggops::{Noise, NoiseError, Place, RankClocks, Rules, Start, WindowNoise};
use quell_sim::{Node, ProgressClock};

use super::document::{NoiseFacts, StartName};
use super::{SimulateArgs, noise_trace};
use crate::noise::{self, ModelScale};
use crate::{Usage, what_if};
use quell_analysis::Warning;
use quell_analysis::predict::{NodeNoise, NoiseSource};
use quell_analysis::whatif::AttributedNoise;

/// How often ranks synchronize, for models that have no span of their own: a model generates noise for this quantum.
pub const MODEL_QUANTUM: Nanos = Nanos::from_nanos(1_000_000);

/// The noise of a run, and what the document says about it.
#[derive(Debug)]
pub struct Given {
    /// The noise as the engine takes it.
    pub noise: Noise,
    /// The noise as the document describes it; `None` without noise.
    pub facts: Option<NoiseFacts>,
    /// Warnings about the noise.
    pub warnings: Vec<Warning>,
}

/// Opens the requested noise.
///
/// # Errors
/// [`Usage`] for options that contradict each other; otherwise what is wrong with a file.
pub fn from_args(args: &SimulateArgs, ranks: u32) -> anyhow::Result<Given> {
    if args.noise.is_empty() {
        return Ok(Given { noise: Noise::None, facts: None, warnings: Vec::new() });
    }
    let offsets = args.offsets.as_deref().map(|path| offsets(path, ranks)).transpose()?;
    match rules(args) {
        Rules::Compatible => compatible(args, ranks, offsets),
        Rules::Physical | Rules::Call => physical(args, ranks, offsets),
    }
}

/// The requested rules.
pub fn rules(args: &SimulateArgs) -> Rules {
    match args.progress {
        _ if args.compat => Rules::Compatible,
        Some(progress) => progress.into(),
        None if args.pattern.is_some() => Rules::Call,
        None => Rules::Physical,
    }
}

/// Noise under LogGOPSim's rules: one trace for all ranks, whichever CPU it was recorded on.
fn compatible(args: &SimulateArgs, ranks: u32, offsets: Option<Vec<u64>>) -> anyhow::Result<Given> {
    if args.what_if.is_given() {
        return Err(Usage("LogGOPSim knows no what-ifs: leave them out, or --compat".into()).into());
    }
    if args.skew.is_some() {
        return Err(Usage("LogGOPSim knows no skew: leave --skew out, or --compat".into()).into());
    }
    let [path] = args.noise.as_slice() else {
        return Err(Usage(
            "LogGOPSim takes one noise trace for all ranks: give --noise once, or leave --compat out".into(),
        )
        .into());
    };
    let OneTrace { detours, source, limits } = trace(path, args, ranks)?;
    let start =
        if offsets.is_some() { StartName::Offsets } else { StartName::from_options(args.cosched, None) };
    let offsets =
        offsets.unwrap_or_else(|| WindowNoise::draw_offsets(&detours, ranks, args.cosched, args.seed));
    let noise = WindowNoise::new(&detours, offsets).map_err(|error| refuse(path, &error))?;
    let facts = NoiseFacts::new(vec![source], start, args.skew);
    Ok(Given { noise: Noise::Window(noise), facts: Some(facts), warnings: limits })
}

/// A noise trace that all ranks share.
struct OneTrace {
    /// Start and duration of each detour, in nanoseconds.
    detours: Vec<(u64, u64)>,
    source: NoiseSource,
    limits: Vec<Warning>,
}

/// Reads the trace of a netgauge file as LogGOPSim reads it, or that of a recording or model of one CPU.
fn trace(path: &Path, args: &SimulateArgs, ranks: u32) -> anyhow::Result<OneTrace> {
    if let Some(detours) = noise_trace::read(path)? {
        let span = detours.last().map_or(0, |detour| detour.0);
        let lost: u64 = detours.iter().fold(0, |sum, detour| sum.saturating_add(detour.1));
        let overhead_percent = if span > 0 { 100.0 * lost as f64 / span as f64 } else { 0.0 };
        let (name, count) = (name(path), detours.len() as u64);
        let source = NoiseSource { name, cpus: 1, span_ns: span, detours: count, overhead_percent };
        return Ok(OneTrace { detours, source, limits: Vec::new() });
    }
    let node = open(path, args, ranks)?;
    let [trace] = node.traces.as_slice() else {
        anyhow::bail!(
            "{} holds {} CPUs, and LogGOPSim's noise is that of one: choose one (`quell convert {} noise.txt --cpu N`)",
            path.display(),
            node.traces.len(),
            path.display()
        );
    };
    let start = |at: Nanos| at.saturating_sub(trace.span.start).as_nanos();
    let detours = trace.noise().map(|detour| (start(detour.start), detour.duration.as_nanos())).collect();
    Ok(OneTrace { detours, source: NoiseSource::from_node(&node), limits: node.warnings().collect() })
}

/// Noise under physical rules: a progress clock for each CPU.
fn physical(args: &SimulateArgs, ranks: u32, offsets: Option<Vec<u64>>) -> anyhow::Result<Given> {
    let given = args.noise.iter().map(|path| open(path, args, ranks)).collect::<anyhow::Result<Vec<_>>>()?;
    let per_node = |(node, path): (&NodeNoise, &PathBuf)| {
        Node::new(&node.traces).with_context(|| path.display().to_string())
    };
    let nodes = given.iter().zip(&args.noise).map(per_node).collect::<anyhow::Result<Vec<_>>>()?;
    let (clocks, start) = match offsets {
        Some(offsets) => (at_offsets(&nodes, &offsets)?, StartName::Offsets),
        None => {
            let clocks = RankClocks::on_nodes(&nodes, ranks, start(args), args.seed)?;
            (clocks, StartName::from_options(args.cosched, args.skew))
        }
    };
    let facts = NoiseFacts::new(given.iter().map(NoiseSource::from_node).collect(), start, args.skew);
    let warnings = given.iter().flat_map(NodeNoise::warnings).collect();
    Ok(Given { noise: Noise::Clocks(clocks), facts: Some(facts), warnings })
}

/// The offsets in the noise trace at which ranks start, if no file gives them.
pub fn start(args: &SimulateArgs) -> Start {
    match args.skew {
        None if !args.cosched => Start::Independent,
        skew => Start::Together { skew: skew.unwrap_or_default().as_nanos() },
    }
}

/// Places ranks on one trace, at the given offsets.
fn at_offsets(nodes: &[Node], offsets: &[u64]) -> anyhow::Result<RankClocks> {
    let clocks: Vec<&ProgressClock> = nodes.iter().flat_map(Node::clocks).collect();
    let [clock] = clocks.as_slice() else {
        let text = format!(
            "--offsets are places on one CPU's trace, and the noise has {}: give one of one CPU",
            clocks.len()
        );
        return Err(Usage(text).into());
    };
    let places = offsets.iter().map(|&offset| Place { clock: 0, offset }).collect();
    Ok(RankClocks::new(vec![Arc::new((*clock).clone())], places)?)
}

/// Reads one offset per line, exactly one for each rank.
fn offsets(path: &Path, ranks: u32) -> anyhow::Result<Vec<u64>> {
    let text = whole_file::read_text(path, whole_file::MOST_BYTES)?;
    let mut offsets = Vec::new();
    let lines = text.lines().map(str::trim).enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let offset = line.parse().with_context(|| {
            format!(
                "{}: line {} is not a whole number of ns: {}",
                path.display(),
                index + 1,
                noise_trace::shown(line)
            )
        })?;
        offsets.push(offset);
    }
    if offsets.len() != ranks as usize {
        anyhow::bail!(
            "{} has {} offsets for {ranks} ranks: give one for each, one a line",
            path.display(),
            offsets.len()
        );
    }
    Ok(offsets)
}

/// Opens the noise of one file.
///
/// # Errors
/// If it cannot be loaded.
pub fn open(path: &Path, args: &SimulateArgs, ranks: u32) -> anyhow::Result<NodeNoise> {
    if args.what_if.is_given() {
        return Ok(attributed(path, args, ranks)?.noise());
    }
    noise::open(path, scale(args, ranks))
}

/// As [`open`], with the sources, and with the what-if changes that were requested.
///
/// # Errors
/// If it cannot be loaded.
pub fn attributed(path: &Path, args: &SimulateArgs, ranks: u32) -> anyhow::Result<AttributedNoise> {
    let node = noise::attributed(path, scale(args, ranks))?;
    if !args.what_if.is_given() {
        return Ok(node);
    }
    if !args.what_if.coschedule.is_empty() {
        let text = "messages have all noise of a node at the same time as other nodes, or none: use --cosched, or `quell predict --coschedule`";
        return Err(Usage(text.into()).into());
    }
    let mut changed = what_if::apply(vec![node], &args.what_if)?;
    changed.nodes.pop().ok_or_else(|| anyhow::anyhow!("{} holds no node", path.display()))
}

fn scale(args: &SimulateArgs, ranks: u32) -> ModelScale {
    ModelScale { quantum: MODEL_QUANTUM, ranks: ranks.into(), seed: args.seed }
}

fn refuse(path: &Path, error: &NoiseError) -> anyhow::Error {
    anyhow::anyhow!("{}: {error}", path.display())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
