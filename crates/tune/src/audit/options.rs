//! Values of options on the kernel's command line: which one counts, and whether it has what is wanted.

use std::collections::BTreeSet;

use quell_recording::{Cpu, parse_cpu_list};

use crate::catalogue::{BootKnob, Compare};

/// Options of which the kernel keeps the first value, and ignores another one that comes later.
const FIRST_COUNTS: [&str; 3] = ["isolcpus", "nohz_full", "hugepages"];

/// Of the values of an option on one command line, the one that counts. A later `isolcpus` cannot change the CPUs, and can add flags.
pub fn that_counts(option: &str, values: &[&str]) -> Option<String> {
    if !FIRST_COUNTS.contains(&option) {
        return values.last().map(|value| (*value).to_owned());
    }
    let (first, more) = values.split_first()?;
    let (mut all, cpus) = flags(option, first);
    let of_same = more.iter().map(|value| flags(option, value)).filter(|(_, others)| *others == cpus);
    let count = all.len();
    of_same.for_each(|(flags, _)| all.extend(flags));
    if all.len() == count {
        return Some((*first).to_owned());
    }
    Some(all.into_iter().chain([cpus.as_str()]).collect::<Vec<_>>().join(","))
}

/// Why the number of an option cannot be compared: each `hugepages` belongs to the size before it, or to nodes.
pub fn incomparable<'w>(option: &str, mut words: impl Iterator<Item = &'w str>) -> bool {
    let of_sizes = |word: &str| {
        ["hugepagesz", "default_hugepagesz"].iter().any(|name| value_of(word, name).is_some())
            || value_of(word, "hugepages").is_some_and(|value| value.contains(':'))
    };
    option == "hugepages" && words.any(of_sizes)
}

/// The value of an option in a word of the command line; empty if it has none. Hyphens and underscores are equivalent.
pub fn value_of<'w>(word: &'w str, option: &str) -> Option<&'w str> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    (name.replace('-', "_") == option.replace('-', "_")).then_some(value)
}

/// Whether an option's value has what is wanted: a number or CPUs as the knob compares them, and at least the wanted flags.
pub fn holds(knob: &BootKnob, has: &str, want: &str) -> bool {
    if want.is_empty() || has == want || knob.stricter.iter().any(|one| one == has) {
        return true;
    }
    let number = |text: &str| text.parse::<u64>().ok();
    match knob.compare {
        Compare::AtLeast => return number(has).zip(number(want)).is_some_and(|(has, want)| has >= want),
        Compare::AtMost => return number(has).zip(number(want)).is_some_and(|(has, want)| has <= want),
        _ => {}
    }
    let option = &knob.option;
    let ((has_flags, has_cpus), (want_flags, want_cpus)) = (flags(option, has), flags(option, want));
    let (Ok(has), Ok(want)) = (parse_cpu_list(&has_cpus), parse_cpu_list(&want_cpus)) else { return false };
    let all = |these: &[Cpu], of: &[Cpu]| these.iter().all(|cpu| of.contains(cpu));
    let enough = match knob.compare {
        Compare::Within => !has.is_empty() && all(&has, &want),
        Compare::Covers => all(&want, &has),
        _ => has == want,
    };
    enough && want_flags.is_subset(&has_flags)
}

/// The flags before a CPU list, and the list. Without flags, `isolcpus` means `domain`.
pub fn flags<'v>(option: &str, value: &'v str) -> (BTreeSet<&'v str>, String) {
    let is_flag = |part: &&str| part.starts_with(|c: char| c.is_ascii_alphabetic());
    let (mut flags, rest): (BTreeSet<&str>, Vec<&str>) =
        (value.split(',').take_while(is_flag).collect(), value.split(',').skip_while(is_flag).collect());
    if flags.is_empty() && option == "isolcpus" {
        flags.insert("domain");
    }
    (flags, rest.join(","))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;

    #[test]
    fn options_are_read_as_the_kernel_reads_them() {
        use Compare::{AtLeast, AtMost, Covers, Equal, Within};
        for (option, has, want, compare, good) in [
            ("isolcpus", "domain,managed_irq,1-3", "managed_irq,domain,1,2,3", Equal, true),
            ("isolcpus", "domain,managed_irq,1-3", "domain,1-3", Equal, true),
            ("isolcpus", "1-3", "domain,1-3", Equal, true),
            ("isolcpus", "1-3", "domain,managed_irq,1-3", Equal, false),
            ("isolcpus", "domain,1-2", "domain,1-3", Covers, false),
            ("isolcpus", "domain,1-4", "domain,1-3", Covers, true),
            ("isolcpus", "nohz,1-4", "domain,1-3", Covers, false),
            ("nohz_full", "1-3", "1,2-3", Equal, true),
            ("nohz_full", "0-3", "1-3", Covers, true),
            ("nohz_full", "all", "1-3", Covers, true),
            ("nohz_full", "", "1-3", Covers, false),
            ("irqaffinity", "0", "0,4", Within, true),
            ("irqaffinity", "0-1", "0,4", Within, false),
            ("irqaffinity", "", "0,4", Within, false),
            ("skew_tick", "1", "1", Equal, true),
            ("skew_tick", "0", "1", Equal, false),
            ("hugepages", "17", "16", AtLeast, true),
            ("hugepages", "15", "16", AtLeast, false),
            ("hugepages", "-1", "16", AtLeast, false),
            ("x.max_cstate", "0", "1", AtMost, true),
            ("tsc", "reliable", "reliable", Equal, true),
            ("tsc", "unstable", "reliable", Equal, false),
            ("nosmt", "force", "", Equal, true),
        ] {
            let stricter = vec!["all".to_owned()];
            let want_text = want.to_owned().try_into().unwrap();
            let (config, config_since, built_in) = (None, None, None);
            let flags_since = std::collections::BTreeMap::new();
            let option = option.to_owned();
            let knob = BootKnob {
                option,
                want: want_text,
                compare,
                stricter,
                config,
                config_since,
                built_in,
                flags_since,
            };
            let option = &knob.option;
            assert_eq!(holds(&knob, has, want), good, "{option}: {has} for {want}");
        }
        for (option, values, counts) in [
            ("nohz_full", &["1", "2"][..], "1"),
            ("skew_tick", &["1", "0"], "0"),
            ("isolcpus", &["domain,2-3", "managed_irq,2-3"], "domain,managed_irq,2-3"),
            ("isolcpus", &["domain,2-3", "managed_irq,1-3"], "domain,2-3"),
            ("isolcpus", &["2-3"], "2-3"),
        ] {
            assert_eq!(that_counts(option, values).as_deref(), Some(counts));
        }
        assert_eq!(that_counts("nohz_full", &[]), None);
        let sizes = |line: &str| incomparable("hugepages", line.split(' '));
        assert!(
            sizes("hugepagesz=1G hugepages=4")
                && sizes("hugepages=0:8,1:8")
                && sizes("default-hugepagesz=1G")
        );
        assert!(!sizes("quiet hugepages=16") && !incomparable("nohz_full", "hugepagesz=1G".split(' ')));
        assert_eq!(value_of("rcu-nocbs=1", "rcu_nocbs"), Some("1"));
        assert_eq!(value_of("nohz_full_patience_delay=1", "nohz_full"), None);
    }
}
