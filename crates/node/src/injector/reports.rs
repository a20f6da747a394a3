//! What processes said of their noise.

use std::path::Path;

use fs_err as fs;
use quell_replay::load::REPORT_NAME;
use quell_replay::report::{BUCKETS, EVENT, Field, HISTOGRAM, MAGIC, VERSION, WORDS};

/// A detour as it was burned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it began, on CLOCK_MONOTONIC, in ns.
    pub start_ns: u64,
    /// How long it was to be, in ns.
    pub asked_ns: u64,
    /// How long it was, in ns.
    pub took_ns: u64,
}

/// What one process said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessReport {
    /// Its host.
    pub host: String,
    words: Vec<u64>,
}

impl ProcessReport {
    /// From a report's words; `None` where they are none.
    pub fn of(host: &str, words: Vec<u64>) -> Option<Self> {
        let report = Self { host: host.to_owned(), words };
        let whole = report.words.len() >= WORDS && (report.words.len() - WORDS).is_multiple_of(EVENT);
        (whole && report.get(Field::Magic) == MAGIC && report.get(Field::Version) == VERSION)
            .then_some(report)
    }

    /// A number of it.
    pub fn name(&self) -> String {
        String::new()
    }

    /// A number of it.
    pub fn get(&self, field: Field) -> u64 {
        self.words.get(field as usize).copied().unwrap_or(0)
    }

    /// Its rank, where a launcher gave it one.
    pub fn rank(&self) -> Option<u64> {
        Some(self.get(Field::Rank)).filter(|&rank| rank != u64::MAX)
    }

    /// How many detours took how much too long: bucket `n` from 2ⁿ⁻¹ to 2ⁿ ns, bucket 0 not at all.
    pub fn histogram(&self) -> &[u64] {
        &self.words[HISTOGRAM..HISTOGRAM + BUCKETS]
    }

    /// The detours that it logged.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        let logged = self.get(Field::Events) as usize;
        let events = self.words[WORDS..].as_chunks::<EVENT>().0;
        events.iter().take(logged).map(|&[start_ns, asked_ns, took_ns]| Event { start_ns, asked_ns, took_ns })
    }
}

/// All reports in a folder, by rank, then by process.
///
/// # Errors
/// When the folder cannot be read; what is in it but no report is passed over.
pub fn read(folder: &Path) -> std::io::Result<Vec<ProcessReport>> {
    let mut reports = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((host, _pid)) = name.strip_prefix(REPORT_NAME).and_then(|rest| rest.rsplit_once('.')) else {
            continue;
        };
        let bytes = fs::read(&path)?;
        let words = bytes.as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        reports.extend(ProcessReport::of(host, words));
    }
    reports.sort_by_key(|report| (report.get(Field::Rank), report.host.clone(), report.get(Field::Pid)));
    Ok(reports)
}
