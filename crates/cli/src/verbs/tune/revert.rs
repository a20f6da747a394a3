//! `quell tune revert`: restores the original values.

use quell_tune::journal::{Outcome as End, Planned};
use quell_tune::revert::{Damage, Foreign, How, Reverted, Stays, recover, revert};
use schemars::JsonSchema;
use serde::Serialize;

use super::need_root;
use crate::args::TuneRevert;
use crate::outcome::Outcome;
use crate::printer::{Printer, one_line};
use crate::steps::audit::root;

/// The JSON document of `tune revert --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reversion {
    /// `quell.tune-revert/1`.
    schema: &'static str,
    /// Whether everything is as it was before.
    whole: bool,
    /// Ids of the transactions, newest first.
    transactions: Vec<String>,
    /// Each place that was not reverted yet.
    places: Vec<Place>,
    /// Settings that stay, at least until a boot, although the plan's file that sets them at boot is removed: they had their values before.
    stays: Vec<Stays>,
    /// Journals with lines that cannot be read or are missing.
    damaged: Vec<String>,
    /// What plans of damaged journals were to write and have no record of: whether it was written is not known.
    unrecorded: Vec<Planned>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Place {
    place: String,
    mitigation: String,
    /// `restored`, `already`, `rebooted`, `gone`, `forgotten`, `nearest`, `foreign`, `waits` (for a later transaction) or `failed`.
    how: &'static str,
    /// For `foreign`, the value that it holds; for `failed`, the reason.
    why: Option<String>,
}

/// Reverts and reports. The exit code is 3 if others have changed something since, 1 if something failed.
pub fn run(args: &TuneRevert, printer: Printer) -> anyhow::Result<Outcome> {
    let root = root(args.sysroot.as_deref())?;
    need_root(&root, "restore")?;
    let foreign = match (args.force, args.forget) {
        (true, _) => Foreign::Overwrite,
        (_, true) => Foreign::Forget,
        _ => Foreign::Keep,
    };
    let reverted = if args.interrupted {
        recover(&root, "quell tune revert --interrupted")?
    } else {
        revert(&root, args.id.as_deref(), foreign, "quell tune revert")?
    };
    if args.json {
        printer.json(&document(&reverted))?;
    } else {
        let nothing = args.interrupted && reverted.ids.is_empty();
        printer.result(&if nothing { "nothing was interrupted\n".into() } else { text(&reverted) })?;
    }
    outcome(&reverted)
}

/// Folders whose files others have read already, and what to run so that they read them again.
const TO_DO: [(&str, &str); 4] = [
    (
        "/etc/default/grub.d/",
        "the next boot still has the option until `update-grub` (or `grub-mkconfig -o /boot/grub/grub.cfg`) has run",
    ),
    ("/etc/systemd/system.conf.d/", "systemd still has the setting until `systemctl daemon-reexec`"),
    (
        "/etc/systemd/journald.conf.d/",
        "journald still has the setting until `systemctl restart systemd-journald`",
    ),
    ("/etc/systemd/system/", "the service still has the setting if it started since then: restart it"),
];

/// The outcome of a revert, for the exit code.
pub fn outcome(reverted: &Reverted) -> anyhow::Result<Outcome> {
    if let Some(error) = &reverted.unwritten {
        anyhow::bail!(
            "quell restored settings, but could not record that ({error}): free disk space, then run `quell tune revert` again"
        );
    }
    if reverted.has_failed() {
        anyhow::bail!("not all settings could be restored; the next `quell tune revert` tries again");
    }
    Ok(if reverted.is_whole() { Outcome::Done } else { Outcome::LimitExceeded })
}

/// A description of what happened to each place.
pub fn text(reverted: &Reverted) -> String {
    if reverted.ids.is_empty() {
        return "nothing is applied\n".into();
    }
    let mut text = String::new();
    let back = |how: &How| matches!(how, How::Closed(End::Restored | End::Already));
    let closed = reverted.places.iter().filter(|one| back(&one.how)).count();
    text +=
        &format!("{closed} of {} places are restored ({})\n", reverted.places.len(), reverted.ids.join(", "));
    for (how, words) in [
        (End::Rebooted, "were reset by a boot"),
        (End::Gone, "are gone, with their thread or device"),
        (End::Forgotten, "keep the values that others set"),
    ] {
        let some = reverted.places.iter().filter(|one| one.how == How::Closed(how)).count();
        if some > 0 {
            text += &format!("{some} {words}\n");
        }
    }
    for one in &reverted.places {
        let place = format!("{} ({})", one_line(&one.place), one_line(&one.mitigation));
        match &one.how {
            How::Closed(_) => {}
            How::Foreign(now) => {
                text += &format!(
                    "  {place} was changed by someone else to `{}`, and is left alone\n",
                    one_line(now.trim())
                );
            }
            How::Nearest { original, nearest } => {
                text += &format!(
                    "  {place}: the kernel no longer takes {}; it is {}, the nearest value that it accepts now; the next revert tries again\n",
                    one_line(original),
                    one_line(nearest)
                );
            }
            How::Waits => {
                text += &format!("  {place} stays until a later transaction that needs it is reverted\n");
            }
            How::Failed(why) => text += &format!("  {place}: {}\n", one_line(why)),
        }
    }
    for one in reverted.places.iter().filter(|one| one.how == How::Closed(End::Restored)) {
        if let Some((_, todo)) = TO_DO.iter().find(|(folder, _)| one.place.starts_with(folder)) {
            text += &format!("  {}: {todo}\n", one_line(&one.place));
        }
    }
    for Stays { place, value } in &reverted.stays {
        text += &format!(
            "  {} keeps `{}` at least until a boot: no plan wrote it, only the file for the boot, which is removed\n",
            one_line(place),
            one_line(value)
        );
    }
    for Damage { id, lines, unrecorded, closed } in &reverted.damaged {
        text += &format!(
            "  the journal of {} is damaged: lines {lines:?} cannot be read or are missing, and what they changed is not restored\n",
            one_line(id)
        );
        for planned in unrecorded {
            text += &format!(
                "  {}: no record; was `{}` when the plan was made, which wanted `{}`: compare it yourself\n",
                one_line(&planned.place),
                one_line(planned.old.trim()),
                one_line(planned.new.trim())
            );
        }
        text += if *closed {
            "  it is closed\n"
        } else {
            "  --forget closes the journal once you have compared\n"
        };
    }
    if reverted.places.iter().any(|one| matches!(one.how, How::Foreign(_))) {
        text += "--force writes the originals over it; --forget leaves it to them permanently\n";
    }
    text
}

fn document(reverted: &Reverted) -> Reversion {
    let place = |one: &quell_tune::revert::Returned| {
        let (how, why) = match &one.how {
            How::Closed(End::Restored) => ("restored", None),
            How::Closed(End::Already) => ("already", None),
            How::Closed(End::Rebooted) => ("rebooted", None),
            How::Closed(End::Gone) => ("gone", None),
            How::Closed(End::Forgotten) => ("forgotten", None),
            How::Closed(End::Nearest) | How::Nearest { .. } => ("nearest", None),
            How::Foreign(now) => ("foreign", Some(now.clone())),
            How::Waits => ("waits", None),
            How::Failed(why) => ("failed", Some(why.clone())),
        };
        Place { place: one.place.clone(), mitigation: one.mitigation.clone(), how, why }
    };
    Reversion {
        schema: "quell.tune-revert/1",
        whole: reverted.is_whole(),
        transactions: reverted.ids.clone(),
        places: reverted.places.iter().map(place).collect(),
        stays: reverted.stays.clone(),
        damaged: reverted.damaged.iter().map(|one| format!("{}: lines {:?}", one.id, one.lines)).collect(),
        unrecorded: reverted.damaged.iter().flat_map(|one| one.unrecorded.clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use quell_tune::revert::Returned;

    use super::*;

    #[test]
    fn what_is_still_in_force_after_a_revert_is_named() {
        let of = |place: &str, how: End| Returned {
            place: place.into(),
            mitigation: "test".into(),
            how: How::Closed(how),
        };
        let reverted = |how: End| Reverted {
            ids: vec!["a".into()],
            places: vec![
                of("/etc/default/grub.d/90-quell.cfg", how),
                of("/etc/systemd/system.conf.d/90-quell.conf", how),
                of("/proc/sys/vm/stat_interval", how),
            ],
            ..Reverted::default()
        };
        let text = super::text(&reverted(End::Restored));
        assert!(
            text.contains("90-quell.cfg: the next boot still has the option until `update-grub`"),
            "{text}"
        );
        assert!(
            text.contains("90-quell.conf: systemd still has the setting until `systemctl daemon-reexec`")
        );
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!super::text(&reverted(End::Already)).contains("update-grub"));
    }
}
