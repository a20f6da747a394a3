//! Each kernel file of the catalogue, with values in every direction: the wanted one, stricter ones, worse ones, none, and nonsense.

#![allow(clippy::unwrap_used, reason = "a test may")]
use std::path::{Path, PathBuf};

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
        let root = Root::at(self.root).unwrap();
        let compute = quell_recording::parse_cpu_list("2-3").unwrap();
        let options = AuditOptions { compute: Some(compute), ..AuditOptions::default() };
        let audit =
            audit(&root, self.catalogue, &options, Some(std::slice::from_ref(&self.mitigation.id))).unwrap();
        let place = Place::File { path: self.path.clone() };
        let found = audit.entries[0].places.iter().find(|one| one.place == place)?;
        assert_eq!(found.want.as_deref().map(str::trim), Some(&*self.want), "{}", self.path);
        Some((found.done, found.why.clone()))
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
        let (better, worse) = match self.knob.compare {
            Compare::Equal => (vec![], vec![near(1), near(-1), Some("other".to_owned())]),
            Compare::AtLeast => (vec![near(1)], vec![near(-1)]),
            Compare::AtMost => (vec![near(-1)], vec![near(1)]),
            Compare::AtMostNotZero => (vec![near(-1)], vec![near(1), zero]),
            Compare::FirstAtMost => (vec![first(-1)], vec![first(1)]),
            Compare::AtLeastOrZero => (vec![near(1), zero], vec![near(-1)]),
            Compare::LatencyAtMost => (vec![near(-1), Some("n/a".to_owned())], vec![near(1), zero]),
            Compare::Within | Compare::Covers => unreachable!("those are CPUs"),
        };
        let all = |values: Vec<Option<String>>| values.into_iter().flatten();
        let counted = all(better).chain(self.knob.stricter.iter().cloned()).chain([self.want.clone()]);
        let nonsense =
            ["", "\u{1b}[2J", "99999999999999999999999999999999999999999999", "nan"].map(str::to_owned);
        (counted.collect(), all(worse).chain(nonsense).collect())
    }
}

/// The path with a name for each of its wildcards.
fn concrete(path: &str) -> String {
    path.replace("/cpu*/", "/cpu2/").replace("kdamonds/*", "kdamonds/0").replace('*', "1")
}

/// A value of the file that a knob has as its condition, under which it is looked at.
fn condition(test: &crate::catalogue::Where) -> &'static str {
    let regex = regex::Regex::new(&test.matches).unwrap();
    let values = ["0", "1", "on", "POLL", "C6", "CEDE", "disk_capability", "balanced performance"];
    values.into_iter().find(|one| regex.is_match(one)).unwrap_or("2")
}

/// Calls `test` with each kernel file of the catalogue that holds no CPUs and needs no value of the user's.
fn with_each_file(mut test: impl FnMut(&File<'_>)) {
    let catalogue = Catalogue::built_in();
    for mitigation in catalogue.iter() {
        for knob in &mitigation.knob {
            let Knob::File(knob) = knob else { continue };
            if knob.compare == Compare::Within || knob.want.needs_value() {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let machine = fake::large(folder.path());
            let path = concrete(&knob.path);
            if let Some(test) = &knob.r#where {
                let other = Path::new(&path).with_file_name(&test.file);
                machine.file(other.to_str().unwrap().trim_start_matches('/'), condition(test));
            }
            let want = knob.want.to_string();
            test(&File { mitigation, knob, want, path, root: folder.path(), catalogue: &catalogue });
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
    assert!(files >= 45, "{files}");
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
    assert_eq!(checked, 11);
}
