//! Rows of documents, described once: the tables of terminal and page, the columns of sweeps, the schemas and Python use this description.
//!
//! A row is a struct with `#[derive(Columns)]`; each field with `#[column]` is a column. The field's doc comment is its meaning. Its name and type
//! determine the rest, unless the attribute does:
//!
//! | option | meaning |
//! |---|---|
//! | `title = "…"` | its heading, if not the field's name |
//! | `time`, `count`, `id`, `percent`, `points`, `number`, `words`, `name` | its [`Unit`], if not that of its name (`_ns`, `_percent`) or type; text with the unit of a number stands to the right |
//! | `precision = 2` | digits after the point of percentages and numbers |
//! | `suffix = " %"` | text after each value |
//! | `plus` | values above 0 get a plus sign |
//! | `key`, `minor`, `page`, `data` | its [`Importance`], if it is not `Usual` |
//! | `sweep`, `sweep = "…"` | a sweep's dataset includes it, under this name if not the field's |
//! | `absent = "…"`, `yes = "…"`, `no = "…"` | the text for an absent value, for true and for false |
//! | `zero` | 0 counts as an absent value |
//! | `filled` | it is omitted if no row has a value |
//! | `with = path` | a function that takes a reference to the field and returns the value to show |
//! | `flatten`, `nested` | the columns of a row within the row, whose fields are flat in JSON, or below this field; `title` is prepended to theirs |
//!
//! A field with two attributes makes two columns. A name in `#[serde(rename = "…")]` is also that of its column.

pub use quell_columns::Columns;
use serde::Serialize;

use crate::results::{Cell, Kind};

/// A struct that is a row of a table.
pub trait Columns {
    /// Its columns, in order.
    fn columns() -> Vec<Column>;
    /// Its values: one for each column, in the same order.
    fn values(&self) -> Vec<Value>;
}

impl<T: Columns> Columns for &T {
    fn columns() -> Vec<Column> {
        T::columns()
    }

    fn values(&self) -> Vec<Value> {
        T::values(self)
    }
}

/// The description of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its name in JSON; below another field, both names with a point between them.
    pub field: String,
    /// Its heading.
    pub title: String,
    /// The kind of its values.
    pub kind: ValueKind,
    /// The format of its values.
    pub unit: Unit,
    /// Digits after the decimal point, for percentages and numbers.
    pub precision: usize,
    /// Text after each value.
    pub suffix: &'static str,
    /// Whether values above 0 get a plus sign.
    pub plus: bool,
    /// Where it is shown.
    pub importance: Importance,
    /// Its name in the dataset of a sweep, if it is part of it.
    #[serde(skip)]
    pub sweep: Option<&'static str>,
    /// Text for an absent value.
    pub absent: &'static str,
    /// Whether 0 counts as an absent value.
    pub zero: bool,
    /// Whether it is omitted if no row has a value.
    #[serde(skip)]
    pub filled: bool,
    /// Whether its values are computed from the field.
    #[serde(skip)]
    pub computed: bool,
    /// Text for true, and for false.
    pub yes_no: [&'static str; 2],
    /// Its meaning, in a sentence.
    pub meaning: &'static str,
}

impl Column {
    /// The column below a field of another row, whose title is prepended.
    #[must_use]
    pub fn within(mut self, field: &str, title: &str) -> Self {
        self.field = format!("{field}.{}", self.field);
        self.title = format!("{title} {}", self.title).trim().to_owned();
        self
    }
}

/// The format of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds, written as `1.5ms`.
    Time,
    /// Whole numbers.
    Count,
    /// Whole numbers that identify something: a CPU, a rank, a process.
    Id,
    /// Percent, without the sign.
    Percent,
    /// Percent or percentage points, with two digits after the decimal point below 100 and none from 100 on.
    Points,
    /// Numbers.
    Number,
    /// Text, left-aligned.
    Words,
    /// Text that others chose, such as the name of a process, left-aligned.
    Name,
    /// Yes or no.
    Flag,
}

/// Where a column is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Importance {
    /// Everywhere, however narrow the terminal is.
    Key,
    /// Everywhere.
    Usual,
    /// Everywhere, but omitted first in a narrow terminal.
    Minor,
    /// Only on the page.
    Page,
    /// Only in JSON and in sweeps.
    Data,
}

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Absent,
    /// A whole number; a time in nanoseconds.
    U64(u64),
    /// A number.
    F64(f64),
    /// An interval, low and high.
    Interval([f64; 2]),
    /// Yes or no.
    Flag(bool),
    /// Text.
    Text(String),
}

/// The kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// Whole numbers.
    U64,
    /// Numbers.
    F64,
    /// Intervals.
    Interval,
    /// Yes or no.
    Flag,
    /// Text.
    Text,
}

/// A type that can be a value in a column.
pub trait AsValue {
    /// Its kind.
    const KIND: ValueKind;
    /// Converts to a value.
    fn value(&self) -> Value;
}

macro_rules! whole {
    ($($kind:ty),*) => {$(
        impl AsValue for $kind {
            const KIND: ValueKind = ValueKind::U64;

            fn value(&self) -> Value {
                Value::U64(*self as u64)
            }
        }
    )*};
}

whole!(u8, u16, u32, u64, usize);

impl AsValue for f64 {
    const KIND: ValueKind = ValueKind::F64;

    fn value(&self) -> Value {
        Value::F64(*self)
    }
}

/// A difference of times, possibly negative; exact up to 2^53.
impl AsValue for i64 {
    const KIND: ValueKind = ValueKind::F64;

    fn value(&self) -> Value {
        Value::F64(*self as f64)
    }
}

impl AsValue for [f64; 2] {
    const KIND: ValueKind = ValueKind::Interval;

    fn value(&self) -> Value {
        Value::Interval(*self)
    }
}

impl AsValue for bool {
    const KIND: ValueKind = ValueKind::Flag;

    fn value(&self) -> Value {
        Value::Flag(*self)
    }
}

impl AsValue for String {
    const KIND: ValueKind = ValueKind::Text;

    fn value(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl AsValue for &str {
    const KIND: ValueKind = ValueKind::Text;

    fn value(&self) -> Value {
        Value::Text((*self).to_owned())
    }
}

impl<T: AsValue> AsValue for Option<T> {
    const KIND: ValueKind = T::KIND;

    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Absent, AsValue::value)
    }
}

/// The kind of the values that a `with` function returns.
pub fn kind_of<T: ?Sized, V: AsValue>(_: impl Fn(&T) -> V) -> ValueKind {
    V::KIND
}

/// A row within a row, which can be absent.
pub trait Flat {
    /// Its columns.
    fn columns() -> Vec<Column>;
    /// Its values.
    fn values(&self) -> Vec<Value>;
}

impl<T: Columns> Flat for T {
    fn columns() -> Vec<Column> {
        <T as Columns>::columns()
    }

    fn values(&self) -> Vec<Value> {
        Columns::values(self)
    }
}

impl<T: Columns> Flat for Option<T> {
    fn columns() -> Vec<Column> {
        <T as Columns>::columns()
    }

    fn values(&self) -> Vec<Value> {
        self.as_ref().map_or_else(|| vec![Value::Absent; <T as Columns>::columns().len()], Columns::values)
    }
}

/// Adds `x-column` to the schema of each property that a column shows unchanged: its title, unit and digits. For
/// `#[schemars(transform = describe::<Self>)]`.
pub fn describe<T: Columns>(schema: &mut schemars::Schema) {
    let properties = schema.as_object_mut().and_then(|object| object.get_mut("properties")?.as_object_mut());
    let Some(properties) = properties else { return };
    for column in T::columns().into_iter().filter(|column| !column.computed) {
        let Some(property) = properties.get_mut(&column.field).and_then(serde_json::Value::as_object_mut)
        else {
            continue;
        };
        let about = serde_json::json!({
            "title": column.title, "unit": column.unit, "precision": column.precision,
        });
        // If a field has two columns, the first one describes it.
        property.entry("x-column").or_insert(about);
    }
}

/// Name and kind of the columns that these rows have in a sweep's dataset. An interval has two: `ci95` in its name becomes `ci95_low` and
/// `ci95_high`.
pub fn sweep_columns<T: Columns>() -> Vec<(String, Kind)> {
    let swept = T::columns().into_iter().filter_map(|column| Some((column.kind, column.sweep?)));
    swept
        .flat_map(|(kind, name)| match kind {
            ValueKind::U64 => vec![(name.to_owned(), Kind::U64)],
            ValueKind::F64 => vec![(name.to_owned(), Kind::F64)],
            ValueKind::Flag => vec![(name.to_owned(), Kind::Bool)],
            ValueKind::Text => vec![(name.to_owned(), Kind::Text)],
            ValueKind::Interval => ["low", "high"].map(|end| (end_of(name, end), Kind::F64)).to_vec(),
        })
        .collect()
}

/// The name for one end of an interval: `ci95_percent` becomes `ci95_low_percent`.
fn end_of(name: &str, end: &str) -> String {
    match name.rsplit_once('_') {
        Some((stem, unit)) => format!("{stem}_{end}_{unit}"),
        None => format!("{name}_{end}"),
    }
}

/// A row's cells in a sweep's dataset: one for each of [`sweep_columns`].
pub fn sweep_cells<T: Columns>(row: &T) -> Vec<Cell> {
    let swept = T::columns().into_iter().zip(row.values()).filter(|(column, _)| column.sweep.is_some());
    swept
        .flat_map(|(column, value)| match value {
            Value::Absent if column.kind == ValueKind::Interval => vec![Cell::Empty, Cell::Empty],
            Value::Absent => vec![Cell::Empty],
            Value::U64(number) => vec![Cell::U64(number)],
            Value::F64(number) => vec![Cell::F64(number)],
            Value::Interval(ends) => ends.map(Cell::F64).to_vec(),
            Value::Flag(yes) => vec![Cell::Bool(yes)],
            Value::Text(text) => vec![Cell::Text(text)],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    // `Flat` is not imported, because its functions have the same names.
    use serde::Serialize;

    use super::{Columns, Importance, Unit, Value, ValueKind, describe, sweep_cells, sweep_columns};
    use crate::results::Cell;

    /// A row for the tests.
    #[derive(Columns, Serialize)]
    struct Row {
        /// Ranks, one per CPU.
        #[column(key)]
        ranks: u64,
        /// Its cost.
        #[column(sweep)]
        slowdown_percent: f64,
        /// Its interval.
        #[column(title = "95 % interval", sweep, absent = "not resampled")]
        ci95_percent: Option<[f64; 2]>,
        /// The mean.
        #[column(minor, sweep = "mean")]
        mean_phase_ns: f64,
        #[column(nested, title = "that it")]
        more: Option<More>,
        #[column(with = shout)]
        name: String,
        /// Its id, and half of it.
        #[serde(rename = "pid")]
        #[column(id, filled)]
        #[column(title = "half", percent, with = half, suffix = " %", plus)]
        process: u32,
        // Not a column.
        _ignored: u8,
    }

    /// A row that can be absent.
    #[derive(Columns, Serialize)]
    struct More {
        /// Whether it holds.
        #[column(title = "holds", yes = "yes", no = "no: extrapolated", sweep)]
        supported: bool,
    }

    fn half(process: &u32) -> f64 {
        f64::from(*process) / 2.0
    }

    fn shout(name: &str) -> String {
        name.to_uppercase()
    }

    fn row(more: Option<More>) -> Row {
        let name = "a".to_owned();
        Row {
            ranks: 4,
            slowdown_percent: 1.5,
            ci95_percent: None,
            mean_phase_ns: 2.0,
            more,
            name,
            process: 3,
            _ignored: 0,
        }
    }

    #[test]
    fn a_column_follows_from_name_type_and_comment() {
        let columns = Row::columns();
        let titles: Vec<_> = columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(
            titles,
            ["ranks", "slowdown %", "95 % interval", "mean phase", "that it holds", "name", "pid", "half"]
        );
        let units: Vec<_> = columns.iter().map(|column| column.unit).collect();
        let numbers = [Unit::Count, Unit::Percent, Unit::Percent, Unit::Time];
        assert_eq!(units, [&numbers[..], &[Unit::Flag, Unit::Words, Unit::Id, Unit::Percent]].concat());
        assert_eq!((columns[4].field.as_str(), columns[6].field.as_str()), ("more.supported", "pid"));
        assert_eq!((columns[6].filled, columns[6].kind), (true, ValueKind::U64));
        assert_eq!((columns[7].suffix, columns[7].plus, columns[7].kind), (" %", true, ValueKind::F64));
        assert_eq!(columns[0].meaning, "Ranks, one per CPU.");
        assert_eq!((columns[0].importance, columns[3].importance), (Importance::Key, Importance::Minor));
        assert_eq!((columns[2].absent, columns[4].yes_no), ("not resampled", ["yes", "no: extrapolated"]));
    }

    #[test]
    fn values_stand_in_the_order_of_the_columns() {
        let values = row(Some(More { supported: true })).values();
        let text = Value::Text("A".into());
        let first = [Value::U64(4), Value::F64(1.5), Value::Absent, Value::F64(2.0), Value::Flag(true)];
        assert_eq!(values, [&first[..], &[text, Value::U64(3), Value::F64(1.5)]].concat());
        assert_eq!(row(None).values().len(), Row::columns().len());
    }

    #[test]
    fn a_schema_says_what_a_column_says() {
        let properties = serde_json::json!({"slowdown_percent": {"type": "number"}, "name": {}, "other": {}});
        let mut schema = schemars::json_schema!({"properties": properties});
        describe::<Row>(&mut schema);
        let about = &schema.as_value()["properties"]["slowdown_percent"]["x-column"];
        assert_eq!(*about, serde_json::json!({"title": "slowdown %", "unit": "percent", "precision": 2}));
        // A name that is shown in capitals differs from the one in JSON.
        for other in ["name", "other"] {
            assert!(schema.as_value()["properties"][other]["x-column"].is_null(), "{other}");
        }
    }

    #[test]
    fn a_sweep_has_what_is_marked_and_both_ends_of_an_interval() {
        let names: Vec<String> = sweep_columns::<Row>().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["slowdown_percent", "ci95_low_percent", "ci95_high_percent", "mean", "supported"]);
        let cells = sweep_cells(&Row { ci95_percent: Some([1.0, 2.0]), ..row(None) });
        assert_eq!(cells, [Cell::F64(1.5), Cell::F64(1.0), Cell::F64(2.0), Cell::F64(2.0), Cell::Empty]);
        assert_eq!(sweep_cells(&row(None)).len(), names.len());
    }
}
