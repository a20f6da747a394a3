//! What this boot's kernel does with its options: which flags it knows, what its files show, and how it was built.

use std::os::unix::fs::MetadataExt as _;

use fs_err as fs;
use quell_recording::parse_cpu_list;

use super::look::Examiner;
use super::options::{flags, holds};
use crate::catalogue::BootKnob;

const GRUB_D: &str = "/etc/default/grub.d";

/// A value without the flags that a kernel does not know: an older kernel refuses the option as a whole.
///
/// # Errors
/// Why nothing of it is left.
pub fn for_kernel(knob: &BootKnob, value: &str, release: &str) -> Result<String, String> {
    let unknown = |part: &str| knob.flags_since.get(part).filter(|since| is_older(release, since));
    let Some(since) = value.split(',').filter_map(unknown).next_back() else { return Ok(value.to_owned()) };
    let rest: Vec<&str> = value.split(',').filter(|part| unknown(part).is_none()).collect();
    let rest = rest.join(",");
    let ((wanted, _), (left, _)) = (flags(&knob.option, value), flags(&knob.option, &rest));
    match left.is_subset(&wanted) {
        true => Ok(rest),
        false => {
            Err(format!("Linux {since} and later know `{}={value}`, and this is {release}", knob.option))
        }
    }
}

/// Whether a kernel's release is older than a version.
pub fn is_older(release: &str, than: &str) -> bool {
    let version = |text: &str| {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??))
    };
    version(release).zip(version(than)).is_some_and(|(release, than)| release < than)
}

impl Examiner<'_> {
    /// Whether the kernel's own files show that the option is in force, whatever the command line has; none if they do not show it. `has` is
    /// the value on the command line that counts.
    pub(super) fn in_force(&self, knob: &BootKnob, has: Option<&str>, want: &str) -> Option<bool> {
        let file = match knob.option.as_str() {
            "isolcpus" => "isolated",
            "nohz_full" => "nohz_full",
            _ => return None,
        };
        let (mut wanted_flags, list) = flags(&knob.option, want);
        // The files show the CPUs without load balancing, and those without a tick. They do not show the other flags.
        if knob.option == "isolcpus" && !wanted_flags.remove("domain") {
            return None;
        }
        let shown = crate::facts::cpus(self.root, &format!("/sys/devices/system/cpu/{file}")).ok()?;
        let wanted = parse_cpu_list(&list).ok()?;
        let rest: Vec<&str> = wanted_flags.into_iter().chain([list.as_str()]).collect();
        let rest_holds = rest.len() == 1 || has.is_some_and(|has| holds(knob, has, &rest.join(",")));
        Some(rest_holds && wanted.iter().all(|cpu| shown.contains(cpu)))
    }

    /// Whether the kernel was built with an option; none if its configuration is not readable.
    pub(super) fn built_with(&self, config: &str) -> Option<bool> {
        let has = |line: &str| {
            line.strip_prefix(config).is_some_and(|rest| rest.starts_with("=y") || rest.starts_with("=m"))
        };
        self.lists.config(&self.facts.kernel).map(|text| text.lines().any(has))
    }

    /// The words that quell's files stage.
    pub(super) fn staged_words(&self) -> Vec<String> {
        let names = self.root.names(GRUB_D).into_iter();
        let texts = names
            .filter(|name| name.starts_with("90-quell-"))
            .filter_map(|name| self.root.read(&format!("{GRUB_D}/{name}")).ok());
        let words = |text: String| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("GRUB_CMDLINE_LINUX=\""));
            lines
                .flat_map(|line| line.trim_end_matches('"').split(' '))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        texts.flat_map(words).collect()
    }

    /// Whether a file was written since this boot; none if that is not visible.
    pub(super) fn is_newer_than_boot(&self, path: &str) -> Option<bool> {
        let stat = self.root.read("/proc/stat").ok()?;
        let boot: i64 = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        Some(fs::metadata(self.root.path(path)).ok()?.mtime() >= boot)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;
    use crate::catalogue::Compare;

    #[test]
    fn an_older_kernel_is_asked_for_what_it_knows() {
        let since = [("domain", "4.15"), ("managed_irq", "5.6")];
        let knob = BootKnob {
            option: "isolcpus".into(),
            want: String::new().try_into().unwrap(),
            compare: Compare::Covers,
            stricter: Vec::new(),
            config: None,
            config_since: None,
            built_in: None,
            flags_since: since.map(|(flag, since)| (flag.to_owned(), since.to_owned())).into(),
        };
        for (release, value, expected) in [
            ("6.12.9-fake", "domain,managed_irq,2-3", Some("domain,managed_irq,2-3")),
            ("5.6.0", "domain,managed_irq,2-3", Some("domain,managed_irq,2-3")),
            ("5.5.19-1", "domain,managed_irq,2-3", Some("domain,2-3")),
            ("4.18.0-305.el8.x86_64", "domain,managed_irq,2-3", Some("domain,2-3")),
            // Without a flag it means the domain.
            ("3.10.0-1160.el7", "domain,managed_irq,2-3", Some("2-3")),
            ("4.18.0", "managed_irq,2-3", None),
            ("unknown", "managed_irq,2-3", Some("managed_irq,2-3")),
        ] {
            let found = for_kernel(&knob, value, release);
            assert_eq!(found.as_deref().ok(), expected, "{release}: {found:?}");
        }
    }
}
