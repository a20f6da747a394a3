//! Where time was spent in the program: a tree of nested regions, over all ranks.

use rustc_hash::FxHashMap;

use super::ledger::Change;

/// The program as a whole.
pub(super) const ROOT: u32 = 0;
/// Maximum number of places that are distinguished: an archive may have as many as it has events.
const MOST: usize = 1 << 16;

/// A region with the region from which it was entered.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub parent: u32,
    pub region: u32,
    pub calls: u64,
    /// Time from entry to exit, over all ranks, in ns.
    pub time: i64,
    /// Noise by lane, in ns.
    pub local: Vec<i64>,
    pub amplified: Vec<i64>,
    pub absorbed: Vec<i64>,
}

#[derive(Debug)]
pub(super) struct Paths {
    accounts: usize,
    pub all: Vec<Path>,
    /// Time in which threads of teams waited for work, in ns.
    pub idle: i64,
    places: FxHashMap<(u32, u32), u32>,
}

impl Paths {
    pub fn new(accounts: usize) -> Self {
        let mut paths = Self { accounts, all: Vec::new(), idle: 0, places: FxHashMap::default() };
        paths.make(ROOT, u32::MAX);
        paths
    }

    fn make(&mut self, parent: u32, region: u32) -> u32 {
        let zero = vec![0; self.accounts];
        let (local, amplified, absorbed) = (zero.clone(), zero.clone(), zero);
        self.all.push(Path { parent, region, calls: 0, time: 0, local, amplified, absorbed });
        (self.all.len() - 1) as u32
    }

    /// Adds the time of a stay at a place. Those of many locations together may be more than a number holds.
    pub fn add_time(&mut self, place: u32, ns: i64) {
        let time = &mut self.all[place as usize].time;
        *time = time.saturating_add(ns);
    }

    /// The place of a region that is entered from `parent`.
    pub fn enter(&mut self, parent: u32, region: u32) -> u32 {
        let place = match self.places.get(&(parent, region)) {
            Some(place) => *place,
            None if self.all.len() >= MOST => parent,
            None => {
                let place = self.make(parent, region);
                self.places.insert((parent, region), place);
                place
            }
        };
        self.all[place as usize].calls += 1;
        place
    }

    pub fn struck(&mut self, place: u32, source: usize, noise: i64) {
        let local = &mut self.all[place as usize].local;
        local[0] = local[0].saturating_add(noise);
        local[source + 1] = local[source + 1].saturating_add(noise);
    }

    pub fn changed(&mut self, place: u32, account: usize, change: Change) {
        let path = &mut self.all[place as usize];
        path.amplified[account] = path.amplified[account].saturating_add(change.amplified);
        path.absorbed[account] = path.absorbed[account].saturating_add(change.absorbed);
    }
}

#[cfg(test)]
mod tests;
