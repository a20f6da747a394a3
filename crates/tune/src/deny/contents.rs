//! What a drop-in of quell may contain: only the forms that quell writes, because some readers of such files run programs.

use crate::built_in::boot_options;
use crate::sysctl::sysctl_path;

/// What one line of a drop-in sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A kernel file.
    File(String),
    /// An option on the kernel's command line.
    Option(String),
    /// A key of systemd, as `[Section] Key`.
    Key(String),
}

/// Keys of systemd that a drop-in may set: its folder, the section, and the keys.
const KEYS: [(&str, &str, &[&str]); 3] = [
    ("/etc/systemd/system.conf.d/", "[Manager]", &["CPUAffinity"]),
    (
        "/etc/systemd/journald.conf.d/",
        "[Journal]",
        &["Storage", "RuntimeMaxUse", "RateLimitIntervalSec", "RateLimitBurst"],
    ),
    ("/etc/systemd/system/", "[Service]", &["CPUAffinity"]),
];

const SYSCTL: &str = "/etc/sysctl.d/";
const TMPFILES: &str = "/etc/tmpfiles.d/";
const GRUB: &str = "/etc/default/grub.d/";

/// What a drop-in sets, if all its lines have the forms that quell writes.
///
/// # Errors
/// The first line with another form, or that sets something on the deny-list.
pub fn contents(path: &str, text: &str) -> Result<Vec<Setting>, String> {
    super::drop_in(path)?;
    let hides = |line: &str| line.ends_with('\\') || line.contains(|c: char| c.is_control() && c != '\t');
    if text.lines().any(hides) || text.contains('\r') {
        return Err(format!("{path} would hide what it says"));
    }
    let lines: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let each = |one: fn(&str) -> Result<Setting, String>| lines.iter().map(|line| one(line)).collect();
    match path {
        _ if path.starts_with(SYSCTL) => each(sysctl),
        _ if path.starts_with(TMPFILES) => each(tmpfiles),
        _ if path.starts_with(GRUB) && lines.len() > 1 => Err(format!("{path} has more than one line")),
        _ if path.starts_with(GRUB) => lines.first().map_or(Ok(Vec::new()), |line| grub(line)),
        _ => systemd(path, &lines),
    }
}

/// `vm.stat_interval = 20`
fn sysctl(line: &str) -> Result<Setting, String> {
    let key = line.split_once('=').map(|(key, _)| key.trim());
    let good = |c: char| c.is_ascii_alphanumeric() || "_-./:@".contains(c);
    match key {
        Some(key) if !key.starts_with('-') && !key.is_empty() && key.chars().all(good) => {
            let path = sysctl_path(key);
            super::file(&path).map(|()| Setting::File(path))
        }
        _ => Err(format!("`{line}` does not set a plain key")),
    }
}

/// `w /sys/kernel/mm/ksm/run - - - - 0`
fn tmpfiles(line: &str) -> Result<Setting, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["w", path, "-", "-", "-", "-", _value, ..] => {
            let path = path.replace("%%", "\0");
            if path.contains(['*', '?', '[', ']', '{', '%', '"', '\'', '\\']) {
                return Err(format!("`{line}` does not write to a plain path"));
            }
            let path = path.replace('\0', "%");
            super::file(&path).map(|()| Setting::File(path))
        }
        _ => Err(format!("`{line}` does more than write a setting")),
    }
}

/// `GRUB_CMDLINE_LINUX="${GRUB_CMDLINE_LINUX} nohz_full=1-3"`. A shell reads it.
fn grub(line: &str) -> Result<Vec<Setting>, String> {
    let more = || format!("`{line}` does more than add options to the kernel's command line");
    let words = line
        .strip_prefix("GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} ")
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|words| words.chars().all(|c| c.is_ascii_alphanumeric() || " _-.,:=/+@%*~".contains(c)))
        .ok_or_else(more)?;
    let option = |word: &str| {
        let name = word.split('=').next().unwrap_or_default();
        match boot_options().contains(name) {
            true => Ok(Setting::Option(name.to_owned())),
            false => Err(format!("`{name}` is not a boot option of quell's catalogue")),
        }
    };
    words.split(' ').map(option).collect()
}

/// The permitted section of its folder, and permitted keys in it.
fn systemd(path: &str, lines: &[&str]) -> Result<Vec<Setting>, String> {
    let (_, section, keys) = KEYS
        .iter()
        .find(|(folder, ..)| path.starts_with(folder))
        .ok_or_else(|| format!("quell writes nothing into {path}"))?;
    let mut set = Vec::new();
    let mut inside = false;
    for line in lines {
        if line == section {
            inside = true;
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "\n"));
        let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "-, ".contains(c));
        if !inside || !keys.contains(&key) || !plain {
            return Err(format!("`{line}` is not a line that quell puts into {path}"));
        }
        set.push(Setting::Key(format!("{section} {key}")));
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSCTL_FILE: &str = "/etc/sysctl.d/90-quell-x.conf";
    const TMPFILES_FILE: &str = "/etc/tmpfiles.d/90-quell-x.conf";
    const GRUB_FILE: &str = "/etc/default/grub.d/90-quell-x.cfg";
    const MANAGER: &str = "/etc/systemd/system.conf.d/90-quell.conf";
    const JOURNAL: &str = "/etc/systemd/journald.conf.d/90-quell.conf";
    const SERVICE: &str = "/etc/systemd/system/chronyd.service.d/90-quell.conf";

    #[test]
    fn a_drop_in_may_set_and_nothing_else() {
        for (path, bad) in [
            (SYSCTL_FILE, "kernel.core_pattern = |/tmp/x"),
            (SYSCTL_FILE, "kernel/core_pattern = |/tmp/x"),
            (SYSCTL_FILE, "kernel..core_pattern = |/tmp/x"),
            (SYSCTL_FILE, "kernel//core_pattern = |/tmp/x"),
            (SYSCTL_FILE, "/kernel/core_pattern = |/tmp/x"),
            (SYSCTL_FILE, ".kernel.core_pattern = |/tmp/x"),
            (SYSCTL_FILE, "-kernel.core_pattern = |/tmp/x"),
            (SYSCTL_FILE, "-vm.stat_interval"),
            (SYSCTL_FILE, "kernel.core_patter? = |/tmp/x"),
            (SYSCTL_FILE, "kernel.core_{pattern,x} = |/tmp/x"),
            (SYSCTL_FILE, "vm.x = 1 \\\nkernel.core_pattern = |/tmp/x"),
            (TMPFILES_FILE, "f /etc/cron.d/x - - - - x"),
            (TMPFILES_FILE, "w+ /sys/kernel/mm/ksm/run - - - - 0"),
            (TMPFILES_FILE, "w /etc/passwd - - - - x"),
            (TMPFILES_FILE, "w /proc/sys//kernel/core_pattern - - - - |/tmp/x"),
            (TMPFILES_FILE, "w /proc/sys/kernel/%p - - - - x"),
            (TMPFILES_FILE, "w /proc/sys/kernel/\\x63ore_pattern - - - - x"),
            (GRUB_FILE, "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} $(id)\""),
            (GRUB_FILE, "id"),
            (GRUB_FILE, ";id"),
            (GRUB_FILE, "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} init=/x\""),
            (GRUB_FILE, "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} systemd.run=/x\""),
            (GRUB_FILE, "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} nohz_full=1 initrd=/x\""),
            (
                GRUB_FILE,
                "GRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} nohz_full=1\"\nGRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} tsc=x\"",
            ),
            (MANAGER, "CPUAffinity=0-1"),
            (MANAGER, "[Manager]\nDefaultEnvironment=LD_PRELOAD=/tmp/x"),
            (MANAGER, "[Manager]\nCPUAffinity=0\nWatchdogDevice=/dev/x"),
            (MANAGER, "[Service]\nCPUAffinity=0"),
            (MANAGER, ";[Manager]\nCPUAffinity=0"),
            (JOURNAL, "[Journal]\nForwardToSocket=x"),
            (JOURNAL, "[Journal]\nStorage=/x"),
            (SERVICE, "[Service]\nExecStartPre=/tmp/x"),
            (SERVICE, "[Service]\nCPUAffinity=0\nUser=root"),
            (SERVICE, "[Service]\nCPUAffinity"),
            (SERVICE, "[Unit]\nOnFailure=x.service"),
            ("/etc/systemd/system/quell.service", "[Service]\nCPUAffinity=0"),
            ("/etc/udev/rules.d/90-quell.rules", "# quell"),
            ("/etc/modprobe.d/90-quell.conf", "# quell"),
            ("/etc/tuned/quell/tuned.conf", "# quell"),
        ] {
            assert!(contents(path, bad).is_err(), "{bad}");
        }
        for (path, good, set) in [
            (
                SYSCTL_FILE,
                "# quell: x\nvm.stat_interval = 20\n",
                Setting::File("/proc/sys/vm/stat_interval".into()),
            ),
            (
                TMPFILES_FILE,
                "w /sys/kernel/mm/ksm/run - - - - 0\n",
                Setting::File("/sys/kernel/mm/ksm/run".into()),
            ),
            (
                GRUB_FILE,
                "# quell: x\nGRUB_CMDLINE_LINUX=\"${GRUB_CMDLINE_LINUX} nohz_full=1-3\"\n",
                Setting::Option("nohz_full".into()),
            ),
            (MANAGER, "# quell\n[Manager]\nCPUAffinity=0-1\n", Setting::Key("[Manager] CPUAffinity".into())),
            (SERVICE, "[Service]\nCPUAffinity=\n", Setting::Key("[Service] CPUAffinity".into())),
            (JOURNAL, "[Journal]\nRuntimeMaxUse=64M\n", Setting::Key("[Journal] RuntimeMaxUse".into())),
        ] {
            assert_eq!(contents(path, good), Ok(vec![set]), "{good}");
        }
    }
}
