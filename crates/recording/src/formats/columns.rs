//! Comma-separated text whose first line names the columns.

use super::printable;

/// The header of a table with required columns, in any order.
pub(super) struct Header {
    places: Vec<usize>,
}

impl Header {
    /// Passes each row to a function.
    pub fn read(
        text: &str,
        columns: &[&'static str],
        mut each: impl FnMut(Fields<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut header: Option<Self> = None;
        for (index, row) in text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()) {
            let line = index + 1;
            let mut fields = Vec::new();
            if !split(row, &mut fields) {
                return Err(format!("line {line}: a quotation mark is not closed"));
            }
            match &header {
                None => {
                    let place = |name: &&str| {
                        let found = fields.iter().position(|field: &String| field.trim() == *name);
                        found.ok_or_else(|| format!("line {line}: the column `{name}` is missing"))
                    };
                    header = Some(Self { places: columns.iter().map(place).collect::<Result<_, _>>()? });
                }
                Some(header) => each(Fields { line, places: &header.places, fields: &fields })?,
            }
        }
        Ok(())
    }
}

/// Splits a line into fields; false if a quotation mark is not closed.
pub(super) fn split(line: &str, fields: &mut Vec<String>) -> bool {
    let mut field = String::new();
    let (mut quoted, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            _ => field.push(c),
        }
    }
    fields.push(field);
    !quoted
}

/// A row of such a table.
pub(super) struct Fields<'a> {
    line: usize,
    places: &'a [usize],
    fields: &'a [String],
}

impl Fields<'_> {
    /// An error message for this row.
    pub fn wrong(&self, reason: &str) -> String {
        format!("line {}: {reason}", self.line)
    }

    pub fn text(&self, column: usize) -> Result<&str, String> {
        let place = self.places[column];
        let field = self.fields.get(place).map(String::as_str);
        field.ok_or_else(|| self.wrong(&format!("column {} is missing", place + 1)))
    }

    pub fn number(&self, column: usize) -> Result<u64, String> {
        let text = self.text(column)?.trim();
        text.parse().map_err(|_| self.wrong(&format!("`{}` is not a whole number", printable(text))))
    }

    pub fn small(&self, column: usize) -> Result<u32, String> {
        let number = self.number(column)?;
        u32::try_from(number).map_err(|_| self.wrong(&format!("{number} has more than 32 bits")))
    }
}
