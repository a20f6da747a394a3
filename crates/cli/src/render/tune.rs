//! Renders mitigations as text for a terminal.

use quell_recording::columns::Columns;
use quell_tune::audit::{PlaceState, State};

use super::rows::rows;
use super::table::time;
use crate::printer::{one_line, width};
use quell_request::tune::audit::{Document, Entry};

/// A row for a mitigation.
#[derive(Debug, Columns)]
struct EntryRow<'a> {
    #[column]
    state: &'static str,
    #[column(key)]
    mitigation: &'a str,
    #[column(minor)]
    risk: &'static str,
    #[column]
    what_it_does: String,
    #[column(title = "noise %", precision = 4, zero, filled, key)]
    noise_percent: Option<f64>,
    #[column(zero, filled, minor)]
    times: Option<u64>,
    #[column(zero, filled, minor)]
    longest_ns: Option<u64>,
}

impl<'a> EntryRow<'a> {
    fn new(one: &'a Entry) -> Self {
        Self {
            state: word(one.state),
            mitigation: &one.id,
            risk: one.risk.word(),
            what_it_does: one_line(&one.title),
            noise_percent: one.noise.map(|noise| noise.percent),
            times: one.noise.map(|noise| noise.count),
            longest_ns: one.noise.map(|noise| noise.max_ns),
        }
    }
}

/// A row per mitigation.
pub fn table(document: &Document) -> String {
    let mut text = heading(document);
    let here = document.mitigations.iter().filter(|one| one.state != State::NotHere);
    let mut here: Vec<EntryRow<'_>> = here.map(EntryRow::new).collect();
    cut_titles(&mut here, usize::from(width()));
    text += &rows(&here);
    let absent: Vec<&str> = document
        .mitigations
        .iter()
        .filter(|one| one.state == State::NotHere)
        .map(|one| one.id.as_str())
        .collect();
    if !absent.is_empty() {
        text += &wrapped(&format!("not for this machine: {}", absent.join(" ")), "  ");
    }
    text += &sums(document);
    text += &unseen(document);
    text + "`quell tune audit ID` shows the details of one; `quell tune plan ID…` shows what it would write\n"
}

/// Cuts the titles to the width that the other columns leave, but leaves a few words: then less important columns are left out.
fn cut_titles(rows: &mut [EntryRow<'_>], width: usize) {
    let longest = |title: &str, cell: fn(&EntryRow<'_>) -> usize| {
        rows.iter().map(cell).chain([title.len()]).max().unwrap_or(0)
    };
    let words = longest("state", |row| row.state.len())
        + longest("mitigation", |row| row.mitigation.len())
        + longest("risk", |row| row.risk.len());
    let noisy = rows.iter().any(|row| row.noise_percent.is_some());
    // Three characters between two columns, and one at each end. Numbers and times have up to seven.
    let rest = 3 * 3 + 2 + if noisy { 3 * (3 + 7) } else { 0 };
    let room = width.saturating_sub(words + rest).max(20);
    rows.iter_mut().for_each(|row| row.what_it_does = cut(&row.what_it_does, room));
}

/// Each mitigation in full.
pub fn in_full(document: &Document) -> String {
    let mut text = heading(document);
    for one in &document.mitigations {
        text.push('\n');
        text += &entry(one);
    }
    text
}

fn heading(document: &Document) -> String {
    let mut text = format!("host {} · kernel {}", one_line(&document.host), one_line(&document.kernel));
    match (&document.compute, &document.housekeeping) {
        (Some(compute), Some(housekeeping)) => {
            text += &format!(" · compute on CPUs {compute}; CPUs {housekeeping} left to the system");
        }
        _ => {
            text +=
                &format!(" · {}", one_line(document.no_parts.as_deref().unwrap_or("no CPUs to compute on")));
        }
    }
    text.push('\n');
    if !document.recordings.is_empty() {
        text += &format!("ordered by the noise of {}\n", one_line(&document.recordings.join(", ")));
    }
    text
}

fn sums(document: &Document) -> String {
    let states = [
        State::Applied,
        State::Partial,
        State::NotApplied,
        State::CannotTell,
        State::NotReadable,
        State::NotMounted,
        State::NotHere,
    ];
    let count = |state| document.mitigations.iter().filter(|one| one.state == state).count();
    let sums: Vec<String> = states
        .into_iter()
        .filter(|state| count(*state) > 0)
        .map(|state| format!("{} {}", count(state), word(state)))
        .collect();
    sums.join(", ") + "\n"
}

fn unseen(document: &Document) -> String {
    let mut text = String::new();
    for state in [State::CannotTell, State::NotReadable, State::NotMounted] {
        let mine = document.mitigations.iter().filter(|one| one.state == state);
        let reported: Vec<String> = mine
            .map(|one| {
                format!("  {}: {}\n", one.id, one_line(one.why.as_deref().unwrap_or("it gives no reason")))
            })
            .collect();
        if !reported.is_empty() {
            text += &format!("{}:\n", word(state));
            text.extend(reported);
        }
    }
    if !document.unseen.is_empty() {
        let first = document.unseen.iter().take(8);
        let lines = first
            .map(|one| format!("  {} ({}): {}\n", one_line(&one.place), one.mitigation, one_line(&one.why)));
        let root = if document.unprivileged { " (root sees more)" } else { "" };
        text += &format!("{} places could not be read{root}:\n", document.unseen.len());
        text.extend(lines);
        if document.unseen.len() > 8 {
            text += &format!("  and {} more (--json has them all)\n", document.unseen.len() - 8);
        }
    }
    text
}

fn entry(one: &Entry) -> String {
    let mut text = format!("{}: {}\n", one.id, one_line(&one.title));
    text += &format!("  {} · risk {}", word(one.state), one.risk.word());
    if let Some(noise) = one.noise {
        text += &format!(
            " · its sources took {:.4} % here, {} times, at most {}",
            noise.percent,
            noise.count,
            time(noise.max_ns as f64)
        );
    }
    text.push('\n');
    text.extend(one.why.as_deref().map(|why| wrapped(why, "  ")));
    text += &wrapped(&one.what, "  ");
    text += &wrapped(&format!("Caveat: {}", one.caveat), "  ");
    text.extend(one.gone.as_deref().map(|gone| wrapped(gone, "  ")));
    text.extend(one.successor.as_deref().map(|id| format!("  today: {id}\n")));
    text += &wrapped(&format!("takes away: {}", one.patterns.join("  ")), "  ");
    text.extend(one.places.iter().map(place));
    for hand in &one.by_hand {
        let mark = match hand.done {
            Some(true) => "done",
            Some(false) => "to do",
            None => "by hand",
        };
        text += &wrapped(&format!("{mark}: {}", hand.todo), "  ");
        text.extend(hand.seen.as_deref().map(|seen| wrapped(seen, "    ")));
    }
    text + &wrapped(&format!("from: {}", one.provenance.join("; ")), "  ")
}

fn place(place_state: &PlaceState) -> String {
    let value = |text: &Option<String>| text.as_deref().map_or_else(|| "?".into(), short);
    let mut line = format!("  {} is {}", one_line(&place_state.place.to_string()), value(&place_state.now));
    if place_state.done {
        line += ", as wanted";
    } else if place_state.want.is_some() {
        line += &format!(", wanted {}", value(&place_state.want));
    }
    if let Some(why) = &place_state.why {
        line += &format!(" ({})", one_line(why));
    }
    line + "\n"
}

/// Text, cut to at most `room` characters.
fn cut(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).collect::<String>().trim_end().to_owned() + "…"
}

/// A value in one line: a file that quell writes without its comments.
fn short(text: &str) -> String {
    let lines: Vec<String> =
        text.trim().lines().filter(|line| !line.starts_with('#')).map(one_line).collect();
    lines.join("; ")
}

/// The display name of a state.
pub fn word(state: State) -> &'static str {
    match state {
        State::Applied => "applied",
        State::Partial => "partly applied",
        State::NotApplied => "not applied",
        State::NotHere => "not here",
        State::CannotTell => "cannot tell",
        State::NotMounted => "not mounted",
        State::NotReadable => "not readable",
    }
}

/// Wraps lines to the width of the terminal, each with the same prefix.
fn wrapped(text: &str, begin: &str) -> String {
    let room = usize::from(width()).saturating_sub(begin.len());
    let mut lines = String::new();
    let mut line = String::new();
    for word in one_line(&text.replace('\n', " ")).split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            lines += &format!("{begin}{line}\n");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    if line.is_empty() { lines } else { lines + &format!("{begin}{line}\n") }
}

#[cfg(test)]
mod tests {
    use super::super::rows::fitting;
    use super::*;

    /// A table with the longest cells of the catalogue.
    fn drawn(noise_percent: Option<f64>, width: usize) -> String {
        let noisy = noise_percent.is_some();
        let mut rows = [EntryRow {
            state: word(State::Partial),
            mitigation: "workqueue-writeback-mask",
            risk: "external",
            what_it_does: "Keep what this is about ".repeat(10),
            noise_percent,
            times: noisy.then_some(214_863),
            longest_ns: noisy.then_some(10_610_000),
        }];
        cut_titles(&mut rows, width);
        let values: Vec<_> = rows.iter().map(Columns::values).collect();
        fitting(&EntryRow::columns(), &values, width)
    }

    #[test]
    fn an_audit_shows_what_each_does_however_narrow_the_terminal_is() {
        for width in [80, 100, 120] {
            let text = drawn(None, width);
            assert!(text.contains("Keep what this") && !text.contains("Not shown"), "{width}:\n{text}");
            let text = drawn(Some(0.2154), width);
            assert!(text.contains("Keep what this") && text.contains("noise %"), "{width}:\n{text}");
        }
    }
}
