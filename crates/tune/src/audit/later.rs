//! Other programs' drop-ins for systemd that are read after one of quell's, and set the same keys to other values.

use std::collections::BTreeMap;

use quell_recording::parse_cpu_list;

use super::ByHand;
use super::look::{Examined, Examiner, Verdict};

/// Folders of drop-ins. All files are read in the order of their names. A file in one folder hides those of the same name in later folders.
const BASES: [&str; 5] = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"];

impl Examiner<'_> {
    /// The step by hand for each such file. `text` is what quell's file sets.
    pub(super) fn later_files(&self, path: &str, text: &str) -> Vec<Examined> {
        let Some((folder, ours)) = path.strip_prefix("/etc/").and_then(|path| path.rsplit_once('/')) else {
            return Vec::new();
        };
        let wanted = keys(text);
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        for base in BASES {
            let names = self.root.names(&format!("{base}/{folder}"));
            for name in names.into_iter().filter(|name| name.ends_with(".conf") && name.as_str() > ours) {
                let file = format!("{base}/{folder}/{name}");
                files.entry(name).or_insert(file);
            }
        }
        let mut steps = Vec::new();
        for file in files.into_values() {
            let others = keys(&self.root.read(&file).unwrap_or_default());
            let differs = |(key, value): &(&(String, String), &String)| {
                wanted.get(*key).is_some_and(|wanted| !is_as_good(key, value, wanted))
            };
            let set: Vec<String> = others
                .iter()
                .filter(differs)
                .map(|((section, key), value)| format!("`{key}={value}` of {section}"))
                .collect();
            if !set.is_empty() {
                steps.push(step(path, &file, &set.join(" and ")));
            }
        }
        steps
    }
}

fn step(path: &str, file: &str, set: &str) -> Examined {
    let seen = format!("{file} has {set}, and is read after {path}");
    let by_hand =
        ByHand { todo: format!("remove {set} from {file}"), done: Some(false), seen: Some(seen.clone()) };
    Examined { verdict: Verdict::Not, why: Some(seen), place_state: None, by_hand: Some(by_hand) }
}

/// The last value of each key, by section. Lists of CPUs add up, also to quell's, which an empty value drops; of other keys it counts for none.
fn keys(text: &str) -> BTreeMap<(String, String), String> {
    let mut section = String::new();
    let mut keys = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if line.starts_with('[') {
            section = line.to_owned();
        } else if let Some((key, value)) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
        {
            let place = (section.clone(), key.to_owned());
            match (key, value) {
                ("CPUAffinity", "") => drop(keys.insert(place, String::new())),
                ("CPUAffinity", more) => {
                    let all = keys.entry(place).or_default();
                    *all = format!("{all} {more}").trim_start().to_owned();
                }
                (_, "") => {}
                _ => drop(keys.insert(place, value.to_owned())),
            }
        }
    }
    keys
}

/// Whether a later value changes nothing: it is the same, or CPUs among those that are wanted.
fn is_as_good((_, key): &(String, String), value: &str, wanted: &str) -> bool {
    let cpus = |text: &str| {
        let list: Vec<&str> = text.split([' ', ',']).filter(|part| !part.is_empty()).collect();
        parse_cpu_list(&list.join(",")).ok()
    };
    let among =
        || Some(cpus(value)?.iter().all(|cpu| cpus(wanted).is_some_and(|wanted| wanted.contains(cpu))));
    value == wanted || key == "CPUAffinity" && !value.is_empty() && among() == Some(true)
}
