//! A plan in other programs' words: TuneD, a shell script, Slurm's prolog and epilog; and this node's topology in those of launchers.
//!
//! A plan is hostile input here too: names of processes and text of the kernel's end in files that root runs. What a form cannot
//! carry is told, in the answer and in the files themselves.

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
    /// Its name, with folders, below where the export goes.
    pub name: String,
    /// Its permissions.
    pub mode: u32,
    /// All of it.
    pub text: String,
}

/// What came of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The files.
    pub files: Vec<File>,
    /// What this form cannot carry, and why. The files say it too.
    pub left: Vec<Left>,
}

/// A write that a form cannot carry.
fn left(write: &Write, why: &str) -> Left {
    Left { mitigation: write.mitigation.clone(), what: write.place.to_string(), why: why.to_owned() }
}

/// Text as comments: no line of it is anything else.
fn comments<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    lines.into_iter().map(|line| format!("# {}\n", one_line(line)).replace("# \n", "#\n")).collect()
}

/// What is left, as comments under a heading; nothing where nothing is.
fn told(heading: &str, left: &[Left]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let lines: Vec<String> =
        left.iter().map(|one| format!("  {}: {}: {}", one.mitigation, one.what, one.why)).collect();
    comments(["", heading].into_iter().chain(lines.iter().map(String::as_str)))
}

/// A word of a POSIX shell that stands for exactly this text.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
