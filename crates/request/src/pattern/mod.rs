//! Named patterns and their parameters, as options give them.

mod args;

use std::collections::BTreeMap;
use std::str::FromStr;

use quell_recording::Nanos;
use quell_sim::pattern::{self, AnyPattern, Entry, LIST, Params, Steps};

pub use args::PatternArgs;

use crate::Usage;
use crate::size::Size;

/// The options that set parameters, with the field of [`Params`] by which [`Entry::uses`] names them.
const OPTIONS: [(&str, &str); 13] = [
    ("--bytes", "bytes"),
    ("--work", "work_ns"),
    ("--inner", "inner"),
    ("--dims", "dims"),
    ("--periodic", "periodic"),
    ("--root", "root"),
    ("--nway", "nway"),
    ("--segment-bytes", "segment_bytes"),
    ("--node-ranks", "node_ranks"),
    ("--buckets", "buckets"),
    ("--optimizer", "optimizer_ns"),
    ("--blocks", "blocks"),
    ("--reduce-per-byte", "reduce_per_byte"),
];

/// A named pattern with its parameters.
#[derive(Debug)]
pub struct Named {
    /// The program.
    pub steps: Steps<AnyPattern>,
    /// Its name, as typed.
    pub name: String,
    /// Its parameters by their options, defaults too.
    pub parameters: BTreeMap<String, String>,
}

/// What ends a phase of a prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpText {
    /// The slowest rank.
    Max,
    /// The messages of a pattern.
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

/// The pattern of a name with what was typed for it.
///
/// # Errors
/// [`Usage`] for parameters that it does not have or take.
pub fn of(name: &str, args: &PatternArgs) -> anyhow::Result<Named> {
    refuse_unused(name, args)?;
    let params = params(args)?;
    let steps = pattern::by_name(name, &params).map_err(|error| Usage(error.to_string()))?;
    Ok(Named { steps, name: name.to_owned(), parameters: used(name, &params) })
}

/// The parameters that the pattern uses, with their values.
fn used(name: &str, params: &Params) -> BTreeMap<String, String> {
    let uses = |field| uses(name, params.inner.as_deref(), field);
    let own = OPTIONS.iter().filter(|(_, field)| uses(field));
    let own = own.filter_map(|(option, field)| Some(((*option).to_owned(), value(params, field)?)));
    let of_all = [("--ranks", params.ranks), ("--iterations", params.iterations)];
    of_all.iter().map(|(option, n)| ((*option).to_owned(), n.to_string())).chain(own).collect()
}

/// The value of a parameter as it is typed; `None` for one that the pattern chooses itself.
fn value(params: &Params, field: &str) -> Option<String> {
    let text = match field {
        "bytes" => params.bytes.to_string(),
        "work_ns" => exact(params.work_ns),
        "inner" => return params.inner.clone(),
        "dims" if params.dims.is_empty() => return None,
        "dims" => params.dims.iter().map(u32::to_string).collect::<Vec<_>>().join("x"),
        "periodic" => params.periodic.to_string(),
        "root" => params.root.to_string(),
        "nway" => params.nway.to_string(),
        "segment_bytes" => params.segment_bytes.to_string(),
        "node_ranks" => params.node_ranks.to_string(),
        "buckets" => params.buckets.to_string(),
        "optimizer_ns" => exact(params.optimizer_ns),
        "blocks" => params.blocks.to_string(),
        "reduce_per_byte" => params.reduce_per_byte.as_nanos().to_string(),
        _ => return None,
    };
    Some(text)
}

/// A time that reads back as the same.
fn exact(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.iter().find(|(unit, _)| ns > 0 && ns.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{ns}ns"), |(unit, name)| format!("{}{name}", ns / unit))
}

/// Refuses parameters where there is no pattern.
///
/// # Errors
/// [`Usage`] with the first of them.
pub fn refuse_all(args: &PatternArgs) -> Result<(), Usage> {
    let of_all = [("--ranks", args.ranks.is_some()), ("--iterations", args.iterations.is_some())];
    let of_all = of_all.into_iter().filter(|(_, typed)| *typed).map(|(option, _)| option);
    match of_all.chain(given(args)).next() {
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

/// The options that set the parameters of a pattern, and words where it has no fixed ones.
pub fn options_of(entry: &Entry) -> Vec<String> {
    let own = entry.uses.iter().map(|&field| option_of(field));
    ["--ranks", "--iterations"].into_iter().chain(own).map(str::to_owned).collect()
}

/// The option that sets a field; words that are no field stay as they are.
fn option_of(field: &'static str) -> &'static str {
    OPTIONS.iter().find(|(_, known)| *known == field).map_or(field, |(option, _)| *option)
}

/// Refuses parameters that the pattern does not have: they would be without effect, and nobody would know.
fn refuse_unused(name: &str, args: &PatternArgs) -> anyhow::Result<()> {
    let Some(outer) = entry(name) else { return Ok(()) };
    let uses = |field| uses(name, args.inner.as_deref(), field);
    for option in given(args) {
        let field = OPTIONS.iter().find(|(known, _)| *known == option).map(|(_, field)| *field);
        if field.is_some_and(|field| !uses(field)) {
            let text = format!(
                "pattern `{name}` has no {option}: its parameters are {}",
                options_of(outer).join(", ")
            );
            return Err(Usage(text).into());
        }
    }
    Ok(())
}

/// Whether an option sets a parameter of a pattern, or of the one within it.
pub fn takes(name: &str, inner: Option<&str>, option: &str) -> bool {
    let field = OPTIONS.iter().find(|(known, _)| known.strip_prefix("--") == Some(option));
    field.is_none_or(|(_, field)| uses(name, inner, field))
}

/// Whether a pattern, or the one within it, has a parameter.
fn uses(name: &str, inner: Option<&str>, field: &str) -> bool {
    let has = |name: &str| entry(name).is_some_and(|entry| entry.uses.contains(&field));
    has(name)
        || entry(name).is_some_and(|entry| entry.uses.contains(&"inner"))
            && has(inner.unwrap_or("dissemination"))
}

/// What was typed, but for what every pattern has.
fn given(args: &PatternArgs) -> Vec<&'static str> {
    let typed = [
        args.bytes.is_some(),
        args.work.is_some(),
        args.inner.is_some(),
        args.dims.is_some(),
        args.periodic,
        args.root.is_some(),
        args.nway.is_some(),
        args.segment_bytes.is_some(),
        args.node_ranks.is_some(),
        args.buckets.is_some(),
        args.optimizer.is_some(),
        args.blocks.is_some(),
        args.reduce_per_byte.is_some(),
    ];
    OPTIONS.iter().zip(typed).filter(|(_, typed)| *typed).map(|((option, _), _)| *option).collect()
}

fn params(args: &PatternArgs) -> Result<Params, Usage> {
    let usual = Params::default();
    let grid: Option<u64> =
        args.dims.as_ref().map(|dims| dims.0.iter().fold(1, |n, &dim| u64::from(dim).saturating_mul(n)));
    // A grid says how many ranks there are.
    let ranks = args.ranks.map(|ranks| ranks.0).or(grid.map(|n| u32::try_from(n).unwrap_or(u32::MAX)));
    let small = |size: Option<Size>, option: &str, usual: u32| match size {
        Some(size) => u32::try_from(size.0).map_err(|_| Usage(format!("{option} {} is too many", size.0))),
        None => Ok(usual),
    };
    Ok(Params {
        ranks: ranks.unwrap_or(usual.ranks),
        bytes: args.bytes.map_or(usual.bytes, |size| size.0),
        iterations: small(args.iterations, "--iterations", usual.iterations)?,
        root: args.root.unwrap_or(usual.root),
        nway: args.nway.unwrap_or(usual.nway),
        segment_bytes: args.segment_bytes.map_or(usual.segment_bytes, |size| size.0),
        dims: args.dims.as_ref().map_or(usual.dims, |dims| dims.0.clone()),
        periodic: args.periodic,
        work_ns: args.work.map_or(usual.work_ns, Nanos::as_nanos),
        optimizer_ns: args.optimizer.map_or(usual.optimizer_ns, Nanos::as_nanos),
        inner: args.inner.clone(),
        node_ranks: args.node_ranks.map_or(usual.node_ranks, |ranks| ranks.0),
        buckets: small(args.buckets, "--buckets", usual.buckets)?,
        blocks: small(args.blocks, "--blocks", usual.blocks)?,
        reduce_per_byte: args.reduce_per_byte.map_or(usual.reduce_per_byte, |rate| rate.0),
    })
}
