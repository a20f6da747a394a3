//! Reads the events of a run once, and determines their meaning: the operation of each request, the message of each send and receive, the
//! collective of each call, what a call completed, and which calls polled without success. Callers get [`Fact`]s and use them for their purpose:
//! the analysis of noise computes the run without it, `goal` makes a schedule.
//!
//! Threads of a rank share its messages and collectives, and may complete each other's requests (MPI 4.0, 11.6.1), so they are processed
//! together, in order of time. Receives are numbered when they are posted: the sender of a receive from any source is looked up in the events
//! ahead. If its end is too far ahead, the receive is numbered when it ends.

mod calls;
mod communicators;
mod fact;
mod message_matching;
mod operations;
mod teams;
mod thread;

use std::collections::BTreeMap;
use std::sync::Arc;

use quell_recording::mpi::{Definitions, Event, Run, What};
use rustc_hash::FxHashMap;

pub(super) use calls::{CallKind, polls_again};
use communicators::Communicators;
pub(super) use fact::{CollectiveEnd, CollectivePart, Fact, OperationId, TeamBarrier, TeamId, Timed};
use message_matching::Channels;
pub(super) use message_matching::{Channel, MessageKey};
use teams::Teams;
use thread::{Input, Thread};

/// All locations of a rank.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub rank: u32,
    /// The first thread represents the rank.
    pub locations: Vec<u32>,
}

/// Processes the events of a run.
pub(super) struct EventReader<'a, R: Run + ?Sized> {
    input: Input<'a, R>,
    pub definitions: Arc<Definitions>,
    kinds: Vec<CallKind>,
    communicators: Communicators,
    channels: Channels,
    /// Number of collectives that a rank has begun on a communicator.
    collectives: FxHashMap<(u32, u32), u64>,
    /// The processes in order of rank.
    processes: Vec<Process>,
    /// The index of the process of each location.
    process_of: Vec<usize>,
    /// The teams of each process.
    teams: Vec<Teams>,
    /// The threads by location.
    threads: Vec<Thread>,
    operations: u64,
}

impl<'a, R: Run + ?Sized> EventReader<'a, R> {
    pub fn new(run: &'a mut R) -> Self {
        let definitions = Arc::new(run.definitions().clone());
        let processes = processes(&definitions);
        let mut process_of = vec![0; definitions.locations.len()];
        for (place, process) in processes.iter().enumerate() {
            for location in &process.locations {
                process_of[*location as usize] = place;
            }
        }
        let locations = definitions.locations.iter().enumerate();
        Self {
            input: Input { run, read: 0 },
            kinds: definitions.regions.iter().map(CallKind::from_region).collect(),
            communicators: Communicators::new(&definitions),
            channels: Channels::default(),
            collectives: FxHashMap::default(),
            threads: locations.map(|(location, facts)| Thread::new(location, facts.rank)).collect(),
            teams: vec![Teams::default(); processes.len()],
            processes,
            process_of,
            operations: 0,
            definitions,
        }
    }

    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Properties of a region, by its name.
    pub fn kind(&self, region: u32) -> CallKind {
        kind(&self.kinds, region)
    }

    /// Time of the program's own work that the run left out of its events, by the name of its counter.
    pub fn own_work_ns(&self) -> BTreeMap<String, u64> {
        self.input.run.own_work_ns()
    }

    /// Number of events that were read, without noise counters.
    pub fn read(&self) -> u64 {
        self.input.read
    }

    /// Why a location's events break off before its end.
    pub fn damage(&self, location: u32) -> Option<&str> {
        self.threads[location as usize].damage.as_deref()
    }

    /// The location's next fact, without removing it.
    pub fn peek(&mut self, location: u32) -> Option<Timed> {
        let at = location as usize;
        while self.threads[at].facts.is_empty() {
            self.threads[at].peek(&mut self.input)?;
            self.advance(self.process_of[at]);
        }
        self.threads[at].facts.front().copied()
    }

    /// Removes the location's next fact.
    pub fn take(&mut self, location: u32) -> Option<Timed> {
        self.threads[location as usize].facts.pop_front()
    }

    /// Removes the next fact of any thread of a process.
    pub fn take_of_process(&mut self, process: usize) -> Option<(u32, Timed)> {
        loop {
            for at in 0..self.processes[process].locations.len() {
                let location = self.processes[process].locations[at];
                if let Some(fact) = self.take(location) {
                    return Some((location, fact));
                }
            }
            if !self.advance(process) {
                return None;
            }
        }
    }

    /// Processes the earliest event of a process; `false` if there is none.
    fn advance(&mut self, process: usize) -> bool {
        let mut first: Option<((u64, u8), usize, Event)> = None;
        for location in &self.processes[process].locations {
            let thread = &mut self.threads[*location as usize];
            let Some(event) = thread.peek(&mut self.input) else { continue };
            let time = (event.time_ns.max(thread.now_ns), teams::turn(event.what));
            if first.is_none_or(|(first, ..)| time < first) {
                first = Some((time, *location as usize, event));
            }
        }
        let Some(((time_ns, _), location, event)) = first else { return false };
        let thread = &mut self.threads[location];
        thread.advance();
        let from_ns = std::mem::replace(&mut thread.now_ns, time_ns);
        if event.time_ns < from_ns {
            thread.push(Fact::ClockBackwards { from_ns, to_ns: event.time_ns });
        }
        self.event(location, event.what);
        true
    }

    fn event(&mut self, location: usize, what: What) {
        let thread = &mut self.threads[location];
        let kinds = &self.kinds;
        match what {
            What::Enter(region) => thread.enter(region, kind(kinds, region)),
            What::Leave(region) => {
                if thread.ends_barrier(region) {
                    self.leave_barrier(location);
                }
                self.threads[location].leave(region, |region| kind(&self.kinds, region));
            }
            What::Noise { source, total_ns } => thread.push(Fact::Noise { source, total_ns }),
            What::Fork { .. } | What::TeamBegin | What::TeamEnd | What::Join => self.team(location, what),
            what => {
                thread.begin_call();
                self.communicates(location, what);
                // A collective without a region around it ends with its own event.
                if !matches!(what, What::CollectiveBegin) {
                    self.threads[location].end_bare_call(|region| kind(&self.kinds, region));
                }
            }
        }
    }
}

fn kind(kinds: &[CallKind], region: u32) -> CallKind {
    kinds.get(region as usize).copied().unwrap_or_default()
}

fn processes(definitions: &Definitions) -> Vec<Process> {
    let locations = definitions.locations.iter().enumerate();
    let mut all: Vec<(u32, u32, u32)> =
        locations.map(|(place, location)| (location.rank, location.thread, place as u32)).collect();
    all.sort_unstable();
    let of_one_rank = all.chunk_by(|one, other| one.0 == other.0);
    let process = |threads: &[(u32, u32, u32)]| Process {
        rank: threads[0].0,
        locations: threads.iter().map(|(.., location)| *location).collect(),
    };
    of_one_rank.map(process).collect()
}
