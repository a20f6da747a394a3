//! `quell tune verify`: checks whether what was applied is still in place.

use quell_recording::columns::{Columns, Value};
use quell_tune::status::{Status, status};
use quell_tune::verify::{SettingState, Verified, verify, verify_plan};
use schemars::JsonSchema;
use serde::Serialize;

use super::read_plan;
use crate::args::TuneVerify;
use crate::outcome::Outcome;
use crate::printer::{Printer, cut, one_line, width};
use crate::render::rows::fitting;
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
    #[column(minor)]
    mitigation: &'a str,
    #[column(key)]
    place: &'a str,
    #[column(title = "wanted", name, key)]
    want: String,
    #[column(name, key)]
    now: Option<String>,
    #[column(absent = "", filled)]
    why: Option<&'a str>,
}

impl<'a> PlaceRow<'a> {
    fn new(one: &'a Verified, room: usize) -> Self {
        let value = |text: &str| cut(&one_line(text.trim()), room);
        Self {
            standing: one.standing.word(),
            mitigation: &one.mitigation,
            place: &one.place,
            want: value(&one.want),
            now: one.now.as_deref().map(value),
            why: one.why.as_deref(),
        }
    }
}

/// The width that the states and places leave to each of the two values, but enough for a number or a word.
fn room_for_values(places: &[Verified], width: usize) -> usize {
    let longest = |title: &str, cell: fn(&Verified) -> usize| {
        places.iter().map(cell).chain([title.len()]).max().unwrap_or(0)
    };
    let words = longest("standing", |one| one.standing.word().len())
        + longest("place", |one| one.place.chars().count());
    // Three characters between two columns, and one at each end.
    (width.saturating_sub(words + 3 * 3 + 2) / 2).max(8)
}

fn table(places: &[Verified], width: usize) -> String {
    let room = room_for_values(places, width);
    let rows: Vec<Vec<Value>> = places.iter().map(|one| PlaceRow::new(one, room).values()).collect();
    fitting(&PlaceRow::columns(), &rows, width)
}

fn text(places: &[Verified]) -> String {
    let mut text = table(places, usize::from(width()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_however_long_a_file_of_quells_is() {
        let file = |standing, now: Option<&str>| Verified {
            transaction: None,
            mitigation: "workqueue-writeback-mask".into(),
            place: "/etc/sysctl.d/90-quell-dirty-writeback.conf".into(),
            standing,
            want: "# Made by quell for dirty-writeback. vm.dirty_writeback_centisecs = 1500".into(),
            now: now.map(str::to_owned),
            why: Some("takes effect after the next boot or start".into()),
        };
        let places =
            [file(SettingState::Pending, Some("# Made by quell")), file(SettingState::Drifted, None)];
        for width in [80, 100] {
            let text = table(&places, width);
            let titles = text.lines().next().unwrap_or_default();
            for title in ["standing", "place", "wanted", "now"] {
                assert!(titles.contains(title), "{title} in {width} columns:\n{text}");
            }
            assert!(text.contains("drifted") && text.contains("# Made"), "{text}");
            assert!(text.contains(&format!("Not shown in {width} columns: mitigation")), "{text}");
        }
        let wide = table(&places, 200);
        assert!(wide.contains("workqueue-writeback-mask") && !wide.contains("Not shown"), "{wide}");
    }
}
