//! One CPU's noise as a progress clock over borrowed memory.

use core::num::NonZeroU64;

use crate::flaw::ScheduleError;

/// The longest period: 2⁶² ns, so that sums of two positions cannot overflow.
pub const LONGEST_NS: u64 = 1 << 62;

/// The detours of one CPU, repeated periodically.
///
/// `W(t) = t − (noise before t)`, as in quell-sim's progress clock; a property test checks that both agree.
#[derive(Clone, Copy, Debug)]
pub struct ProgressClockView<'a> {
    /// S: the period in ns.
    period: NonZeroU64,
    /// W(S).
    useful: NonZeroU64,
    /// Start of each detour in wall time, ascending; S ends the list.
    starts: &'a [u64],
    /// Start of each detour in useful time; W(S) ends the list.
    useful_starts: &'a [u64],
}

/// Minimum mean time from one detour to the next, if each is a signal.
pub const LEAST_APART_NS: u64 = 20_000;
/// The longest detour, if each is a signal.
pub const LONGEST_DETOUR_NS: u64 = 10_000_000_000;
/// The least share of the time that noise leaves to a program, as a divisor.
pub const LEAST_USEFUL: u64 = 20;

/// The next detour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Time until it begins, in ns; 0 within one.
    pub wait_ns: u64,
    /// Its length from then on, in ns.
    pub length_ns: u64,
}

impl<'a> ProgressClockView<'a> {
    /// A track from its words: `count + 1` starts, then as many useful starts. Validates all of them.
    ///
    /// # Errors
    /// [`ScheduleError::ProgressClockView`] if they do not form a progress clock.
    pub fn from_words(count: usize, words: &'a [u64]) -> Result<Self, ScheduleError> {
        let half = count.checked_add(1).ok_or(ScheduleError::ProgressClockView)?;
        if half.checked_mul(2) != Some(words.len()) {
            return Err(ScheduleError::ProgressClockView);
        }
        let (starts, useful_starts) = words.split_at_checked(half).ok_or(ScheduleError::ProgressClockView)?;
        if starts.first() != useful_starts.first() {
            return Err(ScheduleError::ProgressClockView);
        }
        let (mut last, mut useful) = (0u64, 0u64);
        for (&start, &useful_start) in starts.iter().zip(useful_starts) {
            // From one start to the next there is a detour, whose length must not be negative, and then useful time.
            let quiet = useful_start.checked_sub(useful).ok_or(ScheduleError::ProgressClockView)?;
            if start.checked_sub(last).is_none_or(|both| both < quiet) {
                return Err(ScheduleError::ProgressClockView);
            }
            (last, useful) = (start, useful_start);
        }
        let period = NonZeroU64::new(last).ok_or(ScheduleError::ProgressClockView)?;
        let useful = NonZeroU64::new(useful).ok_or(ScheduleError::ProgressClockView)?;
        if period.get() > LONGEST_NS {
            return Err(ScheduleError::ProgressClockView);
        }
        Ok(Self { period, useful, starts, useful_starts })
    }

    /// S: the period in ns.
    pub fn period(&self) -> NonZeroU64 {
        self.period
    }

    /// Number of detours in one period.
    pub fn detours(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether a program makes progress if each detour is a signal. Checked whatever the schedule says, because it runs in other people's
    /// jobs.
    ///
    /// # Errors
    /// [`ScheduleError::Starves`] for a detour of length 0 or of more than ten seconds, for detours more frequent than every 20 us, which a signal may
    /// take by itself, and for noise that takes more than 95 %.
    pub fn bearable(&self) -> Result<(), ScheduleError> {
        let count = self.detours();
        let apart = self.period.get().checked_div(count as u64).unwrap_or(u64::MAX);
        let lasts = (0..count).all(|detour| self.length_of(detour) > 0);
        if apart >= LEAST_APART_NS && lasts {
            self.makes_progress(LONGEST_DETOUR_NS)
        } else {
            Err(ScheduleError::Starves)
        }
    }

    /// Whether what is due after some work ends: no detour is longer than `longest_ns`, and 5 % of the time is useful.
    ///
    /// # Errors
    /// [`ScheduleError::Starves`].
    pub fn makes_progress(&self, longest_ns: u64) -> Result<(), ScheduleError> {
        let gets_on = self.useful.get() >= self.period.get() / LEAST_USEFUL;
        let short = (0..self.detours()).all(|detour| self.length_of(detour) <= longest_ns);
        if gets_on && short { Ok(()) } else { Err(ScheduleError::Starves) }
    }

    /// W(t): the useful time in the first `t` ns.
    pub fn useful_at(&self, t: u64) -> u64 {
        let turns = (t / self.period).wrapping_mul(self.useful.get());
        turns.wrapping_add(self.useful_within(t % self.period))
    }

    /// The noise in `length` ns from `t` on.
    pub fn noise_in(&self, t: u64, length: u64) -> u64 {
        let end = t.saturating_add(length);
        (end - t).saturating_sub(self.useful_at(end).saturating_sub(self.useful_at(t)))
    }

    /// How much longer than `work` ns the work takes if it begins at `t`. Work that begins within a detour waits for the rest of it, and a
    /// detour during the added delay counts too. Zero work takes no time. Saturates at `u64::MAX`.
    pub fn delay(&self, t: u64, work: u64) -> u64 {
        if work == 0 {
            return 0;
        }
        let start = t % self.period;
        let useful = self.useful_within(start);
        let noise_before = start.wrapping_sub(useful);
        if work <= self.useful.get().wrapping_sub(useful) {
            return self.noise_by(useful.wrapping_add(work)).wrapping_sub(noise_before);
        }
        let target = u128::from(useful).wrapping_add(u128::from(work)).wrapping_sub(1);
        let whole = u128::from(self.useful.get());
        // `whole` is never zero, but the compiler cannot see that.
        let turns = target.checked_div(whole).unwrap_or(0);
        let rest = (target.checked_rem(whole).unwrap_or(0) as u64).wrapping_add(1);
        let lost = u128::from(self.period.get().wrapping_sub(self.useful.get()));
        let noise = turns.saturating_mul(lost).saturating_add(u128::from(self.noise_by(rest)));
        u64::try_from(noise.wrapping_sub(u128::from(noise_before))).unwrap_or(u64::MAX)
    }

    /// The detour that contains `t`, or else the next one; `None` if there is no noise.
    pub fn ahead(&self, t: u64) -> Option<Ahead> {
        if self.detours() == 0 {
            return None;
        }
        let t = t % self.period;
        let begun = below(self.starts, t.wrapping_add(1));
        if let Some(last) = begun.checked_sub(1).filter(|&last| last < self.detours()) {
            let end = at(self.starts, last).saturating_add(self.length_of(last));
            if end > t {
                return Some(Ahead { wait_ns: 0, length_ns: end.wrapping_sub(t) });
            }
        }
        let (next, start) = match begun {
            next if next < self.detours() => (next, at(self.starts, next)),
            _ => (0, at(self.starts, 0).wrapping_add(self.period.get())),
        };
        Some(Ahead { wait_ns: start.wrapping_sub(t), length_ns: self.length_of(next) })
    }

    /// W(t) for `t < period`.
    fn useful_within(&self, t: u64) -> u64 {
        match below(self.starts, t) {
            0 => t,
            begun => {
                t.saturating_sub(self.noise_of(begun)).max(at(self.useful_starts, begun.wrapping_sub(1)))
            }
        }
    }

    /// The noise before the first instant by which `useful` ns of useful time have passed, for `useful` in `1..=W(S)`.
    fn noise_by(&self, useful: u64) -> u64 {
        self.noise_of(below(self.useful_starts, useful))
    }

    /// The noise of the first `count` detours.
    fn noise_of(&self, count: usize) -> u64 {
        at(self.starts, count).wrapping_sub(at(self.useful_starts, count))
    }

    fn length_of(&self, detour: usize) -> u64 {
        self.noise_of(detour.wrapping_add(1)).wrapping_sub(self.noise_of(detour))
    }
}

/// Number of keys below `key`.
fn below(keys: &[u64], key: u64) -> usize {
    keys.partition_point(|&k| k < key)
}

/// The key at an index; the last key also stands for all indices beyond it.
fn at(keys: &[u64], index: usize) -> u64 {
    keys.get(index).or(keys.last()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_starves_a_program_is_distinguished() {
        let bearable =
            |words: &[u64]| ProgressClockView::from_words(words.len() / 2 - 1, words).unwrap().bearable();
        assert_eq!(bearable(&[1_000_000, 1_000_000]), Ok(()), "no noise at all");
        assert_eq!(bearable(&[5_000, 20_000, 5_000, 19_000]), Ok(()));
        assert_eq!(bearable(&[5_000, 19_999, 5_000, 19_000]), Err(ScheduleError::Starves), "too often");
        assert_eq!(
            bearable(&[5_000, 1_000_000, 5_000, 1_000_000]),
            Err(ScheduleError::Starves),
            "of no length"
        );
        assert_eq!(bearable(&[0, 1_000_000, 0, 50_000]), Ok(()));
        assert_eq!(bearable(&[0, 1_000_000, 0, 49_999]), Err(ScheduleError::Starves), "more than 95 %");
        let long = 10_000_000_001;
        assert_eq!(bearable(&[0, 2 * long, 0, long]), Err(ScheduleError::Starves), "too long");
    }
}
