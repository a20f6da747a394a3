//! What an axis is, and what a verb says of those that it knows.

use quell_recording::results::{Cell, Kind};

/// Whether a value of an axis is one word, or a set of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// One word.
    No,
    /// A word, or a list of at least one.
    Filled,
    /// A word, or a list that may be empty.
    Any,
}

/// Which words of an axis name files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// None.
    No,
    /// All.
    All,
    /// Those that end with `.toml`, or have that before an `@`.
    Toml,
}

impl Paths {
    /// The path within a word, and what follows it.
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

/// One word of a value as the plan has it: a canonical text, so that equal plans are equal, and what its column shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// As the verb's option takes it.
    pub text: String,
    /// For the column.
    pub cell: Cell,
}

/// An axis that a verb knows.
#[derive(Clone, Copy, Debug)]
pub struct AxisKind {
    /// Its key in the file: the word of the verb's option.
    pub name: &'static str,
    /// The name of its column.
    pub column: &'static str,
    /// What its column holds.
    pub kind: Kind,
    /// The words that one word of the file stands for: ranges stand for several.
    pub read: fn(&str) -> Result<Vec<Word>, String>,
    /// Whether a value may be a list.
    pub sets: Sets,
    /// Which words are paths.
    pub paths: Paths,
    /// The value where the file says nothing; without one the plan then has no such axis.
    pub default: Option<&'static str>,
    /// Whether its value decides which others have an effect.
    pub decides: bool,
}

/// Looks up a value of an axis that decides, by the axis's name.
pub type Known<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

/// What a verb says of its sweeps.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Its axes in the plan's order: those that come later change faster. Those that decide come first.
    pub axes: &'static [AxisKind],
    /// Whether the axis has an effect beside these values of those that decide.
    pub applies: fn(axis: &str, known: Known<'_>) -> bool,
    /// The last axis, if points that differ in nothing else are computed together.
    pub curve: Option<&'static str>,
}

/// One value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// One word, or those of a set.
    pub words: Vec<String>,
    /// For the column.
    pub cell: Cell,
}

impl Value {
    /// The first word; nothing of an empty set.
    pub fn word(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }
}

/// An axis of a plan.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What the verb knows of it.
    pub kind: &'static AxisKind,
    /// Its values, each once, at least one.
    pub values: Vec<Value>,
    /// Its line in the file, from 1; `None` for a default.
    pub line: Option<usize>,
}
