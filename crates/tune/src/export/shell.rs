//! One POSIX shell script for machines without quell: it saves the current values, writes, and restores.

use std::fmt::Write as _;

use quell_recording::one_line;

use super::{Export, File, comments, quoted, skipped_section};
use crate::catalogue::{Held, Property};
use crate::place::Place;
use crate::plan::{Left, Plan, Write};

/// The part that is identical in every script.
const BODY: [&str; 2] = [include_str!("shell/places.sh"), include_str!("shell/verbs.sh")];

const NEEDED: &str =
    "Needs root, sh and coreutils; for threads taskset and chrt (util-linux), for units systemctl.";

/// The script `quell-tune.sh apply|undo|status`.
pub fn shell(plan: &Plan) -> Export {
    let (writes, left): (Vec<_>, Vec<_>) = plan.writes.iter().partition(|write| why_not(write).is_none());
    let left: Vec<Left> =
        left.into_iter().filter_map(|write| Some(super::left(write, why_not(write)?))).collect();
    let head = comments([
        "Made by `quell tune export shell`. Prefer `quell tune apply` where quell is installed: it also handles kill -9 and full disks.",
        "",
        "  sh quell-tune.sh apply    saves the originals in /run/quell-tune, and writes; refused if originals are saved already",
        "  sh quell-tune.sh undo     reverts it, in reverse order; settings that someone else changed are left alone and reported",
        "  sh quell-tune.sh status   reports whether the written values still hold; writes nothing",
        "",
        "Exits with 0 if done, 1 if failed (the originals are restored), 2 for wrong usage, 3 if refused, or if a",
        "setting differs from what it should be.",
        "",
        NEEDED,
        "A boot resets the settings in memory, and discards the originals: `undo` then only removes quell's own files, and units that",
        "were disabled stay disabled.",
    ]) + &about(plan)
        + &skipped_section("Left out, because a shell script cannot do it:", &left)
        + &skipped_section("Left out by the plan:", &plan.left);
    let usage = "usage: quell-tune.sh apply|undo|status";
    let text = script("quell-tune", usage, plan, &head, &writes);
    Export { files: vec![File { name: "quell-tune.sh".into(), mode: 0o755, text }], left }
}

/// The plan's origin and purpose.
pub(super) fn about(plan: &Plan) -> String {
    let mut lines = vec![
        String::new(),
        format!("For {}, Linux {}. Plan {}.", plan.host, plan.kernel, plan.hash),
        format!("CPUs that compute: {}; left to the system: {}.", plan.compute, plan.housekeeping),
    ];
    lines.extend(
        plan.mitigations.iter().map(|one| format!("  {} ({}): {}", one.id, one.risk.word(), one.title)),
    );
    comments(lines.iter().map(String::as_str))
}

/// Why a shell script cannot make a write; none if it can.
pub(super) fn why_not(write: &Write) -> Option<&'static str> {
    let latency = |value: &str| value.trim().parse::<i32>().is_ok_and(|limit| limit >= 0);
    match &write.place {
        Place::Held { what: Held::TimestampSocket } => {
            Some("a shell has no such socket; use `quell tune apply`")
        }
        Place::Held { what: Held::CpuDmaLatency } if !latency(&write.new) => {
            Some("its value is no number of µs")
        }
        Place::Cpuset { .. } => {
            Some("tasks must be moved until none is left outside; use `quell tune apply`")
        }
        Place::File { path } | Place::DropIn { path } if path.contains('\n') => {
            Some("its path is no plain path")
        }
        _ if write.group.iter().chain(&write.dependents).any(|path| path.contains('\n')) => {
            Some("a path of its group or its dependents is no plain path")
        }
        _ => None,
    }
}

/// A script for some writes: its own part, then the identical part.
pub(super) fn script(name: &str, usage: &str, plan: &Plan, head: &str, writes: &[&Write]) -> String {
    let mut text = format!(
        "#!/bin/sh\n{head}\n# shellcheck disable=SC1003,SC2016,SC2034,SC2317 # all is called by number, and names may hold anything\n"
    );
    let (name, usage, hash) = (quoted(name), quoted(usage), quoted(&plan.hash));
    let _ = writeln!(text, "NAME={name}\nUSAGE={usage}\nPLAN={hash}\nCOUNT={}\n", writes.len());
    for (number, write) in (1..).zip(writes) {
        let _ = writeln!(text, "w{number}() {{\n{}}}", fields(write));
    }
    // The first lines are directives for shellcheck, which also checks the parts one by one.
    let body = BODY.iter().filter_map(|part| part.split_once('\n'));
    text + "\n" + &body.map(|(_, part)| part).collect::<String>()
}

/// One write as variables. All of them are set, so that none keeps the value of the previous write.
fn fields(write: &Write) -> String {
    let number = |text: u64| text.to_string();
    let mut fields = [
        ("kind", String::new()),
        ("label", one_line(&write.place.to_string())),
        ("may_fail", if write.may_fail { "1" } else { "0" }.to_owned()),
        ("group", write.group.join("\n")),
        ("dependents", write.dependents.join("\n")),
        ("path", String::new()),
        ("number", String::new()),
        ("name", String::new()),
        ("pid", String::new()),
        ("start", String::new()),
        ("comm", String::new()),
        ("property", String::new()),
        ("new", value(write)),
    ];
    let mut set = |key: &str, value: String| {
        if let Some(field) = fields.iter_mut().find(|(known, _)| *known == key) {
            field.1 = value;
        }
    };
    match &write.place {
        Place::File { path } => (set("kind", "file".into()), set("path", path.clone())),
        Place::DropIn { path } => (set("kind", "dropin".into()), set("path", path.clone())),
        Place::Irq { number: irq, name } => {
            set("number", number(u64::from(*irq)));
            (set("kind", "irq".into()), set("name", name.clone()))
        }
        Place::Thread { pid, start, comm, property } => {
            set("pid", number(u64::from(*pid)));
            set("start", number(*start));
            set("property", word(*property).into());
            (set("kind", "thread".into()), set("comm", comm.clone()))
        }
        Place::Unit { name } => (set("kind", "unit".into()), set("name", name.clone())),
        Place::Held { .. } | Place::Cpuset { .. } => (set("kind", "held".into()), ()),
    };
    fields.iter().fold(String::new(), |text, (key, value)| text + "    " + key + "=" + &quoted(value) + "\n")
}

/// The value to write: a drop-in byte by byte, any other without surrounding blanks.
fn value(write: &Write) -> String {
    match &write.place {
        Place::DropIn { .. } => write.new.clone(),
        _ => write.new.trim().to_owned(),
    }
}

fn word(property: Property) -> &'static str {
    match property {
        Property::Affinity => "affinity",
        Property::Policy => "policy",
        Property::TimerSlack => "timer-slack",
    }
}
