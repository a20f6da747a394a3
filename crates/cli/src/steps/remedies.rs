//! The mitigations that are possible on this machine, from an audit of the catalogue.

use std::path::Path;

use quell_analysis::Warning;
use quell_analysis::advise::{Applicability, Candidate, Given};
use quell_recording::{Cpu, format_cpu_list};
use quell_tune::audit::{AuditOptions, Audited, State};

use super::audit;
use crate::args::{SITE, TuneMachine};
use crate::values::CpuList;

/// Mitigations, and the CPUs that they leave to a job.
#[derive(Debug, Default)]
pub struct Remedies {
    /// All mitigations of the catalogue.
    pub candidates: Vec<Candidate>,
    /// The CPUs that compute if some are left to the system; empty if the CPUs cannot be divided.
    pub compute: Vec<Cpu>,
    /// What the command that tests a recommendation repeats.
    pub given: Given,
    /// Warnings of the audit.
    pub warnings: Vec<Warning>,
}

impl Remedies {
    /// Audits a machine. For recordings of other hosts, it is not known what is possible there.
    pub fn look(
        machine: &TuneMachine,
        cpus: Option<&CpuList>,
        hosts: &[Option<String>],
    ) -> anyhow::Result<Self> {
        let root = audit::root(machine.sysroot.as_deref())?;
        let catalogue = audit::catalogue(machine, &root)?;
        let options = AuditOptions { compute: cpus.map(|list| list.0.clone()), ..AuditOptions::default() };
        let audit = audit::audited(&root, &catalogue, &options, None)?;
        let mut warnings = Vec::new();
        let stranger = hosts.iter().flatten().find(|host| **host != audit.facts.host);
        if let Some(host) = stranger {
            warnings.push(Warning::OtherHost { recorded: host.clone(), audited: audit.facts.host.clone() });
        }
        if hosts.iter().any(Option::is_none) {
            warnings.push(Warning::HostUnknown { audited: audit.facts.host.clone() });
        }
        let candidates = audit.entries.iter().map(|one| candidate(one, stranger.is_some())).collect();
        let compute = match &audit.parts {
            Ok(parts) => parts.compute.clone(),
            Err(_) => Vec::new(),
        };
        let site = (machine.site != Path::new(SITE)).then(|| machine.site.display().to_string());
        let given = Given { cpus: cpus.map(|list| format_cpu_list(&list.0)), site };
        Ok(Self { candidates, compute, given, warnings })
    }
}

fn candidate(one: &Audited<'_>, elsewhere: bool) -> Candidate {
    let mitigation = one.mitigation;
    let writes = one
        .places
        .iter()
        .any(|place_state| !place_state.done && !place_state.immovable && place_state.want.is_some());
    let standing = match one.state {
        _ if elsewhere => Applicability::CannotTell,
        State::Applied => Applicability::On,
        State::NotHere => Applicability::Impossible,
        State::CannotTell | State::NotMounted | State::NotReadable => Applicability::CannotTell,
        State::NotApplied | State::Partial if mitigation.affects_only_job_processes() => {
            Applicability::ByHand
        }
        State::NotApplied | State::Partial if writes => Applicability::Possible,
        State::NotApplied | State::Partial if one.by_hand.is_empty() => Applicability::Impossible,
        State::NotApplied | State::Partial => Applicability::ByHand,
    };
    let by_hand = || one.by_hand.iter().find(|hand| hand.done != Some(true)).map(|hand| hand.todo.clone());
    let placed = || {
        mitigation
            .affects_only_job_processes()
            .then(|| "it has an effect only for a job placed there".to_owned())
    };
    let why = match standing {
        Applicability::ByHand => by_hand().or_else(placed).or_else(|| one.why.clone()),
        _ if elsewhere => None,
        _ => one.why.clone(),
    };
    Candidate {
        id: mitigation.id.clone(),
        title: mitigation.title.clone(),
        risk: mitigation.risk.word().to_owned(),
        standing,
        why,
        patterns: mitigation.noise.clone(),
        moves: mitigation.moves(),
        reboot: mitigation.reboot,
        settle_s: mitigation.settle_s,
        conflicts: mitigation.conflicts.clone(),
    }
}
