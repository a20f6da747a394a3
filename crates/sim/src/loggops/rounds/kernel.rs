//! One pass over a block of ranks, in vectors.
//!
//! All numbers are integers, so every instruction set gives the same result.

use super::cost::MessageCost;
use super::plan::Pass;
use super::walk::{Cursor, Walks};
use crate::loggops::Peers;

/// Number of ranks that are computed together: eight 64-bit numbers fill a 512-bit register.
const LANES: usize = 8;

/// What only a block's own passes use of its ranks. Empty where a run has no noise or no gaps.
#[derive(Debug)]
pub(super) struct Own<'a> {
    /// When the next detour begins.
    pub(super) next: &'a mut [i64],
    pub(super) cursors: &'a mut [Cursor],
    /// Sum of the noise that struck, in nanoseconds.
    pub(super) lost: &'a mut [u64],
    /// The times from which the interface is free to send and to receive.
    pub(super) out: &'a mut [i64],
    pub(super) inward: &'a mut [i64],
    /// What each rank waited for last in the pass, where that is recorded.
    pub(super) choices: &'a mut [u8],
}

/// What a rank waited for last before it handled a message: the message, …
pub(super) const MESSAGE: u8 = 0;
/// … its CPU, …
pub(super) const CPU: u8 = 1;
/// … or its interface.
pub(super) const INWARD: u8 = 2;
/// Added if it waited for its interface before it sent.
pub(super) const OUT: u8 = 4;

/// When each rank's last message left, or when its CPU is free if it sent none, before and after a pass.
#[derive(Debug)]
pub(super) struct Times<'a> {
    /// Those of all ranks that the pass may need …
    pub(super) before: &'a [i64],
    /// … of which the block's own begin here.
    pub(super) at: usize,
    pub(super) after: &'a mut [i64],
}

/// The instruction sets that a pass is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isa {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// All that this machine has, the widest last.
    pub(super) fn available() -> Vec<Self> {
        let mut all = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                all.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                all.push(Self::Avx512);
            }
        }
        all
    }

    /// The widest that this machine has.
    pub(super) fn best() -> Self {
        Self::available().pop().unwrap_or(Self::Portable)
    }

    /// Plays a pass on a block.
    pub(super) fn play(self, pass: &Pass, walks: Option<&Walks<'_>>, times: Times<'_>, own: &mut Own<'_>) {
        match self {
            Self::Portable => play(pass, walks, times, own),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value is made only where the machine has AVX2.
            Self::Avx2 => unsafe { play_avx2(pass, walks, times, own) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this value is made only where the machine has AVX-512 F and VL.
            Self::Avx512 => unsafe { play_avx512(pass, walks, times, own) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn play_avx2(pass: &Pass, walks: Option<&Walks<'_>>, times: Times<'_>, own: &mut Own<'_>) {
    play(pass, walks, times, own);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn play_avx512(pass: &Pass, walks: Option<&Walks<'_>>, times: Times<'_>, own: &mut Own<'_>) {
    play(pass, walks, times, own);
}

/// Where the times of a block's partners are.
trait Partners: Copy {
    /// Whether ranks handle a message at all.
    const EXIST: bool = true;

    /// The partners of all ranks but the first.
    fn skip(self, ranks: usize) -> Self;

    /// The times of the partners of the `number`-th `N` ranks.
    fn load<const N: usize>(self, number: usize) -> [i64; N];
}

#[derive(Clone, Copy)]
struct NoMessage;

impl Partners for NoMessage {
    const EXIST: bool = false;

    fn skip(self, _: usize) -> Self {
        self
    }

    #[inline(always)]
    fn load<const N: usize>(self, _: usize) -> [i64; N] {
        [0; N]
    }
}

/// Partners in the order of the ranks.
#[derive(Clone, Copy)]
struct InOrder<'a>(&'a [i64]);

impl Partners for InOrder<'_> {
    fn skip(self, ranks: usize) -> Self {
        Self(&self.0[ranks..])
    }

    #[inline(always)]
    fn load<const N: usize>(self, number: usize) -> [i64; N] {
        self.0.as_chunks().0[number]
    }
}

/// Partners whose numbers differ in some bits, within vectors too if they are `MIXED`. The first rank is at this place, a multiple of the
/// vectors' length.
#[derive(Clone, Copy)]
struct Far<'a, const MIXED: bool> {
    all: &'a [i64],
    at: usize,
    bits: usize,
}

impl<const MIXED: bool> Partners for Far<'_, MIXED> {
    fn skip(self, ranks: usize) -> Self {
        Self { at: self.at + ranks, ..self }
    }

    #[inline(always)]
    fn load<const N: usize>(self, number: usize) -> [i64; N] {
        let vector: [i64; N] = self.all.as_chunks().0[(self.at / N + number) ^ (self.bits / N)];
        // A vector goes by way of memory if its lanes are chosen while the program runs.
        if MIXED { std::array::from_fn(|lane| vector[lane ^ (self.bits % N)]) } else { vector }
    }
}

/// Partners within one vector.
#[derive(Clone, Copy)]
struct Near<'a, const BITS: usize> {
    all: &'a [i64],
    at: usize,
}

impl<const BITS: usize> Partners for Near<'_, BITS> {
    fn skip(self, ranks: usize) -> Self {
        Self { at: self.at + ranks, ..self }
    }

    #[inline(always)]
    fn load<const N: usize>(self, number: usize) -> [i64; N] {
        if N == 1 {
            return [self.all[(self.at + number) ^ BITS]; N];
        }
        let vector: [i64; N] = self.all.as_chunks().0[self.at / N + number];
        std::array::from_fn(|lane| vector[(lane ^ BITS) % N])
    }
}

#[inline(always)]
fn play(pass: &Pass, walks: Option<&Walks<'_>>, times: Times<'_>, own: &mut Own<'_>) {
    let ranks = times.after.len();
    let Times { before, at, after } = times;
    let mine = &before[at..at + ranks];
    let Some(handling) = pass.handling else {
        return some(pass, walks, mine, after, own.reborrow(), NoMessage);
    };
    match handling.peers {
        Peers::Xor(1) => some(pass, walks, mine, after, own.reborrow(), Near::<1> { all: before, at }),
        Peers::Xor(2) => some(pass, walks, mine, after, own.reborrow(), Near::<2> { all: before, at }),
        Peers::Xor(4) => some(pass, walks, mine, after, own.reborrow(), Near::<4> { all: before, at }),
        Peers::Xor(bits) if (bits as usize).is_multiple_of(LANES) => {
            let partners = Far::<false> { all: before, at, bits: bits as usize };
            some(pass, walks, mine, after, own.reborrow(), partners);
        }
        Peers::Xor(bits) => {
            let partners = Far::<true> { all: before, at, bits: bits as usize };
            some(pass, walks, mine, after, own.reborrow(), partners);
        }
        Peers::Ahead(distance) => {
            // The first ranks handle messages of the last ones.
            let all = before.len();
            let distance = distance as usize % all;
            let wrapped = distance.saturating_sub(at).min(ranks);
            let (first, last) = own.reborrow().split_at(wrapped);
            let (first_after, last_after) = after.split_at_mut(wrapped);
            let far = InOrder(&before[(at + all - distance) % all..]);
            some(pass, walks, &mine[..wrapped], first_after, first, far);
            let near = InOrder(&before[(at + wrapped).saturating_sub(distance)..]);
            some(pass, walks, &mine[wrapped..], last_after, last, near);
        }
    }
}

/// Plays a pass on some ranks: whole vectors, and what is left.
#[inline(always)]
fn some<P: Partners>(
    pass: &Pass,
    walks: Option<&Walks<'_>>,
    mine: &[i64],
    after: &mut [i64],
    own: Own<'_>,
    partners: P,
) {
    let whole = after.len() / LANES * LANES;
    let (own, own_rest) = own.split_at(whole);
    let (after, after_rest) = after.split_at_mut(whole);
    let gaps = !own.out.is_empty() || !own_rest.out.is_empty();
    match (walks, gaps) {
        (None, false) => vectors::<LANES, false, false, P>(pass, &Walks::NONE, mine, after, own, partners),
        (None, true) => vectors::<LANES, false, true, P>(pass, &Walks::NONE, mine, after, own, partners),
        (Some(walks), false) => vectors::<LANES, true, false, P>(pass, walks, mine, after, own, partners),
        (Some(walks), true) => vectors::<LANES, true, true, P>(pass, walks, mine, after, own, partners),
    }
    if after_rest.is_empty() {
        return;
    }
    let (mine, after, own, partners) = (&mine[whole..], after_rest, own_rest, partners.skip(whole));
    match (walks, gaps) {
        (None, false) => vectors::<1, false, false, P>(pass, &Walks::NONE, mine, after, own, partners),
        (None, true) => vectors::<1, false, true, P>(pass, &Walks::NONE, mine, after, own, partners),
        (Some(walks), false) => vectors::<1, true, false, P>(pass, walks, mine, after, own, partners),
        (Some(walks), true) => vectors::<1, true, true, P>(pass, walks, mine, after, own, partners),
    }
}

/// The first `count` vectors of an array that a run may not have.
fn lanes<T, const N: usize>(numbers: &mut [T], count: usize, used: bool) -> &mut [[T; N]] {
    &mut numbers.as_chunks_mut().0[..if used { count } else { 0 }]
}

/// Plays a pass on whole vectors of `N` ranks.
#[inline(always)]
fn vectors<const N: usize, const NOISE: bool, const GAPS: bool, P: Partners>(
    pass: &Pass,
    walks: &Walks<'_>,
    mine: &[i64],
    after: &mut [i64],
    own: Own<'_>,
    partners: P,
) {
    let (after, _) = after.as_chunks_mut::<N>();
    let count = after.len();
    let mine = &mine.as_chunks::<N>().0[..count];
    let Own { next, cursors, lost, out, inward, choices } = own;
    let next = lanes::<i64, N>(next, count, NOISE);
    let cursors = lanes::<Cursor, N>(cursors, count, NOISE);
    let lost = lanes::<u64, N>(lost, count, NOISE);
    let out = lanes::<i64, N>(out, count, GAPS);
    let inward = lanes::<i64, N>(inward, count, GAPS);
    let is_recorded = !choices.is_empty();
    let choices = lanes::<u8, N>(choices, count, is_recorded);

    let handling = pass.handling.filter(|_| P::EXIST).map(|handling| handling.cost);
    let MessageCost { latency, overhead, gap, wire, .. } = handling.unwrap_or_default();
    let send = pass.send.unwrap_or_default();
    // Where the interface is always free when the CPU is, handling, work and send are one piece of work.
    let work = overhead + pass.work + if GAPS { 0 } else { send.overhead };
    for number in 0..count {
        if !NOISE {
            // A loop without branches would be computed in vectors of one lane of eight of these, which are gathered and scattered.
            std::hint::black_box(());
        }
        let mut times = mine[number];
        let mut choice = [if P::EXIST { MESSAGE } else { CPU }; N];
        if P::EXIST {
            let left: [i64; N] = partners.load(number);
            for lane in 0..N {
                times[lane] = times[lane].max(left[lane] + latency);
            }
            if is_recorded {
                for lane in 0..N {
                    let inward = if GAPS { inward[number][lane] } else { 0 };
                    let start = times[lane].max(inward);
                    let waits = u8::from(left[lane] + latency < start);
                    choice[lane] = waits + (waits & u8::from(mine[number][lane] < start));
                }
            }
            if GAPS {
                for lane in 0..N {
                    times[lane] = times[lane].max(inward[number][lane]);
                    inward[number][lane] = times[lane] + (gap + wire);
                }
            }
            for time in &mut times {
                *time += wire;
            }
        }
        let mut ends = times.map(|time| time + work);
        if NOISE && is_struck(&next[number], &ends) {
            ends = strike(walks, &mut next[number], &mut cursors[number], &mut lost[number], times, work);
        }
        if GAPS && pass.send.is_some() {
            for lane in 0..N {
                times[lane] = ends[lane].max(out[number][lane]);
                choice[lane] |= OUT * u8::from(out[number][lane] > ends[lane]);
            }
            ends = times.map(|time| time + send.overhead);
            if NOISE && is_struck(&next[number], &ends) {
                let (next, cursors) = (&mut next[number], &mut cursors[number]);
                ends = strike(walks, next, cursors, &mut lost[number], times, send.overhead);
            }
            for lane in 0..N {
                out[number][lane] = ends[lane] + (send.gap + send.wire - send.overhead);
            }
        }
        if is_recorded {
            choices[number] = choice;
        }
        after[number] = ends;
    }
}

/// Whether some work ends after the next detour of its rank begins.
#[inline(always)]
fn is_struck<const N: usize>(next: &[i64; N], ends: &[i64; N]) -> bool {
    let mut struck = 0;
    for lane in 0..N {
        struck |= next[lane] - ends[lane];
    }
    struck < 0
}

/// When work that starts at these times ends, with the detours that strike it.
#[inline(never)]
fn strike<const N: usize>(
    walks: &Walks<'_>,
    next: &mut [i64; N],
    cursors: &mut [Cursor; N],
    lost: &mut [u64; N],
    starts: [i64; N],
    work: i64,
) -> [i64; N] {
    let mut ends = starts.map(|start| start + work);
    for lane in 0..N {
        if ends[lane] > next[lane] {
            let late = walks.end(&mut cursors[lane], &mut next[lane], starts[lane], work);
            lost[lane] += (late - ends[lane]) as u64;
            ends[lane] = late;
        }
    }
    ends
}
