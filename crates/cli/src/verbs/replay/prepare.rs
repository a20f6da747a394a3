//! Converts the request to a schedule.

use anyhow::Context as _;
use quell_analysis::Warning;
use quell_analysis::predict::NodeNoise;
use quell_analysis::replay::{Noise, Plan};
use quell_node::clock;
use quell_node::injector::compile::{Compiled, Limits, compile, smallest_scale};
use quell_node::injector::schedule::{self, Order};
use quell_recording::{Nanos, Trace};
use quell_replay::schedule::{Context, Sync, phase_call};
use quell_sim::Draws;

use quell_analysis::predict::SyncName;
use quell_sim::SyncMode;

use crate::args::{ContextName, PhaseCall, Replay};
use crate::printer::Printer;
use crate::values::replay::ScaleText;
use quell_request::noise::{self, ModelScale};

/// Number of different offsets for nodes, and for phases; beyond it, offsets repeat.
const PLACES: u64 = 1 << 16;
/// Number of ranks that a model generates noise for.
const RANKS: u64 = 256;

/// Noise that is ready to be burned.
#[derive(Debug)]
pub struct Prepared {
    pub context: Context,
    pub compiled: Compiled,
    /// The original noise, CPU by CPU, of the first node.
    pub traces: Vec<Trace>,
    pub order: Order,
    /// A description of the schedule for the document.
    pub plan: Plan,
    pub warnings: Vec<Warning>,
}

/// The costs of a context on this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub overhead_ns: u64,
    pub early_ns: u64,
    pub smallest_gap_ns: u64,
}

/// Reads the noise, and determines what part of it can be injected. `cost` returns the cost of a detour, given the mean time from one to
/// the next in ns.
pub fn prepare(
    args: &Replay,
    context: Context,
    cost: &dyn Fn(u64) -> anyhow::Result<Cost>,
    printer: Printer,
) -> anyhow::Result<Prepared> {
    let noise = noise(args)?;
    let nodes: Vec<(&str, &[Trace])> =
        noise.iter().map(|node| (node.name.as_str(), node.traces.as_slice())).collect();
    let Cost { overhead_ns, early_ns, smallest_gap_ns } = cost(mean_period(&noise, args.scale))?;
    let limits = Limits { overhead_ns, smallest_gap_ns, ..Limits::from_context(context) };
    let scale = match args.scale {
        ScaleText::By(scale) => scale,
        ScaleText::Auto => smallest_scale(&nodes, limits, args.coverage.0 / 100.0)? as f64,
    };
    let compiled = compile(&nodes, Limits { scale, ..limits })?;
    let shortest = compiled.groups.iter().flatten().map(|cpu| cpu.period_ns).min().unwrap_or(0);
    let limit_ns = args.share.map_or(0, |share| (share.0 * shortest as f64) as u64);
    let order = Order {
        sync: match args.job.sync_mode()? {
            SyncMode::None => Sync::None,
            SyncMode::Start { .. } => Sync::Start,
            SyncMode::Phase => Sync::Phase,
        },
        overhead_ns,
        early_ns,
        smallest_gap_ns,
        limit_ns,
        events: if args.output.is_some() || args.validate { 1 << 16 } else { 0 },
        phase_calls: phase_calls(&args.phase_at),
        places: places(args),
        skews: skews(args, scale),
        ..Order::new(context, clock::realtime_ns())
    };
    let plan = plan(args, &order, &compiled, scale, &noise);
    let warnings = noise.iter().flat_map(NodeNoise::warnings).collect();
    report(&plan, context, printer);
    let traces = noise.into_iter().next().map(|node| node.traces).unwrap_or_default();
    Ok(Prepared { context, compiled, traces, order, plan, warnings })
}

fn noise(args: &Replay) -> anyhow::Result<Vec<NodeNoise>> {
    let scale = ModelScale { quantum: args.job.quantum, ranks: RANKS, seed: args.job.seed };
    args.noise.iter().map(|path| noise::open(path, scale)).collect()
}

/// The mean time from one detour to the next, as it is replayed; `auto` counts as a factor of ten.
fn mean_period(noise: &[NodeNoise], scale: ScaleText) -> u64 {
    let traces = || noise.iter().flat_map(|node| &node.traces);
    let span: f64 = traces().map(|trace| trace.span.length().as_nanos() as f64).sum();
    let detours: usize = traces().map(|trace| trace.noise().count()).sum();
    let factor = match scale {
        ScaleText::By(factor) => factor,
        ScaleText::Auto => 10.0,
    };
    (span * factor / detours.max(1) as f64) as u64
}

fn phase_calls(calls: &[PhaseCall]) -> u64 {
    if calls.is_empty() {
        return phase_call::BARRIER | phase_call::COLLECTIVE;
    }
    let bit = |call: &PhaseCall| match call {
        PhaseCall::Barrier => phase_call::BARRIER,
        PhaseCall::Collective => phase_call::COLLECTIVE,
        PhaseCall::Pcontrol => phase_call::PCONTROL,
    };
    calls.iter().fold(0, |bits, call| bits | bit(call))
}

/// The offsets of nodes, or of phases, in their traces.
fn places(args: &Replay) -> Vec<u64> {
    let draws = Draws::new(args.job.seed, &[200, 0]);
    let count = if args.job.sync == SyncName::Start { 1 } else { PLACES };
    (0..count).map(|index| draws.at(index)).collect()
}

fn skews(args: &Replay, scale: f64) -> Vec<u64> {
    let skew = (args.job.skew.as_nanos() as f64 * scale) as u64;
    let draws = Draws::new(args.job.seed, &[200, 1]);
    let count = if skew == 0 { 0 } else { PLACES };
    (0..count).map(|node| draws.below(node, skew.saturating_add(1))).collect()
}

fn plan(args: &Replay, order: &Order, compiled: &Compiled, scale: f64, noise: &[NodeNoise]) -> Plan {
    let coverage = compiled.coverage;
    let of = |(node, group): (&NodeNoise, &Vec<quell_node::injector::compile::CpuNoise>)| {
        let (lost, all) =
            group.iter().fold((0, 0), |sum, cpu| (sum.0 + cpu.noise_ns(), sum.1 + cpu.period_ns));
        Noise {
            name: node.name.clone(),
            cpus: group.iter().map(|cpu| cpu.cpu.0).collect(),
            period_ns: group.first().map_or(0, |cpu| cpu.period_ns),
            overhead_percent: if all == 0 { 0.0 } else { 100.0 * lost as f64 / all as f64 },
        }
    };
    Plan {
        context: name(order.context).into(),
        sync: args.job.sync.as_str().into(),
        scale,
        seed: args.job.seed,
        overhead_ns: order.overhead_ns,
        early_ns: order.early_ns,
        smallest_gap_ns: order.smallest_gap_ns,
        limit_ns: Some(order.limit_ns).filter(|&limit| limit > 0),
        noise: noise.iter().zip(&compiled.groups).map(of).collect(),
        detours: coverage.detours,
        kept: coverage.kept,
        merged: coverage.merged,
        dropped: coverage.dropped,
        cut: coverage.cut,
        detours_percent: 100.0 * coverage.detours_share(),
        time_percent: 100.0 * coverage.time_share(),
    }
}

/// The name of a context.
pub fn name(context: Context) -> &'static str {
    match context {
        Context::Boundary => "boundary",
        Context::Timer => "timer",
        Context::Process => "process",
    }
}

/// The context with a name.
pub fn from_name(name: ContextName) -> Context {
    match name {
        ContextName::Boundary => Context::Boundary,
        ContextName::Timer => Context::Timer,
        ContextName::Process => Context::Process,
    }
}

fn report(plan: &Plan, context: Context, printer: Printer) {
    for noise in &plan.noise {
        printer.status(&format!(
            "{}: {:.3} % noise on {}, {} long",
            noise.name,
            noise.overhead_percent,
            match noise.cpus.len() {
                1 => "one CPU".to_owned(),
                many => format!("{many} CPUs"),
            },
            Nanos::from_nanos(noise.period_ns)
        ));
    }
    let costs = match plan.overhead_ns {
        0 => String::new(),
        overhead => format!(
            " (each costs {}, and needs {} after the previous one)",
            Nanos::from_nanos(overhead),
            Nanos::from_nanos(plan.smallest_gap_ns)
        ),
    };
    let scaled = if plan.scale == 1.0 { String::new() } else { format!(", scaled {}x", plan.scale) };
    printer.status(&format!(
        "{}{scaled}: {:.1} % of {} detours can be injected, {:.1} % of their time{costs}",
        plan.context, plan.detours_percent, plan.detours, plan.time_percent
    ));
    if plan.merged + plan.dropped > 0 {
        printer.status(&format!(
            "{} follow the previous one immediately, {} are too short and left out",
            plan.merged, plan.dropped
        ));
    }
    if plan.cut > 0 {
        printer.status(&format!(
            "{} are longer than {} injects, {} at most, and are cut",
            plan.cut,
            plan.context,
            Nanos::from_nanos(Limits::from_context(context).longest_ns)
        ));
    }
}

impl Prepared {
    /// The words of the schedule file; without noise if `silent`.
    pub fn words(&self, silent: bool) -> anyhow::Result<Vec<u64>> {
        let mut groups = self.compiled.groups.clone();
        if silent {
            groups.iter_mut().flatten().for_each(|cpu| cpu.detours.clear());
        }
        let words = schedule::words(&self.order, &groups);
        schedule::check(&words)
            .map_err(|reason| anyhow::anyhow!(reason))
            .context("the generated schedule failed validation")?;
        Ok(words)
    }
}
