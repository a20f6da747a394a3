//! `quell tune verify`: checks whether what was applied is still in place.

use quell_recording::columns::Columns;
use quell_tune::status::{Status, status};
use quell_tune::verify::{SettingState, Verified, verify, verify_plan};
use schemars::JsonSchema;
use serde::Serialize;

use super::read_plan;
use crate::args::TuneVerify;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::render::rows::rows;
use crate::steps::audit::root;

/// The JSON document of `tune verify --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Verification {
    /// `quell.tune-verify/1`.
    schema: &'static str,
    /// Whether every place still has its value, and no one else has changed anything.
    holds: bool,
    /// The result for each place.
    places: Vec<Verified>,
}

/// Verifies and reports.
pub fn run(args: &TuneVerify, printer: Printer) -> anyhow::Result<Outcome> {
    let root = root(args.sysroot.as_deref())?;
    let places = match &args.plan {
        Some(plan) => verify_plan(&root, &read_plan(plan)?),
        None => match verify(&root) {
            Err(error) if error.is_denied() => {
                anyhow::bail!(
                    "{error}: only root may read what is applied; `quell tune verify PLAN` needs no root"
                )
            }
            other => other?,
        },
    };
    let calls = match (&args.plan, status(&root)) {
        (None, Ok((open, _))) => open.into_iter().filter(Status::calls).collect(),
        _ => Vec::new(),
    };
    for one in &calls {
        printer.warn(&format!("{} is {}: `quell tune status` shows what to do", one.id, one.stage.words()));
    }
    let holds = calls.is_empty() && !places.iter().any(|one| one.standing.is_bad());
    let outcome = if holds { Outcome::Done } else { Outcome::LimitExceeded };
    if args.json {
        printer.json(&Verification { schema: "quell.tune-verify/1", holds, places })?;
        return Ok(outcome);
    }
    if places.is_empty() {
        printer.result("nothing is applied\n")?;
        return Ok(outcome);
    }
    printer.result(&text(&places))?;
    Ok(outcome)
}

/// A row for a place.
#[derive(Debug, Columns)]
struct PlaceRow<'a> {
    #[column]
    standing: &'static str,
    #[column]
    mitigation: &'a str,
    #[column]
    place: &'a str,
    #[column(title = "wanted", name)]
    want: &'a str,
    #[column(name)]
    now: Option<&'a str>,
    #[column(absent = "")]
    why: Option<&'a str>,
}

impl<'a> PlaceRow<'a> {
    fn new(one: &'a Verified) -> Self {
        Self {
            standing: one.standing.word(),
            mitigation: &one.mitigation,
            place: &one.place,
            want: one.want.trim(),
            now: one.now.as_deref().map(str::trim),
            why: one.why.as_deref(),
        }
    }
}

fn text(places: &[Verified]) -> String {
    let mut text = rows(&places.iter().map(PlaceRow::new).collect::<Vec<_>>());
    let count = |standing: SettingState| places.iter().filter(|one| one.standing == standing).count();
    let all = [
        SettingState::Ok,
        SettingState::Pending,
        SettingState::Immovable,
        SettingState::Unavailable,
        SettingState::Unknown,
        SettingState::Drifted,
        SettingState::Foreign,
    ];
    let counted: Vec<String> = all
        .into_iter()
        .filter(|one| count(*one) > 0)
        .map(|one| format!("{} {}", count(one), one.word()))
        .collect();
    text += &format!("{}\n", counted.join(", "));
    text
}
