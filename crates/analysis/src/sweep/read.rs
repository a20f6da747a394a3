//! Reads the text of a plan: TOML, which is untrusted text.

use quell_recording::results::{Cell, Kind};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::axis::{Axis, AxisKind, Sets, SweepSpec, SweepValue, Value};
use super::{MOST_BYTES, MOST_VALUES};

/// Why a text is not a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct SweepError {
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// What is wrong, and what to write.
    pub reason: String,
}

/// The content of the text.
pub(super) struct Written {
    pub(super) name: Option<String>,
    pub(super) chunk: Option<u64>,
    pub(super) axes: Vec<Axis>,
}

/// Reads the text; the axes are returned in the form's order.
pub(super) fn read(text: &str, form: &SweepSpec) -> Result<Written, SweepError> {
    if text.len() > MOST_BYTES {
        let reason = format!("the file has {} bytes, and {MOST_BYTES} are the most", text.len());
        return Err(SweepError { line: None, reason });
    }
    let lines = Lines(text);
    let document = DeTable::parse(text).map_err(|error| lines.refuse(error.span(), error.message()))?;
    let mut written = Written { name: None, chunk: None, axes: Vec::new() };
    for (key, value) in document.get_ref() {
        let refuse =
            |reason: String| lines.refuse(Some(value.span()), &format!("{}: {reason}", key.get_ref()));
        match key.get_ref().as_ref() {
            "name" => written.name = Some(text_of(value.get_ref()).map_err(refuse)?),
            "chunk" => written.chunk = Some(chunk(value.get_ref()).map_err(refuse)?),
            name => {
                let kind = form.axes.iter().find(|kind| kind.name == name);
                let kind = kind.ok_or_else(|| lines.refuse(Some(key.span()), &unknown(name, form)))?;
                let values = values(value, kind, &lines)?;
                let line = Some(lines.line_at(key.span().start));
                written.axes.push(Axis { kind, values, line });
            }
        }
    }
    for kind in form.axes {
        if let (false, Some(word)) =
            (written.axes.iter().any(|axis| axis.kind.name == kind.name), kind.default)
        {
            let values = words(word, kind).map_err(|reason| SweepError { line: None, reason })?;
            written.axes.push(Axis { kind, values, line: None });
        }
    }
    let place = |axis: &Axis| form.axes.iter().position(|kind| kind.name == axis.kind.name);
    written.axes.sort_by_key(place);
    Ok(written)
}

fn unknown(name: &str, form: &SweepSpec) -> String {
    let known: Vec<&str> = form.axes.iter().map(|kind| kind.name).collect();
    format!("there is no axis `{name}`: these are {}; and `name` and `chunk`", known.join(", "))
}

/// Finds the line of a position in the text.
struct Lines<'a>(&'a str);

impl Lines<'_> {
    fn line_at(&self, place: usize) -> usize {
        self.0.bytes().take(place).filter(|byte| *byte == b'\n').count() + 1
    }

    fn refuse(&self, span: Option<std::ops::Range<usize>>, reason: &str) -> SweepError {
        SweepError { line: span.map(|span| self.line_at(span.start)), reason: reason.to_owned() }
    }
}

fn chunk(value: &DeValue<'_>) -> Result<u64, String> {
    let n = value.as_integer().filter(|n| n.radix() == 10).and_then(|n| n.as_str().parse().ok());
    n.filter(|n| (1..=1_000_000).contains(n)).ok_or_else(|| "give the points of a file, 1 to 1000000".into())
}

/// The values of an axis, without duplicates.
fn values(
    written: &Spanned<DeValue<'_>>,
    kind: &'static AxisKind,
    lines: &Lines<'_>,
) -> Result<Vec<Value>, SweepError> {
    let list = written.get_ref().as_array().map_or_else(|| vec![written], |array| array.iter().collect());
    let refuse = |at: &Spanned<DeValue<'_>>, reason: &str| {
        lines.refuse(Some(at.span()), &format!("{}: {reason}", kind.name))
    };
    let mut seen = std::collections::HashSet::new();
    let mut values = Vec::new();
    for element in list {
        let new = read_element(element.get_ref(), kind).map_err(|reason| refuse(element, &reason))?;
        values.extend(new.into_iter().filter(|value| seen.insert(value.words.clone())));
        if values.len() > MOST_VALUES {
            return Err(refuse(
                element,
                &format!("it has more than the {MOST_VALUES} values that an axis may have"),
            ));
        }
    }
    if values.is_empty() {
        return Err(refuse(written, "it has no values: give at least one, or leave it out"));
    }
    Ok(values)
}

/// The values that one element of the list represents.
fn read_element(element: &DeValue<'_>, kind: &AxisKind) -> Result<Vec<Value>, String> {
    let Some(set) = element.as_array() else { return words(&text_of(element)?, kind) };
    if kind.sets == Sets::No {
        return Err("a value is one word here, not a list".into());
    }
    if kind.sets == Sets::Filled && set.is_empty() {
        return Err("a value needs at least one word".into());
    }
    let mut all = Vec::new();
    for word in set {
        all.extend((kind.read)(&text_of(word.get_ref())?)?);
    }
    Ok(vec![set_of(all)])
}

/// The values that a single word represents.
fn words(text: &str, kind: &AxisKind) -> Result<Vec<Value>, String> {
    let words = (kind.read)(text)?;
    if kind.sets == Sets::No {
        return Ok(words.into_iter().map(|word| Value { words: vec![word.text], cell: word.cell }).collect());
    }
    // An empty text is the default of sets that may be empty.
    if text.is_empty() && kind.sets == Sets::Any {
        Ok(vec![set_of(Vec::new())])
    } else {
        Ok(vec![set_of(words)])
    }
}

fn set_of(words: Vec<SweepValue>) -> Value {
    let words: Vec<String> = words.into_iter().map(|word| word.text).collect();
    Value { cell: Cell::Text(words.join(", ")), words }
}

/// A word: a string, or a value that needs no quotes.
fn text_of(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(n) if n.radix() == 10 => Ok(n.as_str().to_owned()),
        DeValue::Float(x) => Ok(x.as_str().to_owned()),
        DeValue::Boolean(yes) => Ok(yes.to_string()),
        DeValue::Integer(_) => Err("write the number in decimal".into()),
        DeValue::Datetime(_) => Err("a date is no value here".into()),
        DeValue::Table(_) => Err("a table is no value here: give a list".into()),
        DeValue::Array(_) => Err("lists go no deeper here".into()),
    }
}

impl AxisKind {
    /// An axis of text whose column has the same name; the other fields are set individually.
    pub const fn text(name: &'static str, read: fn(&str) -> Result<Vec<SweepValue>, String>) -> Self {
        Self {
            name,
            column: name,
            kind: Kind::Text,
            read,
            sets: Sets::No,
            paths: super::Paths::No,
            default: None,
            decides: false,
        }
    }
}
