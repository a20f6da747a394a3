//! Reads the facts of a machine, or of a copy of its files.

use quell_recording::{Cpu, parse_cpu_list};

use super::Facts;
use crate::root::Root;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

impl Facts {
    /// Reads the facts.
    ///
    /// # Errors
    /// If the CPUs cannot be listed, without which there is nothing to plan.
    pub fn look(root: &Root) -> Result<Self, String> {
        let online = cpus(root, &format!("{CPUS}/online"))?;
        if online.is_empty() {
            return Err(format!("{CPUS}/online lists no CPU"));
        }
        let some = |name: &str| cpus(root, &format!("{CPUS}/{name}"));
        let line = |path: &str| root.read(path).map(|text| text.trim().to_owned()).unwrap_or_default();
        let cores = cores(root, &online);
        Ok(Self {
            host: line("/proc/sys/kernel/hostname"),
            kernel: line("/proc/sys/kernel/osrelease"),
            arch: arch(root),
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            cmdline: words(&line("/proc/cmdline")),
            possible: some("possible").unwrap_or_else(|_| online.clone()),
            isolated: some("isolated").unwrap_or_default(),
            numa: numa(root, &online),
            cores,
            online,
        })
    }
}

/// A CPU list in the kernel's format; an empty file is an empty list.
pub(crate) fn cpus(root: &Root, path: &str) -> Result<Vec<Cpu>, String> {
    let text = root.read(path).map_err(|e| format!("the CPUs of this machine cannot be listed: {e}"))?;
    match text.trim() {
        "" | "(null)" => Ok(Vec::new()),
        list => parse_cpu_list(list).map_err(|e| format!("{path}: {e}")),
    }
}

/// The online threads of each core, ordered by the first; a CPU without topology counts as a core.
fn cores(root: &Root, online: &[Cpu]) -> Vec<Vec<Cpu>> {
    let mut cores: Vec<Vec<Cpu>> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for &cpu in online {
        if seen.contains(&cpu) {
            continue;
        }
        let list = |name: &str| {
            cpus(root, &format!("{CPUS}/cpu{cpu}/topology/{name}")).ok().filter(|c| !c.is_empty())
        };
        let reported = list("thread_siblings_list").or_else(|| list("core_cpus_list")).unwrap_or_default();
        let mut core: Vec<Cpu> = reported
            .into_iter()
            .filter(|one| online.binary_search(one).is_ok() && !seen.contains(one))
            .collect();
        if !core.contains(&cpu) {
            core.push(cpu);
            core.sort_unstable();
        }
        seen.extend(core.iter().copied());
        cores.push(core);
    }
    cores
}

/// The online CPUs of each node. A CPU that is in no node is added to the first.
fn numa(root: &Root, online: &[Cpu]) -> Vec<(u32, Vec<Cpu>)> {
    let mut nodes: Vec<(u32, Vec<Cpu>)> = Vec::new();
    let mut rest = online.to_vec();
    for name in root.names(NODES) {
        let Some(number) = name.strip_prefix("node").and_then(|digits| digits.parse().ok()) else { continue };
        let here = cpus(root, &format!("{NODES}/{name}/cpulist")).unwrap_or_default();
        let here: Vec<Cpu> = here.into_iter().filter(|cpu| rest.contains(cpu)).collect();
        rest.retain(|cpu| !here.contains(cpu));
        if !here.is_empty() {
            nodes.push((number, here));
        }
    }
    match nodes.first_mut() {
        Some((_, first)) => {
            first.extend(rest);
            first.sort_unstable();
        }
        None => nodes.push((0, rest)),
    }
    nodes
}

/// Whether this machine runs under a hypervisor; none if nothing shows it.
pub(crate) fn is_guest(root: &Root) -> Option<bool> {
    let cpuinfo = root.read("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let reported = root.has("/sys/hypervisor/type") || root.has("/proc/device-tree/hypervisor");
    match flags {
        _ if reported => Some(true),
        Some(flags) => Some(flags.split_whitespace().any(|flag| flag == "hypervisor")),
        None => None,
    }
}

/// The processor: from this machine's kernel; for a copy, from entries of `/proc/cpuinfo` that only this processor has.
fn arch(root: &Root) -> String {
    if root.is_system() {
        return std::env::consts::ARCH.to_owned();
    }
    let text = root.read("/proc/cpuinfo").unwrap_or_default();
    let first = |name: &str| text.lines().find(|line| line.split(':').next().unwrap_or("").trim() == name);
    let power = |line: &str| line.split_once(':').is_some_and(|(_, value)| value.trim().starts_with("POWER"));
    let arch = match () {
        () if first("vendor_id").is_some() => "x86_64",
        () if first("cpu").is_some_and(power) => "ppc64le",
        () if first("CPU implementer").is_some() => "aarch64",
        () => "unknown",
    };
    arch.to_owned()
}

/// The words of a command line. A blank between double quotes does not separate words; the quotes are removed.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use fs_err as fs;
    use quell_recording::format_cpu_list;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::at(folder.path()).unwrap();
        (folder, root)
    }

    #[test]
    fn quotes_hold_words_together_and_two_dashes_end_the_options() {
        let cmdline = words("quiet dyndbg=\"file a.c +p\" \"x y\"=1  isolcpus=1-3 -- isolcpus=5\n");
        assert_eq!(cmdline, ["quiet", "dyndbg=file a.c +p", "x y=1", "isolcpus=1-3", "--", "isolcpus=5"]);
        let facts = Facts { cmdline, ..Facts::default() };
        assert_eq!(facts.options().last(), Some("isolcpus=1-3"));
    }

    #[test]
    fn offline_cpus_and_nodes_without_cpus_are_left_out() {
        let (_folder, root) = tree(&[
            ("sys/devices/system/cpu/online", "0,2-3,8\n"),
            ("sys/devices/system/cpu/possible", "0-15\n"),
            ("sys/devices/system/cpu/isolated", "\n"),
            ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1\n"),
            ("sys/devices/system/cpu/cpu2/topology/core_cpus_list", "2-3\n"),
            ("sys/devices/system/node/node0/cpulist", "0-3\n"),
            ("sys/devices/system/node/node1/cpulist", "\n"),
            ("sys/devices/system/node/node10/cpulist", "8\n"),
            ("proc/cpuinfo", "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"),
        ]);
        let facts = Facts::look(&root).unwrap();
        let lists: Vec<String> = facts.cores.iter().map(|core| format_cpu_list(core)).collect();
        assert_eq!(lists, ["0", "2-3", "8"]);
        let nodes: Vec<_> = facts.numa.iter().map(|(n, cpus)| (*n, format_cpu_list(cpus))).collect();
        assert_eq!(nodes, [(0, "0,2-3".to_owned()), (10, "8".to_owned())]);
        assert_eq!(facts.arch, "ppc64le");
        assert!(facts.is_one_of(&["powerpc64".into()]) && !facts.is_one_of(&["x86_64".into()]));
        assert!(facts.isolated.is_empty() && facts.possible.len() == 16);
    }

    #[test]
    fn a_machine_that_lists_no_cpus_is_refused() {
        let (_folder, root) = tree(&[("proc/cmdline", "quiet")]);
        assert!(Facts::look(&root).unwrap_err().contains("cannot be listed"));
    }
}
