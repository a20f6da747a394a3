//! What the `quell` command and the Python package ask for, as people write it: options, what they mean, and the documents that they get.
//!
//! Options are structs of arguments. The command reads them with its own beside; Python writes what it was given as words, and has the
//! same reader read them ([`words`]). So both faces understand the same, refuse the same, and get the same document.

pub mod changed;
pub mod compare;
pub mod net;
mod net_args;
pub mod noise_file;
pub mod pattern;
mod pattern_args;
pub mod predict;
mod ranks;
pub mod show;
pub mod simulate;
pub mod size;
pub mod track;
mod what_if;
pub mod words;

use quell_recording::Nanos;

pub use ranks::RankList;
pub use what_if::WhatIf;

/// A mistake of the reader's in what was typed: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Refuses a time of nothing.
///
/// # Errors
/// [`Usage`], with the option's name.
pub fn positive(time: Nanos, option: &str) -> Result<(), Usage> {
    match time {
        Nanos::ZERO => Err(Usage(format!("{option} is zero: give a time such as 1ms"))),
        _ => Ok(()),
    }
}

/// A time in ns as people read it.
pub fn time(ns: f64) -> String {
    if ns > 0.0 && ns < 10.0 {
        return format!("{ns:.1}ns");
    }
    Nanos::from_nanos_f64(ns).map_or_else(|| "-".into(), |time| time.to_string())
}
