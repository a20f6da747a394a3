//! Whether a value that the user sets can be one of a mitigation's settings.

use super::{BootKnob, Compare, FileKnob, Knob, Mitigation};

impl Mitigation {
    /// Refuses a value that is not of the kind of the setting for which it is used. Only entries that compare numbers state a kind: any other
    /// setting may take words that the catalogue does not list, as `energy_perf_bias` does.
    ///
    /// # Errors
    /// The setting, and what it accepts.
    pub fn check_value(&self, value: &str) -> Result<(), String> {
        let mut is_first = true;
        for knob in &self.knob {
            let refused = match knob {
                Knob::File(file) => {
                    let gets_value = std::mem::take(&mut is_first) || file.want.needs_value();
                    gets_value.then(|| of_file(file, value)).flatten()
                }
                Knob::Boot(boot) => of_boot(boot, value),
                _ => None,
            };
            if let Some(refused) = refused {
                return Err(refused);
            }
        }
        Ok(())
    }
}

/// Why a file does not take a value.
fn of_file(file: &FileKnob, value: &str) -> Option<String> {
    let want = file.want.to_string();
    // Of a text that only contains the value, the kind is not known.
    let (takes, accepted) = kind(file.compare).filter(|(takes, _)| want == VALUE || takes(&want))?;
    let example = if want == VALUE { String::new() } else { format!(", such as `{want}`") };
    (!takes(value)).then(|| format!("{} takes {accepted}{example}", file.path))
}

/// Why a boot option does not take a value. What follows the first digit can be a unit, or a list such as `0:8,1:8`.
fn of_boot(boot: &BootKnob, value: &str) -> Option<String> {
    let is_number = matches!(boot.compare, Compare::AtLeast | Compare::AtMost);
    let is_checked = is_number && boot.want.to_string() == VALUE;
    let begins_with_digit = value.trim().trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    (is_checked && !begins_with_digit).then(|| format!("the boot option `{}` takes a number", boot.option))
}

/// A wanted text that is nothing but the user's value.
const VALUE: &str = "${value}";

type Kind = (fn(&str) -> bool, &'static str);

/// The kind of the values that are compared in one way, where that gives one: a test, and its description.
fn kind(compare: Compare) -> Option<Kind> {
    match compare {
        Compare::AtLeast | Compare::AtMost | Compare::AtLeastOrZero => Some((is_number, "a number")),
        Compare::AtMostNotZero => {
            Some((|text| text.split(',').all(is_number), "a number, or several with commas between them"))
        }
        Compare::FirstAtMost => {
            Some((|text| text.split_whitespace().all(is_number), "numbers with blanks between them"))
        }
        Compare::LatencyAtMost => {
            Some((|text| text.trim() == "n/a" || is_number(text), "a number of µs, or `n/a`"))
        }
        Compare::Equal | Compare::Within | Compare::Covers => None,
    }
}

/// Whether the kernel reads it as a whole number, also a hexadecimal one.
fn is_number(text: &str) -> bool {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit()),
        None => !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::super::Catalogue;
    use super::*;

    #[test]
    fn values_of_another_kind_are_refused() {
        let catalogue = Catalogue::built_in();
        for (id, value, reason) in [
            ("vm-stat-interval", "abc", "/proc/sys/vm/stat_interval takes a number, such as `20`"),
            ("vm-stat-interval", "20s", "takes a number"),
            ("hugepages-static", "many", "/proc/sys/vm/nr_hugepages takes a number"),
            ("hugepages-boot", "many", "the boot option `hugepages` takes a number"),
            ("pm-qos-percpu", "low", "takes a number of µs, or `n/a`, such as `3`"),
            ("kipmid", "100,x", "takes a number, or several"),
            ("printk-console", "1 quiet", "takes numbers with blanks between them, such as `1 4 1 7`"),
        ] {
            let refused = catalogue.get(id).unwrap().check_value(value).unwrap_err();
            assert!(refused.contains(reason), "{id}={value}: {refused}");
        }
    }

    #[test]
    fn values_of_the_kind_and_of_unknown_kinds_are_accepted() {
        let catalogue = Catalogue::built_in();
        for (id, value) in [
            ("vm-stat-interval", "60"),
            ("vm-stat-interval", " 0x3c "),
            ("hugepages-static", "4"),
            ("hugepages-boot", "0:8,1:8"),
            ("pm-qos-percpu", "n/a"),
            ("kipmid", "100,200"),
            ("printk-console", "1"),
            // Words that the catalogue does not list.
            ("epb", "balance-power"),
            ("thp", "always"),
            ("irq-cpu0", "3,00000000"),
            ("watchdog-cpumask", "0-1"),
            ("preempt-mode", "none"),
        ] {
            assert_eq!(catalogue.get(id).unwrap().check_value(value), Ok(()), "{id}={value}");
        }
    }

    #[test]
    fn the_catalogues_own_values_are_accepted() {
        let catalogue = Catalogue::built_in();
        for one in catalogue.iter() {
            let file = one.knob.iter().find_map(|knob| match knob {
                Knob::File(file) if !file.want.needs_value() => Some(file),
                _ => None,
            });
            if let Some(file) = file {
                assert_eq!(one.check_value(&file.want.to_string()), Ok(()), "{}", one.id);
            }
        }
    }
}
