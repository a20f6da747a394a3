//! LANL's PSNAP: how many quanta took each number of us, by rank ("OS jitter mitigation techniques", IBM developerWorks, quotes its
//! output). Lines of the calibration, then for each rank `# RANK SUM_US HOST` and rows `RANK TIME_US COUNT HOST`. The
//! format does not keep the order and the times of the quanta.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::content::{Content, Rows};
use super::{for_each_line, printable};
use crate::{Cpu, Manifest, Method, MpiFacts, Nanos, Phase, RankFacts, Warning, one_line};

/// Maximum number of quanta of a histogram: a single line can claim any number, and each quantum becomes a row.
const MOST_QUANTA: u64 = 1 << 24;

/// The data of one rank.
#[derive(Default)]
struct OfRank {
    host: String,
    /// Count by time in us.
    counts: BTreeMap<u64, u64>,
    /// Sum according to the rank's own line.
    sum_us: Option<u64>,
}

#[derive(Default)]
struct File {
    ranks: BTreeMap<u32, OfRank>,
    /// The maximum number of steps of work of any rank, and whether all ranks did that many.
    most_work: u64,
    all_did_most: bool,
    quanta: u64,
}

pub(super) fn read(text: &str) -> Result<Content, String> {
    let mut file = File::default();
    for_each_line(text, |number, line| file.read(line.trim(), number))?;
    let mut content = Content::new(Method::Phases, "a PSNAP histogram", Rows::Phases(file.phases()?));
    let manifest = &mut content.manifest;
    manifest.unordered = true;
    manifest.warnings = file.warnings();
    let hosts = || file.ranks.values().map(|rank| &rank.host).filter(|host| !host.is_empty());
    match hosts().next() {
        Some(first) if hosts().all(|host| host == first) => manifest.host = Some(first.clone()),
        Some(_) => {
            manifest.rank_hosts =
                file.ranks.iter().map(|(&rank, of_rank)| (rank, of_rank.host.clone())).collect();
        }
        None => {}
    }
    manifest.mpi = Some(facts(file.ranks.keys().copied()));
    Ok(content)
}

fn facts(ranks: impl Iterator<Item = u32>) -> MpiFacts {
    let here: Vec<RankFacts> = ranks.map(super::rank_facts).collect();
    MpiFacts {
        bench: "fwq".into(),
        library: "not known".into(),
        operation: "none".into(),
        bytes: 0,
        ranks: here.len() as u32,
        here,
    }
}

impl File {
    fn read(&mut self, line: &str, number: usize) -> Result<(), String> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let Some(comment) = line.strip_prefix('#') {
            self.read_comment(comment);
            return Ok(());
        }
        if fields.is_empty() || line.starts_with("Using ") || line.starts_with("PSNAP") {
            self.all_did_most |= line.starts_with("Using Global max");
            return Ok(());
        }
        if line.starts_with("my_count=") || line.starts_with("global_") {
            let most = fields.windows(2).find(|pair| pair[0] == "global_max=");
            self.most_work = most.and_then(|pair| pair[1].parse().ok()).unwrap_or(self.most_work);
            return Ok(());
        }
        let not_a_row = || format!("line {number}: `{}` is not `rank us count host`", printable(line));
        let whole = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok());
        let (Some(rank), Some(us), Some(count), true) =
            (whole(0).and_then(|rank| u32::try_from(rank).ok()), whole(1), whole(2), fields.len() <= 4)
        else {
            return Err(not_a_row());
        };
        self.quanta = self.quanta.saturating_add(count);
        if self.quanta > MOST_QUANTA {
            return Err(format!(
                "line {number}: with this row the histogram counts more than {MOST_QUANTA} quanta"
            ));
        }
        let of_rank = self.ranks.entry(rank).or_default();
        let host = fields.get(3).copied().unwrap_or_default();
        if of_rank.host.is_empty() {
            of_rank.host = host.to_owned();
        } else if of_rank.host != host {
            let (host, first) = (printable(host), printable(&of_rank.host));
            return Err(format!("line {number}: rank {rank} is on the host `{host}`, and was on `{first}`"));
        }
        if count > 0 {
            *of_rank.counts.entry(us).or_default() += count;
        }
        Ok(())
    }

    /// Reads `RANK SUM_US HOST`; anything else is a remark.
    fn read_comment(&mut self, comment: &str) {
        let fields: Vec<&str> = comment.split_whitespace().collect();
        let number = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok());
        let rank = number(0).and_then(|rank| u32::try_from(rank).ok());
        if let (Some(rank), Some(sum), true) = (rank, number(1), fields.len() <= 3) {
            let of_rank = self.ranks.entry(rank).or_default();
            of_rank.sum_us = Some(sum);
            of_rank.host = fields.get(2).copied().unwrap_or_default().to_owned();
        }
    }

    /// Each rank's quanta in sequence, the shortest first: only their lengths are real.
    fn phases(&self) -> Result<Vec<(Cpu, Phase)>, String> {
        let mut all = Vec::with_capacity(self.quanta as usize);
        let work = if self.all_did_most { self.most_work } else { 0 };
        for (&rank, of_rank) in &self.ranks {
            let (mut start, mut index) = (Nanos::ZERO, 0);
            for (&us, &count) in &of_rank.counts {
                let beyond = || format!("the quanta of rank {rank} together last beyond all time");
                let ns = us.checked_mul(1_000).ok_or_else(beyond)?;
                let total = ns.checked_mul(count).map(Nanos::from_nanos).ok_or_else(beyond)?;
                start.checked_add(total).ok_or_else(beyond)?;
                let compute = Nanos::from_nanos(ns);
                for _ in 0..count {
                    let phase = Phase { rank, index, start, work, compute, wait: Nanos::ZERO };
                    all.push((Cpu(rank), phase));
                    index += 1;
                    start += compute;
                }
            }
        }
        Ok(all)
    }

    fn warnings(&self) -> Vec<Warning> {
        let mut all = vec![Warning::QuantaCounted];
        let sum = |rank: &OfRank| {
            rank.counts.iter().fold(0u64, |sum, (us, n)| sum.saturating_add(us.saturating_mul(*n)))
        };
        let missing = |(_, rank): &(&u32, &OfRank)| rank.sum_us.is_some_and(|reported| reported != sum(rank));
        let ranks: Vec<_> = self.ranks.iter().filter(missing).collect();
        if let Some(&(&first, rank)) = ranks.first() {
            let [found_ns, stated_ns] =
                [sum(rank), rank.sum_us.unwrap_or(0)].map(|us| us.saturating_mul(1_000));
            all.push(Warning::SumsDiffer { ranks: ranks.len() as u64, rank: first, found_ns, stated_ns });
        }
        all
    }
}

/// Writes phases in PSNAP's format. Times are truncated to whole us.
pub(super) fn write(manifest: &Manifest, phases: &[(Cpu, Phase)], out: &mut dyn Write) -> io::Result<()> {
    let mut ranks: BTreeMap<u32, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut work: BTreeMap<u32, u64> = BTreeMap::new();
    for (_, phase) in phases {
        let us = phase.compute.as_nanos() / 1_000;
        *ranks.entry(phase.rank).or_default().entry(us).or_default() += 1;
        work.insert(phase.rank, phase.work);
    }
    write_calibration(&work, out)?;
    for (rank, counts) in ranks {
        let host = host(manifest, rank);
        let sum = counts.iter().fold(0u64, |sum, (us, n)| sum.saturating_add(us.saturating_mul(*n)));
        writeln!(out, "# {rank} {sum} {host}")?;
        for (us, count) in counts {
            writeln!(out, "{rank} {us} {count} {host}")?;
        }
    }
    Ok(())
}

/// Writes the steps of work of the ranks, if they are known, and whether all used the largest number.
fn write_calibration(work: &BTreeMap<u32, u64>, out: &mut dyn Write) -> io::Result<()> {
    let (Some(mine), Some(least), Some(most)) = (
        work.values().next(),
        work.iter().min_by_key(|(_, work)| **work),
        work.iter().rev().max_by_key(|(_, work)| **work),
    ) else {
        return Ok(());
    };
    let ((min_rank, min), (max_rank, max)) = (least, most);
    if *max == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "my_count= {mine} global_min= {min} min_loc= {min_rank} global_max= {max} max_loc= {max_rank}"
    )?;
    if min == max { writeln!(out, "Using Global max for calibration") } else { Ok(()) }
}

/// The host as one word, because a blank would look like a further column.
fn host(manifest: &Manifest, rank: u32) -> String {
    let host = one_line(manifest.host_of(rank).unwrap_or("unknown"));
    let host = host.split_whitespace().collect::<Vec<_>>().join("-");
    if host.is_empty() { "unknown".into() } else { host }
}
