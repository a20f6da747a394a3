//! Whether noise sources can be named here: what the kernel recorder needs, and what to do where it is missing.

#[cfg(test)]
mod tests;

use super::files::{Capability, Files};
use super::{Finding, Verdict, finding};

const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The overall answer first, then each requirement.
pub(super) fn examine(files: Files<'_>) -> Vec<Finding> {
    let grounds: Vec<Finding> =
        [needs(files), vec![symbols(files), statistics(files), unprivileged(files)]].concat();
    let missing: Vec<&str> =
        grounds.iter().filter(|f| f.verdict == Verdict::Missing).map(|f| f.subject).collect();
    let answer = if missing.is_empty() {
        finding(
            "noise sources",
            Verdict::Good,
            "the kernel recorder (eBPF) can name them, as far as can be seen",
            None,
        )
    } else {
        let text = format!("they stay unknown; the reasons are under: {}", missing.join(", "));
        let advice = "without it everything else works, and sources are shown as unknown";
        finding("noise sources", Verdict::Missing, text, Some(advice))
    };
    [vec![answer], grounds].concat()
}

/// Why the recorder cannot be loaded, and what to do: everything that is visibly missing, or else the likely reasons.
pub(super) fn why_not(files: Files<'_>) -> Option<String> {
    let of = |verdict| -> Vec<String> {
        let found = needs(files).into_iter().filter(|finding| finding.verdict == verdict);
        found.map(|f| f.text + &f.advice.map(|advice| format!(" ({advice})")).unwrap_or_default()).collect()
    };
    let missing = of(Verdict::Missing);
    let printed = if missing.is_empty() { of(Verdict::Limited) } else { missing };
    (!printed.is_empty()).then(|| printed.join("; "))
}

/// The requirements without which the recorder does not load.
fn needs(files: Files<'_>) -> Vec<Finding> {
    vec![version(files), types(files), privileges(files), lockdown(files), container(files)]
}

/// The first kernel version with BPF ring buffers, CAP_BPF and CAP_PERFMON.
const RING_BUFFER: (u32, u32) = (5, 8);
/// The first kernel version in which programs on arm64 have atomic operations that return a value.
const ATOMICS_ON_ARM64: (u32, u32) = (5, 18);
/// The first kernel version in which maps are not limited by RLIMIT_MEMLOCK.
const MAPS_UNLIMITED: (u32, u32) = (5, 11);

fn version(files: Files<'_>) -> Finding {
    const SUBJECT: &str = "kernel version";
    let Some((version, release)) = files.release() else {
        return finding(SUBJECT, Verdict::Good, "unknown", None);
    };
    // Vendors backport newer features to older versions, so the kernel's own type information decides.
    let has = |since, name: &[u8]| {
        version >= since
            || files.bytes(TYPES).is_some_and(|types| types.windows(name.len()).any(|window| window == name))
    };
    if !has(RING_BUFFER, b"BPF_MAP_TYPE_RINGBUF\0") {
        let text = format!("{release} has no eBPF ring buffer to record with; it came with 5.8");
        return finding(
            SUBJECT,
            Verdict::Missing,
            text,
            Some("boot a kernel of 5.8 or later to name sources"),
        );
    }
    // The function for programs came with the same version.
    if files.machine() == "aarch64" && !has(ATOMICS_ON_ARM64, b"BPF_FUNC_copy_from_user_task\0") {
        let text = format!(
            "{release} has no atomic operations for eBPF programs on arm64 that return a value; they came with 5.18"
        );
        return finding(
            SUBJECT,
            Verdict::Missing,
            text,
            Some("boot a kernel of 5.18 or later to name sources"),
        );
    }
    finding(SUBJECT, Verdict::Good, release, None)
}

fn types(files: Files<'_>) -> Finding {
    const SUBJECT: &str = "kernel types (BTF)";
    if files.exists(TYPES) {
        return finding(SUBJECT, Verdict::Good, format!("in {TYPES}"), None);
    }
    finding(
        SUBJECT,
        Verdict::Missing,
        format!("no {TYPES}: the recorder needs the type information of this kernel"),
        Some(
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y; a container may have to show /sys of the host",
        ),
    )
}

fn privileges(files: Files<'_>) -> Finding {
    const SUBJECT: &str = "eBPF privileges";
    if files.holds(Capability::SysAdmin) {
        return finding(SUBJECT, Verdict::Good, "CAP_SYS_ADMIN", None);
    }
    let wanted = [(Capability::Bpf, "CAP_BPF"), (Capability::Perfmon, "CAP_PERFMON")];
    let lacking: Vec<&str> =
        wanted.iter().filter(|(capability, _)| !files.holds(*capability)).map(|(_, name)| *name).collect();
    if lacking.is_empty() {
        return finding(SUBJECT, Verdict::Good, "CAP_BPF and CAP_PERFMON", None);
    }
    let old = files.release().is_some_and(|(version, _)| version < MAPS_UNLIMITED);
    let more = if old { ",cap_sys_resource" } else { "" };
    let why_more = if old {
        "; cap_sys_resource lifts the limit of locked memory, which counts before 5.11"
    } else {
        ""
    };
    let barred = if files.status("NoNewPrivs").as_deref() == Some("1") {
        "; this process may gain no privileges (NoNewPrivs), so start quell from a session that may"
    } else {
        ""
    };
    finding(
        SUBJECT,
        Verdict::Missing,
        format!("this process lacks {}: the kernel lets it load no tracing programs", lacking.join(" and ")),
        Some(&format!(
            "run as root, or give the program just this: `sudo setcap cap_bpf,cap_perfmon{more}=ep $(command -v quell)`, \
             on a file system that keeps capabilities (no NFS, no nosuid mount){why_more}{barred}"
        )),
    )
    .lifted_with(if old { &["bpf", "perfmon", "sys_resource"] } else { &["bpf", "perfmon"] })
}

fn lockdown(files: Files<'_>) -> Finding {
    const SUBJECT: &str = "kernel lockdown";
    let modes = files.line("/sys/kernel/security/lockdown").unwrap_or_default();
    let mode = modes.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(mode, _)| mode);
    match mode {
        Some("confidentiality") => finding(
            SUBJECT,
            Verdict::Missing,
            "confidentiality: no program may read the kernel's memory, not even root's",
            Some(
                "boot without `lockdown=confidentiality`; the mode `integrity` does not restrict the recorder",
            ),
        ),
        Some("integrity") => finding(SUBJECT, Verdict::Good, "integrity: programs may still read", None),
        Some(_) => finding(SUBJECT, Verdict::Good, "none", None),
        None => finding(SUBJECT, Verdict::Good, "none is shown", None),
    }
}

fn container(files: Files<'_>) -> Finding {
    const SUBJECT: &str = "container";
    if files.in_user_namespace() {
        return finding(
            SUBJECT,
            Verdict::Missing,
            "in a user namespace (as rootless containers are): capabilities apply only inside it, and eBPF \
             needs them outside",
            Some(
                "run quell on the host, or as real root in a container with `--cap-add BPF --cap-add PERFMON`",
            ),
        );
    }
    let marks = ["/run/.containerenv", "/.dockerenv", "/.singularity.d"];
    let mark = marks.into_iter().find(|mark| files.exists(mark));
    let filtered = files.status("Seccomp").as_deref() == Some("2");
    if files.in_pid_namespace() {
        return finding(
            SUBJECT,
            Verdict::Limited,
            "in a PID namespace: CPUs can be recorded, but the threads of a command cannot be followed, \
             because the kernel's ids differ",
            Some("for `record -- CMD` share the host's PID namespace (`--pid=host`), or run on the host"),
        );
    }
    match (mark, filtered) {
        (Some(mark), filtered) => {
            let filter = if filtered { ", behind a seccomp filter" } else { "" };
            let text = format!("in one ({mark} is there){filter}: it may refuse the bpf system call");
            let advice = "where loading fails, add `--cap-add BPF --cap-add PERFMON` and a seccomp profile that lets bpf() through, or run on the host";
            finding(SUBJECT, Verdict::Limited, text, Some(advice))
        }
        (None, true) => finding(
            SUBJECT,
            Verdict::Limited,
            "none is visible, but a seccomp filter applies to this process: it may refuse the bpf system call",
            Some(
                "where loading fails, start quell outside of what set the filter (a container, a systemd unit)",
            ),
        ),
        (None, false) => finding(SUBJECT, Verdict::Good, "none", None),
    }
}

/// The kernel's rule for who may see addresses in /proc/kallsyms (`kallsyms_show_value`).
fn symbols(files: Files<'_>) -> Finding {
    const SUBJECT: &str = "kernel symbols";
    const LACK: &str = "which function a timer or a work item ran stays unknown; its source does not";
    if !files.exists("/proc/kallsyms") {
        let text = format!("no /proc/kallsyms: {LACK}");
        return finding(SUBJECT, Verdict::Limited, text, Some("boot a kernel built with CONFIG_KALLSYMS=y"));
    }
    let restrict = files.setting("kernel/kptr_restrict").unwrap_or(0);
    let open_to_all =
        restrict == 0 && files.setting("kernel/perf_event_paranoid").is_some_and(|level| level <= 1);
    if open_to_all || (restrict <= 1 && files.holds(Capability::Syslog)) {
        return finding(SUBJECT, Verdict::Good, "readable: functions are named", None);
    }
    let text = format!("hidden from this process (kernel.kptr_restrict is {restrict}): {LACK}");
    let advice = if restrict > 1 {
        "`sudo sysctl kernel.kptr_restrict=1`, and run as root or with CAP_SYSLOG"
    } else {
        "run as root, or grant cap_syslog too: `quell doctor --commands` prints a grant that keeps the others"
    };
    let found = finding(SUBJECT, Verdict::Limited, text, Some(advice));
    match restrict > 1 {
        true => found.lifted_by("sudo sysctl kernel.kptr_restrict=1"),
        false => found.lifted_with(&["syslog"]),
    }
}

fn statistics(files: Files<'_>) -> Finding {
    const SUBJECT: &str = "eBPF statistics";
    if files.setting("kernel/bpf_stats_enabled") == Some(1) {
        let text = "on (kernel.bpf_stats_enabled is 1): the kernel times every run of every program, which itself costs time";
        let advice = "`sudo sysctl kernel.bpf_stats_enabled=0`, unless someone reads them";
        return finding(SUBJECT, Verdict::Limited, text, Some(advice))
            .lifted_by("sudo sysctl kernel.bpf_stats_enabled=0");
    }
    finding(SUBJECT, Verdict::Good, "off", None)
}

fn unprivileged(files: Files<'_>) -> Finding {
    let text = match files.setting("kernel/unprivileged_bpf_disabled") {
        Some(0) => "permitted for other kinds of program; tracing still needs privileges",
        Some(_) => "off, as most systems set it; quell does not need it",
        None => "unknown; quell does not need it",
    };
    finding("unprivileged eBPF", Verdict::Good, text, None)
}
