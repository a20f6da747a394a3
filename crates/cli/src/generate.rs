//! `quell generate`: files that are generated from the program itself. It is not among the verbs, because it uses all of them.

mod cli_docs;
mod columns;
mod mitigations;

use std::path::Path;

use quell_tune::catalogue::Catalogue;
use quell_tune::plan::Plan;
use quell_tune::profile::Profile;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{Schema, schema_for};
use serde_json::Value;

use crate::args::Generate;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::{render, verbs};

/// Writes the requested files.
pub fn run(args: &Generate, printer: Printer) -> anyhow::Result<Outcome> {
    if let Some(folder) = &args.reference {
        fs_err::create_dir_all(folder)?;
        let documents = documents();
        fs_err::write(folder.join("columns.md"), columns::page(&documents))?;
        schemas(&folder.join("schemas"), documents)?;
        let mitigations = mitigations::page(&Catalogue::built_in(), &Profile::all());
        fs_err::write(folder.join("mitigations.md"), mitigations)?;
        fs_err::write(folder.join("formats.md"), render::formats::page())?;
        cli_docs::pages(&folder.join("commands"))?;
        printer.status(&format!("wrote the reference into {}", folder.display()));
    }
    if let Some(folder) = &args.man {
        cli_docs::man(folder)?;
        printer.status(&format!("wrote man pages into {}", folder.display()));
    }
    if let Some(folder) = &args.completions {
        cli_docs::completions(folder)?;
        printer.status(&format!("wrote completions into {}", folder.display()));
    }
    Ok(Outcome::Done)
}

/// The schema of each document that `--json` prints.
fn documents() -> [(&'static str, Schema); 30] {
    [
        ("show", schema_for!(quell_analysis::show::Show)),
        ("show-hosts", schema_for!(quell_analysis::fleet::hosts::Hosts)),
        ("fleet", schema_for!(quell_analysis::fleet::Fleet)),
        ("watch", schema_for!(quell_analysis::live::Frame)),
        ("predict", schema_for!(quell_analysis::predict::Prediction)),
        ("advise", schema_for!(quell_analysis::advise::Advice)),
        ("emulate", schema_for!(quell_analysis::emulation::Emulation)),
        ("simulate", schema_for!(quell_request::simulate::document::Simulation)),
        ("sweep", schema_for!(crate::sweep::document::Sweep)),
        ("sweep-plan", schema_for!(crate::sweep::document::Identity)),
        ("goal-check", schema_for!(verbs::goal::check::Examined)),
        ("goal-list", schema_for!(verbs::goal::PatternList)),
        ("compare", schema_for!(quell_analysis::compare::Comparison)),
        ("bench-bsp", schema_for!(quell_analysis::bench::bsp::Bsp)),
        ("bench-allreduce", schema_for!(quell_analysis::bench::allreduce::Allreduce)),
        ("bench-halo", schema_for!(quell_analysis::bench::halo::Halo)),
        ("bench-loggp", schema_for!(quell_analysis::bench::loggp::Document)),
        ("bench-fwq", schema_for!(quell_analysis::bench::fwq::Fwq)),
        ("replay", schema_for!(quell_analysis::replay::Replay)),
        ("validate", schema_for!(quell_analysis::validation::Validation)),
        ("track", schema_for!(quell_analysis::track::Tracked)),
        ("tune-audit", schema_for!(quell_request::tune::audit::Document)),
        ("tune-plan", schema_for!(Plan)),
        ("tune-apply", schema_for!(verbs::tune::apply::Application)),
        ("tune-verify", schema_for!(verbs::tune::verify::Verification)),
        ("tune-revert", schema_for!(verbs::tune::revert::Reversion)),
        ("tune-status", schema_for!(verbs::tune::status::StatusDocument)),
        ("tune-try", schema_for!(quell_request::tune::trial::Attempts)),
        ("doctor", schema_for!(verbs::doctor::Examination)),
        ("formats", schema_for!(verbs::convert::list::Formats)),
    ]
}

/// Writes the JSON schemas.
fn schemas(folder: &Path, documents: [(&str, Schema); 30]) -> anyhow::Result<()> {
    fs_err::create_dir_all(folder)?;
    let warning = schema_for!(quell_analysis::Warning);
    let write = |name: &str, schema: &Schema| -> anyhow::Result<()> {
        let path = folder.join(format!("{name}.json"));
        Ok(fs_err::write(&path, serde_json::to_string_pretty(schema)? + "\n")?)
    };
    for (name, mut schema) in documents {
        share(&mut schema, &warning);
        write(name, &schema)?;
    }
    write(WARNING, &warning)
}

/// Name of the schema that describes all warnings.
const WARNING: &str = "warning";

/// Replaces a document's copy of the schema of warnings, which is longer than most documents, by a reference to the one shared schema.
fn share(schema: &mut Schema, warning: &Schema) {
    let defined =
        |schema: &Schema| schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    let (own, mut shared) = (defined(schema), defined(warning));
    shared.retain(|name, of| own.get(name) == Some(of));
    let root = warning.get("title").and_then(Value::as_str).unwrap_or_default();
    if let Some(own) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
        own.retain(|name, _| name != root && !shared.contains_key(name));
    }
    let refer = |schema: &mut Schema| {
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
        let place = match name {
            Some(name) if name == root => format!("{WARNING}.json"),
            Some(name) if shared.contains_key(name) => format!("{WARNING}.json#/$defs/{name}"),
            _ => return,
        };
        schema.insert("$ref".into(), place.into());
    };
    RecursiveTransform(refer).transform(schema);
}
