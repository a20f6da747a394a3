//! What is played: a schedule from a file, or a named pattern.

use std::io::{BufRead, BufReader, Cursor, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use quell_analysis::Warning;
use quell_sim::goal::{self, Findings, Format, Schedule, Severity};

use super::SimulateArgs;
use crate::Usage;
use crate::pattern::{self, Named};

/// A program that can be played.
#[derive(Debug)]
pub enum Playable {
    /// From a file.
    Schedule(Schedule, Source),
    /// By name.
    Pattern(Named),
}

/// Where a schedule is from.
#[derive(Debug)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// Its form.
    pub format: Format,
}

/// What was requested.
///
/// # Errors
/// [`Usage`] if that is nothing, or a pattern with what it does not take; or what is wrong with the file.
pub fn of(args: &SimulateArgs, warn: &mut dyn FnMut(&str)) -> anyhow::Result<Playable> {
    match (&args.schedule, &args.pattern) {
        (Some(path), None) => {
            pattern::refuse_all(&args.parameters)?;
            let (schedule, format) = read(path, warn)?;
            Ok(Playable::Schedule(schedule, Source { path: path.clone(), format }))
        }
        (None, Some(name)) => Ok(Playable::Pattern(pattern::of(name, &args.parameters)?)),
        _ => {
            let text = "there is nothing to simulate: give a schedule, or --pattern NAME (`quell goal list` names them)";
            Err(Usage(text.into()).into())
        }
    }
}

/// Reads a schedule in either form. `warn` is told what is odd about it.
///
/// # Errors
/// Where it cannot be read.
pub fn read(path: &Path, warn: &mut dyn FnMut(&str)) -> anyhow::Result<(Schedule, Format)> {
    let (format, input) = open(path)?;
    let mut notes = Findings::default();
    let schedule = match format {
        Format::Text => goal::read_text(input, &mut notes).map_err(anyhow::Error::from),
        Format::Binary => goal::read_binary(input).map_err(anyhow::Error::from),
    };
    let schedule = schedule.with_context(|| path.display().to_string())?;
    for note in notes.list() {
        warn(&format!("{}: {note}", path.display()));
    }
    Ok((schedule, format))
}

/// A file at its beginning, and what its first bytes say that it is.
///
/// # Errors
/// Where it cannot be read.
pub fn open(path: &Path) -> anyhow::Result<(Format, impl BufRead + use<>)> {
    let mut file = fs_err::File::open(path)?;
    let mut head = Vec::new();
    file.by_ref().take(8).read_to_end(&mut head)?;
    let format = Format::of(&head);
    Ok((format, BufReader::with_capacity(1 << 16, Cursor::new(head).chain(file))))
}

/// What a look at a schedule finds that keeps it from its end: as many lines as a message may have, with places.
///
/// # Errors
/// Where the file cannot be read again.
pub fn errors(schedule: &Schedule, source: &Source) -> anyhow::Result<Option<Warning>> {
    let mut findings = goal::check(schedule);
    if findings.errors() == 0 {
        return Ok(None);
    }
    if source.format == Format::Text {
        goal::place_findings(open(&source.path)?.1, &mut findings)
            .with_context(|| source.path.display().to_string())?;
    }
    let errors = findings.list().iter().filter(|finding| finding.severity == Severity::Error);
    let errors: Vec<String> = errors.take(MOST_LINES).map(ToString::to_string).collect();
    let more = findings.errors() - errors.len() as u64;
    Ok(Some(Warning::NeverEnds { errors, more }))
}

/// So many findings a message lists.
const MOST_LINES: usize = 10;
