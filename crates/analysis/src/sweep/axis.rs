//! Axes, and how a verb defines those that it supports.

use quell_recording::results::{Cell, Kind};

/// Whether a value of an axis is one word, or a set of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// One word.
    No,
    /// A word, or a list of at least one.
    Filled,
    /// A word, or a list that may be empty.
    Any,
}

/// Which words of an axis are paths of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// None of them.
    No,
    /// All of them.
    All,
    /// Words that end with `.toml`, or have that before an `@`.
    Toml,
}

impl Paths {
    /// The path within a word, and the rest of the word.
    pub fn within(self, word: &str) -> Option<(&str, &str)> {
        match self {
            Self::No => None,
            Self::All => Some((word, "")),
            Self::Toml if word.ends_with(".toml") => Some((word, "")),
            Self::Toml => {
                word.rfind('@').map(|at| word.split_at(at)).filter(|(path, _)| path.ends_with(".toml"))
            }
        }
    }
}

/// One word of a value in the plan: a canonical text, so that equal plans are equal, and the cell of its column.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepValue {
    /// The text as an argument of the verb's option.
    pub text: String,
    /// The cell of its column.
    pub cell: Cell,
}

/// An axis that a verb supports.
#[derive(Clone, Copy, Debug)]
pub struct AxisKind {
    /// Its key in the file: the name of the verb's option.
    pub name: &'static str,
    /// The name of its column.
    pub column: &'static str,
    /// The type of its column.
    pub kind: Kind,
    /// Parses a word of the file to the words that it represents: ranges represent several.
    pub read: fn(&str) -> Result<Vec<SweepValue>, String>,
    /// Whether a value may be a set of words.
    pub sets: Sets,
    /// Which words are paths.
    pub paths: Paths,
    /// The value if the file does not have the axis; without a default the plan then has no such axis.
    pub default: Option<&'static str>,
    /// Whether its value determines which other axes have an effect.
    pub decides: bool,
}

/// Looks up the value of a deciding axis by name.
pub type Known<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

/// A verb's definition of its sweeps.
#[derive(Clone, Copy, Debug)]
pub struct SweepSpec {
    /// Its axes in the plan's order: later ones change faster. Deciding axes come first.
    pub axes: &'static [AxisKind],
    /// Whether the axis has an effect with these values of the deciding axes.
    pub applies: fn(axis: &str, known: Known<'_>) -> bool,
    /// The last axis, if points that differ only in it are computed together.
    pub curve: Option<&'static str>,
}

/// One value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// One word, or the words of a set.
    pub words: Vec<String>,
    /// The cell of its column.
    pub cell: Cell,
}

impl Value {
    /// The first word; empty for an empty set.
    pub fn word(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }
}

/// An axis of a plan.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The verb's definition of it.
    pub kind: &'static AxisKind,
    /// Its values without duplicates; at least one.
    pub values: Vec<Value>,
    /// Its line in the file, from 1; `None` for a default.
    pub line: Option<usize>,
}
