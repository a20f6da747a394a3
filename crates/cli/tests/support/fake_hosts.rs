//! Fake hosts on one machine: each has its own network, name and view of the file systems. They share kernel, clock and CPUs.
//!
//! Nothing outlives the test: a namespace ends with its last process, and each process here ends with the test or is found by its
//! namespace.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::Guard;
use crate::support::node::until;

/// The network of the hosts, which is not visible outside.
pub const NETWORK: &str = "10.77.0.0/24";
/// The host on which the launcher runs.
pub const HEAD: &str = "head";
const HEAD_ADDRESS: &str = "10.77.0.254";
/// The network interface of each host.
pub const INTERFACE: &str = "eth0";
/// The network interface of the head.
pub const BRIDGE: &str = "br0";

/// Why hosts cannot be created here, or which program is missing.
pub fn lacks(programs: &[&str]) -> Option<String> {
    // SAFETY: the call has no conditions.
    if unsafe { libc::geteuid() } != 0 {
        return Some("only root makes namespaces with networks".into());
    }
    let path = search_path();
    let missing = |name: &&&str| !path.split(':').any(|folder| Path::new(folder).join(name).is_file());
    let missing: Vec<&str> = programs.iter().filter(missing).copied().collect();
    (!missing.is_empty()).then(|| format!("{} not in PATH", missing.join(", ")))
}

/// A search path that includes the folders of daemons, which are often not in a user's PATH.
fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin"
}

/// A head and some hosts, which resolve each other's names.
pub struct FakeHosts {
    folder: tempfile::TempDir,
    /// The processes that hold the namespaces, the head's first.
    holders: Vec<(String, Child)>,
    daemons: Vec<Guard>,
}

impl FakeHosts {
    /// Creates the hosts, each with an SSH server that the head can use.
    pub fn new(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut made = Self { folder, holders: Vec::new(), daemons: Vec::new() };
        let mut known = format!("127.0.0.1 localhost\n{HEAD_ADDRESS} {HEAD}\n");
        for (name, at) in names.iter().zip(1..) {
            known += &format!("10.77.0.{at} {name}\n");
        }
        fs_err::write(made.path("hosts"), known).unwrap();
        made.hold(HEAD);
        made.shell(HEAD, &format!("ip link add {BRIDGE} type bridge && ip addr add {HEAD_ADDRESS}/24 dev {BRIDGE} && ip link set {BRIDGE} up"));
        for (name, at) in names.iter().zip(1..) {
            made.hold(name);
            let pid = made.holder(name);
            let wire = format!(
                "ip link add v{at} type veth peer name {INTERFACE} netns {pid} && ip link set v{at} master {BRIDGE} up"
            );
            made.shell(HEAD, &wire);
            made.shell(
                name,
                &format!("ip addr add 10.77.0.{at}/24 dev {INTERFACE} && ip link set {INTERFACE} up"),
            );
        }
        made.secure_shell(names);
        made
    }

    /// The path of a file that every host sees.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder that every host sees.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The program that launchers start instead of ssh.
    pub fn agent(&self) -> String {
        self.path("agent").display().to_string()
    }

    /// A command on a host, in the shared folder.
    pub fn on(&self, host: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.holder(host).to_string(), "-n", "-u", "-m"]);
        command.arg(format!("--wd={}", self.folder.path().display())).arg("--").arg(program);
        // The test itself may run under a launcher.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["SLURM", "PMI", "OMPI", "HYD", "MPI"].iter().any(|start| text.starts_with(start)) {
                command.env_remove(&name);
            }
        }
        command
            .env("PATH", search_path())
            .env("QUELL_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/mpi-cache"));
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.stdin(Stdio::null());
        command
    }

    /// Starts a daemon on a host; its output is in NAME.log.
    pub fn daemon(&mut self, host: &str, name: &str, words: &[&str]) {
        let log = fs_err::File::create(self.path(&format!("{name}.log"))).unwrap().into_parts().0;
        let mut command = self.on(host, words[0]);
        command.args(&words[1..]).stdout(log.try_clone().unwrap()).stderr(log);
        end_with_test(&mut command);
        self.daemons.push(Guard(command.spawn().unwrap()));
    }

    /// The output of a daemon.
    pub fn output(&self, name: &str) -> String {
        fs_err::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default()
    }

    fn hold(&mut self, name: &str) {
        let hosts = self.path("hosts").display().to_string();
        // It ends with the test in any case, because its input is then closed.
        let script = "hostname $0 && mount --bind $1 /etc/hosts && mount -t tmpfs tmpfs /run && mkdir /run/sshd && ip link set lo up && \
                      echo ready && exec cat";
        let mut command = Command::new("unshare");
        command.args(["--net", "--uts", "--mount", "sh", "-c", script, name, &hosts]);
        command.env("PATH", search_path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let reported = child.stdout.take().unwrap();
        self.holders.push((name.into(), child));
        BufReader::new(reported).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{name} cannot be made");
    }

    fn holder(&self, name: &str) -> u32 {
        self.holders.iter().find(|(known, _)| known == name).unwrap().1.id()
    }

    fn shell(&self, host: &str, script: &str) {
        let output = self.on(host, "sh").args(["-ec", script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn secure_shell(&mut self, names: &[&str]) {
        let folder = self.folder.path().display().to_string();
        self.shell(HEAD, "for k in key hostkey; do ssh-keygen -q -t ed25519 -N '' -f $k; done");
        let config = format!(
            "HostKey {folder}/hostkey\nAuthorizedKeysFile {folder}/key.pub\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPidFile none\n"
        );
        fs_err::write(self.path("sshd.conf"), config).unwrap();
        let agent = format!(
            "#!/bin/sh\nexec ssh -q -F none -i {folder}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes \"$@\"\n"
        );
        fs_err::write(self.path("agent"), agent).unwrap();
        self.shell(HEAD, "chmod +x agent");
        for name in names {
            // sshd must be started by its full path.
            let start = format!("exec \"$(command -v sshd)\" -D -e -f {folder}/sshd.conf");
            self.daemon(name, &format!("sshd-{name}"), &["sh", "-c", &start]);
        }
        for name in names {
            until("sshd", || self.output(&format!("sshd-{name}")).contains("listening on 0.0.0.0"));
        }
    }

    /// The processes in these namespaces, except those that hold them.
    fn inhabitants(&self) -> Vec<i32> {
        let network = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let ours: Vec<_> =
            self.holders.iter().filter_map(|(_, child)| network(&child.id().to_string())).collect();
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().into_string().ok()?.parse::<i32>().ok());
        let holds = |pid: i32| self.holders.iter().any(|(_, child)| child.id() as i32 == pid);
        pids.filter(|&pid| !holds(pid) && network(&pid.to_string()).is_some_and(|one| ours.contains(&one)))
            .collect()
    }
}

/// Makes the kernel end the process when the thread of the test ends.
fn end_with_test(command: &mut Command) {
    // SAFETY: prctl is a plain system call, allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
}

impl Drop for FakeHosts {
    fn drop(&mut self) {
        // A process may start others at the same time, hence the repetition.
        for _ in 0..50 {
            let left = self.inhabitants();
            for &pid in &left {
                // SAFETY: a plain system call; the process is in a namespace that this test made.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            self.daemons.clear();
            if left.is_empty() {
                break;
            }
            std::thread::yield_now();
        }
        for (_, child) in &mut self.holders {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
