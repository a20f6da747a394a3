//! Renders rows of a document as a table; the row's type declares its columns.

use quell_recording::columns::{Column, Columns, Importance, Unit, Value};

use super::table::{aligned, time};
use crate::printer::{cut, one_line, width};

/// Maximum length of a name, in characters.
const LONGEST_NAME: usize = 40;

/// A table of rows. On a narrow terminal the least important columns are left out, and named below the table.
pub fn rows<'a, T: Columns + 'a>(rows: impl IntoIterator<Item = &'a T>) -> String {
    let rows: Vec<Vec<Value>> = rows.into_iter().map(Columns::values).collect();
    fitting(&T::columns(), &rows, usize::from(width()))
}

/// As [`rows`], in this many columns of a terminal.
pub fn fitting(columns: &[Column], rows: &[Vec<Value>], room: usize) -> String {
    let shown = |at: &usize| {
        columns[*at].importance <= Importance::Minor && (!columns[*at].filled || has_value(rows, *at))
    };
    let mut chosen: Vec<usize> = (0..columns.len()).filter(shown).collect();
    let mut left_out = Vec::new();
    let mut text = drawn(columns, rows, &chosen);
    while text.lines().any(|line| line.chars().count() > room)
        && let Some(place) = least_important(columns, &chosen)
    {
        left_out.push(chosen.remove(place));
        text = drawn(columns, rows, &chosen);
    }
    text + &not_shown(columns, left_out, room)
}

/// Names the columns that a table of this width has no room for.
pub fn not_shown(columns: &[Column], mut left_out: Vec<usize>, room: usize) -> String {
    left_out.sort_unstable();
    let titles: Vec<&str> = left_out.iter().map(|&at| columns[at].title.as_str()).collect();
    if titles.is_empty() {
        return String::new();
    }
    format!("Not shown in {room} columns: {}\n", titles.join(", "))
}

/// The place of the least important column, of equal ones the last; `None` if only the first is left.
pub fn least_important(columns: &[Column], chosen: &[usize]) -> Option<usize> {
    (1..chosen.len()).max_by_key(|&place| (columns[chosen[place]].importance, place))
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
