//! Matches messages and collectives of all ranks. Operations without their other end become [`Operation::Nothing`].

use std::ops::Range;

use quell_recording::mpi::{Definitions, Operation as CollectiveKind, UNKNOWN, Waits};
use rustc_hash::{FxHashMap, FxHashSet};

use super::SkippedEvents;
use super::expand::What;
use super::sequence::Sequence;
use super::steps::{Call, Message, Operation};
use crate::track::event_reader::{Channel, MessageKey};

/// First tag of the messages of collectives, which have a range of their own.
pub(super) const COLLECTIVE_TAGS: u32 = 1 << 31;

/// What the ranks reported about one collective.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    kind: Option<CollectiveKind>,
    /// Index of the root among those that take part.
    root: Option<u32>,
    /// Maximum number of bytes that one of them sent and received, and the sum of all sent, in bytes.
    sent: u64,
    received: u64,
    all_sent: u64,
    parts: u32,
    /// Whether the ranks agree.
    sound: bool,
}

/// A communicator, indexed for look-ups.
#[derive(Debug)]
struct Group {
    /// Indices of its ranks among the sequences, for both groups if it joins two.
    members: Vec<u32>,
    /// The index in the group for each index among the sequences; empty if they are equal.
    places: FxHashMap<u32, u32>,
    /// Its collectives in [`Matching::collectives`].
    calls: Range<usize>,
}

/// All matches between ranks.
#[derive(Debug)]
pub(super) struct Matching {
    groups: Vec<Group>,
    collectives: Vec<Option<What>>,
    tags: FxHashMap<(u32, u32), u32>,
}

/// A rank's part in a collective.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub what: What,
    /// Its index in the group.
    pub place: u32,
    /// The members of the group, as indices among the sequences.
    pub members: &'a [u32],
    pub tag: u32,
}

impl Matching {
    /// Matches the whole run. What is omitted from `sequences` becomes [`Operation::Nothing`].
    pub fn new(definitions: &Definitions, sequences: &mut [Sequence], skipped: &mut SkippedEvents) -> Self {
        messages(definitions, sequences, skipped);
        let of_rank: FxHashMap<u32, u32> =
            sequences.iter().enumerate().map(|(place, sequence)| (sequence.rank, place as u32)).collect();
        let mut groups = groups(definitions, &of_rank);
        let printed = collectives(&mut groups, sequences, skipped);
        let of_groups = groups.iter().enumerate();
        let all = of_groups.flat_map(|(comm, group)| {
            printed[group.calls.clone()].iter().map(move |printed| (comm, group, printed))
        });
        let collectives = all.map(|(comm, group, printed)| {
            let whole = printed.sound && printed.parts as usize == group.members.len();
            let root = printed.root.and_then(|root| {
                let rank = definitions.comms[comm].members.get(root as usize)?;
                group.place(*of_rank.get(rank)?)
            });
            let what = printed.kind.filter(|_| whole).map(|kind| group.what(printed, kind, root));
            if what.is_none() && printed.parts > 0 {
                skipped.collectives += u64::from(printed.parts);
                let kind = printed.kind.map_or("a collective".to_owned(), |kind| format!("{kind:?}"));
                skipped.note(|| {
                    let (name, of) = (name(definitions, comm as u32), group.members.len());
                    let agreed = if printed.sound { "" } else { ", and they do not agree" };
                    format!("{kind} on {name}: {} of {of} ranks took part{agreed}", printed.parts)
                });
            }
            what
        });
        let collectives = collectives.collect();
        let mut tags = FxHashMap::default();
        for channel in sequences.iter().flat_map(messages_of).filter_map(|message| message.key) {
            let next = tags.len() as u32;
            tags.entry((channel.channel.comm, channel.channel.tag)).or_insert(next);
        }
        Self { groups, collectives, tags }
    }

    /// A distinct number for each communicator and tag, in the order of their first occurrence.
    pub fn tag(&self, message: &Message) -> u32 {
        let tag = message.key.and_then(|key| self.tags.get(&(key.channel.comm, key.channel.tag)));
        tag.copied().unwrap_or(0)
    }

    /// A rank's part in a collective; `None` if it is omitted, or does nothing.
    pub fn part(&self, rank: u32, call: &Call) -> Option<Part<'_>> {
        let part = call.part?;
        let group = self.groups.get(part.comm as usize)?;
        let at = group.calls.start + usize::try_from(part.number).ok()?;
        let place = group.place(rank)?;
        let what = (*self.collectives.get(at)?)?;
        Some(Part { what, place, members: &group.members, tag: collective_tag(at) })
    }
}

/// The tag of a collective's messages, from the collective's number in the run.
pub(super) fn collective_tag(number: usize) -> u32 {
    // The highest tag is a wildcard.
    COLLECTIVE_TAGS + (number % (COLLECTIVE_TAGS as usize - 1)) as u32
}

fn name(definitions: &Definitions, comm: u32) -> &str {
    definitions.comms.get(comm as usize).map_or("?", |comm| comm.name.as_str())
}

impl Group {
    fn place(&self, rank: u32) -> Option<u32> {
        if self.places.is_empty() {
            return ((rank as usize) < self.members.len()).then_some(rank);
        }
        self.places.get(&rank).copied()
    }

    /// The operation, with its number of bytes for each rank.
    fn what(&self, printed: &Outcome, kind: CollectiveKind, root: Option<u32>) -> What {
        let n = self.members.len().max(1) as u64;
        let (sent, received) = (printed.sent, printed.received);
        let either = |first: u64, second: u64| if first > 0 { first } else { second };
        use CollectiveKind as Op;
        let bytes = match kind {
            Op::Barrier | Op::Create | Op::Destroy => 1,
            Op::Bcast | Op::Allreduce | Op::Reduce | Op::Scan | Op::Exscan => either(received, sent),
            Op::ReduceScatter | Op::ReduceScatterBlock => either(sent, received),
            Op::Gather | Op::Gatherv => either(received.div_ceil(n), sent),
            Op::Scatter | Op::Scatterv => either(sent.div_ceil(n), received),
            Op::Allgather | Op::Allgatherv => either(received.div_ceil(n), sent),
            Op::Alltoall | Op::Alltoallv | Op::Alltoallw => {
                u64::try_from(u128::from(printed.all_sent).div_ceil(u128::from(n * n))).unwrap_or(u64::MAX)
            }
        };
        let rooted = is_rooted(kind);
        // Without a known root, all wait for all.
        let kind = if rooted && root.is_none() { Op::Allreduce } else { kind };
        What { operation: kind, bytes: bytes.max(1), root: root.filter(|_| rooted).unwrap_or(0) }
    }
}

fn is_rooted(kind: CollectiveKind) -> bool {
    matches!(kind.waits(), Waits::ForRoot | Waits::Root)
}

fn messages_of(sequence: &Sequence) -> impl Iterator<Item = Message> {
    sequence.steps.iter().filter_map(|step| match step.operation {
        Operation::Send(message) | Operation::Receive(message) => Some(message),
        _ => None,
    })
}

/// The numbers of the messages at one end of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Numbers {
    count: u64,
    first: u64,
    last: u64,
}

impl Numbers {
    fn add(&mut self, number: u64) {
        self.first = if self.count == 0 { number } else { self.first.min(number) };
        self.last = self.last.max(number);
        self.count += 1;
    }

    fn without_gaps(self) -> bool {
        self.count == self.last - self.first + 1
    }
}

/// Omits messages of which only one end exists.
fn messages(definitions: &Definitions, sequences: &mut [Sequence], skipped: &mut SkippedEvents) {
    // Most channels have both ends of all their messages; only on the others each message is examined.
    let mut ends: FxHashMap<Channel, [Numbers; 2]> = FxHashMap::default();
    for step in sequences.iter().flat_map(|sequence| sequence.steps.iter()) {
        if let Some((Some(key), end)) = end_of(&step.operation) {
            ends.entry(key.channel).or_default()[end].add(key.number);
        }
    }
    ends.retain(|_, [sends, receives]| sends != receives || !sends.without_gaps());
    let mut there: [FxHashSet<MessageKey>; 2] = Default::default();
    for step in sequences.iter().flat_map(|sequence| sequence.steps.iter()) {
        if let Some((Some(key), end)) = end_of(&step.operation).filter(|(key, _)| is_in(&ends, *key)) {
            there[end].insert(key);
        }
    }
    for sequence in sequences.iter_mut() {
        let rank = sequence.rank;
        for at in 0..sequence.steps.len() {
            let operation = sequence.steps.operation(at);
            let Some((key, end)) = end_of(&operation) else { continue };
            let (Operation::Send(message) | Operation::Receive(message)) = operation else { continue };
            if key.is_some_and(|key| !ends.contains_key(&key.channel) || there[1 - end].contains(&key)) {
                continue;
            }
            sequence.steps.set(at, Operation::Nothing);
            let (what, other, count) = if end == 0 {
                ("a send to", "is not received", &mut skipped.sends)
            } else {
                ("a receive from", "has no send", &mut skipped.receives)
            };
            *count += 1;
            skipped.note(|| {
                let on = key.map_or_else(String::new, |MessageKey { channel, .. }| {
                    format!(" with tag {} on {}", channel.tag, name(definitions, channel.comm))
                });
                format!("rank {rank}: {what} {}{on} {other}", peer(message.peer))
            });
        }
    }
}

/// The message of an operation, and its end: 0 sends, 1 receives.
fn end_of(operation: &Operation) -> Option<(Option<MessageKey>, usize)> {
    match operation {
        Operation::Send(message) => Some((message.key, 0)),
        Operation::Receive(message) => Some((message.key, 1)),
        _ => None,
    }
}

fn is_in(ends: &FxHashMap<Channel, [Numbers; 2]>, key: Option<MessageKey>) -> bool {
    key.is_some_and(|key| ends.contains_key(&key.channel))
}

fn peer(place: u32) -> String {
    if place == UNKNOWN { "a rank without a trace".to_owned() } else { format!("rank {place}") }
}

/// The communicators, with only the ranks that exist.
fn groups(definitions: &Definitions, of_rank: &FxHashMap<u32, u32>) -> Vec<Group> {
    let group = |comm: &quell_recording::mpi::Comm| {
        let members: Vec<u32> =
            comm.all_world_ranks().filter_map(|rank| of_rank.get(&rank).copied()).collect();
        let identity = members.iter().enumerate().all(|(place, rank)| place == *rank as usize);
        let places = members.iter().enumerate().map(|(place, rank)| (*rank, place as u32));
        let places = if identity { FxHashMap::default() } else { places.collect() };
        Group { members, places, calls: 0..0 }
    };
    definitions.comms.iter().map(group).collect()
}

/// Collects the ranks' reports on each communicator's collectives.
fn collectives(groups: &mut [Group], sequences: &[Sequence], skipped: &mut SkippedEvents) -> Vec<Outcome> {
    let mut counts = vec![0; groups.len()];
    for part in sequences.iter().flat_map(calls).filter_map(|call| call.part) {
        if let Some(count) = counts.get_mut(part.comm as usize) {
            *count = (part.number as usize + 1).max(*count);
        }
    }
    let mut end = 0;
    for (group, count) in groups.iter_mut().zip(counts) {
        group.calls = end..end + count;
        end += count;
    }
    let none = Outcome { kind: None, root: None, sent: 0, received: 0, all_sent: 0, parts: 0, sound: true };
    let mut printed = vec![none; end];
    for sequence in sequences {
        for call in calls(sequence) {
            let known = call.part.and_then(|part| Some((groups.get(part.comm as usize)?, part.number)));
            if let Some((group, number)) = known {
                printed[group.calls.start + number as usize].add(call);
            } else {
                skipped.collectives += 1;
                let rank = sequence.rank;
                skipped.note(|| format!("rank {rank}: a collective on a communicator that is not known"));
            }
        }
    }
    printed
}

fn calls(sequence: &Sequence) -> impl Iterator<Item = Call> {
    sequence.steps.iter().filter_map(|step| match step.operation {
        Operation::Collective(call) => Some(call),
        _ => None,
    })
}

impl Outcome {
    fn add(&mut self, call: Call) {
        self.parts += 1;
        self.sent = self.sent.max(call.sent);
        self.received = self.received.max(call.received);
        self.all_sent = self.all_sent.saturating_add(call.sent);
        let Some(kind) = call.kind else { return };
        // An unknown root contradicts no other, and only rooted operations have one.
        let root = call.root.filter(|_| is_rooted(kind));
        let other_root = self.root.zip(root).is_some_and(|(known, reported)| known != reported);
        self.sound &= self.kind.is_none_or(|known| known == kind) && !other_root;
        self.kind = Some(kind);
        self.root = self.root.or(root);
    }
}

#[cfg(test)]
mod tests;
