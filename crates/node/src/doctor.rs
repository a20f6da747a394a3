//! What quell can do on this machine: each check examines one thing, and changes nothing.

mod files;
mod remedy;
mod sources;

use std::path::Path;
use std::time::Duration;

use quell_recording::format_cpu_list;

use self::files::{Capability, Files};
pub use self::remedy::{Remedy, commands, quoted};
use crate::clock::{ClockKind, Scale};
use crate::machine::{self, Cpus, read_line};

/// How good a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No restriction.
    Good,
    /// It works, with a restriction that the finding names.
    Limited,
    /// It does not work here.
    Missing,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was examined.
    pub subject: &'static str,
    /// How good it is.
    pub verdict: Verdict,
    /// What was found.
    pub text: String,
    /// What to do about it, if anything can be done.
    pub advice: Option<String>,
    /// The shell commands that lift the restriction, where commands can.
    pub remedy: Option<Remedy>,
}

fn finding(
    subject: &'static str,
    verdict: Verdict,
    text: impl Into<String>,
    advice: Option<&str>,
) -> Finding {
    Finding { subject, verdict, text: text.into(), advice: advice.map(str::to_owned), remedy: None }
}

/// Runs all checks.
pub fn examine() -> Vec<Finding> {
    let files = Files::from_this_machine();
    let probing = vec![clock(), cpus(), memory_lock(files), realtime(files), isolation()];
    [probing, sources::examine(files), vec![tracing(), hypervisor(), mpi()]].concat()
}

/// The reasons why noise sources cannot be named here, each with what to do about it; `None` where no reason is found. Call it when
/// the kernel recorder could not be loaded.
pub fn why_no_sources() -> Option<String> {
    sources::why_not(Files::from_this_machine())
}

fn clock() -> Finding {
    let (kind, fallback) = ClockKind::choose();
    let rate = Scale::estimate(kind, Duration::from_millis(20)).ticks_per_second() / 1e6;
    match fallback {
        None => finding("clock", Verdict::Good, format!("{} at {rate:.1} MHz", kind.name()), None),
        Some(why) => finding(
            "clock",
            Verdict::Limited,
            format!("CLOCK_MONOTONIC: {why}"),
            Some(
                "short detours are measured less precisely; boot with `tsc=reliable` only if the hardware is known to be good",
            ),
        ),
    }
}

fn cpus() -> Finding {
    match Cpus::from_this_machine() {
        Err(error) => finding("CPUs", Verdict::Missing, error.to_string(), None),
        Ok(cpus) if cpus.allowed.len() < cpus.online.len() => finding(
            "CPUs",
            Verdict::Limited,
            format!("{} of {} may be probed", format_cpu_list(&cpus.allowed), format_cpu_list(&cpus.online)),
            Some("widen the affinity (taskset) or the cpuset of this process to probe the others"),
        )
        .lifted_by(format!("taskset --cpu-list --pid {} $$", format_cpu_list(&cpus.online))),
        Ok(cpus) if cpus.online.len() == 1 => finding(
            "CPUs",
            Verdict::Limited,
            "only one: quell's own writing shares it; quell marks it and excludes it from the figures",
            None,
        ),
        Ok(cpus) => {
            finding("CPUs", Verdict::Good, format!("{} may be probed", format_cpu_list(&cpus.allowed)), None)
        }
    }
}

/// A resource limit of this process; `None` means unlimited.
fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes.
    unsafe { libc::getrlimit(resource, &raw mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

fn memory_lock(files: Files<'_>) -> Finding {
    const WANTED: u64 = 96 << 20;
    match limit(libc::RLIMIT_MEMLOCK) {
        Some(bytes) if bytes < WANTED && !files.holds(Capability::IpcLock) => finding(
            "locked memory",
            Verdict::Limited,
            format!("{} KiB: buffers are touched, but not locked", bytes >> 10),
            Some("raise it with `ulimit -l` or in /etc/security/limits.conf"),
        )
        .lifted_with(&["ipc_lock"]),
        _ => finding("locked memory", Verdict::Good, "enough for all buffers", None),
    }
}

fn realtime(files: Files<'_>) -> Finding {
    let allowed =
        files.holds(Capability::SysNice) || limit(libc::RLIMIT_RTPRIO).is_none_or(|priority| priority > 0);
    if !allowed {
        let advice = "run as root, or grant CAP_SYS_NICE or an rtprio limit; only --realtime needs it";
        return finding("real-time priority", Verdict::Missing, "not permitted", Some(advice))
            .lifted_with(&["sys_nice"]);
    }
    match crate::realtime::throttled_share() {
        Some(share) if share > 0.0 => finding(
            "real-time priority",
            Verdict::Limited,
            format!("permitted; the kernel takes {:.0} % of each second from such threads", share * 100.0),
            Some("this protects the machine; leave it on, and read gaps of that length as the kernel's own"),
        ),
        _ => finding("real-time priority", Verdict::Good, "permitted", None),
    }
}

fn isolation() -> Finding {
    let set = |name: &str| {
        let list =
            read_line(&format!("/sys/devices/system/cpu/{name}")).filter(|l| !l.is_empty() && l != "(null)");
        list.map(|list| format!("{name} {list}"))
    };
    let lists: Vec<String> = ["isolated", "nohz_full"].into_iter().filter_map(set).collect();
    let text = if lists.is_empty() {
        "no CPU is isolated and none is tickless".to_owned()
    } else {
        lists.join(", ")
    };
    finding("isolated CPUs", Verdict::Good, text, None)
}

fn tracing() -> Finding {
    let mounted = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"]
        .iter()
        .find(|p| Path::new(p).exists());
    match mounted {
        Some(path) => finding("tracefs", Verdict::Good, format!("mounted ({path})"), None),
        None => finding(
            "tracefs",
            Verdict::Limited,
            "not mounted, or closed to this user",
            Some("`mount -t tracefs nodev /sys/kernel/tracing` as root; eBPF does not need it"),
        )
        .lifted_by("sudo mount -t tracefs nodev /sys/kernel/tracing"),
    }
}

fn hypervisor() -> Finding {
    if machine::virtualised() {
        let advice = "time taken by the hypervisor shows as detours, and only the part that it reports as stolen has a source; measure on bare metal where that matters";
        return finding("hypervisor", Verdict::Limited, "this is a virtual machine", Some(advice));
    }
    finding("hypervisor", Verdict::Good, "none", None)
}

fn mpi() -> Finding {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = |name: &str| std::env::split_paths(&paths).any(|folder| folder.join(name).is_file());
    let names: Vec<&str> =
        ["mpicc", "mpirun", "mpiexec", "srun"].into_iter().filter(|name| found(name)).collect();
    if names.is_empty() {
        let found = finding(
            "MPI",
            Verdict::Missing,
            "no mpicc, mpirun, mpiexec or srun in PATH",
            Some("load the site's MPI module; recording and prediction do not need it"),
        );
        return match remedy::install_mpi(Files::from_this_machine()) {
            Some(command) => found.lifted_by(command),
            None => found,
        };
    }
    finding("MPI", Verdict::Good, names.join(", "), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lack_has_its_advice() {
        for finding in examine() {
            assert!(!finding.text.is_empty());
            assert!(finding.verdict != Verdict::Missing || finding.advice.is_some(), "{finding:?}");
        }
    }
}
