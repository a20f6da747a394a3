//! Parses the statements of a line.

use super::error::{Fault, Reason};
use super::line::Cursor;
use crate::goal::MAX_SIZE;
use crate::loggops::{ANY, Kind, Shape};

/// A statement of a line, or the part of one. Columns count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement<'a> {
    /// `num_ranks N`
    NumRanks(u32),
    /// `rank N {`
    Rank(u32),
    /// `}`
    End,
    /// `label: send 8b to 1 tag 0` and the like.
    Op { label: Option<&'a [u8]>, shape: Shape, peer: u32, peer_column: usize },
    /// `dependent requires on`, or `irequires` if it waits only for the start.
    Dependency { dependent: &'a [u8], on: &'a [u8], on_column: usize, at_start: bool },
}

const OPERATION: &str = "`send SIZEb to RANK`, `recv SIZEb from RANK` or `calc NANOSECONDS`";
const ANYTHING: &str = "an operation, a dependency (`A requires B`), a comment, or `}`";
const LINE_END: &str = "the end of the line";

/// Parses statements; remembers whether a comment continues on the next line.
#[derive(Debug, Default)]
pub(super) struct Parser {
    comment: bool,
}

impl Parser {
    pub(super) fn in_comment(&self) -> bool {
        self.comment
    }

    /// The next statement of a line and the column at which it begins; `None` at the end of the line.
    pub(super) fn next<'a>(
        &mut self,
        line: &mut Cursor<'a>,
    ) -> Result<Option<(usize, Statement<'a>)>, Fault> {
        let Some(first) = self.past_comments(line)? else { return Ok(None) };
        let column = line.column();
        if first == b'}' {
            line.skip(1);
            return Ok(Some((column, Statement::End)));
        }
        let Some(word) = line.word() else { return Err(line.unexpected(ANYTHING)) };
        let statement = match word {
            b"rank" => return Ok(Some((column, rank(line)?))),
            b"num_ranks" => {
                let number = line.number("a number of ranks", "the number of ranks", u64::from(u32::MAX))?;
                Statement::NumRanks(number as u32)
            }
            b"send" | b"recv" | b"calc" => operation(word, None, line)?,
            label => labelled(label, column, line)?,
        };
        end_of_line(line)?;
        Ok(Some((column, statement)))
    }

    /// Skips to the first byte that is neither blank nor part of a comment.
    fn past_comments(&mut self, line: &mut Cursor<'_>) -> Result<Option<u8>, Fault> {
        loop {
            if self.comment {
                let Some(end) = line.rest().windows(2).position(|two| two == b"*/") else { return Ok(None) };
                line.skip(end + 2);
                self.comment = false;
            }
            let Some(first) = line.peek() else { return Ok(None) };
            if first != b'/' || line.rest().starts_with(b"//") {
                return Ok((first != b'/').then_some(first));
            }
            if !line.eat(b"/*") {
                return Err(line.unexpected("`//` or `/*` for a comment"));
            }
            self.comment = true;
        }
    }
}

fn rank<'a>(line: &mut Cursor<'a>) -> Result<Statement<'a>, Fault> {
    let number = line.number("a rank", "the number of the rank", u64::from(u32::MAX))?;
    if !line.eat(b"{") {
        return Err(line.unexpected("`{` behind the number of the rank"));
    }
    Ok(Statement::Rank(number as u32))
}

/// Parses what follows a word that is no keyword.
fn labelled<'a>(label: &'a [u8], column: usize, line: &mut Cursor<'a>) -> Result<Statement<'a>, Fault> {
    if line.eat(b":") {
        return match line.word() {
            Some(word @ (b"send" | b"recv" | b"calc")) => operation(word, Some(label), line),
            word => Err(back(*line, word).unexpected(OPERATION)),
        };
    }
    let word = line.word();
    let at_start = match word {
        Some(b"requires") => false,
        Some(b"irequires") => true,
        _ if word.is_none() && line.peek().is_none() => return Err(unknown(label, column)),
        _ if word.is_none() && line.peek().is_some_and(|byte| byte.is_ascii_digit()) => {
            return Err(unknown(label, column));
        }
        _ => return Err(back(*line, word).unexpected("`:`, `requires` or `irequires` behind a label")),
    };
    line.peek();
    let on_column = line.column();
    let Some(on) = line.word() else { return Err(line.unexpected("the label of the operation to wait for")) };
    Ok(Statement::Dependency { dependent: label, on, on_column, at_start })
}

/// The fault of a first word that cannot be a label, because a number or nothing follows it.
fn unknown(word: &[u8], column: usize) -> Fault {
    let found = format!("the unknown word `{}`", super::error::shown(word));
    Fault::new(column, Reason::Unexpected { found, wanted: OPERATION })
}

/// The position before a word that was just read.
fn back<'a>(line: Cursor<'a>, word: Option<&[u8]>) -> Cursor<'a> {
    line.back(word.map_or(0, <[u8]>::len))
}

/// Parses the rest of an operation of which the first word was read.
fn operation<'a>(
    word: &[u8],
    label: Option<&'a [u8]>,
    line: &mut Cursor<'a>,
) -> Result<Statement<'a>, Fault> {
    let (kind, what) = match word {
        b"send" => (Kind::Send, "a number of bytes"),
        b"recv" => (Kind::Recv, "a number of bytes"),
        _ => (Kind::Calc, "a number of nanoseconds"),
    };
    let size = line.number(what, what, MAX_SIZE)?;
    let mut shape = Shape { kind, cpu: 0, nic: 0, tag: 0, size };
    let (mut peer, mut peer_column) = (0, 0);
    if kind != Kind::Calc {
        if !line.eat(b"b") {
            return Err(line.unexpected("`b` (bytes) behind the size"));
        }
        (peer, peer_column) = self::peer(kind, line)?;
        if line.eat(b"tag") {
            shape.tag = or_any("tag", "the tag, a number or -1", line)?;
        }
    }
    if line.eat(b"cpu") {
        shape.cpu = line.number("a CPU", "the number of the CPU", 255)? as u8;
    }
    if kind != Kind::Calc && line.eat(b"nic") {
        shape.nic = line.number("a network interface", "the number of the interface", 255)? as u8;
    }
    Ok(Statement::Op { label, shape, peer, peer_column })
}

fn peer(kind: Kind, line: &mut Cursor<'_>) -> Result<(u32, usize), Fault> {
    let (word, wanted): (&[u8], _) = match kind {
        Kind::Send => (b"to", "`to` and a rank behind the size"),
        _ => (b"from", "`from` and a rank (or -1) behind the size"),
    };
    if !line.eat(word) {
        return Err(line.unexpected(wanted));
    }
    line.peek();
    let column = line.column();
    let peer = match kind {
        Kind::Send => line.number("a rank", "the rank to send to", u64::from(u32::MAX) - 1)? as u32,
        _ => or_any("rank", "the rank to receive from, or -1 for any", line)?,
    };
    Ok((peer, column))
}

/// A number below 2^32 − 1, or -1.
fn or_any(what: &'static str, wanted: &'static str, line: &mut Cursor<'_>) -> Result<u32, Fault> {
    if line.eat(b"-1") {
        // `-10` is not the wildcard -1.
        let digits = line.rest().first().is_some_and(u8::is_ascii_digit);
        return if digits { Err(line.back(2).unexpected(wanted)) } else { Ok(ANY) };
    }
    let before = *line;
    match line.number(what, wanted, u64::from(u32::MAX))? as u32 {
        ANY => Err(Fault::new(before.column(), Reason::AnyByNumber(what))),
        number => Ok(number),
    }
}

fn end_of_line(line: &mut Cursor<'_>) -> Result<(), Fault> {
    match line.peek() {
        None => Ok(()),
        Some(b'/') if matches!(line.rest().get(1), Some(b'/' | b'*')) => {
            Err(Fault::new(line.column(), Reason::CommentBehind))
        }
        Some(_) => Err(line.unexpected(expected_behind(line))),
    }
}

/// What to suggest in place of an unexpected item, depending on that item.
fn expected_behind(line: &Cursor<'_>) -> &'static str {
    let rest = line.rest();
    if [&b"tag"[..], b"cpu", b"nic"].iter().any(|word| rest.starts_with(word)) {
        "`tag`, `cpu` and `nic` in this order, each once; `calc` has only `cpu`"
    } else if rest.starts_with(b"}") {
        "`}` on a line of its own"
    } else {
        LINE_END
    }
}
