//! `quell tune status`: shows what is applied here.

use quell_tune::status::{Stage, Status, status};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::TuneStatus;
use crate::outcome::Outcome;
use crate::printer::{Printer, one_line};
use crate::steps::audit::root;

/// The JSON document of `tune status --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StatusDocument {
    /// `quell.tune-status/1`.
    schema: &'static str,
    /// Transactions that are still open, oldest first.
    open: Vec<Status>,
    /// The transaction that was closed last.
    last_closed: Option<Status>,
}

/// Prints the status. The exit code is 3 if someone must act.
pub fn run(args: &TuneStatus, printer: Printer) -> anyhow::Result<Outcome> {
    let root = root(args.sysroot.as_deref())?;
    let (open, last_closed) = match status(&root) {
        Err(error) if error.is_denied() => anyhow::bail!("{error}: only root may read what is applied"),
        other => other?,
    };
    let calls = open
        .iter()
        .any(|one| one.stage != Stage::Applied || one.keeper_is_gone || !one.damaged_lines.is_empty());
    if args.json {
        printer.json(&StatusDocument { schema: "quell.tune-status/1", open, last_closed })?;
    } else {
        printer.result(&text(&open, last_closed.as_ref()))?;
    }
    Ok(if calls { Outcome::LimitExceeded } else { Outcome::Done })
}

fn text(open: &[Status], closed: Option<&Status>) -> String {
    let mut text = String::new();
    if open.is_empty() {
        text += "nothing is applied\n";
    }
    for one in open {
        text += &format!("{}  {}, places: {}\n", one_line(&one.id), one.stage.words(), one.places);
        text += &format!("  {}\n", one_line(&one.mitigations.join(" ")));
        if one.open != one.places {
            text += &format!("  {} of them are not restored\n", one.open);
        }
        text.extend(one.keeper.iter().map(|keeper| format!("  {}\n", one_line(keeper))));
        if !one.damaged_lines.is_empty() {
            text += &format!(
                "  its journal {} is damaged: lines {:?} cannot be read or are missing\n",
                one_line(&one.journal),
                one.damaged_lines
            );
        }
        text += match one.stage {
            Stage::Applied if one.keeper_is_gone => {
                "  no process will revert it in time: run `quell tune revert`\n"
            }
            Stage::Applied | Stage::Closed => "",
            Stage::Interrupted => "  it stopped half-way: `quell tune revert` restores what it changed\n",
            Stage::PartlyReverted => {
                "  the rest was changed by others, or could not be restored: `quell tune revert` lists it, and tries again;\n  --force overwrites what others changed, --forget leaves it to them\n"
            }
            Stage::Rebooted => "  `quell tune revert` removes what it left on disk, and closes it\n",
        };
    }
    if let Some(one) = closed {
        let ended = one.ended.as_deref().unwrap_or("at an unknown time");
        text += &format!(
            "last closed: {} ({}), {}\n",
            one_line(&one.id),
            one_line(&one.mitigations.join(" ")),
            one_line(ended)
        );
    }
    text
}
