//! Hand-made plans, hostile ones among them, in each format.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod launched;
mod prolog;
mod ran;

use std::process::Command;

use super::{Export, bindings, shell, slurm, tuned};
use crate::audit::State;
use crate::catalogue::{CpusetKind, Held, Property, Risk};
use crate::facts::{Facts, Parts};
use crate::place::{ABSENT, Place};
use crate::plan::{Chosen, Left, Plan, SCHEMA, Write};

/// The worst that a name may contain.
const HOSTILE: &str = "a'; touch /tmp/quell-was-here; '$(id)`id`\n# \"x\\";

fn write(place: Place, old: &str, new: &str) -> Write {
    Write {
        id: format!("test:{place}"),
        mitigation: "test".into(),
        place,
        old: old.into(),
        new: new.into(),
        group: Vec::new(),
        dependents: Vec::new(),
        may_fail: false,
        staged: false,
    }
}

fn file(path: &str, old: &str, new: &str) -> Write {
    write(Place::File { path: path.into() }, old, new)
}

fn drop_in(path: &str, new: &str) -> Write {
    Write { staged: true, ..write(Place::DropIn { path: path.into() }, ABSENT, new) }
}

fn irq(number: u32, name: &str, new: &str) -> Write {
    Write { may_fail: true, ..write(Place::Irq { number, name: name.into() }, "3\n", new) }
}

fn kthread(pid: u32, comm: &str, new: &str) -> Write {
    let place = Place::Thread { pid, start: 24, comm: comm.into(), property: Property::Affinity };
    Write { may_fail: true, ..write(place, "0-1", new) }
}

fn unit(name: &str, old: &str, new: &str) -> Write {
    write(Place::Unit { name: name.into() }, old, new)
}

fn plan(writes: Vec<Write>) -> Plan {
    let chosen = Chosen {
        id: "test".into(),
        title: "a test\nrm -rf /".into(),
        risk: Risk::Low,
        disruptive: false,
        state: State::NotApplied,
    };
    let left = Left { mitigation: "test".into(), what: "by hand\nrm -rf /".into(), why: "why".into() };
    let mut plan = Plan {
        schema: SCHEMA.into(),
        hash: String::new(),
        host: "node1".into(),
        kernel: "6.18".into(),
        compute: "1-3".into(),
        housekeeping: "0".into(),
        mitigations: vec![chosen],
        writes,
        left: vec![left],
    };
    plan.hash = plan.hash_of();
    plan
}

/// One of each kind.
fn each() -> Plan {
    let group = ["dirty_bytes", "dirty_ratio"].map(|name| format!("/proc/sys/vm/{name}")).to_vec();
    plan(vec![
        file("/proc/sys/vm/stat_interval", "1\n", "120"),
        file("/proc/sys/net/ipv4/conf/eth0.7/rp_filter", "1\n", "0"),
        Write { group: group.clone(), ..file("/proc/sys/vm/dirty_ratio", "20\n", "10") },
        Write { group, ..file("/proc/sys/vm/dirty_ratio", "0\n", "10") },
        file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n", "never"),
        file("/proc/irq/default_smp_affinity", "f\n", "1"),
        irq(24, "virtio0-config", "1"),
        kthread(10, "khugepaged", "0"),
        unit("cron.service", "active enabled", "inactive disabled"),
        unit("udisks2.service", "active static", "inactive masked"),
        write(Place::Held { what: Held::CpuDmaLatency }, ABSENT, "3"),
        write(Place::Held { what: Held::TimestampSocket }, ABSENT, "on"),
        write(Place::Cpuset { what: CpusetKind::Shield }, ABSENT, "compute=1-3 housekeeping=0"),
        drop_in("/etc/sysctl.d/90-quell-test.conf", "# quell: test\nvm.stat_interval = 120\n"),
        drop_in(
            "/etc/default/grub.d/90-quell-test.cfg",
            "# quell: test\nGRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} nohz_full=1-3\"\n",
        ),
        drop_in(
            "/etc/systemd/system.conf.d/90-quell.conf",
            "# quell\n[Manager]\nCPUAffinity=\nCPUAffinity=0\n",
        ),
        drop_in("/etc/systemd/journald.conf.d/90-quell.conf", "# quell\n[Journal]\nStorage=volatile\n"),
    ])
}

/// No part of it may be interpreted as anything but text.
fn hostile() -> Plan {
    let mut plan = plan(vec![
        file(&format!("/proc/sys/vm/{HOSTILE}"), "1", "1"),
        file("/proc/sys/vm/x", "1", HOSTILE),
        file("/proc/sys/vm/y", "1", "${f:exec:id}"),
        file("/proc/sys/vm/z", "1", "1 # no"),
        file("/sys/x[1]/*", "1", "1"),
        file("/sys/a b=c", "1", "1"),
        irq(1, HOSTILE, "1"),
        kthread(2, HOSTILE, "0\n1"),
        unit(HOSTILE, "active enabled", "inactive disabled"),
        write(Place::Held { what: Held::CpuDmaLatency }, ABSENT, HOSTILE),
        drop_in(&format!("/etc/quell{HOSTILE}"), HOSTILE),
        drop_in(
            "/etc/default/grub.d/90-quell.cfg",
            "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} ${f:exec:id}\"\n",
        ),
    ]);
    plan.host = HOSTILE.into();
    plan.hash = HOSTILE.into();
    plan
}

/// The text of a file.
fn text<'e>(export: &'e Export, name: &str) -> &'e str {
    &export.files.iter().find(|file| file.name == name).unwrap().text
}

/// The part that is not identical in all scripts.
fn own(script: &str) -> &str {
    script.split_once("\nset -u\n").unwrap().0
}

/// Runs shellcheck, if it is installed.
fn check(script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.sh");
    fs_err::write(&path, script).unwrap();
    match Command::new("shellcheck").arg(&path).output() {
        Ok(printed) => assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stdout)),
        Err(_) => quell_testing::skip("there is no shellcheck"),
    }
    let parsed = Command::new("sh").arg("-n").arg(&path).status().unwrap();
    assert!(parsed.success());
}

#[test]
fn a_shell_script_says_what_it_writes_and_what_it_leaves() {
    let export = shell(&each());
    insta::assert_snapshot!("shell", own(text(&export, "quell-tune.sh")));
    check(text(&export, "quell-tune.sh"));
    let left: Vec<&str> = export.left.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(left, ["a socket with time stamps, held", "cpuset shield quell"]);
}

#[test]
fn a_tuned_profile_has_what_its_plugins_give_back_and_a_script_for_the_rest() {
    let export = tuned(&each());
    insta::assert_snapshot!("tuned", text(&export, "quell/tuned.conf"));
    insta::assert_snapshot!("tuned-script", own(text(&export, "quell/script.sh")));
    check(text(&export, "quell/script.sh"));
}

#[test]
fn hostile_text_stays_text() {
    let export = shell(&hostile());
    insta::assert_snapshot!("hostile-shell", own(text(&export, "quell-tune.sh")));
    check(text(&export, "quell-tune.sh"));
    let export = tuned(&hostile());
    insta::assert_snapshot!("hostile-tuned", text(&export, "quell/tuned.conf"));
    check(text(&export, "quell/script.sh"));
    let export = slurm(&hostile());
    check(text(&export, "prolog.sh"));
    assert!(!text(&export, "prolog.sh").lines().any(|line| line.starts_with("rm -rf /")));
}

/// Two nodes of two cores of two threads; siblings are four apart.
fn small() -> (Facts, Parts) {
    let list = |text: &str| quell_recording::parse_cpu_list(text).unwrap();
    let facts = Facts {
        host: "node1".into(),
        possible: list("0-7"),
        online: list("0-7"),
        cores: ["0,4", "1,5", "2,6", "3,7"].map(list).to_vec(),
        numa: vec![(0, list("0,2,4,6")), (1, list("1,3,5,7"))],
        ..Facts::default()
    };
    let parts = Parts { compute: list("1-3,5-7"), housekeeping: list("0,4") };
    (facts, parts)
}

#[test]
fn ranks_are_spread_over_nodes_on_first_threads() {
    let (facts, parts) = small();
    let export = bindings(&facts, &parts, None);
    let all: String = export.files.iter().map(|file| format!("=== {}\n{}", file.name, file.text)).collect();
    insta::assert_snapshot!("bindings", all);
    check(text(&export, "rank-taskset.sh"));
    assert!(export.left.is_empty());
}

#[test]
fn second_threads_come_after_all_first_ones_and_then_it_says_so() {
    let (facts, parts) = small();
    let cpus = |ranks| {
        let export = bindings(&facts, &parts, Some(ranks));
        let mpich = text(&export, "mpich.txt");
        let line = mpich.lines().find(|line| line.starts_with("mpiexec")).unwrap();
        (line.split(' ').nth(2).unwrap().to_owned(), export.left.len())
    };
    assert_eq!(cpus(1), ("user:2".into(), 0));
    assert_eq!(cpus(2), ("user:2,1".into(), 0));
    assert_eq!(cpus(3), ("user:2,1,3".into(), 0));
    // Open MPI 5 cannot express it.
    assert_eq!(cpus(4), ("user:2,1,3,6".into(), 1));
    assert_eq!(cpus(8), ("user:2,1,3,6,5,7".into(), 2));
    let hostile = Facts { host: HOSTILE.into(), ..facts.clone() };
    let export = bindings(&hostile, &parts, None);
    assert!(text(&export, "rankfile").contains("rank 0=+n0 slot=2\n"));
}

#[test]
fn slurm_gets_a_plan_for_each_job() {
    let export = slurm(&each());
    insta::assert_snapshot!("slurm-prolog", text(&export, "prolog.sh"));
    insta::assert_snapshot!("slurm-epilog", text(&export, "epilog.sh"));
    check(text(&export, "prolog.sh"));
    check(text(&export, "epilog.sh"));
    let plan: Plan = serde_json::from_str(text(&export, "quell.plan")).unwrap();
    assert_eq!(plan.hash, plan.hash_of());
    assert!(!plan.writes.iter().any(|write| write.staged));
    // It is for any node of this kind.
    assert_eq!((&*plan.host, &*plan.kernel), ("", ""));
    let numbered = |write: &&Write| matches!(write.place, Place::Irq { .. } | Place::Thread { .. });
    assert_eq!(plan.writes.iter().filter(numbered).map(|one| one.may_fail).collect::<Vec<_>>(), [true, true]);
}

#[test]
fn slurm_gets_no_thread_of_a_program_that_runs_now() {
    let of = |mitigation: &str, property| {
        let place = Place::Thread { pid: 900, start: 24, comm: "solver".into(), property };
        let id = format!("{mitigation}:{place}");
        Write { id, mitigation: mitigation.into(), ..write(place, "0-3", "1-3") }
    };
    let writes = vec![
        of("rankfile-affinity", Property::Affinity),
        of("timer-slack", Property::TimerSlack),
        of("a-site's", Property::Policy),
        of("kthread-affinity", Property::Affinity),
    ];
    let mut source = plan(writes);
    source.mitigations[0].id = "kthread-affinity".into();
    let export = slurm(&source);
    let kept = Plan::read(text(&export, "quell.plan")).unwrap();
    let kept: Vec<&str> = kept.writes.iter().map(|write| write.mitigation.as_str()).collect();
    assert_eq!((kept, export.left.len()), (vec!["kthread-affinity"], 3));
}
