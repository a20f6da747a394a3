//! Checks quell's own catalogue.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};

use super::{BootKnob, Catalogue, Fills, Knob, Mitigation, Part, Risk, Want};
use crate::profile::Profile;

/// Number of rows on IBM's page: each has an entry.
const IBM_ROWS: usize = 21;

/// Number of entries, so that none is lost unnoticed.
const ENTRIES: usize = 149;

/// Parts of a machine that has all of them.
struct Machine;

impl Fills for Machine {
    fn list(&self, _part: Part) -> Result<String, String> {
        Ok("0-1".into())
    }

    fn mask(&self, _part: Part) -> Result<String, String> {
        Ok("3".into())
    }

    fn value(&self) -> Result<String, String> {
        Ok("1".into())
    }
}

fn wants(knob: &Knob) -> Option<&Want> {
    match knob {
        Knob::File(file) => Some(&file.want),
        Knob::Process(process) => Some(&process.want),
        Knob::Hold(hold) => Some(&hold.want),
        Knob::Boot(boot) => Some(&boot.want),
        Knob::DropIn(file) => Some(&file.content),
        _ => None,
    }
}

fn boots(one: &Mitigation) -> impl Iterator<Item = &BootKnob> {
    one.knob.iter().filter_map(|knob| if let Knob::Boot(boot) = knob { Some(boot) } else { None })
}

#[test]
fn no_entry_is_lost_and_every_row_of_ibms_page_has_one() {
    let catalogue = Catalogue::built_in();
    assert_eq!(catalogue.iter().count(), ENTRIES);
    let rows: BTreeSet<_> = catalogue.iter().filter_map(|one| one.ibm.as_deref()).collect();
    assert_eq!(rows.len(), IBM_ROWS);
    assert_eq!(catalogue.iter().filter(|one| one.ibm.is_some()).count(), IBM_ROWS);
}

#[test]
fn every_entry_says_what_it_is_in_few_words() {
    for one in Catalogue::built_in().iter() {
        let id = &one.id;
        assert!((1..=70).contains(&one.title.chars().count()), "{id}: title");
        assert!((20..=420).contains(&one.what.trim().chars().count()), "{id}: what");
        assert!((20..=420).contains(&one.caveat.trim().chars().count()), "{id}: caveat");
        assert!(!one.kernel.is_empty(), "{id}: kernel");
        assert!(!one.provenance.is_empty(), "{id}: provenance");
        assert!(!one.noise.is_empty() || !one.noise_in_words.is_empty(), "{id}: noise");
        assert!(!one.knob.is_empty(), "{id}: nothing to touch or to do");
        assert!(!one.title.ends_with('.'), "{id}: a title is no sentence");
    }
}

/// Kinds of sources that describe a setting, by how an entry cites them.
const DOCUMENTATION: [&str; 6] = [
    r"^kernel: (Documentation|arch|block|drivers|kernel|mm|net|security)/\S+(, \S+)*( \(.+\))?$",
    r"^kernel: commit [0-9a-f]{12}, .+ \(\d+\.\d+\)$",
    r"^[A-Za-z0-9_.@-]+\([1-8]\)",
    r"^(IBM's jitter page|TuneD: (plugin|profiles?) |Red Hat: |OpenShift: |Kubernetes: |CRI-O: |Slurm: |Open MPI: |systemd: |Lustre)",
    r"^.+\((SC|IPDPS|ROSS|IPDPSW|CLUSTER|ICS|HotOS|EuroSys|SOSP|PPoPP)[^()]* \d{4}\)$",
    r"^(NVIDIA|AMD|Intel|Fujitsu|Arm|IHK|McKernel|Kitten|libhugetlbfs|hugetlbfs)",
];

#[test]
fn every_entry_has_a_source_and_says_for_which_kernels_it_holds() {
    let sources: Vec<regex::Regex> =
        DOCUMENTATION.iter().map(|one| regex::Regex::new(one).unwrap()).collect();
    // `any`, with what else it takes, or numbers of versions.
    let versions = regex::Regex::new(r"^any\b|\b[2-9]\.\d+").unwrap();
    for one in Catalogue::built_in().iter() {
        let documented = one.provenance.iter().any(|text| sources.iter().any(|source| source.is_match(text)));
        assert!(documented, "{}: {:?} names no documentation", one.id, one.provenance);
        let from_the_kernel = |text: &String| text.starts_with("kernel: ");
        let settings = one.knob.iter().any(|knob| matches!(knob, Knob::File(_) | Knob::Boot(_)));
        let by_kernel = one.provenance.iter().any(from_the_kernel);
        assert!(by_kernel || !settings, "{}: no source in the kernel for a setting of the kernel", one.id);
        assert!(versions.is_match(&one.kernel), "{}: `{}` names no version", one.id, one.kernel);
    }
}

#[test]
fn conflicts_are_reported_on_both_sides_and_never_between_one_and_what_it_follows() {
    let catalogue = Catalogue::built_in();
    for one in catalogue.iter() {
        for other in &one.conflicts {
            let back = catalogue.get(other).is_some_and(|other| other.conflicts.contains(&one.id));
            assert!(back, "{} conflicts with {other}, which does not say so", one.id);
            let more = one.see_also.contains(other) || one.after.contains(other);
            assert!(!more, "{}: {other} is a conflict and more", one.id);
        }
        assert!(!one.see_also.contains(&one.id), "{} names itself", one.id);
    }
}

#[test]
fn what_is_wanted_can_be_filled_and_a_group_has_its_own_file() {
    for one in Catalogue::built_in().iter() {
        for want in one.knob.iter().filter_map(wants) {
            let filled = want.fill(&Machine).unwrap_or_else(|why| panic!("{}: {why}", one.id));
            assert!(!filled.contains('$'), "{}: {filled}", one.id);
        }
        for knob in &one.knob {
            if let Knob::File(file) = knob {
                assert!(
                    file.group.is_empty() || file.group.contains(&file.path),
                    "{}: {}",
                    one.id,
                    file.path
                );
                let matches = file.r#where.as_ref().map_or(".", |place| &place.matches);
                assert!(regex::Regex::new(matches).is_ok(), "{}: {matches}", one.id);
            }
            if let Knob::Unit(unit) = knob {
                let process = unit.process.as_deref().unwrap_or(".");
                assert!(regex::Regex::new(process).is_ok(), "{}: {process}", one.id);
            }
        }
    }
}

#[test]
fn what_needs_a_boot_says_so() {
    for one in Catalogue::built_in().iter() {
        let only_boot = !one.knob.is_empty() && one.knob.iter().all(|knob| matches!(knob, Knob::Boot(_)));
        assert!(!only_boot || one.reboot, "{} is a boot option, and does not say that it needs one", one.id);
        assert!(!one.reboot || boots(one).count() > 0 || one.knob.iter().all(by_hand), "{}: reboot", one.id);
    }
}

fn by_hand(knob: &Knob) -> bool {
    matches!(knob, Knob::ByHand(_))
}

#[test]
fn a_profile_is_mitigations_that_can_be_together() {
    let catalogue = Catalogue::built_in();
    let names: Vec<_> = Profile::all().into_iter().map(|profile| profile.name).collect();
    assert_eq!(names, ["hpc-node", "realtime", "vm-guest"]);
    for profile in Profile::all() {
        assert!(!profile.title.is_empty() && !profile.what.is_empty() && !profile.provenance.is_empty());
        let chosen: BTreeSet<_> = profile.mitigations.iter().collect();
        assert_eq!(chosen.len(), profile.mitigations.len(), "{}: one is there twice", profile.name);
        let mut options = BTreeMap::new();
        for id in &profile.mitigations {
            let one = catalogue.get(id).unwrap_or_else(|| panic!("{}: no {id}", profile.name));
            assert!(!one.disruptive, "{}: {id} is disruptive", profile.name);
            assert!(one.risk != Risk::High, "{}: {id} is risky", profile.name);
            let other = one.conflicts.iter().find(|other| chosen.contains(other));
            assert_eq!(other, None, "{}: {id} conflicts", profile.name);
            for boot in boots(one) {
                let before = options.insert(boot.option.clone(), id);
                assert_eq!(before, None, "{}: {id} and another set {}", profile.name, boot.option);
            }
            let needs_more = one.knob.iter().any(|knob| matches!(knob, Knob::Process(_)))
                || one.knob.iter().filter_map(wants).any(Want::needs_value);
            assert!(!needs_more, "{}: {id} needs a process or a value", profile.name);
        }
    }
}
