//! `quell tune serve` on a folder that represents a machine: what comes later is set too, what others change is theirs, and whatever ends the
//! service, what it set is reverted.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Guard, fake_machine, json, quell, run, transcript};

const STAT: &str = "proc/sys/vm/stat_interval";
const SWAP: &str = "proc/sys/vm/swappiness";

/// A machine, and a service on it.
struct Node {
    folder: tempfile::TempDir,
    service: Guard,
    /// Where systemd would listen.
    manager: UnixDatagram,
    log: BufReader<ChildStderr>,
}

impl Node {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let node = folder.path().join("node");
        fs_err::create_dir(&node).unwrap();
        let machine = fake_machine::interrupts(&node);
        machine.file(STAT, "1").file(SWAP, "60");
        let profiles = node.join("etc/quell/mitigations.d/profiles");
        fs_err::create_dir_all(&profiles).unwrap();
        let profile =
            "title = 'ours'\nwhat = 'three'\nmitigations = ['irq-cpu0', 'vm-stat-interval', 'swappiness']\n";
        fs_err::write(profiles.join("ours.toml"), profile).unwrap();
        let manager = UnixDatagram::bind(folder.path().join("manager")).unwrap();
        let (service, log) = start(folder.path());
        let mut node = Self { folder, service, manager, log };
        node.logs("applied as");
        let message = node.notified();
        assert!(message.starts_with("READY=1\nSTATUS=ours is applied"), "{message:?}");
        assert_eq!(node.read(STAT), "20");
        node
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join("node").join(file)
    }

    fn read(&self, file: &str) -> String {
        fs_err::read_to_string(self.path(file)).unwrap_or_default().trim().to_owned()
    }

    fn add_irq(&self, number: u32) -> String {
        let file = format!("proc/irq/{number}/smp_affinity");
        fs_err::create_dir_all(self.path(&format!("proc/irq/{number}/late"))).unwrap();
        fs_err::write(self.path(&file), "ff,ffffffff\n").unwrap();
        file
    }

    /// Waits until something holds, which it must within a minute.
    fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < end, "{what}: {}", self.read(STAT));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The next line of the log that contains a text.
    fn logs(&mut self, text: &str) -> String {
        let mut all = String::new();
        while self.log.read_line(&mut all).unwrap() > 0 {
            if let Some(line) = all.lines().last().filter(|line| line.contains(text)) {
                return line.to_owned();
            }
        }
        panic!("no `{text}` in {all}");
    }

    fn kill(&mut self, signal: &str) -> Option<i32> {
        let pid = self.service.0.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        self.service.0.wait().unwrap().code()
    }

    /// The pids of the keepers of all open transactions, as their journals have them.
    fn keepers(&self) -> Vec<String> {
        let mut pids = Vec::new();
        for entry in fs_err::read_dir(self.path("var/lib/quell/tune")).unwrap() {
            let path = entry.unwrap().path();
            let text = fs_err::read_to_string(&path).unwrap_or_default();
            for line in text.lines().filter(|line| line.contains("\"step\":\"keeper\"")) {
                let pid = line.split_once("\"pid\":").unwrap().1;
                pids.push(pid.split(',').next().unwrap().to_owned());
            }
        }
        pids.sort();
        pids.dedup();
        pids
    }

    /// The next message to systemd.
    fn notified(&self) -> String {
        let mut bytes = [0; 256];
        let length = self.manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    fn is_reverted(&self) -> bool {
        self.read(STAT) == "1" && self.read(SWAP) == "60"
    }
}

fn start(folder: &Path) -> (Guard, BufReader<ChildStderr>) {
    let args =
        ["tune", "serve", "ours", "--yes", "--every", "50ms", "--sysroot", "node", "--max-risk", "high"];
    let mut command = quell(folder);
    command.args(args).env("NOTIFY_SOCKET", folder.join("manager")).stderr(Stdio::piped());
    let mut child: Child = command.spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    (Guard(child), log)
}

#[test]
fn what_comes_later_is_set_and_what_others_set_is_theirs() {
    let mut node = Node::new();
    let system = node.read("proc/irq/100/smp_affinity");
    let late = node.add_irq(77);
    node.until("an interrupt that came later", || node.read(&late) == system);
    // It is gone, which a look has seen once it has set another one; then the next has its number.
    fs_err::remove_dir_all(node.path("proc/irq/77")).unwrap();
    let between = node.add_irq(79);
    node.until("an interrupt in between", || node.read(&between) == system);
    node.add_irq(77);
    node.until("its successor", || node.read(&late) == system);
    fs_err::write(node.path(SWAP), "33").unwrap();
    let line = node.logs("swappiness");
    assert!(line.contains("was changed by someone else to `33`, and is left alone"), "{line}");
    let other = node.add_irq(78);
    node.until("another interrupt", || node.read(&other) == system);
    assert_eq!(node.keepers().len(), 2, "all transactions share two keepers");
    assert_eq!(node.kill("-TERM"), Some(3), "{}", node.logs("33"));
    assert_eq!((node.read(STAT), node.read(SWAP)), ("1".to_owned(), "33".to_owned()));
    assert_eq!((node.read(&late), node.read(&other)), ("ff,ffffffff".to_owned(), "ff,ffffffff".to_owned()));
}

#[test]
fn at_the_end_all_is_reverted() {
    let mut node = Node::new();
    let late = node.add_irq(77);
    node.until("an interrupt that came later", || node.read(&late) != "ff,ffffffff");
    assert_eq!(node.kill("-INT"), Some(0));
    assert!(node.notified().starts_with("STOPPING=1"));
    assert!(node.is_reverted() && node.read(&late) == "ff,ffffffff");
    let status = json(node.folder.path(), &["tune", "status", "--json", "--sysroot", "node"]);
    assert_eq!(status["open"].as_array().map(Vec::len), Some(0), "{status}");
}

#[test]
fn a_service_that_is_killed_is_reverted_by_its_keepers() {
    // The service alone; with the first keeper; with the second one.
    for with in [None, Some(0), Some(1)] {
        let mut node = Node::new();
        let late = node.add_irq(77);
        node.until("an interrupt that came later", || node.read(&late) != "ff,ffffffff");
        let keepers = node.keepers();
        if let Some(which) = with {
            assert!(Command::new("kill").args(["-KILL", &keepers[which]]).status().unwrap().success());
        }
        node.kill("-KILL");
        node.until("reverted by a keeper", || node.is_reverted() && node.read(&late) == "ff,ffffffff");
    }
}

#[test]
fn the_next_service_reverts_what_no_keeper_is_left_for() {
    let mut node = Node::new();
    // Both at once, so that neither goes on for the other.
    let pids = [node.keepers(), vec![node.service.0.id().to_string()]].concat();
    assert!(Command::new("kill").arg("-KILL").args(&pids).status().unwrap().success());
    node.service.0.wait().unwrap();
    node.until("nothing keeps", || {
        let status = run(node.folder.path(), &["tune", "status", "--sysroot", "node"]);
        String::from_utf8_lossy(&status.stdout).contains("is gone")
    });
    assert_eq!(node.read(STAT), "20");
    (node.service, node.log) = start(node.folder.path());
    node.logs("places are restored");
    node.logs("applied as");
    assert_eq!(node.kill("-TERM"), Some(0));
    assert!(node.is_reverted());
}

#[test]
fn without_permission_nothing_is_written() {
    let mut node = Node::new();
    node.kill("-TERM");
    let mut printed = String::new();
    for args in [&["serve", "ours"][..], &["serve", "ours", "--max-risk", "low", "--yes"], &["serve", "none"]]
    {
        printed += &transcript(node.folder.path(), &[&["tune"], args, &["--sysroot", "node"]].concat());
        assert!(node.is_reverted());
    }
    insta::assert_snapshot!("refused", printed);
}
