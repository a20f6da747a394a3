#![allow(clippy::unwrap_used, reason = "a test may")]
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::Root;
use crate::audit::{AuditOptions, audit};
use crate::catalogue::Catalogue;
use crate::fake_machine::{self as fake, Machine};

type Make = fn(&Path) -> Machine;

fn made(make: Make, options: &AuditOptions, ids: &[&str], persist: bool) -> Result<Plan, String> {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path());
    let root = Root::at(folder.path()).unwrap();
    let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
    let catalogue = Catalogue::built_in();
    let audit = audit(&root, &catalogue, options, Some(&catalogue.and_what_keeps(&ids)))?;
    plan(&audit, &Choice { ids, persist })
}

fn good(make: Make, ids: &[&str], persist: bool) -> Plan {
    let plan = made(make, &AuditOptions::default(), ids, persist).unwrap();
    assert_eq!(Plan::read(&plan.to_json()).unwrap(), plan);
    plan
}

#[test]
fn a_large_node() {
    let ids = [
        "vm-stat-interval",
        "thp",
        "workqueue-cpumask",
        "watchdog-cpumask",
        "dirty-writeback",
        "nmi-watchdog",
    ];
    insta::assert_snapshot!("large", good(fake::large, &ids, false).diff());
    insta::assert_snapshot!("large_json", good(fake::large, &ids[..2], false).to_json());
}

#[test]
fn a_large_node_permanently() {
    let ids = ["vm-stat-interval", "thp", "nohz-full", "watchdog-cpumask"];
    insta::assert_snapshot!("large_persist", good(fake::large, &ids, true).diff());
    insta::assert_snapshot!("large_staged_only", good(fake::large, &["nohz-full"], false).diff());
}

#[test]
fn a_value_that_a_write_may_change_is_kept() {
    fn disk(folder: &Path) -> Machine {
        let machine = fake::large(folder);
        machine.file("sys/block/x/queue/iostats", "1").file("sys/block/x/queue/read_ahead_kb", "8192");
        machine
    }
    let of_disk = |ids: &[&str]| {
        let mut writes = good(disk, ids, false).writes;
        writes.retain(|write| write.place.to_string().starts_with("/sys/block/x/"));
        writes.into_iter().map(|write| (write.mitigation, write.new, write.dependents)).collect::<Vec<_>>()
    };
    assert_eq!(of_disk(&["readahead"]), []);
    let read_ahead = "/sys/block/x/queue/read_ahead_kb".to_owned();
    let iostats = ("iostats".to_owned(), "0".to_owned(), vec![read_ahead]);
    assert_eq!(of_disk(&["iostats"]), std::slice::from_ref(&iostats));
    let kept = ("readahead".to_owned(), "8192\n".to_owned(), Vec::new());
    assert_eq!(of_disk(&["readahead", "iostats"]), [iostats, kept]);
}

#[test]
fn power_with_eight_threads_a_core() {
    let options = AuditOptions { pid: Some(4242), ..AuditOptions::default() };
    let ids = ["smt-snooze-delay", "smt-sibling-affinity", "lpar-dedicated"];
    let plan = made(fake::power, &options, &ids, true).unwrap();
    insta::assert_snapshot!("power", plan.diff());
}

#[test]
fn a_partition_of_cgroup_v2() {
    insta::assert_snapshot!("partitioned", good(fake::partitioned, &["cpuset-isolated"], true).diff());
}

#[test]
fn units_are_stopped_now_or_permanently() {
    let ids = ["svc-cron", "timers-maintenance", "irqbalance-off", "systemd-cpuaffinity"];
    insta::assert_snapshot!("services", good(fake::services, &ids, false).diff());
    insta::assert_snapshot!("services_persist", good(fake::services, &ids, true).diff());
}

#[test]
fn what_changes_the_settings_back_is_named_unless_it_is_stopped_too() {
    fn balanced(folder: &Path) -> Machine {
        let machine = fake::interrupts(folder);
        machine.units(&[("irqbalance.service", "active enabled"), ("cron.service", "active enabled")]);
        machine
    }
    let left = |ids: &[&str]| {
        let left = good(balanced, ids, false).left;
        left.into_iter().filter(|one| one.why.contains("changes back")).collect::<Vec<_>>()
    };
    let alone = left(&["irq-cpu0"]);
    assert_eq!((alone.len(), &*alone[0].what), (1, "irqbalance-off or irqbalance-ban"));
    assert_eq!(left(&["irq-cpu0", "irqbalance-off"]), []);
    assert_eq!(left(&["svc-cron"]), []);
}

#[test]
fn offline_cpus_have_no_files() {
    let ids = ["pm-qos-percpu", "workqueue-cpumask", "isolcpus"];
    insta::assert_snapshot!("holes", good(fake::holes, &ids, true).diff());
}

#[test]
fn managed_interrupts_and_bound_threads_stay() {
    insta::assert_snapshot!(
        "interrupts",
        good(fake::interrupts, &["irq-cpu0", "kthread-affinity", "hung-task"], true).diff()
    );
}

#[test]
fn what_may_not_be_together_is_refused() {
    for (ids, part) in [
        (&["isolcpus", "cpuset-isolated"][..], "exclude each other"),
        (&["smt-off", "thp"], "disruptive"),
        (&["thpp"], "did you mean `thp`"),
        (&[], "no mitigation is chosen"),
    ] {
        let reported = made(fake::large, &AuditOptions::default(), ids, false).unwrap_err();
        assert!(reported.contains(part), "{reported}");
    }
}

#[test]
fn two_that_want_one_place_otherwise_are_refused_and_named() {
    let text = "id = \"ID\"\ntitle = \"t\"\ncategory = \"memory\"\nwhat = \"w\"\ncaveat = \"c\"\nrisk = \"low\"\nkernel = \"any\"\n\
        provenance = []\nnoise = []\n[[knob]]\nkind = \"file\"\npath = \"/proc/sys/vm/swappiness\"\nwant = \"WANT\"\n";
    let site = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fake::large(folder.path());
    let root = Root::at(folder.path()).unwrap();
    let reported = |second: &str| {
        for (id, want) in [("site-a", "1"), ("site-b", second)] {
            let text = text.replace("ID", id).replace("WANT", want);
            fs_err::write(site.path().join(format!("{id}.toml")), text).unwrap();
        }
        let catalogue = Catalogue::with_site(site.path()).unwrap();
        let audit = audit(&root, &catalogue, &AuditOptions::default(), None).unwrap();
        plan(&audit, &Choice { ids: vec!["site-a".into(), "site-b".into()], persist: false })
    };
    let refused = reported("2").unwrap_err();
    assert!(refused.contains("`site-a` and `site-b`") && refused.contains("swappiness"), "{refused}");
    let writes = reported("01").unwrap().writes;
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].mitigation, "site-a");
}

#[test]
fn profiles_can_be_planned_everywhere() {
    let machines: [Make; 6] =
        [fake::large, fake::power, fake::partitioned, fake::services, fake::holes, fake::interrupts];
    for make in machines {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        let root = Root::at(folder.path()).unwrap();
        let catalogue = Catalogue::built_in();
        let audit = audit(&root, &catalogue, &AuditOptions::default(), None).unwrap();
        for profile in crate::profile::Profile::all() {
            let choice = Choice { ids: profile.mitigations, persist: true };
            let first = plan(&audit, &choice).unwrap();
            let backwards = Choice { ids: choice.ids.iter().rev().cloned().collect(), ..choice.clone() };
            assert_eq!(Plan::read(&first.to_json()), plan(&audit, &backwards), "{}", profile.name);
        }
    }
}

#[test]
fn every_mitigation_can_be_planned_alone_and_read_back() {
    let options = AuditOptions { pid: Some(4242), ..AuditOptions::default() };
    for make in [fake::large as Make, fake::power, fake::services, fake::interrupts] {
        let folder = tempfile::tempdir().unwrap();
        // All programs that read drop-ins are installed here.
        let machine = make(folder.path());
        for program in [
            "usr/sbin/chronyd",
            "usr/lib/systemd/systemd-timesyncd",
            "usr/sbin/irqbalance",
            "usr/bin/systemctl",
        ] {
            if !folder.path().join(program).exists() {
                machine.file(program, "#!/bin/sh");
            }
        }
        let root = Root::at(folder.path()).unwrap();
        let catalogue = Catalogue::built_in();
        let audit = audit(&root, &catalogue, &options, None).unwrap();
        for one in &audit.entries {
            let ids = vec![one.mitigation.id.clone()];
            let plan = plan(&audit, &Choice { ids, persist: true }).unwrap();
            assert_eq!(Plan::read(&plan.to_json()), Ok(plan), "{}", one.mitigation.id);
        }
    }
}

#[test]
fn a_plan_that_was_edited_or_lies_is_refused() {
    let plan = good(fake::large, &["vm-stat-interval"], false);
    let edited = plan.to_json().replace("\"new\": \"20\"", "\"new\": \"21\"");
    assert!(Plan::read(&edited).unwrap_err().contains("quell tune plan"));
    let newer = plan.to_json().replace("tune-plan/1", "tune-plan/2");
    assert!(Plan::read(&newer).unwrap_err().contains("make the plan again"));
    let signed = |change: fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        plan.hash = plan.hash_of();
        Plan::read(&plan.to_json())
    };
    assert_eq!(signed(|_| {}), Ok(plan.clone()));
    let bad: [fn(&mut Plan); 4] = [
        |plan| plan.writes[0].place = Place::File { path: "/etc/passwd".into() },
        |plan| plan.writes[0].group.push("/proc/sys/kernel/core_pattern".into()),
        |plan| plan.writes.push(plan.writes[0].clone()),
        |plan| plan.writes[0].mitigation = "stranger".into(),
    ];
    for change in bad {
        assert!(signed(change).unwrap_err().contains("is refused"));
    }
}

#[test]
fn what_steers_a_terminal_is_shown() {
    let mut plan = good(fake::large, &["vm-stat-interval"], false);
    plan.host = "a\u{1b}[2Jb".into();
    plan.writes[0].old = "1\u{1b}]0;x\u{7}\n+ fake".into();
    let text = plan.diff();
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text}");
    assert!(!text.lines().any(|line| line == "+ fake"), "{text}");
}

proptest! {
    #[test]
    fn any_text_is_a_plan_or_an_error(text in ".{0,200}") {
        let _ = Plan::read(&text);
    }

    #[test]
    fn damage_is_borne(at in 0usize..4000, byte in 0u8..128, signed: bool) {
        use std::sync::LazyLock;
        static TEXT: LazyLock<String> =
            LazyLock::new(|| good(fake::large, &["vm-stat-interval", "thp"], true).to_json());
        let mut bytes = TEXT.clone().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if signed && let Ok(mut plan) = serde_json::from_str::<Plan>(&text) {
            plan.hash = plan.hash_of();
            if let Ok(read) = Plan::read(&plan.to_json()) {
                prop_assert_eq!(&read, &plan);
                let _ = read.diff();
            }
        }
        let _ = Plan::read(&text);
    }
}
