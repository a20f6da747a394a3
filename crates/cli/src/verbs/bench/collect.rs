//! Collects the files of the ranks into one recording per host.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use quell_analysis::bench::job::HostRun;
use quell_recording::rank_file::{RankFile, Series, phase};
use quell_recording::{
    Cpu, Manifest, Method, MpiFacts, Nanos, Phase, RankFacts, Recording, SourcesFacts, State, Writer,
    add_phases, read_phases,
};

use crate::plan::place::file_name;

/// Reads the files of all ranks, ordered by rank, and reports what is wrong with those that cannot be read. Empty files, as of a rank that
/// died at once, are left out.
pub fn rank_files(folder: &Path) -> anyhow::Result<(Vec<RankFile>, Vec<String>)> {
    let (mut files, mut torn) = (Vec::new(), Vec::new());
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rank") && path.metadata()?.len() > 0 {
            match RankFile::open(&path) {
                Ok(file) => files.push(file),
                Err(error) => torn.push(error.to_string()),
            }
        }
    }
    files.sort_by_key(|file| file.number::<u32>("rank"));
    Ok((files, torn))
}

/// Adds the ranks' phases to the recordings of their hosts, and creates recordings that do not exist. Times are divided by `scale`, the
/// factor by which the run was scaled; 0 means 1.
pub fn hosts(folder: &Path, files: &[RankFile], scale: f64) -> anyhow::Result<Vec<HostRun>> {
    let mut per_host: BTreeMap<&str, Vec<&RankFile>> = BTreeMap::new();
    for file in files {
        per_host.entry(file.facts.get("host").map_or("node", String::as_str)).or_default().push(file);
    }
    let clocks = Clocks::from_files(files);
    per_host.into_iter().map(|(host, files)| host_run(folder, host, &files, &clocks, scale)).collect()
}

/// The host runs that a folder already holds.
pub fn open(folder: &Path) -> anyhow::Result<Vec<HostRun>> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        let holds = |name: &str| path.join(name).exists();
        if path.extension().is_some_and(|extension| extension == "quell") && holds("quanta.parquet") {
            folders.push(path);
        }
    }
    folders.sort();
    let run = |path: &PathBuf| Ok(HostRun { recording: Recording::open(path)?, phases: read_phases(path)? });
    let hosts = folders.iter().map(run).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(hosts.into_iter().filter(|host| host.recording.manifest.mpi.is_some()).collect())
}

/// The path of a host's file in the folder of a run.
pub fn host_file(folder: &Path, host: &str, extension: &str) -> PathBuf {
    folder.join(format!("{}.{extension}", file_name(host)))
}

fn host_run(
    folder: &Path,
    host: &str,
    files: &[&RankFile],
    clocks: &Clocks,
    scale: f64,
) -> anyhow::Result<HostRun> {
    let path = host_file(folder, host, "quell");
    let mut manifest = if path.exists() {
        let recording = Recording::open(&path)?;
        if recording.manifest.mpi.is_some() {
            // It was collected before, by a quell that did not finish.
            return Ok(HostRun { recording, phases: read_phases(&path)? });
        }
        recording.manifest
    } else {
        unwatched(&path, folder, host, files)?
    };
    let zero = manifest.zero_monotonic_ns.unwrap_or(0);
    let mut rows = Vec::new();
    let mut here = Vec::new();
    for file in files {
        if let (Some(rank), Some(series)) = (file.number("rank"), file.series.first()) {
            rows.extend(
                phases(rank, series, zero, scale).with_context(|| format!("the file of rank {rank}"))?,
            );
            here.push(rank_facts(rank, file, series, clocks));
        }
    }
    let series = files.iter().find_map(|file| file.series.first());
    let printed = |name: &str| series.and_then(|series| series.facts.get(name)).cloned().unwrap_or_default();
    let mpi = MpiFacts {
        bench: series.map(|series| series.name.clone()).unwrap_or_default(),
        library: files[0].facts.get("mpi").cloned().unwrap_or_default(),
        operation: printed("op"),
        bytes: printed("bytes").parse().unwrap_or(0),
        ranks: files[0].number("ranks").unwrap_or(0),
        here,
    };
    add_phases(&path, &mut manifest, mpi, &rows)?;
    Ok(HostRun { recording: Recording::open(&path)?, phases: read_phases(&path)? })
}

/// Creates a recording for a host whose kernel was not recorded.
fn unwatched(path: &Path, folder: &Path, host: &str, files: &[&RankFile]) -> anyhow::Result<Manifest> {
    let mut manifest = Manifest::new(Method::Phases, State::Complete);
    manifest.host = Some(host.to_owned());
    // No event of the run is earlier than the first rank's first look at the clock.
    let first = files.iter().filter_map(|file| file.number::<u64>("monotonic_ns")).min().unwrap_or(0);
    let wall = files.iter().filter_map(|file| file.number::<u64>("unix_ns")).min();
    manifest.zero_monotonic_ns = Some(first);
    manifest.zero_unix_ns = wall;
    let why = fs_err::read_to_string(host_file(folder, host, "unknown")).ok();
    if let Some(why) = why {
        let unknown_because = Some(why.trim().to_owned());
        manifest.sources = Some(SourcesFacts { unknown_because, ..SourcesFacts::default() });
    }
    Writer::create(path, &manifest)?.finish(&mut manifest)?;
    Ok(manifest)
}

fn phases(rank: u32, series: &Series, zero: u64, scale: f64) -> anyhow::Result<Vec<(Cpu, Phase)>> {
    let column = |name: &str| series.column(name).with_context(|| format!("there is no column `{name}`"));
    let (start, work) = (column(phase::START_NS)?, column(phase::WORK)?);
    let (compute, wait, cpu) = (column(phase::QT_NS)?, column(phase::BT_NS)?, column(phase::CPU)?);
    let time = |ns: u64| match scale {
        0.0 | 1.0 => Nanos::from_nanos(ns),
        scale => Nanos::from_nanos((ns as f64 / scale).round() as u64),
    };
    let rows = start.zip(work).zip(compute.zip(wait)).zip(cpu).zip(0..);
    Ok(rows
        .map(|((((start, work), (compute, wait)), cpu), index)| {
            let phase = Phase {
                rank,
                index,
                start: time(start.saturating_sub(zero)),
                work,
                compute: time(compute),
                wait: time(wait),
            };
            (Cpu(u32::try_from(cpu).unwrap_or(u32::MAX)), phase)
        })
        .collect())
}

fn rank_facts(rank: u32, file: &RankFile, series: &Series, clocks: &Clocks) -> RankFacts {
    let (clock_offset_ns, clock_error_ns) = clocks.node_clock(file.number("node").unwrap_or(0));
    RankFacts {
        rank,
        pid: file.number("pid").unwrap_or(0),
        cpus: file.facts.get("cpus").cloned().unwrap_or_default(),
        ns_per_iteration: series.number("ns_per_iteration").unwrap_or(0.0),
        timing_ns: series.number("timing_ns").unwrap_or(0.0),
        clock_offset_ns,
        clock_error_ns,
    }
}

/// The offset of each kernel's clock from that of rank 0.
struct Clocks(BTreeMap<u32, (i64, u64)>);

impl Clocks {
    /// From the measurements of each kernel's first rank at the start and at the end: the offset is their middle; half of their difference
    /// is drift, and is added to the error.
    fn from_files(files: &[RankFile]) -> Self {
        let mut clocks = BTreeMap::new();
        for file in files {
            let facts = std::iter::once(&file.facts).chain(file.series.iter().map(|series| &series.facts));
            let reported: BTreeSet<&String> = facts
                .flat_map(|facts| [facts.get("clock_start"), facts.get("clock_end")])
                .flatten()
                .collect();
            let seen: Vec<(i64, u64)> = reported.into_iter().filter_map(|text| seen(text)).collect();
            let (Some(node), Some(low), Some(high)) =
                (file.number("node"), seen.iter().map(|s| s.0).min(), seen.iter().map(|s| s.0).max())
            else {
                continue;
            };
            let error = seen.iter().map(|s| s.1).max().unwrap_or(0);
            let middle = low.midpoint(high);
            clocks.insert(node, (middle, error.saturating_add(high.abs_diff(low) / 2)));
        }
        Self(clocks)
    }

    fn node_clock(&self, node: u32) -> (i64, u64) {
        self.0.get(&node).copied().unwrap_or_default()
    }
}

/// Parses `at_ns T offset_ns O error_ns E`.
fn seen(text: &str) -> Option<(i64, u64)> {
    let words: Vec<&str> = text.split(' ').collect();
    let after = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
    Some((after("offset_ns")?.parse().ok()?, after("error_ns")?.parse().ok()?))
}
