//! Reads the logs of an MPI program from the tracer in `mpi/trace`: a folder with one log per thread. The layout is that of
//! `mpi/trace_log.h`.
//!
//! The content of a log is only trusted as far as it can be checked: damage ends a location's events, and never more than that.

mod definitions;
mod events;
mod head;
mod layout;
mod lines;
mod records;
mod sites;
mod task_names;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::Error;
use crate::mpi::{Damage, Definitions, Event, Location, Run};
use definitions::{Maps, define};
use events::Events;
use head::{Head, State};
pub use layout::variable;
use lines::Clock;
use records::Extent;
use task_names::TaskNames;
pub use task_names::{OTHER_RANKS, OWN_THREADS};

/// The extension of a log's name.
const ENDING: &str = "log";
/// Maximum number of ranks without a log. Each takes memory, and a damaged head can claim millions of them.
const MOST_MISSING: usize = 1 << 16;
/// The name of the source that the tracer adds to the kernel's kinds.
pub const INJECTED: &str = "injected";

/// The logs of one run.
#[derive(Debug)]
pub struct LogRun {
    definitions: Definitions,
    summary: Summary,
    locations: Vec<Log>,
}

/// The log behind a location.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    extent: Extent,
    pid: u32,
    tid: u32,
    clock: Clock,
    maps: Maps,
    names: TaskNames,
    /// The events, once reading has begun.
    events: Option<Events>,
    /// Whether all events were read, or damage was found.
    over: bool,
}

/// Facts about a run that a reader of its events must know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of ranks of the run, as the ranks report it.
    pub ranks: u32,
    /// Ranks without a log.
    pub missing: Vec<u32>,
    /// Ranks that did not reach the end of `MPI_Finalize`.
    pub unfinished: Vec<u32>,
    /// Ranks that called only `MPI_Init` and `MPI_Finalize`.
    pub silent: Vec<u32>,
    /// Processes that use another MPI library than the tracer's: host and process id. They have no location.
    pub wrong_mpi: Vec<(String, u32)>,
    /// Processes of other MPI programs under the same tracer, such as a second `mpirun` or `MPI_Comm_spawn`: host and process id. Only those of
    /// the program that began first have locations.
    pub others: Vec<(String, u32)>,
    /// Logs that cannot be read, and why.
    pub damaged: Vec<(PathBuf, String)>,
    /// Number of MPI calls.
    pub calls: u64,
    /// Number of records that were lost because of a limit, or a full disk.
    pub lost: u64,
    /// Number of one-sided calls, which are recorded but not tracked.
    pub one_sided: u64,
    /// Why there are no counters of the kernel's noise, with the first rank that reports it.
    pub no_noise: BTreeMap<String, u32>,
    /// Names of communicators without recorded members.
    pub unknown_members: Vec<String>,
    /// Hosts whose clocks were never compared with rank 0's: their times are on their own clocks.
    pub unaligned: Vec<String>,
    /// The MPI library, as it names itself.
    pub library: String,
    /// The program.
    pub program: String,
}

impl LogRun {
    /// Opens the logs in `folder` and reads what they define.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Malformed`] if no log can be read or too many are missing.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let mut summary = Summary::default();
        let mut heads = Vec::new();
        for path in logs_in(folder)? {
            match Head::read(&path) {
                Ok(head) if head.state == State::WrongMpi => summary.wrong_mpi.push((head.host, head.pid)),
                Ok(head) => heads.push((path, head)),
                Err(Error::Malformed { path, reason }) => summary.damaged.push((path, reason)),
                Err(other) => return Err(other),
            }
        }
        if heads.is_empty() && summary.wrong_mpi.is_empty() {
            let reason = summary
                .damaged
                .first()
                .map_or("there are no logs of an MPI program".into(), |(_, reason)| reason.clone());
            return Err(Error::malformed(folder, reason));
        }
        summary.leave_out_others(&mut heads);
        heads.sort_by_key(|(_, head)| (head.rank, head.thread, head.pid));
        summary.add(&heads);
        if summary.missing.len() > MOST_MISSING {
            let present = summary.ranks as usize - summary.missing.len();
            let reason = format!(
                "the logs of {present} of {} ranks are here, and at most {MOST_MISSING} may be missing: copy those of the other ranks \
                 into the same folder, or remove a damaged log that claims too many ranks",
                summary.ranks
            );
            return Err(Error::malformed(folder, reason));
        }
        let clocks = lines::clocks(&heads, &mut summary.unaligned);
        let (mut definitions, maps) = define(&heads, &mut summary)?;
        let span = |(head, clock): (&Head, &Clock)| {
            let end = head.end_ns.max(head.begin_ns);
            [clock.common(head.begin_ns), clock.common(end)]
        };
        let spans = || heads.iter().map(|(_, head)| head).zip(&clocks).map(span);
        definitions.span_ns = [
            spans().map(|span| span[0]).min().unwrap_or_default(),
            spans().map(|span| span[1]).max().unwrap_or_default(),
        ];
        let logs = heads.into_iter().zip(clocks).zip(maps);
        let locations = logs
            .map(|(((path, head), clock), maps)| Log {
                path,
                extent: head.extent,
                pid: head.pid,
                tid: head.tid,
                clock,
                maps,
                names: TaskNames::default(),
                events: None,
                over: false,
            })
            .collect();
        let mut run = Self { definitions, summary, locations };
        run.add_missing();
        Ok(run)
    }

    /// Adds locations without events for ranks without a log, so that messages of other ranks can refer to them.
    fn add_missing(&mut self) {
        let absent = |rank: &u32| {
            let location = Location { name: format!("rank {rank}"), rank: *rank, ..Location::default() };
            (location, Log::absent())
        };
        let known = std::mem::take(&mut self.definitions.locations)
            .into_iter()
            .zip(std::mem::take(&mut self.locations));
        let mut all: Vec<_> = self.summary.missing.iter().map(absent).chain(known).collect();
        // Threads of a rank stay in their order.
        all.sort_by_key(|(location, _)| location.rank);
        (self.definitions.locations, self.locations) = all.into_iter().unzip();
        for (place, location) in self.definitions.locations.iter_mut().enumerate() {
            location.id = place as u64;
        }
    }

    /// Facts that a reader of the events must know.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}

fn logs_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == ENDING) && path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

impl Summary {
    /// Keeps only the processes of the program that began first: those that report its job and as many ranks, and for each rank the first of
    /// them. A process that ended within MPI_Init may not know its job.
    fn leave_out_others(&mut self, heads: &mut Vec<(PathBuf, Head)>) {
        let earliest = heads.iter().min_by_key(|(_, head)| head.begin_ns);
        let Some((ranks, job)) = earliest.map(|(_, head)| (head.ranks, head.job)) else { return };
        let may_be_first = |head: &Head| head.ranks == ranks && (job == 0 || [0, job].contains(&head.job));
        let mut first: BTreeMap<u32, (u64, String, u32)> = BTreeMap::new();
        for (_, head) in heads.iter().filter(|(_, head)| may_be_first(head)) {
            let this = (head.begin_ns, head.host.clone(), head.pid);
            let known = first.entry(head.rank).or_insert_with(|| this.clone());
            // Threads of one process begin one after another.
            if (&known.1, known.2) != (&this.1, this.2) && this.0 < known.0 {
                *known = this;
            }
        }
        let of_another = |head: &Head| {
            let is_first = |(_, host, pid): &(u64, String, u32)| (host, pid) == (&head.host, &head.pid);
            !may_be_first(head) || !first.get(&head.rank).is_some_and(is_first)
        };
        let others = heads.iter().filter(|(_, head)| of_another(head));
        // A process has a log for each of its threads.
        let others: BTreeSet<_> = others.map(|(_, head)| (head.host.clone(), head.pid)).collect();
        self.others = others.into_iter().collect();
        heads.retain(|(_, head)| !of_another(head));
    }

    fn add(&mut self, heads: &[(PathBuf, Head)]) {
        let mut ranks: BTreeMap<u32, (bool, u64)> = BTreeMap::new();
        for (_, head) in heads {
            let (finished, calls) = ranks.entry(head.rank).or_insert((true, 0));
            *finished &= head.state == State::Finalized;
            *calls = calls.saturating_add(head.calls);
            self.ranks = self.ranks.max(head.ranks);
            self.calls = self.calls.saturating_add(head.calls);
            self.lost = self.lost.saturating_add(head.lost);
            self.one_sided = self.one_sided.saturating_add(head.one_sided);
            if !head.reason.is_empty() {
                self.no_noise.entry(head.reason.clone()).or_insert(head.rank);
            }
        }
        self.missing = (0..self.ranks).filter(|rank| !ranks.contains_key(rank)).collect();
        self.unfinished =
            ranks.iter().filter(|(_, (finished, _))| !finished).map(|(rank, _)| *rank).collect();
        self.silent = ranks.iter().filter(|(_, (_, calls))| *calls == 0).map(|(rank, _)| *rank).collect();
        if let Some((_, first)) = heads.first() {
            self.library.clone_from(&first.library);
            self.program.clone_from(&first.program);
        }
    }
}

impl Run for LogRun {
    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn read(&mut self, location: usize, events: &mut Vec<Event>) -> Result<bool, Damage> {
        let Some(log) = self.locations.get_mut(location).filter(|log| !log.over) else { return Ok(false) };
        let more = log.read(events);
        // Nothing after damage can be trusted.
        log.over = !matches!(more, Ok(true));
        if log.over {
            log.events = None;
        }
        more.map_err(|damage| Damage(format!("{}: {}", log.path.display(), damage.0)))
    }
}

impl Log {
    /// Stands for a log that is not there.
    fn absent() -> Self {
        Self {
            path: PathBuf::new(),
            extent: Extent::default(),
            pid: 0,
            tid: 0,
            clock: Clock::default(),
            maps: Maps::default(),
            names: TaskNames::default(),
            events: None,
            over: true,
        }
    }

    fn read(&mut self, events: &mut Vec<Event>) -> Result<bool, Damage> {
        if self.events.is_none() {
            self.events = Some(Events::open(&self.path, self.extent).map_err(|why| Damage(why.to_string()))?);
        }
        let Some(reader) = &mut self.events else { return Ok(false) };
        let from = events.len();
        let more = reader.read(&self.maps, &self.clock, events);
        self.names.split(events, from);
        more
    }
}
