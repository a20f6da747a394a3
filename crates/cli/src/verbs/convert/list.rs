//! `quell convert --list`: all formats.

use quell_recording::formats::catalogue::{About, FORMATS};
use schemars::JsonSchema;
use serde::Serialize;

use crate::printer::Printer;
use crate::render;

/// The JSON document of `convert --list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Formats {
    /// `quell.formats/1`.
    pub schema: &'static str,
    /// The formats, in the order of the reference.
    pub formats: &'static [About],
}

/// Prints the formats.
pub fn print(json: bool, printer: Printer) -> anyhow::Result<()> {
    if json {
        return printer.json(&Formats { schema: "quell.formats/1", formats: FORMATS });
    }
    Ok(printer.result(&render::formats::table())?)
}
