//! `quell goal list`: lists the named patterns.

use quell_sim::pattern::{Entry, LIST};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::GoalList;
use crate::outcome::Outcome;
use crate::printer::Printer;
use quell_request::pattern;

/// The schema's name and version.
const SCHEMA: &str = "quell.goal-list/1";

/// All named patterns.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PatternList {
    /// Always `quell.goal-list/1`.
    pub schema: String,
    /// The patterns.
    pub patterns: Vec<PatternFacts>,
}

/// A named pattern.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PatternFacts {
    /// Its name.
    pub name: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// A description.
    pub help: String,
    /// The options that set its parameters.
    pub parameters: Vec<String>,
}

/// Prints the list.
pub fn run(args: &GoalList, printer: Printer) -> anyhow::Result<Outcome> {
    let patterns: Vec<PatternFacts> = LIST.iter().map(facts).collect();
    if args.json {
        printer.json(&PatternList { schema: SCHEMA.to_owned(), patterns })?;
    } else {
        printer.result(&patterns.iter().map(text).collect::<String>())?;
    }
    Ok(Outcome::Done)
}

fn facts(entry: &Entry) -> PatternFacts {
    PatternFacts {
        name: entry.name.to_owned(),
        aliases: entry.aliases.iter().map(|&alias| alias.to_owned()).collect(),
        help: entry.help.to_owned(),
        parameters: pattern::options_of(entry),
    }
}

fn text(pattern: &PatternFacts) -> String {
    let names = std::iter::once(&pattern.name).chain(&pattern.aliases).map(String::as_str);
    let names: Vec<&str> = names.collect();
    format!("{}\n    {}\n    {}\n", names.join(", "), pattern.help, pattern.parameters.join(" "))
}
