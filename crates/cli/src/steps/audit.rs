//! Audits a machine, or a copy of its files, against the catalogue of mitigations.

use std::path::{Path, PathBuf};

use quell_request::Usage;
use quell_tune::Root;
use quell_tune::audit::{Audit, AuditOptions, audit as look};
use quell_tune::catalogue::Catalogue;

use crate::args::TuneMachine;

/// The machine itself, or the copy below `sysroot`.
pub fn root(sysroot: Option<&Path>) -> anyhow::Result<Root> {
    match sysroot {
        None => Ok(Root::system()),
        Some(folder) => {
            Root::at(folder).map_err(|e| Usage(format!("--sysroot {}: {e}", folder.display())).into())
        }
    }
}

/// quell's catalogue, with the site's own mitigations.
pub fn catalogue(machine: &TuneMachine, root: &Root) -> anyhow::Result<Catalogue> {
    catalogue_at(&machine.site, root)
}

/// As [`catalogue`], with the site's mitigations from this folder.
pub fn catalogue_at(site: &Path, root: &Root) -> anyhow::Result<Catalogue> {
    Ok(Catalogue::with_site(&site_at(site, root))?)
}

/// The site's folder: the usual one is the machine's, which may be a copy.
pub fn site_at(site: &Path, root: &Root) -> PathBuf {
    match site == Path::new(crate::args::SITE) {
        true => root.path(crate::args::SITE),
        false => site.to_owned(),
    }
}

/// Audits the machine for some mitigations of the catalogue, or for all.
pub fn audited<'a>(
    root: &Root,
    catalogue: &'a Catalogue,
    options: &AuditOptions,
    only: Option<&[String]>,
) -> anyhow::Result<Audit<'a>> {
    if let Some(stranger) = options.values.keys().find(|id| catalogue.get(id).is_none()) {
        return Err(unknown(catalogue, stranger));
    }
    check(catalogue, options, only)?;
    let audit = look(root, catalogue, options, only).map_err(anyhow::Error::msg)?;
    match (&options.compute, &audit.parts) {
        // Not every mitigation needs the compute CPUs, so an error matters only if `--cpus` was given.
        (Some(_), Err(why)) => Err(Usage(format!("--cpus: {why}")).into()),
        _ => Ok(audit),
    }
}

/// Refuses values for mitigations that were not requested, values that no file or not this setting accepts, and processes that must not be changed.
fn check(catalogue: &Catalogue, options: &AuditOptions, only: Option<&[String]>) -> anyhow::Result<()> {
    for (id, value) in &options.values {
        if only.is_some_and(|only| !only.contains(id)) {
            return Err(Usage(format!(
                "--set {id}={}: this command does not request {id}",
                quell_recording::one_line(value)
            ))
            .into());
        }
        let plain = value.chars().all(|c| !c.is_control()) && !value.trim().is_empty();
        if !plain || value.len() > 4096 {
            return Err(Usage(format!("--set {id}=…: a value is one line of at most 4096 characters")).into());
        }
        if let Some(Err(why)) = catalogue.get(id).map(|one| one.check_value(value)) {
            let value = quell_recording::one_line(value);
            return Err(Usage(format!(
                "`{value}` cannot be the value of {id}: {why}; change it in --set, or in the profile"
            ))
            .into());
        }
    }
    match options.pid {
        Some(pid @ (0..=2)) => {
            Err(Usage(format!("--pid {pid} is a system process: name a process of the job")).into())
        }
        _ => Ok(()),
    }
}

/// The error for an unknown mitigation, with suggestions.
pub fn unknown(catalogue: &Catalogue, id: &str) -> anyhow::Error {
    Usage(catalogue.unknown(id)).into()
}
