//! Whether this is a container. A file such as `/.dockerenv` alone says nothing: it stays in images that become machines.

use super::Root;

/// Words in the cgroup of the first process that container engines put there.
const ENGINES: [&str; 7] = ["docker", "kubepods", "containerd", "libpod", "lxc", "crio", "garden"];

/// What tells, if it is one.
pub fn sign(root: &Root) -> Option<String> {
    let cgroup = root.read("/proc/1/cgroup").unwrap_or_default();
    if let Some(engine) = ENGINES.iter().find(|engine| cgroup.contains(*engine)) {
        return Some(format!("the cgroup of process 1 names {engine}"));
    }
    if root.has("/run/.containerenv") {
        return Some("/run/.containerenv is there".into());
    }
    let environ = root.read("/proc/1/environ").unwrap_or_default();
    if let Some(engine) = environ.split('\0').find_map(|line| line.strip_prefix("container=")) {
        return Some(format!("process 1 was started with container={engine}"));
    }
    // The kernel's own threads are children of process 2, which only the machine's own pid namespace shows.
    if root.is_system() && root.read("/proc/2/comm").map_or(true, |comm| comm.trim() != "kthreadd") {
        return Some("the kernel's own threads cannot be seen".into());
    }
    None
}
