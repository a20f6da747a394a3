//! `quell simulate --sweep`: simulates each combination, with and without noise.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use quell_analysis::sweep::{AxisKind, Paths, Point, Sets, SweepSpec, SweepValue, Unit};
use quell_recording::columns::{Columns, sweep_cells, sweep_columns};
use quell_recording::results::{Cell, Kind};
use quell_request::simulate::document::StuckFacts;
use quell_request::simulate::program::{self, Source};
use quell_request::simulate::{SimulateArgs, network, noise, stuck};
use quell_sim::goal::Schedule;
use quell_sim::loggops::{self, Noise, Outcome, Program, RankClocks, Rules, Run};

use crate::args::Simulate;
use crate::printer::Printer;
use crate::sweep::axis_syntax::{
    NET, NOISE, PROGRESS, SEED, WITHOUT, decimal, flag, number, size, text, time,
};
use crate::sweep::{Context, Failure, Options, Recent, Row, Sweepable};
use quell_request::Usage;
use quell_request::noise::ModelScale;
use quell_request::pattern::{self, Named};

/// The sweeps of `simulate`.
#[derive(Debug)]
pub struct Runs {
    options: Options,
    schedules: Recent<PathBuf, Checked>,
    /// When the last rank finishes without noise, by the arguments that affect it.
    silent: Recent<Vec<String>, u64>,
}

/// A schedule, and the errors that keep it from finishing under physical rules.
struct Checked {
    schedule: Schedule,
    errors: Option<String>,
}

/// Few schedules are cached, because they are large; a run without noise is a single number.
const MOST_SCHEDULES: usize = 4;
const MOST_SILENT: usize = 1_024;

/// The program of a point.
enum Playable {
    Schedule(Arc<Checked>),
    Pattern(Box<Named>),
}

impl Runs {
    /// A parser for any plan.
    pub fn new() -> Self {
        Self {
            options: Options::from_args::<Simulate>(),
            schedules: Recent::new(MOST_SCHEDULES),
            silent: Recent::new(MOST_SILENT),
        }
    }

    fn args(&self, context: &Context, point: &Point) -> Result<SimulateArgs, String> {
        let typed: Simulate =
            self.options.read(context.words(point, &["schedule", "noise", "without", "cosched", "skew"]))?;
        let mut args = typed.options;
        // These options require `--noise`, which a point may not have.
        args.noise = context.paths(point, "noise");
        args.cosched = context.plan.value(point, "cosched").is_some_and(|value| value.word() == "true");
        let skew = context.plan.value(point, "skew").map(|value| value.word().parse());
        args.skew = skew.transpose().map_err(|error: quell_recording::NanosError| error.to_string())?;
        Ok(args)
    }

    fn program(&self, context: &Context, point: &Point, args: &SimulateArgs) -> anyhow::Result<Playable> {
        if let Some(name) = &args.pattern {
            return Ok(Playable::Pattern(Box::new(pattern::from_args(name, &args.parameters)?)));
        }
        let Some(path) = context.paths(point, "schedule").pop() else {
            anyhow::bail!("there is no schedule")
        };
        let read = || {
            let (schedule, format) = program::read(&path, None, &mut |text| Printer::new(true).warn(text))?;
            let errors = program::errors(&schedule, &Source { path: path.clone(), format })?;
            let errors = errors.map(|errors| errors.to_string());
            Ok(Checked { schedule, errors })
        };
        self.schedules.get(&path, read).map(Playable::Schedule).map_err(anyhow::Error::new)
    }

    fn cells(&self, context: &Context, point: &Point) -> anyhow::Result<Vec<Cell>> {
        let args = self.args(context, point).map_err(Usage)?;
        match self.program(context, point, &args)? {
            Playable::Pattern(named) => self.played(context, point, &args, &named.steps),
            Playable::Schedule(checked) => {
                if let (Rules::Physical | Rules::Call, Some(errors)) = (noise::rules(&args), &checked.errors)
                {
                    anyhow::bail!("{errors}");
                }
                self.played(context, point, &args, &checked.schedule)
            }
        }
    }

    /// Simulates a point with its noise, and without noise unless that result is cached.
    fn played<P: Program>(
        &self,
        context: &Context,
        point: &Point,
        args: &SimulateArgs,
        program: &P,
    ) -> anyhow::Result<Vec<Cell>> {
        let silent_too = !args.noise.is_empty();
        let noise = noise_of(context, point, args, program.ranks())?;
        let outcome = ended(play(program, args, &noise)?)?;
        let (max_rank, max_ns) = outcome.last();
        let key = context.words(point, &["noise", "without", "seed", "cosched", "skew"]);
        let silent = || Ok(ended(play(program, args, &Noise::None)?)?.last().1);
        let base = silent_too.then(|| self.silent.get(&key, silent)).transpose();
        let base = base.map_err(anyhow::Error::msg)?.map(|base| *base);
        let slowdown = base.filter(|base| *base > 0);
        let slowdown = slowdown.map(|base| 100.0 * (max_ns as f64 - base as f64) / base as f64);
        let injected = outcome.noise.iter().fold(0u64, |sum, ns| sum.saturating_add(*ns));
        Ok(sweep_cells(&Ended {
            program_ranks: program.ranks(),
            events: outcome.events,
            max_ns,
            max_rank,
            base_ns: base,
            slowdown_percent: slowdown,
            injected_total_ns: silent_too.then_some(injected),
        }))
    }
}

/// The noise of a point's ranks.
fn noise_of(context: &Context, point: &Point, args: &SimulateArgs, ranks: u32) -> anyhow::Result<Noise> {
    let without = context.plan.value(point, "without").map_or(&[][..], |value| &value.words);
    if args.noise.is_empty() {
        return Ok(Noise::None);
    }
    if noise::rules(args) == Rules::Compatible {
        if !without.is_empty() {
            anyhow::bail!("LogGOPSim's noise has no sources: take `without` out, or `compat`");
        }
        return Ok(noise::from_args(args, ranks)?.noise);
    }
    let scale = ModelScale { quantum: noise::MODEL_QUANTUM, ranks: ranks.into(), seed: args.seed };
    let opened = context.noise(point, scale)?;
    let nodes = opened.clocks().map_err(anyhow::Error::msg)?;
    Ok(Noise::Clocks(RankClocks::on_nodes(nodes, ranks, noise::start(args), args.seed)?))
}

fn play<P: Program>(program: &P, args: &SimulateArgs, noise: &Noise) -> anyhow::Result<Outcome> {
    let net = network(args)?;
    let run = Run {
        net: net.network,
        ranges: &net.ranges,
        levels: &net.levels,
        rules: noise::rules(args),
        noise,
        threads: rayon::current_num_threads(),
        progress: quell_sim::loggops::NO_PROGRESS,
    };
    Ok(loggops::run(program, &run)?)
}

/// The outcome, or an error if the program did not finish.
fn ended(outcome: Outcome) -> anyhow::Result<Outcome> {
    match &outcome.stuck {
        Some(left) => {
            let facts: StuckFacts = stuck::facts(left, &[]);
            Err(anyhow::anyhow!(stuck::message(&facts)))
        }
        None => Ok(outcome),
    }
}

fn pattern_name(name: &str) -> Result<Vec<SweepValue>, String> {
    match pattern::entry(name) {
        Some(_) => text(name),
        None => Err(format!("there is no pattern `{name}`: `quell goal list` names them")),
    }
}

impl Sweepable for Runs {
    const VERB: &'static str = "simulate";

    const SPEC: SweepSpec = SweepSpec {
        axes: &[
            AxisKind { decides: true, ..AxisKind::text("pattern", pattern_name) },
            AxisKind { decides: true, ..AxisKind::text("inner", pattern_name) },
            AxisKind { paths: Paths::All, ..AxisKind::text("schedule", text) },
            AxisKind { default: Some("false"), ..flag("compat") },
            PROGRESS,
            AxisKind { sets: Sets::Any, default: Some(""), ..NOISE },
            WITHOUT,
            flag("cosched"),
            time("skew", "skew_ns"),
            // Without it, a schedule has the network that it was traced on, and LogGOPSim's rules have LogGOPSim's.
            NET,
            time("work", "work_ns"),
            number("bytes", size),
            number("iterations", size),
            AxisKind::text("dims", text),
            flag("periodic"),
            number("root", size),
            number("nway", size),
            AxisKind { column: "segment_bytes", ..number("segment-bytes", size) },
            AxisKind { column: "node_ranks", ..number("node-ranks", size) },
            number("buckets", size),
            time("optimizer", "optimizer_ns"),
            number("blocks", size),
            AxisKind {
                kind: Kind::F64,
                column: "reduce_per_byte_ns",
                ..AxisKind::text("reduce-per-byte", decimal)
            },
            SEED,
            number("ranks", size),
        ],
        applies: |axis, known| match axis {
            "pattern" | "schedule" | "compat" | "progress" | "noise" | "without" | "cosched" | "skew"
            | "net" | "seed" => true,
            _ => known("pattern").is_some_and(|name| pattern::takes(name, known("inner"), axis)),
        },
        curve: None,
    };

    fn columns() -> Vec<(String, Kind)> {
        sweep_columns::<Ended>()
    }

    fn check(&self, context: &Context) -> anyhow::Result<()> {
        let has = |name: &str| context.plan.axes.iter().any(|axis| axis.kind.name == name);
        if has("pattern") == has("schedule") {
            let text = "give either patterns or schedules, as in pattern = [\"allreduce\"] or schedule = [\"app.goal\"]";
            return Err(Usage(text.into()).into());
        }
        Ok(context.check_nets()?)
    }

    fn rows(&self, context: &Context, unit: &Unit) -> Result<Vec<Row>, Failure> {
        let row = |(point, of): (usize, &Point)| {
            let cells = match self.cells(context, of) {
                Ok(cells) => Ok(cells),
                Err(error) => Err(Failure::from(error).written_reason()?),
            };
            Ok(Row { point, cells })
        };
        unit.points.iter().enumerate().map(row).collect()
    }

    fn cost_ns(&self, context: &Context, unit: &Unit) -> anyhow::Result<u64> {
        let Some(point) = unit.points.first() else { return Ok(0) };
        let args = self.args(context, point).map_err(Usage)?;
        let totals = match self.program(context, point, &args)? {
            Playable::Pattern(named) => named.steps.totals(),
            Playable::Schedule(checked) => checked.schedule.totals(),
        };
        let (operations, sends) = totals.context("its events cannot be counted beforehand")?;
        Ok(operations.saturating_add(sends).saturating_mul(NS_OF_EVENT))
    }
}

/// The result of a point.
#[derive(Columns)]
struct Ended {
    #[column(sweep)]
    program_ranks: u32,
    #[column(sweep)]
    events: u64,
    #[column(sweep)]
    max_ns: u64,
    #[column(sweep)]
    max_rank: u32,
    #[column(sweep)]
    base_ns: Option<u64>,
    #[column(sweep)]
    slowdown_percent: Option<f64>,
    #[column(sweep)]
    injected_total_ns: Option<u64>,
}

/// The approximate CPU time of an event.
const NS_OF_EVENT: u64 = 50;

impl std::fmt::Debug for Checked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checked").field("errors", &self.errors).finish_non_exhaustive()
    }
}
