//! Plans of sweeps: a text is a plan of which every point is in one chunk, or an error.
#![no_main]

use quell_analysis::sweep::{AxisKind, MOST_POINTS, Paths, Plan, Sets, SweepSpec, SweepValue};
use quell_recording::results::{Cell, Kind};

const FORM: SweepSpec = SweepSpec {
    axes: &[
        AxisKind { decides: true, default: Some("max"), ..AxisKind::text("op", word) },
        AxisKind { sets: Sets::Filled, paths: Paths::All, ..AxisKind::text("noise", word) },
        AxisKind { sets: Sets::Any, default: Some(""), ..AxisKind::text("without", word) },
        AxisKind { paths: Paths::Toml, ..AxisKind::text("net", word) },
        AxisKind { kind: Kind::U64, default: Some("16"), ..AxisKind::text("ranks", doubling) },
    ],
    applies: |axis, known| axis != "net" || known("op") != Some("max"),
    curve: Some("ranks"),
};

fn word(text: &str) -> Result<Vec<SweepValue>, String> {
    Ok(vec![SweepValue { text: text.to_owned(), cell: Cell::Text(text.to_owned()) }])
}

fn doubling(text: &str) -> Result<Vec<SweepValue>, String> {
    let last: u64 = text.parse().map_err(|_| "no number".to_owned())?;
    let all = (0..64).map(|bit| 1 << bit).take_while(|n| *n <= last);
    Ok(all.map(|n: u64| SweepValue { text: n.to_string(), cell: Cell::U64(n) }).collect())
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(plan) = Plan::read(text, &FORM, |_| 16) else { return };
    assert!((1..=MOST_POINTS).contains(&plan.points()));
    let units: u64 =
        (0..plan.chunks()).map(|chunk| plan.units_of(chunk).end - plan.units_of(chunk).start).sum();
    assert_eq!(units, plan.units());
    let last = plan.unit(plan.units() - 1).points;
    assert_eq!(last.last().map(|point| point.number + 1), Some(plan.points()));
});
