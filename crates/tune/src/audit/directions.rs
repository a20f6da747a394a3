//! Each kernel file of the catalogue, with values in every direction: the wanted one, stricter ones, worse ones, none, and nonsense.

#![allow(clippy::unwrap_used, reason = "a test may")]
use std::path::{Path, PathBuf};

mod boots;
mod kinds;

use super::*;
use crate::catalogue::{Compare, FileKnob, Knob};
use crate::fake_machine as fake;

/// A file of the catalogue on a made machine.
struct File<'a> {
    mitigation: &'a Mitigation,
    knob: &'a FileKnob,
    want: String,
    /// Where it is, from the root.
    path: String,
    root: &'a Path,
    catalogue: &'a Catalogue,
}

impl File<'_> {
    fn on_disk(&self) -> PathBuf {
        self.root.join(self.path.trim_start_matches('/'))
    }

    /// Whether this value counts as the wanted one; none where the place is not looked at.
    fn counts(&self, value: &str) -> Option<bool> {
        fs_err::create_dir_all(self.on_disk().parent().unwrap()).unwrap();
        fs_err::write(self.on_disk(), format!("{value}\n")).unwrap();
        self.seen().map(|(done, _)| done)
    }

    /// Whether it is done, and what is unknown.
    fn seen(&self) -> Option<(bool, Option<String>)> {
        let found = self.place_state()?;
        assert_eq!(found.want.as_deref().map(str::trim), Some(&*self.want), "{}", self.path);
        Some((found.done, found.why))
    }

    fn place_state(&self) -> Option<PlaceState> {
        let root = Root::at(self.root).unwrap();
        let options = options(self.mitigation);
        let audit =
            audit(&root, self.catalogue, &options, Some(std::slice::from_ref(&self.mitigation.id))).unwrap();
        let place = Place::File { path: self.path.clone() };
        audit.entries[0].places.iter().find(|one| one.place == place).cloned()
    }

    /// Values that count, and values that do not.
    fn directions(&self) -> (Vec<String>, Vec<String>) {
        let number = self.want.parse::<i64>().ok();
        let near = |by: i64| number.map(|number| (number + by).to_string());
        let first = |by: i64| {
            let mut numbers = self.want.split(' ').map(|one| one.parse::<i64>().unwrap());
            let first = (numbers.next().unwrap() + by).to_string();
            Some(numbers.fold(first, |all, one| format!("{all} {one}")))
        };
        let zero = Some("0".to_owned());
        let cpus = |one: &str, all: &str| {
            let place = Place::File { path: self.path.clone() };
            let is_list = place.cpus("0-1").is_some();
            Some(if is_list { all.to_owned() } else { one.to_owned() })
        };
        let every = ["ffffffff"; 8].join(",");
        // A value that the user gave must match exactly.
        let compare = if self.knob.want.needs_value() { Compare::Equal } else { self.knob.compare };
        let (better, worse) = match compare {
            Compare::Equal => (vec![], vec![near(1), near(-1), Some("other".to_owned())]),
            Compare::AtLeast => (vec![near(1)], vec![near(-1)]),
            Compare::AtMost => (vec![near(-1)], vec![near(1)]),
            // With a partner in bytes that is 0 too, 0 is a limit.
            Compare::AtMostNotZero if self.knob.in_bytes.is_some() => (vec![near(-1), zero], vec![near(1)]),
            Compare::AtMostNotZero => (vec![near(-1)], vec![near(1), zero]),
            Compare::FirstAtMost => (vec![first(-1)], vec![first(1)]),
            Compare::AtLeastOrZero => (vec![near(1), zero], vec![near(-1)]),
            Compare::LatencyAtMost => (vec![near(-1), Some("n/a".to_owned())], vec![near(1), zero]),
            Compare::Within => (vec![cpus("1", "0")], vec![cpus(&every, "0-255")]),
            Compare::Covers => (vec![cpus(&every, "0-255")], vec![cpus("1", "0")]),
        };
        let all = |values: Vec<Option<String>>| values.into_iter().flatten();
        let counted = all(better).chain(self.knob.stricter.iter().cloned()).chain([self.want.clone()]);
        let place = Place::File { path: self.path.clone() };
        let strict = |value: &String| self.knob.stricter.iter().any(|one| place.same(one, value));
        // No CPU at all is none outside of the wanted ones, where the file is a list.
        let no_cpus = compare == Compare::Within && place.cpus("").is_some();
        let nonsense =
            NONSENSE.iter().filter(|value| !(no_cpus && value.is_empty())).map(|&one| one.to_owned());
        (counted.collect(), all(worse).filter(|value| !strict(value)).chain(nonsense).collect())
    }
}

/// Values that no kernel has.
const NONSENSE: [&str; 5] = ["", "\u{1b}[2J", "99999999999999999999999999999999999999999999", "nan", "-"];

/// Options with compute CPUs, and with a value where a mitigation needs one.
fn options(mitigation: &Mitigation) -> AuditOptions {
    let wants = mitigation.knob.iter().filter_map(|knob| match knob {
        Knob::File(file) => Some(&file.want),
        Knob::Boot(boot) => Some(&boot.want),
        _ => None,
    });
    let needs = wants.into_iter().any(crate::catalogue::Want::needs_value);
    AuditOptions {
        compute: Some(quell_recording::parse_cpu_list("2-3").unwrap()),
        values: needs.then(|| (mitigation.id.clone(), "16".to_owned())).into_iter().collect(),
        ..AuditOptions::default()
    }
}

/// The path with a name for each of its wildcards.
fn concrete(path: &str) -> String {
    path.replace("/cpu*/", "/cpu2/").replace("kdamonds/*", "kdamonds/0").replace('*', "1")
}

/// A value of the file that a knob has as its condition, under which it is looked at.
fn condition(test: &crate::catalogue::Where) -> &'static str {
    let regex = regex::Regex::new(&test.matches).unwrap();
    let values =
        ["0", "1", "on", "POLL", "C6", "CEDE", "disk_capability", "balanced performance", "tsc hpet"];
    values.into_iter().find(|one| regex.is_match(one)).unwrap_or("2")
}

/// Calls `test` with each kernel file of the catalogue.
fn with_each_file(mut test: impl FnMut(&File<'_>)) {
    let catalogue = Catalogue::built_in();
    for mitigation in catalogue.iter() {
        for knob in &mitigation.knob {
            let Knob::File(knob) = knob else { continue };
            let folder = tempfile::tempdir().unwrap();
            let machine = fake::large(folder.path());
            let path = concrete(&knob.path);
            if let Some(test) = &knob.r#where {
                let other = Path::new(&path).with_file_name(&test.file);
                machine.file(other.to_str().unwrap().trim_start_matches('/'), condition(test));
            }
            let want = knob.want.to_string();
            let mut file = File { mitigation, knob, want, path, root: folder.path(), catalogue: &catalogue };
            // What is wanted on this machine; of a file that is its own condition, its text.
            fs_err::create_dir_all(file.on_disk().parent().unwrap()).unwrap();
            if !file.on_disk().exists() {
                fs_err::write(file.on_disk(), "0\n").unwrap();
            }
            file.want = file.place_state().and_then(|found| found.want).unwrap_or(file.want);
            test(&file);
        }
    }
}

#[test]
fn each_file_of_the_catalogue_knows_worse_from_better() {
    let mut files = 0;
    with_each_file(|file| {
        let (counted, not) = file.directions();
        let condition = file.knob.r#where.as_ref().map(|test| format!("/{}", test.file));
        let of_itself = condition.is_some_and(|condition| file.path.ends_with(&condition));
        for value in counted {
            assert_eq!(file.counts(&value), Some(true), "{}: {value:?}", file.path);
        }
        for value in not {
            // A file that is its own condition is not looked at with a strange value.
            let expected = if of_itself { None } else { Some(false) };
            assert_eq!(file.counts(&value), expected, "{}: {value:?}", file.path);
        }
        fs_err::remove_file(file.on_disk()).unwrap();
        assert!(file.seen().is_none_or(|(done, _)| !done), "{}: absent", file.path);
        // Unreadable, for root too.
        fs_err::create_dir(file.on_disk()).unwrap();
        let unread = file.seen();
        assert!(unread.is_none_or(|(done, why)| !done && why.is_some()), "{}: unreadable", file.path);
        files += 1;
    });
    assert!(files >= 80, "{files}");
}

/// What kernel documentation calls less work than the wanted value: sysctl/kernel.rst and vm.rst, mm/transhuge.rst, hw-vuln/l1tf.rst.
#[test]
fn a_site_that_is_stricter_is_not_made_worse() {
    let mut checked = 0;
    with_each_file(|file| {
        for (path, value, counts) in [
            ("/transparent_hugepage/enabled", "always madvise [never]", true),
            ("/transparent_hugepage/enabled", "[always] madvise never", false),
            ("/transparent_hugepage/defrag", "always defer defer+madvise madvise [never]", true),
            ("/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never", false),
            ("/vm/dirty_background_ratio", "1", true),
            ("/vm/dirty_background_ratio", "10", false),
            ("/core/netdev_budget", "0", true),
            ("/core/netdev_budget_usecs", "0", true),
            ("/kernel/printk", "0\t0\t0\t0", true),
            ("/kernel/printk", "4\t4\t1\t7", false),
            ("/vm/swappiness", "0", true),
            ("/smt/control", "forceoff", true),
            ("/smt/control", "on", false),
        ] {
            if file.path.ends_with(path) {
                assert_eq!(file.counts(value), Some(counts), "{path}: {value:?}");
                checked += 1;
            }
        }
    });
    assert_eq!(checked, 13);
}
