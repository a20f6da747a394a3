//! The shell script, run on a real folder tree.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;

use super::super::{shell, tuned};
use super::{HOSTILE, drop_in, file, irq, kthread, plan, text, unit, write};
use crate::catalogue::Held;
use crate::place::{ABSENT, PREEMPTION, Place};
use crate::plan::{Plan, Write};

const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const CONF: &str = "/etc/sysctl.d/90-quell-test.conf";
const TASKSET: &str =
    "#!/bin/sh\nprintf 'Name:\\tx\\nCpus_allowed_list:\\t%s\\n' \"$2\" >\"${0%/usr*}/proc/$3/status\"\n";
const SYSTEMCTL: &str = "#!/bin/sh\nhere=${0%/usr*}/unit\nread -r active enabled <\"$here\"\ncase $1 in\nis-active) echo \"$active\" ;;\n\
                         is-enabled) echo \"$enabled\" ;;\nstart) echo \"active $enabled\" >\"$here\" ;;\nstop) echo \"inactive $enabled\" >\"$here\" ;;\n\
                         enable) echo \"$active enabled\" >\"$here\" ;;\ndisable) echo \"$active disabled\" >\"$here\" ;;\nesac\n";

/// The stat line of a thread that is the kernel's.
fn stat(pid: u32, comm: &str, start: u64) -> String {
    let zeros = |n: usize| "0 ".repeat(n);
    format!("{pid} ({comm}) S {}2097216 {}{start} {}\n", zeros(5), zeros(12), zeros(30))
}

struct Tree {
    folder: tempfile::TempDir,
    script: PathBuf,
}

impl Tree {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tree = Self { script: folder.path().join("script.sh"), folder };
        for (path, text) in [
            ("/proc/sys/kernel/random/boot_id", "boot-1\n"),
            ("/proc/sys/vm/stat_interval", "1\n"),
            ("/proc/sys/vm/dirty_ratio", "20\n"),
            ("/proc/sys/vm/dirty_bytes", "0\n"),
            (THP, "always [madvise] never\n"),
            ("/proc/irq/30/smp_affinity", "3\n"),
            ("/proc/irq/30/virtio0-config/x", ""),
            ("/proc/10/stat", &stat(10, "khuge) (paged", 99)),
            ("/proc/10/status", "Name:\tx\nCpus_allowed_list:\t0-1\n"),
            ("/usr/bin/taskset", TASKSET),
            ("/usr/bin/systemctl", SYSTEMCTL),
            ("/unit", "active enabled\n"),
            ("/dev/cpu_dma_latency", ""),
            ("/etc/hostname", "x\n"),
        ] {
            tree.put(path, text);
        }
        for tool in ["taskset", "systemctl"] {
            let path = tree.path(&format!("/usr/bin/{tool}"));
            fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(tree.path("/run")).unwrap();
        fs::write(&tree.script, script).unwrap();
        tree
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// All files with their contents.
    fn image(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut image = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    image.insert(path.clone(), Vec::new());
                    folders.push(path);
                } else if !path.ends_with("dev/cpu_dma_latency") {
                    image.insert(path.clone(), fs::read(&path).unwrap());
                }
            }
        }
        image
    }

    /// Its exit code and its output.
    fn run(&self, verb: &str) -> (i32, String) {
        let sh = if Path::new("/usr/bin/dash").exists() { "dash" } else { "sh" };
        let printed = Command::new(sh)
            .arg(&self.script)
            .arg(verb)
            .env("QUELL_ROOT", self.folder.path())
            .output()
            .unwrap();
        let text = [printed.stdout, printed.stderr].concat();
        (printed.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
    }
}

fn writes() -> Vec<Write> {
    let group = ["dirty_bytes", "dirty_ratio"].map(|name| format!("/proc/sys/vm/{name}")).to_vec();
    vec![
        file("/proc/sys/vm/stat_interval", "1\n", "120"),
        Write { group, ..file("/proc/sys/vm/dirty_ratio", "20\n", "10") },
        file(THP, "always [madvise] never\n", "never"),
        // These have other numbers now, and the same names.
        irq(24, "virtio0-config", "1"),
        kthread(7, "khuge) (paged", "0"),
        // Not on this machine.
        irq(25, HOSTILE, "1"),
        kthread(8, HOSTILE, "0"),
        unit("cron.service", "active enabled", "inactive disabled"),
        write(Place::Held { what: Held::CpuDmaLatency }, ABSENT, "3"),
        drop_in(CONF, "# quell: it's \"text\"\nvm.stat_interval = 120\n\n"),
    ]
}

fn script(plan: &Plan) -> String {
    text(&shell(plan), "quell-tune.sh").to_owned()
}

#[test]
fn what_is_applied_is_given_back_to_the_byte() {
    let tree = Tree::new(&script(&plan(writes())));
    let before = tree.image();
    assert_eq!(tree.run("status"), (0, "not applied\n".into()));
    let (code, printed) = tree.run("apply");
    assert_eq!(code, 0, "{printed}");
    assert_eq!(printed.matches("it is not here").count(), 2, "{printed}");
    for (path, text) in [
        ("/proc/sys/vm/stat_interval", "120"),
        (THP, "never"),
        ("/proc/irq/30/smp_affinity", "1"),
        ("/proc/10/status", "Name:\tx\nCpus_allowed_list:\t0\n"),
        ("/unit", "inactive disabled\n"),
        ("/dev/cpu_dma_latency", "0x00000003"),
        (CONF, "# quell: it's \"text\"\nvm.stat_interval = 120\n\n"),
    ] {
        assert_eq!(tree.read(path), text, "{path}");
    }
    assert_eq!(fs::metadata(tree.path("/run/quell-tune")).unwrap().permissions().mode() & 0o777, 0o700);
    let (code, printed) = tree.run("status");
    assert_eq!((code, printed.matches("stands: ").count()), (0, 8), "{printed}");

    let applied = tree.image();
    let (code, printed) = tree.run("apply");
    assert_eq!(code, 3, "{printed}");
    assert!(tree.image() == applied);

    let holder = holder(&tree);
    assert!(Path::new(&format!("/proc/{holder}")).exists());
    assert_eq!(tree.run("undo"), (0, String::new()));
    assert!(tree.image() == before);
    assert_eq!(tree.run("undo").0, 0);
    assert!(tree.image() == before);
    let over = |text: String| text.contains(") Z ");
    assert!(fs::read_to_string(format!("/proc/{holder}/stat")).map_or(true, over));
}

#[test]
fn the_preemption_mode_is_compared_by_the_word_in_parentheses() {
    let before = "none voluntary (full) lazy \n";
    let script = script(&plan(vec![file(PREEMPTION, before, "lazy")]));
    let tree = Tree::new(&script);
    tree.put(PREEMPTION, before);
    assert_eq!(tree.run("apply"), (0, String::new()));
    // As after a kill between the write and the look, which then has the kernel's text.
    fs::remove_file(tree.path("/run/quell-tune/1.set")).unwrap();
    tree.put(PREEMPTION, "none voluntary full (lazy) \n");
    assert_eq!(tree.run("undo"), (0, String::new()));
    assert_eq!(tree.read(PREEMPTION), before);
    let tuned = tuned(&plan(vec![file(PREEMPTION, before, "lazy")]));
    assert!(text(&tuned, "quell/script.sh").contains(PREEMPTION));
}

/// The unit stands for a setting: its `systemctl` changes others, as the kernel does.
#[test]
fn what_changed_along_is_given_back_last() {
    const DEPTH: &str = "/sys/block/x/queue/depth";
    const WEIGHT: &str = "/sys/block/x/queue/weight";
    const ABSENT_NOW: &str = "/sys/block/x/queue/iosched/expire";
    let dependents = [DEPTH, WEIGHT, ABSENT_NOW, "/sys/none"].map(str::to_owned).to_vec();
    let script =
        script(&plan(vec![Write { dependents, ..unit("x.service", "active static", "inactive static") }]));
    let systemctl = SYSTEMCTL
        .replace("stop) ", "stop) cd \"${here%unit}sys/block/x/queue\" && echo 1 >depth && echo 1 >weight && rm -rf iosched\n")
        .replace("start) ", "start) cd \"${here%unit}sys/block/x/queue\" && echo 2 >depth && echo 2 >weight && mkdir -p iosched && echo 2 >iosched/expire\n");
    let systemctl = systemctl.replace("here=${0%/usr*}/unit", "here=$(cd \"${0%/usr*}\" && pwd)/unit");
    for weight_of_others in [None, Some("5\n")] {
        let tree = Tree::new(&script);
        fs::write(tree.path("/usr/bin/systemctl"), &systemctl).unwrap();
        tree.put("/unit", "active static\n");
        for path in [DEPTH, WEIGHT, ABSENT_NOW] {
            tree.put(path, "77\n");
        }
        let before = tree.image();
        assert_eq!(tree.run("apply"), (0, String::new()));
        assert_eq!((tree.read(DEPTH), tree.read(WEIGHT)), ("1\n".into(), "1\n".into()));
        if let Some(text) = weight_of_others {
            tree.put(WEIGHT, text);
        }
        assert_eq!(tree.run("undo"), (0, String::new()));
        assert_eq!(tree.read(WEIGHT), weight_of_others.unwrap_or("77\n"));
        tree.put(WEIGHT, "77\n");
        assert!(tree.image() == before);
    }
    // As long as someone else has the setting, they wait, and what is set in between stays.
    let tree = Tree::new(&script);
    fs::write(tree.path("/usr/bin/systemctl"), &systemctl).unwrap();
    tree.put("/unit", "active static\n");
    for path in [DEPTH, WEIGHT] {
        tree.put(path, "77\n");
    }
    let before = tree.image();
    assert_eq!(tree.run("apply"), (0, String::new()));
    tree.put("/unit", "reloading static\n");
    assert_eq!(tree.run("undo").0, 3);
    assert_eq!((tree.read(DEPTH), tree.read(WEIGHT)), ("1\n".into(), "1\n".into()));
    tree.put("/unit", "inactive static\n");
    tree.put(WEIGHT, "5\n");
    assert_eq!(tree.run("undo"), (0, String::new()));
    assert_eq!((tree.read(DEPTH), tree.read(WEIGHT)), ("77\n".into(), "5\n".into()));
    tree.put(WEIGHT, "77\n");
    fs::remove_dir_all(tree.path("/sys/block/x/queue/iosched")).unwrap();
    assert!(tree.image() == before);
}

/// systemd starts a socket along with its service.
#[test]
fn a_unit_that_another_one_starts_is_not_someone_elses() {
    const SYSTEMCTL: &str = "#!/bin/sh\ncd \"${0%/usr*}/units\" || exit 9\ncase $1 in\nis-active) cat \"$3.active\" ;;\n\
                             is-enabled) cat \"$3.enabled\" ;;\nstart) shift 2; for one in \"$1\" x.socket; do echo active >\"$one.active\"; done ;;\n\
                             stop) echo inactive >\"$3.active\" ;;\nenable | disable) echo \"${1}d\" >\"$3.enabled\" ;;\nesac\n";
    let units = ["x.socket", "x.service"];
    let of = |name: &&str| unit(name, "active enabled", "inactive disabled");
    let tree = Tree::new(&script(&plan(units.iter().map(of).collect())));
    tree.put("/usr/bin/systemctl", SYSTEMCTL);
    for name in units {
        tree.put(&format!("/units/{name}.active"), "active\n");
        tree.put(&format!("/units/{name}.enabled"), "enabled\n");
    }
    let before = tree.image();
    assert_eq!(tree.run("apply"), (0, String::new()));
    assert_eq!(tree.read("/units/x.socket.active"), "inactive\n");
    assert_eq!(tree.run("undo"), (0, String::new()));
    assert!(tree.image() == before);
}

fn holder(tree: &Tree) -> String {
    let folder = fs::read_dir(tree.path("/run/quell-tune")).unwrap();
    let mut names = folder.map(|entry| entry.unwrap().path());
    let path = names.find(|path| path.extension().is_some_and(|end| end == "pid")).unwrap();
    fs::read_to_string(path).unwrap().split(' ').next().unwrap().to_owned()
}

#[test]
fn foreign_changes_are_left_and_reported() {
    let tree = Tree::new(&script(&plan(writes())));
    let before = tree.image();
    assert_eq!(tree.run("apply").0, 0);
    tree.put("/proc/sys/vm/stat_interval", "7\n");
    // Not the written file itself, but one that the kernel would change with it.
    tree.put("/proc/sys/vm/dirty_bytes", "4096\n");
    assert!(tree.run("status").1.contains("changed by others: /proc/sys/vm/stat_interval"));
    let (code, printed) = tree.run("undo");
    assert_eq!((code, printed.matches("someone else changed it").count()), (3, 2), "{printed}");
    assert_eq!(tree.read("/proc/sys/vm/stat_interval"), "7\n");
    assert_eq!(tree.read("/proc/sys/vm/dirty_bytes"), "4096\n");
    assert_eq!(tree.read("/unit"), "active enabled\n");
    assert_eq!(tree.run("apply").0, 3);
    // Once the foreign change is undone, the rest is closed.
    tree.put("/proc/sys/vm/stat_interval", "1\n");
    tree.put("/proc/sys/vm/dirty_bytes", "0\n");
    assert_eq!(tree.run("undo").0, 0);
    assert!(tree.image() == before);
}

#[test]
fn a_failure_gives_back_what_was_written_and_one_before_writes_nothing() {
    let mut list = writes();
    list.push(file("/proc/sys/vm/missing", "1\n", "2"));
    let tree = Tree::new(&script(&plan(list.clone())));
    let before = tree.image();
    assert_eq!(tree.run("apply").0, 1);
    assert!(tree.image() == before);
    // A unit that cannot be stopped.
    list.truncate(8);
    let tree = Tree::new(&script(&plan(list)));
    tree.put("/usr/bin/systemctl", &SYSTEMCTL.replace("stop) ", "stop) exit 1; "));
    let before = tree.image();
    let (code, printed) = tree.run("apply");
    assert_eq!(code, 1, "{printed}");
    // Half of the failed write was made: the unit was disabled.
    assert!(tree.image() == before, "{printed}");
}

#[test]
fn originals_of_another_plan_or_of_others_are_not_believed() {
    let tree = Tree::new(&script(&plan(writes())));
    assert_eq!(tree.run("apply").0, 0);
    fs::write(&tree.script, script(&plan(vec![file(THP, "x", "never")]))).unwrap();
    let (code, printed) = tree.run("undo");
    assert!(code == 1 && printed.contains("another plan"), "{printed}");
    fs::copy(tree.path("/run/quell-tune/script"), &tree.script).unwrap();
    assert_eq!(tree.run("undo").0, 0);

    fs::create_dir(tree.path("/elsewhere")).unwrap();
    symlink(tree.path("/elsewhere"), tree.path("/run/quell-tune")).unwrap();
    for verb in ["apply", "undo"] {
        let (code, printed) = tree.run(verb);
        assert!(code == 1 && printed.contains("look who made it"), "{printed}");
    }
    assert_eq!(tree.run("nonsense").0, 2);
}

#[test]
fn a_boot_ends_what_was_in_memory_but_not_files() {
    let tree = Tree::new(&script(&plan(writes())));
    assert_eq!(tree.run("apply").0, 0);
    let holder = holder(&tree);
    Command::new("kill").arg(&holder).status().unwrap();
    tree.put("/proc/sys/kernel/random/boot_id", "boot-2\n");
    tree.put("/proc/sys/vm/stat_interval", "120");
    assert_eq!(tree.run("undo").0, 0);
    assert_eq!(tree.read("/proc/sys/vm/stat_interval"), "120");
    assert!(!tree.path(CONF).exists());
    assert_eq!(tree.read("/unit"), "active enabled\n");
}

#[test]
fn tuneds_script_keeps_the_first_originals_when_it_starts_again() {
    let export = tuned(&plan(vec![irq(24, "virtio0-config", "1"), kthread(7, "khuge) (paged", "0")]));
    let tree = Tree::new(text(&export, "quell/script.sh"));
    let before = tree.image();
    for _ in 0..2 {
        assert_eq!(tree.run("start"), (0, String::new()));
        assert_eq!(tree.run("verify").0, 0);
    }
    assert_eq!(tree.run("stop"), (0, String::new()));
    assert!(tree.image() == before);
    assert_eq!(tree.run("verify").0, 1);
}

/// On a machine, not on a copy of one: what the kernel would read.
#[test]
fn the_kernel_gets_the_chosen_word_as_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("places.sh"), include_str!("../shell/places.sh")).unwrap();
    for (text, line) in
        [("defer", "defer\n"), ("always [defer] never\n", "defer\n"), ("", "\n"), ("\n", "\n")]
    {
        fs::write(at("in"), text).unwrap();
        fs::write(at("out"), "").unwrap();
        let call = "NAME=x; kind=file; . \"$1/places.sh\"; spot=$1/out; put_file \"$1/in\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", call, "sh"]).arg(folder.path()).env_remove("QUELL_ROOT");
        assert!(shell.status().unwrap().success());
        assert_eq!(fs::read_to_string(at("out")).unwrap(), line, "{text:?}");
    }
}
