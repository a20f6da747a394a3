//! Whether this is a container. A file such as `/.dockerenv` proves nothing by itself: it stays in images that become machines.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fs_err as fs;

use super::Root;

/// Words that container engines put into the cgroup of the first process.
const ENGINES: [&str; 7] = ["docker", "kubepods", "containerd", "libpod", "lxc", "crio", "garden"];

/// The sign of a container, if this is one.
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
    // Kernel threads are children of process 2, which is visible only in the machine's first PID namespace.
    if root.is_system() && root.read("/proc/2/comm").map_or(true, |comm| comm.trim() != "kthreadd") {
        return Some("the kernel's own threads are not visible".into());
    }
    if root.is_system() && is_apart(Path::new("/proc"), Path::new("/")) {
        return Some("process 1 has other mounts, and another root file system".into());
    }
    None
}

/// Whether process 1 has both other mounts and another root than this process: this is then a container that shows the host's processes.
/// Other mounts alone are common: `unshare --mount`, and services to which systemd gives a `/tmp` of their own.
fn is_apart(proc: &Path, own_root: &Path) -> bool {
    let mounts = |process: &str| fs::read_link(proc.join(process).join("ns/mnt")).ok();
    let place = |path: &Path| fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()));
    let differ = mounts("self").zip(mounts("1")).is_some_and(|(own, first)| own != first);
    let roots = place(own_root).zip(place(&proc.join("1/root/.")));
    differ && roots.is_some_and(|(own, first)| own != first)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn other_mounts_with_another_root_are_a_container_and_neither_alone() {
        for (mounts, root, apart) in [
            ("mnt:[1]", "own", false),
            ("mnt:[2]", "own", false),
            ("mnt:[1]", "hosts", false),
            ("mnt:[2]", "hosts", true),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let at = |path: &str| folder.path().join(path);
            for path in ["own", "hosts", "proc/self/ns", "proc/1/ns"] {
                fs::create_dir_all(at(path)).unwrap();
            }
            symlink("mnt:[1]", at("proc/self/ns/mnt")).unwrap();
            assert!(!is_apart(&at("proc"), &at("own")), "what cannot be seen says nothing");
            symlink(mounts, at("proc/1/ns/mnt")).unwrap();
            symlink(at(root), at("proc/1/root")).unwrap();
            assert_eq!(is_apart(&at("proc"), &at("own")), apart, "{mounts} {root}");
        }
    }
}
