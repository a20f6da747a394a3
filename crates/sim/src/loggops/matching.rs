//! Queues of receives that wait for their messages, and of messages that wait for their receives.

use std::collections::{HashMap, VecDeque};

use smallvec::SmallVec;

use super::program::ANY;

/// What a message and a receive are matched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Envelope {
    pub(super) source: u32,
    pub(super) tag: u32,
}

impl Envelope {
    #[inline]
    fn matches(self, other: Self) -> bool {
        let same = |a: u32, b: u32| a == b || a == ANY || b == ANY;
        same(self.source, other.source) && same(self.tag, other.tag)
    }

    fn is_exact(self) -> bool {
        self.source != ANY && self.tag != ANY
    }
}

/// One that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) envelope: Envelope,
    pub(super) op: u32,
    pub(super) shape: u32,
    /// For a message, when the CPU was done with it.
    pub(super) end: u64,
}

/// More entries than this are indexed.
const MANY: usize = 32;

/// A queue in the order of coming.
#[derive(Debug, Default)]
pub(super) struct Queue {
    few: SmallVec<[Entry; 1]>,
    many: Option<Box<Indexed>>,
}

impl Queue {
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        if let Some(many) = &mut self.many {
            many.push(entry);
        } else if self.few.len() < MANY {
            self.few.push(entry);
        } else {
            let mut many = Box::<Indexed>::default();
            self.few.drain(..).chain([entry]).for_each(|entry| many.push(entry));
            self.many = Some(many);
        }
    }

    /// The first that matches, without taking it.
    pub(super) fn peek(&self, envelope: Envelope) -> Option<Entry> {
        match &self.many {
            Some(many) => many.find(envelope).and_then(|at| many.entries[at]),
            None => self.few.iter().find(|entry| entry.envelope.matches(envelope)).copied(),
        }
    }

    /// Takes the first that matches.
    #[inline]
    pub(super) fn take(&mut self, envelope: Envelope) -> Option<Entry> {
        let Some(many) = &mut self.many else {
            let at = self.few.iter().position(|entry| entry.envelope.matches(envelope))?;
            return Some(self.few.remove(at));
        };
        let entry = many.take(envelope);
        if many.len == 0 {
            self.many = None;
        }
        entry
    }

    /// All that wait, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let many = self.many.iter().flat_map(|many| many.entries.iter().flatten());
        self.few.iter().chain(many)
    }
}

/// A long queue with an index of those that name one source and one tag.
#[derive(Debug, Default)]
struct Indexed {
    /// Those taken leave a hole, which goes when it has come to the front.
    entries: VecDeque<Option<Entry>>,
    /// The number of the front entry, of all that ever came.
    first: u64,
    exact: HashMap<Envelope, VecDeque<u64>>,
    /// Those of any source or tag.
    open: VecDeque<u64>,
    len: usize,
}

impl Indexed {
    fn push(&mut self, entry: Entry) {
        let number = self.first + self.entries.len() as u64;
        if entry.envelope.is_exact() {
            self.exact.entry(entry.envelope).or_default().push_back(number);
        } else {
            self.open.push_back(number);
        }
        self.entries.push_back(Some(entry));
        self.len += 1;
    }

    fn find(&self, envelope: Envelope) -> Option<usize> {
        let matches = |at: &usize| self.entries[*at].is_some_and(|entry| entry.envelope.matches(envelope));
        if !envelope.is_exact() {
            return (0..self.entries.len()).find(matches);
        }
        let place = |number: &u64| (number - self.first) as usize;
        let exact = self.exact.get(&envelope).and_then(|numbers| numbers.front()).map(place);
        let open = self.open.iter().map(place).find(matches);
        exact.into_iter().chain(open).min()
    }

    fn take(&mut self, envelope: Envelope) -> Option<Entry> {
        let at = self.find(envelope)?;
        let number = self.first + at as u64;
        let entry = self.entries[at].take()?;
        if let Some(numbers) = self.exact.get_mut(&entry.envelope) {
            // The first of its like, for otherwise an earlier one had matched.
            numbers.pop_front();
            if numbers.is_empty() {
                self.exact.remove(&entry.envelope);
            }
        } else if let Some(at) = self.open.iter().position(|&open| open == number) {
            self.open.remove(at);
        }
        self.len -= 1;
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
        }
        Some(entry)
    }
}
