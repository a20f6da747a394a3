//! The program to simulate: a schedule from a file, or a named pattern.

use std::io::{self, BufRead, BufReader, Cursor, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use quell_analysis::Warning;
use quell_sim::goal::{self, Findings, Format, ReadAt, Schedule, Severity};

use super::SimulateArgs;
use crate::Usage;
use crate::pattern::{self, Named};

/// A program that can be simulated.
#[derive(Debug)]
pub enum Playable {
    /// A schedule from a file.
    Schedule(Schedule, Source),
    /// A named pattern.
    Pattern(Named),
}

/// The file that a schedule comes from.
#[derive(Debug)]
pub struct Source {
    /// Path of the file.
    pub path: PathBuf,
    /// Text or binary.
    pub format: Format,
}

/// Opens the requested program.
///
/// # Errors
/// [`Usage`] if there is none, or for parameters that the pattern does not accept; otherwise what is wrong with the file.
pub fn from_args(args: &SimulateArgs, warn: &mut dyn FnMut(&str)) -> anyhow::Result<Playable> {
    match (&args.schedule, &args.pattern) {
        (Some(path), None) => {
            pattern::refuse_all(&args.parameters)?;
            let (schedule, format) = read(path, args.threads, warn)?;
            Ok(Playable::Schedule(schedule, Source { path: path.clone(), format }))
        }
        (None, Some(name)) => Ok(Playable::Pattern(pattern::from_args(name, &args.parameters)?)),
        _ => {
            let text = "there is nothing to simulate: give a schedule, or --pattern NAME (`quell goal list` names them)";
            Err(Usage(text.into()).into())
        }
    }
}

/// Reads a schedule, text or binary, with this number of threads or all. `warn` receives a message for each oddity.
///
/// # Errors
/// If it cannot be read.
pub fn read(
    path: &Path,
    threads: Option<u16>,
    warn: &mut dyn FnMut(&str),
) -> anyhow::Result<(Schedule, Format)> {
    let (format, input) = open(path)?;
    if format == Format::Text
        && let Some(schedule) = in_parts(path, threads.map_or(usize::MAX, usize::from))
    {
        return Ok((schedule, format));
    }
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

struct TextFile(fs_err::File);

impl ReadAt for TextFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.file().read_at(bytes, offset)
    }
}

/// Reads a large text on several threads, if it is a file without anything odd.
fn in_parts(path: &Path, threads: usize) -> Option<Schedule> {
    let file = TextFile(fs_err::File::open(path).ok()?);
    let facts = file.0.metadata().ok()?;
    facts.is_file().then(|| goal::read_text_in_parts(&file, facts.len(), threads)).flatten()
}

/// Opens a file at its start, and detects its format from the first bytes.
///
/// # Errors
/// [`Usage`] for a folder; if it cannot be read.
pub fn open(path: &Path) -> anyhow::Result<(Format, impl BufRead + use<>)> {
    if path.is_dir() {
        let text = match path.join("manifest.json").is_file() {
            true => "a recording, not a schedule: give it as --noise, with a schedule or with --pattern NAME",
            false => "a folder, not a schedule",
        };
        return Err(Usage(format!("{} is {text}", path.display())).into());
    }
    let mut file = fs_err::File::open(path)?;
    let mut head = Vec::new();
    file.by_ref().take(8).read_to_end(&mut head)?;
    let format = Format::detect(&head);
    Ok((format, BufReader::with_capacity(1 << 16, Cursor::new(head).chain(file))))
}

/// The errors that a check of the schedule finds, with their positions, if they keep it from finishing; at most as many as a message lists.
///
/// # Errors
/// If the file cannot be read again.
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

/// Maximum number of findings in a message.
const MOST_LINES: usize = 10;
