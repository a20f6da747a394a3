//! `quell tune`: mitigations looked at, planned, applied, verified, given back, and proved.

pub mod apply;
pub mod attempt;
pub mod audit;
mod export;
mod plan;
pub mod reference;
pub mod revert;
pub mod status;
pub mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use quell_tune::Root;
use quell_tune::audit::{Audit, Wishes, audit as look};
use quell_tune::catalogue::{Catalogue, Risk};
use quell_tune::guard::Allowed;
use quell_tune::plan::Plan;

use super::Outcome;
use crate::args::{RiskName, Tune, TuneAllow, TuneMachine, TuneVerb, TuneWishes};
use crate::plan::Usage;
use crate::printer::Printer;

/// The largest plan that is read.
const LARGEST_PLAN: u64 = 64 << 20;

/// Does what was asked for.
pub fn run(args: &Tune, printer: Printer) -> anyhow::Result<ExitCode> {
    let outcome = match &args.verb {
        TuneVerb::Audit(args) => audit::run(args, printer),
        TuneVerb::Plan(args) => plan::run(args, printer),
        // Its exit code may be the command's own.
        TuneVerb::Apply(args) => return apply::run(args, printer),
        TuneVerb::Verify(args) => verify::run(args, printer),
        TuneVerb::Revert(args) => revert::run(args, printer),
        TuneVerb::Status(args) => status::run(args, printer),
        TuneVerb::Try(args) => attempt::run(args, printer),
        TuneVerb::Export(args) => export::run(args, printer),
    };
    Ok(match outcome? {
        Outcome::Done => ExitCode::SUCCESS,
        Outcome::LimitExceeded => ExitCode::from(3),
    })
}

/// What the hidden verb of keepers does.
pub fn keep() -> anyhow::Result<Outcome> {
    quell_tune::keeper::keep().map_err(anyhow::Error::msg)?;
    Ok(Outcome::Done)
}

/// The machine, or the tree.
pub fn root(sysroot: Option<&Path>) -> anyhow::Result<Root> {
    match sysroot {
        None => Ok(Root::system()),
        Some(folder) => {
            Root::at(folder).map_err(|e| Usage(format!("--sysroot {}: {e}", folder.display())).into())
        }
    }
}

/// quell's catalogue and the site's.
pub fn catalogue(machine: &TuneMachine, root: &Root) -> anyhow::Result<Catalogue> {
    catalogue_at(&machine.site, root)
}

fn catalogue_at(site: &Path, root: &Root) -> anyhow::Result<Catalogue> {
    let site = match site == Path::new(crate::args::SITE) {
        true => root.path(crate::args::SITE),
        false => site.to_owned(),
    };
    Ok(Catalogue::with_site(&site)?)
}

fn wishes(args: &TuneWishes) -> Wishes {
    Wishes {
        compute: args.cpus.as_ref().map(|list| list.0.clone()),
        pid: args.pid,
        values: args.values.iter().cloned().collect(),
    }
}

/// Looks at the machine for some of the catalogue, or all of it.
pub fn audited<'a>(
    root: &Root,
    catalogue: &'a Catalogue,
    wishes: &Wishes,
    only: Option<&[String]>,
) -> anyhow::Result<Audit<'a>> {
    if let Some(stranger) = wishes.values.keys().find(|id| catalogue.get(id).is_none()) {
        return Err(unknown(catalogue, stranger));
    }
    check(wishes, only)?;
    let audit = look(root, catalogue, wishes, only).map_err(anyhow::Error::msg)?;
    match (&wishes.compute, &audit.parts) {
        // Not every mitigation needs the CPUs; whoever names them means them.
        (Some(_), Err(why)) => Err(Usage(format!("--cpus: {why}")).into()),
        _ => Ok(audit),
    }
}

/// What was typed for a mitigation that is not asked for, a value that no file takes, a process that is not to be touched.
fn check(wishes: &Wishes, only: Option<&[String]>) -> anyhow::Result<()> {
    for (id, value) in &wishes.values {
        if only.is_some_and(|only| !only.contains(id)) {
            return Err(Usage(format!(
                "--set {id}={}: {id} is not asked for here",
                quell_recording::one_line(value)
            ))
            .into());
        }
        let plain = value.chars().all(|c| !c.is_control()) && !value.trim().is_empty();
        if !plain || value.len() > 4096 {
            return Err(Usage(format!("--set {id}=…: a value is one line of at most 4096 characters")).into());
        }
    }
    match wishes.pid {
        Some(pid @ (0..=2)) => {
            Err(Usage(format!("--pid {pid} is the system's own: name a process of the job")).into())
        }
        _ => Ok(()),
    }
}

/// No such mitigation, and what may have been meant.
fn unknown(catalogue: &Catalogue, id: &str) -> anyhow::Error {
    Usage(catalogue.unknown(id)).into()
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
    let failed = || format!("{} is not read", path.display());
    let mut text = String::new();
    let file = fs_err::File::open(path).with_context(failed)?;
    let read = file.take(LARGEST_PLAN + 1).read_to_string(&mut text).with_context(failed)?;
    if read as u64 > LARGEST_PLAN {
        anyhow::bail!("{} is larger than {LARGEST_PLAN} bytes: it is no plan", path.display());
    }
    Plan::read(&text).map_err(|why| anyhow::anyhow!("{} is not taken: {why}", path.display()))
}

/// Whether this user may write to a machine.
fn may_write(root: &Root) -> bool {
    // SAFETY: geteuid has no precondition.
    !root.is_system() || unsafe { libc::geteuid() } == 0
}

/// Writing to a machine is root's.
fn need_root(root: &Root, what: &str) -> anyhow::Result<()> {
    if !may_write(root) {
        anyhow::bail!("only root may {what} settings of this machine: run it with sudo");
    }
    Ok(())
}

/// This program, which keepers are started from.
fn program() -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe()?)
}
