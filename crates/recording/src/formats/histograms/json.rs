//! rt-tests' `--json` of oslat and cyclictest (rt-tests 2.4, src/oslat/oslat.c, src/cyclictest/cyclictest.c, src/lib/rt-utils.c).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Counts, US};
use crate::formats::content::Content;
use crate::{Cpu, HistogramKind, Nanos, Warning};

#[derive(Deserialize)]
struct File {
    #[serde(rename = "cmdline:", alias = "cmdline", default)]
    command: String,
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
        thread
            .add(cpu, number, oslat, unit, &mut counts)
            .map_err(|reason| format!("thread {number}: {reason}"))?;
    }
    let mut content = counts.content(if oslat { "oslat's JSON" } else { "cyclictest's JSON" });
    content.manifest.host = file.sysinfo.nodename;
    content.manifest.kernel = file.sysinfo.release;
    content.manifest.command = file.command.split_whitespace().map(str::to_owned).collect();
    Ok(content)
}

impl Thread {
    fn add(&self, cpu: Cpu, number: u32, oslat: bool, unit: u64, counts: &mut Counts) -> Result<(), String> {
        let kind = if oslat { HistogramKind::Gap } else { HistogramKind::Latency };
        let series = (cpu, number, kind);
        let mut buckets = BTreeMap::new();
        for (label, count) in &self.histogram {
            let label: u64 =
                label.parse().map_err(|_| format!("`{}` is no bucket", super::super::printable(label)))?;
            buckets.insert(label, *count);
        }
        if buckets.is_empty() {
            return Err("it has no histogram: run the tool with -h (cyclictest)".into());
        }
        if let Some(seconds) = self.duration {
            let span = Nanos::from_nanos_f64(seconds * 1e9).ok_or("its duration is no time")?;
            counts.watch(cpu, span);
        }
        if oslat {
            return super::oslat::add(counts, series, buckets.into_iter(), self.max);
        }
        let end = buckets.last_key_value().map_or(0, |(last, _)| *last).saturating_add(1);
        for (label, count) in buckets {
            counts.add_units(series, label, unit, count)?;
        }
        let over = self.cycles.unwrap_or(0).saturating_sub(counts.count(series));
        super::cyclictest::add_overflow(counts, series, end, self.max, over, unit)
    }
}
