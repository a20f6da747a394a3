//! `quell tune`: audits, plans, applies, verifies, reverts and tests mitigations.

pub mod apply;
pub mod attempt;
pub mod audit;
mod copy;
mod export;
mod plan;
pub mod revert;
mod serve;
pub mod status;
pub mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use quell_tune::Root;
use quell_tune::audit::AuditOptions;
use quell_tune::catalogue::Risk;
use quell_tune::guard::Allowed;
use quell_tune::plan::Plan;
use quell_tune::status::{TimedPlaces, timed_places};

use crate::args::{AuditArgs, RiskName, Tune, TuneAllow, TuneVerb};
use crate::outcome::Outcome;
use crate::printer::Printer;

/// Maximum size of a plan, in bytes.
const LARGEST_PLAN: u64 = 64 << 20;

/// Runs the requested verb.
pub fn run(args: &Tune, printer: Printer) -> anyhow::Result<ExitCode> {
    let outcome = match &args.verb {
        TuneVerb::Audit(args) => audit::run(args, printer),
        TuneVerb::Plan(args) => plan::run(args, printer),
        // The exit code may be that of the command.
        TuneVerb::Apply(args) => return apply::run(args, printer),
        TuneVerb::Verify(args) => verify::run(args, printer),
        TuneVerb::Revert(args) => revert::run(args, printer),
        TuneVerb::Status(args) => status::run(args, printer),
        TuneVerb::Try(args) => attempt::run(args, printer),
        TuneVerb::Copy(args) => copy::run(args, printer),
        TuneVerb::Export(args) => export::run(args, printer),
        TuneVerb::Serve(args) => serve::run(args, printer),
    };
    Ok(outcome?.into())
}

/// The hidden verb that a keeper process runs.
pub fn keep() -> anyhow::Result<Outcome> {
    quell_tune::keeper::keep().map_err(anyhow::Error::msg)?;
    Ok(Outcome::Done)
}

fn options(args: &AuditArgs) -> AuditOptions {
    AuditOptions {
        compute: args.cpus.as_ref().map(|list| list.0.clone()),
        pid: args.pid,
        values: args.values.iter().cloned().collect(),
    }
}

fn allowed(args: &TuneAllow) -> Allowed {
    let risk = match args.max_risk {
        RiskName::Low => Risk::Low,
        RiskName::Medium => Risk::Medium,
        RiskName::High => Risk::High,
    };
    Allowed { risk, owner: args.allow_owner, users: args.allow_users }
}

/// Reads a plan that `tune plan` wrote.
fn read_plan(path: &Path) -> anyhow::Result<Plan> {
    use anyhow::Context as _;
    use std::io::Read as _;
    let failed = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let file = fs_err::File::open(path).with_context(failed)?;
    let read = file.take(LARGEST_PLAN + 1).read_to_string(&mut text).with_context(failed)?;
    if read as u64 > LARGEST_PLAN {
        anyhow::bail!("{} is larger than {LARGEST_PLAN} bytes: it is not a plan", path.display());
    }
    Plan::read(&text).map_err(|why| anyhow::anyhow!("{} is rejected: {why}", path.display()))
}

/// What open transactions have set for a time. Only root may read that; a plan is shown without it to others.
fn timed(root: &Root) -> TimedPlaces {
    timed_places(root).unwrap_or_default()
}

/// A plan as text, with a note on each current value that an open transaction has set for a time.
fn diff(plan: &Plan, timed: &TimedPlaces) -> String {
    plan.diff_with(&|place| {
        let (id, until) = timed.get(&place.identity())?;
        Some(format!("set by {id} until {until}"))
    })
}

/// Whether this user may write to a machine.
fn may_write(root: &Root) -> bool {
    !root.is_system() || rustix::process::geteuid().is_root()
}

/// Refuses to write to a machine without root.
fn need_root(root: &Root, what: &str) -> anyhow::Result<()> {
    if !may_write(root) {
        anyhow::bail!("only root may {what} settings of this machine: run it with sudo");
    }
    Ok(())
}

/// The path of this program, from which keepers are started.
fn program() -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe()?)
}
