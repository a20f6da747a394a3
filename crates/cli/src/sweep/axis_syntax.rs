//! The kinds of axes of a plan. Values have the syntax of the verb's options, with ranges in addition.

use std::str::FromStr;

use quell_analysis::sweep::{AxisKind, MOST_VALUES, Paths, Sets, SweepValue};
use quell_analysis::whatif::SourceSelector;
use quell_recording::Nanos;
use quell_recording::results::{Cell, Kind};

use clap::ValueEnum as _;
use quell_analysis::predict::SyncName;
use quell_request::RankList;
use quell_request::messages::ProgressName;
use quell_request::size::whole;

/// An axis of noise files; several files make up one machine.
pub const NOISE: AxisKind =
    AxisKind { sets: Sets::Filled, paths: Paths::All, ..AxisKind::text("noise", text) };
/// An axis of times at which messages are handled.
pub const PROGRESS: AxisKind = AxisKind::text("progress", progress);
/// An axis of sources to leave out of the noise.
pub const WITHOUT: AxisKind =
    AxisKind { sets: Sets::Any, default: Some(""), ..AxisKind::text("without", parsed::<SourceSelector>) };
/// An axis of networks. Files of networks are checked later, by `Context::check_nets`.
pub const NET: AxisKind = AxisKind { paths: Paths::Toml, ..AxisKind::text("net", text) };
/// An axis of seeds, and ranges of seeds.
pub const SEED: AxisKind = AxisKind { default: Some("1"), ..number("seed", range) };

/// An axis of numbers.
pub const fn number(name: &'static str, read: fn(&str) -> Result<Vec<SweepValue>, String>) -> AxisKind {
    AxisKind { kind: Kind::U64, ..AxisKind::text(name, read) }
}

/// An axis of times, with a column name that includes the unit.
pub const fn time(name: &'static str, column: &'static str) -> AxisKind {
    AxisKind { kind: Kind::U64, column, ..AxisKind::text(name, nanos) }
}

/// An axis of `true` and `false`.
pub const fn flag(name: &'static str) -> AxisKind {
    AxisKind { kind: Kind::Bool, ..AxisKind::text(name, yes_or_no) }
}

fn one(text: String, cell: Cell) -> Result<Vec<SweepValue>, String> {
    Ok(vec![SweepValue { text, cell }])
}

/// Accepts any text that is not empty.
pub fn text(text: &str) -> Result<Vec<SweepValue>, String> {
    if text.is_empty() {
        return Err("it is empty".into());
    }
    one(text.to_owned(), Cell::Text(text.to_owned()))
}

/// `async` or `call`.
fn progress(written: &str) -> Result<Vec<SweepValue>, String> {
    match ProgressName::from_str(written, false) {
        Ok(_) => text(written),
        Err(_) => Err(format!("`{written}` is neither `async` nor `call`")),
    }
}

/// `none`, `start` or `phase`.
pub fn sync(written: &str) -> Result<Vec<SweepValue>, String> {
    written.parse::<SyncName>()?;
    text(written)
}

/// Accepts text that an option's type can parse.
pub fn parsed<T: FromStr<Err: std::fmt::Display>>(written: &str) -> Result<Vec<SweepValue>, String> {
    if written.is_empty() {
        return Ok(Vec::new());
    }
    written.parse::<T>().map_err(|reason| reason.to_string())?;
    text(written)
}

/// Parses sizes such as `8` and `64Ki`.
pub fn size(text: &str) -> Result<Vec<SweepValue>, String> {
    let n = whole(text).ok_or_else(|| format!("`{text}` is not a number (write 8, or '64Ki')"))?;
    one(n.to_string(), Cell::U64(n))
}

/// Parses `7`, or a range `1..20`, which includes both ends.
pub fn range(text: &str) -> Result<Vec<SweepValue>, String> {
    let Some((first, last)) = text.split_once("..") else { return size(text) };
    let number = |part: &str| whole(part).ok_or_else(|| format!("`{text}` is not a range (write '1..20')"));
    let (first, last) = (number(first)?, number(last)?);
    match last.checked_sub(first) {
        Some(more) if more < MOST_VALUES as u64 => {
            Ok((first..=last).map(|n| SweepValue { text: n.to_string(), cell: Cell::U64(n) }).collect())
        }
        Some(_) => Err(format!("`{text}` has more than the {MOST_VALUES} values that an axis may have")),
        None => Err(format!("the range `{text}` runs backwards")),
    }
}

/// Parses the syntax of `--ranks`: `16`, `1Mi`, or `16..65536`, which doubles.
pub fn ranks(text: &str) -> Result<Vec<SweepValue>, String> {
    let list = text.parse::<RankList>()?;
    Ok(list.0.into_iter().map(|n| SweepValue { text: n.to_string(), cell: Cell::U64(n) }).collect())
}

/// Parses times such as `1ms`.
pub fn nanos(text: &str) -> Result<Vec<SweepValue>, String> {
    let time = text.parse::<Nanos>().map_err(|reason| reason.to_string())?.as_nanos();
    one(format!("{time}ns"), Cell::U64(time))
}

/// Parses decimal numbers such as `0.5`.
pub fn decimal(text: &str) -> Result<Vec<SweepValue>, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() => one(x.to_string(), Cell::F64(x)),
        _ => Err(format!("`{text}` is not a number")),
    }
}

/// `true` and `false`.
pub fn yes_or_no(text: &str) -> Result<Vec<SweepValue>, String> {
    match text.parse() {
        Ok(yes) => one(text.to_owned(), Cell::Bool(yes)),
        Err(_) => Err(format!("`{text}` is neither true nor false")),
    }
}
