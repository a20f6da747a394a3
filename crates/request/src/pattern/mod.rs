//! Named patterns and their parameters, as options.

mod args;

use std::collections::BTreeMap;
use std::str::FromStr;

use quell_sim::pattern::{self, AnyPattern, Entry, LIST, Params, Steps};

pub use args::PatternArgs;
use args::{PARAMETERS, Parameter};

use crate::Usage;

/// A named pattern with its parameters.
#[derive(Debug)]
pub struct Named {
    /// The pattern's program.
    pub steps: Steps<AnyPattern>,
    /// Its name, as given.
    pub name: String,
    /// Its parameters by option name, defaults included.
    pub parameters: BTreeMap<String, String>,
}

/// What ends a phase of a prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpText {
    /// All ranks wait for the slowest, at no further cost.
    Max,
    /// The messages of the pattern with this name.
    Pattern(String),
}

impl FromStr for OpText {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, entry(text)) {
            ("max", _) => Ok(Self::Max),
            (_, Some(_)) => Ok(Self::Pattern(text.to_owned())),
            (_, None) => {
                let names = LIST
                    .iter()
                    .flat_map(|entry| std::iter::once(entry.name).chain(entry.aliases.iter().copied()));
                let names: Vec<&str> = names.collect();
                Err(format!("it is neither max nor a pattern: {}", names.join(", ")))
            }
        }
    }
}

/// The pattern of this name, with its given parameters.
///
/// # Errors
/// [`Usage`] for parameters that the pattern does not have, or values that it does not accept.
pub fn from_args(name: &str, args: &PatternArgs) -> anyhow::Result<Named> {
    refuse_unused(name, args)?;
    let params = args.params()?;
    let steps = pattern::by_name(name, &params).map_err(|error| Usage(error.to_string()))?;
    Ok(Named { steps, name: name.to_owned(), parameters: used(name, &params) })
}

/// The parameters that the pattern uses, with their values.
fn used(name: &str, params: &Params) -> BTreeMap<String, String> {
    let uses = |field| uses(name, params.inner.as_deref(), field);
    let own = PARAMETERS.iter().filter(|one| uses(one.field));
    let own = own.filter_map(|one| Some((one.option.to_owned(), (one.value)(params)?)));
    let general = [("--ranks", params.ranks), ("--iterations", params.iterations)];
    general.iter().map(|(option, n)| ((*option).to_owned(), n.to_string())).chain(own).collect()
}

/// Refuses pattern parameters if no pattern is given.
///
/// # Errors
/// [`Usage`] that names the first of them.
pub fn refuse_all(args: &PatternArgs) -> Result<(), Usage> {
    let general = [("--ranks", args.ranks.is_some()), ("--iterations", args.iterations.is_some())];
    let general = general.into_iter().filter(|(_, typed)| *typed).map(|(option, _)| option);
    match general.chain(given(args).map(|one| one.option)).next() {
        Some(option) => {
            Err(Usage(format!("{option} is a parameter of patterns: add --pattern, or leave it out")))
        }
        None => Ok(()),
    }
}

/// The pattern that has this name or alias.
pub fn entry(name: &str) -> Option<&'static Entry> {
    LIST.iter().find(|entry| entry.name == name || entry.aliases.contains(&name))
}

/// The options that set the parameters of a pattern; a description stands for parameters that are not a fixed list.
pub fn options_of(entry: &Entry) -> Vec<String> {
    let own = entry.uses.iter().map(|&field| option_of(field));
    ["--ranks", "--iterations"].into_iter().chain(own).map(str::to_owned).collect()
}

/// The option that sets a field; text that names no field is returned unchanged.
fn option_of(field: &'static str) -> &'static str {
    PARAMETERS.iter().find(|one| one.field == field).map_or(field, |one| one.option)
}

/// Refuses parameters that the pattern does not have: they would silently have no effect.
fn refuse_unused(name: &str, args: &PatternArgs) -> anyhow::Result<()> {
    let Some(outer) = entry(name) else { return Ok(()) };
    let uses = |field| uses(name, args.inner.as_deref(), field);
    for one in given(args) {
        if !uses(one.field) {
            let text = format!(
                "pattern `{name}` has no {}: its parameters are {}",
                one.option,
                options_of(outer).join(", ")
            );
            return Err(Usage(text).into());
        }
    }
    Ok(())
}

/// Whether an option applies to a pattern, or to its inner pattern.
pub fn takes(name: &str, inner: Option<&str>, option: &str) -> bool {
    let found = PARAMETERS.iter().find(|one| one.option.strip_prefix("--") == Some(option));
    found.is_none_or(|one| uses(name, inner, one.field))
}

/// Whether a pattern, or its inner pattern, has a parameter.
fn uses(name: &str, inner: Option<&str>, field: &str) -> bool {
    let has = |name: &str| entry(name).is_some_and(|entry| entry.uses.contains(&field));
    has(name)
        || entry(name).is_some_and(|entry| entry.uses.contains(&"inner"))
            && has(inner.unwrap_or("dissemination"))
}

/// The given parameters, except those that every pattern has (ranks and iterations).
fn given(args: &PatternArgs) -> impl Iterator<Item = &'static Parameter> {
    PARAMETERS.iter().filter(|one| (one.given)(args))
}
