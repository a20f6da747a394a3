//! `quell predict --sweep`: predicts a curve for each combination.

use quell_analysis::predict::{self, NodeNoise, Options, Point};
use quell_analysis::sweep::{AxisKind, SweepSpec, Unit};
use quell_recording::columns::{sweep_cells, sweep_columns};
use quell_recording::results::{Cell, Kind};
use quell_request::predict::{options, scale};

use crate::args::Predict;
use crate::sweep::axis_syntax::{
    NET, NOISE, PROGRESS, SEED, WITHOUT, decimal, number, parsed, ranks, size, sync, time,
};
use crate::sweep::{self, Context, Failure, Row, Sweepable};
use quell_request::Usage;
use quell_request::pattern::OpText;

/// The sweeps of `predict`.
#[derive(Debug)]
pub struct Curves(sweep::Options);

impl Curves {
    /// A parser for any plan.
    pub fn new() -> Self {
        Self(sweep::Options::from_args::<Predict>())
    }

    /// Parses the options of a unit's points.
    fn options(&self, context: &Context, unit: &Unit) -> Result<Options, String> {
        let Some(first) = unit.points.first() else { return Err("there is no point".into()) };
        let mut words = context.words(first, &["noise", "without", "ranks", "replicates"]);
        // The parser requires noise, but the plan supplies it.
        words.push("--noise=plan".to_owned());
        let args: Predict = self.0.read(words)?;
        let number =
            |point, axis| context.plan.value(point, axis).and_then(|value| value.word().parse().ok());
        Ok(Options {
            ranks: unit.points.iter().filter_map(|point| number(point, "ranks")).collect(),
            replicates: number(first, "replicates").unwrap_or(predict::REPLICATES),
            ..options(&args.options).map_err(|error| format!("{error:#}"))?
        })
    }
}

impl Sweepable for Curves {
    const VERB: &'static str = "predict";

    const SPEC: SweepSpec = SweepSpec {
        axes: &[
            AxisKind { decides: true, default: Some("max"), ..AxisKind::text("op", parsed::<OpText>) },
            AxisKind { decides: true, default: Some("none"), ..AxisKind::text("sync", sync) },
            NOISE,
            WITHOUT,
            AxisKind { default: Some("slingshot"), ..NET },
            AxisKind { default: Some("8"), ..number("bytes", size) },
            PROGRESS,
            AxisKind { default: Some("1ms"), ..time("quantum", "quantum_ns") },
            time("skew", "skew_ns"),
            AxisKind { kind: Kind::F64, column: "drift_ppm", ..AxisKind::text("drift", decimal) },
            AxisKind { default: Some("2000"), ..number("phases", size) },
            AxisKind { default: Some("40"), ..number("replicates", size) },
            SEED,
            AxisKind { default: Some("16..2048"), ..number("ranks", ranks) },
        ],
        applies: |axis, known| match axis {
            "net" | "bytes" | "progress" => known("op") != Some("max"),
            "skew" | "drift" => known("sync") == Some("start"),
            _ => true,
        },
        curve: Some("ranks"),
    };

    fn columns() -> Vec<(String, Kind)> {
        let mut columns = sweep_columns::<Point>();
        columns.push(("supported_ranks".into(), Kind::U64));
        columns
    }

    fn check(&self, context: &Context) -> anyhow::Result<()> {
        if !context.plan.axes.iter().any(|axis| axis.kind.name == "noise") {
            let text =
                "there is nothing to predict from: name recordings or models, as in noise = [\"a.quell\"]";
            return Err(Usage(text.into()).into());
        }
        Ok(context.check_nets()?)
    }

    fn rows(&self, context: &Context, unit: &Unit) -> Result<Vec<Row>, Failure> {
        let fail = |reason: &str| -> Vec<Row> {
            let row = |point| Row { point, cells: Err(reason.to_owned()) };
            (0..unit.points.len()).map(row).collect()
        };
        let options = match self.options(context, unit) {
            Ok(options) => options,
            Err(reason) => return Ok(fail(&reason)),
        };
        let Some(point) = unit.points.first() else { return Ok(Vec::new()) };
        match context.noise(point, scale(&options)) {
            Ok(noise) => Ok(curve(&noise.nodes, &options)),
            Err(failure) => Ok(fail(&failure.written_reason()?)),
        }
    }

    fn cost_ns(&self, context: &Context, unit: &Unit) -> anyhow::Result<u64> {
        let options = self.options(context, unit).map_err(anyhow::Error::msg)?;
        let Some(first) = unit.points.first() else { return Ok(0) };
        let noise = context.noise(first, scale(&options))?;
        Ok(predict::cost_ns(&noise.nodes, &options)?)
    }
}

/// The rows of all numbers of ranks: from one prediction or, if one of them fails, from a prediction each.
fn curve(noise: &[NodeNoise], options: &Options) -> Vec<Row> {
    match predict::predict(noise, options, quell_analysis::NO_PROGRESS) {
        Ok(prediction) => {
            let row =
                |(point, of_scale)| Row { point, cells: Ok(cells(of_scale, prediction.supported_ranks)) };
            prediction.points.iter().enumerate().map(row).collect()
        }
        Err(error) if options.ranks.len() == 1 => vec![Row { point: 0, cells: Err(error.to_string()) }],
        Err(_) => {
            let single = |(point, ranks): (usize, &u64)| {
                let rows = curve(noise, &Options { ranks: vec![*ranks], ..options.clone() });
                rows.into_iter().map(move |row| Row { point, ..row })
            };
            options.ranks.iter().enumerate().flat_map(single).collect()
        }
    }
}

fn cells(point: &Point, supported_ranks: u64) -> Vec<Cell> {
    let mut cells = sweep_cells(point);
    cells.push(Cell::U64(supported_ranks));
    cells
}
