//! `quell tune` on folders that represent machines: what it refuses, what it prints, and that the machine is unchanged afterwards.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::fake_machine::{self, Machine};
use crate::support::{json, quell, run, transcript};
use serde_json::Value;

/// A working folder, with a machine in `node`.
struct Node {
    folder: tempfile::TempDir,
}

impl Node {
    fn new(make: fn(&Path) -> Machine) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let node = folder.path().join("node");
        fs_err::create_dir(&node).unwrap();
        make(&node);
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path().join("node").join(path.trim_start_matches('/'));
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    fn tune(&self, args: &[&str]) -> Output {
        run(self.path(), &[&["tune"], args, &["--sysroot", "node"]].concat())
    }

    fn plan(&self, args: &[&str]) -> Value {
        let output = self.tune(&[&["plan", "-o", "plan"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output));
        serde_json::from_slice(&fs_err::read(self.path().join("plan")).unwrap()).unwrap()
    }

    fn output(&self, args: &[&str]) -> String {
        transcript(self.path(), &[&["tune"], args, &["--sysroot", "node"]].concat())
    }

    /// All files of the machine except quell's own, with content and mode; of folders only that they exist.
    fn image(&self) -> BTreeMap<PathBuf, String> {
        let node = self.path().join("node");
        let (mut image, mut folders) = (BTreeMap::new(), vec![node.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs_err::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&node).unwrap().to_owned();
                if name == Path::new("run") {
                    folders.push(path);
                    continue;
                }
                if name.starts_with("var") || name.starts_with("run/quell") {
                    continue;
                }
                let facts = path.symlink_metadata().unwrap();
                let text = if facts.is_file() {
                    fs_err::read_to_string(&path).unwrap_or_default()
                } else {
                    "a folder".into()
                };
                image.insert(name, format!("{:o} {text}", facts.permissions().mode()));
                if facts.is_dir() {
                    folders.push(path);
                }
            }
        }
        image
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Applies, verifies and reverts, and checks that the machine is as before.
fn there_and_back(node: &Node, args: &[&str]) -> Value {
    let before = node.image();
    let plan = node.plan(args);
    assert!(!plan["writes"].as_array().unwrap().is_empty(), "{args:?}: {}", plan["left"]);
    let applied = node.tune(&["apply", "plan", "--yes", "--max-risk", "high"]);
    assert_eq!(applied.status.code(), Some(0), "{args:?}: {}", text(&applied));
    assert_ne!(node.image(), before, "{args:?}");
    let verified = node.tune(&["verify"]);
    assert_eq!(verified.status.code(), Some(0), "{args:?}: {}", text(&verified));
    let reverted = node.tune(&["revert"]);
    assert_eq!(reverted.status.code(), Some(0), "{args:?}: {}", text(&reverted));
    assert_eq!(node.image(), before, "{args:?}");
    plan
}

#[test]
fn every_machine_is_unchanged() {
    there_and_back(
        &Node::new(fake_machine::large),
        &["vm-stat-interval", "thp", "workqueue-cpumask", "dirty-writeback", "nohz-full", "--persist"],
    );
    there_and_back(&Node::new(fake_machine::power), &["smt-snooze-delay"]);
    there_and_back(&Node::new(fake_machine::partitioned), &["cpuset-isolated"]);
    there_and_back(&Node::new(fake_machine::services), &["svc-cron", "svc-postfix"]);
    there_and_back(&Node::new(fake_machine::services), &["svc-cron", "svc-postfix", "--persist"]);
    there_and_back(&Node::new(fake_machine::holes), &["pm-qos-percpu"]);
    there_and_back(&Node::new(fake_machine::interrupts), &["irq-cpu0"]);
}

#[test]
fn killed_at_any_step_units_partitions_and_files_are_given_back() {
    for (make, ids) in [
        (fake_machine::services as fn(&Path) -> Machine, vec!["svc-cron", "--persist"]),
        (fake_machine::partitioned, vec!["cpuset-isolated"]),
        (fake_machine::large, vec!["vm-stat-interval", "nohz-full", "--persist"]),
    ] {
        let node = Node::new(make);
        let before = node.image();
        node.plan(&ids);
        for at in 1.. {
            let apply = ["tune", "apply", "plan", "--yes", "--max-risk", "high", "--sysroot", "node"];
            let applied =
                quell(node.path()).args(apply).env("QUELL_FAULT_AT", at.to_string()).output().unwrap();
            let reverted = node.tune(&["revert"]);
            assert_eq!(reverted.status.code(), Some(0), "{ids:?} at {at}: {}", text(&reverted));
            assert_eq!(node.image(), before, "{ids:?} at {at}");
            if applied.status.signal() != Some(9) {
                assert!(at > 8, "{at} points");
                break;
            }
        }
    }
}

/// The journal of what is applied, below the node.
fn journal(node: &Node) -> PathBuf {
    let folder = node.path().join("node/var/lib/quell/tune");
    let mut files = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|ending| ending == "jsonl")).unwrap()
}

#[test]
fn a_journal_that_lost_its_end_names_what_it_lost() {
    let node = Node::new(fake_machine::large);
    node.plan(&["vm-stat-interval", "thp"]);
    assert_eq!(node.tune(&["apply", "plan", "--yes"]).status.code(), Some(0));
    let path = journal(&node);
    let whole = fs_err::read_to_string(&path).unwrap();
    // The second write and all that follows.
    let begins = whole.match_indices("{\"step\":\"intent\"").nth(1).unwrap().0;
    fs_err::write(&path, &whole[..begins]).unwrap();
    let id = path.file_stem().unwrap().to_string_lossy().into_owned();
    let printed =
        node.output(&["status"]) + &node.output(&["revert"]) + &node.output(&["revert", "--forget"]);
    insta::assert_snapshot!("journal_without_its_end", printed.replace(&id, "ID"));
}

/// What `quell-recover.service` does: a boot after a power cut, and one after a transaction that was whole.
#[test]
fn a_boot_recovers_what_was_interrupted() {
    for (ids, whole) in [
        (vec!["vm-stat-interval", "nohz-full", "--persist"], false),
        (vec!["vm-stat-interval", "nohz-full", "--persist"], true),
        (vec!["vm-stat-interval"], true),
    ] {
        let node = Node::new(fake_machine::large);
        let before = node.image();
        node.plan(&ids);
        let apply = ["tune", "apply", "plan", "--yes", "--max-risk", "high", "--sysroot", "node"];
        let points = if whole { "0" } else { "25" };
        quell(node.path()).args(apply).env("QUELL_FAULT_AT", points).output().unwrap();
        let applied = node.image();
        assert_ne!(applied, before, "{ids:?}");
        node.put("/proc/sys/kernel/random/boot_id", "another\n");
        let recovered = node.output(&["revert", "--interrupted"]);
        let is_kept = whole && ids.contains(&"--persist");
        assert_eq!(recovered.contains("nothing was interrupted"), is_kept, "{ids:?}: {recovered}");
        let open = node.output(&["status"]);
        assert_eq!(open.contains("nothing is applied"), !is_kept, "{open}");
        if !whole {
            let on_disk = |image: BTreeMap<PathBuf, String>| -> Vec<_> {
                image.into_iter().filter(|(path, _)| path.starts_with("etc")).collect()
            };
            assert_ne!(on_disk(applied), on_disk(before.clone()), "the plan was killed too early");
            assert_eq!(on_disk(node.image()), on_disk(before), "drop-ins and boot options");
        }
    }
}

#[test]
fn a_plan_reads_like_a_diff_and_nothing_is_written_without_a_word() {
    let node = Node::new(fake_machine::large);
    let before = node.image();
    insta::assert_snapshot!("plan", node.output(&["plan", "vm-stat-interval", "thp", "-o", "plan"]));
    insta::assert_snapshot!("dry_run", node.output(&["apply", "plan"]));
    insta::assert_snapshot!(
        "nothing_applied",
        node.output(&["status"]) + &node.output(&["verify"]) + &node.output(&["revert"])
    );
    assert_eq!(node.image(), before);
}

#[test]
fn an_audit_of_a_large_node() {
    let node = Node::new(fake_machine::large);
    insta::assert_snapshot!("audit_thp", node.output(&["audit", "thp", "nohz-full"]));
    let audit = json(node.path(), &["tune", "audit", "--json", "--sysroot", "node"]);
    assert!(audit["mitigations"].as_array().unwrap().len() >= 109);
}

#[test]
fn what_is_no_plan_is_refused_with_its_reason() {
    let node = Node::new(fake_machine::large);
    node.plan(&["vm-stat-interval"]);
    let plan = fs_err::read_to_string(node.path().join("plan")).unwrap();
    fs_err::write(node.path().join("edited"), plan.replace("\"20\"", "\"21\"")).unwrap();
    fs_err::write(node.path().join("torn"), &plan[..plan.len() / 2]).unwrap();
    fs_err::write(node.path().join("empty"), "").unwrap();
    let mut printed = String::new();
    for name in ["edited", "torn", "empty", "absent"] {
        printed += &node.output(&["apply", name, "--yes"]);
    }
    printed += &node.output(&["plan", "vm-stat-intervall"]);
    printed += &node.output(&["plan", "--profile", "desktop"]);
    printed += &node.output(&["plan", "irq-cpu0", "irq-thread0"]);
    printed += &node.output(&["plan", "smt-off", "thp"]);
    printed += &node.output(&["plan", "thp", "--cpus", "0-255"]);
    printed += &node.output(&["plan", "thp", "--cpus", "999"]);
    printed += &node.output(&["plan", "thp", "--set", "thp"]);
    printed += &node.output(&["plan", "vm-stat-interval", "--set", "vm-stat-interval=abc"]);
    printed += &node.output(&["revert", "2026"]);
    printed += &transcript(node.path(), &["tune", "audit", "--sysroot", "nowhere"]);
    insta::assert_snapshot!("refused_plans", printed);
    assert!(!node.path().join("node/var/lib/quell").exists(), "nothing was begun");
}

#[test]
fn guard_rails() {
    let mut printed = String::new();
    let mut refused = |prepare: &dyn Fn(&Node), rule: &str, more: &[&str]| {
        let node = Node::new(fake_machine::large);
        node.plan(&["vm-stat-interval"]);
        prepare(&node);
        let before = node.image();
        let apply = ["apply", "plan", "--yes"];
        let document = node.tune(&[&apply[..], &["--json"]].concat());
        assert_eq!(document.status.code(), Some(3), "{rule}: {}", text(&document));
        let document: Value = serde_json::from_slice(&document.stdout).unwrap();
        assert_eq!(document["refused"][0]["rule"], rule);
        printed += &node.output(&apply);
        assert_eq!(node.image(), before);
        let allowed = node.tune(&[&apply[..], more].concat()).status.code();
        assert_eq!(allowed, Some(if more.is_empty() { 3 } else { 0 }), "{rule}");
    };
    refused(&|node| node.put("/proc/1/cgroup", "0::/docker/0123456789\n"), "container", &[]);
    refused(&|node| node.put("/run/.containerenv", ""), "container", &[]);
    let process = |node: &Node, pid: u32, comm: &str, uid: u32, command: &str| {
        node.put(&format!("/proc/{pid}/comm"), &format!("{comm}\n"));
        node.put(
            &format!("/proc/{pid}/status"),
            &format!("Name:\t{comm}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"),
        );
        node.put(&format!("/proc/{pid}/cmdline"), command);
    };
    refused(
        &|node| process(node, 700, "tuned", 0, "/usr/bin/python3\0/usr/sbin/tuned\0-l\0"),
        "owner",
        &["--allow-owner"],
    );
    refused(&|node| process(node, 701, "kubelet", 0, "/usr/bin/kubelet\0"), "owner", &["--allow-owner"]);
    refused(&|node| process(node, 702, "lmp\u{1b}[2J", 4711, "lmp\0"), "users", &["--allow-users"]);
    refused(&|node| process(node, 703, "slurmstepd", 0, "slurmstepd: [7.0]\0"), "users", &["--allow-users"]);
    insta::assert_snapshot!("guard_rails", printed);
    let node = Node::new(fake_machine::large);
    node.plan(&["vm-stat-interval"]);
    process(&node, 704, "slurmstepd", 0, "/usr/sbin/slurmstepd\0infinity\0");
    let printed = node.output(&["apply", "plan", "--yes"]);
    assert!(printed.starts_with("exit 0"), "no job runs: {printed}");
    let node = Node::new(fake_machine::large);
    node.plan(&["softlockup-off"]);
    insta::assert_snapshot!("too_risky", node.output(&["apply", "plan", "--yes"]));
    let printed = node.output(&["apply", "plan", "--yes", "--max-risk", "medium"]);
    assert!(printed.starts_with("exit 0"), "{printed}");
}

/// The site's profile that the reference shows, on a machine that is not one of its GPU hosts.
#[test]
fn a_sites_profile_extends_quells() {
    let node = Node::new(fake_machine::large);
    let page = include_str!("../../../../docs/reference/mitigations.md");
    let mut blocks = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let example = blocks.find(|block| block.contains("include = [")).unwrap();
    node.put("/etc/quell/mitigations.d/profiles/ours.toml", example);
    let chosen = |profile: &str, more: &[&str]| -> Vec<String> {
        let plan = node.plan(&[&["--profile", profile], more].concat());
        let ids = plan["mitigations"].as_array().unwrap().iter();
        ids.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let (quells, ours) = (chosen("hpc-node", &[]), chosen("ours", &[]));
    assert!(ours.contains(&"vm-stat-interval".into()) && !ours.contains(&"svc-cron".into()), "{ours:?}");
    assert!(quells.iter().filter(|id| *id != "svc-cron").all(|id| ours.contains(id)), "{quells:?} {ours:?}");
    assert!(!ours.contains(&"pcie-aspm".into()), "{ours:?}");
    let plan = fs_err::read_to_string(node.path().join("plan")).unwrap();
    assert!(plan.contains("\"120\""), "{plan}");
    node.plan(&["--profile", "ours", "--set", "vm-stat-interval=60"]);
    let plan = fs_err::read_to_string(node.path().join("plan")).unwrap();
    assert!(!plan.contains("\"120\""), "the command line has the last word");
    let folder = node.path().join("node/etc/quell/mitigations.d/profiles");
    fs_err::write(folder.join("bad.toml"), "title = 't'\nwhat = 'w'\ninclude = ['bad']\n").unwrap();
    insta::assert_snapshot!("bad_profile", node.output(&["plan", "--profile", "bad"]));
}

/// A plan refuses what no option of `apply` permits, and names what one does.
#[test]
fn a_plan_says_what_apply_would_refuse() {
    let node = Node::new(fake_machine::large);
    node.put("/run/.containerenv", "");
    let plan = ["plan", "vm-stat-interval", "-o", "plan"];
    let mut printed = node.output(&plan);
    assert!(!node.path().join("plan").exists(), "{printed}");
    let node = Node::new(fake_machine::large);
    printed += &node.output(&["plan", "softlockup-off", "-o", "plan"]);
    insta::assert_snapshot!("plan_refused", printed);
    assert!(node.path().join("plan").exists());
}

/// The copy of a copy, too: what is looked at is what is copied.
#[test]
fn a_copy_of_a_machine_is_audited_like_the_machine() {
    for make in [
        fake_machine::large as fn(&Path) -> Machine,
        fake_machine::power,
        fake_machine::partitioned,
        fake_machine::services,
        fake_machine::holes,
        fake_machine::interrupts,
    ] {
        let node = Node::new(make);
        node.put("/proc/1/environ", "SECRET=x\0container=none\0");
        let copied = node.tune(&["copy", "copy"]);
        assert_eq!(copied.status.code(), Some(0), "{}", text(&copied));
        let of = |tree: &str| json(node.path(), &["tune", "audit", "--json", "--sysroot", tree]);
        assert_eq!(of("node"), of("copy"));
        let environment = fs_err::read_to_string(node.path().join("copy/proc/1/environ")).unwrap();
        assert_eq!(environment, "container=none");
        assert_eq!(node.tune(&["copy", "copy"]).status.code(), Some(2), "it is not empty");
    }
}

#[test]
fn journals_and_locks_are_private_and_no_links_are_followed() {
    let node = Node::new(fake_machine::large);
    node.plan(&["vm-stat-interval"]);
    let elsewhere = node.path().join("elsewhere");
    fs_err::create_dir(&elsewhere).unwrap();
    let state = node.path().join("node/var/lib/quell");
    fs_err::create_dir_all(state.parent().unwrap()).unwrap();
    symlink(&elsewhere, &state).unwrap();
    let before = node.image();
    let output = node.tune(&["apply", "plan", "--yes"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("link"), "{}", text(&output));
    assert_eq!((node.image(), fs_err::read_dir(&elsewhere).unwrap().count()), (before, 0));
    fs_err::remove_file(&state).unwrap();
    assert_eq!(node.tune(&["apply", "plan", "--yes"]).status.code(), Some(0));
    for path in ["node/var/lib/quell", "node/var/lib/quell/tune", "node/run/quell"] {
        let mode = fs_err::metadata(node.path().join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{path}");
    }
}

#[test]
fn a_drop_in_that_was_edited_stays() {
    let node = Node::new(fake_machine::large);
    node.plan(&["vm-stat-interval", "--persist"]);
    assert_eq!(node.tune(&["apply", "plan", "--yes"]).status.code(), Some(0));
    let path = node.path().join("node/etc/sysctl.d/90-quell-vm-stat-interval.conf");
    let edited = fs_err::read_to_string(&path).unwrap() + "# mine\n";
    fs_err::write(&path, &edited).unwrap();
    let output = node.tune(&["revert"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
    assert_eq!(fs_err::read_to_string(&path).unwrap(), edited);
    assert_eq!(node.tune(&["revert", "--forget"]).status.code(), Some(0));
    assert_eq!(fs_err::read_to_string(&path).unwrap(), edited);
}

#[test]
fn a_site_adds_its_own_and_its_mistakes_are_named() {
    let node = Node::new(fake_machine::large);
    let mine = "id = \"site-swap\"\ntitle = \"Swap less\"\ncategory = \"memory\"\nwhat = \"x\"\ncaveat = \"y\"\nrisk = \"low\"\nkernel = \"any\"\nprovenance = [\"us\"]\nnoise = [\"task:^kswapd\"]\n\n[[knob]]\nkind = \"file\"\npath = \"/proc/sys/vm/stat_interval\"\nwant = \"33\"\n";
    node.put("/etc/quell/mitigations.d/site-swap.toml", mine);
    there_and_back(&node, &["site-swap"]);
    let mut printed = String::new();
    for (from, to) in [
        ("/proc/sys/vm/stat_interval", "/etc/shadow"),
        ("/proc/sys/vm/stat_interval", "/proc/sys/kernel/core_pattern"),
        ("task:^kswapd", "tusk:x"),
        ("id = \"site-swap\"", "id = \"other\""),
        ("kind = \"file\"", "kind = \"fule\""),
    ] {
        node.put("/etc/quell/mitigations.d/site-swap.toml", &mine.replace(from, to));
        printed += &node.output(&["audit"]);
    }
    insta::assert_snapshot!("site_mistakes", printed);
}
