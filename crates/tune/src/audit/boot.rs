//! Options on the kernel's command line: what this boot has, and the file that stages those of the next.

use std::collections::BTreeSet;

use quell_recording::{Cpu, parse_cpu_list};

use super::look::{At, Examined, Examiner, Verdict};
use super::{ByHand, own_file};
use crate::catalogue::{BootKnob, Compare, Knob};
use crate::place::{ABSENT, Place};

/// One option and its state.
struct Wanted {
    /// `isolcpus=1-3`, or why it cannot be determined.
    word: Result<String, String>,
    verdict: Verdict,
    why: Option<String>,
}

impl Examiner<'_> {
    /// Looks at all options of a mitigation, which are staged in one file.
    pub(super) fn boot(&self, at: At<'_>) -> Vec<Examined> {
        let knobs = at.mitigation.knob.iter().filter_map(|knob| match knob {
            Knob::Boot(boot) => Some(boot),
            _ => None,
        });
        let wanted: Vec<Wanted> = knobs.map(|knob| self.option(at, knob)).collect();
        let mut looks: Vec<Examined> = wanted.iter().map(Wanted::look).collect();
        let usable = |one: &&Wanted| matches!(one.verdict, Verdict::Done | Verdict::Not);
        let usable: Vec<&Wanted> = wanted.iter().filter(usable).collect();
        if usable.is_empty() {
            return looks;
        }
        match self.reads_grub_d() {
            true => looks.push(self.staged(at, &usable)),
            false => looks.extend(usable.iter().map(|one| one.by_hand())),
        }
        looks
    }

    fn option(&self, at: At<'_>, knob: &BootKnob) -> Wanted {
        let value = at.fill(&knob.want);
        let word = value.as_ref().map_err(String::clone).map(|value| match value.is_empty() {
            true => knob.option.clone(),
            false => format!("{}={value}", knob.option),
        });
        let wanted = |verdict, why| Wanted { word: word.clone(), verdict, why };
        if let Some(config) = knob.config.as_deref().filter(|config| self.built_without(config)) {
            let why = format!("this kernel is built without {config}, so it does not know `{}`", knob.option);
            return wanted(Verdict::Missing, Some(why));
        }
        let value = match value {
            Ok(value) if plain(&value) && plain(&knob.option) => value,
            Ok(value) => {
                return wanted(Verdict::Unseen, Some(format!("`{value}` is not a plain value of an option")));
            }
            Err(why) => return wanted(Verdict::Unseen, Some(why)),
        };
        if let Some(why) = self.no_command_line() {
            return wanted(Verdict::NotReadable, Some(why));
        }
        let has = self.facts.options().filter_map(|word| value_of(word, &knob.option)).last();
        match has {
            Some(has) if holds(knob, has, &value) => wanted(Verdict::Done, None),
            Some(has) => {
                wanted(Verdict::Not, Some(format!("this boot has `{}={has}`, not `{value}`", knob.option)))
            }
            None => wanted(Verdict::Not, Some(format!("this boot has no `{}`", knob.option))),
        }
    }

    /// The file that stages options for GRUB. An option that this boot has from elsewhere is left to whoever set it.
    fn staged(&self, at: At<'_>, usable: &[&Wanted]) -> Examined {
        let id = &at.mitigation.id;
        let place = Place::DropIn { path: format!("/etc/default/grub.d/90-quell-{id}.cfg") };
        let absent = place.read(self.root).map_or(true, |text| text == ABSENT);
        let all_done = usable.iter().all(|one| one.verdict == Verdict::Done);
        let ours = usable.iter().filter(|one| all_done || !absent || one.verdict == Verdict::Not);
        let words: Vec<&str> = ours.filter_map(|one| one.word.as_deref().ok()).collect();
        let text = format!("GRUB_CMDLINE_LINUX=\"${{GRUB_CMDLINE_LINUX}} {}\"\n", words.join(" "));
        let mut look = self.see(place, Ok(own_file::signed(id, &text)), Compare::Equal, false);
        let is_written = look.verdict == Verdict::Done;
        if let Some(place_state) = &mut look.place_state {
            place_state.done = all_done;
            place_state.staged = true;
            if is_written && !all_done {
                place_state.why = Some("staged already: takes effect after the next boot".into());
            }
        }
        // The state is that of the options. The file counts only if the options are not visible.
        let seen = look.verdict != Verdict::Unseen;
        let verdict = if seen { Verdict::NotMissed } else { Verdict::Unseen };
        let why = look.place_state.as_ref().and_then(|place_state| place_state.why.clone());
        Examined { verdict, why, ..look }
    }

    /// Whether the generator of GRUB's menu reads `/etc/default/grub.d`: Debian's does; distributions that call it grub2 do not.
    fn reads_grub_d(&self) -> bool {
        let has = |path: &str| self.root.has(path);
        has("/etc/default/grub.d") || has("/etc/default/grub") && !has("/usr/sbin/grub2-mkconfig")
    }

    /// Whether the kernel's configuration is readable and lacks an option.
    fn built_without(&self, config: &str) -> bool {
        let has = |line: &str| {
            line.strip_prefix(config).is_some_and(|rest| rest.starts_with("=y") || rest.starts_with("=m"))
        };
        self.lists.config(&self.facts.kernel).is_some_and(|text| !text.lines().any(has))
    }

    /// Why the kernel's command line is not known.
    fn no_command_line(&self) -> Option<String> {
        let error = self.root.read("/proc/cmdline").err()?;
        Some(format!("/proc/cmdline cannot be read: {error}"))
    }
}

impl Wanted {
    fn look(&self) -> Examined {
        Examined { verdict: self.verdict, why: self.why.clone(), place_state: None, by_hand: None }
    }

    fn by_hand(&self) -> Examined {
        let word = self.word.as_deref().unwrap_or_default();
        let by_hand = ByHand {
            todo: format!(
                "add `{word}` to the kernel's command line in the configuration of your boot loader"
            ),
            done: Some(self.verdict == Verdict::Done),
            seen: self.why.clone(),
        };
        Examined { verdict: Verdict::NotMissed, why: None, place_state: None, by_hand: Some(by_hand) }
    }
}

/// Whether a text can be put between double quotes in a shell file.
fn plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.,:=/+@%*~".contains(c))
}

/// The value of an option in a word of the command line; empty if it has none. Hyphens and underscores are equivalent.
fn value_of<'w>(word: &'w str, option: &str) -> Option<&'w str> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    (name.replace('-', "_") == option.replace('-', "_")).then_some(value)
}

/// Whether an option's value has what is wanted: a number or CPUs as the knob compares them, and at least the wanted flags.
fn holds(knob: &BootKnob, has: &str, want: &str) -> bool {
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
fn flags<'v>(option: &str, value: &'v str) -> (BTreeSet<&'v str>, String) {
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
            let knob = BootKnob { option: option.into(), want: want_text, compare, stricter, config: None };
            assert_eq!(holds(&knob, has, want), good, "{option}: {has} for {want}");
        }
        assert_eq!(value_of("rcu-nocbs=1", "rcu_nocbs"), Some("1"));
        assert_eq!(value_of("nohz_full_patience_delay=1", "nohz_full"), None);
    }
}
