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
}

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
trait Partners {
    /// Whether ranks handle a message at all.
    const EXIST: bool = true;

    /// The times of the partners of `N` ranks from the block's `rank` on.
    fn load<const N: usize>(&self, rank: usize) -> [i64; N];
}

struct Nobody;

impl Partners for Nobody {
    const EXIST: bool = false;

    #[inline(always)]
    fn load<const N: usize>(&self, _: usize) -> [i64; N] {
        [0; N]
    }
}

/// Partners in the order of the ranks.
struct InOrder<'a>(&'a [i64]);

impl Partners for InOrder<'_> {
    #[inline(always)]
    fn load<const N: usize>(&self, rank: usize) -> [i64; N] {
        chunk(self.0, rank)
    }
}

/// Partners whose numbers differ in bits of which some stand for whole vectors.
struct Far<'a>(&'a [i64], usize, usize);

impl Partners for Far<'_> {
    #[inline(always)]
    fn load<const N: usize>(&self, rank: usize) -> [i64; N] {
        let Self(all, at, bits) = *self;
        if N == 1 {
            return chunk(all, (at + rank) ^ bits);
        }
        let vector: [i64; N] = chunk(all, (at + rank) ^ (bits & !(N - 1)));
        let near = bits & (N - 1);
        if near == 0 { vector } else { std::array::from_fn(|lane| vector[lane ^ near]) }
    }
}

/// Partners within one vector.
struct Near<'a, const BITS: usize>(&'a [i64], usize);

impl<const BITS: usize> Partners for Near<'_, BITS> {
    #[inline(always)]
    fn load<const N: usize>(&self, rank: usize) -> [i64; N] {
        if N == 1 {
            return chunk(self.0, (self.1 + rank) ^ BITS);
        }
        let vector: [i64; N] = chunk(self.0, self.1 + rank);
        std::array::from_fn(|lane| vector[(lane ^ BITS) % N])
    }
}

/// `N` numbers from `at` on; zeros where there are fewer, which no caller asks for.
#[inline(always)]
fn chunk<const N: usize>(numbers: &[i64], at: usize) -> [i64; N] {
    numbers.get(at..).and_then(|numbers| numbers.first_chunk()).copied().unwrap_or([0; N])
}

#[inline(always)]
fn store<const N: usize>(numbers: &mut [i64], at: usize, values: [i64; N]) {
    if let Some(place) = numbers.get_mut(at..).and_then(|numbers| numbers.first_chunk_mut()) {
        *place = values;
    }
}

#[inline(always)]
fn play(pass: &Pass, walks: Option<&Walks<'_>>, times: Times<'_>, own: &mut Own<'_>) {
    let ranks = times.after.len();
    let Times { before, at, after } = times;
    let mine = &before[at..at + ranks];
    let Some(handling) = pass.handling else {
        return blocks(pass, walks, mine, after, own, 0..ranks, &Nobody);
    };
    match handling.peers {
        Peers::Xor(1) => blocks(pass, walks, mine, after, own, 0..ranks, &Near::<1>(before, at)),
        Peers::Xor(2) => blocks(pass, walks, mine, after, own, 0..ranks, &Near::<2>(before, at)),
        Peers::Xor(4) => blocks(pass, walks, mine, after, own, 0..ranks, &Near::<4>(before, at)),
        Peers::Xor(bits) => {
            blocks(pass, walks, mine, after, own, 0..ranks, &Far(before, at, bits as usize));
        }
        Peers::Ahead(distance) => {
            // The first ranks handle messages of the last ones.
            let all = before.len();
            let distance = distance as usize % all;
            let wrapped = distance.saturating_sub(at).min(ranks);
            let far = InOrder(&before[(at + all - distance) % all..]);
            blocks(pass, walks, mine, after, own, 0..wrapped, &far);
            let near = InOrder(&before[(at + wrapped).saturating_sub(distance)..]);
            let shifted = Shifted(near, wrapped);
            blocks(pass, walks, mine, after, own, wrapped..ranks, &shifted);
        }
    }
}

/// Partners whose first one is that of this rank of the block.
struct Shifted<'a>(InOrder<'a>, usize);

impl Partners for Shifted<'_> {
    #[inline(always)]
    fn load<const N: usize>(&self, rank: usize) -> [i64; N] {
        self.0.load(rank - self.1)
    }
}

/// Plays a pass on some ranks of a block.
#[inline(always)]
fn blocks<P: Partners>(
    pass: &Pass,
    walks: Option<&Walks<'_>>,
    mine: &[i64],
    after: &mut [i64],
    own: &mut Own<'_>,
    ranks: std::ops::Range<usize>,
    partners: &P,
) {
    let gaps = !own.out.is_empty();
    match (walks, gaps) {
        (None, false) => vectors::<false, false, P>(pass, &Walks::NONE, mine, after, own, ranks, partners),
        (None, true) => vectors::<false, true, P>(pass, &Walks::NONE, mine, after, own, ranks, partners),
        (Some(walks), false) => vectors::<true, false, P>(pass, walks, mine, after, own, ranks, partners),
        (Some(walks), true) => vectors::<true, true, P>(pass, walks, mine, after, own, ranks, partners),
    }
}

#[inline(always)]
fn vectors<const NOISE: bool, const GAPS: bool, P: Partners>(
    pass: &Pass,
    walks: &Walks<'_>,
    mine: &[i64],
    after: &mut [i64],
    own: &mut Own<'_>,
    ranks: std::ops::Range<usize>,
    partners: &P,
) {
    let whole = ranks.start + ranks.len() / LANES * LANES;
    for rank in (ranks.start..whole).step_by(LANES) {
        vector::<LANES, NOISE, GAPS, P>(pass, walks, mine, after, own, rank, partners);
    }
    for rank in whole..ranks.end {
        vector::<1, NOISE, GAPS, P>(pass, walks, mine, after, own, rank, partners);
    }
}

/// Plays a pass on `N` ranks.
#[inline(always)]
fn vector<const N: usize, const NOISE: bool, const GAPS: bool, P: Partners>(
    pass: &Pass,
    walks: &Walks<'_>,
    mine: &[i64],
    after: &mut [i64],
    own: &mut Own<'_>,
    rank: usize,
    partners: &P,
) {
    let mut times: [i64; N] = chunk(mine, rank);
    let mut work = pass.work;
    if let Some(handling) = pass.handling.filter(|_| P::EXIST) {
        let MessageCost { latency, overhead, gap, wire, .. } = handling.cost;
        let left: [i64; N] = partners.load(rank);
        for lane in 0..N {
            times[lane] = times[lane].max(left[lane] + latency);
        }
        if GAPS {
            let mut inward: [i64; N] = chunk(own.inward, rank);
            for lane in 0..N {
                times[lane] = times[lane].max(inward[lane]);
                inward[lane] = times[lane] + (gap + wire);
            }
            store(own.inward, rank, inward);
        }
        for time in &mut times {
            *time += wire;
        }
        work += overhead;
    }
    let send = pass.send.unwrap_or_default();
    // Where the interface is always free when the CPU is, handling, work and send are one piece of work.
    if !GAPS {
        work += send.overhead;
    }
    let mut ends = end::<N, NOISE>(walks, own, rank, times, work);
    if GAPS && pass.send.is_some() {
        let mut out: [i64; N] = chunk(own.out, rank);
        let starts: [i64; N] = std::array::from_fn(|lane| ends[lane].max(out[lane]));
        ends = end::<N, NOISE>(walks, own, rank, starts, send.overhead);
        for lane in 0..N {
            out[lane] = ends[lane] + (send.gap + send.wire - send.overhead);
        }
        store(own.out, rank, out);
    }
    store(after, rank, ends);
}

/// When `work` that starts at these times ends.
#[inline(always)]
fn end<const N: usize, const NOISE: bool>(
    walks: &Walks<'_>,
    own: &mut Own<'_>,
    rank: usize,
    starts: [i64; N],
    work: i64,
) -> [i64; N] {
    let mut ends: [i64; N] = std::array::from_fn(|lane| starts[lane] + work);
    if NOISE {
        let next: [i64; N] = chunk(own.next, rank);
        let mut struck = 0;
        for lane in 0..N {
            // Negative for work that ends after the next detour begins.
            struck |= next[lane] - ends[lane];
        }
        if struck < 0 {
            strike(walks, own, rank, &starts, &mut ends, work);
        }
    }
    ends
}

/// Delays the work of those ranks that detours strike.
#[inline(never)]
fn strike(walks: &Walks<'_>, own: &mut Own<'_>, rank: usize, starts: &[i64], ends: &mut [i64], work: i64) {
    let ranks = rank..rank + starts.len();
    let own =
        own.next[ranks.clone()].iter_mut().zip(&mut own.cursors[ranks.clone()]).zip(&mut own.lost[ranks]);
    for (((next, cursor), lost), (start, end)) in own.zip(starts.iter().zip(ends)) {
        if *end > *next {
            let late = walks.end(cursor, next, *start, work);
            *lost += (late - *end) as u64;
            *end = late;
        }
    }
}
