//! `quell goal check`: reports what is wrong with a schedule, without running it.

use std::path::Path;

use anyhow::Context as _;
use quell_sim::goal::{self, BinaryError, Checked, Finding, Findings, Format, Schedule, Severity, TextError};
use quell_sim::loggops::Program as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::GoalCheck;
use crate::outcome::Outcome;
use crate::printer::{Printer, one_line};
use crate::render::table::table_with_words;
use quell_request::simulate::program;

/// The schema's name and version.
const SCHEMA: &str = "quell.goal-check/1";

/// The findings in a schedule.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Examined {
    /// Always `quell.goal-check/1`.
    pub schema: String,
    /// Path of the file.
    pub file: String,
    /// Text or binary.
    pub form: Form,
    /// The size of the schedule; null if it cannot be read to its end.
    pub size: Option<Size>,
    /// Number of errors: they keep the schedule from finishing.
    pub errors: u64,
    /// Number of warnings: the schedule finishes, but may not do what was intended.
    pub warnings: u64,
    /// The first hundred of each severity.
    pub findings: Vec<Found>,
}

/// A file format of GOAL.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Readable text.
    Text,
    /// The binary format that LogGOPSim's txt2bin writes.
    Binary,
}

impl From<Format> for Form {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Binary => Self::Binary,
        }
    }
}

/// The size of a schedule.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Size {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of operations of all ranks.
    pub operations: u64,
    /// Number of these that are sends.
    pub sends: u64,
    /// Number of dependencies of all ranks.
    pub dependencies: u64,
    /// Number of CPUs per rank.
    pub cpus: u32,
    /// Number of network interfaces per rank.
    pub nics: u32,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The schedule does not finish.
    Error,
    /// The schedule finishes, but may not do what was intended.
    Warning,
}

/// A finding.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Found {
    /// Its severity.
    pub severity: Level,
    /// The rank that it concerns.
    pub rank: Option<u32>,
    /// The index of the operation in this rank, from 0, if it concerns one.
    pub operation: Option<u64>,
    /// The line in the text, from 1, if it is known.
    pub line: Option<u64>,
    /// The label in that line.
    pub label: Option<String>,
    /// What is wrong, and how to correct it.
    pub problem: String,
}

/// Checks a schedule, prints the findings, and fails if there are errors.
pub fn run(args: &GoalCheck, printer: Printer) -> anyhow::Result<Outcome> {
    let examined = examine(&args.schedule)?;
    match args.json {
        true => printer.json(&examined)?,
        false => printer.result(&text(&examined))?,
    }
    match examined.errors {
        0 => Ok(Outcome::Done),
        1 => anyhow::bail!("{} has an error, and would not run to its end", args.schedule.display()),
        n => anyhow::bail!("{} has {n} errors, and would not run to its end", args.schedule.display()),
    }
}

fn examine(path: &Path) -> anyhow::Result<Examined> {
    let (format, input) = program::open(path)?;
    let unreadable = |line, problem| Ok(unreadable(path, format, line, problem));
    let checked = match format {
        Format::Text => match goal::check_text(input) {
            Err(TextError::Line { line, reason, .. }) => return unreadable(Some(line), reason.to_string()),
            other => other.map_err(anyhow::Error::from),
        },
        Format::Binary => match goal::check_binary(input) {
            Err(BinaryError::Io(error)) => Err(error.into()),
            Err(error) => return unreadable(None, error.to_string()),
            Ok(checked) => Ok(checked),
        },
    };
    let Checked { schedule, mut findings } = checked.with_context(|| path.display().to_string())?;
    if format == Format::Text {
        goal::place_findings(program::open(path)?.1, &mut findings)
            .with_context(|| path.display().to_string())?;
    }
    Ok(document(path, format, schedule.as_ref(), &findings))
}

fn document(path: &Path, format: Format, schedule: Option<&Schedule>, findings: &Findings) -> Examined {
    Examined {
        schema: SCHEMA.to_owned(),
        file: path.display().to_string(),
        form: format.into(),
        size: schedule.map(size),
        errors: findings.errors(),
        warnings: findings.warnings(),
        findings: findings.list().iter().map(found).collect(),
    }
}

/// The finding for a file that cannot be parsed beyond some position.
fn unreadable(path: &Path, format: Format, line: Option<u64>, problem: String) -> Examined {
    let found = Found { severity: Level::Error, rank: None, operation: None, line, label: None, problem };
    Examined {
        schema: SCHEMA.to_owned(),
        file: path.display().to_string(),
        form: format.into(),
        size: None,
        errors: 1,
        warnings: 0,
        findings: vec![found],
    }
}

fn size(schedule: &Schedule) -> Size {
    let (operations, sends) = schedule.totals().unwrap_or_default();
    Size {
        ranks: schedule.ranks(),
        operations,
        sends,
        dependencies: schedule.dependencies(),
        cpus: schedule.cpus(),
        nics: schedule.nics(),
    }
}

fn found(finding: &Finding) -> Found {
    Found {
        severity: if finding.severity == Severity::Error { Level::Error } else { Level::Warning },
        rank: finding.rank,
        operation: finding.op.and_then(|op| op.checked_sub(1)),
        line: finding.place.as_ref().map(|place| place.line),
        label: finding.place.as_ref().and_then(|place| place.label.clone()),
        problem: finding.problem.to_string(),
    }
}

fn text(examined: &Examined) -> String {
    let file = one_line(&examined.file);
    let size = examined.size.map_or_else(
        || "cannot be read to its end".into(),
        |size| {
            format!(
                "{} ranks, {} operations, {} dependencies",
                size.ranks, size.operations, size.dependencies
            )
        },
    );
    let mut text = format!("{file}: {size}\n");
    if examined.findings.is_empty() {
        return text + "No problem found; quell did not run it.\n";
    }
    let dash = || "-".to_owned();
    let row = |found: &Found| {
        vec![
            if matches!(found.severity, Level::Error) { "error".into() } else { "warning".into() },
            found.line.map_or_else(dash, |line| line.to_string()),
            found.rank.map_or_else(dash, |rank| rank.to_string()),
            found.operation.map_or_else(dash, |op| (op + 1).to_string()),
            found.label.as_deref().map_or_else(dash, one_line),
            one_line(&found.problem),
        ]
    };
    text += &table_with_words(
        6,
        &["", "line", "rank", "operation", "label", "what"],
        examined.findings.iter().map(row),
    );
    let more = examined.errors + examined.warnings - examined.findings.len() as u64;
    if more > 0 {
        text += &format!("and {more} more\n");
    }
    text
}
