//! The reports that processes write about the noise injected into them.

use std::io::Read as _;
use std::path::Path;

use fs_err as fs;
use quell_replay::load::REPORT_NAME;
use quell_replay::report::{BUCKETS, EVENT, Field, HISTOGRAM, MAGIC, VERSION, WORDS};
use quell_replay::schedule::MOST_EVENTS;

/// A detour as it was injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it began, on CLOCK_MONOTONIC, in ns.
    pub start_ns: u64,
    /// Its intended length, in ns.
    pub asked_ns: u64,
    /// Its actual length, in ns.
    pub took_ns: u64,
}

/// The report of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessReport {
    /// Its host.
    pub host: String,
    words: Vec<u64>,
}

impl ProcessReport {
    /// Parses the words of a report; `None` if they are not one.
    pub fn from_words(host: &str, words: Vec<u64>) -> Option<Self> {
        let report = Self { host: host.to_owned(), words };
        let whole = report.words.len() >= WORDS && (report.words.len() - WORDS).is_multiple_of(EVENT);
        (whole && report.get(Field::Magic) == MAGIC && report.get(Field::Version) == VERSION)
            .then_some(report)
    }

    /// The value of a field.
    pub fn get(&self, field: Field) -> u64 {
        self.words.get(field as usize).copied().unwrap_or(0)
    }

    /// Its rank, where a launcher gave it one.
    pub fn rank(&self) -> Option<u64> {
        Some(self.get(Field::Rank)).filter(|&rank| rank != u64::MAX)
    }

    /// The process's name when its noise began; empty if it reported none. Characters that cannot be printed are replaced.
    pub fn name(&self) -> String {
        let bytes = [Field::Name0, Field::Name1].map(|field| self.get(field).to_le_bytes());
        let text = bytes.as_flattened().split(|&byte| byte == 0).next().unwrap_or_default();
        let shown = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
        String::from_utf8_lossy(text).chars().map(shown).collect()
    }

    /// How many detours were too long, by how much: bucket `n` is from 2ⁿ⁻¹ to 2ⁿ ns, bucket 0 is not at all.
    pub fn histogram(&self) -> &[u64] {
        &self.words[HISTOGRAM..HISTOGRAM + BUCKETS]
    }

    /// The detours that the process logged.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        let logged = self.get(Field::Events) as usize;
        let events = self.words[WORDS..].as_chunks::<EVENT>().0;
        events.iter().take(logged).map(|&[start_ns, asked_ns, took_ns]| Event { start_ns, asked_ns, took_ns })
    }
}

/// The host in `HOST.PID.N`. A host's name may contain dots, and numbers between them.
fn host(name: &str) -> Option<&str> {
    let (rest, number) = name.rsplit_once('.')?;
    let (host, pid) = rest.rsplit_once('.')?;
    (number.parse::<u32>().is_ok() && pid.parse::<u32>().is_ok()).then_some(host)
}

/// All reports in a folder, by rank, then by process.
///
/// # Errors
/// When the folder cannot be read; files that are not reports are skipped.
pub fn read(folder: &Path) -> std::io::Result<Vec<ProcessReport>> {
    let mut reports = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(host) = name.strip_prefix(REPORT_NAME).and_then(host) else { continue };
        reports.extend(ProcessReport::from_words(host, words(&path)?));
    }
    reports.sort_by_key(|report| (report.get(Field::Rank), report.host.clone(), report.get(Field::Pid)));
    Ok(reports)
}

/// The words of a report up to its last event: the file has room for many more, which a large job should not read.
fn words(path: &Path) -> std::io::Result<Vec<u64>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path)?;
    let mut read = |words: usize| {
        (&file).take(8 * words as u64).read_to_end(&mut bytes)?;
        let words = bytes.as_chunks::<8>().0.iter();
        std::io::Result::Ok(words.map(|&word| u64::from_le_bytes(word)).collect::<Vec<u64>>())
    };
    let head = read(WORDS)?;
    let events = head.get(Field::Events as usize).map_or(0, |&events| usize::try_from(events).unwrap_or(0));
    read(EVENT.saturating_mul(events.min(MOST_EVENTS as usize)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn host_and_name_are_found_whatever_they_look_like() {
        assert_eq!(host("n1.4711.0"), Some("n1"));
        assert_eq!(host("10.0.0.7.4711.12"), Some("10.0.0.7"));
        assert_eq!(host("n1.cluster.local.4711.0"), Some("n1.cluster.local"));
        assert_eq!((host("n1.0"), host("n1.x.0"), host("n1")), (None, None, None));
        let mut words = vec![0; WORDS];
        let name = |words: &[u64]| {
            let mut words = words.to_vec();
            (words[Field::Magic as usize], words[Field::Version as usize]) = (MAGIC, VERSION);
            ProcessReport::from_words("n1", words).unwrap().name()
        };
        assert_eq!(name(&words), "");
        words[Field::Name0 as usize] = u64::from_le_bytes(*b"a\x1b\xffd fgh");
        words[Field::Name1 as usize] = u64::from_le_bytes(*b"ijklmno\0");
        assert_eq!(name(&words), "a\u{fffd}\u{fffd}d fghijklmno");
    }
}
