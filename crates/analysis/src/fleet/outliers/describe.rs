//! Describes a finding in a sentence.

use quell_recording::Nanos;

use crate::fleet::document::{Figure, OutlierCause};

/// The sentence. `mean_ns` is the mean of the source's events on this node, and `nodes` the number of all nodes.
pub(super) fn describe(why: &OutlierCause, mean_ns: f64, nodes: usize) -> String {
    let source = &why.source;
    let (rate, each) = (number(why.value), time(mean_ns));
    let usual = |typical: String| match why.times_typical {
        Some(times) => format!(": {} times the usual {typical}", number(times)),
        None => seen(why.seen_on, nodes),
    };
    match why.figure {
        Figure::Rate => {
            format!("{source}: {rate} a second on each CPU, {each} each{}", usual(number(why.typical)))
        }
        Figure::Time => {
            format!(
                "{source}: takes {} of each second of a CPU, {each} each{}",
                time(why.value),
                usual(time(why.typical))
            )
        }
        Figure::WorstCpuRate => {
            format!("{source}: {rate} a second on one CPU, {each} each{}", usual(number(why.typical)))
        }
        Figure::WorstCpuTime => {
            format!(
                "{source}: takes {} of each second of one CPU{}",
                time(why.value),
                usual(time(why.typical))
            )
        }
        Figure::Longest => format!("{source}: one of {}{}", time(why.value), usual(time(why.typical))),
    }
}

fn seen(on: u64, nodes: usize) -> String {
    match on {
        1 => "; no other node has it".to_owned(),
        on => format!("; {on} of {nodes} nodes have it, few of them as much"),
    }
}

fn time(ns: f64) -> String {
    Nanos::from_nanos_f64(ns).unwrap_or_default().to_string()
}

/// Formats a number with at least three digits.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 | 100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(figure: Figure, value: f64, typical: f64, seen_on: u64) -> OutlierCause {
        let times_typical = (typical > 0.0).then(|| value / typical);
        OutlierCause {
            source: "tick".into(),
            figure,
            value,
            typical,
            times_typical,
            seen_on,
            excess_ns_per_s: 0.0,
            says: String::new(),
        }
    }

    #[test]
    fn each_figure_is_a_sentence() {
        let cases = [
            (
                why(Figure::Rate, 500.0, 250.0, 9),
                "tick: 500 a second on each CPU, 4us each: 2.00 times the usual 250",
            ),
            (
                why(Figure::Rate, 0.125, 0.0, 1),
                "tick: 0.125 a second on each CPU, 4us each; no other node has it",
            ),
            (
                why(Figure::Rate, 0.125, 0.0, 3),
                "tick: 0.125 a second on each CPU, 4us each; 3 of 9 nodes have it, few of them as much",
            ),
            (
                why(Figure::Time, 2e6, 1e6, 9),
                "tick: takes 2ms of each second of a CPU, 4us each: 2.00 times the usual 1ms",
            ),
            (
                why(Figure::WorstCpuRate, 2_000.0, 50.0, 9),
                "tick: 2000 a second on one CPU, 4us each: 40.0 times the usual 50.0",
            ),
            (
                why(Figure::WorstCpuTime, 3e6, 1e6, 9),
                "tick: takes 3ms of each second of one CPU: 3.00 times the usual 1ms",
            ),
            (why(Figure::Longest, 5e8, 1e6, 9), "tick: one of 500ms: 500 times the usual 1ms"),
        ];
        for (why, text) in cases {
            assert_eq!(describe(&why, 4_000.0, 9), text);
        }
    }
}
