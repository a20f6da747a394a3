//! What one rank did: its sends, receives and collectives, and how long it worked before each.

use quell_recording::mpi::{Run, UNKNOWN};
use rustc_hash::FxHashMap;

use super::SkippedEvents;
use super::steps::{Call, Message, Operation, Step, Steps};
use crate::track::event_reader::{
    CollectiveEnd, CollectivePart, EventReader, Fact, MessageKey, OperationId, Timed, polls_again,
};

/// All steps of a rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    /// Its rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    pub steps: Steps,
    /// Work after the last step.
    pub rest_ns: u64,
}

/// Reads all ranks, in order. Omits what threads other than the first do, except for what they complete for the first.
pub(super) fn all<R: Run + ?Sized>(
    events: &mut EventReader<'_, R>,
    skipped: &mut SkippedEvents,
    progress: &mut dyn FnMut(u64),
) -> Vec<Sequence> {
    let processes = events.processes().to_vec();
    skipped.threads = (events.definitions.locations.len() - processes.len()) as u64;
    let of_rank: FxHashMap<u32, u32> =
        processes.iter().enumerate().map(|(place, process)| (process.rank, place as u32)).collect();
    let mut read = 0;
    let sequences = processes.iter().enumerate().map(|(place, process)| {
        let mut builder = SequenceBuilder::new(&of_rank, process.rank, events.definitions.sources.len());
        while let Some((location, Timed { time_ns, fact })) = events.take_of_process(place) {
            if std::mem::replace(&mut read, events.read()) != events.read() {
                progress(events.read());
            }
            if location == process.locations[0] {
                let polls = fact.begins_call().is_some_and(|region| events.kind(region).polls);
                builder.fact(time_ns, fact, polls);
            } else {
                builder.fact_of_another_thread(fact);
            }
        }
        for damage in process.locations.iter().filter_map(|location| events.damage(*location)) {
            skipped.note(|| format!("rank {}: {damage}", process.rank));
        }
        builder.end(skipped)
    });
    sequences.collect()
}

/// The outermost open call.
#[derive(Debug)]
struct OpenCall {
    entered: u64,
    /// Steps that are done when it ends.
    done: Vec<u32>,
}

/// Builds the sequence of a rank.
struct SequenceBuilder<'a> {
    of_rank: &'a FxHashMap<u32, u32>,
    sequence: Sequence,
    now: u64,
    /// When its first event happened.
    start: Option<u64>,
    /// When the last call ended, and the noise since then.
    since: u64,
    noise: u64,
    /// Noise for which there was no work time to subtract it from.
    debt: u64,
    /// Work since the last step.
    work: u64,
    totals: Vec<u64>,
    /// When the last region was entered, and the noise until then.
    entered: (u64, u64),
    call: Option<OpenCall>,
    /// Duration of the last call, if it polled without success.
    unsuccessful: Option<u64>,
    /// The time between that call and the open one, and the noise in it: work, unless the open one completes what was polled for.
    undecided: Option<(u64, u64)>,
    begun: FxHashMap<OperationId, u32>,
}

impl<'a> SequenceBuilder<'a> {
    fn new(of_rank: &'a FxHashMap<u32, u32>, rank: u32, sources: usize) -> Self {
        Self {
            of_rank,
            sequence: Sequence { rank, ..Sequence::default() },
            now: 0,
            start: None,
            since: 0,
            noise: 0,
            debt: 0,
            work: 0,
            totals: vec![0; sources],
            entered: (0, 0),
            call: None,
            unsuccessful: None,
            undecided: None,
            begun: FxHashMap::default(),
        }
    }

    /// Processes a fact of the first thread; `polls` if a call begins with it that polls.
    fn fact(&mut self, time_ns: u64, fact: Fact, polls: bool) {
        self.now = time_ns;
        if self.start.is_none() {
            (self.start, self.since) = (Some(self.now), self.now);
        }
        match fact {
            Fact::Enter { begins_call, .. } => {
                self.entered = (self.now, self.noise);
                if begins_call {
                    self.begin_call(polls);
                }
            }
            Fact::Noise { source, total_ns } => self.add_noise(source, total_ns),
            Fact::CallBegin { depth, .. } => {
                if depth.is_none() {
                    self.entered = (self.now, self.noise);
                }
                self.begin_call(polls);
            }
            Fact::CallEnd { unsuccessful } => self.end_call(unsuccessful),
            Fact::Send { operation, message, bytes } => {
                let message = self.message(message, bytes);
                let place = self.push(Operation::Send(message));
                match operation {
                    Some(operation) => drop(self.begun.insert(operation, place)),
                    None => self.done(place),
                }
            }
            Fact::ReceivePosted { operation, .. } => {
                // It becomes a receive once its message has arrived.
                let place = self.push(Operation::Nothing);
                self.begun.insert(operation, place);
            }
            Fact::CollectivePosted { operation, part } => {
                let call = Call { part, kind: None, root: None, sent: 0, received: 0, blocking: false };
                let place = self.push(Operation::Collective(call));
                self.begun.insert(operation, place);
            }
            Fact::Cancelled { operation } => self.cancelled(operation),
            Fact::SendDone { operation } => {
                if let Some(place) = self.begun_by(operation) {
                    self.done(place);
                }
            }
            Fact::Received { operation, message, bytes } => {
                self.undecided = None;
                let receive = Operation::Receive(self.message(message, bytes));
                let place = match self.begun_by(operation) {
                    Some(place) => self.turns_out(place, receive),
                    None => self.push(receive),
                };
                self.done(place);
            }
            Fact::Collective { operation, part, ends } => match self.begun_by(operation) {
                Some(place) => {
                    self.undecided = None;
                    self.turns_out(place, collective(part, &ends, false));
                    self.done(place);
                }
                // Its position in the program is its end.
                None => drop(self.push(collective(part, &ends, true))),
            },
            _ => {}
        }
    }

    /// Processes a fact of another thread, which may complete what the first began; the first then does not wait for it.
    fn fact_of_another_thread(&mut self, fact: Fact) {
        match fact {
            Fact::Cancelled { operation } => self.cancelled(operation),
            Fact::SendDone { operation } => drop(self.begun_by(operation)),
            Fact::Received { operation, message, bytes } => {
                if let Some(place) = self.begun_by(operation) {
                    let message = self.message(message, bytes);
                    self.turns_out(place, Operation::Receive(message));
                }
            }
            Fact::Collective { operation, part, ends } => {
                if let Some(place) = self.begun_by(operation) {
                    self.turns_out(place, collective(part, &ends, false));
                }
            }
            _ => {}
        }
    }

    fn add_noise(&mut self, source: u32, total_ns: u64) {
        let Some(total) = self.totals.get_mut(source as usize) else { return };
        let more = total_ns.saturating_sub(std::mem::replace(total, total_ns));
        // Noise before the first event did not delay the work after it.
        if self.start != Some(self.now) {
            self.noise = self.noise.saturating_add(more);
        }
    }

    /// Begins a call at the entry of the last region.
    fn begin_call(&mut self, polls: bool) {
        let (entered, noise) = self.entered;
        self.worked_until(entered, noise, polls);
        self.call = Some(OpenCall { entered, done: Vec::new() });
    }

    /// Adds the work until `end` less the `noise` that struck it, unless the program only polled again. If a call that blocks follows a poll, what
    /// it does decides.
    fn worked_until(&mut self, end: u64, noise: u64, polls: bool) {
        let time = end.saturating_sub(self.since);
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let idle = signed(time.saturating_sub(noise));
        let again = self.unsuccessful.take().is_some_and(|last| polls_again(idle, signed(last)));
        match again {
            true if polls => {}
            true => self.undecided = Some((time, noise)),
            false => self.add_work(time, noise),
        }
    }

    fn add_work(&mut self, time: u64, noise: u64) {
        let noise = noise.saturating_add(self.debt);
        let taken = noise.min(time);
        self.debt = noise - taken;
        self.work = self.work.saturating_add(time - taken);
    }

    /// The open call did something else than complete what was polled for.
    fn decide(&mut self) {
        if let Some((time, noise)) = self.undecided.take() {
            self.add_work(time, noise);
        }
    }

    fn end_call(&mut self, unsuccessful: bool) {
        let Some(mut call) = self.call.take() else { return };
        self.decide();
        call.done.sort_unstable();
        for place in call.done {
            self.push(Operation::Wait(place));
        }
        self.unsuccessful = unsuccessful.then(|| self.now.saturating_sub(call.entered));
        (self.since, self.noise) = (self.now, 0);
    }

    fn push(&mut self, operation: Operation) -> u32 {
        self.decide();
        let gap_ns = std::mem::take(&mut self.work);
        self.sequence.steps.push(Step { gap_ns, operation })
    }

    /// The step that began an operation which now ends.
    fn begun_by(&mut self, operation: Option<OperationId>) -> Option<u32> {
        self.begun.remove(&operation?)
    }

    fn turns_out(&mut self, place: u32, operation: Operation) -> u32 {
        self.sequence.steps.set(place as usize, operation);
        place
    }

    /// Removes a cancelled receive. A collective stays, because collectives cannot be cancelled (MPI 4.0, 6.12).
    fn cancelled(&mut self, operation: Option<OperationId>) {
        let Some(place) = self.begun_by(operation) else { return };
        if !matches!(self.sequence.steps.operation(place as usize), Operation::Collective(_)) {
            self.sequence.steps.set(place as usize, Operation::Nothing);
        }
    }

    /// Makes the open call wait for this step.
    fn done(&mut self, place: u32) {
        if let Some(call) = &mut self.call {
            call.done.push(place);
        }
    }

    fn message(&self, key: Option<MessageKey>, bytes: u64) -> Message {
        let rank = self.sequence.rank;
        let other = |key: MessageKey| {
            if key.channel.from == rank { key.channel.to } else { key.channel.from }
        };
        let peer = key.and_then(|key| self.of_rank.get(&other(key))).copied().unwrap_or(UNKNOWN);
        // LogGOPSim counts the bytes after the first: an empty message would take negative time.
        Message { key, peer, bytes: bytes.max(1) }
    }

    fn end(mut self, skipped: &mut SkippedEvents) -> Sequence {
        if self.call.is_some() {
            self.end_call(false);
        } else {
            self.worked_until(self.now, self.noise, false);
            self.decide();
        }
        let steps = &self.sequence.steps;
        let nothing = |place: &&u32| steps.operation(**place as usize) == Operation::Nothing;
        let unfinished = self.begun.values().filter(nothing).count();
        if unfinished > 0 {
            skipped.receives += unfinished as u64;
            let rank = self.sequence.rank;
            skipped.note(|| format!("rank {rank}: {unfinished} receives began and never ended"));
        }
        self.sequence.rest_ns = self.work;
        self.sequence
    }
}

fn collective(part: Option<CollectivePart>, ends: &CollectiveEnd, blocking: bool) -> Operation {
    let CollectiveEnd { kind, root, sent, received } = *ends;
    Operation::Collective(Call { part, kind: Some(kind), root, sent, received, blocking })
}
