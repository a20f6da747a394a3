//! IBM's vpsum ("OS jitter mitigation techniques", IBM developerWorks): one file per rank, one line per iteration with its number, its
//! compute time in us, and a value of the clock.
//!
//! # The third column
//! In IBM's sample this is the duration of the iteration in ticks of the timebase. The rate is not stated, so a file without quell's
//! mark only provides the us, one iteration after the other. quell's files state in comments that the column is when the
//! iteration began, in us since 1970, or from the recording's zero if the wall clock is not known. Reading such a file returns
//! the same phases, truncated to whole us; the time in the barrier, the steps of work and the process are not in it.

mod folder;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

pub(super) use self::folder::read_folder;
use super::content::{Content, Rows};
use super::{for_each_line, invalid, printable};
use crate::warning::MicrosecondTimes;
use crate::{
    Cpu, Manifest, Method, MpiFacts, Nanos, Phase, RankFacts, Warning, format_cpu_list, one_line,
    parse_cpu_list,
};

/// The beginning of quell's files, after `#`.
pub(super) const MARK: &str = "quell vpsum";

/// The data of one rank's file.
#[derive(Debug, Default)]
struct OfRank {
    facts: Facts,
    phases: Vec<Phase>,
}

/// The facts in quell's comments.
#[derive(Debug, Default)]
struct Facts {
    rank: Option<u32>,
    ranks: Option<u32>,
    host: Option<String>,
    cpus: Vec<Cpu>,
    bench: Option<String>,
    operation: Option<String>,
    /// The value of the third column at the recording's zero, if the column is when iterations began.
    zero_us: Option<u64>,
    /// Whether the zero is one of the wall clock.
    wall: bool,
    quantum: Option<Nanos>,
}

impl Facts {
    fn read(&mut self, comment: &str) {
        let Some((key, value)) = comment.split_once(':') else { return };
        let value = value.trim();
        match key.trim() {
            "rank" => {
                let mut words = value.split(" of ");
                self.rank = words.next().and_then(|word| word.trim().parse().ok());
                self.ranks = words.next().and_then(|word| word.trim().parse().ok());
            }
            "host" => self.host = Some(value.to_owned()),
            "cpus" => self.cpus = parse_cpu_list(value).unwrap_or_default(),
            "bench" => self.bench = Some(value.to_owned()),
            "operation" => self.operation = Some(value.to_owned()),
            "zero, us since 1970" => (self.zero_us, self.wall) = (value.parse().ok(), true),
            "zero, us" => (self.zero_us, self.wall) = (value.parse().ok(), false),
            "quantum, ns" => self.quantum = value.parse().ok().map(Nanos::from_nanos),
            _ => {}
        }
    }
}

impl OfRank {
    fn parse(text: &str) -> Result<Self, String> {
        let mut one = Self::default();
        let mut end = Nanos::ZERO;
        for_each_line(text, |number, line| {
            let line = line.trim();
            // IBM's header names the columns in two lines.
            let header = one.phases.is_empty() && line.starts_with(|c: char| c.is_ascii_alphabetic());
            if let Some(comment) = line.strip_prefix('#') {
                one.facts.read(comment);
            } else if !line.is_empty() && !header {
                let phase = one.row(line, end).map_err(|reason| format!("line {number}: {reason}"))?;
                end = phase.end();
                one.phases.push(phase);
            }
            Ok(())
        })?;
        Ok(one)
    }

    /// Parses a row; `end` is the end of the previous row.
    fn row(&self, line: &str, end: Nanos) -> Result<Phase, String> {
        let fields = line.split([' ', '\t', ',']).filter(|field| !field.is_empty());
        let fields: Vec<Option<u64>> = fields.map(|field| field.parse().ok()).collect();
        let [Some(index), Some(us), Some(clock)] = fields[..] else {
            return Err(format!("`{}` is not `iteration us clock`", printable(line)));
        };
        if let Some(last) = self.phases.last().filter(|last| last.index >= index) {
            return Err(format!("iteration {index} follows {}", last.index));
        }
        let ns_of = |us: u64| us.checked_mul(1_000).map(Nanos::from_nanos);
        let start = match self.facts.zero_us {
            Some(zero) => clock.checked_sub(zero).ok_or("the iteration began before the recording's zero")?,
            None => end.as_nanos() / 1_000,
        };
        let beyond = "the iteration ends beyond all time";
        let (start, compute) = ns_of(start).zip(ns_of(us)).ok_or(beyond)?;
        start.checked_add(compute).ok_or(beyond)?;
        let rank = self.facts.rank.unwrap_or(0);
        Ok(Phase { rank, index, start, work: 0, compute, wait: Nanos::ZERO })
    }

    fn cpu(&self, rank: u32) -> Cpu {
        self.facts.cpus.first().copied().unwrap_or(Cpu(rank))
    }
}

/// The rank of a file: as its comments state it, or the number at the end of its name.
fn rank_of(file: &OfRank, path: &Path) -> Option<u32> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.split_once(".txt").map_or(name.as_str(), |(before, _)| before);
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    file.facts.rank.or_else(|| name.get(digits..).and_then(|digits| digits.parse().ok()))
}

/// Reads one rank's file.
pub(super) fn read_file(path: &Path, text: &str) -> Result<Content, String> {
    let file = OfRank::parse(text)?;
    let rank = rank_of(&file, path).unwrap_or(0);
    Ok(content(&[(rank, file)]))
}

/// Combines the files of all ranks; each rank occurs once.
fn content(files: &[(u32, OfRank)]) -> Content {
    let timed = files.iter().all(|(_, file)| file.facts.zero_us.is_some() && file.facts.wall);
    let zero = files.iter().filter(|_| timed).filter_map(|(_, file)| file.facts.zero_us).min();
    let mut manifest = Manifest::new(Method::Phases, crate::State::Imported);
    manifest.zero_unix_ns = zero.and_then(|us| us.checked_mul(1_000));
    manifest.quantum_ns = files.iter().find_map(|(_, file)| file.facts.quantum);
    manifest.warnings = warnings(files);
    let first = |of: fn(&Facts) -> Option<String>, other: &str| {
        files.iter().find_map(|(_, file)| of(&file.facts)).unwrap_or_else(|| other.to_owned())
    };
    let facts = |(rank, file): &(u32, OfRank)| {
        let cpus = format_cpu_list(&file.facts.cpus);
        RankFacts { cpus, ..super::rank_facts(*rank) }
    };
    manifest.mpi = Some(MpiFacts {
        bench: first(|facts| facts.bench.clone(), "fwq"),
        library: "not known".into(),
        operation: first(|facts| facts.operation.clone(), "barrier"),
        bytes: 0,
        ranks: files.iter().find_map(|(_, file)| file.facts.ranks).unwrap_or(files.len() as u32),
        here: files.iter().map(facts).collect(),
    });
    take_hosts(&mut manifest, files);
    let mut rows = Vec::new();
    for (rank, file) in files {
        let cpu = file.cpu(*rank);
        let later = zero.zip(file.facts.zero_us).map_or(0, |(zero, own)| own.saturating_sub(zero));
        let later = Nanos::from_nanos(later.saturating_mul(1_000));
        let moved = |phase: &Phase| (cpu, Phase { rank: *rank, start: phase.start + later, ..*phase });
        rows.extend(file.phases.iter().map(moved));
    }
    let mut content = Content::new(Method::Phases, "vpsum", Rows::Phases(rows));
    manifest.note = content.manifest.note.take();
    content.manifest = manifest;
    content
}

fn take_hosts(manifest: &mut Manifest, files: &[(u32, OfRank)]) {
    let hosts: BTreeSet<&String> = files.iter().filter_map(|(_, file)| file.facts.host.as_ref()).collect();
    if let [only] = hosts.iter().collect::<Vec<_>>()[..] {
        manifest.host = Some((*only).clone());
    } else {
        let of_rank = |(rank, file): &(u32, OfRank)| Some((*rank, file.facts.host.clone()?));
        manifest.rank_hosts = files.iter().filter_map(of_rank).collect();
    }
}

fn warnings(files: &[(u32, OfRank)]) -> Vec<Warning> {
    let mut all = vec![Warning::WholeMicroseconds { of: MicrosecondTimes::QuantaWithoutBarrier }];
    if files.iter().any(|(_, file)| file.facts.zero_us.is_none()) {
        all.push(Warning::StartsUnknown { ticks: true });
    }
    if files.iter().any(|(_, file)| file.facts.cpus.is_empty()) {
        all.push(Warning::CpusOfRanksUnknown);
    } else if files.iter().any(|(_, file)| file.facts.cpus.len() > 1) {
        all.push(Warning::RanksMoved);
    }
    all.extend(missing(files));
    all
}

/// The ranks that have no file, in a folder; `files` are in their order. A file alone is not a run's folder.
fn missing(files: &[(u32, OfRank)]) -> Option<Warning> {
    let (highest, _) = files.last().filter(|_| files.len() > 1)?;
    let stated = files.iter().filter_map(|(_, file)| file.facts.ranks).max().unwrap_or(0);
    let ranks = u64::from(stated).max(u64::from(*highest) + 1).checked_sub(files.len() as u64)?;
    let rank = (0..).zip(files).find(|(at, (rank, _))| at != rank).map_or(files.len() as u32, |(at, _)| at);
    (ranks > 0).then_some(Warning::RankFilesMissing { ranks, rank })
}

/// Writes the phases of one rank.
pub(super) fn write(manifest: &Manifest, phases: &[(Cpu, Phase)], out: &mut dyn Write) -> io::Result<()> {
    let ranks: BTreeSet<u32> = phases.iter().map(|(_, phase)| phase.rank).collect();
    let rank = match ranks.iter().collect::<Vec<_>>()[..] {
        [rank] => *rank,
        _ => return Err(invalid(format!("a file of vpsum's is of one rank, and these are {}", ranks.len()))),
    };
    let cpus: BTreeSet<Cpu> = phases.iter().map(|(cpu, _)| *cpu).collect();
    let cpus: Vec<Cpu> = cpus.into_iter().collect();
    writeln!(out, "# {MARK} 1")?;
    let all = manifest.mpi.as_ref().map(|mpi| format!(" of {}", mpi.ranks)).unwrap_or_default();
    writeln!(out, "# rank: {rank}{all}")?;
    if let Some(host) = manifest.host_of(rank) {
        writeln!(out, "# host: {}", one_line(host))?;
    }
    writeln!(out, "# cpus: {}", format_cpu_list(&cpus))?;
    if let Some(mpi) = &manifest.mpi {
        writeln!(out, "# bench: {}\n# operation: {}", one_line(&mpi.bench), one_line(&mpi.operation))?;
    }
    if let Some(quantum) = manifest.quantum_ns {
        writeln!(out, "# quantum, ns: {}", quantum.as_nanos())?;
    }
    let zero = manifest.zero_unix_ns.map_or(0, |ns| ns / 1_000);
    let since = if manifest.zero_unix_ns.is_some() { ", us since 1970" } else { ", us" };
    writeln!(out, "# zero{since}: {zero}")?;
    writeln!(out, "iteration, compute_usec_time, start{}", since.replace(',', " in"))?;
    for (_, phase) in phases {
        let [start, compute] = [phase.start, phase.compute].map(|time| time.as_nanos() / 1_000);
        writeln!(out, "{}  {compute}  {}", phase.index, zero.saturating_add(start))?;
    }
    Ok(())
}
