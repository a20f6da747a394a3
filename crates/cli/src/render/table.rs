//! Tables for a terminal.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

pub use quell_request::time;

/// A table with right-aligned columns after the first.
pub fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    table_with_words(1, header, rows)
}

/// A table whose first `words` columns are left-aligned; the others are right-aligned.
pub fn table_with_words(words: usize, header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    aligned(header, rows, |at| at >= words)
}

/// A table in which `right` gives the columns that are right-aligned.
pub fn aligned(
    header: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    right: impl Fn(usize) -> bool,
) -> String {
    let mut table = Table::new();
    let style = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    table.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.iter().copied());
    table.add_rows(rows);
    for (at, column) in table.column_iter_mut().enumerate() {
        if right(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // The last column needs no trailing spaces.
    table.to_string().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
