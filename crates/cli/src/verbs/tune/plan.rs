//! `quell tune plan`: shows what mitigations would write.

use std::io::Read as _;
use std::path::Path;

use quell_tune::Root;
use quell_tune::catalogue::{Catalogue, Profile, Risk};
use quell_tune::guard::{Allowed, Refusal, refusals};
use quell_tune::plan::{Choice, Plan, plan};

use super::options;
use crate::args::TunePlan;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::steps::audit::{audited, catalogue, root, unknown};
use quell_request::Usage;

/// Plans, prints the differences, and writes the plan.
pub fn run(args: &TunePlan, printer: Printer) -> anyhow::Result<Outcome> {
    let root = root(args.machine.sysroot.as_deref())?;
    let catalogue = catalogue(&args.machine, &root)?;
    let mut ids = args.ids.clone();
    if let Some(name) = &args.profile {
        let profile = Profile::get(name).ok_or_else(|| {
            let all: Vec<String> = Profile::all().into_iter().map(|one| one.name).collect();
            Usage(format!("`{name}` is not a profile: choose one of {}", all.join(", ")))
        })?;
        ids.extend(profile.mitigations.iter().filter(|id| !args.ids.contains(id)).cloned());
    }
    if let Some(stranger) = ids.iter().find(|id| catalogue.get(id).is_none()) {
        return Err(unknown(&catalogue, stranger));
    }
    let audit = audited(&root, &catalogue, &options(&args.options), Some(&ids))?;
    let plan = plan(&audit, &Choice { ids, persist: args.persist }).map_err(Usage)?;
    let (never, asked) = refused(&root, &plan, &catalogue);
    if !never.is_empty() {
        printer.result(&plan.diff())?;
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
        printer.result(&plan.diff())?;
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
    asked.iter().for_each(|refusal| printer.notice(&format!("`quell tune apply` will refuse it: {refusal}")));
    Ok(Outcome::Done)
}

/// Why the plan can never be applied here, and why not without the user's permission.
fn refused(root: &Root, plan: &Plan, catalogue: &Catalogue) -> (Vec<Refusal>, Vec<Refusal>) {
    if plan.writes.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let everything = Allowed { risk: Risk::High, owner: true, users: true };
    let never = refusals(root, plan, everything, catalogue);
    let by_default = Allowed { risk: Risk::Low, owner: false, users: false };
    let mut asked = refusals(root, plan, by_default, catalogue);
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
