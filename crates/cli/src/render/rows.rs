//! Rows of a document as a table: what stands in each column, the row's own type says.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use quell_recording::columns::{Column, Columns, Importance, Unit, Value};

use super::table::time;
use crate::printer::{one_line, width};

/// A table of rows, as wide as the terminal has room for: columns of little importance are left out where it has not.
pub fn rows<'a, T: Columns + 'a>(rows: impl IntoIterator<Item = &'a T>) -> String {
    let rows: Vec<Vec<Value>> = rows.into_iter().map(Columns::values).collect();
    fitting(&T::columns(), &rows, usize::from(width()))
}

fn fitting(columns: &[Column], rows: &[Vec<Value>], room: usize) -> String {
    let shown = |most: Importance| {
        let chosen: Vec<usize> = (0..columns.len()).filter(|&at| columns[at].importance <= most).collect();
        drawn(columns, rows, &chosen)
    };
    let whole = shown(Importance::Minor);
    let fits = |text: &str| text.lines().all(|line| line.chars().count() <= room);
    let narrower = [Importance::Usual, Importance::Key].into_iter();
    if fits(&whole) { whole } else { narrower.map(shown).find(|text| fits(text)).unwrap_or(whole) }
}

fn drawn(columns: &[Column], rows: &[Vec<Value>], chosen: &[usize]) -> String {
    let mut table = Table::new();
    let style = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    table.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(chosen.iter().map(|&at| columns[at].title.as_str()));
    table.add_rows(
        rows.iter().map(|row| chosen.iter().map(|&at| cell(&columns[at], &row[at])).collect::<Vec<_>>()),
    );
    for (at, shown) in table.column_iter_mut().enumerate() {
        // The first column names the row, and stands left whatever it is.
        if at > 0 && !matches!(columns[chosen[at]].unit, Unit::Words | Unit::Name) {
            shown.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// A value as its column writes it: the one place in which numbers of tables become text.
pub fn cell(column: &Column, value: &Value) -> String {
    let number = |number: f64| match column.unit {
        Unit::Time => time(number),
        Unit::Count => format!("{number:.0}"),
        _ => format!("{number:.*}", column.precision),
    };
    match value {
        Value::Absent => column.absent.to_owned(),
        Value::U64(0) if column.zero => column.absent.to_owned(),
        Value::F64(0.0) if column.zero => column.absent.to_owned(),
        Value::U64(count) if column.unit == Unit::Count => count.to_string(),
        Value::U64(count) => number(*count as f64),
        Value::F64(value) => number(*value),
        Value::Interval([low, high]) => format!("{} – {}", number(*low), number(*high)),
        Value::Flag(yes) => column.yes_no[usize::from(!yes)].to_owned(),
        Value::Text(text) => one_line(text),
    }
}
