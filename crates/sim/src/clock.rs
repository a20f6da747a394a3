//! The progress clock: how much of a CPU's time was useful, and when a piece of work ends.

use quell_recording::{Cpu, Nanos, Span, Trace};

use crate::sorted::Sorted;

/// Maximum span of a clock: 2⁶² ns (146 years), so that sums of two positions cannot overflow.
const MAX_SPAN: u64 = 1 << 62;

/// Useful time over wall time for one CPU, from its trace of detours.
///
/// `W(t) = t − (noise before t)` is the useful time by `t` (`docs/concepts/progress-clock.md`). Work `w` begun at `t` ends at
/// `W⁻¹(W(t) + w)`: a detour that strikes while the work is late counts too. The trace is shifted to begin at 0
/// and repeats for ever with its span `S` as period: `W(kS + t) = k·W(S) + W(t)`. Both directions are exact
/// integers in nanoseconds and O(1) on average.
#[derive(Clone, Debug)]
pub struct ProgressClock {
    /// S: the span, in nanoseconds.
    period: u64,
    /// W(S).
    useful: u64,
    /// Where each detour begins, in wall time; S closes the list.
    starts: Sorted,
    /// Where each detour begins, in useful time; W(S) closes the list.
    useful_starts: Sorted,
}

/// A start at which a piece of work meets one more detour than just before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorstStart {
    pub(crate) start: u64,
    /// The delay of the work from there, in nanoseconds.
    pub(crate) delay: u64,
}

/// Why a trace does not make a clock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// The span has no length, so nothing was observed.
    #[error("the trace of CPU {0} spans no time; record it for longer")]
    EmptySpan(Cpu),
    /// The span is over 146 years.
    #[error("the trace of CPU {0} spans more than 146 years; its span is broken, record it again")]
    LongSpan(Cpu),
    /// The detours fill the span, so that no work would ever end.
    #[error(
        "the trace of CPU {0} is noise from end to end, so no work would ever end; record a CPU that the probe can run on"
    )]
    AllNoise(Cpu),
    /// There are more detours than the index can count.
    #[error("the trace of CPU {0} holds more than 4,294,967,294 detours; split it into shorter recordings")]
    TooMany(Cpu),
}

impl ProgressClock {
    /// The clock of a trace's noise, quell's own detours excluded.
    /// Overlapping detours count once. Detours are cut at the ends of the span.
    /// Overlapping detours count once, and what lies outside the span is cut off.
    ///
    /// # Errors
    /// When the trace spans no time or too much, or when its noise leaves no useful time.
    pub fn new(trace: &Trace) -> Result<Self, ClockError> {
        Self::over(trace, trace.span)
    }

    /// The clock of the part of a trace that lies in `span`.
    ///
    /// # Errors
    /// As for [`ProgressClock::new`].
    pub fn over(trace: &Trace, span: Span) -> Result<Self, ClockError> {
        let period = span.length().as_nanos();
        match period {
            0 => return Err(ClockError::EmptySpan(trace.cpu)),
            1..=MAX_SPAN => {}
            _ => return Err(ClockError::LongSpan(trace.cpu)),
        }
        if trace.detours.len() >= u32::MAX as usize {
            return Err(ClockError::TooMany(trace.cpu));
        }
        let noise = merged(trace, span);
        let mut starts = Vec::with_capacity(noise.len() + 1);
        let mut useful_starts = Vec::with_capacity(noise.len() + 1);
        let mut lost = 0;
        for (start, end) in noise {
            starts.push(start);
            useful_starts.push(start - lost);
            lost += end - start;
        }
        let useful = period - lost;
        if useful == 0 {
            return Err(ClockError::AllNoise(trace.cpu));
        }
        starts.push(period);
        useful_starts.push(useful);
        Ok(Self { period, useful, starts: Sorted::new(starts), useful_starts: Sorted::new(useful_starts) })
    }

    /// S: the length of the trace in nanoseconds, after which it repeats.
    pub fn period(&self) -> u64 {
        self.period
    }

    /// W(S): the useful nanoseconds in one period, at least 1.
    pub fn useful_period(&self) -> u64 {
        self.useful
    }

    /// How many detours one period holds, overlapping ones merged.
    pub fn detours(&self) -> usize {
        self.starts.keys().len() - 1
    }

    /// Where each detour begins, in wall time, and S after the last; ascending, in nanoseconds.
    pub fn starts(&self) -> &[u64] {
        self.starts.keys()
    }

    /// Where each detour begins, in useful time, and W(S) after the last; ascending, in nanoseconds.
    pub fn useful_starts(&self) -> &[u64] {
        self.useful_starts.keys()
    }

    /// W(t): the useful nanoseconds in the first `t` nanoseconds.
    pub fn useful_at(&self, t: u64) -> u64 {
        t / self.period * self.useful + self.useful_within(t % self.period)
    }

    /// When work of `work` nanoseconds that begins at `start` is done: the smallest `t` with
    /// `W(t) ≥ W(start) + work`, or `start` itself for no work; saturates at `u64::MAX`.
    ///
    /// A detour that strikes at the very instant at which the work is done does not delay it. Work that begins
    /// within a detour waits for the rest of it.
    pub fn finish(&self, start: u64, work: u64) -> u64 {
        start.saturating_add(work).saturating_add(self.delay(start, work))
    }

    /// The delay of that work: `finish(start, work) − start − work` nanoseconds.
    pub fn delay(&self, start: u64, work: u64) -> u64 {
        if work == 0 {
            return 0;
        }
        let start = if start < self.period { start } else { start % self.period };
        let useful = self.useful_within(start);
        let noise_before = start - useful;
        // Common case: the work ends within this repetition of the trace, which needs no division.
        if work <= self.useful - useful {
            return self.noise_by(useful + work) - noise_before;
        }
        let target = u128::from(useful) + u128::from(work) - 1;
        let turns = target / u128::from(self.useful);
        let rest = (target % u128::from(self.useful)) as u64 + 1;
        let lost = u128::from(self.period - self.useful);
        let noise = turns.saturating_mul(lost).saturating_add(u128::from(self.noise_by(rest)));
        u64::try_from(noise - u128::from(noise_before)).unwrap_or(u64::MAX)
    }

    /// Time from `t` until the next detour strikes, in nanoseconds; 0 within a detour.
    pub fn quiet(&self, t: u64) -> u64 {
        let t = if t < self.period { t } else { t % self.period };
        let begun = self.starts.below(t + 1);
        let inside = begun > 0 && t < self.starts.keys()[begun - 1] + self.length_of(begun - 1);
        if inside || begun > self.detours() { 0 } else { self.starts.keys()[begun] - t }
    }

    /// Number of detours that begin at `t` or before, for a `t` below the period.
    pub(crate) fn begun_by(&self, t: u64) -> usize {
        self.starts.below(t + 1)
    }

    /// The starts in `0..period` at which another detour joins those that hit `work`, ascending.
    ///
    /// [`ProgressClock::delay`] grows with the start only there. Between two of them it never grows: while
    /// the CPU is useful, start and end move on together; within a detour the end stays where it is.
    pub(crate) fn worst_starts(&self, work: u64) -> Vec<WorstStart> {
        let Some(before) = work.checked_sub(1) else { return Vec::new() };
        // The work as whole repetitions of the trace and a part in `1..=W(S)`.
        let (turns, part) = (before / self.useful, before % self.useful + 1);
        let lost = u128::from(self.period - self.useful);
        let keys = self.useful_starts.keys();
        let detours = &keys[..self.detours()];
        let in_next_turn = detours.partition_point(|&begins| begins < part);
        let mut worst: Vec<WorstStart> = Vec::with_capacity(detours.len());
        // In this order both the starts and the number of detours before them ascend.
        let mut passed = 0;
        for detour in (in_next_turn..detours.len()).chain(0..in_next_turn) {
            let begins = detours[detour];
            let (turns, turn) = if begins < part { (turns + 1, self.useful) } else { (turns, 0) };
            // The first start whose work reaches one nanosecond past the detour's beginning.
            let useful = begins + turn - part + 1;
            passed += keys[passed..].iter().take_while(|&&begins| begins < useful).count();
            let noise_before = self.noise_of(passed);
            let (turns, noise) = match begins < self.useful {
                true => (turns, self.noise_of(detour + 1)),
                // It begins where the trace ends and begins again.
                false => (turns + 1, self.noise_by(1)),
            };
            let delay = u128::from(turns) * lost + u128::from(noise) - u128::from(noise_before);
            let start = useful + noise_before;
            if worst.last().is_none_or(|last| last.start < start) {
                worst.push(WorstStart { start, delay: u64::try_from(delay).unwrap_or(u64::MAX) });
            }
        }
        if let Some(last) = worst.last_mut().filter(|last| last.start == self.period) {
            last.start = 0;
            worst.rotate_right(1);
        }
        worst
    }

    /// W(t) for `t < period`.
    fn useful_within(&self, t: u64) -> u64 {
        match self.starts.below(t) {
            0 => t,
            begun => t.saturating_sub(self.noise_of(begun)).max(self.useful_starts.keys()[begun - 1]),
        }
    }

    /// The noise before the first instant with `useful` nanoseconds behind it, for `useful` in `1..=W(S)`.
    fn noise_by(&self, useful: u64) -> u64 {
        self.noise_of(self.useful_starts.below(useful))
    }

    /// The length of a detour.
    fn length_of(&self, detour: usize) -> u64 {
        self.noise_of(detour + 1) - self.noise_of(detour)
    }

    /// The noise of the first `count` detours.
    fn noise_of(&self, count: usize) -> u64 {
        self.starts.keys()[count] - self.useful_starts.keys()[count]
    }
}

/// A trace's noise within a span as disjoint `(start, end)` pairs from the span's start, ascending, none touching.
fn merged(trace: &Trace, span: Span) -> Vec<(u64, u64)> {
    let place = |t: Nanos| (t.clamp(span.start, span.end) - span.start).as_nanos();
    let mut noise: Vec<(u64, u64)> = trace
        .noise()
        .map(|detour| (place(detour.start), place(detour.end())))
        .filter(|(start, end)| start < end)
        .collect();
    // Recordings are sorted already; imported files may not be.
    noise.sort();
    noise.dedup_by(|next, last| {
        let touches = next.0 <= last.1;
        if touches {
            last.1 = last.1.max(next.1);
        }
        touches
    });
    noise
}

#[cfg(test)]
mod tests;
