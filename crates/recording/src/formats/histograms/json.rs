//! rt-tests' `--json` of oslat and cyclictest (rt-tests 2.4 to 2.10, src/oslat/oslat.c, src/cyclictest/cyclictest.c, src/lib/rt-utils.c).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Counts, US};
use crate::formats::content::Content;
use crate::{Cpu, HistogramKind, Nanos, Warning};

#[derive(Deserialize)]
struct File {
    #[serde(rename = "cmdline:", alias = "cmdline", default)]
    command: String,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version", default)]
    version: Option<String>,
    #[serde(default)]
    sysinfo: System,
    #[serde(default)]
    resolution_in_ns: u8,
    thread: BTreeMap<String, Thread>,
}

#[derive(Default, Deserialize)]
struct System {
    #[serde(default)]
    nodename: Option<String>,
    #[serde(default)]
    release: Option<String>,
}

#[derive(Deserialize)]
struct Thread {
    #[serde(default)]
    cpu: Option<u32>,
    /// Field of oslat.
    #[serde(default)]
    duration: Option<f64>,
    /// Field of cyclictest.
    #[serde(default)]
    cycles: Option<u64>,
    #[serde(default)]
    min: Option<u64>,
    #[serde(default)]
    max: Option<u64>,
    #[serde(default)]
    histogram: BTreeMap<String, u64>,
}

pub(in super::super) fn read(text: &str) -> Result<Content, String> {
    let file: File = serde_json::from_str(text).map_err(|error| {
        format!("it is no whole document of oslat or cyclictest (`--json=FILE` of rt-tests): {error}")
    })?;
    let tool = file.command.split_whitespace().next().unwrap_or_default();
    let oslat = tool.ends_with("oslat") || file.thread.values().any(|thread| thread.duration.is_some());
    let mut counts = Counts::default();
    let unit = if file.resolution_in_ns != 0 { 1 } else { US };
    for (name, thread) in &file.thread {
        let number: u32 = name
            .parse()
            .map_err(|_| format!("thread {}: it has no number", super::super::printable(name)))?;
        if thread.cpu.is_none() && !counts.warnings.contains(&Warning::CpusOfThreadsUnknown) {
            counts.warnings.push(Warning::CpusOfThreadsUnknown);
        }
        let cpu = Cpu(thread.cpu.unwrap_or(number));
        let added = match oslat {
            true => thread.add_oslat(cpu, number, &file, &mut counts),
            false => thread.add_cyclictest(cpu, number, unit, &mut counts),
        };
        added.map_err(|reason| format!("thread {number}: {reason}"))?;
    }
    let mut content = counts.content(if oslat { "oslat's JSON" } else { "cyclictest's JSON" });
    content.manifest.host = file.sysinfo.nodename;
    content.manifest.kernel = file.sysinfo.release;
    content.manifest.command = file.command.split_whitespace().map(str::to_owned).collect();
    Ok(content)
}

impl Thread {
    /// Label and count of each bucket, in order.
    fn buckets(&self, label_of: impl Fn(&str) -> Option<u64>) -> Result<BTreeMap<u64, u64>, String> {
        let mut buckets = BTreeMap::new();
        for (text, count) in &self.histogram {
            let label =
                label_of(text).ok_or_else(|| format!("`{}` is no bucket", super::super::printable(text)))?;
            buckets.insert(label, *count);
        }
        if buckets.is_empty() {
            return Err("it has no histogram: run the tool with -h (cyclictest)".into());
        }
        Ok(buckets)
    }

    fn add_oslat(&self, cpu: Cpu, number: u32, file: &File, counts: &mut Counts) -> Result<(), String> {
        let exact = self.histogram.keys().any(|label| label.contains('.'));
        // With parts of a us in its labels, all other times are in ns.
        let ns = |time: Option<u64>| {
            let ns = |time: u64| if exact { Some(time) } else { time.checked_mul(US) };
            time.map(|time| ns(time).ok_or("a time is beyond all time")).transpose()
        };
        let core = super::oslat::Core {
            buckets: self.buckets(super::oslat::time)?.into_iter().collect(),
            width: bucket_width(&file.command).unwrap_or(US),
            exact,
            shortest: ns(self.min)?,
            longest: ns(self.max)?,
        };
        if let Some(seconds) = self.duration {
            let span = Nanos::from_nanos_f64(seconds * 1e9).ok_or("its duration is no time")?;
            counts.watch(cpu, span);
        }
        core.add(counts, (cpu, number, HistogramKind::Gap), file.version.as_deref())
    }

    fn add_cyclictest(&self, cpu: Cpu, number: u32, unit: u64, counts: &mut Counts) -> Result<(), String> {
        let series = (cpu, number, HistogramKind::Latency);
        let buckets = self.buckets(|label| label.parse().ok())?;
        let end = buckets.last_key_value().map_or(0, |(last, _)| *last).saturating_add(1);
        for (label, count) in buckets {
            counts.add_units(series, label, unit, count)?;
        }
        let over = self.cycles.unwrap_or(0).saturating_sub(counts.count(series));
        super::cyclictest::add_overflow(counts, series, end, self.max, over, unit)
    }
}

/// The width of buckets in ns, if oslat's command line gives one. In the file, empty buckets are left out.
fn bucket_width(command: &str) -> Option<u64> {
    let mut words = command.split_whitespace();
    let mut width = None;
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--bucket-width").or_else(|| word.strip_prefix("-W")) {
            Some("") => words.next(),
            Some(value) => Some(value.trim_start_matches('=')),
            None => continue,
        };
        width = value.and_then(|value| value.parse().ok()).filter(|width| *width > 0).or(width);
    }
    width
}
