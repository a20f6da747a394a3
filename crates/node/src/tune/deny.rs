//! What is never written, whatever a catalogue says: what keeps a node reachable, its users known and its data whole.

/// Folders below which a knob may be a file.
const FILES: [&str; 3] = ["/proc/sys/", "/proc/irq/", "/sys/"];

/// Files in them that do something else than set a value: they run programs, crash, load code or cut the network.
const NOT_THESE: [&str; 16] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/core_pipe_limit",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/modules_disabled",
    "/proc/sys/kernel/kexec_load_disabled",
    "/proc/sys/kernel/poweroff_cmd",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/kernel/panic",
    "/proc/sys/fs/",
    "/proc/sys/user/",
    "/proc/sys/net/ipv4/ip_forward",
    "/sys/power/",
    "/sys/fs/bpf/",
    "/sys/kernel/security/",
    "/sys/kernel/debug/provoke-crash/",
];

/// Folders that take files of others, and nothing else that quell writes to disk.
const DROP_INS: [&str; 7] = [
    "/etc/sysctl.d/",
    "/etc/tmpfiles.d/",
    "/etc/systemd/",
    "/etc/default/grub.d/",
    "/etc/modprobe.d/",
    "/etc/udev/rules.d/",
    "/etc/tuned/",
];

/// Services that are never stopped: how one gets in, who one is, and where the data is. By the beginning of their names.
const UNITS: [&str; 22] = [
    "ssh",
    "sshd",
    "dropbear",
    "network",
    "NetworkManager",
    "systemd-",
    "dbus",
    "sssd",
    "nslcd",
    "polkit",
    "getty@",
    "serial-getty@",
    "multipathd",
    "iscsi",
    "lvm2",
    "mdmonitor",
    "nfs",
    "rpc",
    "autofs",
    "lustre",
    "beegfs",
    "slurmd",
];

/// Whether a knob may be this file.
///
/// # Errors
/// Why not.
pub fn file(path: &str) -> Result<(), String> {
    if path.split('/').any(|part| part == ".." || part == ".") || path.contains('\0') || path.contains('\n') {
        return Err(format!("`{path}` is not a plain path"));
    }
    if !FILES.iter().any(|folder| path.starts_with(folder)) {
        return Err(format!(
            "`{path}` is not below {}: quell writes no other files as knobs",
            FILES.join(", ")
        ));
    }
    match NOT_THESE.iter().find(|one| path.starts_with(*one)) {
        Some(denied) => Err(format!("`{path}` is on the deny-list ({denied}): quell never writes it")),
        None => Ok(()),
    }
}

/// Whether a file of ours may be put here.
///
/// # Errors
/// Why not.
pub fn drop_in(path: &str) -> Result<(), String> {
    let plain = !path.split('/').any(|part| part == ".." || part == ".") && !path.contains(['\0', '\n']);
    let ours = path.rsplit('/').next().is_some_and(|name| name.contains("quell"));
    match DROP_INS.iter().any(|folder| path.starts_with(folder)) {
        true if plain && ours => Ok(()),
        _ => Err(format!(
            "`{path}` is no drop-in of quell's: it must be below {} and have `quell` in its name",
            DROP_INS.join(", ")
        )),
    }
}

/// Whether a unit may be stopped.
///
/// # Errors
/// Why not.
pub fn unit(name: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "@-_.:\\".contains(c);
    if name.is_empty() || !name.chars().all(good) || name.starts_with('-') || !name.contains('.') {
        return Err(format!("`{name}` is not the name of a unit with its type, as in `cron.service`"));
    }
    // What systemd itself does on a timer may go; what it keeps running may not.
    if name.ends_with(".timer") {
        return Ok(());
    }
    match UNITS.iter().find(|one| name.starts_with(*one)) {
        Some(denied) => Err(format!("`{name}` is on the deny-list ({denied}…): quell never stops it")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_a_node_alive_is_denied() {
        for bad in [
            "/etc/passwd",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/../../etc/x",
            "/sys/power/state",
            "/dev/sda",
        ] {
            assert!(file(bad).is_err(), "{bad}");
        }
        for bad in [
            "sshd.service",
            "sssd.service",
            "NetworkManager.service",
            "multipathd.service",
            "-x.service",
            "cron",
        ] {
            assert!(unit(bad).is_err(), "{bad}");
        }
        for bad in ["/etc/sysctl.conf", "/etc/sysctl.d/99-site.conf", "/etc/sysctl.d/../quell"] {
            assert!(drop_in(bad).is_err(), "{bad}");
        }
        assert_eq!(file("/proc/sys/vm/stat_interval"), Ok(()));
        assert_eq!(unit("systemd-tmpfiles-clean.timer"), Ok(()));
        assert_eq!(unit("cron.service"), Ok(()));
        assert_eq!(drop_in("/etc/sysctl.d/90-quell-thp.conf"), Ok(()));
    }
}
