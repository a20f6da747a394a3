//! Renders rows of a document as a table; the row's type declares its columns.

use quell_recording::columns::{Column, Columns, Importance, Unit, Value};

use super::table::{aligned, time};
use crate::printer::{cut, one_line, width};

/// Maximum length of a name, in characters.
const LONGEST_NAME: usize = 40;

/// A table of rows. On a narrow terminal, columns of minor importance are left out.
pub fn rows<'a, T: Columns + 'a>(rows: impl IntoIterator<Item = &'a T>) -> String {
    let rows: Vec<Vec<Value>> = rows.into_iter().map(Columns::values).collect();
    fitting(&T::columns(), &rows, usize::from(width()))
}

fn fitting(columns: &[Column], rows: &[Vec<Value>], room: usize) -> String {
    let shown = |most: Importance| {
        let wanted =
            |at: usize| columns[at].importance <= most && (!columns[at].filled || has_value(rows, at));
        let chosen: Vec<usize> = (0..columns.len()).filter(|&at| wanted(at)).collect();
        drawn(columns, rows, &chosen)
    };
    let whole = shown(Importance::Minor);
    let fits = |text: &str| text.lines().all(|line| line.chars().count() <= room);
    let key = columns.iter().any(|column| column.importance == Importance::Key);
    let narrower = [Some(Importance::Usual), key.then_some(Importance::Key)].into_iter().flatten();
    if fits(&whole) { whole } else { narrower.map(shown).find(|text| fits(text)).unwrap_or(whole) }
}

fn has_value(rows: &[Vec<Value>], at: usize) -> bool {
    rows.iter().any(|row| row[at] != Value::Absent)
}

fn drawn(columns: &[Column], rows: &[Vec<Value>], chosen: &[usize]) -> String {
    let header: Vec<&str> = chosen.iter().map(|&at| columns[at].title.as_str()).collect();
    let cells = |row: &Vec<Value>| chosen.iter().map(|&at| cell(&columns[at], &row[at])).collect();
    // The first column names the row, and is always left-aligned.
    let right = |at: usize| at > 0 && !matches!(columns[chosen[at]].unit, Unit::Words | Unit::Name);
    aligned(&header, rows.iter().map(cells), right)
}

/// A value in the format of its column: the only place where numbers in tables become text.
pub fn cell(column: &Column, value: &Value) -> String {
    let shown = match value {
        Value::Absent => return column.absent.to_owned(),
        Value::U64(0) if column.zero => return column.absent.to_owned(),
        Value::F64(0.0) if column.zero => return column.absent.to_owned(),
        Value::U64(count) if matches!(column.unit, Unit::Count | Unit::Id) => count.to_string(),
        Value::U64(count) => number(column, *count as f64),
        Value::F64(value) => number(column, *value),
        Value::Interval([low, high]) => format!("{} – {}", number(column, *low), number(column, *high)),
        Value::Flag(yes) => column.yes_no[usize::from(!yes)].to_owned(),
        Value::Text(text) if column.unit == Unit::Name => name(text),
        Value::Text(text) => one_line(text),
    };
    shown + column.suffix
}

fn number(column: &Column, value: f64) -> String {
    // Adding zero turns a negative zero into a positive one.
    let value = value + 0.0;
    match column.unit {
        Unit::Time if value < 0.0 => format!("-{}", time(-value)),
        Unit::Time => time(value),
        Unit::Count | Unit::Id => format!("{value:.0}"),
        Unit::Points => points(value),
        _ if column.plus => format!("{value:+.*}", column.precision),
        _ => format!("{value:.*}", column.precision),
    }
}

/// A percentage, or percentage points, with as many digits as are significant to a reader.
pub fn points(value: f64) -> String {
    let value = value + 0.0;
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// A name from outside quell, made safe for a cell.
pub fn name(text: &str) -> String {
    cut(&one_line(text), LONGEST_NAME)
}
