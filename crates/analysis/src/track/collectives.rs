//! Collectives from the entry of their first rank to the exit of their last.

use std::collections::BTreeMap;

use quell_recording::mpi::{Operation, Waits};
use rustc_hash::FxHashMap;

use super::event_reader::CollectiveEnd;

/// An index into [`Collectives`].
pub(super) type CollectiveId = u32;

/// One rank's part.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub location: u32,
    /// Its index in the communicator.
    pub place: u32,
    pub entered: i64,
    pub left: Option<i64>,
    /// Number of bytes that the rank sent or received, the larger.
    pub bytes: u64,
}

/// The parts of a scan before which no part is missing.
#[derive(Clone, Debug, Default)]
struct Prefix {
    /// Their places, in order; for each the last part up to it that entered, and the latest entry up to it on the noise-free timelines: `accounts`
    /// numbers.
    places: Vec<u32>,
    latest: Vec<usize>,
    quiet: Vec<i64>,
    /// Parts of higher places, and the number of parts that were looked at.
    ahead: BTreeMap<u32, usize>,
    seen: usize,
}

impl Prefix {
    /// The lowest place that has not entered.
    fn lowest(&self) -> u32 {
        self.places.len() as u32
    }
}

/// One call of all ranks of a communicator.
#[derive(Clone, Debug)]
pub(super) struct Collective {
    pub comm: u32,
    pub number: u64,
    /// The operation and the root, as in the first event that defines them.
    pub operation: Option<Operation>,
    root_place: Option<u32>,
    /// Number of ranks that take part.
    pub expected: usize,
    pub parts: Vec<Part>,
    /// For each part, its entry on the noise-free timelines, and its noise within the call: `accounts` numbers each.
    quiet: Vec<i64>,
    noise: Vec<i64>,
    /// When the last part entered, and its index.
    pub last_entry: (i64, usize),
    /// The latest entry on the noise-free timelines.
    pub last_quiet: Vec<i64>,
    /// The root's part, once it has entered.
    pub root: Option<usize>,
    left: usize,
    /// Time from the last entry to the first and to the last exit.
    pub tails: (i64, i64),
    settled: usize,
    /// Parts that cannot go on before more ranks have entered: place and location.
    waiting: Vec<(u32, u32)>,
    /// What the parts of a scan wait for.
    prefix: Prefix,
    /// A rank is missing and will not enter.
    pub forced: bool,
    /// The maximum number of bytes that a rank sent or received.
    pub bytes: u64,
    /// The ranks disagree on the operation.
    pub mismatched: bool,
    accounts: usize,
}

impl Collective {
    /// Which ranks wait for which. If the root is unknown (intercommunicators), no rank of a rooted operation waits.
    pub fn waits(&self) -> Waits {
        match self.operation.map_or(Waits::All, Operation::waits) {
            Waits::ForRoot | Waits::Root if self.root_place.is_none() => Waits::NoOne,
            waits => waits,
        }
    }

    pub fn all_entered(&self) -> bool {
        self.parts.len() >= self.expected
    }

    /// Whether a rank may not have to wait for some others: they send no data, or each rank has its own share.
    fn may_be_partial(&self) -> bool {
        use Operation::{Allgatherv, Alltoallv, Alltoallw, Barrier, Gatherv, ReduceScatter, Scatterv};
        match self.operation {
            Some(Barrier) | None => false,
            Some(Allgatherv | Alltoallv | Alltoallw | Gatherv | Scatterv | ReduceScatter) => true,
            _ => self.bytes == 0,
        }
    }

    /// Whether a rank that left at this time did not have to wait for the last.
    pub fn left_early(&self, left: i64) -> bool {
        self.may_be_partial() && left < self.last_entry.0
    }

    fn all_left(&self) -> bool {
        self.left >= self.expected && self.all_entered()
    }

    /// Adds the parts of a scan that have entered since, as far as all before them have, or no more will.
    fn extend_prefix(&mut self) {
        let (over, prefix) = (self.forced || self.all_entered(), &mut self.prefix);
        for part in prefix.seen..self.parts.len() {
            prefix.ahead.entry(self.parts[part].place).or_insert(part);
        }
        prefix.seen = self.parts.len();
        loop {
            let lowest = prefix.lowest();
            let next = prefix.ahead.first_entry().filter(|next| over || *next.key() <= lowest);
            let Some(next) = next else { return };
            let (place, part) = next.remove_entry();
            if prefix.places.last().is_none_or(|last| *last < place) {
                let is_later = |latest: &usize| self.parts[*latest].entered < self.parts[part].entered;
                let latest = prefix.latest.last().copied().filter(|latest| !is_later(latest));
                prefix.places.push(place);
                prefix.latest.push(latest.unwrap_or(part));
                let before = prefix.quiet.len().checked_sub(self.accounts);
                for account in 0..self.accounts {
                    let own = self.quiet[part * self.accounts + account];
                    prefix.quiet.push(before.map_or(own, |before| own.max(prefix.quiet[before + account])));
                }
            }
        }
    }

    /// Of the parts of a scan before this one, the last that entered, and the latest entry on each noise-free timeline.
    pub fn before(&self, part: usize) -> Option<(usize, &[i64])> {
        let place = self.parts[part].place;
        let last = self.prefix.places.partition_point(|before| *before < place).checked_sub(1)?;
        let quiet = &self.prefix.quiet[last * self.accounts..(last + 1) * self.accounts];
        Some((self.prefix.latest[last], quiet))
    }

    /// Whether all ranks that a part waits for have entered.
    fn may_go(&self, part: usize, blocking: bool) -> bool {
        let is_root = self.root == Some(part);
        self.forced
            || match self.waits() {
                Waits::All if blocking => self.all_left(),
                Waits::All => self.all_entered(),
                Waits::ForRoot => self.root.is_some(),
                Waits::Root => !is_root || self.all_entered(),
                Waits::Prefix => self.parts[part].place <= self.prefix.lowest() || self.all_entered(),
                Waits::NoOne => true,
            }
    }

    /// The locations that can go on now, after one more rank has entered.
    fn woken(&mut self) -> Vec<u32> {
        match self.waits() {
            _ if self.all_entered() => self.all_waiting(),
            Waits::ForRoot if self.root.is_some() => self.all_waiting(),
            Waits::Prefix => {
                let before = self.prefix.lowest();
                self.extend_prefix();
                let lowest = self.prefix.lowest();
                // Most ranks that enter let no other go on.
                let going = if lowest > before { self.waiting.len() } else { 0 };
                let woken = self.waiting.extract_if(..going, |(place, _)| *place <= lowest);
                woken.map(|(_, location)| location).collect()
            }
            _ => Vec::new(),
        }
    }

    fn all_waiting(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.waiting).into_iter().map(|(_, location)| location).collect()
    }

    /// Records the operation as one rank reports it. An unknown root contradicts no other, and only rooted operations have one.
    fn name(&mut self, ends: &CollectiveEnd) {
        let rooted = matches!(ends.kind.waits(), Waits::ForRoot | Waits::Root);
        let root = ends.root.filter(|_| rooted);
        let other_root = self.root_place.zip(root).is_some_and(|(known, reported)| known != reported);
        self.mismatched |= other_root || self.operation.is_some_and(|known| known != ends.kind);
        let known = *self.operation.get_or_insert(ends.kind);
        if self.root_place.is_none() && root.is_some() && known == ends.kind {
            self.root_place = root;
            self.root = self.parts.iter().position(|part| Some(part.place) == root);
        }
    }

    /// The part's entry on the noise-free timelines.
    pub fn quiet(&self, part: usize) -> &[i64] {
        &self.quiet[part * self.accounts..(part + 1) * self.accounts]
    }

    /// The part's noise within the call.
    pub fn noise(&self, part: usize) -> &[i64] {
        &self.noise[part * self.accounts..(part + 1) * self.accounts]
    }

    /// Called once all have left, because only then their last entry is known.
    fn measure_tails(&mut self) {
        let tails = self.parts.iter().filter_map(|part| Some((part.left? - self.last_entry.0).max(0)));
        self.tails = tails.fold((i64::MAX, 0), |(least, most), tail| (least.min(tail), most.max(tail)));
    }

    /// Continues with the parts that have entered.
    pub fn force(&mut self) -> Vec<u32> {
        self.forced = true;
        self.measure_tails();
        self.all_waiting()
    }
}

/// All collectives in progress.
#[derive(Debug)]
pub(super) struct Collectives {
    accounts: usize,
    all: Vec<Option<Collective>>,
    free: Vec<CollectiveId>,
    going: FxHashMap<(u32, u64), CollectiveId>,
}

impl Collectives {
    pub fn new(accounts: usize) -> Self {
        Self { accounts, all: Vec::new(), free: Vec::new(), going: FxHashMap::default() }
    }

    pub fn get(&self, id: CollectiveId) -> Option<&Collective> {
        self.all.get(id as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, id: CollectiveId) -> Option<&mut Collective> {
        self.all.get_mut(id as usize)?.as_mut()
    }

    /// Adds a location's part to the `number`th collective on `comm`. Returns the collective, the index of the part in it, and
    /// the locations that waited for it.
    pub fn enter(
        &mut self,
        (comm, number): (u32, u64),
        expected: usize,
        part: Part,
        ends: Option<&CollectiveEnd>,
        accumulated: &[i64],
    ) -> (CollectiveId, usize, Vec<u32>) {
        let accounts = self.accounts;
        let (all, free) = (&mut self.all, &mut self.free);
        let id = *self.going.entry((comm, number)).or_insert_with(|| {
            let new = Collective {
                comm,
                number,
                operation: None,
                root_place: None,
                expected,
                parts: Vec::with_capacity(expected.min(4096)),
                quiet: Vec::new(),
                noise: Vec::new(),
                last_entry: (i64::MIN, 0),
                last_quiet: vec![i64::MIN / 4; accounts],
                root: None,
                left: 0,
                tails: (0, 0),
                settled: 0,
                waiting: Vec::new(),
                prefix: Prefix::default(),
                forced: false,
                bytes: 0,
                mismatched: false,
                accounts,
            };
            let id = free.pop().unwrap_or_else(|| {
                all.push(None);
                (all.len() - 1) as CollectiveId
            });
            all[id as usize] = Some(new);
            id
        });
        let Some(collective) = self.all[id as usize].as_mut() else { return (id, 0, Vec::new()) };
        let place = collective.parts.len();
        if part.entered > collective.last_entry.0 {
            collective.last_entry = (part.entered, place);
        }
        for (account, accumulated) in accumulated.iter().enumerate() {
            let quiet = part.entered - accumulated;
            collective.quiet.push(quiet);
            collective.noise.push(0);
            collective.last_quiet[account] = collective.last_quiet[account].max(quiet);
        }
        if Some(part.place) == collective.root_place {
            collective.root = Some(place);
        }
        collective.parts.push(part);
        if let Some(ends) = ends {
            collective.name(ends);
        }
        (id, place, collective.woken())
    }

    /// Records the operation of a collective that was only posted until now.
    pub fn name(&mut self, id: CollectiveId, ends: &CollectiveEnd) {
        if let Some(collective) = self.get_mut(id) {
            collective.name(ends);
        }
    }

    /// Records the number of bytes that a part sent or received.
    pub fn carries(&mut self, id: CollectiveId, part: usize, bytes: u64) {
        if let Some(collective) = self.get_mut(id) {
            collective.parts[part].bytes = bytes;
            collective.bytes = collective.bytes.max(bytes);
        }
    }

    /// Whether all ranks that a part waits for have entered; if not, the location waits until they have.
    pub fn may_go(&mut self, id: CollectiveId, part: usize, blocking: bool, location: u32) -> bool {
        let Some(collective) = self.get_mut(id) else { return true };
        if collective.waits() == Waits::Prefix {
            collective.extend_prefix();
        }
        let may = collective.may_go(part, blocking);
        if !may {
            collective.waiting.push((collective.parts[part].place, location));
        }
        may
    }

    /// Records that a part has left, with its noise within the call. Returns the locations that waited for that.
    pub fn leave(&mut self, id: CollectiveId, part: usize, now: i64, noise: &[i64]) -> Vec<u32> {
        let accounts = self.accounts;
        let Some(collective) = self.get_mut(id) else { return Vec::new() };
        collective.parts[part].left = Some(now);
        collective.left += 1;
        collective.noise[part * accounts..(part + 1) * accounts].copy_from_slice(noise);
        if !collective.all_left() {
            return Vec::new();
        }
        collective.measure_tails();
        collective.all_waiting()
    }

    /// Marks one part as finished. Once all are, the collective is removed and returned.
    pub fn remove_complete(&mut self, id: CollectiveId) -> Option<Collective> {
        let collective = self.get_mut(id)?;
        collective.settled += 1;
        let all = if collective.forced { collective.parts.len() } else { collective.expected };
        if collective.settled < all {
            return None;
        }
        let key = (collective.comm, collective.number);
        self.going.remove(&key);
        self.free.push(id);
        self.all[id as usize].take()
    }

    /// The collectives still in progress, the earliest first.
    pub fn left(&self) -> Vec<&Collective> {
        let mut left: Vec<&Collective> = self.all.iter().flatten().collect();
        left.sort_by_key(|collective| (collective.last_entry.0, collective.comm, collective.number));
        left
    }
}

#[cfg(test)]
mod tests;
