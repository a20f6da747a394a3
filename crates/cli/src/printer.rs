//! The only place that prints: results to stdout, messages to stderr.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Style};

pub use quell_recording::{cut, one_line};
use quell_recording::{json_for_terminals, lines};
use serde::Serialize;

use crate::prose::wrapped;

/// Only terminals show colours, and not with NO_COLOR: `anstream` strips them. No information is in the colour alone.
const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default();

/// Prints results and messages.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    quiet: bool,
}

impl Printer {
    /// `quiet` suppresses status messages, but never results, warnings or errors.
    pub fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Prints a result.
    pub fn result(self, text: &str) -> io::Result<()> {
        write(sentences(&lines(text), io::stdout().is_terminal()).as_bytes())
    }

    /// Prints the path of what was made: unchanged for a program that reads it.
    pub fn path(self, path: &Path) -> io::Result<()> {
        if io::stdout().is_terminal() {
            return self.result(&format!("{}\n", path.display()));
        }
        write(&[path.as_os_str().as_encoded_bytes(), b"\n"].concat())
    }

    /// Prints a result whose lines start with a mark (`✓`, `~`, `✗`), which terminals show in colours.
    pub fn marked(self, text: &str) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        for line in lines(text).lines() {
            let (indent, shown) = line.split_at(line.len() - line.trim_start().len());
            let first = shown.chars().next();
            let style = match first {
                Some('✓') => GOOD,
                Some('~') => WARNING,
                Some('✗') => ERROR,
                _ => Style::new(),
            };
            let marked = style != Style::new();
            let (mark, rest) = shown.split_at(first.filter(|_| marked).map_or(0, char::len_utf8));
            writeln!(out, "{indent}{style}{mark}{style:#}{rest}")?;
        }
        out.flush()
    }

    /// Prints a result as one JSON document.
    pub fn json(self, document: &impl Serialize) -> anyhow::Result<()> {
        Ok(write_json(&serde_json::to_string_pretty(document)?)?)
    }

    /// Prints a JSON document that is text already.
    pub fn json_text(self, document: &str) -> io::Result<()> {
        write_json(document)
    }

    /// Prints one of several results as JSON on a line of its own.
    pub fn json_line(self, document: &impl Serialize) -> anyhow::Result<()> {
        Ok(write_json(&serde_json::to_string(document)?)?)
    }

    /// Prints a status message: what is done, and where files are.
    pub fn status(self, text: &str) {
        if !self.quiet {
            // There is no way to report that stderr is closed.
            let _ = writeln!(io::stderr().lock(), "{}", message("", text));
        }
    }

    /// Prints a result to stderr, because stdout belongs to another program. Not suppressed by `quiet`.
    pub fn notice(self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", message("", text));
    }

    /// Prints a warning that limits a result. Not suppressed by `quiet`.
    pub fn warn(self, text: &str) {
        let _ =
            writeln!(anstream::stderr().lock(), "{WARNING}warning:{WARNING:#}{}", message("warning:", text));
    }

    /// Prints why a command failed.
    pub fn error(self, error: &anyhow::Error) {
        let text = message("error:", &format!("{error:#}"));
        let _ = writeln!(anstream::stderr().lock(), "{ERROR}error:{ERROR:#}{text}");
    }

    /// Whether progress bars may be drawn.
    pub fn draws(self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

/// A message without a line end of its own, as it follows its kind (`error:`), which has a colour.
fn message(kind: &str, text: &str) -> String {
    let text = lines(text.trim_end_matches('\n'));
    let between = if kind.is_empty() { "" } else { " " };
    sentences(&format!("{kind}{between}{text}"), io::stderr().is_terminal()).split_off(kind.len())
}

/// Text whose sentences end within the terminal; unchanged for a program that reads it.
fn sentences(text: &str, is_terminal: bool) -> String {
    let wraps = is_terminal || std::env::var_os("COLUMNS").is_some();
    if wraps { wrapped(text, usize::from(width())) } else { text.to_owned() }
}

/// Prints what clap says, without characters of an argument that would control the terminal; returns the exit code.
pub fn refuse(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let plain = |argument: &OsString| argument.to_str().is_some_and(|text| text == lines(text));
    if error.use_stderr() && !arguments.iter().all(plain) {
        let _ = writeln!(io::stderr().lock(), "{}", lines(error.render().to_string().trim_end()));
    } else {
        let _ = error.print();
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn write_json(json: &str) -> io::Result<()> {
    write(format!("{}\n", json_for_terminals(json)).as_bytes())
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Width of the terminal in columns, or 100 without a terminal.
pub fn width() -> u16 {
    let from_environment = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let columns = from_environment.or_else(|| terminal_size::terminal_size().map(|(columns, _)| columns.0));
    columns.unwrap_or(100).clamp(60, 160)
}
