//! `quell advise --sweep`: what each source costs in each combination, without mitigations.

use anyhow::Context as _;
use quell_analysis::predict::{self, NodeNoise, Options};
use quell_analysis::sweep::{AxisKind, SweepSpec, Unit};
use quell_analysis::whatif::{AttributedNoise, Costs, Job, Source, costs};
use quell_recording::columns::{Columns, sweep_cells, sweep_columns};
use quell_recording::results::Kind;

use super::options;
use crate::args::Advise;
use crate::sweep::axis_syntax::{NET, NOISE, PROGRESS, SEED, number, parsed, ranks, size, sync, time};
use crate::sweep::{self, Context, Failure, Row, Sweepable};
use quell_request::Usage;
use quell_request::noise::{self, ModelScale};
use quell_request::pattern::OpText;

/// The sweeps of `advise`.
#[derive(Debug)]
pub struct CostsOfSources(sweep::Options);

/// Predictions per source: without it, and with it alone.
const RUNS_A_SOURCE: u64 = 2;

impl CostsOfSources {
    /// A parser for any plan.
    pub fn new() -> Self {
        Self(sweep::Options::from_args::<Advise>())
    }

    /// Parses a unit's points: the nodes, the job at all its numbers of ranks, and the number of sources listed individually.
    fn inputs(
        &self,
        context: &Context,
        unit: &Unit,
    ) -> anyhow::Result<(Vec<AttributedNoise>, Options, usize)> {
        let first = unit.points.first().context("there is no point")?;
        let mut words = context.words(first, &["noise", "ranks"]);
        // The parser requires noise, but the plan supplies it.
        words.push("--noise=plan".to_owned());
        let args: Advise = self.0.read(words).map_err(anyhow::Error::msg)?;
        let number = |point| context.plan.value(point, "ranks").and_then(|value| value.word().parse().ok());
        let options = Options { ranks: unit.points.iter().filter_map(number).collect(), ..options(&args)? };
        let most = options.ranks.iter().copied().max().unwrap_or(1);
        let scale = ModelScale { quantum: options.quantum, ranks: most, seed: options.seed };
        let nodes = context.paths(first, "noise").into_iter().map(|path| noise::attributed(&path, scale));
        Ok((nodes.collect::<anyhow::Result<_>>()?, options, args.sources as usize))
    }
}

impl Sweepable for CostsOfSources {
    const VERB: &'static str = "advise";

    const SPEC: SweepSpec = SweepSpec {
        axes: &[
            AxisKind { decides: true, default: Some("max"), ..AxisKind::text("op", parsed::<OpText>) },
            AxisKind { default: Some("none"), ..AxisKind::text("sync", sync) },
            NOISE,
            AxisKind { default: Some("slingshot"), ..NET },
            AxisKind { default: Some("8"), ..number("bytes", size) },
            PROGRESS,
            AxisKind { default: Some("1ms"), ..time("quantum", "quantum_ns") },
            AxisKind { default: Some("2000"), ..number("phases", size) },
            AxisKind { default: Some("8"), ..number("sources", size) },
            SEED,
            AxisKind { default: Some("4096"), ..number("ranks", ranks) },
        ],
        applies: |axis, known| match axis {
            "net" | "bytes" | "progress" => known("op") != Some("max"),
            _ => true,
        },
        curve: Some("ranks"),
    };

    fn columns() -> Vec<(String, Kind)> {
        sweep_columns::<Cost>()
    }

    fn check(&self, context: &Context) -> anyhow::Result<()> {
        if !context.plan.axes.iter().any(|axis| axis.kind.name == "noise") {
            let text =
                "there is no noise to advise on: name recordings or models, as in noise = [\"a.quell\"]";
            return Err(Usage(text.into()).into());
        }
        Ok(context.check_nets()?)
    }

    fn rows(&self, context: &Context, unit: &Unit) -> Result<Vec<Row>, Failure> {
        let found = self
            .inputs(context, unit)
            .and_then(|(nodes, options, most)| Ok(costs(&nodes, &Job::Phases(options), most, &|_, _| ())?));
        let points = 0..unit.points.len();
        match found.map_err(Failure::from) {
            Ok(costs) => Ok(points.flat_map(|point| rows_of_point(&costs, point)).collect()),
            Err(failure) => {
                let reason = failure.written_reason()?;
                Ok(points.map(|point| Row { point, cells: Err(reason.clone()) }).collect())
            }
        }
    }

    fn cost_ns(&self, context: &Context, unit: &Unit) -> anyhow::Result<u64> {
        let (nodes, options, most) = self.inputs(context, unit)?;
        let noise: Vec<NodeNoise> = nodes.iter().map(AttributedNoise::noise).collect();
        Ok(predict::cost_ns(&noise, &options)?.saturating_mul(1 + RUNS_A_SOURCE * most as u64))
    }
}

/// What a source costs at one number of ranks.
#[derive(Columns)]
struct Cost<'a> {
    #[column(sweep)]
    source: &'a str,
    #[column(sweep)]
    node_percent: f64,
    #[column(sweep)]
    node_count: u64,
    #[column(sweep)]
    node_max_ns: u64,
    #[column(sweep)]
    slowdown_percent: f64,
    #[column(sweep)]
    overlap_percent: f64,
    #[column(sweep)]
    part_percent: f64,
    #[column(sweep)]
    gain_percent: f64,
    #[column(sweep)]
    gain_ci95_percent: Option<[f64; 2]>,
    #[column(sweep)]
    without_percent: f64,
    #[column(sweep)]
    alone_percent: f64,
    #[column(sweep)]
    supported: bool,
}

/// A row for each source, or one row with an error if there is no noise.
fn rows_of_point(costs: &Costs, point: usize) -> Vec<Row> {
    let scale = costs.scales[point];
    let of_source = |source: &Source| {
        let cost = source.costs[point];
        let row = Cost {
            source: &source.source,
            node_percent: source.node.percent,
            node_count: source.node.count,
            node_max_ns: source.node.max_ns,
            slowdown_percent: scale.slowdown_percent,
            overlap_percent: scale.overlap_percent,
            part_percent: cost.part_percent,
            gain_percent: cost.gain_percent,
            gain_ci95_percent: cost.gain_ci95_percent,
            without_percent: cost.without_percent,
            alone_percent: cost.alone_percent,
            supported: scale.supported,
        };
        Row { point, cells: Ok(sweep_cells(&row)) }
    };
    if costs.sources.is_empty() {
        return vec![Row { point, cells: Err("there is no noise".into()) }];
    }
    costs.sources.iter().map(of_source).collect()
}
