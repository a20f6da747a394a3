//! Splits the counter of preemptions, `task`, by the tasks that ran. The recording of the rank's host names them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::LogRun;
use crate::mpi::{Event, What};
use crate::read::{read_batches, read_table};
use crate::table::Row;
use crate::{Error, Interval, Manifest, Source, SourceKind, Thread};

/// Maximum number of names with a counter of their own, those that took most. The time of all others stays in `task`.
const MOST_NAMES: usize = 12;
/// A name has a counter from this part of the time of all tasks on.
const LEAST_PART: f64 = 0.005;
/// The longest that reading the clock and the counters takes an undisturbed thread.
const READING_NS: u64 = 10_000;
/// The counter for ranks of the same job that share the CPU.
pub const OTHER_RANKS: &str = "task:(other ranks)";
/// The counter for other threads of the same process.
pub const OWN_THREADS: &str = "task:(own threads)";

/// The parts of a location's counter of preemptions.
#[derive(Debug, Default)]
pub(super) struct TaskNames {
    /// The index of `task` among the sources.
    task: u32,
    /// By their end; those of tasks without a counter of their own are left out.
    pieces: Vec<Piece>,
    /// The first piece that no event has counted yet.
    next: usize,
    /// The totals so far, by source.
    totals_ns: BTreeMap<u32, u64>,
}

/// A run of another task while the thread waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// On the clock of the run.
    end_ns: u64,
    ns: u64,
    source: u32,
}

impl TaskNames {
    /// Replaces the counter of `task` in events of the location, from `from` on, by those of its parts.
    pub(super) fn split(&mut self, events: &mut Vec<Event>, from: usize) {
        if self.pieces.is_empty() {
            return;
        }
        let whole = events.split_off(from);
        for event in whole {
            match event.what {
                What::Noise { source, total_ns } if source == self.task => {
                    self.count(event.time_ns, total_ns, events);
                }
                _ => events.push(event),
            }
        }
    }

    /// Counts the pieces that ended by now. Their sum never exceeds the kernel's total, which stays exact even if intervals were lost.
    fn count(&mut self, time_ns: u64, total_ns: u64, events: &mut Vec<Event>) {
        let mut left_ns = total_ns.saturating_sub(self.totals_ns.values().sum());
        let mut changed = BTreeMap::new();
        // The thread may have lost the CPU after it read the clock, and before it read the counter.
        let mut read_ns = time_ns.saturating_add(READING_NS);
        while let Some(&piece) = self.pieces.get(self.next) {
            let ended = piece.end_ns <= time_ns;
            let began_ns = piece.end_ns.saturating_sub(piece.ns);
            if !ended && (began_ns > read_ns || piece.ns > left_ns) {
                break;
            }
            self.next += 1;
            let ns = piece.ns.min(left_ns);
            left_ns -= ns;
            read_ns = read_ns.max(piece.end_ns);
            *changed.entry(piece.source).or_insert(0) += ns;
        }
        *changed.entry(self.task).or_insert(0) += left_ns;
        for (source, ns) in changed.into_iter().filter(|&(_, ns)| ns > 0) {
            let total = self.totals_ns.entry(source).or_insert(0);
            *total += ns;
            events.push(Event { time_ns, what: What::Noise { source, total_ns: *total } });
        }
    }
}

/// Which task ran, for a thread that waited.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ran {
    OtherRank,
    OwnThread,
    Task(String),
}

impl Ran {
    fn name(&self) -> String {
        match self {
            Self::OtherRank => OTHER_RANKS.to_owned(),
            Self::OwnThread => OWN_THREADS.to_owned(),
            Self::Task(name) => format!("{}:{name}", SourceKind::Task.name()),
        }
    }
}

/// A run of a task before it is known which names have counters.
struct Found {
    log: usize,
    end_ns: u64,
    ns: u64,
    ran: Ran,
}

impl LogRun {
    /// Gives the tasks that took most a counter of their own, as the recordings of the ranks' hosts name them: `task:NAME`,
    /// [`OTHER_RANKS`] and [`OWN_THREADS`]. Together with `task`, the rest, they add up to the kernel's counter of preemptions.
    ///
    /// # Errors
    /// What a recording lacks. The counters stay as they were.
    pub fn name_tasks(&mut self, recordings: &[PathBuf]) -> Result<(), Error> {
        let task = self.definitions.sources.iter().position(|name| name == SourceKind::Task.name());
        let Some(task) = task else { return Ok(()) };
        let mut found = Vec::new();
        for recording in recordings {
            self.find(recording, &mut found)?;
        }
        let sources: BTreeMap<Ran, u32> = (self.definitions.sources.len() as u32..)
            .zip(longest(&found))
            .map(|(source, ran)| (ran, source))
            .collect();
        let mut names: Vec<_> = sources.iter().map(|(ran, source)| (*source, ran.name())).collect();
        names.sort();
        self.definitions.sources.extend(names.into_iter().map(|(_, name)| name));
        for one in found {
            let Some(&source) = sources.get(&one.ran) else { continue };
            let names = &mut self.locations[one.log].names;
            names.task = task as u32;
            names.pieces.push(Piece { end_ns: one.end_ns, ns: one.ns, source });
        }
        for log in &mut self.locations {
            log.names.pieces.sort_by_key(|piece| piece.end_ns);
        }
        Ok(())
    }

    /// Adds the tasks' runs that a recording of one host has for the run's threads.
    fn find(&self, recording: &Path, found: &mut Vec<Found>) -> Result<(), Error> {
        let manifest = Manifest::read(recording)?;
        let Some(zero_ns) = manifest.zero_monotonic_ns else { return Ok(()) };
        let here = |log: &usize| Some(&self.definitions.locations[*log].host) == manifest.host.as_ref();
        let logs: HashMap<u32, usize> =
            (0..self.locations.len()).filter(here).map(|log| (self.locations[log].tid, log)).collect();
        let is_rank = |pid: u32| logs.values().any(|&log| self.locations[log].pid == pid);
        let processes: HashMap<u32, u32> = read_table::<Thread>(recording)?
            .0
            .into_iter()
            .map(|(_, thread)| (thread.tid, thread.pid))
            .filter(|&(_, pid)| is_rank(pid))
            .collect();
        read_batches(recording, Interval::TABLE, &mut |path, batch| {
            let rows = Interval::from_batch(&batch).map_err(|reason| Error::malformed(path, reason))?;
            for (_, row) in rows {
                let (Some(&log), Source::Task(name)) = (logs.get(&row.victim), &row.source) else { continue };
                let own_ns = zero_ns.saturating_add(row.end().as_nanos());
                let ran = match processes.get(&row.pid) {
                    Some(&pid) if pid == self.locations[log].pid => Ran::OwnThread,
                    Some(_) => Ran::OtherRank,
                    None => Ran::Task(name.to_string()),
                };
                found.push(Found {
                    log,
                    end_ns: self.locations[log].clock.common(own_ns),
                    ns: row.net.as_nanos(),
                    ran,
                });
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// The tasks that took most, the longest first.
fn longest(found: &[Found]) -> Vec<Ran> {
    let mut sums: BTreeMap<&Ran, u64> = BTreeMap::new();
    for one in found {
        let sum = sums.entry(&one.ran).or_insert(0);
        *sum = sum.saturating_add(one.ns);
    }
    let least_ns = LEAST_PART * sums.values().fold(0u64, |all, &ns| all.saturating_add(ns)) as f64;
    let mut sums: Vec<_> = sums.into_iter().filter(|&(_, ns)| ns as f64 >= least_ns && ns > 0).collect();
    sums.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
    sums.into_iter().take(MOST_NAMES).map(|(ran, _)| ran.clone()).collect()
}
