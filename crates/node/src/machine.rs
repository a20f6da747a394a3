//! Facts about the machine: CPUs and their topology, kernel, processor, and which CPUs this process may use.

use std::io;
use std::path::Path;

use fs_err as fs;
use quell_recording::{Cpu, format_cpu_list, parse_cpu_list};

/// Why a chosen CPU cannot be probed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CpuError {
    /// The CPU does not exist.
    #[error("CPU {cpu} does not exist: this machine has CPUs {present}")]
    Absent {
        /// The requested CPU.
        cpu: Cpu,
        /// Those that exist.
        present: String,
    },
    /// The CPU is offline.
    #[error(
        "CPU {cpu} is offline: leave it out, or bring it up with `echo 1 > /sys/devices/system/cpu/cpu{cpu}/online`"
    )]
    Offline {
        /// The requested CPU.
        cpu: Cpu,
    },
    /// The affinity mask or cpuset forbids it.
    #[error(
        "CPU {cpu} is closed to this process, which may run on CPUs {allowed}: choose among them, or widen its affinity (taskset) or cpuset"
    )]
    Forbidden {
        /// The requested CPU.
        cpu: Cpu,
        /// The allowed CPUs.
        allowed: String,
    },
    /// The kernel does not say which CPUs there are.
    #[error("the CPUs of this machine cannot be listed: {0}")]
    Unknown(String),
}

/// The CPUs of this machine as this process sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// All that exist.
    pub present: Vec<Cpu>,
    /// Those that are online.
    pub online: Vec<Cpu>,
    /// Online CPUs on which this process may run.
    pub allowed: Vec<Cpu>,
}

impl Cpus {
    /// Reads them from sysfs and the affinity mask.
    ///
    /// # Errors
    /// [`CpuError::Unknown`] where sysfs or the mask cannot be read.
    pub fn from_this_machine() -> Result<Self, CpuError> {
        let online = Self::online()?;
        let mask = affinity().map_err(|e| CpuError::Unknown(format!("sched_getaffinity: {e}")))?;
        let allowed = online.iter().copied().filter(|cpu| mask.contains(cpu)).collect();
        Ok(Self { present: list("present")?, online, allowed })
    }

    /// The CPUs that are online now.
    ///
    /// # Errors
    /// [`CpuError::Unknown`] where sysfs cannot be read.
    pub fn online() -> Result<Vec<Cpu>, CpuError> {
        list("online")
    }

    /// The allowed CPUs in the order in which ranks are bound to them: the first hardware thread of each core, then the second
    /// ones.
    pub fn one_of_each_core_first(&self) -> Vec<Cpu> {
        let thread = |cpu: &Cpu| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            let siblings = fs::read_to_string(path).ok().and_then(|text| parse_cpu_list(text.trim()).ok());
            siblings.and_then(|siblings| siblings.iter().position(|one| one == cpu)).unwrap_or(0)
        };
        let mut cpus = self.allowed.clone();
        cpus.sort_by_key(thread);
        cpus
    }

    /// Checks that each CPU can be probed.
    ///
    /// # Errors
    /// The first that cannot, and why.
    pub fn check(&self, wanted: &[Cpu]) -> Result<(), CpuError> {
        // The affinity mask alone does not decide: `isolcpus` removes CPUs from it to which a thread can still bind itself.
        // Where there is no thread to try it, the probe's own fails with the reason.
        let opens = |cpu| {
            let tried = std::thread::Builder::new().spawn(move || pin(&[cpu]).is_ok());
            tried.map_or(true, |thread| thread.join().unwrap_or(false))
        };
        self.check_with(wanted, opens)
    }

    fn check_with(&self, wanted: &[Cpu], opens: impl Fn(Cpu) -> bool) -> Result<(), CpuError> {
        for &cpu in wanted {
            if !self.present.contains(&cpu) {
                return Err(CpuError::Absent { cpu, present: format_cpu_list(&self.present) });
            }
            if !self.online.contains(&cpu) {
                return Err(CpuError::Offline { cpu });
            }
            if !self.allowed.contains(&cpu) && !opens(cpu) {
                return Err(CpuError::Forbidden { cpu, allowed: format_cpu_list(&self.allowed) });
            }
        }
        Ok(())
    }
}

/// A list of CPUs in sysfs.
fn list(name: &str) -> Result<Vec<Cpu>, CpuError> {
    fs::read_to_string(Path::new("/sys/devices/system/cpu").join(name))
        .map_err(|e| CpuError::Unknown(e.to_string()))
        .and_then(|text| parse_cpu_list(&text).map_err(CpuError::Unknown))
}

/// Maximum number of 64-bit words in an affinity mask: 65,536 CPUs.
const MASK_WORDS: usize = 1024;

/// The CPUs on which the calling thread may run.
fn affinity() -> io::Result<Vec<Cpu>> {
    let mut mask = vec![0u64; MASK_WORDS];
    // SAFETY: the kernel writes at most the size that is passed; a mask of u64 has the required alignment.
    let code = unsafe { libc::sched_getaffinity(0, MASK_WORDS * 8, mask.as_mut_ptr().cast()) };
    if code < 0 {
        return Err(io::Error::last_os_error());
    }
    let cpus = (0..MASK_WORDS as u32 * 64).filter(|&n| mask[n as usize / 64] >> (n % 64) & 1 == 1);
    Ok(cpus.map(Cpu).collect())
}

/// Binds the calling thread to these CPUs.
///
/// # Errors
/// The kernel's error, for instance where none of them is online.
pub fn pin(cpus: &[Cpu]) -> io::Result<()> {
    let mut mask = vec![0u64; MASK_WORDS];
    for cpu in cpus {
        if let Some(word) = mask.get_mut(cpu.0 as usize / 64) {
            *word |= 1 << (cpu.0 % 64);
        }
    }
    // SAFETY: the mask lives through the call and has the size that is passed.
    match unsafe { libc::sched_setaffinity(0, MASK_WORDS * 8, mask.as_ptr().cast()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a thread of this process is bound to this CPU and no other. When the CPU goes offline, or its cpuset no longer contains it, the
/// kernel gives the thread other CPUs, and does not take them back.
pub(crate) fn is_bound(thread: i32, cpu: Cpu) -> bool {
    let mut mask = vec![0u64; MASK_WORDS];
    // SAFETY: the mask lives through the call and has the size that is passed.
    let length = unsafe { libc::sched_getaffinity(thread, MASK_WORDS * 8, mask.as_mut_ptr().cast()) };
    let bit = |at: u32| mask[at as usize / 64] >> (at % 64) & 1 == 1;
    length == 0
        && cpu.0 < MASK_WORDS as u32 * 64
        && bit(cpu.0)
        && mask.iter().map(|word| word.count_ones()).sum::<u32>() == 1
}

/// The position of a CPU in the machine's topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTopology {
    /// Physical core within the package.
    pub core: Option<u32>,
    /// Package (socket).
    pub package: Option<u32>,
    /// NUMA node.
    pub numa_node: Option<u32>,
}

/// The position of a CPU, as far as sysfs shows it.
pub fn place(cpu: Cpu) -> CpuTopology {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
    let number =
        |name: &str| read_line(&format!("{folder}/topology/{name}")).and_then(|text| text.parse().ok());
    let numa_node = fs::read_dir(&folder).ok().and_then(|entries| {
        entries.flatten().find_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
    });
    CpuTopology { core: number("core_id"), package: number("physical_package_id"), numa_node }
}

/// The first line of a small file of /proc or /sys, if it can be read.
pub(crate) fn read_line(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned())
}

/// The host's name.
pub fn host() -> Option<String> {
    read_line("/proc/sys/kernel/hostname")
}

/// Kernel release and build.
pub fn kernel() -> Option<String> {
    Some(format!("{} {}", read_line("/proc/sys/kernel/osrelease")?, read_line("/proc/sys/kernel/version")?))
}

/// The processor's model name.
pub fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Whether the processor reports a hypervisor.
pub fn virtualised() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
        text.lines().find(|l| l.starts_with("flags")).is_some_and(|l| l.split(' ').any(|f| f == "hypervisor"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_would_do() {
        let cpus = Cpus {
            present: vec![Cpu(0), Cpu(1), Cpu(2)],
            online: vec![Cpu(0), Cpu(2)],
            allowed: vec![Cpu(0)],
        };
        assert_eq!(cpus.check_with(&[Cpu(0)], |_| false), Ok(()));
        assert_eq!(cpus.check_with(&[Cpu(2)], |_| true), Ok(()), "isolated, but open");
        for (cpu, part) in [(9, "has CPUs 0-2"), (1, "offline"), (2, "may run on CPUs 0:")] {
            let text = cpus.check_with(&[Cpu(cpu)], |_| false).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn this_machine_has_a_cpu() {
        let cpus = Cpus::from_this_machine().unwrap();
        assert!(!cpus.allowed.is_empty() && cpus.check(&cpus.allowed).is_ok());
    }
}
