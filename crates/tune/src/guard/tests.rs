//! Forged plans: anyone who writes one can compute its hash.
#![allow(clippy::unwrap_used, reason = "a test may")]

use super::*;
use crate::audit::{AuditOptions, audit};
use crate::catalogue::{CpusetKind, Held, Property};
use crate::fake_machine::{self as fake, Machine};
use crate::plan::{Choice, plan};

const LOW: Allowed = Allowed::BY_DEFAULT;
const HIGH: Allowed = Allowed { risk: Risk::High, ..LOW };

fn made(make: fn(&std::path::Path) -> Machine, ids: &[&str]) -> (tempfile::TempDir, Root, Plan) {
    let folder = tempfile::tempdir().unwrap();
    make(folder.path());
    let root = Root::at(folder.path()).unwrap();
    let catalogue = Catalogue::built_in();
    let options = AuditOptions { pid: Some(4242), ..AuditOptions::default() };
    let ids: Vec<String> = ids.iter().map(|&id| id.to_owned()).collect();
    let audit = audit(&root, &catalogue, &options, Some(&ids)).unwrap();
    let plan = plan(&audit, &Choice { ids, persist: true }).unwrap();
    (folder, root, plan)
}

fn rules(root: &Root, plan: &Plan, allowed: Allowed) -> Vec<&'static str> {
    let refusals = refusals(root, plan, allowed, &Catalogue::built_in());
    refusals.into_iter().map(|one| one.rule).collect()
}

#[test]
fn what_quell_planned_is_covered() {
    let machines: [fn(&std::path::Path) -> Machine; 6] =
        [fake::large, fake::power, fake::partitioned, fake::services, fake::holes, fake::interrupts];
    let catalogue = Catalogue::built_in();
    let options = AuditOptions { pid: Some(4242), ..AuditOptions::default() };
    for make in machines {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path());
        let root = Root::at(folder.path()).unwrap();
        let audit = audit(&root, &catalogue, &options, None).unwrap();
        for one in catalogue.iter() {
            let choice = Choice { ids: vec![one.id.clone()], persist: true };
            for write in plan(&audit, &choice).unwrap().writes {
                assert_eq!(denied(&write, &catalogue), None, "{}", one.id);
            }
        }
    }
}

#[test]
fn risk_and_disturbance_are_the_catalogues_to_say() {
    let (_folder, root, mut plan) = made(fake::large, &["vm-stat-interval"]);
    assert_eq!(rules(&root, &plan, LOW), [""; 0]);
    let risky = Catalogue::built_in().iter().find(|one| one.risk == Risk::High).unwrap().id.clone();
    plan.mitigations[0].id.clone_from(&risky);
    plan.mitigations[0].risk = Risk::Low;
    assert!(!rules(&root, &plan, LOW).contains(&"risk"), "one that writes nothing risks nothing");
    plan.writes.iter_mut().for_each(|write| write.mitigation.clone_from(&risky));
    assert!(rules(&root, &plan, LOW).contains(&"risk"), "{risky}");
    let (_folder, root, mut plan) = made(fake::large, &["vm-stat-interval", "thp"]);
    plan.mitigations[0].id = "smt-off".into();
    plan.mitigations[0].disruptive = false;
    plan.writes[0].mitigation = "smt-off".into();
    assert!(rules(&root, &plan, HIGH).contains(&"bulk"));
}

#[test]
fn a_mitigation_that_no_one_knows_is_refused() {
    let (_folder, root, mut plan) = made(fake::large, &["vm-stat-interval"]);
    plan.mitigations[0].id = "stranger".into();
    plan.writes.iter_mut().for_each(|write| write.mitigation = "stranger".into());
    let reported = refusals(&root, &plan, LOW, &Catalogue::built_in());
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(reported[0].rule, "deny-list");
    assert_eq!(reported[0].what, "`stranger` is not in the catalogue of this machine");
}

#[test]
fn a_dependent_that_its_mitigation_does_not_name_is_refused() {
    let (_folder, root, plan) = made(fake::large, &["vm-stat-interval"]);
    for (mitigation, path, dependent, good) in [
        ("io-scheduler", "/sys/block/sda/queue/scheduler", "/sys/block/sda/queue/nr_requests", true),
        ("io-scheduler", "/sys/block/sda/queue/scheduler", "/sys/block/sda/queue/iosched/read_expire", true),
        ("io-scheduler", "/sys/block/sda/queue/scheduler", "/sys/block/sdb/queue/nr_requests", false),
        ("io-scheduler", "/sys/block/sda/queue/scheduler", "/sys/block/sda/queue/iosched/x/y", false),
        ("thp", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/vm/min_free_kbytes", true),
        ("thp", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/sys/vm/swappiness", false),
        ("smt-off", "/sys/devices/system/cpu/smt/control", "/sys/devices/system/cpu/cpu3/online", true),
        ("smt-off", "/sys/devices/system/cpu/smt/control", "/sys/devices/system/cpu/cpu0/online", false),
    ] {
        let mut plan = plan.clone();
        plan.mitigations[0].id = mitigation.into();
        plan.writes.truncate(1);
        let write = &mut plan.writes[0];
        (write.mitigation, write.place) = (mitigation.into(), Place::File { path: path.into() });
        write.dependents = vec![dependent.into()];
        let is_refused = rules(&root, &plan, HIGH).contains(&"deny-list");
        assert_eq!(is_refused, !good, "{mitigation}: {dependent}");
    }
}

#[test]
fn a_write_that_its_mitigation_does_not_make_is_refused() {
    let (_folder, root, plan) = made(fake::large, &["vm-stat-interval"]);
    let file = |path: &str| Place::File { path: path.into() };
    let drop_in = |path: &str| Place::DropIn { path: path.into() };
    let thread =
        |comm: &str| Place::Thread { pid: 7, start: 1, comm: comm.into(), property: Property::Affinity };
    for (mitigation, place, new, good) in [
        ("vm-stat-interval", file("/proc/sys/vm/stat_interval"), "20", true),
        ("vm-stat-interval", file("/proc/sys/kernel/sched_rt_runtime_us"), "-1", false),
        ("vm-stat-interval", file("/sys/devices/system/cpu/smt/control"), "off", false),
        ("pm-qos-percpu", file("/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us"), "3", true),
        ("pm-qos-percpu", file("/sys/devices/system/cpu/cpux/power/pm_qos_resume_latency_us"), "3", false),
        ("pm-qos-percpu", file("/sys/devices/system/cpu/cpu3/x/power/pm_qos_resume_latency_us"), "3", false),
        ("hung-task", thread("khungtaskd"), "0", true),
        ("hung-task", thread("sshd"), "0", false),
        ("hung-task", Place::Irq { number: 1, name: "nvme0q1".into() }, "1", false),
        ("irq-cpu0", Place::Irq { number: 1, name: "nvme0q1".into() }, "1", true),
        ("svc-cron", Place::Unit { name: "cron.service".into() }, "inactive disabled", true),
        ("svc-cron", Place::Unit { name: "cups.service".into() }, "inactive disabled", false),
        ("svc-cron", Place::Unit { name: "sshd.service".into() }, "inactive disabled", false),
        ("cpu-dma-latency", Place::Held { what: Held::CpuDmaLatency }, "1", true),
        ("cpu-dma-latency", Place::Held { what: Held::TimestampSocket }, "1", false),
        ("cpuset-isolated", Place::Cpuset { what: CpusetKind::Isolated }, "1", true),
        ("cpuset-isolated", Place::Cpuset { what: CpusetKind::Shield }, "1", false),
        (
            "vm-stat-interval",
            drop_in("/etc/sysctl.d/90-quell-vm-stat-interval.conf"),
            "vm.stat_interval = 20\n",
            true,
        ),
        (
            "vm-stat-interval",
            drop_in("/etc/sysctl.d/90-quell-vm-stat-interval.conf"),
            "kernel.sched_rt_runtime_us = -1\n",
            false,
        ),
        ("vm-stat-interval", drop_in("/etc/sysctl.d/90-quell-thp.conf"), "vm.stat_interval = 20\n", false),
        (
            "vm-stat-interval",
            drop_in("/etc/default/grub.d/90-quell-vm-stat-interval.cfg"),
            "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} mitigations=off\"\n",
            false,
        ),
        (
            "skew-tick",
            drop_in("/etc/default/grub.d/90-quell-skew-tick.cfg"),
            "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} skew_tick=1\"\n",
            true,
        ),
        (
            "journald",
            drop_in("/etc/systemd/journald.conf.d/90-quell.conf"),
            "[Journal]\nStorage=none\n",
            true,
        ),
        ("thp", drop_in("/etc/systemd/system.conf.d/90-quell.conf"), "[Manager]\nCPUAffinity=0\n", false),
    ] {
        let mut plan = plan.clone();
        plan.mitigations[0].id = mitigation.into();
        let reported = place.to_string();
        plan.writes.truncate(1);
        let write = &mut plan.writes[0];
        (write.mitigation, write.place, write.new) = (mitigation.into(), place, new.into());
        let denied = rules(&root, &plan, HIGH).contains(&"deny-list");
        assert_eq!(denied, !good, "{mitigation}: {reported}");
    }
    let mut plan = plan;
    plan.writes.truncate(1);
    plan.writes[0].group = vec!["/proc/sys/vm/stat_interval".into(), "/proc/sys/vm/overcommit_memory".into()];
    assert_eq!(rules(&root, &plan, HIGH), ["deny-list"]);
}
