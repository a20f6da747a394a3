//! The reference page of columns: the meaning of each column in tables on the terminal, on HTML pages and in sweeps.

use std::collections::BTreeMap;

use schemars::Schema;
use serde_json::Value;

/// A kind of row, and its columns: title, field, unit, meaning.
type Tables<'a> = BTreeMap<&'a str, (Vec<&'a str>, &'a Value)>;

const HEAD: &str = "# Columns\n\n\
    What the columns of tables mean, in the terminal, on pages and in the datasets of sweeps, and the field of `--json` that has the figure. \
    Fields without a column are in the [schemas](schemas/).\n";

/// Generates the page from the schemas, by their names.
pub fn page(schemas: &[(&str, Schema)]) -> String {
    let mut tables: Tables<'_> = BTreeMap::new();
    for (document, schema) in schemas {
        let Some(defined) = schema.get("$defs").and_then(Value::as_object) else { continue };
        for (name, row) in defined.iter().filter(|(_, row)| has_columns(row)) {
            tables.entry(name).or_insert_with(|| (Vec::new(), row)).0.push(document);
        }
    }
    let sections = tables.iter().map(|(name, (documents, row))| section(name, documents, row));
    std::iter::once(HEAD.to_owned()).chain(sections).collect()
}

fn has_columns(row: &Value) -> bool {
    fields(row).next().is_some()
}

/// The fields that are columns, in their order in the row.
fn fields(row: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = row["properties"].as_object().into_iter().flatten();
    properties.filter(|(_, field)| field.get("x-column").is_some())
}

fn section(name: &str, documents: &[&str], row: &Value) -> String {
    let all: Vec<String> = documents.iter().map(|one| format!("[`{one}`](schemas/{one}.json)")).collect();
    let about = row["description"].as_str().unwrap_or_default();
    let mut text = format!("\n## {name}\n\n{} In {}.\n\n", one_line(about), all.join(", "));
    text += "| column | field | unit | means |\n|---|---|---|---|\n";
    for (field, facts) in fields(row) {
        let column = &facts["x-column"];
        let title = column["title"].as_str().unwrap_or(field);
        let unit = column["unit"].as_str().unwrap_or_default();
        let meaning = one_line(facts["description"].as_str().unwrap_or_default());
        text += &format!("| {} | `{field}` | {unit} | {meaning} |\n", one_line(title));
    }
    text
}

/// Text as a table cell: on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use quell_analysis::predict::Prediction;
    use schemars::schema_for;

    use super::page;

    #[test]
    fn a_described_row_is_a_table_that_names_its_documents() {
        let page = page(&[("predict", schema_for!(Prediction)), ("again", schema_for!(Prediction))]);
        assert!(
            page.contains(
                "## Point\n\nThe prediction for one scale. In [`predict`](schemas/predict.json), [`again`]"
            ),
            "{page}"
        );
        assert!(page.contains("| 95 % interval | `ci95_percent` |"), "{page}");
        assert!(!page.contains("## Prediction\n"), "what has no columns is no table");
    }
}
