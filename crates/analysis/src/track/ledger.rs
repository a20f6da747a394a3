//! The noise of one location, kept once for all sources together and once for each alone.
//!
//! Each of these is a lane: lane 0 takes all noise away, lane `n + 1` only that of source `n`. In every lane there is a quiet time line, that
//! of a run without this noise: an instant `t` of the run stands on it at `t − accumulated` (Nataraj et al. 2007, §3).

/// The lanes of a location. All times in ns.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// How much later the location is than on the quiet time line.
    pub accumulated: Vec<i64>,
    /// Noise that struck here.
    pub local: Vec<i64>,
    /// What others' noise added at communication.
    pub amplified: Vec<i64>,
    /// What communication took off.
    pub absorbed: Vec<i64>,
    /// Noise that struck within the call that goes on.
    pub within: Vec<i64>,
    /// Noise of which is not yet known when it struck: there was more of it than time.
    late: Vec<i64>,
    /// Where the quiet time lines stand; they never go back.
    floor: Vec<i64>,
    /// The counters, by source.
    totals: Vec<u64>,
}

/// The change that a call made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub amplified: i64,
    pub absorbed: i64,
}

impl Ledger {
    pub fn new(sources: usize) -> Self {
        let zero = vec![0; sources + 1];
        Self {
            accumulated: zero.clone(),
            local: zero.clone(),
            amplified: zero.clone(),
            absorbed: zero.clone(),
            within: zero.clone(),
            late: zero.clone(),
            // Noise from before the first event counts.
            floor: vec![i64::MIN / 4; sources + 1],
            totals: vec![0; sources],
        }
    }

    pub fn lanes(&self) -> usize {
        self.accumulated.len()
    }

    /// A source's counter has risen to `total`, in a call or outside. Gives by how much; nothing if it went back.
    pub fn strike(&mut self, source: usize, total: u64, in_call: bool) -> Option<i64> {
        let before = std::mem::replace(self.totals.get_mut(source)?, total);
        let more = i64::try_from(total.checked_sub(before)?).unwrap_or(i64::MAX).min(super::LONGEST);
        let place = if in_call { &mut self.within } else { &mut self.late };
        for lane in [0, source + 1] {
            self.local[lane] = self.local[lane].saturating_add(more);
            place[lane] = place[lane].saturating_add(more);
        }
        Some(more)
    }

    /// The program computed until `now`: the noise meanwhile delayed it by as much.
    pub fn settle(&mut self, now: i64) {
        for lane in 0..self.lanes() {
            if self.late[lane] != 0 {
                let room = (now - self.accumulated[lane]).saturating_sub(self.floor[lane]).max(0);
                let placed = self.late[lane].min(room);
                self.late[lane] -= placed;
                self.accumulated[lane] += placed;
            }
            self.floor[lane] = now - self.accumulated[lane];
        }
    }

    /// A call begins that may wait for others.
    pub fn enter(&mut self, now: i64) {
        self.settle(now);
        self.within.fill(0);
    }

    /// Noise since `now` belongs to a call that has begun there.
    pub fn enter_late(&mut self) {
        self.within.copy_from_slice(&self.late);
        self.late.fill(0);
    }

    /// What of the noise within a call of this length there was room for.
    pub fn noise_of_call(&self, lane: usize, length: i64) -> i64 {
        self.within[lane].min(length)
    }

    /// A call that lasted `length` ends at `now`, on the quiet time line of a lane at `quiet`.
    pub fn leave(&mut self, lane: usize, length: i64, now: i64, quiet: i64) -> Change {
        let noise = self.noise_of_call(lane, length);
        self.late[lane] = self.late[lane].saturating_add(self.within[lane] - noise);
        self.within[lane] = 0;
        let local = self.accumulated[lane] + noise;
        // Without noise a program is at no instant later than with it.
        let accumulated = (now - quiet).max(0);
        self.accumulated[lane] = accumulated;
        self.floor[lane] = now - accumulated;
        let change =
            Change { amplified: (accumulated - local).max(0), absorbed: (local - accumulated).max(0) };
        self.amplified[lane] += change.amplified;
        self.absorbed[lane] += change.absorbed;
        change
    }

    /// Noise for which there was no time, in the end.
    pub fn unplaced(&self) -> i64 {
        self.late[0]
    }
}
