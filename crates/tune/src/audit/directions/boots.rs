//! Boot options, each with values in every direction.

use std::collections::BTreeSet;

use super::NONSENSE;
use super::kinds::{place, seen, with_each};
use crate::audit::{ByHand, State};
use crate::catalogue::{BootKnob, Catalogue, Compare, Fills, Knob, Part};
use crate::place::Place;
use quell_recording::parse_cpu_list;

/// CPU 2 and 3 of the large machine.
struct Wanted;

impl Fills for Wanted {
    fn list(&self, part: Part) -> Result<String, String> {
        Ok(if part == Part::Compute { "2-3" } else { "0-1,4-255" }.into())
    }

    fn mask(&self, _part: Part) -> Result<String, String> {
        unreachable!("no such knob has a mask")
    }

    fn value(&self) -> Result<String, String> {
        Ok("16".into())
    }
}

fn boot(knob: &Knob) -> Option<&BootKnob> {
    if let Knob::Boot(boot) = knob { Some(boot) } else { None }
}

/// Values of a boot option that count, and that do not.
fn boot_values(knob: &BootKnob) -> (Vec<String>, Vec<String>) {
    let want = knob.want.fill(&Wanted).unwrap();
    let near = |by: i64| want.parse::<i64>().ok().map(|number| (number + by).to_string());
    let other = |from: &str, to: &str| Some(want.replace(from, to));
    let (better, worse) = match knob.compare {
        Compare::AtLeast => (near(1), near(-1)),
        Compare::AtMost => (near(-1), near(1)),
        Compare::Covers => (other("2-3", "1-3"), other("2-3", "2")),
        Compare::Within => (other("0-1,4-255", "0"), other("0-1,4-255", "0-255")),
        _ => (None, near(1).or_else(|| Some("other".into()))),
    };
    let mut good: Vec<String> = better.into_iter().chain(knob.stricter.iter().cloned()).collect();
    good.push(want.clone());
    // An option without a value counts with any value.
    let nonsense = NONSENSE.iter().map(|&one| one.to_owned());
    let bad = worse.into_iter().chain(nonsense).filter(|value| !good.contains(value) && !want.is_empty());
    let bad = bad.collect();
    (good, bad)
}

/// What the kernel shows for its first `isolcpus`.
fn isolated(line: &str) -> String {
    let value = line.split(' ').find_map(|word| word.strip_prefix("isolcpus=")).unwrap_or_default();
    let (flags, cpus): (Vec<&str>, Vec<&str>) =
        value.split(',').partition(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()));
    let domain = flags.is_empty() || flags.contains(&"domain");
    if domain && parse_cpu_list(&cpus.join(",")).is_ok() { cpus.join(",") } else { String::new() }
}

#[test]
fn each_boot_option_knows_worse_from_better() {
    let catalogue = Catalogue::built_in();
    let count = with_each(&catalogue, boot, |mitigation, knobs: Vec<&BootKnob>, machine, folder| {
        let id = &mitigation.id;
        let configs: BTreeSet<&str> = knobs.iter().filter_map(|knob| knob.config.as_deref()).collect();
        let built: String = configs.iter().map(|config| format!("{config}=y\n")).collect();
        let config_file = "boot/config-6.12.9-fake";
        let staged = Place::DropIn { path: format!("/etc/default/grub.d/90-quell-{id}.cfg") };
        let boots = |line: &str| {
            machine.file("proc/cmdline", line);
            machine.file("sys/devices/system/cpu/isolated", &isolated(line));
        };
        let done = |line: &str| {
            boots(line);
            place(folder, mitigation, None, |one| *one == staged).map(|state| state.done)
        };
        // Quell's own value would be ignored, or ignored in part.
        let is_replaced = |line: &str| {
            boots(line);
            let replaced = |hand: &ByHand| hand.done == Some(false) && hand.todo.starts_with("replace ");
            seen(folder, mitigation, None, |one| {
                one.state != State::Applied && one.by_hand.iter().any(replaced)
            })
        };
        for knob in &knobs {
            machine.file(config_file, &built);
            let name = &knob.option;
            let word = |knob: &BootKnob, value: &str| format!("{}={value}", knob.option);
            let others = knobs.iter().filter(|other| other.option != *name);
            let rest: Vec<String> =
                others.map(|other| word(other, &other.want.fill(&Wanted).unwrap())).collect();
            let rest = rest.join(" ");
            let (good, bad) = boot_values(knob);
            for value in &good {
                let line = format!("ro {rest} {} quiet", word(knob, value));
                assert_eq!(done(&line), Some(true), "{id}: {line}");
                // What follows `--` is for init.
                let line = format!("ro {rest} -- {}", word(knob, value));
                assert_eq!(done(&line), Some(false), "{id}: {line}");
            }
            for value in &bad {
                let (good, bad) = (word(knob, &good[0]), word(knob, value));
                let first_counts = ["isolcpus", "nohz_full", "hugepages"].contains(&name.as_str());
                let both = if first_counts { [&bad, &good] } else { [&good, &bad] };
                for line in [format!("ro {rest} {} {}", both[0], both[1]), format!("ro {rest} {bad}")] {
                    assert!(is_replaced(&line), "{id}: {line:?}");
                }
            }
            assert_eq!(done(&format!("ro {rest} x{name}=1")), Some(false), "{id}: absent");
            if let (Some(config), 1) = (&knob.config, knobs.len()) {
                machine.file(config_file, &format!("CONFIG_SMP=y\n# {config} is not set\n{config}_X=y"));
                assert_eq!(done("ro"), None, "{id}: {config}");
            }
            if let Some(built_in) = &knob.built_in {
                machine.file(config_file, &format!("{built}{built_in}=y"));
                assert_eq!(done("ro"), Some(true), "{id}: {built_in}");
            }
        }
        let only_boot = mitigation.knob.len() == knobs.len();
        machine.file(config_file, &built);
        fs_err::remove_file(folder.join("proc/cmdline")).unwrap();
        fs_err::create_dir(folder.join("proc/cmdline")).unwrap();
        let state = seen(folder, mitigation, None, |one| one.state);
        assert!(state == State::NotReadable || !only_boot, "{id}: {state:?}");
        assert_ne!(state, State::Applied, "{id}");
    });
    assert!(count >= 25, "{count}");
}
