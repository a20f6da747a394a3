//! An archive's clock.

/// Converts ticks to ns since the archive's first tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Ticks per second; not 0.
    pub(crate) resolution: u64,
    /// The first tick.
    pub(crate) offset: u64,
}

const SECOND: u64 = 1_000_000_000;

impl Clock {
    /// The time of a tick, rounded down to a whole ns; 0 before the first tick.
    pub(crate) fn ns(self, tick: u64) -> u64 {
        self.ns_long(tick.saturating_sub(self.offset))
    }

    /// The duration of this many ticks, in ns.
    pub(crate) fn ns_long(self, ticks: u64) -> u64 {
        if self.resolution == SECOND {
            return ticks;
        }
        let ns = u128::from(ticks) * u128::from(SECOND) / u128::from(self.resolution);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn large_ticks_are_exact() {
        let clock = Clock { resolution: 2_400_000_001, offset: 7 };
        assert_eq!(clock.ns(u64::MAX), 7_686_143_360_843_086_769);
        assert_eq!(clock.ns(3), 0);
        assert_eq!(Clock { resolution: 1, offset: 0 }.ns(u64::MAX), u64::MAX);
    }
}
