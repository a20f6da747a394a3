//! A systemd unit: whether it runs, and whether it starts at boot.

mod shown;
mod systemctl;

pub use shown::Units;
use systemctl::Systemctl;

use super::PlaceError;
use crate::deny;
use crate::root::Root;

pub(super) fn read(root: &Root, name: &str) -> Result<String, PlaceError> {
    let state = match shown::known(name) {
        Some(known) => known?,
        None => Systemctl::find(root)?.state(name)?,
    };
    Ok(format!("{} {}", state.active, state.enabled))
}

/// Changes each property separately, and only if it differs, so that a revert leaves everything else as it was.
pub(super) fn write(root: &Root, name: &str, value: &str) -> Result<(), PlaceError> {
    deny::unit(name).map_err(PlaceError::Denied)?;
    let invalid = || PlaceError::Invalid(value.trim().to_owned());
    let (active, enabled) = value.trim().split_once(' ').ok_or_else(invalid)?;
    let enabled = enabled.trim();
    if !systemctl::ACTIVE.contains(&active) || !systemctl::ENABLED.contains(&enabled) {
        return Err(invalid());
    }
    let systemctl = Systemctl::find(root)?;
    let mut now = systemctl.state(name)?;
    possible(name, &now.enabled, enabled)?;
    if now.enabled == "masked" && enabled != "masked" {
        systemctl.run("unmask", name)?;
        // Only without the mask the state below it is visible.
        now = systemctl.state(name)?;
        possible(name, &now.enabled, enabled)?;
    }
    if runs(active) && !runs(&now.active) {
        systemctl.run("start", name)?;
    }
    if now.enabled != enabled {
        match enabled {
            "enabled" => systemctl.run("enable", name)?,
            "disabled" => systemctl.run("disable", name)?,
            _ => systemctl.run("mask", name)?,
        }
    }
    // Last, so that nothing starts the unit again before it is masked.
    if !runs(active) && runs(&now.active) {
        systemctl.run("stop", name)?;
    }
    Ok(())
}

/// Lets systemd read its files again. Where that fails, it does so at the next boot.
pub(super) fn reload(root: &Root) {
    if let Ok(systemctl) = Systemctl::find(root) {
        let _ = systemctl.reload();
    }
}

/// A failed unit counts as not running, like one that was stopped.
pub(super) fn same(a: &str, b: &str) -> bool {
    let words = |text: &str| -> (Option<bool>, Vec<String>) {
        let mut words = text.split_whitespace();
        (words.next().map(runs), words.map(str::to_owned).collect())
    };
    words(a) == words(b)
}

fn runs(active: &str) -> bool {
    matches!(active, "active" | "activating" | "reloading")
}

/// Checks that enable, disable, mask and unmask can change one state to the other and back.
fn possible(name: &str, now: &str, wanted: &str) -> Result<(), PlaceError> {
    let switched = |word| matches!(word, "enabled" | "disabled");
    let steady = |word| matches!(word, "static" | "indirect" | "generated" | "alias");
    let masked = |word| word == "masked";
    let way = now == wanted
        || (switched(now) || steady(now)) && masked(wanted)
        || masked(now) && (switched(wanted) || steady(wanted))
        || switched(now) && switched(wanted);
    if way {
        return Ok(());
    }
    Err(PlaceError::Unavailable(format!(
        "{name} is `{now}`, and no plain systemctl command can make it `{wanted}` and restore it: do it by hand"
    )))
}

#[cfg(test)]
mod tests;
