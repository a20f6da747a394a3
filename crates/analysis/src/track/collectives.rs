//! Collectives while their ranks come and go.

use quell_recording::mpi::{Operation, Waits};
use rustc_hash::FxHashMap;

use super::event_reader::CollectiveEnd;

/// A place in [`Collectives`].
pub(super) type CollectiveId = u32;

/// One rank's part.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub location: u32,
    /// Its place in the communicator.
    pub place: u32,
    pub entered: i64,
    pub left: Option<i64>,
}

/// One call of all ranks of a communicator.
#[derive(Clone, Debug)]
pub(super) struct Collective {
    pub comm: u32,
    pub number: u64,
    /// What it is, as the first said who told; and which member is the root.
    pub operation: Option<Operation>,
    root_place: Option<u32>,
    /// So many ranks take part.
    pub expected: usize,
    pub parts: Vec<Part>,
    /// For each part, when it entered on the quiet time lines, and its noise within: `lanes` numbers each.
    quiet: Vec<i64>,
    noise: Vec<i64>,
    /// When the last entered, and which part that was.
    pub last_entry: (i64, usize),
    /// The latest entry on the quiet time lines.
    pub last_quiet: Vec<i64>,
    /// The root's part, once it has come.
    pub root: Option<usize>,
    left: usize,
    /// How long the first and the last to leave took after the last entry.
    pub tails: (i64, i64),
    settled: usize,
    /// Who cannot go on before more ranks have come.
    pub waiting: Vec<u32>,
    /// Somebody is missing and will not come.
    pub forced: bool,
    /// The most bytes that a rank sent or received.
    bytes: u64,
    /// Ranks did not agree on the operation.
    pub mismatched: bool,
    lanes: usize,
}

impl Collective {
    /// Who waits for whom. Where the root is not known, as between two groups, nobody can be said to.
    pub fn waits(&self) -> Waits {
        match self.operation.map_or(Waits::All, Operation::waits) {
            Waits::ForRoot | Waits::Root if self.root_place.is_none() => Waits::Nobody,
            waits => waits,
        }
    }

    pub fn everybody_entered(&self) -> bool {
        self.parts.len() >= self.expected
    }

    /// Whether a rank may have had no need to wait for some: there was nothing to be had from them, or each has its own share.
    fn may_be_partial(&self) -> bool {
        use Operation::{Allgatherv, Alltoallv, Alltoallw, Barrier, Gatherv, ReduceScatter, Scatterv};
        match self.operation {
            Some(Barrier) | None => false,
            Some(Allgatherv | Alltoallv | Alltoallw | Gatherv | Scatterv | ReduceScatter) => true,
            _ => self.bytes == 0,
        }
    }

    /// Whether a rank that left then had no need to wait for the last.
    pub fn left_early(&self, left: i64) -> bool {
        self.may_be_partial() && left < self.last_entry.0
    }

    fn everybody_left(&self) -> bool {
        self.left >= self.expected && self.everybody_entered()
    }

    /// Whether those have come for whom a part waits.
    fn may_go(&self, part: usize, blocking: bool) -> bool {
        let is_root = self.root == Some(part);
        self.forced
            || match self.waits() {
                Waits::All if blocking => self.everybody_left(),
                Waits::All => self.everybody_entered(),
                Waits::ForRoot => self.root.is_some(),
                Waits::Root => !is_root || self.everybody_entered(),
                Waits::Prefix => {
                    let before =
                        self.parts.iter().filter(|other| other.place < self.parts[part].place).count();
                    before >= self.parts[part].place as usize || self.everybody_entered()
                }
                Waits::Nobody => true,
            }
    }

    /// Those who may go on now, as one more has come.
    fn woken(&mut self) -> Vec<u32> {
        let wakes = match self.waits() {
            _ if self.everybody_entered() => true,
            Waits::ForRoot => self.root.is_some(),
            Waits::Prefix => true,
            _ => false,
        };
        if wakes { std::mem::take(&mut self.waiting) } else { Vec::new() }
    }

    /// A rank says what it is. A root that is not told is none that differs, and only of rooted operations there is one.
    fn name(&mut self, ends: &CollectiveEnd) {
        let rooted = matches!(ends.kind.waits(), Waits::ForRoot | Waits::Root);
        let root = ends.root.filter(|_| rooted);
        let other_root = self.root_place.zip(root).is_some_and(|(known, told)| known != told);
        self.mismatched |= other_root || self.operation.is_some_and(|known| known != ends.kind);
        let known = *self.operation.get_or_insert(ends.kind);
        if self.root_place.is_none() && root.is_some() && known == ends.kind {
            self.root_place = root;
            self.root = self.parts.iter().position(|part| Some(part.place) == root);
        }
    }

    /// The part's entry on the quiet time lines.
    pub fn quiet(&self, part: usize) -> &[i64] {
        &self.quiet[part * self.lanes..(part + 1) * self.lanes]
    }

    /// The part's noise within the call.
    pub fn noise(&self, part: usize) -> &[i64] {
        &self.noise[part * self.lanes..(part + 1) * self.lanes]
    }

    /// Called once all have left: their last entry is known then.
    fn measure_tails(&mut self) {
        let tails = self.parts.iter().filter_map(|part| Some((part.left? - self.last_entry.0).max(0)));
        self.tails = tails.fold((i64::MAX, 0), |(least, most), tail| (least.min(tail), most.max(tail)));
    }

    /// Goes on with those who came.
    pub fn force(&mut self) -> Vec<u32> {
        self.forced = true;
        self.measure_tails();
        std::mem::take(&mut self.waiting)
    }
}

/// All that are going on.
#[derive(Debug)]
pub(super) struct Collectives {
    lanes: usize,
    all: Vec<Option<Collective>>,
    free: Vec<CollectiveId>,
    going: FxHashMap<(u32, u64), CollectiveId>,
}

impl Collectives {
    pub fn new(lanes: usize) -> Self {
        Self { lanes, all: Vec::new(), free: Vec::new(), going: FxHashMap::default() }
    }

    pub fn get(&self, id: CollectiveId) -> Option<&Collective> {
        self.all.get(id as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, id: CollectiveId) -> Option<&mut Collective> {
        self.all.get_mut(id as usize)?.as_mut()
    }

    /// A location's `number`th collective on `comm`, which it entered when `part` says. Gives the collective,
    /// the part's place in it, and who waited for that.
    pub fn enter(
        &mut self,
        (comm, number): (u32, u64),
        expected: usize,
        part: Part,
        ends: Option<&CollectiveEnd>,
        accumulated: &[i64],
    ) -> (CollectiveId, usize, Vec<u32>) {
        let lanes = self.lanes;
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
                last_quiet: vec![i64::MIN / 4; lanes],
                root: None,
                left: 0,
                tails: (0, 0),
                settled: 0,
                waiting: Vec::new(),
                forced: false,
                bytes: 0,
                mismatched: false,
                lanes,
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
        for (lane, accumulated) in accumulated.iter().enumerate() {
            let quiet = part.entered - accumulated;
            collective.quiet.push(quiet);
            collective.noise.push(0);
            collective.last_quiet[lane] = collective.last_quiet[lane].max(quiet);
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

    /// What a collective is that was only posted until now.
    pub fn name(&mut self, id: CollectiveId, ends: &CollectiveEnd) {
        if let Some(collective) = self.get_mut(id) {
            collective.name(ends);
        }
    }

    /// A rank sent or received so many bytes.
    pub fn carries(&mut self, id: CollectiveId, bytes: u64) {
        if let Some(collective) = self.get_mut(id) {
            collective.bytes = collective.bytes.max(bytes);
        }
    }

    /// Whether those have come for whom a part waits; if not, its location is told when they have.
    pub fn may_go(&mut self, id: CollectiveId, part: usize, blocking: bool, location: u32) -> bool {
        let Some(collective) = self.get_mut(id) else { return true };
        let may = collective.may_go(part, blocking);
        if !may {
            collective.waiting.push(location);
        }
        may
    }

    /// A location leaves, after so much noise within. Gives who waited for that.
    pub fn leave(&mut self, id: CollectiveId, part: usize, now: i64, noise: &[i64]) -> Vec<u32> {
        let lanes = self.lanes;
        let Some(collective) = self.get_mut(id) else { return Vec::new() };
        collective.parts[part].left = Some(now);
        collective.left += 1;
        collective.noise[part * lanes..(part + 1) * lanes].copy_from_slice(noise);
        if !collective.everybody_left() {
            return Vec::new();
        }
        collective.measure_tails();
        std::mem::take(&mut collective.waiting)
    }

    /// A location is done with it. When all are, it is forgotten.
    pub fn settle(&mut self, id: CollectiveId) -> Option<Collective> {
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

    /// Those that are still going on, the earliest first.
    pub fn left(&self) -> Vec<&Collective> {
        let mut left: Vec<&Collective> = self.all.iter().flatten().collect();
        left.sort_by_key(|collective| (collective.last_entry.0, collective.comm, collective.number));
        left
    }
}
