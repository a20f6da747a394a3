//! Requests of the `quell` command and the Python package: the options of a verb, their meaning, and the document that answers.
//!
//! Options are structs of arguments. The command flattens them into its own; Python passes command-line arguments to the same parser
//! ([`options`]). So both accept and refuse the same options, and return the same document. Files are opened here, so that analysis stays
//! pure.

pub mod compare;
pub mod job;
pub mod messages;
pub mod network;
pub mod noise;
pub mod options;
pub mod pattern;
pub mod predict;
mod ranks;
pub mod show;
pub mod simulate;
pub mod size;
pub mod threads;
pub mod track;
pub mod tune;
pub mod what_if;

use quell_recording::Nanos;
pub use quell_recording::format_ns as time;

pub use ranks::RankList;
pub use what_if::WhatIfArgs;

/// A usage error: the arguments are wrong or contradict each other. The command exits with 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Refuses a time of zero.
///
/// # Errors
/// [`Usage`], with the option's name.
pub fn positive(time: Nanos, option: &str) -> Result<(), Usage> {
    match time {
        Nanos::ZERO => Err(Usage(format!("{option} is zero: give a time such as 1ms"))),
        _ => Ok(()),
    }
}
