//! Exports a plan for other tools: TuneD, a shell script, Slurm's prolog and epilog; and this node's topology for launchers.
//!
//! A plan is untrusted input here too: process names and kernel text end up in files that root runs. What a format cannot
//! express is reported, in the result and in the files themselves.

mod bindings;
mod shell;
mod slurm;
mod tuned;

pub use bindings::bindings;
use quell_recording::one_line;
pub use shell::shell;
pub use slurm::slurm;
pub use tuned::tuned;

use super::plan::{Left, Write};

/// A file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path relative to the export folder.
    pub name: String,
    /// Its permissions.
    pub mode: u32,
    /// Its text.
    pub text: String,
}

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The files.
    pub files: Vec<File>,
    /// What this format cannot express, and why. The files say it too.
    pub left: Vec<Left>,
}

/// A write that a format cannot express.
fn left(write: &Write, why: &str) -> Left {
    Left { mitigation: write.mitigation.clone(), what: write.place.to_string(), why: why.to_owned() }
}

/// Text as comments: every line of it becomes a comment.
fn comments<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    lines.into_iter().map(|line| format!("# {}\n", one_line(line)).replace("# \n", "#\n")).collect()
}

/// What is left out, as comments under a heading; empty if nothing is.
fn skipped_section(heading: &str, left: &[Left]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let lines: Vec<String> =
        left.iter().map(|one| format!("  {}: {}: {}", one.mitigation, one.what, one.why)).collect();
    comments(["", heading].into_iter().chain(lines.iter().map(String::as_str)))
}

/// A POSIX shell word that evaluates to exactly this text.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
