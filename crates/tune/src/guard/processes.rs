//! Other users of the node: programs that manage its settings, and other users' work.

use std::collections::BTreeMap;

use super::Root;

/// The ids of a machine's users, as opposed to its services, begin here. Those of a directory (LDAP, AD) can be any.
const FIRST_USER: u32 = 1000;
/// The id of `nobody`.
const NOBODY: u32 = 65_534;
/// Processes that belong to a login, whether or not its user works.
const NOT_WORK: [&str; 22] = [
    "systemd",
    "(sd-pam)",
    "dbus-daemon",
    "dbus-broker",
    "sshd",
    "sshd-session",
    "login",
    "bash",
    "sh",
    "zsh",
    "fish",
    "dash",
    "tcsh",
    "ksh",
    "tmux: server",
    "tmux: client",
    "screen",
    "ssh-agent",
    "gpg-agent",
    "pipewire",
    "wireplumber",
    "pulseaudio",
];

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    pid: u32,
    comm: String,
    uid: u32,
    /// Whether it is running, or waiting for a CPU, right now.
    runs: bool,
    /// The names of the program and of its first argument.
    names: Vec<String>,
}

/// All visible processes.
pub fn all(root: &Root) -> Vec<Process> {
    let pids = root.names("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    pids.filter_map(|pid| look(root, pid)).collect()
}

fn look(root: &Root, pid: u32) -> Option<Process> {
    let comm = root.read(&format!("/proc/{pid}/comm")).ok()?.trim_end_matches('\n').to_owned();
    let status = root.read(&format!("/proc/{pid}/status")).unwrap_or_default();
    let uid =
        status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().next()?.parse().ok());
    let runs = status
        .lines()
        .any(|line| line.strip_prefix("State:").is_some_and(|state| state.trim().starts_with('R')));
    let command = root.read(&format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let base = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let names = command.split('\0').take(2).map(base).collect();
    Some(Process { pid, comm, uid: uid.unwrap_or(0), runs, names })
}

/// The program that manages the node's settings, if one runs.
pub fn owner(root: &Root, processes: &[Process]) -> Option<String> {
    let runs = |name: &str| {
        let is = |one: &&Process| {
            let script = one.names.first().is_some_and(|first| first.starts_with("python"));
            one.comm == name
                || one.names.first().is_some_and(|first| first == name)
                || script && one.names.get(1).is_some_and(|second| second == name)
        };
        processes.iter().find(is)
    };
    let known = [
        ("tuned", "TuneD"),
        ("kubelet", "Kubernetes (kubelet)"),
        ("openshift-tuned", "OpenShift's Node Tuning Operator"),
        ("cluster-node-tuning-operator", "OpenShift's Node Tuning Operator"),
        ("power-profiles-daemon", "power-profiles-daemon"),
        ("power-profiles-", "power-profiles-daemon"),
        ("bpftune", "bpftune"),
    ];
    let running =
        known.iter().find_map(|(name, title)| Some(format!("{title} (process {})", runs(name)?.pid)));
    let folders = [("/etc/kubernetes/kubelet.conf", "Kubernetes (its kubelet.conf is here)")];
    running.or_else(|| {
        // Nothing runs in a copy of a machine, so what is installed there counts.
        let here = folders.iter().find(|(path, _)| !root.is_system() && root.has(path));
        here.map(|(_, title)| (*title).to_owned())
    })
}

/// Other users' work, if there is any.
pub fn others_work(root: &Root, processes: &[Process]) -> Option<String> {
    if let Some(step) = processes.iter().find(|one| is_job_step(one)) {
        return Some(format!("a job step of Slurm's (process {})", step.pid));
    }
    if let Some(job) = slurm_job(root) {
        return Some(format!("a job of Slurm's ({job})"));
    }
    let me = own_users();
    let lent = subordinate(root);
    let is_user = |uid: u32| {
        uid >= FIRST_USER
            && uid != NOBODY
            && !me.contains(&uid)
            && !lent.iter().any(|(first, count)| uid >= *first && uid - first < *count)
            // A systemd service with a dynamic user id.
            && !root.has(&format!("/run/systemd/dynamic-uid/{uid}"))
    };
    let mut work: BTreeMap<u32, Vec<&Process>> = BTreeMap::new();
    for one in processes {
        // A shell may be asleep at its prompt, or working in a loop.
        if is_user(one.uid) && (one.runs || !NOT_WORK.contains(&one.comm.as_str())) {
            work.entry(one.uid).or_default().push(one);
        }
    }
    let (uid, theirs) = work.first_key_value()?;
    let first = theirs.first()?;
    let more = theirs.len().saturating_sub(1);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let others =
        if work.len() > 1 { format!(", and of {} other users", work.len() - 1) } else { String::new() };
    Some(format!("processes of user {uid} ({} {}{more}){others}", first.comm, first.pid))
}

/// Ranges of ids that users lend to their containers: first id, and count.
fn subordinate(root: &Root) -> Vec<(u32, u32)> {
    let text = root.read("/etc/subuid").unwrap_or_default();
    let range = |line: &str| {
        let mut words = line.trim().split(':').skip(1);
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    text.lines().filter_map(range).collect()
}

/// Whether it is a step of a Slurm job. With cgroups of version 2, slurmd also keeps a `slurmstepd infinity`, whether or not a job runs.
fn is_job_step(one: &Process) -> bool {
    let is_stepd = one.comm == "slurmstepd" || one.names.iter().any(|name| name.starts_with("slurmstepd:"));
    is_stepd && one.names.get(1).is_none_or(|argument| argument != "infinity")
}

/// The user who runs quell, also behind sudo.
fn own_users() -> Vec<u32> {
    let behind = std::env::var("SUDO_UID").ok().and_then(|text| text.parse().ok());
    behind.into_iter().chain([rustix::process::getuid().as_raw()]).collect()
}

/// The cgroup of a Slurm job, of either version, that contains processes.
fn slurm_job(root: &Root) -> Option<String> {
    let places = [
        "/sys/fs/cgroup/*/slurm*/uid_*/job_*",
        "/sys/fs/cgroup/slurm*/uid_*/job_*",
        "/sys/fs/cgroup/system.slice/*slurmstepd.scope/job_*",
    ];
    let jobs = places.iter().flat_map(|pattern| root.glob(pattern));
    jobs.map(|path| path.rsplit('/').next().unwrap_or_default().to_owned()).next()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;
    use fs_err as fs;

    #[test]
    fn users_of_a_directory_are_users_and_services_are_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("etc")).unwrap();
        fs::create_dir_all(folder.path().join("run/systemd/dynamic-uid")).unwrap();
        fs::write(folder.path().join("etc/subuid"), "ann:100000:65536\n# x\nbob:4294967000:9999\n").unwrap();
        fs::write(folder.path().join("run/systemd/dynamic-uid/61200"), "").unwrap();
        let root = Root::at(folder.path()).unwrap();
        for (uid, is_user) in [
            (0, false),
            (999, false),
            (1000, true),
            (60_001, true),
            (61_200, false),
            (61_201, true),
            (65_534, false),
            (99_999, true),
            (100_000, false),
            (165_535, false),
            (165_536, true),
            (1_234_567_890, true),
            (4_294_967_100, false),
        ] {
            let one = Process { pid: 7, comm: "solver".into(), uid, runs: false, names: Vec::new() };
            assert_eq!(others_work(&root, &[one]).is_some(), is_user, "{uid}");
        }
    }
}
