//! Finds the position of operations in a text.

use std::io::BufRead;

use super::error::{Fault, Reason, TextError, shown};
use super::line::{Cursor, Lines};
use super::statement::{Parser, Statement};
use crate::goal::finding::Place;

/// Finds the line and label of operations, given as rank and number in the rank (from 0), in a second pass over their text.
/// The places have the order of `wanted`; `None` where the text has no such operation.
///
/// # Errors
/// [`TextError`] when reading fails, or where a line is not even a statement: the text is not that of the schedule.
pub fn locate(input: impl BufRead, wanted: &[(u32, u32)]) -> Result<Vec<Option<Place>>, TextError> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_unstable_by_key(|&index| wanted[index]);
    let mut order = order.into_iter().peekable();
    let mut places = vec![None; wanted.len()];
    let mut lines = Lines::new(input);
    let mut parser = Parser::default();
    let mut here = (0, 0);
    while let Some((number, line)) = lines.next()? {
        let mut cursor = Cursor::new(line);
        while let Some((_, statement)) = parser.next(&mut cursor).map_err(|fault| fault.in_line(number))? {
            match statement {
                Statement::Rank(rank) => here = (rank, 0),
                Statement::Op { label, .. } => {
                    while order.next_if(|&index| wanted[index] < here).is_some() {}
                    while let Some(index) = order.next_if(|&index| wanted[index] == here) {
                        places[index] = Some(Place { line: number, label: label.map(shown) });
                    }
                    here.1 = next_number(here.1).map_err(|fault| fault.in_line(number))?;
                }
                _ => (),
            }
        }
        if order.peek().is_none() {
            break;
        }
    }
    Ok(places)
}

fn next_number(number: u32) -> Result<u32, Fault> {
    let too_many = || Fault::new(0, Reason::Op(crate::goal::defect::Defect::TooMany));
    number.checked_add(1).ok_or_else(too_many)
}
