//! The one place that writes: results to stdout, talk to stderr.

use std::io::{self, IsTerminal as _, Write as _};

use clap::builder::styling::{AnsiColor, Style};

pub use quell_recording::one_line;
use serde::Serialize;

/// At most so many characters of a text; where some are left out, the last is an ellipsis.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Terminals alone get colours, and none with NO_COLOR: `anstream` takes them out. What they say is said in words too.
const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default();

/// Where output goes.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    quiet: bool,
}

impl Printer {
    /// `quiet` silences talk, never results and never errors.
    pub fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// A result, as it is.
    pub fn result(self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// A result of lines that begin with a mark (`✓`, `~`, `✗`), which terminals show in colours.
    pub fn marked(self, text: &str) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        for line in text.lines() {
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

    /// A result as one JSON document.
    pub fn json(self, document: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(document)?;
        text.push('\n');
        Ok(self.result(&text)?)
    }

    /// Talk: what is done, and where things are.
    pub fn say(self, text: &str) {
        if !self.quiet {
            // Nobody can be told that stderr is closed.
            let _ = writeln!(io::stderr().lock(), "{}", printable(text));
        }
    }

    /// A result that may not go to stdout, for that is another program's. Not silenced.
    pub fn tell(self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", printable(text));
    }

    /// What limits a result. Not silenced.
    pub fn warn(self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{WARNING}warning:{WARNING:#} {}", printable(text));
    }

    /// Why a command failed.
    pub fn error(self, error: &anyhow::Error) {
        let text = printable(&format!("{error:#}"));
        let _ = writeln!(anstream::stderr().lock(), "{ERROR}error:{ERROR:#} {text}");
    }

    /// Whether progress may be drawn.
    pub fn draws(self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }
}

/// As [`one_line`] for text of several lines.
fn printable(text: &str) -> String {
    text.lines().map(one_line).collect::<Vec<_>>().join("\n")
}

/// Columns of the terminal, or 100 where there is none.
pub fn width() -> u16 {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let columns = asked.or_else(|| terminal_size::terminal_size().map(|(columns, _)| columns.0));
    columns.unwrap_or(100).clamp(60, 160)
}
