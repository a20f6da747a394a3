//! Limits on a comparison: the syntax of `--fail-above`, and the check.

use std::fmt;
use std::str::FromStr;

use quell_recording::Nanos;

use super::{Change, Comparison};

/// A limit on b relative to a.
///
/// | text | the limit holds if |
/// |---|---|
/// | `10%` | b's noise overhead is no more than 10 % above a's |
/// | `overhead=0.1` | b's noise overhead is no more than 0.1 percentage points above a's |
/// | `p99=20%` (also `p50`, `p90`, `p99.9`, `max`, `rate`) | this figure of b is no more than 20 % above a's |
/// | `kl=0.5` | D(b‖a) is no more than 0.5 nats |
/// | `wasserstein=5us` | the distance of the durations is no more than that |
///
/// The values are compared directly, without their confidence intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    text: String,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    Divergence { nats: f64 },
    Distance { most: Nanos },
    Points { most: f64 },
    Percent { figure: Figure, most: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Overhead,
    Rate,
    P50,
    P90,
    P99,
    P999,
    Max,
}

/// Why a text is not a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a limit: {reason} (write `10%`, `overhead=0.1`, `p99=20%`, `rate=20%`, `kl=0.5` or `wasserstein=5us`)"
)]
pub struct LimitError {
    text: String,
    reason: String,
}

/// A limit that does not hold; displays as one sentence with the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let trimmed = text.trim();
        let bound = match trimmed.split_once('=') {
            Some((name, value)) => named(name.trim(), value.trim()),
            None => percent(trimmed).map(|most| Bound::Percent { figure: Figure::Overhead, most }),
        };
        bound
            .map(|bound| Self { text: trimmed.to_owned(), bound })
            .map_err(|reason| LimitError { text: text.to_owned(), reason })
    }
}

fn named(name: &str, value: &str) -> Result<Bound, String> {
    let figure = match name {
        "kl" => return number(value).map(|nats| Bound::Divergence { nats }),
        "wasserstein" => {
            return value.parse().map(|most| Bound::Distance { most }).map_err(|e| e.to_string());
        }
        "overhead" if value.ends_with('%') => {
            return Err(
                "overhead is limited in percentage points (for a relative limit leave the name out)".into()
            );
        }
        "overhead" => return number(value).map(|most| Bound::Points { most }),
        "rate" => Figure::Rate,
        "p50" => Figure::P50,
        "p90" => Figure::P90,
        "p99" => Figure::P99,
        "p99.9" => Figure::P999,
        "max" => Figure::Max,
        _ => return Err(format!("there is no figure `{name}`")),
    };
    percent(value).map(|most| Bound::Percent { figure, most })
}

fn percent(text: &str) -> Result<f64, String> {
    let text = text.strip_suffix('%').ok_or_else(|| format!("`{text}` needs a percent sign"))?;
    number(text.trim())
}

fn number(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|n: &f64| n.is_finite() && *n >= 0.0)
        .ok_or_else(|| format!("`{text}` is not a number of 0 or more"))
}

impl Limit {
    /// Why this limit is broken, or `None` if it holds.
    ///
    /// If b has no detours, limits on quantiles hold; if only a has none, they do not. Divergence and
    /// distance do not hold if only one side has detours.
    pub fn check(&self, comparison: &Comparison) -> Option<Violation> {
        let broken = match self.bound {
            Bound::Divergence { nats } => divergence(comparison, nats),
            Bound::Distance { most } => distance(comparison, most),
            Bound::Points { most } => points(&comparison.changes.overhead_percent, most),
            Bound::Percent { figure, most } => relative(comparison, figure, most),
        };
        broken.map(|found| Violation(format!("the limit `{}` does not hold: {found}", self.text)))
    }
}

fn divergence(comparison: &Comparison, most: f64) -> Option<String> {
    match comparison.kl_nats {
        Some(kl) => (kl > most).then(|| format!("the divergence of b from a is {kl:.4} nats")),
        None => one_sided(comparison),
    }
}

fn distance(comparison: &Comparison, most: Nanos) -> Option<String> {
    match comparison.wasserstein_ns {
        Some(ns) => (ns > most.as_nanos() as f64)
            .then(|| format!("the durations are {} apart", Nanos::from_nanos(ns.round() as u64))),
        None => one_sided(comparison),
    }
}

fn one_sided(comparison: &Comparison) -> Option<String> {
    let (a, b) = (&comparison.a, &comparison.b);
    let without = match (a.detours.count, b.detours.count) {
        (0, 0) => return None,
        (0, _) => a,
        _ => b,
    };
    Some(format!("`{}` holds no detours, so the durations cannot be compared", without.name))
}

fn points(overhead: &Change, most: f64) -> Option<String> {
    (overhead.difference > most).then(|| {
        let Change { a, b, difference, .. } = overhead;
        format!("the noise overhead went from {a:.4} % to {b:.4} %, by {difference:.4} points")
    })
}

fn relative(comparison: &Comparison, figure: Figure, most: f64) -> Option<String> {
    let changes = &comparison.changes;
    let (name, change) = match figure {
        Figure::Overhead => ("noise overhead", Some(changes.overhead_percent)),
        Figure::Rate => ("rate of detours", Some(changes.rate_per_s)),
        Figure::P50 => ("p50 of the durations", changes.p50_ns),
        Figure::P90 => ("p90 of the durations", changes.p90_ns),
        Figure::P99 => ("p99 of the durations", changes.p99_ns),
        Figure::P999 => ("p99.9 of the durations", changes.p99_9_ns),
        Figure::Max => ("longest detour", changes.max_ns),
    };
    let Some(change) = change else {
        return (comparison.a.detours.count == 0).then(|| one_sided(comparison)).flatten();
    };
    let broken = change.b > change.a * (1.0 + most / 100.0);
    broken.then(|| match change.percent() {
        Some(percent) => format!("the {name} is up by {percent:.1} %"),
        None => format!("the {name} is up from zero"),
    })
}
