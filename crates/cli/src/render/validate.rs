//! Renders a comparison of replayed noise with the original as text for a terminal.

use quell_analysis::validation::{Class, Own, Validation};
use quell_recording::columns::Columns;

use super::rows::rows;
use super::table::time;
use super::warnings;
use crate::printer::one_line;

/// The distances between the distributions, and a row for each size of detours.
pub fn validation(document: &Validation) -> String {
    let scale = if document.scale == 1.0 { String::new() } else { format!(" scaled {}x", document.scale) };
    let mut text = format!(
        "{} by {}{scale}: {:.1} % of the detours can be injected; {} were, and the probe saw {}\n\n",
        one_line(&document.comparison.a.name),
        document.context,
        document.detours_percent,
        document.injected,
        document.seen
    );
    let number = |value: Option<f64>, unit: &str| {
        value.map_or_else(|| "-".into(), |value| format!("{value:.3}{unit}"))
    };
    text += &format!("Kullback-Leibler      {}\n", number(document.kl_nats, " nats, emulated from original"));
    text += &format!(
        "                      {}\n",
        number(document.kl_reverse_nats, " nats, original from emulated")
    );
    text += &format!("Kolmogorov-Smirnov    {}\n", number(document.kolmogorov_smirnov, ""));
    text +=
        &format!("Wasserstein           {}\n\n", document.wasserstein_ns.map_or_else(|| "-".into(), time));
    text += &rows(&document.classes.iter().map(ClassRow::new).collect::<Vec<_>>());
    let own = |own: &Own| {
        format!("{:.1} detours a second, {:.3} % of the time", own.rate_per_s, own.overhead_percent)
    };
    text += &format!(
        "\nthe machine's own noise, left out above: {} ({} before)\n",
        own(&document.own),
        own(&document.before)
    );
    text += &warnings::lines(&document.warnings);
    text
}

/// The detours of one size.
#[derive(Debug, Columns)]
struct ClassRow<'a> {
    #[column]
    detours: String,
    #[column(flatten)]
    class: &'a Class,
}

impl<'a> ClassRow<'a> {
    fn new(class: &'a Class) -> Self {
        let detours = match (class.from_ns, class.to_ns) {
            (0, to) => format!("under {}", time(to as f64)),
            (from, u64::MAX) => format!("from {}", time(from as f64)),
            (from, to) => format!("{} to {}", time(from as f64), time(to as f64)),
        };
        Self { detours, class }
    }
}
