//! Each missing requirement, on a machine that consists of files.

use std::path::Path;

use super::*;

/// Root's capabilities, as a current kernel shows them.
const ALL: &str = "CapEff:\t000001ffffffffff\n";
const NONE: &str = "CapEff:\t0000000000000000\n";

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

/// A machine on which nothing is missing, with some files of its own.
fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n"),
        ("sys/kernel/btf/vmlinux", "BTF"),
        ("proc/self/status", ALL),
        ("proc/self/uid_map", "         0          0 4294967295\n"),
        ("sys/kernel/security/lockdown", "[none] integrity confidentiality\n"),
        ("proc/kallsyms", ""),
        ("proc/sys/kernel/kptr_restrict", "0\n"),
        ("proc/sys/kernel/bpf_stats_enabled", "0\n"),
        ("proc/sys/kernel/unprivileged_bpf_disabled", "2\n"),
    ]
    .iter()
    .chain(files)
    {
        put(dir.path(), name, text);
    }
    dir
}

/// The finding about a subject on a machine with these files. The overall answer must agree with it.
fn found(files: &[(&str, &str)], subject: &str) -> Finding {
    let dir = machine(files);
    let all = examine(Files::under(dir.path()));
    let finding = all.iter().find(|finding| finding.subject == subject).unwrap().clone();
    let missing = all[1..].iter().any(|finding| finding.verdict == Verdict::Missing);
    assert_eq!(all[0].verdict == Verdict::Missing, missing, "{all:?}");
    assert!(finding.verdict == Verdict::Good || finding.advice.is_some(), "{finding:?}");
    assert_eq!(
        why_not(Files::under(dir.path())).is_some(),
        needs(Files::under(dir.path())).iter().any(|finding| finding.verdict != Verdict::Good)
    );
    finding
}

fn holds(finding: &Finding, verdict: Verdict, parts: &[&str]) {
    assert_eq!(finding.verdict, verdict, "{finding:?}");
    let printed = format!("{} {}", finding.text, finding.advice.as_deref().unwrap_or_default());
    parts.iter().for_each(|part| assert!(printed.contains(part), "`{part}` is not in: {printed}"));
}

#[test]
fn nothing_missing_is_all_good() {
    let dir = machine(&[]);
    let all = examine(Files::under(dir.path()));
    assert!(all.iter().all(|finding| finding.verdict == Verdict::Good), "{all:?}");
    assert_eq!(why_not(Files::under(dir.path())), None);
}

#[test]
fn types_are_asked_for() {
    let dir = machine(&[]);
    fs_err::remove_file(dir.path().join("sys/kernel/btf/vmlinux")).unwrap();
    let files = Files::under(dir.path());
    holds(&types(files), Verdict::Missing, &["vmlinux", "CONFIG_DEBUG_INFO_BTF"]);
    let why = why_not(files).unwrap();
    assert!(why.contains("no /sys/kernel/btf/vmlinux") && why.contains("CONFIG_DEBUG_INFO_BTF"), "{why}");
    let answer = &examine(files)[0];
    holds(answer, Verdict::Missing, &["kernel types (BTF)", "everything else works", "unknown"]);
}

#[test]
fn old_kernels_are_recognised_by_number_or_features() {
    let of = |release: &str, types: &str| {
        let files = [("proc/sys/kernel/osrelease", release), ("sys/kernel/btf/vmlinux", types)];
        found(&files, "kernel version")
    };
    holds(&of("5.4.0-150-generic", "BTF"), Verdict::Missing, &["5.4.0-150-generic", "5.8"]);
    holds(&of("5.10.0", "BTF"), Verdict::Good, &[]);
    holds(&of("4.18.0-553.el8", "\0BPF_MAP_TYPE_RINGBUF\0"), Verdict::Good, &["el8"]);
    holds(&of("5.11", "BTF"), Verdict::Good, &[]);
    holds(&of("strange", "BTF"), Verdict::Good, &["unknown"]);
}

#[test]
fn privileges_are_asked_for_no_further_than_needed() {
    let of = |status: &str, release: &str| {
        found(&[("proc/self/status", status), ("proc/sys/kernel/osrelease", release)], "eBPF privileges")
    };
    let least = ["CAP_BPF and CAP_PERFMON", "sudo setcap cap_bpf,cap_perfmon=ep $(command -v quell)"];
    holds(&of(NONE, "6.1.0"), Verdict::Missing, &least);
    holds(
        &of(NONE, "5.10.0"),
        Verdict::Missing,
        &["cap_bpf,cap_perfmon,cap_sys_resource=ep", "locked memory"],
    );
    holds(&of("CapEff:\t000000c000000000\n", "6.1.0"), Verdict::Good, &[]);
    holds(&of("CapEff:\t0000008000000000\n", "6.1.0"), Verdict::Missing, &["lacks CAP_PERFMON:"]);
    let barred = format!("{NONE}NoNewPrivs:\t1\n");
    holds(&of(&barred, "6.1.0"), Verdict::Missing, &["NoNewPrivs"]);
    holds(&of("", "6.1.0"), Verdict::Missing, &least);
}

#[test]
fn old_kernels_of_arm64_lack_what_programs_need_there() {
    const ARM64: (&str, &str) = ("proc/sys/kernel/arch", "aarch64\n");
    let of = |release: &str, types: &str| {
        let release = ("proc/sys/kernel/osrelease", release);
        found(&[ARM64, release, ("sys/kernel/btf/vmlinux", types)], "kernel version")
    };
    holds(&of("5.10.0-32-arm64\n", "BPF_MAP_TYPE_RINGBUF\0"), Verdict::Missing, &["5.10", "5.18"]);
    holds(&of("5.14.0-503.el9\n", "BPF_FUNC_copy_from_user_task\0"), Verdict::Good, &["5.14"]);
    holds(&of("5.18.0\n", ""), Verdict::Good, &["5.18"]);
}

#[test]
fn lockdown_matters_only_for_confidentiality() {
    let of = |modes: &str| found(&[("sys/kernel/security/lockdown", modes)], "kernel lockdown");
    holds(&of("none integrity [confidentiality]\n"), Verdict::Missing, &["lockdown=confidentiality"]);
    holds(&of("none [integrity] confidentiality\n"), Verdict::Good, &["may still read"]);
    holds(&of(""), Verdict::Good, &["none is shown"]);
}

#[test]
fn containers_are_seen_by_their_marks() {
    let of = |name: &str, text: &str| found(&[(name, text)], "container");
    holds(&of("proc/self/uid_map", "0 1000 1\n"), Verdict::Missing, &["user namespace", "on the host"]);
    holds(&of("run/.containerenv", ""), Verdict::Limited, &["/run/.containerenv", "--cap-add BPF"]);
    holds(&of(".dockerenv", ""), Verdict::Limited, &["/.dockerenv"]);
    let filtered = format!("{ALL}Seccomp:\t2\nSeccomp_filters:\t1\n");
    holds(&of("proc/self/status", &filtered), Verdict::Limited, &["seccomp filter", "bpf system call"]);
    holds(&of("proc/self/status", ALL), Verdict::Good, &["none"]);
}

#[test]
fn another_pid_namespace_keeps_commands_from_being_followed() {
    let dir = machine(&[]);
    for (name, verdict) in [("pid:[4026531836]", Verdict::Good), ("pid:[4026532201]", Verdict::Limited)] {
        let link = dir.path().join("proc/self/ns/pid");
        fs_err::create_dir_all(link.parent().unwrap()).unwrap();
        let _ = fs_err::remove_file(&link);
        std::os::unix::fs::symlink(name, link).unwrap();
        assert_eq!(container(Files::under(dir.path())).verdict, verdict, "{name}");
    }
}

#[test]
fn hidden_symbols_cost_the_detail_alone() {
    let of = |restrict: &str, status: &str, paranoid: &str| {
        let files = [
            ("proc/sys/kernel/kptr_restrict", restrict),
            ("proc/self/status", status),
            ("proc/sys/kernel/perf_event_paranoid", paranoid),
        ];
        found(&files, "kernel symbols")
    };
    holds(
        &of("2", ALL, "2"),
        Verdict::Limited,
        &["kptr_restrict is 2", "kernel.kptr_restrict=1", "its source does not"],
    );
    holds(&of("1", NONE, "1"), Verdict::Limited, &["cap_syslog"]);
    holds(&of("0", NONE, "2"), Verdict::Limited, &["cap_syslog"]);
    holds(&of("0", NONE, "1"), Verdict::Good, &[]);
    holds(&of("1", ALL, "4"), Verdict::Good, &[]);
}

#[test]
fn statistics_left_on_are_named() {
    let on = found(&[("proc/sys/kernel/bpf_stats_enabled", "1\n")], "eBPF statistics");
    holds(&on, Verdict::Limited, &["bpf_stats_enabled=0", "costs time"]);
    let open = found(&[("proc/sys/kernel/unprivileged_bpf_disabled", "0\n")], "unprivileged eBPF");
    holds(&open, Verdict::Good, &["tracing still needs privileges"]);
}
