//! The shell commands that lift a restriction.

use rustix::process::geteuid;

use super::files::{Capability, Files};
use super::{Finding, Verdict};

/// What lifts a restriction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Shell commands, in order; those that need root begin with `sudo`.
    Commands(Vec<String>),
    /// Capabilities (lower case, without `CAP_`) that the program lacks. A file has one set of capabilities, so a single command
    /// grants those of all findings.
    Capabilities(Vec<&'static str>),
}

impl Finding {
    /// Adds the command that lifts the restriction.
    pub(super) fn lifted_by(self, command: impl Into<String>) -> Self {
        Self { remedy: Some(Remedy::Commands(vec![command.into()])), ..self }
    }

    /// Adds the capabilities that lift the restriction.
    pub(super) fn lifted_with(self, capabilities: &[&'static str]) -> Self {
        Self { remedy: Some(Remedy::Capabilities(capabilities.to_vec())), ..self }
    }
}

/// The commands for each finding that has any, for the program at this path. Findings that lack capabilities share one command, which
/// grants all of these together with the capabilities that `kept` reports for the program.
pub fn commands(findings: &[Finding], program: &str) -> Vec<Vec<String>> {
    let mut all: Vec<&str> = findings.iter().flat_map(capabilities).copied().collect();
    all.extend(kept(Files::from_this_machine()).iter().filter(|_| !all.is_empty()).collect::<Vec<_>>());
    all.sort_unstable();
    all.dedup();
    let names: Vec<String> = all.iter().map(|name| format!("cap_{name}")).collect();
    let grant = format!("sudo setcap {}=ep {}", names.join(","), quoted(program));
    let of = |finding: &Finding| match &finding.remedy {
        None => Vec::new(),
        Some(Remedy::Capabilities(_)) => vec![grant.clone()],
        Some(Remedy::Commands(lines)) => lines.clone(),
    };
    let lines = findings.iter().map(of);
    // Root needs no `sudo`.
    if geteuid().is_root() {
        return lines.map(|lines| lines.iter().map(|line| line.replace("sudo ", "")).collect()).collect();
    }
    lines.collect()
}

fn capabilities(finding: &Finding) -> &[&'static str] {
    match &finding.remedy {
        Some(Remedy::Capabilities(names)) if finding.verdict != Verdict::Good => names,
        _ => &[],
    }
}

/// Capabilities that an ordinary user's program already has. A new grant replaces the whole set, so it must repeat these.
fn kept(files: Files<'_>) -> Vec<&'static str> {
    let known = [
        (Capability::Bpf, "bpf"),
        (Capability::Perfmon, "perfmon"),
        (Capability::Syslog, "syslog"),
        (Capability::SysNice, "sys_nice"),
        (Capability::SysResource, "sys_resource"),
        (Capability::IpcLock, "ipc_lock"),
    ];
    known.into_iter().filter(|(capability, _)| files.holds(*capability)).map(|(_, name)| name).collect()
}

/// A word, quoted for the shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The command that installs an MPI with this system's package manager, if that is known.
pub(super) fn install_mpi(files: Files<'_>) -> Option<&'static str> {
    let release = String::from_utf8(files.bytes("/etc/os-release")?).ok()?;
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let (id, like) = (value("ID"), value("ID_LIKE"));
    let mut families = id.split_whitespace().chain(like.split_whitespace());
    families.find_map(|family| match family {
        "debian" | "ubuntu" => Some("sudo apt-get install openmpi-bin libopenmpi-dev"),
        "rhel" | "fedora" | "centos" => {
            Some("sudo dnf install openmpi-devel && module load mpi/openmpi-x86_64")
        }
        "suse" | "sles" | "opensuse" => Some("sudo zypper install openmpi4-devel"),
        "arch" => Some("sudo pacman -S openmpi"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::super::finding;
    use super::*;

    #[test]
    fn capabilities_are_granted_together_and_to_the_file() {
        let lack = |subject, names: &[&'static str]| {
            finding(subject, Verdict::Missing, "", Some("x")).lifted_with(names)
        };
        let mounted = finding("tracefs", Verdict::Limited, "", Some("x")).lifted_by("mount it");
        let findings = [lack("a", &["bpf", "perfmon"]), mounted, lack("b", &["syslog"]), lack("c", &[])];
        let lines = commands(&findings, "/opt/my tools/quell");
        assert_eq!(lines[1], ["mount it"]);
        for of in [&lines[0], &lines[2]] {
            let line = of.first().unwrap();
            for part in ["setcap", "cap_bpf", "cap_perfmon", "cap_syslog", "=ep '/opt/my tools/quell'"] {
                assert!(line.contains(part), "{part} is not in {line}");
            }
        }
        assert_eq!(lines[0], lines[2], "one grant would take the other away");
    }

    #[test]
    fn words_are_quoted_where_the_shell_would_read_them_otherwise() {
        assert_eq!(quoted("/usr/bin/quell"), "/usr/bin/quell");
        assert_eq!(quoted("a'b; rm"), r"'a'\''b; rm'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn each_family_of_systems_has_its_package_manager() {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(dir.path().join("etc")).unwrap();
        let of = |text: &str| {
            fs_err::write(dir.path().join("etc/os-release"), text).unwrap();
            install_mpi(Files::under(dir.path()))
        };
        assert!(of("ID=debian\n").unwrap().contains("apt-get"));
        assert!(of("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n").unwrap().contains("dnf"));
        assert_eq!(of("ID=plan9\n"), None);
    }
}
