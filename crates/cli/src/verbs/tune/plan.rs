//! `quell tune plan`: shows what mitigations would write.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use quell_tune::Root;
use quell_tune::audit::{Audit, State};
use quell_tune::catalogue::{Catalogue, Risk};
use quell_tune::facts::Facts;
use quell_tune::guard::{Allowed, Refusal, refusals};
use quell_tune::place::Place;
use quell_tune::plan::{Choice, Plan, plan};
use quell_tune::profile::{Profiles, Resolved};
use quell_tune::status::TimedPlaces;

use super::{diff, options, timed};
use crate::args::{AuditArgs, TuneMachine, TunePlan};
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::steps::audit::{audited, catalogue, root, site_at, unknown};
use quell_request::Usage;

/// Plans, prints the differences, and writes the plan.
pub fn run(args: &TunePlan, printer: Printer) -> anyhow::Result<Outcome> {
    let root = root(args.machine.sysroot.as_deref())?;
    let catalogue = catalogue(&args.machine, &root)?;
    let wanted = Wanted { ids: &args.ids, profile: args.profile.as_deref(), persist: args.persist };
    let timed = timed(&root);
    let and_passing = |audit: &Audit<'_>, plan: Plan| (passing(&plan, &done(audit, &plan), &timed), plan);
    let (passing, plan) =
        planned_with(&root, &catalogue, &wanted, (&args.options, &args.machine), and_passing)?;
    let (never, asked) = refused(&root, &plan, &catalogue);
    if !never.is_empty() {
        printer.result(&diff(&plan, &timed))?;
        never.iter().for_each(|refusal| printer.notice(&format!("refused: {refusal}")));
        return Ok(Outcome::LimitExceeded);
    }
    if let Some(output) = &args.output {
        keep_others(output)?;
        let text = serde_json::to_string_pretty(&plan)? + "\n";
        quell_recording::write_output(output, |file| file.write_all(text.as_bytes()))?;
    }
    if args.json {
        printer.json(&plan)?;
    } else {
        printer.result(&diff(&plan, &timed))?;
    }
    let tree = args
        .machine
        .sysroot
        .as_ref()
        .map_or_else(String::new, |tree| format!(" --sysroot {}", tree.display()));
    match &args.output {
        Some(_) if plan.writes.is_empty() => {
            printer.status("nothing to write: all of it is on, or not for this machine");
        }
        Some(output) => printer.status(&format!(
            "wrote {}; `quell tune apply {0}{tree}` checks it, and applies it with --yes",
            output.display()
        )),
        None => {}
    }
    passing.iter().for_each(|line| printer.notice(line));
    asked.iter().for_each(|refusal| printer.notice(&format!("`quell tune apply` will refuse it: {refusal}")));
    Ok(Outcome::Done)
}

/// The places of the plan's mitigations that have the wanted values.
fn done<'a>(audit: &'a Audit<'_>, plan: &Plan) -> BTreeSet<&'a Place> {
    let is_chosen = |id: &str| plan.mitigations.iter().any(|one| one.id == id);
    let chosen = audit.entries.iter().filter(|entry| is_chosen(&entry.mitigation.id));
    chosen.flat_map(|entry| &entry.places).filter(|one| one.done).map(|one| &one.place).collect()
}

/// The transactions that have set values for a time that the plan wants, and hence does not write.
fn passing(plan: &Plan, done: &BTreeSet<&Place>, timed: &TimedPlaces) -> Vec<String> {
    let is_written = |place: &Place| plan.writes.iter().any(|write| write.place == *place);
    let mut counts: BTreeMap<&(String, String), usize> = BTreeMap::new();
    for &place in done {
        if let Some(holder) = timed.get(&place.identity())
            && !is_written(place)
        {
            *counts.entry(holder).or_default() += 1;
        }
    }
    let line = |((id, until), count): (&(String, String), usize)| {
        let (have, them) = match count {
            1 => ("setting has its value", "it"),
            _ => ("settings have their values", "them"),
        };
        format!(
            "{count} {have} from {id} until {until}, and the plan does not write {them}: to keep {them} longer, `quell tune revert {id}` first, then plan again"
        )
    };
    counts.into_iter().map(line).collect()
}

/// What a plan is to contain.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Mitigations, by id.
    pub ids: &'a [String],
    /// A profile, by name.
    pub profile: Option<&'a str>,
    /// Whether it must last.
    pub persist: bool,
}

/// Makes a plan from a new audit.
pub fn planned(
    root: &Root,
    catalogue: &Catalogue,
    wanted: &Wanted<'_>,
    given: &AuditArgs,
    machine: &TuneMachine,
) -> anyhow::Result<Plan> {
    planned_with(root, catalogue, wanted, (given, machine), |_, plan| plan)
}

/// As [`planned`], and what `with` makes of the audit and the plan.
fn planned_with<T>(
    root: &Root,
    catalogue: &Catalogue,
    wanted: &Wanted<'_>,
    (given, machine): (&AuditArgs, &TuneMachine),
    with: impl FnOnce(&Audit<'_>, Plan) -> T,
) -> anyhow::Result<T> {
    if let Some(stranger) = wanted.ids.iter().find(|id| catalogue.get(id).is_none()) {
        return Err(unknown(catalogue, stranger));
    }
    let mut options = options(given);
    let profile = match wanted.profile {
        Some(name) => resolved(name, &machine.site, root, catalogue)?,
        None => Resolved::default(),
    };
    for (id, value) in &profile.values {
        options.values.entry(id.clone()).or_insert_with(|| value.clone());
    }
    let all: Vec<String> = wanted.ids.iter().chain(profile.ids()).cloned().collect();
    let audit = audited(root, catalogue, &options, Some(&catalogue.and_what_keeps(&all)))?;
    let is_here = |id: &str| {
        let entry = audit.entries.iter().find(|entry| entry.mitigation.id == id);
        entry.is_some_and(|entry| !matches!(entry.state, State::NotHere | State::NotMounted))
    };
    let mut ids = wanted.ids.to_vec();
    ids.extend(profile.chosen(is_here).into_iter().filter(|id| !wanted.ids.contains(id)));
    let plan = plan(&audit, &Choice { ids, persist: wanted.persist }).map_err(Usage)?;
    Ok(with(&audit, plan))
}

/// The mitigations of a profile on this machine.
fn resolved(name: &str, site: &Path, root: &Root, catalogue: &Catalogue) -> anyhow::Result<Resolved> {
    let profiles = Profiles::with_site(&site_at(site, root))?;
    let facts = Facts::look(root).map_err(anyhow::Error::msg)?;
    Ok(profiles.resolve(name, root, &facts, catalogue).map_err(Usage)?)
}

/// Why the plan can never be applied here, and why not without the user's permission.
fn refused(root: &Root, plan: &Plan, catalogue: &Catalogue) -> (Vec<Refusal>, Vec<Refusal>) {
    if plan.writes.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let everything = Allowed { risk: Risk::High, owner: true, users: true };
    let never = refusals(root, plan, everything, catalogue);
    let mut asked = refusals(root, plan, Allowed::BY_DEFAULT, catalogue);
    asked.retain(|refusal| !never.contains(refusal));
    (never, asked)
}

/// Refuses to overwrite a file that is no plan.
fn keep_others(output: &Path) -> anyhow::Result<()> {
    let is_file = output.symlink_metadata().is_ok_and(|facts| facts.is_file());
    if !is_file {
        return Ok(());
    }
    let mut begin = Vec::new();
    fs_err::File::open(output)?.take(4096).read_to_end(&mut begin)?;
    if !begin.is_empty() && !String::from_utf8_lossy(&begin).contains("quell.tune-plan/") {
        anyhow::bail!("{} exists already, and is not a plan: choose another name", output.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;

    #[test]
    fn values_that_end_with_another_transaction_are_named() {
        let plan: Plan = serde_json::from_value(serde_json::json!({
            "schema": "quell.tune-plan/1", "hash": "", "host": "", "kernel": "", "compute": "",
            "housekeeping": "", "mitigations": [], "writes": [], "left": []
        }))
        .unwrap();
        let file = |path: &str| Place::File { path: path.into() };
        let places = ["/proc/sys/vm/a", "/proc/sys/vm/b", "/proc/sys/vm/c"].map(file);
        let done: BTreeSet<&Place> = places.iter().collect();
        let timed_by = |path: &str, id: &str| (path.to_owned(), (id.to_owned(), "noon".to_owned()));
        let timed: TimedPlaces = [timed_by("/proc/sys/vm/a", "t1"), timed_by("/proc/sys/vm/b", "t1")].into();
        let lines = passing(&plan, &done, &timed);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("2 settings have their values from t1 until noon"), "{lines:?}");
        assert!(lines[0].contains("`quell tune revert t1` first"), "{lines:?}");
        assert!(passing(&plan, &done, &TimedPlaces::new()).is_empty());
    }
}
