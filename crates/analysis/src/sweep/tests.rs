#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use quell_recording::results::{Cell, Kind};

use super::*;

fn plain(text: &str) -> Result<Vec<SweepValue>, String> {
    Ok(vec![SweepValue { text: text.to_owned(), cell: Cell::Text(text.to_owned()) }])
}

/// A number, or a range of them.
fn numbers(text: &str) -> Result<Vec<SweepValue>, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is no number"));
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let all = (number(first)?..=number(last)?).take(MOST_VALUES + 1);
    Ok(all.map(|n| SweepValue { text: n.to_string(), cell: Cell::U64(n) }).collect())
}

const FORM: SweepSpec = SweepSpec {
    axes: &[
        AxisKind { decides: true, default: Some("max"), ..AxisKind::text("op", plain) },
        AxisKind { sets: Sets::Filled, paths: Paths::All, ..AxisKind::text("noise", plain) },
        AxisKind { sets: Sets::Any, default: Some(""), ..AxisKind::text("without", plain) },
        AxisKind { kind: Kind::U64, ..AxisKind::text("bytes", numbers) },
        AxisKind { kind: Kind::U64, default: Some("16"), ..AxisKind::text("ranks", numbers) },
    ],
    applies: |axis, known| axis != "bytes" || known("op") != Some("max"),
    curve: Some("ranks"),
};

fn plan(text: &str) -> Result<Plan, SweepError> {
    Plan::read(text, &FORM, |_| 16)
}

/// The values of a point, axis by axis.
fn shown(plan: &Plan, point: &Point) -> String {
    let cells = plan.cells(point).map(|cell| match cell {
        Cell::Empty => "-".to_owned(),
        Cell::U64(n) => n.to_string(),
        Cell::Text(text) => text,
        other => format!("{other:?}"),
    });
    cells.collect::<Vec<_>>().join(" ")
}

fn all(plan: &Plan) -> Vec<String> {
    (0..plan.units()).flat_map(|unit| plan.unit(unit).points).map(|point| shown(plan, &point)).collect()
}

#[test]
fn points_are_the_product_of_what_has_an_effect() {
    let plan =
        plan("noise = ['a', ['b', 'c']]\nop = ['max', 'sum']\nbytes = [8, 9]\nranks = '1..2'\n").unwrap();
    assert_eq!(plan.points(), 4 + 8);
    assert_eq!(plan.units(), 6);
    let all = all(&plan);
    assert_eq!(all[..4], ["max a  - 1", "max a  - 2", "max b, c  - 1", "max b, c  - 2"]);
    assert_eq!(all[4..7], ["sum a  8 1", "sum a  8 2", "sum a  9 1"]);
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 12);
    assert_eq!(plan.unit(1).points.iter().map(|point| point.number).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn chunks_hold_whole_units_and_all_of_them() {
    let plan = plan("noise = 'a'\nranks = '1..5'\nwithout = [[], ['tick'], ['tick', 'nmi']]\nop = ['x', 'y']\nchunk = 12\n").unwrap();
    assert_eq!((plan.points(), plan.units(), plan.chunks(), plan.points_a_chunk()), (30, 6, 3, 10));
    assert_eq!((0..3).flat_map(|chunk| plan.units_of(chunk)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(plan.units_of(3).is_empty());
    let large = self::plan("ranks = '1..100'\nnoise = 'a'\nbytes = '1..100000'\nop = 'sum'\n").unwrap();
    assert!(large.points() == MOST_POINTS && large.chunks() <= 8_192, "{}", large.chunks());
}

#[test]
fn what_is_no_plan_says_where_and_why() {
    for (text, line, reason) in [
        ("ranks = 1\nrank = 2", Some(2), "there is no axis `rank`: these are op, noise"),
        ("\n\nranks = ['x']", Some(3), "ranks: `x` is no number"),
        ("ranks = [\n 1,\n 0x10,\n]", Some(3), "decimal"),
        ("ranks = []", Some(1), "no values"),
        ("ranks = [[1]]", Some(1), "not a list"),
        ("noise = [[]]", Some(1), "at least one word"),
        ("without = [[['a']]]", Some(1), "no deeper"),
        ("ranks = 1979-05-27", Some(1), "date"),
        ("ranks = {a = 1}", Some(1), "table"),
        ("bytes = 8", Some(1), "bytes: it has no effect"),
        ("chunk = 0", Some(1), "1 to 1000000"),
        ("name = []", Some(1), "name"),
        ("ranks = 1\nranks = 2", Some(2), "duplicate"),
        ("ranks = '1..100001'", Some(1), "more than the 100000 values"),
        (
            "ranks = '1..100000'\nnoise = ['a', 'b']\nbytes = '1..100'\nop = 'x'",
            None,
            "more than 10000000 points",
        ),
        ("ranks = ", Some(1), ""),
    ] {
        let error = plan(text).unwrap_err();
        assert!(error.line == line && error.reason.contains(reason), "{text}: {error:?}");
    }
    let many: String = (0..10_001).map(|n| format!("'{n}',")).collect();
    assert!(plan(&format!("op = [{many}]")).is_err_and(|error| error.reason.contains("cases")));
}

#[test]
fn equal_values_are_one_and_the_order_of_keys_is_nothing() {
    let one = plan("ranks = [1, '1..3', 2]\nnoise = ['a', 'a']\n").unwrap();
    let other = plan("noise = 'a'\nranks = '1..3'\n").unwrap();
    assert_eq!(all(&one), all(&other));
    assert_eq!(one.axes.len(), 4, "those with a default, and those that are there");
}

#[test]
fn paths_are_found_in_words() {
    assert_eq!(Paths::Toml.within("a.toml@4Ki"), Some(("a.toml", "@4Ki")));
    assert_eq!(Paths::Toml.within("L=1,o=2"), None);
    assert_eq!(Paths::Toml.within("x@y"), None);
    assert_eq!(Paths::All.within("a@b"), Some(("a@b", "")));
}

proptest! {
    #[test]
    fn any_text_is_a_plan_or_an_error(text in "([a-z]{0,5}|ranks|noise|op|bytes|without|chunk|[=\\[\\]{}'\"., \n0-9-]){0,40}") {
        if let Ok(plan) = plan(&text) {
            let chunks = plan.chunks();
            let units: u64 = (0..chunks).map(|chunk| plan.units_of(chunk).count() as u64).sum();
            prop_assert_eq!(units, plan.units());
            prop_assert_eq!(plan.unit(plan.units() - 1).points.last().map(|point| point.number + 1), Some(plan.points()));
        }
    }

    #[test]
    fn each_point_is_in_one_unit_with_values_of_its_own(
        ranks in 1u64..5, bytes in 1u64..4, ops in prop::collection::hash_set("max|sum|min", 1..4), chunk in 1u64..9,
    ) {
        let ops: Vec<String> = ops.into_iter().map(|op| format!("'{op}'")).collect();
        let bytes = if ops == ["'max'"] { String::new() } else { format!("bytes = '1..{bytes}'\n") };
        let text = format!("ranks = '1..{ranks}'\nnoise = ['a', 'b']\n{bytes}op = [{}]\nchunk = {chunk}\n", ops.join(","));
        let plan = plan(&text).unwrap();
        let points: Vec<Point> = (0..plan.units()).flat_map(|unit| plan.unit(unit).points).collect();
        prop_assert!((0..).zip(&points).all(|(number, point)| point.number == number));
        let shown: std::collections::HashSet<String> = points.iter().map(|point| shown(&plan, point)).collect();
        prop_assert_eq!(shown.len() as u64, plan.points());
    }
}
