//! What one rank did, taken from its events: what it sent, received and took part in, and how long it worked before each.

use quell_recording::mpi::{BLOCKING, Definitions, Event, Operation, Run, UNKNOWN, What};
use rustc_hash::FxHashMap;

use super::LeftOut;

/// Calls that ask again within so many ns, and twice what the last took, have done nothing else meanwhile: as in the analysis of noise.
const AGAIN_NS: u64 = 2_000;

/// A message, as one of its ends knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub comm: u32,
    /// The other end: a place among the sequences, or [`UNKNOWN`].
    pub peer: u32,
    pub tag: u32,
    pub bytes: u64,
}

/// A rank's part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub comm: u32,
    /// Unknown where it never ended here.
    pub operation: Option<Operation>,
    pub root: u32,
    pub sent: u64,
    pub received: u64,
    pub blocking: bool,
}

/// What a rank did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Handed a message over; its end is waited for by [`Act::Wait`].
    Send(Message),
    /// Began to wait for one.
    Receive(Message),
    Collective(Call),
    /// Went on only when what began at that place in the sequence was done.
    Wait(u32),
    /// Something of which an end is missing.
    Nothing,
}

/// What a rank did, and the work before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Since the last step, without MPI calls and noise.
    pub gap_ns: u64,
    pub act: Act,
}

/// All of a rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequence {
    /// Its number in the world.
    pub rank: u32,
    pub steps: Vec<Step>,
    /// Work after the last step.
    pub rest_ns: u64,
}

/// Goes through the first threads of all ranks, in order of rank.
pub(super) fn all<R: Run + ?Sized>(
    run: &mut R,
    left_out: &mut LeftOut,
    progress: &mut dyn FnMut(u64),
) -> Vec<Sequence> {
    let definitions = run.definitions().clone();
    let firsts = firsts(&definitions);
    left_out.threads = (definitions.locations.len() - firsts.len()) as u64;
    let of_rank: FxHashMap<u32, u32> =
        firsts.iter().enumerate().map(|(place, (rank, _))| (*rank, place as u32)).collect();
    let (mut events, mut read) = (Vec::new(), 0);
    let sequences = firsts.iter().map(|&(rank, location)| {
        let mut taker = Taker::new(&definitions, &of_rank, rank);
        loop {
            events.clear();
            let more = run.read(location, &mut events);
            read += events.len() as u64;
            progress(read);
            events.iter().for_each(|event| taker.event(*event));
            match more {
                Ok(true) => {}
                Ok(false) => break,
                Err(damage) => {
                    left_out.tell(|| format!("rank {rank}: {damage}"));
                    break;
                }
            }
        }
        taker.end(left_out)
    });
    sequences.collect()
}

/// Of each rank the location of its first thread, in order of rank.
fn firsts(definitions: &Definitions) -> Vec<(u32, usize)> {
    let mut all: Vec<(u32, u32, usize)> = definitions
        .locations
        .iter()
        .enumerate()
        .map(|(place, location)| (location.rank, location.thread, place))
        .collect();
    all.sort_unstable();
    all.dedup_by_key(|(rank, ..)| *rank);
    all.into_iter().map(|(rank, _, place)| (rank, place)).collect()
}

/// A region that was entered outside of MPI calls.
#[derive(Clone, Copy, Debug)]
struct Frame {
    region: u32,
    entered: u64,
    /// Noise by then since the last call.
    noise: u64,
    /// Nothing happened in it yet.
    fresh: bool,
}

/// The outermost call that goes on.
#[derive(Debug, Default)]
struct Open {
    region: u32,
    entered: u64,
    /// How many regions are open around it; `None` where none stands around what happened.
    depth: Option<usize>,
    /// Steps that are done when it ends.
    done: Vec<u32>,
    /// It did something.
    did: bool,
}

/// Goes through the events of a location.
struct Taker<'a> {
    definitions: &'a Definitions,
    of_rank: &'a FxHashMap<u32, u32>,
    sequence: Sequence,
    now: u64,
    /// When its first event was.
    start: Option<u64>,
    /// When the last call ended, and the noise since.
    since: u64,
    noise: u64,
    /// Noise that found no time to be taken from.
    debt: u64,
    /// Work since the last step.
    work: u64,
    totals: Vec<u64>,
    stack: Vec<Frame>,
    call: Option<Open>,
    /// How long the last call took, if it asked in vain.
    in_vain: Option<u64>,
    requests: FxHashMap<u64, u32>,
}

impl<'a> Taker<'a> {
    fn new(definitions: &'a Definitions, of_rank: &'a FxHashMap<u32, u32>, rank: u32) -> Self {
        Self {
            definitions,
            of_rank,
            sequence: Sequence { rank, ..Sequence::default() },
            now: 0,
            start: None,
            since: 0,
            noise: 0,
            debt: 0,
            work: 0,
            totals: vec![0; definitions.sources.len()],
            stack: Vec::new(),
            call: None,
            in_vain: None,
            requests: FxHashMap::default(),
        }
    }

    fn event(&mut self, event: Event) {
        self.now = self.now.max(event.time_ns);
        if self.start.is_none() {
            (self.start, self.since) = (Some(self.now), self.now);
        }
        match event.what {
            What::Enter(region) => return self.enter(region),
            What::Leave(region) => return self.leave(region),
            What::Noise { source, total_ns } => {
                if let Some(total) = self.totals.get_mut(source as usize) {
                    let more = total_ns.saturating_sub(std::mem::replace(total, total_ns));
                    // What struck before the first event took nothing from the work after it.
                    if self.start != Some(self.now) {
                        self.noise = self.noise.saturating_add(more);
                    }
                }
                return;
            }
            _ => self.open_call(),
        }
        match event.what {
            What::Send { comm, to, tag, bytes, request } => {
                let message = self.message(comm, to, tag, bytes);
                self.begin(Act::Send(message), request);
            }
            What::RecvPosted { request, .. } => {
                // Which message it takes comes with its end.
                let place = self.push(Act::Nothing);
                self.requests.insert(request, place);
            }
            What::Recv { comm, from, tag, bytes, request } => {
                let message = self.message(comm, from, tag, bytes);
                self.over(Act::Receive(message), request);
            }
            What::CollectivePosted { comm, request } => {
                let call =
                    Call { comm, operation: None, root: UNKNOWN, sent: 0, received: 0, blocking: false };
                let place = self.push(Act::Collective(call));
                self.requests.insert(request, place);
            }
            What::Collective { operation, comm, root, sent, received, request } => {
                let blocking = request == BLOCKING || !self.requests.contains_key(&request);
                let call = Call { comm, operation: Some(operation), root, sent, received, blocking };
                self.over(Act::Collective(call), request);
            }
            What::SendDone { request } => {
                if let Some(place) = self.requests.remove(&request) {
                    self.done(place);
                }
            }
            What::Cancelled { request } => {
                if let Some(place) = self.requests.remove(&request) {
                    self.sequence.steps[place as usize].act = Act::Nothing;
                }
            }
            What::Probed { .. } => {
                if let Some(call) = &mut self.call {
                    call.did = true;
                }
            }
            _ => {}
        }
        if self.call.as_ref().is_some_and(|call| call.depth.is_none()) {
            self.close_call();
        }
    }

    fn enter(&mut self, region: u32) {
        if let Some(frame) = self.stack.last_mut() {
            frame.fresh = false;
        }
        if self.call.is_none() && self.definitions.regions.get(region as usize).is_some_and(|facts| facts.mpi)
        {
            self.settle(region, self.now, self.noise);
            self.call =
                Some(Open { region, entered: self.now, depth: Some(self.stack.len()), ..Open::default() });
        }
        self.stack.push(Frame { region, entered: self.now, noise: self.noise, fresh: true });
    }

    fn leave(&mut self, region: u32) {
        let Some(at) = self.stack.iter().rposition(|frame| frame.region == region) else { return };
        self.stack.truncate(at);
        if self.call.as_ref().is_some_and(|call| call.depth.is_some_and(|depth| depth >= at)) {
            self.close_call();
        }
    }

    /// Something is communicated: in a call, in a region that was entered for it alone, or in none.
    fn open_call(&mut self) {
        if self.call.is_some() {
            return;
        }
        let depth = self.stack.len();
        let frame = self.stack.last().copied().filter(|frame| frame.fresh && depth > 1);
        let (region, entered, noise) =
            frame.map_or((UNKNOWN, self.now, self.noise), |frame| (frame.region, frame.entered, frame.noise));
        self.settle(region, entered, noise);
        self.call = Some(Open { region, entered, depth: frame.map(|_| depth - 1), ..Open::default() });
    }

    /// The program worked until `now`, while so much noise struck it.
    fn settle(&mut self, region: u32, now: u64, noise: u64) {
        let time = now.saturating_sub(self.since);
        let asks_again = self
            .in_vain
            .take()
            .is_some_and(|length| self.polls(region) && time.saturating_sub(noise) <= AGAIN_NS + 2 * length);
        if asks_again {
            return;
        }
        let noise = noise.saturating_add(self.debt);
        let taken = noise.min(time);
        self.debt = noise - taken;
        self.work = self.work.saturating_add(time - taken);
    }

    fn close_call(&mut self) {
        let Some(mut call) = self.call.take() else { return };
        call.done.sort_unstable();
        for place in call.done {
            self.push(Act::Wait(place));
        }
        let asked = !call.did && self.polls(call.region);
        self.in_vain = asked.then(|| self.now.saturating_sub(call.entered));
        (self.since, self.noise) = (self.now, 0);
    }

    fn polls(&self, region: u32) -> bool {
        let facts = self.definitions.regions.get(region as usize).filter(|facts| facts.mpi);
        facts.is_some_and(|facts| ["Test", "probe"].iter().any(|word| facts.name.contains(word)))
    }

    fn push(&mut self, act: Act) -> u32 {
        let gap_ns = std::mem::take(&mut self.work);
        self.sequence.steps.push(Step { gap_ns, act });
        if let Some(call) = &mut self.call {
            call.did = true;
        }
        (self.sequence.steps.len() - 1) as u32
    }

    /// Something begins whose end will be told, if not with the call.
    fn begin(&mut self, act: Act, request: u64) {
        let place = self.push(act);
        if request == BLOCKING {
            self.done(place);
        } else {
            self.requests.insert(request, place);
        }
    }

    /// Something is done that may have begun before.
    fn over(&mut self, act: Act, request: u64) {
        let begun = if request == BLOCKING { None } else { self.requests.remove(&request) };
        match (begun, act) {
            (Some(place), act) => {
                self.sequence.steps[place as usize].act = act;
                self.done(place);
            }
            // Its place in the program is its end.
            (None, Act::Collective(_)) => {
                self.push(act);
            }
            (None, act) => self.begin(act, BLOCKING),
        }
    }

    fn done(&mut self, place: u32) {
        if let Some(call) = &mut self.call {
            call.did = true;
            call.done.push(place);
        }
    }

    fn message(&self, comm: u32, peer: u32, tag: u32, bytes: u64) -> Message {
        let here = self.sequence.rank;
        let there = self.definitions.comms.get(comm as usize).and_then(|comm| {
            let members = match &comm.remote {
                Some(remote) if remote.contains(&here) => &comm.members,
                Some(remote) => remote,
                None => &comm.members,
            };
            members.get(peer as usize)
        });
        let peer = there.and_then(|rank| self.of_rank.get(rank)).copied().unwrap_or(UNKNOWN);
        // LogGOPSim counts bytes from the first on: with none it would go back in time.
        Message { comm, peer, tag, bytes: bytes.max(1) }
    }

    fn end(mut self, left_out: &mut LeftOut) -> Sequence {
        if self.call.is_some() {
            self.close_call();
        } else {
            self.settle(UNKNOWN, self.now, self.noise);
        }
        let steps = &self.sequence.steps;
        let unfinished =
            self.requests.values().filter(|place| steps[**place as usize].act == Act::Nothing).count();
        if unfinished > 0 {
            left_out.receives += unfinished as u64;
            let rank = self.sequence.rank;
            left_out.tell(|| format!("rank {rank}: {unfinished} receives began and never ended"));
        }
        self.sequence.rest_ns = self.work;
        self.sequence
    }
}
