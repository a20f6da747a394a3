//! From a schedule to text that `txt2bin` reads.

use std::io::{self, Write};

use crate::goal::rank_part::{AT_START, DEPENDENT, RankPart, has_peer};
use crate::goal::schedule::Schedule;
use crate::loggops::{ANY, Kind, Program, Shape};

/// Size of the pieces in which text is written, in bytes.
const PIECE: usize = 1 << 16;

/// Writes a schedule as text. Labels are `l1`, `l2` and so on in each rank. Reading it gives an equal schedule.
///
/// # Errors
/// Those of `out`.
pub fn write_text(schedule: &Schedule, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Text { piece: Vec::with_capacity(2 * PIECE), out };
    text.words(b"num_ranks ", schedule.ranks().into());
    text.line()?;
    for rank in 0..schedule.ranks() {
        text.words(b"\nrank ", rank.into());
        text.piece.extend_from_slice(b" {");
        text.line()?;
        if in_order(&schedule.part(rank)) {
            needs_behind_each(schedule, rank, &mut text)?;
        } else {
            needs_behind_all(schedule, rank, &mut text)?;
        }
        text.piece.push(b'}');
        text.line()?;
    }
    text.out.write_all(&text.piece)
}

/// Whether the dependents of each operation have ascending numbers above its own. Then dependencies may
/// follow their dependents, which is easier to read, and no order is lost.
fn in_order(part: &RankPart<'_>) -> bool {
    (0..part.ops.len()).all(|op| {
        let edges = part.edges_of(op);
        // Dependents of the start come after those of the end, and AT_START makes them larger.
        edges.is_sorted() && edges.iter().all(|edge| (edge & DEPENDENT) as usize > op)
    })
}

fn needs_behind_each(schedule: &Schedule, rank: u32, text: &mut Text<'_>) -> io::Result<()> {
    for op in schedule.rank_ops(rank).iter() {
        text.op(op.number, op.shape, op.peer)?;
        for &on in op.requires {
            text.dependency(op.number, on, false)?;
        }
        for &on in op.irequires {
            text.dependency(op.number, on, true)?;
        }
    }
    Ok(())
}

fn needs_behind_all(schedule: &Schedule, rank: u32, text: &mut Text<'_>) -> io::Result<()> {
    let part = schedule.part(rank);
    for (number, op) in part.ops.iter().enumerate() {
        text.op(number as u32, schedule.shapes[op.shape as usize], op.peer)?;
    }
    for on in 0..part.ops.len() {
        for edge in part.edges_of(on) {
            text.dependency(edge & DEPENDENT, on as u32, edge & AT_START != 0)?;
        }
    }
    Ok(())
}

struct Text<'a> {
    piece: Vec<u8>,
    out: &'a mut dyn Write,
}

impl Text<'_> {
    fn op(&mut self, number: u32, shape: Shape, peer: u32) -> io::Result<()> {
        self.words(b"l", u64::from(number) + 1);
        self.words(verb(shape.kind), shape.size);
        if has_peer(shape.kind) {
            self.number_or_any(if shape.kind == Kind::Send { b"b to " } else { b"b from " }, peer);
            self.number_or_any(b" tag ", shape.tag);
        }
        if shape.cpu != 0 {
            self.words(b" cpu ", shape.cpu.into());
        }
        if shape.nic != 0 {
            self.words(b" nic ", shape.nic.into());
        }
        self.line()
    }

    fn dependency(&mut self, dependent: u32, on: u32, at_start: bool) -> io::Result<()> {
        self.words(b"l", u64::from(dependent) + 1);
        self.words(if at_start { b" irequires l" } else { b" requires l" }, u64::from(on) + 1);
        self.line()
    }

    fn number_or_any(&mut self, words: &[u8], number: u32) {
        match number {
            ANY => {
                self.piece.extend_from_slice(words);
                self.piece.extend_from_slice(b"-1");
            }
            number => self.words(words, number.into()),
        }
    }

    /// Writes words and the number after them.
    fn words(&mut self, words: &[u8], mut number: u64) {
        self.piece.extend_from_slice(words);
        let mut digits = [0; 20];
        let mut begin = digits.len();
        loop {
            begin -= 1;
            digits[begin] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.piece.extend_from_slice(&digits[begin..]);
    }

    fn line(&mut self) -> io::Result<()> {
        self.piece.push(b'\n');
        if self.piece.len() >= PIECE {
            self.out.write_all(&self.piece)?;
            self.piece.clear();
        }
        Ok(())
    }
}

fn verb(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Send => b": send ",
        Kind::Recv => b": recv ",
        Kind::Calc => b": calc ",
    }
}
