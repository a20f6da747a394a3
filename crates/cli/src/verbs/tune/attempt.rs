//! `quell tune try`: measures a mitigation with and without, in pairs of random order, and keeps it only if it helps.

mod rounds;
mod scale;

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};

use quell_analysis::trial::Verdict;
use quell_node::machine::Cpus;
use quell_recording::{Cpu, Nanos};
use quell_request::tune::trial::{Attempt, Attempts, Tried, ids};
use quell_tune::Root;
use quell_tune::audit::Audit;
use quell_tune::catalogue::Catalogue;
use quell_tune::guard::refusals;
use quell_tune::plan::{Choice, Plan, plan};
use rounds::{Rounds, settle};

use super::apply::applied;
use super::{allowed, need_root, options};
use crate::args::TuneTry;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::render;
use crate::steps::audit::{audited, catalogue_at, unknown};
use quell_request::Usage;

/// Tries each mitigation by itself.
pub fn run(args: &TuneTry, printer: Printer) -> anyhow::Result<Outcome> {
    check(args)?;
    let root = Root::system();
    let catalogue = catalogue_at(&args.site, &root)?;
    let mut tried = BTreeSet::new();
    let ids: Vec<&String> = args.ids.iter().filter(|id| tried.insert(*id)).collect();
    let all = ids.iter().map(|id| Tried::from_ids(&catalogue, id)).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|stranger| unknown(&catalogue, &stranger))?;
    let plans =
        ids.iter().map(|id| planned(args, &root, &catalogue, id)).collect::<anyhow::Result<Vec<_>>>()?;
    if !args.yes {
        return dry(args, &all, &plans, printer);
    }
    need_root(&root, "change")?;
    let refused: Vec<String> = plans
        .iter()
        .flat_map(|(plan, _)| refusals(&root, plan, allowed(&args.allow), &catalogue))
        .map(|refusal| refusal.to_string())
        .collect();
    if !refused.is_empty() {
        let once: BTreeSet<String> = refused.into_iter().collect();
        once.iter().for_each(|refusal| printer.notice(&format!("refused: {refusal}")));
        return Ok(Outcome::LimitExceeded);
    }
    // Drawn, if it is not given: an order that everyone has is no coin.
    let seed = args.seed.unwrap_or_else(drawn);
    let mut attempts = Vec::new();
    let mut failed = None;
    for (tried, (plan, cpus)) in all.iter().zip(&plans) {
        match one(args, &root, tried, plan, cpus, seed, printer) {
            Ok(attempt) => attempts.push(attempt),
            // Results of earlier mitigations are printed even after an error.
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let document = Attempts::new(args.duration, seed, attempts);
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&render::tune_try::text(&document))?;
    }
    failed.map_or(Ok(Outcome::Done), Err)
}

/// A seed by chance, of few digits.
fn drawn() -> u64 {
    RandomState::new().hash_one("seed") >> 32
}

/// Minimum length of a recording; shorter ones hold almost nothing.
const SHORTEST: Nanos = Nanos::from_nanos(50_000_000);

fn check(args: &TuneTry) -> anyhow::Result<()> {
    if args.duration < SHORTEST {
        return Err(Usage(format!(
            "--duration {} is too short to see noise: give at least {SHORTEST}",
            args.duration
        ))
        .into());
    }
    quell_request::positive(args.quantum, "--quantum")?;
    if !(args.confidence > 0.0 && args.confidence < 1.0) {
        return Err(Usage("--confidence must lie between 0 and 1, as in 0.99".into()).into());
    }
    Ok(())
}

/// The plan of mitigations that are joined by `+`, and the CPUs to record.
fn planned(
    args: &TuneTry,
    root: &Root,
    catalogue: &Catalogue,
    joined: &str,
) -> anyhow::Result<(Plan, Vec<Cpu>)> {
    let only: Vec<String> = ids(joined).map(str::to_owned).collect();
    let audit = audited(root, catalogue, &options(&args.options), Some(&catalogue.and_what_keeps(&only)))?;
    let cpus = match &args.watch {
        Some(list) => {
            Cpus::from_this_machine()?.check(&list.0).map_err(|e| Usage(e.to_string()))?;
            list.0.clone()
        }
        None => watched(&audit)?,
    };
    let choice = Choice { ids: only, persist: false };
    Ok((plan(&audit, &choice).map_err(Usage)?, cpus))
}

/// The CPUs that compute, because noise matters there.
fn watched(audit: &Audit<'_>) -> anyhow::Result<Vec<Cpu>> {
    match &audit.parts {
        Ok(parts) if !parts.compute.is_empty() => Ok(parts.compute.clone()),
        Ok(_) => anyhow::bail!("this node has no compute CPUs: name those to watch with --cpus"),
        Err(why) => anyhow::bail!("{why}: name the CPUs to watch with --cpus"),
    }
}

fn dry(
    args: &TuneTry,
    all: &[Tried],
    plans: &[(Plan, Vec<Cpu>)],
    printer: Printer,
) -> anyhow::Result<Outcome> {
    for (plan, _) in plans {
        printer.result(&plan.diff())?;
    }
    let rounds = u64::from(args.pairs) * 2;
    let (mut recordings, mut seconds) = (0, 0.0);
    for (tried, _) in all.iter().zip(plans).filter(|(_, (plan, _))| !plan.writes.is_empty()) {
        recordings += rounds;
        seconds += (args.duration.as_secs_f64() + settle(args, tried).as_secs_f64() + 0.5) * rounds as f64;
    }
    let more = if args.until_resolved {
        format!("; until it is resolved, more follow for at most {} each", args.at_most)
    } else {
        String::new()
    };
    printer.notice(&format!(
        "nothing was written: with --yes it is switched on and off for {recordings} recordings of {}, about {seconds:.0} s{more}",
        args.duration
    ));
    Ok(Outcome::Done)
}

/// Tries one mitigation, or several together.
fn one(
    args: &TuneTry,
    root: &Root,
    tried: &Tried,
    plan: &Plan,
    cpus: &[Cpu],
    seed: u64,
    printer: Printer,
) -> anyhow::Result<Attempt> {
    if plan.writes.is_empty() {
        let why = plan.left.first().map_or("there is nothing to change here", |left| left.why.as_str());
        return Ok(Attempt::not_tried(tried, why));
    }
    let rounds = Rounds { args, root, plan, tried, cpus, seed, printer };
    let (sides, trial) = rounds.run()?;
    if sides.limits.not_taken.len() == plan.writes.len() {
        let why = sides.limits.not_taken.first().map_or("", |(_, why)| why.as_str());
        return Ok(Attempt::not_tried(tried, &format!("the kernel accepted none of its settings: {why}")));
    }
    let further =
        trial.further_pairs.and_then(|pairs| sides.per_pair.checked_mul(u32::try_from(pairs).ok()?));
    let further = further.map(|time| Nanos::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
    let scale = scale::predict(args, seed, &sides.without, &sides.with, printer)?;
    // Lost events look like removed noise.
    let lost = (sides.limits.lost_without, sides.limits.lost_with);
    let kept = args.keep && trial.verdict == Verdict::Helps && lost == (0, 0);
    if kept {
        let applied = applied(root, plan, None, &|| false)?;
        printer.status(&format!(
            "{} stays applied as {}",
            tried.id,
            applied.id.as_deref().unwrap_or("what it was")
        ));
    }
    Ok(Attempt { kept, ..Attempt::tried(tried, plan, (trial, further), scale, sides.limits) })
}
