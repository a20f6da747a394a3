//! Facts about the machine's caches and memory, and where memory of this process lies.

use std::ops::Range;
use std::path::Path;

use fs_err as fs;
use quell_recording::Cpu;

use crate::machine::read_line;

/// A data cache of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cache {
    pub level: u32,
    pub bytes: usize,
    /// Whether other cores use it. A third level counts as shared, however many cores a virtual machine shows.
    pub is_shared: bool,
}

/// The data caches of a CPU, as far as sysfs shows them.
pub(crate) fn caches(cpu: Cpu) -> Vec<Cache> {
    /// More than any processor has.
    const MOST: u32 = 16;
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
    let siblings = read_line(&format!("{folder}/topology/thread_siblings_list"));
    let cache = |at: u32| {
        let line = |name: &str| read_line(&format!("{folder}/cache/index{at}/{name}"));
        let bytes = line("size")?.strip_suffix('K')?.parse::<usize>().ok()?.checked_mul(1024)?;
        let level = line("level")?.parse().ok()?;
        let is_shared = level >= 3 || line("shared_cpu_list") != siblings;
        (line("type")? != "Instruction").then_some(Cache { level, bytes, is_shared })
    };
    (0..MOST).filter_map(cache).collect()
}

/// Bytes that this process may still use: of the machine's memory, of what its control groups allow it, and of its limit of addresses
/// (`ulimit -v`). None if the kernel does not say.
pub(crate) fn available() -> Option<usize> {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let of_machine = field(&meminfo, "MemAvailable:").map(|kib| kib.saturating_mul(1024));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = left_in_groups(Path::new("/sys/fs/cgroup"), &groups);
    [of_machine, of_groups, left_of_addresses()].into_iter().flatten().min()
}

/// What RLIMIT_AS leaves; none if there is no limit.
fn left_of_addresses() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let used = field(&status, "VmSize:")?.saturating_mul(1024);
    Some(usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(used))
}

/// What the memory limits of control groups leave: of each group in `groups` (`/proc/self/cgroup`) and those above it.
fn left_in_groups(mount: &Path, groups: &str) -> Option<usize> {
    let left = |line: &str| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        // Where the hierarchy is, the limits, what is used, and the parts of that which the kernel gives up for others.
        let (hierarchy, limits, used, given_up) = match controllers {
            "" => (
                "",
                ["memory.max", "memory.high"],
                "memory.current",
                ["inactive_file", "active_file", "slab_reclaimable"],
            ),
            _ if controllers.split(',').any(|one| one == "memory") => (
                "memory",
                ["memory.limit_in_bytes", "memory.soft_limit_in_bytes"],
                "memory.usage_in_bytes",
                ["total_inactive_file", "total_active_file", ""],
            ),
            _ => return None,
        };
        let root = mount.join(hierarchy);
        let folder = root.join(group.trim_start_matches('/'));
        let above = folder.ancestors().take_while(|one| one.starts_with(&root));
        let left = |folder: &Path| {
            let number =
                |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<usize>().ok();
            let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let given_up: usize = given_up.iter().filter_map(|name| field(&stat, name)).sum();
            let used = number(used)?.saturating_sub(given_up);
            Some(limits.iter().filter_map(|limit| number(limit)).min()?.saturating_sub(used))
        };
        above.filter_map(left).min()
    };
    groups.lines().filter_map(left).min()
}

/// The number behind a word, on a line that begins with it.
fn field(text: &str, word: &str) -> Option<usize> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next() == Some(word)).then(|| words.next()?.parse().ok()).flatten())
}

/// Asks the kernel for huge pages below this memory, which nothing has touched yet. It may have none.
pub(crate) fn prefer_huge_pages(memory: &Range<*mut u8>) {
    if let Some((start, bytes)) = whole_pages(memory, 2 << 20) {
        // SAFETY: the pages lie within memory of the caller's, and the advice changes none of its content.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

/// Asks the kernel to take this memory, which nothing has touched yet, from a NUMA node, and to leave it there: automatic balancing takes pages away
/// for a moment, to see who uses them, but none with a policy of their own. The kernel may refuse.
pub(crate) fn prefer_node(memory: &Range<*mut u8>, node: u32) {
    const MPOL_PREFERRED: libc::c_ulong = 1;
    const WORD: usize = libc::c_ulong::BITS as usize;
    let mut nodes: [libc::c_ulong; 16] = [0; 16];
    let (at, bit) = (node as usize / WORD, node as usize % WORD);
    let Some(word) = nodes.get_mut(at) else { return };
    *word = 1 << bit;
    if let Some((start, bytes)) = whole_pages(memory, page_bytes()) {
        // SAFETY: the pages lie within memory of the caller's, the mask lives through the call, and has one bit more than the kernel reads.
        unsafe {
            libc::syscall(
                libc::SYS_mbind,
                start,
                bytes,
                MPOL_PREFERRED,
                nodes.as_ptr(),
                nodes.len() * WORD,
                0,
            )
        };
    }
}

fn page_bytes() -> usize {
    // SAFETY: the call has no preconditions.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The pages of this size that lie within memory: where they begin, and their length; none if there is none.
fn whole_pages(memory: &Range<*mut u8>, page: usize) -> Option<(*mut u8, usize)> {
    let skipped = memory.start.align_offset(page);
    let bytes = memory.end as usize - memory.start as usize;
    let whole = bytes.saturating_sub(skipped) / page * page;
    (whole > 0).then(|| (memory.start.wrapping_add(skipped), whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    }

    #[test]
    fn the_tightest_group_counts() {
        let mount = tempfile::tempdir().unwrap();
        let job = mount.path().join("slurm/job_1");
        group(&job, &[("memory.max", "max\n"), ("memory.current", "7\n")]);
        let limits = [("memory.max", "1000\n"), ("memory.current", "900\n")];
        group(&mount.path().join("slurm"), &limits);
        group(
            &mount.path().join("slurm"),
            &[("memory.stat", "anon 1\ninactive_file 200\nactive_file 100\n")],
        );
        assert_eq!(left_in_groups(mount.path(), "0::/slurm/job_1\n"), Some(400));
        assert_eq!(left_in_groups(mount.path(), "0::/\n"), None, "without a limit");
        assert_eq!(left_in_groups(mount.path(), "rubbish\n1:cpu:/slurm\n0::/../..\n"), None);
        let v1 = mount.path().join("memory/docker");
        group(&v1, &[("memory.limit_in_bytes", "500"), ("memory.usage_in_bytes", "450")]);
        assert_eq!(left_in_groups(mount.path(), "4:cpu:/docker\n3:hugetlb,memory:/docker\n"), Some(50));
    }

    #[test]
    fn this_machine_has_memory_and_its_caches_are_in_order() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
        let caches = caches(Cpu(0));
        assert!(caches.is_sorted_by_key(|one| one.level), "{caches:?}");
    }

    #[test]
    fn only_whole_pages_count() {
        let at = |start: usize, end: usize| start as *mut u8..end as *mut u8;
        assert_eq!(whole_pages(&at(4096, 12_288), 4096), Some((4096 as *mut u8, 8192)));
        assert_eq!(whole_pages(&at(4097, 12_300), 4096), Some((8192 as *mut u8, 4096)));
        assert_eq!(whole_pages(&at(4097, 12_287), 4096), None);
    }

    #[test]
    fn a_limit_of_addresses_counts() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let before = getrlimit(Resource::As);
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let limit = (field(&status, "VmSize:").unwrap() * 1024 + (64 << 20)) as u64;
        setrlimit(Resource::As, Rlimit { current: Some(limit), ..before }).unwrap();
        let left = available();
        setrlimit(Resource::As, before).unwrap();
        assert!(left.is_some_and(|bytes| bytes <= 64 << 20), "{left:?}");
    }
}
