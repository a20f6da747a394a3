//! Ranks meet: the n-th send of a channel is the n-th receive's, and the n-th collective of each rank on a communicator is that of the others.
//! What lacks its other end becomes nothing.

use std::ops::Range;

use quell_recording::mpi::{Definitions, Operation, UNKNOWN, Waits};
use rustc_hash::FxHashMap;

use super::LeftOut;
use super::expand::What;
use super::take::{Act, Call, Message, Sequence};

/// Messages of collectives have tags from here on: a range of their own.
pub(super) const COLLECTIVE_TAGS: u32 = 1 << 31;

/// Which messages come in order: communicator, sender, receiver and tag.
type Channel = (u32, u32, u32, u32);

/// What ranks said of one collective.
#[derive(Clone, Copy, Debug)]
struct Said {
    operation: Option<Operation>,
    root: u32,
    /// The most that one of them sent and received, and what all did together, in bytes.
    sent: u64,
    received: u64,
    all_sent: u64,
    parts: u32,
    sound: bool,
}

/// A communicator, made ready.
#[derive(Debug)]
struct Group {
    /// Places of its ranks among the sequences, of both groups where it joins two.
    members: Vec<u32>,
    /// For each place among the sequences, that in the group; empty if it is the same.
    places: FxHashMap<u32, u32>,
    /// Where its own ranks stand among all that it was defined with.
    joins_two: bool,
    /// Its collectives in [`Meeting::met`].
    calls: Range<usize>,
}

/// All that ranks did together.
#[derive(Debug)]
pub(super) struct Meeting {
    groups: Vec<Group>,
    met: Vec<Option<What>>,
    tags: FxHashMap<(u32, u32), u32>,
}

/// A rank's part in a collective.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub what: What,
    /// Its number in the group.
    pub place: u32,
    /// Of the group, places among the sequences.
    pub members: &'a [u32],
    pub tag: u32,
}

/// Goes along a rank's collectives.
pub(super) struct Calls<'a> {
    meeting: &'a Meeting,
    rank: u32,
    numbers: FxHashMap<u32, usize>,
}

impl Meeting {
    /// Brings them together. What is left out of `sequences` is [`Act::Nothing`] then.
    pub fn of(definitions: &Definitions, sequences: &mut [Sequence], left_out: &mut LeftOut) -> Self {
        messages(definitions, sequences, left_out);
        let mut groups = groups(definitions, sequences);
        let said = collectives(&mut groups, sequences);
        let of_groups = groups.iter().enumerate();
        let all = of_groups
            .flat_map(|(comm, group)| said[group.calls.clone()].iter().map(move |said| (comm, group, said)));
        let met = all.map(|(comm, group, said)| {
            let whole = said.sound && said.parts as usize == group.members.len();
            let what = said.operation.filter(|_| whole).map(|operation| group.what(said, operation));
            if what.is_none() {
                left_out.collectives += u64::from(said.parts);
                let name = definitions.comms.get(comm).map_or("?", |comm| comm.name.as_str());
                let operation =
                    said.operation.map_or("a collective".to_owned(), |operation| format!("{operation:?}"));
                left_out.tell(|| {
                    let of = group.members.len();
                    let agreed = if said.sound { "" } else { ", and they do not agree" };
                    format!("{operation} on {name}: {} of {of} ranks took part{agreed}", said.parts)
                });
            }
            what
        });
        let met = met.collect();
        let mut tags = FxHashMap::default();
        for message in
            sequences.iter().flat_map(|sequence| &sequence.steps).filter_map(|step| match &step.act {
                Act::Send(message) | Act::Receive(message) => Some(message),
                _ => None,
            })
        {
            let next = tags.len() as u32;
            tags.entry((message.comm, message.tag)).or_insert(next);
        }
        Self { groups, met, tags }
    }

    /// A number of its own for each communicator and tag, in the order in which they are met.
    pub fn tag(&self, message: &Message) -> u32 {
        self.tags.get(&(message.comm, message.tag)).copied().unwrap_or(0)
    }

    /// The collectives of a rank from its first on.
    pub fn calls_of(&self, rank: u32) -> Calls<'_> {
        Calls { meeting: self, rank, numbers: FxHashMap::default() }
    }
}

impl<'a> Calls<'a> {
    /// The rank's next collective on a communicator; `None` where it is left out, or does nothing.
    pub fn next(&mut self, comm: u32) -> Option<Part<'a>> {
        let group = self.meeting.groups.get(comm as usize)?;
        let number = self.numbers.entry(comm).or_default();
        let at = group.calls.start + *number;
        *number += 1;
        let place = group.place(self.rank)?;
        let what = (*self.meeting.met.get(at)?)?;
        Some(Part { what, place, members: &group.members, tag: collective_tag(at) })
    }
}

/// The tag of the messages of a collective, by its number in the run.
pub(super) fn collective_tag(number: usize) -> u32 {
    // The highest number is a wildcard.
    COLLECTIVE_TAGS + (number % (COLLECTIVE_TAGS as usize - 1)) as u32
}

impl Group {
    fn place(&self, rank: u32) -> Option<u32> {
        if self.places.is_empty() {
            return ((rank as usize) < self.members.len()).then_some(rank);
        }
        self.places.get(&rank).copied()
    }

    /// What they do together, and with how many bytes for each.
    fn what(&self, said: &Said, operation: Operation) -> What {
        let n = self.members.len().max(1) as u64;
        let (sent, received) = (said.sent, said.received);
        let either = |first: u64, second: u64| if first > 0 { first } else { second };
        use Operation as Op;
        let bytes = match operation {
            Op::Barrier | Op::Create | Op::Destroy => 1,
            Op::Bcast | Op::Allreduce | Op::Reduce | Op::Scan | Op::Exscan => either(received, sent),
            Op::ReduceScatter | Op::ReduceScatterBlock => either(sent, received),
            Op::Gather | Op::Gatherv => either(received.div_ceil(n), sent),
            Op::Scatter | Op::Scatterv => either(sent.div_ceil(n), received),
            Op::Allgather | Op::Allgatherv => either(received.div_ceil(n), sent),
            Op::Alltoall | Op::Alltoallv | Op::Alltoallw => {
                u64::try_from(u128::from(said.all_sent).div_ceil(u128::from(n * n))).unwrap_or(u64::MAX)
            }
        };
        let rooted = matches!(operation.waits(), Waits::ForRoot | Waits::Root);
        let root = (!self.joins_two && u64::from(said.root) < n).then_some(said.root);
        // Where nobody knows the root, all wait for all.
        let operation = if rooted && root.is_none() { Op::Allreduce } else { operation };
        What { operation, bytes: bytes.max(1), root: root.filter(|_| rooted).unwrap_or(0) }
    }
}

/// Counts both ends of each channel, and leaves out the last of those that are more.
fn messages(definitions: &Definitions, sequences: &mut [Sequence], left_out: &mut LeftOut) {
    let ends = |place: u32, act: &Act| -> Option<(Channel, usize)> {
        match *act {
            Act::Send(message) => Some(((message.comm, place, message.peer, message.tag), 0)),
            Act::Receive(message) => Some(((message.comm, message.peer, place, message.tag), 1)),
            _ => None,
        }
    };
    let mut counts: FxHashMap<Channel, [u64; 2]> = FxHashMap::default();
    for (place, sequence) in sequences.iter().enumerate() {
        for (channel, end) in sequence.steps.iter().filter_map(|step| ends(place as u32, &step.act)) {
            counts.entry(channel).or_default()[end] += 1;
        }
    }
    counts.retain(|channel, ends| ends[0] != ends[1] || channel.1 == UNKNOWN || channel.2 == UNKNOWN);
    if counts.is_empty() {
        return;
    }
    // What is left of each end.
    let mut room: FxHashMap<Channel, [u64; 2]> = FxHashMap::default();
    for (channel, ends) in &counts {
        let known = channel.1 != UNKNOWN && channel.2 != UNKNOWN;
        let both = if known { ends[0].min(ends[1]) } else { 0 };
        room.insert(*channel, [both; 2]);
    }
    for (place, sequence) in sequences.iter_mut().enumerate() {
        let rank = sequence.rank;
        for step in &mut sequence.steps {
            let Some((channel, end)) = ends(place as u32, &step.act) else { continue };
            let Some(left) = room.get_mut(&channel) else { continue };
            if left[end] > 0 {
                left[end] -= 1;
                continue;
            }
            let (Act::Send(message) | Act::Receive(message)) = step.act else { continue };
            step.act = Act::Nothing;
            let (what, other, count) = if end == 0 {
                ("a send to", "is not received", &mut left_out.sends)
            } else {
                ("a receive from", "has no send", &mut left_out.receives)
            };
            *count += 1;
            left_out.tell(|| {
                let comm =
                    definitions.comms.get(message.comm as usize).map_or("?", |comm| comm.name.as_str());
                format!("rank {rank}: {what} {} with tag {} on {comm} {other}", of(message.peer), message.tag)
            });
        }
    }
}

fn of(place: u32) -> String {
    if place == UNKNOWN { "a rank without a trace".to_owned() } else { format!("rank {place}") }
}

/// The communicators, of those ranks that are there.
fn groups(definitions: &Definitions, sequences: &[Sequence]) -> Vec<Group> {
    let of_rank: FxHashMap<u32, u32> =
        sequences.iter().enumerate().map(|(place, sequence)| (sequence.rank, place as u32)).collect();
    let group = |comm: &quell_recording::mpi::Comm| {
        let all = comm.members.iter().chain(comm.remote.iter().flatten());
        let members: Vec<u32> = all.filter_map(|rank| of_rank.get(rank).copied()).collect();
        let identity = members.iter().enumerate().all(|(place, rank)| place == *rank as usize);
        let places = members.iter().enumerate().map(|(place, rank)| (*rank, place as u32));
        let places = if identity { FxHashMap::default() } else { places.collect() };
        // A root is a number among all members: it is lost with any of them.
        let joins_two = comm.remote.is_some() || members.len() < comm.members.len();
        Group { members, places, joins_two, calls: 0..0 }
    };
    definitions.comms.iter().map(group).collect()
}

/// Numbers each communicator's collectives, and gathers what its ranks said of each.
fn collectives(groups: &mut [Group], sequences: &mut [Sequence]) -> Vec<Said> {
    let mut most = vec![0; groups.len()];
    for sequence in sequences.iter() {
        let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
        for call in calls(sequence) {
            *counts.entry(call.comm).or_default() += 1;
        }
        for (comm, count) in counts {
            if let Some(most) = most.get_mut(comm as usize) {
                *most = count.max(*most);
            }
        }
    }
    let mut end = 0;
    for (group, count) in groups.iter_mut().zip(most) {
        group.calls = end..end + count;
        end += count;
    }
    let nobody =
        Said { operation: None, root: UNKNOWN, sent: 0, received: 0, all_sent: 0, parts: 0, sound: true };
    let mut said = vec![nobody; end];
    for (place, sequence) in sequences.iter().enumerate() {
        let mut numbers: FxHashMap<u32, usize> = FxHashMap::default();
        for call in calls(sequence) {
            let Some(group) = groups.get(call.comm as usize) else { continue };
            let number = numbers.entry(call.comm).or_default();
            let said = &mut said[group.calls.start + *number];
            *number += 1;
            said.add(call, group.place(place as u32).is_some());
        }
    }
    said
}

fn calls(sequence: &Sequence) -> impl Iterator<Item = &Call> {
    sequence.steps.iter().filter_map(|step| match &step.act {
        Act::Collective(call) => Some(call),
        _ => None,
    })
}

impl Said {
    fn add(&mut self, call: &Call, is_member: bool) {
        self.parts += 1;
        self.sound &= is_member;
        self.sent = self.sent.max(call.sent);
        self.received = self.received.max(call.received);
        self.all_sent = self.all_sent.saturating_add(call.sent);
        let Some(operation) = call.operation else { return };
        if self.operation.is_some_and(|other| other != operation) {
            self.sound = false;
        }
        self.operation = Some(operation);
        if self.root == UNKNOWN {
            self.root = call.root;
        } else if call.root != UNKNOWN && call.root != self.root {
            self.sound = false;
        }
    }
}
