//! What quell never writes, whatever a catalogue says: settings that keep a node reachable, its users known and its data intact.

mod contents;

pub use contents::{Setting, contents};

/// Folders below which a knob may be a file.
const FILES: [&str; 3] = ["/proc/sys/", "/proc/irq/", "/sys/"];

/// Files in them that do more than set a value: they run programs, crash, load code, lower a protection or cut the network.
const NOT_THESE: [&str; 24] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/core_pipe_limit",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/modules_disabled",
    "/proc/sys/kernel/kexec_load_disabled",
    "/proc/sys/kernel/poweroff_cmd",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/usermodehelper/",
    "/proc/sys/kernel/yama/",
    "/proc/sys/fs/",
    "/proc/sys/net/",
    "/proc/sys/user/",
    "/sys/firmware/",
    "/sys/fs/bpf/",
    "/sys/fs/selinux/",
    "/sys/kernel/config/",
    "/sys/kernel/debug/provoke-crash/",
    "/sys/kernel/kexec",
    "/sys/kernel/security/",
    "/sys/kernel/uevent_helper",
    "/sys/power/",
];

/// Exceptions: files there that only set a value.
const BUT_THESE: [&str; 10] = [
    "/proc/sys/net/core/busy_poll",
    "/proc/sys/net/core/busy_read",
    "/proc/sys/net/core/netdev_budget",
    "/proc/sys/net/core/netdev_budget_usecs",
    "/proc/sys/net/core/rps_default_mask",
    "/proc/sys/net/core/rps_sock_flow_entries",
    "/proc/sys/net/ipv4/route/gc_interval",
    "/proc/sys/net/ipv6/route/gc_interval",
    "/sys/firmware/acpi/platform_profile",
    "/sys/fs/selinux/avc/cache_threshold",
];

/// Endings of files that remove a device, or the CPU on which a node boots.
const NOT_THESE_ENDS: [&str; 12] = [
    "/bind",
    "/cpu0/online",
    "/delete",
    "/device/state",
    "/driver_override",
    "/drivers_probe",
    "/new_id",
    "/remove",
    "/remove_id",
    "/rescan",
    "/reset",
    "/unbind",
];

/// Drop-in folders. quell writes no other files to disk.
const DROP_INS: [&str; 5] = [
    "/etc/sysctl.d/",
    "/etc/tmpfiles.d/",
    "/etc/default/grub.d/",
    "/etc/systemd/system.conf.d/",
    "/etc/systemd/journald.conf.d/",
];

/// The folder in which each unit has a drop-in folder of its own.
const UNITS_DROP_INS: &str = "/etc/systemd/system/";

/// A unit that is never stopped, but may be moved to other CPUs.
const PLACED: &str = "systemd-timesyncd.service";

/// Kinds of units that can be stopped without further loss: not mounts, devices, targets, slices.
const KINDS: [&str; 4] = [".service", ".timer", ".socket", ".path"];

/// Services that are never stopped: logins, user databases, storage, and services that other work runs in. By the beginning of their
/// names.
const UNITS: [&str; 44] = [
    "ssh",
    "sshd",
    "dropbear",
    "network",
    "NetworkManager",
    "wicked",
    "firewalld",
    "nftables",
    "iptables",
    "ip6tables",
    "ufw",
    "openibd",
    "opensm",
    "rdma",
    "systemd-",
    "dbus",
    "cloud-",
    "sssd",
    "nslcd",
    "winbind",
    "munge",
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
    "gpfs",
    "mmfs",
    "ceph",
    "slurm",
    "pbs",
    "kubelet",
    "k3s",
    "docker",
    "containerd",
    "crio",
    "podman",
];

/// Whether a path has no part that stands for another folder (`.`, `..`), and no empty one.
fn plain(path: &str) -> bool {
    let parts = path.strip_prefix('/');
    let good = |part: &str| !matches!(part, "" | "." | "..");
    parts.is_some_and(|parts| parts.split('/').all(good)) && !path.contains(char::is_control)
}

/// Whether a knob may write this file.
///
/// # Errors
/// Why not.
pub fn file(path: &str) -> Result<(), String> {
    if !plain(path) {
        return Err(format!("`{path}` is not a plain path"));
    }
    if !FILES.iter().any(|folder| path.starts_with(folder)) {
        return Err(format!(
            "`{path}` is not below {}: quell writes no other files as knobs",
            FILES.join(", ")
        ));
    }
    if BUT_THESE.contains(&path) {
        return Ok(());
    }
    let denied = NOT_THESE.iter().find(|one| path.starts_with(*one));
    match denied.or_else(|| NOT_THESE_ENDS.iter().find(|one| path.ends_with(*one))) {
        Some(denied) => Err(format!("`{path}` is on the deny-list ({denied}): quell never writes it")),
        None => Ok(()),
    }
}

/// Whether quell may put a file of its own here.
///
/// # Errors
/// Why not.
pub fn drop_in(path: &str) -> Result<(), String> {
    let (folder, name) = path.rsplit_once('/').map_or(("", path), |(folder, name)| (folder, name));
    let folder = format!("{folder}/");
    if let Some(unit) = folder.strip_prefix(UNITS_DROP_INS).and_then(|rest| rest.strip_suffix(".d/")) {
        if unit != PLACED {
            self::unit(unit)?;
        }
        if !unit.ends_with(".service") {
            return Err(format!("`{path}` is for a unit that is not a service"));
        }
    } else if !DROP_INS.contains(&folder.as_str()) {
        return Err(format!(
            "`{path}` is not a drop-in of quell's: it must be in {} or {UNITS_DROP_INS}NAME.service.d/",
            DROP_INS.join(", ")
        ));
    }
    let end = if folder == "/etc/default/grub.d/" { ".cfg" } else { ".conf" };
    match plain(path) && name.contains("quell") && !name.starts_with('.') && name.ends_with(end) {
        true => Ok(()),
        false => Err(format!("`{path}` is not a drop-in of quell's: name it 90-quell-NAME{end}")),
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
    if !KINDS.iter().any(|kind| name.ends_with(kind)) {
        return Err(format!("`{name}` is not one of {}: quell stops no other units", KINDS.join(", ")));
    }
    // Timers of systemd itself may be stopped; its services may not.
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
            "/proc/sys//kernel/core_pattern",
            "/proc/sys/kernel//core_pattern",
            "//proc/sys/vm/stat_interval",
            "/proc/sys/vm/",
            "/sys/devices/*//remove",
            "/sys/kernel/uevent_helper",
            "/proc/sys/kernel/usermodehelper/bset",
            "/proc/sys/kernel/yama/ptrace_scope",
            "/proc/sys/kernel/randomize_va_space",
            "/proc/sys/net/ipv4/ip_forward",
            "/proc/sys/net/core/busy_poll_x",
            "/sys/fs/selinux/enforce",
            "/sys/firmware/efi/efivars/x",
            "/sys/bus/pci/devices/0000:00:01.0/remove",
            "/sys/bus/pci/devices/0000:00:01.0/reset",
            "/sys/bus/pci/rescan",
            "/sys/bus/pci/drivers/nvme/unbind",
            "/sys/bus/pci/drivers/nvme/bind",
            "/sys/block/sda/device/delete",
            "/sys/block/sda/device/state",
            "/sys/devices/system/cpu/cpu0/online",
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
            "home.mount",
            "multi-user.target",
            "user.slice",
            "init.scope",
            "ssh.socket",
            "dbus.socket",
            "firewalld.service",
            "nftables.service",
            "iptables.service",
            "munge.service",
            "winbind.service",
            "wickedd.service",
            "openibd.service",
            "opensm.service",
            "gpfs.service",
            "mmfs.service",
            "cloud-init.service",
            "k3s-agent.service",
            "kubelet.service",
            "docker.socket",
            "containerd.service",
        ] {
            assert!(unit(bad).is_err(), "{bad}");
        }
        for bad in [
            "/etc/sysctl.conf",
            "/etc/sysctl.d/99-site.conf",
            "/etc/sysctl.d/../quell",
            "/etc/sysctl.d//90-quell.conf",
            "/etc/sysctl.d/x/90-quell.conf",
            "/etc/sysctl.d/90-quell",
            "/etc/sysctl.d/.90-quell.conf",
            "/etc/default/grub.d/90-quell.conf",
            "/etc/modprobe.d/90-quell.conf",
            "/etc/udev/rules.d/90-quell.rules",
            "/etc/tuned/quell/tuned.conf",
            "/etc/systemd/system/quell.service",
            "/etc/systemd/system/sshd.service.d/90-quell.conf",
            "/etc/systemd/system/user.slice.d/90-quell.conf",
            "/etc/systemd/system/cups.socket.d/90-quell.conf",
            "/etc/systemd/system/../system/x.service.d/90-quell.conf",
            "/etc/systemd/user.conf.d/90-quell.conf",
        ] {
            assert!(drop_in(bad).is_err(), "{bad}");
        }
        assert_eq!(file("/proc/sys/vm/stat_interval"), Ok(()));
        assert_eq!(unit("systemd-tmpfiles-clean.timer"), Ok(()));
        assert_eq!(unit("cron.service"), Ok(()));
        for allowed in [
            "/etc/sysctl.d/90-quell-thp.conf",
            "/etc/default/grub.d/90-quell-isolcpus.cfg",
            "/etc/systemd/system.conf.d/90-quell.conf",
            "/etc/systemd/journald.conf.d/90-quell.conf",
            "/etc/systemd/system/chronyd.service.d/90-quell.conf",
            "/etc/systemd/system/systemd-timesyncd.service.d/90-quell.conf",
        ] {
            assert_eq!(drop_in(allowed), Ok(()));
        }
        for allowed in BUT_THESE {
            assert_eq!(file(allowed), Ok(()));
        }
    }
}
