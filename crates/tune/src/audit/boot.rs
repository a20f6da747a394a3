//! Options on the kernel's command line: what this boot has, and the file that stages those of the next.

use super::kernel::{for_kernel, is_older};
use super::look::{At, Examined, Examiner, Verdict};
use super::options::{holds, incomparable, that_counts, value_of};
use super::{ByHand, own_file};
use crate::catalogue::{BootKnob, Compare, Knob};
use crate::place::{ABSENT, Place};

/// One option and its state.
struct Wanted {
    /// `isolcpus=1-3`, or why it cannot be determined.
    word: Result<String, String>,
    verdict: Verdict,
    why: Option<String>,
    /// What to do with values that this boot has from elsewhere: one of quell's in addition would be ignored, or ignored in part.
    elsewhere: Option<String>,
}

impl Examiner<'_> {
    /// Looks at all options of a mitigation, which are staged in one file.
    pub(super) fn boot(&self, at: At<'_>) -> Vec<Examined> {
        let knobs = at.mitigation.knob.iter().filter_map(|knob| match knob {
            Knob::Boot(boot) => Some(boot),
            _ => None,
        });
        let path = file_of(&at.mitigation.id);
        let staged = self.staged_words();
        // If the file is new, this boot may have a value of its former text.
        let new = self.is_newer_than_boot(&path) == Some(true);
        let name = |word: &str| word.split('=').next().map(str::to_owned);
        let is_ours = |word: &str| staged.iter().any(|one| one == word || new && name(one) == name(word));
        let wanted: Vec<Wanted> = knobs.map(|knob| self.option(at, knob, &is_ours)).collect();
        let mut looks: Vec<Examined> = wanted.iter().map(Wanted::look).collect();
        let usable = |one: &&Wanted| matches!(one.verdict, Verdict::Done | Verdict::Not);
        let usable: Vec<&Wanted> = wanted.iter().filter(usable).collect();
        if usable.is_empty() {
            return looks;
        }
        let (elsewhere, usable): (Vec<&Wanted>, Vec<&Wanted>) =
            usable.into_iter().partition(|one| one.elsewhere.is_some());
        looks.extend(elsewhere.iter().map(|one| one.by_hand()));
        match self.reads_grub_d() {
            true if usable.is_empty() => {}
            true => looks.push(self.staged(at, &usable, path)),
            false => looks.extend(usable.iter().map(|one| one.by_hand())),
        }
        looks
    }

    fn option(&self, at: At<'_>, knob: &BootKnob, is_ours: &impl Fn(&str) -> bool) -> Wanted {
        let filled = at.fill(&knob.want);
        let known = filled.as_ref().map(|value| for_kernel(knob, value, &self.facts.kernel));
        let too_old = known.as_ref().ok().and_then(|known| known.as_ref().err().cloned());
        let value = filled.clone().map(|value| known.ok().and_then(Result::ok).unwrap_or(value));
        let word = value.as_ref().map_err(String::clone).map(|value| match value.is_empty() {
            true => knob.option.clone(),
            false => format!("{}={value}", knob.option),
        });
        let wanted = |verdict, why| Wanted { word: word.clone(), verdict, why, elsewhere: None };
        if too_old.is_some() {
            return wanted(Verdict::Missing, too_old);
        }
        let has_config = knob.config_since.as_ref().is_none_or(|since| !is_older(&self.facts.kernel, since));
        let without = |config: &&str| has_config && self.built_with(config) == Some(false);
        if let Some(config) = knob.config.as_deref().filter(without) {
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
        if incomparable(&knob.option, self.facts.options()) {
            let why =
                "this boot reserves huge pages by size or node: compare them in /sys/kernel/mm/hugepages";
            return wanted(Verdict::Unseen, Some(why.into()));
        }
        let values: Vec<&str> =
            self.facts.options().filter_map(|word| value_of(word, &knob.option)).collect();
        let counts = that_counts(&knob.option, &values);
        let has = counts.as_deref();
        let on_line = has.is_some_and(|has| holds(knob, has, &value));
        let built_in =
            knob.built_in.as_deref().filter(|config| has.is_none() && self.built_with(config) == Some(true));
        if let Some(config) = built_in {
            return wanted(Verdict::Done, Some(format!("this kernel is built with {config}")));
        }
        if self.in_force(knob, has, &value).unwrap_or(on_line) {
            return wanted(Verdict::Done, None);
        }
        let name = &knob.option;
        let why = match has {
            Some(has) if on_line => {
                format!(
                    "this boot has `{name}={has}`, and the kernel does not do it: `dmesg` may have the reason"
                )
            }
            Some(has) => format!("this boot has `{name}={has}`, not `{value}`"),
            None => format!("this boot has no `{name}`"),
        };
        let word_of = |value: &&str| format!("{name}={value}");
        let strange = |word: &String| !is_ours(word);
        let strangers: Vec<String> = values.iter().map(word_of).filter(strange).collect();
        Wanted {
            elsewhere: replace(&strangers, &format!("{name}={value}")),
            ..wanted(Verdict::Not, Some(why))
        }
    }

    /// The file that stages options for GRUB. An option that this boot has from elsewhere is left to whoever set it.
    fn staged(&self, at: At<'_>, usable: &[&Wanted], path: String) -> Examined {
        let id = &at.mitigation.id;
        let older = self.is_newer_than_boot(&path) == Some(false);
        let place = Place::DropIn { path };
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
                let why = match older {
                    true => {
                        "staged before this boot, and not in force: run `update-grub` and boot again; `dmesg` names options that the kernel refused"
                    }
                    false => "staged already: takes effect after the next boot",
                };
                place_state.why = Some(why.into());
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
        let add =
            || format!("add `{word}` to the kernel's command line in the configuration of your boot loader");
        let by_hand = ByHand {
            todo: self.elsewhere.clone().unwrap_or_else(add),
            done: Some(self.verdict == Verdict::Done),
            seen: self.why.clone(),
        };
        Examined { verdict: Verdict::NotMissed, why: None, place_state: None, by_hand: Some(by_hand) }
    }
}

/// The file that stages the options of a mitigation.
fn file_of(id: &str) -> String {
    format!("/etc/default/grub.d/90-quell-{id}.cfg")
}

/// The step by hand for options that this boot has from elsewhere; none if it has none.
fn replace(strangers: &[String], word: &str) -> Option<String> {
    let others: Vec<String> =
        strangers.iter().filter(|one| *one != word).map(|one| format!("`{one}`")).collect();
    match (strangers.is_empty(), others.is_empty()) {
        (true, _) => None,
        (_, true) => Some(format!("look in `dmesg` for the reason why the kernel does not do `{word}`")),
        _ => {
            let others = others.join(" and ");
            Some(format!(
                "replace {others} by `{word}` where it is set: in the configuration of your boot loader; or boot once, if quell had set it and was reverted since"
            ))
        }
    }
}

/// Whether a text can be put between double quotes in a shell file.
fn plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.,:=/+@%*~".contains(c))
}
