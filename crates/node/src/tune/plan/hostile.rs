//! What a plan may not say, whoever signed it: anybody can compute its hash.

use std::collections::BTreeSet;

use super::{Plan, Write};
use crate::tune::audit::{sysctl_key, sysctl_path};
use crate::tune::deny;
use crate::tune::place::{ABSENT, Place};

/// A value of one file is not longer, bytes.
const LONGEST_VALUE: usize = 1 << 20;

/// Checks every write.
///
/// # Errors
/// The first that is refused, and why.
pub fn check(plan: &Plan) -> Result<(), String> {
    let mut ids = BTreeSet::new();
    for write in &plan.writes {
        let refused =
            |why: String| format!("the write `{}` is refused: {why}", quell_recording::one_line(&write.id));
        if !ids.insert(&write.id) {
            return Err(refused("another has its id".into()));
        }
        if !plan.mitigations.iter().any(|one| one.id == write.mitigation) {
            return Err(refused("it is for no mitigation of the plan".into()));
        }
        one(write).map_err(refused)?;
    }
    Ok(())
}

fn one(write: &Write) -> Result<(), String> {
    let values = [&write.old, &write.new];
    if values.iter().any(|value| value.len() > LONGEST_VALUE || value.contains('\0')) {
        return Err("its value is no text of a setting".into());
    }
    write.group.iter().try_for_each(|path| deny::file(path))?;
    match &write.place {
        Place::File { path } => deny::file(path),
        Place::Unit { name } => deny::unit(name),
        Place::DropIn { path } => {
            deny::drop_in(path)?;
            values.into_iter().try_for_each(|text| drop_in(path, text))
        }
        Place::Irq { name, .. } if name.contains('/') => Err("an interrupt has no such name".into()),
        Place::Thread { pid: 0, .. } => Err("there is no thread 0".into()),
        _ => Ok(()),
    }
}

/// What a file of quell's may say to those who read it: some of them run programs.
fn drop_in(path: &str, text: &str) -> Result<(), String> {
    if text == ABSENT {
        return Ok(());
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    let good: fn(&str) -> Result<(), String> = match path {
        _ if path.starts_with("/etc/sysctl.d/") => sysctl,
        _ if path.starts_with("/etc/tmpfiles.d/") => tmpfiles,
        _ if path.starts_with("/etc/default/grub.d/") => grub,
        _ => others,
    };
    for line in lines {
        good(line)?;
    }
    match text.contains('\r') || text.lines().any(|line| line.ends_with('\\')) {
        true => Err(format!("{path} would hide what it says")),
        false => Ok(()),
    }
}

fn sysctl(line: &str) -> Result<(), String> {
    let key = line.split('=').next().unwrap_or_default().trim().trim_start_matches('-').trim();
    let path = sysctl_path(key);
    match sysctl_key(&path) {
        Some(_) if !path.contains(['*', '?', '[']) => deny::file(&path),
        _ => Err(format!("`{key}` is no plain key")),
    }
}

fn tmpfiles(line: &str) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["w", path, "-", "-", "-", "-", _value, ..] if !path.contains(['*', '?', '[', '%', '"', '\'']) => {
            deny::file(path)
        }
        _ => Err(format!("`{line}` does more than write a setting")),
    }
}

/// A shell reads it.
fn grub(line: &str) -> Result<(), String> {
    let words = line
        .strip_prefix("GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} ")
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|words| words.chars().all(|c| c.is_ascii_alphanumeric() || " _-.,:=/+@%*~".contains(c)));
    let runs =
        |word: &str| matches!(word.split('=').next(), Some("init" | "rdinit" | "root" | "single" | "--"));
    match words {
        Some(words) if !words.split(' ').any(runs) => Ok(()),
        _ => Err(format!("`{line}` does more than add options to the kernel's command line")),
    }
}

/// systemd, udev, modprobe, tuned: nothing that runs a program or chooses what one loads.
fn others(line: &str) -> Result<(), String> {
    let low = line.to_ascii_lowercase();
    let begins = ["exec", "install ", "remove ", "environment", "rootdirectory", "script", "user=", "group="];
    let has = ["run+=", "run=", "run{", "program", "import", "ld_preload", "onfailure", "onsuccess"];
    match begins.iter().any(|word| low.starts_with(word)) || has.iter().any(|word| low.contains(word)) {
        true => Err(format!("`{line}` runs a program")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_in_may_set_and_nothing_else() {
        for (path, bad) in [
            ("/etc/sysctl.d/90-quell-x.conf", "kernel.core_pattern = |/tmp/x"),
            ("/etc/sysctl.d/90-quell-x.conf", "kernel/core_pattern = |/tmp/x"),
            ("/etc/sysctl.d/90-quell-x.conf", "kernel.core_patter? = |/tmp/x"),
            ("/etc/tmpfiles.d/90-quell-x.conf", "f /etc/cron.d/x - - - - x"),
            ("/etc/tmpfiles.d/90-quell-x.conf", "w /etc/passwd - - - - x"),
            ("/etc/default/grub.d/90-quell-x.cfg", "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} $(id)\""),
            ("/etc/default/grub.d/90-quell-x.cfg", "id"),
            ("/etc/default/grub.d/90-quell-x.cfg", "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} init=/x\""),
            ("/etc/systemd/system/quell.service", "ExecStart=/tmp/x"),
            ("/etc/udev/rules.d/90-quell.rules", "ACTION==\"add\", RUN+=\"/tmp/x\""),
            ("/etc/modprobe.d/90-quell.conf", "install x /tmp/x"),
        ] {
            assert!(drop_in(path, bad).is_err(), "{bad}");
        }
        for (path, good) in [
            ("/etc/sysctl.d/90-quell-x.conf", "# quell: x\nvm.stat_interval = 20\n"),
            ("/etc/tmpfiles.d/90-quell-x.conf", "w /sys/kernel/mm/ksm/run - - - - 0\n"),
            (
                "/etc/default/grub.d/90-quell-x.cfg",
                "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} nohz_full=1-3\"\n",
            ),
            ("/etc/systemd/system.conf.d/90-quell.conf", "[Manager]\nCPUAffinity=0-1\n"),
        ] {
            assert_eq!(drop_in(path, good), Ok(()), "{good}");
        }
    }
}
