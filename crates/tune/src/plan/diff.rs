//! A plan in readable form: current values and new ones.

use std::fmt::Write as _;

use quell_recording::{format_cpu_list, one_line};

use super::{Chosen, Plan, Write};
use crate::catalogue::Risk;
use crate::place::{self, ABSENT, Place};

impl Plan {
    /// The plan as a diff: `-` before the current value of a place, `+` before the new one; then what is left unchanged, and why.
    pub fn diff(&self) -> String {
        self.diff_with(&|_| None)
    }

    /// As [`Self::diff`], with a note on the current values of the places for which `note` has one.
    pub fn diff_with(&self, note: &dyn Fn(&Place) -> Option<String>) -> String {
        let mut text = format!("host {}, kernel {}\n", one_line(&self.host), one_line(&self.kernel));
        if !self.compute.is_empty() {
            let (compute, housekeeping) = (one_line(&self.compute), one_line(&self.housekeeping));
            let _ = writeln!(text, "compute on CPUs {compute}; CPUs {housekeeping} left to the system");
        }
        for chosen in &self.mitigations {
            let mine: Vec<&Write> =
                self.writes.iter().filter(|write| write.mitigation == chosen.id).collect();
            if !mine.is_empty() {
                text += &header(chosen);
                mine.into_iter().for_each(|write| text += &one(write, note));
            }
        }
        if self.writes.is_empty() {
            text += "\nnothing needs to be written\n";
        }
        if !self.left.is_empty() {
            text += "\nleft as it is:\n";
        }
        for left in &self.left {
            let (id, what, why) = (one_line(&left.mitigation), one_line(&left.what), one_line(&left.why));
            let _ = writeln!(text, "  {id}: {what}: {why}");
        }
        text
    }
}

fn header(chosen: &Chosen) -> String {
    let risk = match chosen.risk {
        Risk::Low => "low risk",
        Risk::Medium => "medium risk",
        Risk::High => "high risk",
        Risk::External => "not this machine's",
    };
    let disruptive = if chosen.disruptive { ", disruptive" } else { "" };
    format!("\n@@ {}: {} ({risk}{disruptive})\n", one_line(&chosen.id), one_line(&chosen.title))
}

fn one(write: &Write, note: &dyn Fn(&Place) -> Option<String>) -> String {
    let mut notes = Vec::new();
    if write.may_fail {
        notes.push("may be refused");
    }
    if write.staged {
        notes.push("from the next boot or start on");
    }
    let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) };
    let on_old = note(&write.place).map_or_else(String::new, |note| format!("  ({})", one_line(&note)));
    side('-', write, &write.old, &on_old) + &side('+', write, &write.new, &notes)
}

/// One side of a write; empty for an absent value.
fn side(sign: char, write: &Write, value: &str, notes: &str) -> String {
    let place = one_line(&write.place.to_string());
    if value == ABSENT {
        return String::new();
    }
    if !matches!(write.place, Place::DropIn { .. }) {
        let value = shown(&write.place, value);
        let blank = if value.is_empty() { "" } else { " " };
        return format!("{sign} {place}:{blank}{value}{notes}\n");
    }
    let mut text = format!("{sign} {place}:{notes}\n");
    value.lines().for_each(|line| {
        let _ = writeln!(text, "{sign}   {}", one_line(line));
    });
    text
}

/// A value on one line; for a file that shows all words, the chosen one.
pub(crate) fn shown(place: &Place, value: &str) -> String {
    let value = match place {
        Place::File { path } => place::chosen(path, value).unwrap_or(value),
        _ => value,
    };
    // `3` for CPUs 0-1 could be mistaken for CPU 3.
    if let Some(cpus) = place.cpus(value)
        && format_cpu_list(&cpus) != value.trim()
    {
        return format!("CPUs {} (mask {})", format_cpu_list(&cpus), one_line(value.trim()));
    }
    one_line(&value.trim().lines().collect::<Vec<_>>().join(" "))
}
