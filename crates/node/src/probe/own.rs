//! Which detours quell's own writer caused.
//!
//! Where every CPU is probed, the writer must share one of them, and its work is a detour there. The writer reads the probe's clock
//! when it wakes and before it sleeps. A detour on its CPU that overlaps such a period of work is quell's own.

/// The periods in which the writer worked, in ticks.
#[derive(Debug, Default)]
pub(crate) struct OwnWork {
    began: Option<u64>,
    past: Vec<(u64, u64)>,
}

impl OwnWork {
    /// The writer woke.
    pub fn begin(&mut self, now: u64) {
        self.began = Some(now);
    }

    /// The writer goes to sleep.
    pub fn end(&mut self, now: u64) {
        if let Some(began) = self.began.take() {
            self.past.push((began, now));
        }
    }

    /// Whether the writer worked at any time within `start..end`.
    pub fn touches(&self, start: u64, end: u64) -> bool {
        self.began.is_some_and(|began| end > began)
            || self.past.iter().rev().any(|&(from, to)| start < to && end > from)
    }

    /// Drops periods that ended before `time`: every row up to then has been checked.
    pub fn forget_before(&mut self, time: u64) {
        self.past.retain(|&(_, to)| to >= time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_touches_the_writers_work_is_own() {
        let mut own = OwnWork::default();
        own.begin(100);
        assert!(own.touches(90, 120), "still at work");
        own.end(200);
        assert!(own.touches(90, 101) && own.touches(199, 300) && own.touches(120, 130));
        assert!(!own.touches(50, 100) && !own.touches(200, 210));
        own.forget_before(201);
        assert!(!own.touches(90, 150));
    }
}
