//! A TuneD profile: TuneD's own plugins where they restore the previous value, and a script for the rest.
//!
//! Checked against TuneD 2.20 and 2.28: a value ends at ` #`; `${…}` is a variable or a function, some of which run programs;
//! `[sysfs]` takes only paths below /sys, with `*` as a wildcard; a sysctl's value may begin with `<` or `>`, or lose its quotes.

use std::fmt::Write as _;

use super::shell::{about, script, why_not};
use super::{Export, File, comments, left, skipped_section};
use crate::catalogue::Held;
use crate::place::{PREEMPTION, Place};
use crate::plan::{Left, Plan, Write};

/// Sections, in the order in which TuneD reads the file. The script comes last, because other sections may restart what it moves.
const SECTIONS: [&str; 6] = ["sysctl", "sysfs", "cpu", "systemd", "service", "bootloader"];

/// The folder `quell/`, for /etc/tuned (TuneD 2.23 and later: /etc/tuned/profiles).
pub fn tuned(plan: &Plan) -> Export {
    let mut making = Making::default();
    plan.writes.iter().for_each(|write| making.add(write));
    let Making { lines, script: writes, left } = making;
    let mut text = head(plan, &left);
    text += "\n[main]\nsummary=Less operating-system noise, as planned by quell\n";
    for section in SECTIONS {
        let of_it: Vec<&str> =
            lines.iter().filter(|(known, _)| *known == section).map(|(_, line)| line.as_str()).collect();
        if !of_it.is_empty() {
            let _ = writeln!(text, "\n[{section}]\n{}", of_it.join("\n"));
        }
    }
    if !writes.is_empty() {
        text += "\n[script]\nscript=${i:PROFILE_DIR}/script.sh\n";
    }
    let mut files = vec![File { name: "quell/tuned.conf".into(), mode: 0o644, text }];
    if !writes.is_empty() {
        files.push(File { name: "quell/script.sh".into(), mode: 0o755, text: script_file(plan, &writes) });
    }
    Export { files, left }
}

fn head(plan: &Plan, left: &[Left]) -> String {
    comments([
        "Made by `quell tune export tuned`. Put the folder into /etc/tuned (TuneD 2.23 and later: /etc/tuned/profiles), then:",
        "  tuned-adm profile quell",
        "",
        "TuneD keeps the originals in its memory: after a crash of its daemon it treats its own settings as the originals. script.sh keeps",
        "its own in /run/quell-tune-tuned. Files in /etc/sysctl.d come after TuneD where reapply_sysctl is on, as it is by default.",
    ]) + &about(plan)
        + &skipped_section("Left out, because a profile cannot express it:", left)
        + &skipped_section("Left out by the plan:", &plan.left)
}

fn script_file(plan: &Plan, writes: &[&Write]) -> String {
    let head = comments([
        "Made by `quell tune export tuned`: for settings that TuneD has no plugin for, or could not restore. TuneD calls it with start, stop and",
        "verify. Originals are in /run/quell-tune-tuned; the first ones count, also when TuneD starts again after a crash.",
    ]) + &about(plan);
    script("quell-tune-tuned", "usage: script.sh start|stop|verify", plan, &head, writes)
}

#[derive(Debug, Default)]
struct Making<'p> {
    /// Section, line.
    lines: Vec<(&'static str, String)>,
    script: Vec<&'p Write>,
    left: Vec<Left>,
}

impl<'p> Making<'p> {
    fn add(&mut self, write: &'p Write) {
        match &write.place {
            Place::DropIn { path } => self.drop_in(write, path),
            _ => match line(write) {
                Some(line) => self.lines.push(line),
                None => self.script(write),
            },
        }
    }

    fn script(&mut self, write: &'p Write) {
        match why_not(write) {
            None => self.script.push(write),
            Some(why) => self.left.push(left(write, why)),
        }
    }

    /// TuneD itself sets what quell would put into a drop-in.
    fn drop_in(&mut self, write: &Write, path: &str) {
        let found = match path {
            _ if path.starts_with("/etc/default/grub.d/") => {
                boot_options(&write.new).map(|words| ("bootloader", format!("{}=+{words}", option(write))))
            }
            _ if path.starts_with("/etc/systemd/system.conf.d/") => {
                cpu_affinity(&write.new).map(|cpus| ("systemd", format!("cpu_affinity={cpus}")))
            }
            _ => None,
        };
        match found.filter(|(_, line)| safe(line)) {
            Some(line) => self.lines.push(line),
            None if path.starts_with("/etc/sysctl.d/") || path.starts_with("/etc/tmpfiles.d/") => {
                self.left.push(left(write, "not needed: TuneD sets the same anew after each boot"));
            }
            None => self
                .left
                .push(left(write, "TuneD has no plugin that puts this file there; use `quell tune apply`")),
        }
    }
}

/// A write as an option of a plugin that also restores the value; none if there is no such plugin.
fn line(write: &Write) -> Option<(&'static str, String)> {
    let value = write.new.trim();
    let found = match &write.place {
        // The plugin restores each file by itself, which fails if the value is a 0 that stands for the partner's value, and leaves what
        // the kernel has changed along.
        Place::File { .. } if !write.dependents.is_empty() => None,
        Place::File { .. } if !write.group.is_empty() && write.old.trim() == "0" => None,
        Place::File { path } if path.starts_with("/proc/sys/") => {
            Some(("sysctl", format!("{}={value}", key(path)?)))
        }
        // The plugin cannot restore a file that reads as empty.
        Place::File { path } if path.starts_with("/sys/") && !write.old.trim().is_empty() => {
            // It finds the word to restore in brackets only.
            let plain = path != PREEMPTION && !path.contains(['*', '?', '[', ']', '=']);
            plain.then(|| ("sysfs", format!("{path}={value}")))
        }
        Place::Held { what: Held::CpuDmaLatency } => {
            value.parse::<u32>().ok().map(|limit| ("cpu", format!("force_latency={limit}")))
        }
        Place::Unit { name } => service(name, &write.old, value).map(|line| ("service", line)),
        _ => None,
    };
    let found = found.filter(|(_, line)| safe(line));
    found.filter(|_| !value.is_empty() && !value.starts_with(['<', '>', '"']))
}

/// A path below /proc/sys as a key of the plugin, which always swaps dots and slashes, unlike sysctl.d.
fn key(path: &str) -> Option<String> {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    Some(path.strip_prefix("/proc/sys/")?.chars().map(swap).collect())
}

/// The plugin knows start, stop, enable and disable. It distinguishes `enabled` and `disabled`, and no other states.
fn service(name: &str, old: &str, new: &str) -> Option<String> {
    let (_, was) = old.trim().split_once(' ')?;
    let (active, enabled) = new.split_once(' ')?;
    let run = if matches!(active, "active" | "activating" | "reloading") { "start" } else { "stop" };
    let boot = match (was, enabled) {
        _ if was == enabled => "",
        ("enabled" | "disabled", "enabled") => ",enable",
        ("enabled" | "disabled", "disabled") => ",disable",
        _ => return None,
    };
    Some(format!("service.{name}={run}{boot}"))
}

/// Whether TuneD reads a line literally: no comment in it, no variable or function, no second line, and no other key.
fn safe(line: &str) -> bool {
    let key = line.split('=').next().unwrap_or_default();
    let plain = |c: char| c.is_ascii_graphic() || c == ' ' || c == '\t';
    line.chars().all(|c| plain(c) && !"#$\\`;".contains(c))
        && !key.contains(char::is_whitespace)
        && !key.starts_with('[')
}

/// One option per file, because profiles are merged by option.
fn option(write: &Write) -> String {
    let word: String =
        write.mitigation.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("cmdline_quell_{word}")
}

/// The options that a file in grub.d adds.
fn boot_options(text: &str) -> Option<String> {
    let of_line = |line: &str| {
        let words = line.strip_prefix("GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} ")?.strip_suffix('"')?;
        Some(words.trim().to_owned())
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let words: Option<Vec<String>> = lines.map(of_line).collect();
    words.filter(|words| !words.is_empty()).map(|words| words.join(" "))
}

/// The CPUs in a file that sets nothing else.
fn cpu_affinity(text: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    // The empty line drops what other files set. TuneD's own value replaces theirs too.
    let rest: Vec<&str> = lines.filter(|line| !matches!(*line, "[Manager]" | "CPUAffinity=")).collect();
    match rest.as_slice() {
        [line] => line.strip_prefix("CPUAffinity=").map(|cpus| cpus.trim().replace(' ', ",")),
        _ => None,
    }
}
