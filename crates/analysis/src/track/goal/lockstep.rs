//! Merges what all ranks did to common steps: a step is taken when all ranks that have its peer come to it. No rank has to take all of them.

use std::cell::Cell;

use quell_recording::mpi::UNKNOWN;
use rustc_hash::FxHashMap;

use super::expand::What;
use super::grid::Grid;
use super::relative::{End, Irregular, RelativeOperation, RelativeSequence, words};
use super::way::Way;
use crate::track::event_reader::MessageKey;

/// A step of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Send(Message),
    /// A receive of what the step with this index sends.
    Receive(Message, u32),
    Collective {
        what: What,
        blocking: bool,
    },
    /// Waits for the step with this index.
    Wait(u32),
}

/// The ranks' messages at a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub way: Way,
    /// The tag, or that of the first rank if they differ.
    pub tag: u32,
    /// Whether all ranks have the same tag.
    pub one_tag: bool,
    /// Index in [`Merged::sizes`].
    pub sizes: u32,
    /// The dimensions in which the size depends on the extent of the ranks' parts, in a problem that the grid divides.
    pub across: Vec<bool>,
    /// The only ranks that have one, if not all with a peer do.
    pub line: Option<Line>,
}

/// The ranks at an end of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Line {
    pub dimension: usize,
    pub last: bool,
}

impl Line {
    /// The coordinate of its ranks.
    pub fn at(self, grid: &Grid) -> u32 {
        if self.last { grid.dims[self.dimension] - 1 } else { 0 }
    }

    pub fn has(self, grid: &Grid, rank: u32) -> bool {
        grid.place(rank)[self.dimension] == i64::from(self.at(grid))
    }
}

/// A step, and the ranks' work before it in ns.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub doing: Doing,
    pub gaps: Vec<u64>,
}

/// What all ranks did.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub steps: Vec<Step>,
    /// The ranks' work after the last step, in ns.
    pub rests: Vec<u64>,
    /// Bytes of each rank's message, each combination once; `None` for ranks without.
    pub sizes: Vec<Vec<Option<u64>>>,
}

impl Merged {
    pub fn has_messages(&self) -> bool {
        !self.sizes.is_empty()
    }

    fn took_part(&self, rank: usize, step: usize) -> bool {
        match &self.steps[step].doing {
            Doing::Send(message) | Doing::Receive(message, _) => {
                self.sizes[message.sizes as usize][rank].is_some()
            }
            Doing::Collective { .. } => true,
            Doing::Wait(on) => self.took_part(rank, *on as usize),
        }
    }

    /// The first rank that took part in a step, and which of its operations that was.
    pub fn first_at(&self, step: usize) -> (usize, usize) {
        let ranks = self.sizes.first().map_or(1, Vec::len);
        let rank = (0..ranks).find(|rank| self.took_part(*rank, step)).unwrap_or(0);
        (rank, (0..step).filter(|step| self.took_part(rank, *step)).count())
    }
}

/// How many operations of all ranks are merged, and the first that is not.
pub(super) type Failure = (usize, Irregular);

/// Maximum number of steps to which ranks come at the same time that are tried: regular runs have few.
const MOST_CANDIDATES: usize = 64;

/// Merges the ranks' operations in this grid. With `lines`, the ranks at an end of a dimension may do what others do not. Gives up when `effort` is 0,
/// of which each look at a rank takes one.
pub(super) fn merge(
    all: &[RelativeSequence],
    grid: &Grid,
    lines: bool,
    effort: &Cell<u64>,
) -> Result<Merged, Failure> {
    let mut merging = Lockstep {
        grid,
        all,
        effort,
        next: vec![0; all.len()],
        places: all.iter().map(|one| Vec::with_capacity(one.all.len())).collect(),
        skipped: vec![false; all.len()],
        late: Vec::new(),
        merged: Merged::default(),
        known: FxHashMap::default(),
    };
    while merging.unfinished() > 0 {
        let (key, line) = match merging.ready().filter(|_| effort.get() > 0) {
            Some(key) => (key, None),
            None => match lines.then(|| merging.ready_on_a_line()).flatten() {
                Some((key, line)) => (key, Some(line)),
                None => return Err((merging.next.iter().sum(), merging.broken())),
            },
        };
        merging.take(&key, line);
    }
    merging.finish()
}

/// What makes operations of ranks one step.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    Send(Way),
    Receive(Way),
    Collective {
        what: What,
        blocking: bool,
    },
    /// A wait for a step; whether each rank began it just before.
    Wait(u32, bool),
}

struct Lockstep<'a> {
    grid: &'a Grid,
    all: &'a [RelativeSequence],
    effort: &'a Cell<u64>,
    /// The next operation of each rank.
    next: Vec<usize>,
    /// The step of each operation of each rank.
    places: Vec<Vec<u32>>,
    /// Whether a rank did not take part in the step before, so that its next work may be that before several steps.
    skipped: Vec<bool>,
    /// For each step, such work.
    late: Vec<Vec<u64>>,
    merged: Merged,
    known: FxHashMap<Vec<Option<u64>>, u32>,
}

impl Lockstep<'_> {
    fn unfinished(&self) -> usize {
        self.all.iter().zip(&self.next).filter(|(one, next)| **next < one.all.len()).count()
    }

    fn head(&self, rank: usize) -> Option<&RelativeOperation> {
        self.all[rank].get(self.next[rank])
    }

    /// What the next operation of a rank can be.
    fn keys(&self, rank: usize) -> Vec<Key> {
        let ways = |peer, up| {
            let known = peer != UNKNOWN;
            if known { Way::between(self.grid, rank as u32, peer, up) } else { Vec::new() }
        };
        match self.head(rank) {
            None => Vec::new(),
            Some(RelativeOperation::Send(to)) => ways(to.peer, true).into_iter().map(Key::Send).collect(),
            Some(RelativeOperation::Receive(from)) => {
                ways(from.peer, false).into_iter().map(Key::Receive).collect()
            }
            Some(RelativeOperation::Collective { what, blocking }) => {
                vec![Key::Collective { what: *what, blocking: *blocking }]
            }
            Some(RelativeOperation::Wait(on)) => {
                let at_once = *on as usize + 1 == self.next[rank];
                vec![Key::Wait(self.places[rank][*on as usize], at_once)]
            }
        }
    }

    /// The peer that a rank has at a step; `None` if it does not take part.
    fn peer(&self, rank: usize, key: &Key) -> Option<u32> {
        match key {
            Key::Send(way) | Key::Receive(way) => way.at(self.grid, rank as u32),
            Key::Collective { .. } => Some(rank as u32),
            Key::Wait(step, _) => self.merged.took_part(rank, *step as usize).then_some(rank as u32),
        }
    }

    /// Whether the next operation of a rank is this one, to this peer.
    fn is(&self, rank: usize, key: &Key, peer: u32) -> bool {
        match (self.head(rank), key) {
            (Some(RelativeOperation::Send(to)), Key::Send(_)) => to.peer == peer,
            (Some(RelativeOperation::Receive(from)), Key::Receive(_)) => from.peer == peer,
            (
                Some(RelativeOperation::Collective { what, blocking }),
                Key::Collective { what: of, blocking: how },
            ) => what == of && blocking == how,
            (Some(RelativeOperation::Wait(on)), Key::Wait(step, _)) => {
                self.places[rank][*on as usize] == *step
            }
            _ => false,
        }
    }

    /// The ranks that come to a step, and the first that does not although it has the peer.
    fn at(&self, key: &Key) -> (Vec<usize>, Option<usize>) {
        self.effort.set(self.effort.get().saturating_sub(self.all.len() as u64));
        let (mut there, mut missing) = (Vec::new(), None);
        for rank in 0..self.all.len() {
            match self.peer(rank, key) {
                Some(peer) if self.is(rank, key, peer) => there.push(rank),
                Some(_) => missing = missing.or(Some(rank)),
                None => {}
            }
        }
        (there, missing)
    }

    /// All that ranks can do next, in the order of the first rank, with the ranks that come to it.
    fn candidates(&self) -> impl Iterator<Item = (Key, Vec<usize>, Option<usize>)> + '_ {
        let mut tried: Vec<Key> = Vec::new();
        (0..self.all.len()).flat_map(move |rank| self.keys(rank)).filter_map(move |key| {
            (tried.len() < MOST_CANDIDATES && !tried.contains(&key)).then(|| {
                tried.push(key.clone());
                let (there, missing) = self.at(&key);
                (key, there, missing)
            })
        })
    }

    /// Which of two steps comes first of which no rank takes both: blocking calls end first, then receives are posted before sends.
    fn order(key: &Key) -> u8 {
        match key {
            Key::Wait(_, true) => 0,
            Key::Receive(_) => 1,
            Key::Send(_) | Key::Collective { .. } => 2,
            Key::Wait(_, false) => 3,
        }
    }

    /// The next step to which all come.
    fn ready(&self) -> Option<Key> {
        let unfinished = self.unfinished();
        let mut best: Option<(u8, Key)> = None;
        for (key, there, missing) in self.candidates() {
            if missing.is_some() {
                continue;
            }
            if there.len() == unfinished {
                return Some(key);
            }
            let order = Self::order(&key);
            if best.as_ref().is_none_or(|(best, _)| order < *best) {
                best = Some((order, key));
            }
        }
        best.map(|(_, key)| key)
    }

    /// The next step to which all come that are at an end of a dimension across to the message.
    fn ready_on_a_line(&self) -> Option<(Key, Line)> {
        let possible = self.candidates().filter_map(|(key, there, _)| {
            let (Key::Send(way @ Way::Offset(_)) | Key::Receive(way @ Way::Offset(_))) = &key else {
                return None;
            };
            let ends = [false, true];
            let lines = (0..self.grid.dims.len())
                .filter(|dimension| way.is_across(*dimension))
                .flat_map(|dimension| ends.map(|last| Line { dimension, last }));
            let all_of = |line: &Line| {
                let has = |rank: &u32| line.has(self.grid, *rank) && way.at(self.grid, *rank).is_some();
                (0..self.all.len() as u32).filter(has).map(|rank| rank as usize).eq(there.iter().copied())
            };
            let line = lines.into_iter().find(all_of)?;
            Some((key, line))
        });
        possible.min_by_key(|(key, _)| Self::order(key))
    }

    /// Adds a step.
    fn take(&mut self, key: &Key, line: Option<Line>) {
        let number = self.merged.steps.len() as u32;
        let (there, _) = self.at(key);
        let (mut gaps, mut late) = (Vec::with_capacity(there.len()), Vec::new());
        let mut sizes = vec![None; self.all.len()];
        let (mut tag, mut one_tag) = (None, true);
        for (rank, skipped) in self.skipped.iter_mut().enumerate() {
            *skipped |= there.binary_search(&rank).is_err();
        }
        for rank in there {
            let (gap, op) = &self.all[rank].all[self.next[rank]];
            if std::mem::take(&mut self.skipped[rank]) { &mut late } else { &mut gaps }.push(*gap);
            if let RelativeOperation::Send(end) | RelativeOperation::Receive(end) = op {
                sizes[rank] = Some(end.bytes);
                one_tag &= *tag.get_or_insert(end.tag) == end.tag;
            }
            self.places[rank].push(number);
            self.next[rank] += 1;
        }
        let dimensions = 0..self.grid.dims.len();
        let message = |sizes, way: &Way| Message {
            way: way.clone(),
            tag: tag.unwrap_or(0),
            one_tag,
            sizes,
            across: dimensions.map(|dimension| way.is_across(dimension)).collect(),
            line,
        };
        let doing = match key {
            Key::Send(way) => Doing::Send(message(self.sizes(sizes), way)),
            Key::Receive(way) => Doing::Receive(message(self.sizes(sizes), way), u32::MAX),
            Key::Collective { what, blocking } => Doing::Collective { what: *what, blocking: *blocking },
            Key::Wait(step, _) => Doing::Wait(*step),
        };
        self.merged.steps.push(Step { doing, gaps });
        self.late.push(late);
    }

    fn sizes(&mut self, sizes: Vec<Option<u64>>) -> u32 {
        let all = &mut self.merged.sizes;
        *self.known.entry(sizes).or_insert_with_key(|sizes| {
            all.push(sizes.clone());
            (all.len() - 1) as u32
        })
    }

    /// The operation because of which there is no next step: the most ranks agree on another one.
    fn broken(&self) -> Irregular {
        let most = self.candidates().max_by_key(|(_, there, _)| (there.len(), usize::MAX - there[0]));
        if let Some((key, there, Some(missing))) = most {
            let like = &self.all[there[0]];
            let expected = self.head(there[0]).map_or_else(String::new, |op| {
                words(&match (*op, self.peer(missing, &key)) {
                    (RelativeOperation::Send(end), Some(peer)) => {
                        RelativeOperation::Send(End { peer, ..end })
                    }
                    (RelativeOperation::Receive(end), Some(peer)) => {
                        RelativeOperation::Receive(End { peer, ..end })
                    }
                    (op, _) => op,
                })
            });
            return self.all[missing]
                .broken(self.next[missing], format!("{expected}, as rank {} did", like.rank));
        }
        let rank = (0..self.all.len()).find(|rank| self.head(*rank).is_some()).unwrap_or(0);
        let why = "its peer is as far up as down: trace more ranks";
        self.all[rank].broken(self.next[rank], why.to_owned())
    }

    /// Links receives to their sends, and adds the work after the last step.
    fn finish(mut self) -> Result<Merged, Failure> {
        for (step, late) in self.merged.steps.iter_mut().zip(self.late) {
            // Only if nothing else is known, work may be from before an earlier step.
            if step.gaps.is_empty() {
                step.gaps = late;
            }
        }
        let mut sends: FxHashMap<MessageKey, u32> = FxHashMap::default();
        for (one, places) in self.all.iter().zip(&self.places) {
            for ((_, op), step) in one.all.iter().zip(places) {
                if let RelativeOperation::Send(End { key: Some(key), .. }) = op {
                    sends.insert(*key, *step);
                }
            }
        }
        for (one, places) in self.all.iter().zip(&self.places) {
            for (at, ((_, op), step)) in one.all.iter().zip(places).enumerate() {
                let RelativeOperation::Receive(End { key: Some(key), .. }) = op else { continue };
                let Doing::Receive(_, from) = &mut self.merged.steps[*step as usize].doing else { continue };
                let sent_by = sends.get(key).copied().unwrap_or(u32::MAX);
                if *from != u32::MAX && *from != sent_by {
                    let why = "other ranks receive here what an earlier or later step sends";
                    return Err((self.next.iter().sum(), one.broken(at, why.to_owned())));
                }
                *from = sent_by;
            }
        }
        let done = self.all.iter().zip(&self.skipped).filter(|(_, skipped)| !**skipped);
        self.merged.rests = done.map(|(one, _)| one.rest_ns).collect();
        if self.merged.rests.is_empty() {
            self.merged.rests = self.all.iter().map(|one| one.rest_ns).collect();
        }
        Ok(self.merged)
    }
}
