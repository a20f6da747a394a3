//! Slurm on fake hosts, with its own key and daemons in the test's folder.

use crate::support::fake_hosts::{FakeHosts, HEAD};
use crate::support::node::until;

/// The programs that it needs.
pub const PROGRAMS: &[&str] = &["munged", "slurmctld", "slurmd", "srun", "sinfo"];

/// Starts the daemons, and waits until every host is idle and ready.
pub fn start(hosts: &mut FakeHosts, names: &[&str]) {
    let folder = hosts.folder().display().to_string();
    let mut config = settings(&folder);
    for name in names {
        fs_err::create_dir_all(hosts.path(&format!("spool.{name}/tmp"))).unwrap();
        config += &format!("NodeName={name} CPUs=2 State=UNKNOWN\n");
    }
    fs_err::create_dir_all(hosts.path("state")).unwrap();
    fs_err::write(hosts.path("slurm.conf"), config).unwrap();
    munge(hosts, &folder);
    hosts.daemon(HEAD, "slurmctld", &["slurmctld", "-D", "-f", &format!("{folder}/slurm.conf")]);
    for name in names {
        let words = ["slurmd", "-D", "-N", name, "-f", &format!("{folder}/slurm.conf")];
        hosts.daemon(name, &format!("slurmd-{name}"), &words);
    }
    let idle = || {
        let output = on_head(hosts, "sinfo").args(["-h", "-N", "-o", "%t"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().filter(|state| *state == "idle").count()
    };
    until("Slurm", || idle() == names.len());
}

/// A command on the head that uses this Slurm.
pub fn on_head(hosts: &FakeHosts, program: &str) -> std::process::Command {
    let mut command = hosts.on(HEAD, program);
    command.env("SLURM_CONF", hosts.path("slurm.conf"));
    command
}

fn munge(hosts: &mut FakeHosts, folder: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let key = hosts.path("munge.key");
    fs_err::write(&key, [0x5a; 128]).unwrap();
    fs_err::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let named = |option: &str, file: &str| format!("--{option}={folder}/munge.{file}");
    let (socket, key, pid) = (named("socket", "sock"), named("key-file", "key"), named("pid-file", "pid"));
    let (log, seed) = (named("log-file", "log"), named("seed-file", "seed"));
    hosts.daemon(HEAD, "munged", &["munged", "--force", "-F", &socket, &key, &pid, &log, &seed]);
    let socket = hosts.path("munge.sock");
    until("munged", || socket.exists());
}

fn settings(folder: &str) -> String {
    // Each host has its own folder for PMIx's files, because they share /tmp.
    format!(
        "ClusterName=fake\nSlurmctldHost={HEAD}\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\nAuthInfo=socket={folder}/munge.sock\n\
         MessageTimeout=100\nMpiDefault=none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSchedulerType=sched/builtin\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nStateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool.%n\n\
         TmpFS={folder}/spool.%n/tmp\nSlurmdPidFile={folder}/slurmd.%n.pid\nSlurmctldPidFile={folder}/slurmctld.pid\n\
         JobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\nReturnToService=2\n\
         PartitionName=p Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8\n"
    )
}
