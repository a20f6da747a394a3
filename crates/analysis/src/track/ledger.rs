//! The noise accounts of one location: one for all sources together, and one for each source alone.
//!
//! Each of these is an account: lane 0 removes all noise, lane `n + 1` only that of source `n`. Every lane has a noise-free timeline, that
//! of a run without this noise: an instant `t` of the run is at `t − accumulated` on it (Nataraj et al. 2007, §3).

/// The lanes of a location. All times in ns.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// Delay of the location relative to the noise-free timeline.
    pub accumulated: Vec<i64>,
    /// Noise that struck this location.
    pub local: Vec<i64>,
    /// Delay that the noise of others added at communication.
    pub amplified: Vec<i64>,
    /// Delay that communication absorbed.
    pub absorbed: Vec<i64>,
    /// Noise that struck within the open call.
    pub within: Vec<i64>,
    /// Noise carried over, because it exceeded the elapsed time.
    late: Vec<i64>,
    /// Current time on the noise-free timelines; it never decreases.
    floor: Vec<i64>,
    /// The noise counters, by source.
    totals: Vec<u64>,
}

/// The change that a call caused.
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
            // Noise before the first event counts.
            floor: vec![i64::MIN / 4; sources + 1],
            totals: vec![0; sources],
        }
    }

    pub fn accounts(&self) -> usize {
        self.accumulated.len()
    }

    /// Raises a source's counter to `total`, in a call or outside. Returns the increase; `None` if the counter decreased.
    pub fn add_noise(&mut self, source: usize, total: u64, in_call: bool) -> Option<i64> {
        let before = std::mem::replace(self.totals.get_mut(source)?, total);
        let more = i64::try_from(total.checked_sub(before)?).unwrap_or(i64::MAX).min(super::LONGEST);
        let place = if in_call { &mut self.within } else { &mut self.late };
        for account in [0, source + 1] {
            self.local[account] = self.local[account].saturating_add(more);
            place[account] = place[account].saturating_add(more);
        }
        Some(more)
    }

    /// The program computed until `now`, so the noise in that time delayed it by its full length.
    pub fn close_interval(&mut self, now: i64) {
        for account in 0..self.accounts() {
            if self.late[account] != 0 {
                let room = (now - self.accumulated[account]).saturating_sub(self.floor[account]).max(0);
                let placed = self.late[account].min(room);
                self.late[account] -= placed;
                self.accumulated[account] += placed;
            }
            self.floor[account] = now - self.accumulated[account];
        }
    }

    /// Begins a call that may wait for others.
    pub fn enter(&mut self, now: i64) {
        self.close_interval(now);
        self.within.fill(0);
    }

    /// Moves the noise since the last `close_interval` to a call that began there.
    pub fn enter_late(&mut self) {
        self.within.copy_from_slice(&self.late);
        self.late.fill(0);
    }

    /// Noise that struck before the open call began.
    pub fn local_before_call(&self) -> Vec<i64> {
        self.local.iter().zip(&self.within).map(|(local, within)| local - within).collect()
    }

    /// The noise within a call, limited to the call's length.
    pub fn noise_of_call(&self, account: usize, length: i64) -> i64 {
        self.within[account].min(length)
    }

    /// Ends a call of `length` at `now`, which is `quiet` on the noise-free timeline of a lane.
    pub fn leave(&mut self, account: usize, length: i64, now: i64, quiet: i64) -> Change {
        let noise = self.noise_of_call(account, length);
        self.late[account] = self.late[account].saturating_add(self.within[account] - noise);
        self.within[account] = 0;
        let local = self.accumulated[account] + noise;
        // Without noise a program is never later than with it.
        let accumulated = (now - quiet).max(0);
        self.accumulated[account] = accumulated;
        self.floor[account] = now - accumulated;
        let change =
            Change { amplified: (accumulated - local).max(0), absorbed: (local - accumulated).max(0) };
        self.amplified[account] += change.amplified;
        self.absorbed[account] += change.absorbed;
        change
    }

    /// Noise for which there was no time until the end, that within a call which was never left included.
    pub fn unplaced(&self, account: usize) -> i64 {
        self.late[account].saturating_add(self.within[account])
    }
}

#[cfg(test)]
mod tests;
