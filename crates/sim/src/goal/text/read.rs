//! From text to a schedule, one line at a time.

use std::io::BufRead;

use super::error::{Fault, Reason, TextError, shown};
use super::labels::Labels;
use super::line::{Cursor, Lines};
use super::statement::{Parser, Statement};
use crate::goal::builder::ScheduleBuilder;
use crate::goal::defect::{BuildError, Defect, SHOWN};
use crate::goal::finding::{Finding, Findings, Place, Problem, Severity};
use crate::goal::schedule::Schedule;
use crate::loggops::Shape;

/// Reads a schedule from text. Odd but unambiguous input is added to `notes`: labels that are given twice, of which the
/// first counts.
///
/// # Errors
/// [`TextError`] for the first line that is not valid, or when reading fails.
pub fn read_text(input: impl BufRead, notes: &mut Findings) -> Result<Schedule, TextError> {
    let (builder, last_line) = Reader::new(false, notes).read(input)?;
    builder.finish().map_err(|error| whole(error, last_line))
}

/// As [`read_text`], but continues where an operation is unfit and adds that to `notes`. The second value is whether
/// the schedule is fit to run.
pub(in crate::goal) fn read_to_check(
    input: impl BufRead,
    notes: &mut Findings,
) -> Result<(Schedule, bool), TextError> {
    let (builder, last_line) = Reader::new(true, notes).read(input)?;
    let sound = !builder.is_broken();
    Ok((builder.finish_anyhow().map_err(|error| whole(error, last_line))?, sound))
}

fn whole(error: BuildError, line: u64) -> TextError {
    Fault::new(0, Reason::Whole(error)).in_line(line)
}

/// Reads a text line by line.
pub(super) struct Reader<'n> {
    /// Set by `num_ranks`.
    builder: Option<ScheduleBuilder>,
    ranks: u32,
    /// The line at which the current rank begins.
    begun: Option<u64>,
    labels: Labels,
    goes_on: bool,
    notes: &'n mut Findings,
}

/// A position: the line from 1, the column from 0.
#[derive(Clone, Copy)]
struct At {
    line: u64,
    column: usize,
}

impl<'n> Reader<'n> {
    pub(super) fn new(goes_on: bool, notes: &'n mut Findings) -> Self {
        Self { builder: None, ranks: 0, begun: None, labels: Labels::default(), goes_on, notes }
    }

    /// A reader of a part that begins with the next rank of a builder.
    pub(super) fn of_part(builder: ScheduleBuilder, notes: &'n mut Findings) -> Self {
        let ranks = builder.ranks();
        Self { builder: Some(builder), ranks, ..Self::new(false, notes) }
    }

    /// Reads a part of a text; `None` where it is not valid, or ends within a rank or a comment.
    pub(super) fn read_part(mut self, input: &[u8]) -> Option<ScheduleBuilder> {
        let (mut lines, mut parser) = (Lines::new(input), Parser::default());
        while let Some((number, line)) = lines.next().ok()? {
            self.line(&mut parser, number, line).ok()?;
        }
        if self.begun.is_some() || parser.in_comment() { None } else { self.builder }
    }

    fn read(mut self, input: impl BufRead) -> Result<(ScheduleBuilder, u64), TextError> {
        let mut lines = Lines::new(input);
        let mut parser = Parser::default();
        let mut comment = None;
        while let Some((number, line)) = lines.next()? {
            if let Err(fault) = self.line(&mut parser, number, line) {
                let reason = later(&fault, &mut parser, &mut lines);
                let fault = Fault { reason: reason.unwrap_or(fault.reason), ..fault };
                return Err(fault.in_line(number));
            }
            comment = parser.in_comment().then(|| comment.unwrap_or(number));
        }
        let last = lines.last();
        match (comment, self.end()) {
            (Some(begun), _) => Err(Fault::new(0, Reason::CommentOpen).in_line(begun)),
            (None, Err(fault)) => Err(fault.in_line(last)),
            (None, Ok(builder)) => Ok((builder, last)),
        }
    }

    fn line(&mut self, parser: &mut Parser, line: u64, text: &[u8]) -> Result<(), Fault> {
        let mut cursor = Cursor::new(text);
        while let Some((column, statement)) = parser.next(&mut cursor)? {
            let at = At { line, column };
            match statement {
                Statement::NumRanks(ranks) => self.num_ranks(ranks, at)?,
                Statement::Rank(rank) => self.begin_rank(rank, at)?,
                Statement::End => self.end_rank(at)?,
                Statement::Op { label, shape, peer, peer_column } => {
                    self.op(label, shape, peer, at, peer_column)?;
                }
                Statement::Dependency { dependent, on, on_column, at_start } => {
                    self.depend(dependent, on, at_start, at, on_column)?;
                }
            }
        }
        Ok(())
    }

    fn num_ranks(&mut self, ranks: u32, at: At) -> Result<(), Fault> {
        if self.builder.is_some() {
            return Err(Fault::new(at.column, Reason::SecondNumRanks));
        }
        if ranks == 0 {
            return Err(Fault::new(at.column, Reason::ZeroRanks));
        }
        self.ranks = ranks;
        self.builder = Some(ScheduleBuilder::new(ranks));
        Ok(())
    }

    fn begin_rank(&mut self, found: u32, at: At) -> Result<(), Fault> {
        let fault = |reason| Err(Fault::new(at.column, reason));
        let Some(builder) = &mut self.builder else { return fault(Reason::NoNumRanks) };
        let (expected, ranks) = (builder.rank(), self.ranks);
        if let Some(begun) = self.begun {
            return fault(Reason::MissingBrace { rank: expected, begun });
        }
        if found >= ranks || expected == ranks {
            return fault(Reason::TooManyRanks { found, ranks });
        }
        if found != expected {
            return fault(Reason::RankOrder { expected, found });
        }
        builder.begin_rank();
        self.begun = Some(at.line);
        self.labels.clear();
        Ok(())
    }

    fn end_rank(&mut self, at: At) -> Result<(), Fault> {
        if self.begun.is_none() {
            return Err(Fault::new(at.column, Reason::StrayBrace));
        }
        let Some(builder) = &mut self.builder else { return Ok(()) };
        let rank = builder.rank();
        builder.end_rank();
        self.begun = None;
        self.look_for_defect(rank, at)
    }

    /// The builder, if an operation can be added to it here.
    fn inside(&mut self, column: usize) -> Result<&mut ScheduleBuilder, Fault> {
        match &mut self.builder {
            None => Err(Fault::new(column, Reason::NoNumRanks)),
            Some(builder) if self.begun.is_some() => Ok(builder),
            Some(_) => Err(Fault::new(column, Reason::OutsideRank)),
        }
    }

    fn op(
        &mut self,
        label: Option<&[u8]>,
        shape: Shape,
        peer: u32,
        at: At,
        peer_column: usize,
    ) -> Result<(), Fault> {
        let builder = self.inside(at.column)?;
        let (rank, op) = (builder.rank(), builder.op(shape, peer));
        if let Some(name) = label
            && let Err(first) = self.labels.define(name, op, at.line, at.column)
        {
            let problem = Problem::RepeatedLabel { label: shown(name), first_line: first.line };
            let place = Place { line: at.line, label: Some(shown(name)) };
            self.notes.push(Finding::at_op(Severity::Warning, rank, op, problem).at(place));
        }
        self.look_for_defect(rank, At { column: peer_column, ..at })
    }

    fn depend(
        &mut self,
        dependent: &[u8],
        on: &[u8],
        at_start: bool,
        at: At,
        on_column: usize,
    ) -> Result<(), Fault> {
        self.inside(at.column)?;
        let find = |label, column| {
            let undefined = || Fault::new(column, Reason::UndefinedLabel(shown(label)));
            self.labels.find(label).map(|label| label.op).ok_or_else(undefined)
        };
        let (op, on) = (find(dependent, at.column)?, find(on, on_column)?);
        let builder = self.inside(at.column)?;
        let rank = builder.rank();
        match at_start {
            true => builder.irequires(op, on),
            false => builder.requires(op, on),
        }
        self.look_for_defect(rank, At { column: on_column, ..at })
    }

    /// Fails with a defect that the builder has found, or notes it.
    fn look_for_defect(&mut self, rank: u32, at: At) -> Result<(), Fault> {
        let Some(error) = self.builder.as_mut().and_then(ScheduleBuilder::take_defect) else { return Ok(()) };
        let BuildError::Op { op, defect, .. } = error else { return Ok(()) };
        let label = self.labels.label_of(op);
        let at = match (&defect, &label) {
            (Defect::Cycle(_), Some((_, label))) => {
                At { line: label.line, column: usize::from(label.column) }
            }
            _ => at,
        };
        if self.goes_on {
            let place = Place { line: at.line, label: label.map(|(name, _)| shown(name)) };
            let problem = Problem::Defect(defect);
            self.notes.push(Finding::at_op(Severity::Error, rank, op, problem).at(place));
            return Ok(());
        }
        let reason = match defect {
            Defect::Cycle(ops) => {
                let labels = ops.iter().take(SHOWN).map(|&op| self.name(op)).collect();
                Reason::Cycle { labels, ops: ops.len() }
            }
            defect => Reason::Op(defect),
        };
        Err(Fault::new(at.column, reason).in_other_line(at.line))
    }

    fn name(&self, op: u32) -> String {
        let number = || format!("operation {}", u64::from(op) + 1);
        self.labels.label_of(op).map_or_else(number, |(name, _)| format!("`{}`", shown(name)))
    }

    /// Finishes at the end of the file.
    fn end(self) -> Result<ScheduleBuilder, Fault> {
        let Some(builder) = self.builder else { return Err(Fault::new(0, Reason::NoNumRanks)) };
        let (given, ranks) = (builder.rank(), self.ranks);
        match self.begun {
            Some(begun) => Err(Fault::new(0, Reason::MissingBrace { rank: given, begun })),
            None if given < ranks => Err(Fault::new(0, Reason::MissingRanks { given, ranks })),
            None => Ok(builder),
        }
    }
}

/// A more helpful reason for an undefined label: the line further down that defines it.
fn later(fault: &Fault, parser: &mut Parser, lines: &mut Lines<impl BufRead>) -> Option<Box<Reason>> {
    let Reason::UndefinedLabel(missing) = &*fault.reason else { return None };
    while let Ok(Some((number, line))) = lines.next() {
        let mut cursor = Cursor::new(line);
        while let Some((_, statement)) = parser.next(&mut cursor).ok()? {
            match statement {
                Statement::Op { label: Some(label), .. } if shown(label) == *missing => {
                    return Some(Box::new(Reason::LabelLater { label: missing.clone(), line: number }));
                }
                Statement::End | Statement::Rank(_) => return None,
                _ => (),
            }
        }
    }
    None
}
