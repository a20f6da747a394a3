//! `quell goal check`: what is wrong with a schedule, without running it.

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

/// What was found in a schedule.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Examined {
    /// Always `quell.goal-check/1`.
    pub schema: String,
    /// The file.
    pub file: String,
    /// Its form.
    pub form: Form,
    /// What it holds; null where it cannot be read to its end.
    pub size: Option<Size>,
    /// How many errors there are: what keeps it from running to its end.
    pub errors: u64,
    /// How many warnings there are: it runs, but perhaps not as meant.
    pub warnings: u64,
    /// The first hundred of each.
    pub findings: Vec<Found>,
}

/// A form of GOAL.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// For people.
    Text,
    /// As LogGOPSim's txt2bin writes it.
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

/// What a schedule holds.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Size {
    /// Ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub operations: u64,
    /// How many of them are sends.
    pub sends: u64,
    /// Dependencies of all ranks.
    pub dependencies: u64,
    /// CPUs of each rank.
    pub cpus: u32,
    /// Network interfaces of each rank.
    pub nics: u32,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Badness {
    /// It does not run to its end.
    Error,
    /// It runs, but perhaps not as meant.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Found {
    /// How bad it is.
    pub severity: Badness,
    /// The rank that it concerns.
    pub rank: Option<u32>,
    /// The operation of this rank, from 0, where it concerns one.
    pub operation: Option<u64>,
    /// The line in the text, from 1, where it is known.
    pub line: Option<u64>,
    /// The label that stands there.
    pub label: Option<String>,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// Checks, prints what was found, and fails for errors.
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

/// A file that makes no sense from some place on.
fn unreadable(path: &Path, format: Format, line: Option<u64>, problem: String) -> Examined {
    let found = Found { severity: Badness::Error, rank: None, operation: None, line, label: None, problem };
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
        severity: if finding.severity == Severity::Error { Badness::Error } else { Badness::Warning },
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
        return text + "Nothing is wrong with it, as far as can be seen without running it.\n";
    }
    let dash = || "-".to_owned();
    let row = |found: &Found| {
        vec![
            if matches!(found.severity, Badness::Error) { "error".into() } else { "warning".into() },
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
