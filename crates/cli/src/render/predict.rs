//! Renders a predicted curve as text for a terminal.

use quell_analysis::predict::Prediction;

use super::plots::{self, Scale, Series};
use super::rows::rows;
use super::simulate;
use super::table::time;
use super::warnings;
use crate::printer::{one_line, width};

/// Slowdowns of which the largest is this many times the smallest are drawn in decades.
const LOG_FROM: f64 = 100.0;

/// `predict`: the curve as a plot and a table, and up to how many ranks the trace supports it.
pub fn curve(prediction: &Prediction) -> String {
    let mut text = format!(
        "A phase of {} under `{}` noise, {} ({} phases, seed {})\n",
        time(prediction.quantum_ns as f64),
        prediction.sync.as_str(),
        match &prediction.network {
            None => "all ranks waiting for the slowest".into(),
            Some(network) => format!("then `{}` of {} bytes", one_line(&prediction.op), network.bytes),
        },
        prediction.phases,
        prediction.seed
    );
    text.extend(
        prediction.network.iter().map(|network| format!("network: {}\n", simulate::net(&network.net))),
    );
    if !prediction.what_if.is_empty() {
        text += &format!("what if: {}\n", one_line(&prediction.what_if.join("; ")));
    }
    text += &rows(&prediction.points);
    text += &warnings::lines(&prediction.warnings);
    if prediction.points.len() < 2 {
        return text;
    }
    let log2 = |ranks: u64| (ranks as f64).log2();
    let line = |name: &str, value: &dyn Fn(usize) -> f64| Series {
        name: name.into(),
        points: (0..prediction.points.len()).map(|i| (log2(prediction.points[i].ranks), value(i))).collect(),
        line: true,
    };
    let points = &prediction.points;
    let end = |i: usize, at: usize| points[i].ci95_percent.map_or(points[i].slowdown_percent, |ci| ci[at]);
    let drawn: Vec<f64> =
        (0..points.len()).flat_map(|i| [points[i].slowdown_percent, end(i, 0), end(i, 1)]).collect();
    let (y, place) = slowdown_axis(&drawn);
    let series = [
        line("slowdown", &|i| place(points[i].slowdown_percent)),
        line("95 % interval", &|i| place(end(i, 0))),
        line("", &|i| place(end(i, 1))),
    ];
    let x = Scale::log(log2(points[0].ranks), log2(points[points.len() - 1].ranks), ranks_label);
    text + "\n" + &plots::chart("Slowdown over ranks", width(), 14, &x, &y, &series[..])
}

/// The axis of slowdowns in percent, and the place of each on it: in decades if they span several.
fn slowdown_axis(drawn: &[f64]) -> (Scale, impl Fn(f64) -> f64) {
    let most = drawn.iter().copied().fold(0.0, f64::max);
    let least = drawn.iter().copied().filter(|percent| *percent > 0.0).fold(most, f64::min);
    let is_log = least > 0.0 && most / least >= LOG_FROM;
    let percent = |value: f64| format!("{}%", (value * 1e6).round() / 1e6);
    let axis = match is_log {
        true => Scale::log(least.log10(), most.log10(), |log10| percent(10f64.powf(log10))),
        false => Scale::linear(most, percent),
    };
    (axis, move |percent: f64| if is_log { percent.max(least).log10() } else { percent })
}

/// The label of a power of two: `16`, `4Ki`, `1Mi`.
fn ranks_label(exponent: f64) -> String {
    let ranks = exponent.exp2();
    match exponent {
        20.0.. => format!("{}Mi", ranks / 1_048_576.0),
        10.0.. => format!("{}Ki", ranks / 1_024.0),
        _ => ranks.to_string(),
    }
}

/// The end of a curve in one sentence, for a second curve next to one that is shown in full.
pub fn briefly(prediction: &Prediction) -> String {
    let ends = (prediction.points.first(), prediction.points.last());
    let (Some(first), Some(last)) = ends else { return String::new() };
    format!(
        "With sync mode `{}` (--sync) the slowdown would be {:.2} % at {} ranks and {:.2} % at {}.\n",
        prediction.sync.as_str(),
        first.slowdown_percent,
        first.ranks,
        last.slowdown_percent,
        last.ranks
    )
}
