//! Queues of receives that wait for their messages, and of messages that wait for their receives.

use std::collections::{HashMap, VecDeque};

use super::program::ANY;

/// What a message and a receive are matched by: source and tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Envelope {
    pub(super) source: u32,
    pub(super) tag: u32,
}

impl Envelope {
    #[inline(always)]
    fn matches(self, other: Self) -> bool {
        let same = |a: u32, b: u32| a == b || a == ANY || b == ANY;
        self == other || same(self.source, other.source) && same(self.tag, other.tag)
    }

    fn is_exact(self) -> bool {
        self.source != ANY && self.tag != ANY
    }
}

/// A waiting message or receive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) envelope: Envelope,
    pub(super) op: u32,
    pub(super) shape: u32,
    /// For a message, the time until which the CPU worked on it.
    pub(super) end: u64,
}

impl Entry {
    /// Marks the absence of an entry.
    const NONE: Self = Self { envelope: Envelope { source: ANY, tag: ANY }, op: 0, shape: u32::MAX, end: 0 };

    #[inline(always)]
    fn is_none(&self) -> bool {
        self.shape == u32::MAX
    }
}

/// A queue in the order of arrival. It mostly has at most one entry, and rarely more than a few.
#[derive(Debug)]
pub(super) struct Queue {
    first: Entry,
    /// Number of entries in the rest.
    more: u32,
    /// Entries that were added while there was a first. Kept once it was allocated.
    rest: Option<Box<Rest>>,
}

impl Default for Queue {
    fn default() -> Self {
        Self { first: Entry::NONE, more: 0, rest: None }
    }
}

impl Queue {
    #[inline(always)]
    pub(super) fn push(&mut self, entry: Entry) {
        if self.is_empty() {
            self.first = entry;
        } else {
            self.more += 1;
            self.rest.get_or_insert_default().push(entry);
        }
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.more == 0
    }

    /// The first match, which stays in the queue.
    pub(super) fn peek(&self, envelope: Envelope) -> Option<Entry> {
        self.iter().find(|entry| entry.envelope.matches(envelope)).copied()
    }

    /// Removes the first match.
    #[inline(always)]
    pub(super) fn take(&mut self, envelope: Envelope) -> Option<Entry> {
        if !self.first.is_none() && self.first.envelope.matches(envelope) {
            return Some(std::mem::replace(&mut self.first, Entry::NONE));
        }
        if self.more == 0 {
            return None;
        }
        let entry = self.rest.as_mut()?.take(envelope);
        self.more -= u32::from(entry.is_some());
        entry
    }

    /// All waiting entries in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let rest = self.rest.iter().flat_map(|rest| {
            rest.few.iter().chain(rest.many.iter().flat_map(|many| many.entries.iter().flatten()))
        });
        Some(&self.first).filter(|first| !first.is_none()).into_iter().chain(rest)
    }
}

/// The rendezvous of a rank. Most programs have none, so their ranks stay small.
#[derive(Debug, Default)]
pub(super) struct Granted(Option<Box<Rendezvous>>);

#[derive(Debug, Default)]
struct Rendezvous {
    /// Receives whose rendezvous sends its data.
    granted: Queue,
    /// Under progress in the call: requests that met their receive and are not handled yet.
    requested: Queue,
}

impl Granted {
    pub(super) fn push(&mut self, entry: Entry) {
        self.0.get_or_insert_default().granted.push(entry);
    }

    /// The first match, which stays.
    pub(super) fn peek(&self, envelope: Envelope) -> Option<Entry> {
        self.0.as_ref()?.granted.peek(envelope)
    }

    /// Removes the first match.
    pub(super) fn take(&mut self, envelope: Envelope) -> Option<Entry> {
        self.0.as_mut()?.granted.take(envelope)
    }

    pub(super) fn push_request(&mut self, entry: Entry) {
        self.0.get_or_insert_default().requested.push(entry);
    }

    /// Removes the first request that matches.
    pub(super) fn take_request(&mut self, envelope: Envelope) -> Option<Entry> {
        self.0.as_mut()?.requested.take(envelope)
    }
}

/// Maximum number of further entries that are stored contiguously and searched linearly.
const FEW: usize = 32;

/// All entries of a queue but the first.
#[derive(Debug, Default)]
struct Rest {
    /// Removals are mostly at the front.
    few: VecDeque<Entry>,
    /// All of the rest, once there were more than [`FEW`].
    many: Option<Box<Many>>,
}

impl Rest {
    #[inline(always)]
    fn push(&mut self, entry: Entry) {
        if self.few.len() < FEW && self.many.is_none() {
            self.few.push_back(entry);
        } else {
            let many = self.many.get_or_insert_default();
            self.few.drain(..).for_each(|entry| many.push(entry));
            many.push(entry);
        }
    }

    #[inline(always)]
    fn take(&mut self, envelope: Envelope) -> Option<Entry> {
        let Some(many) = &mut self.many else {
            let at = self.few.iter().position(|entry| entry.envelope.matches(envelope))?;
            return self.few.remove(at);
        };
        let entry = many.take(envelope);
        if many.len == 0 {
            self.many = None;
        }
        entry
    }
}

/// A long list, with an index of the entries that name both source and tag.
#[derive(Debug, Default)]
struct Many {
    /// A removed entry leaves a hole, which is dropped once it reaches the front.
    entries: VecDeque<Option<Entry>>,
    /// The number of the front entry, counted over all that were ever added.
    first: u64,
    index: Index,
    len: usize,
}

/// Numbers of entries, by envelope.
#[derive(Debug, Default)]
struct Index {
    exact: HashMap<Envelope, VecDeque<u64>>,
    /// Entries with any source or any tag.
    open: VecDeque<u64>,
}

impl Index {
    fn add(&mut self, entry: &Entry, number: u64) {
        if entry.envelope.is_exact() {
            self.exact.entry(entry.envelope).or_default().push_back(number);
        } else {
            self.open.push_back(number);
        }
    }

    fn remove(&mut self, entry: &Entry, number: u64) {
        if let Some(numbers) = self.exact.get_mut(&entry.envelope) {
            // It is the first with this envelope, because an earlier one would have matched.
            numbers.pop_front();
            if numbers.is_empty() {
                self.exact.remove(&entry.envelope);
            }
        } else if let Some(at) = self.open.iter().position(|&open| open == number) {
            self.open.remove(at);
        }
    }
}

impl Many {
    fn push(&mut self, entry: Entry) {
        let number = self.first + self.entries.len() as u64;
        self.entries.push_back(Some(entry));
        self.len += 1;
        self.index.add(&entry, number);
    }

    fn find(&self, envelope: Envelope) -> Option<usize> {
        let matches = |at: &usize| self.entries[*at].is_some_and(|entry| entry.envelope.matches(envelope));
        if !envelope.is_exact() {
            return (0..self.entries.len()).find(matches);
        }
        let place = |number: &u64| (number - self.first) as usize;
        let exact = self.index.exact.get(&envelope).and_then(|numbers| numbers.front()).map(place);
        let open = self.index.open.iter().map(place).find(matches);
        exact.into_iter().chain(open).min()
    }

    fn take(&mut self, envelope: Envelope) -> Option<Entry> {
        let at = self.find(envelope)?;
        let entry = self.entries[at].take()?;
        self.index.remove(&entry, self.first + at as u64);
        self.len -= 1;
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
