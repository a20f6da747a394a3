//! Resamples a node's traces in blocks.

use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use quell_sim::{BspError, Draws};

use super::NodeNoise;
use super::tail::Tail;

/// A node's span, cut into blocks for the bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    span: Span,
    /// Nanoseconds per block.
    length: u64,
}

impl Blocks {
    /// Blocks of a hundredth of the span, or of ten quanta if that is more, so that detours within one
    /// phase stay together; but at least four blocks, because fewer would hardly vary.
    pub(crate) fn from_node(node: &NodeNoise, quantum: Nanos) -> Result<Self, BspError> {
        let span = node.span()?;
        let whole = span.length().as_nanos();
        let length = (whole / 100).max(quantum.as_nanos().saturating_mul(10)).min(whole / 4).max(1);
        Ok(Self { span, length })
    }

    /// Whether the span holds so few quanta that the blocks separate detours that belong together.
    pub(super) fn too_short_for(self, quantum: Nanos) -> bool {
        self.length < quantum.as_nanos().saturating_mul(10)
    }

    /// Each block's place in the drawn trace, and where it begins in the recorded one.
    fn matched(self, all: &[Vec<(u64, Nanos)>], draws: &Draws) -> Vec<(u64, u64)> {
        let whole = self.span.length().as_nanos();
        let since = |from: u64| all.iter().map(move |noise| since(noise, from, whole));
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        for place in (0..whole).step_by(usize::try_from(self.length).unwrap_or(usize::MAX)) {
            let number = blocks.len() as u64 * CANDIDATES;
            let mut candidates = (number..number + CANDIDATES).map(|draw| draws.below(draw, whole));
            let from = match blocks.last() {
                None => candidates.next(),
                Some((_, before)) => {
                    let end = (before + self.length) % whole;
                    let apart = |from: &u64| -> u64 {
                        since(*from).zip(since(end)).map(|(one, other)| one.abs_diff(other)).sum()
                    };
                    candidates.min_by_key(apart)
                }
            };
            blocks.extend(from.map(|from| (place, from)));
        }
        blocks
    }

    /// The noise that begins within the span, as (start relative to the span, duration).
    fn noise(self, trace: &Trace) -> Vec<(u64, Nanos)> {
        let within = trace.noise().filter(|detour| (self.span.start..self.span.end).contains(&detour.start));
        let mut noise: Vec<_> =
            within.map(|detour| ((detour.start - self.span.start).as_nanos(), detour.duration)).collect();
        // Recordings are sorted already; imported files may not be.
        noise.sort_by_key(|&(start, _)| start);
        noise
    }
}

/// A node's noise, ready to be drawn again.
#[derive(Debug)]
pub(super) struct Resampler {
    blocks: Blocks,
    /// The tail of the recorded detours.
    tail: Option<Tail>,
    /// The recorded detours of each CPU, as (start relative to the span, duration).
    recorded: Vec<Vec<(u64, Nanos)>>,
    /// What is left of them.
    left: Vec<LeftOnCpu>,
    /// Whether nothing was taken out.
    is_whole: bool,
}

/// The noise of one CPU.
#[derive(Debug)]
struct LeftOnCpu {
    cpu: Cpu,
    detours: Vec<Left>,
    /// The index of its recorded detours.
    recorded: Option<usize>,
}

/// A detour, or what is left of one after noise was taken out of it.
#[derive(Clone, Copy, Debug)]
struct Left {
    start: u64,
    duration: Nanos,
    /// The recorded detour that it is a part of.
    whole: Option<(u64, Nanos)>,
}

impl Resampler {
    /// Places of blocks, tail and the longest detour are those of `recorded`, which is `node` itself, or what it was before noise was taken out
    /// of it.
    pub(super) fn new(node: &NodeNoise, recorded: &NodeNoise, quantum: Nanos) -> Result<Self, BspError> {
        let blocks = Blocks::from_node(node, quantum)?;
        let is_whole = std::ptr::eq(node, recorded);
        let all: Vec<_> = recorded.traces.iter().map(|trace| blocks.noise(trace)).collect();
        let tail = Tail::from_traces(&recorded.traces);
        let one_more_on = longest(&all).filter(|_| has_one_more(tail.as_ref())).map(|(_, at, _)| at);
        let left = |trace: &Trace| {
            let recorded = recorded.traces.iter().position(|recorded| recorded.cpu == trace.cpu);
            let before = recorded.map_or(&[][..], |at| &all[at]);
            let mut noise = blocks.noise(trace);
            // Only the one more longest can take the place of a detour of which nothing is left.
            if !is_whole && recorded.is_some() && recorded == one_more_on {
                add_gone(&mut noise, before);
            }
            // Only where noise was taken out does a detour have to be searched in the recorded ones.
            let whole = |one: (u64, Nanos)| if is_whole { Some(one) } else { holding(before, one.0) };
            let left = noise.iter().map(|&(start, duration)| Left {
                start,
                duration,
                whole: whole((start, duration)),
            });
            LeftOnCpu { cpu: trace.cpu, detours: left.collect(), recorded }
        };
        let left = node.traces.iter().map(left).collect();
        Ok(Self { blocks, tail, left, recorded: all, is_whole })
    }

    /// Draws as much trace again from blocks that begin anywhere (past the end the trace wraps around to its start), the
    /// same blocks for all CPUs. Of some places a block begins at the one that matches best what is before it: where the last detours
    /// of all CPUs began as long ago (matched blocks: Carlstein, Do, Hall, Hesterberg & Künsch, Bernoulli 4, 1998). Otherwise detours of
    /// a regular noise would follow one another at the joints as they never do.
    ///
    /// The longest detours get durations drawn from their [`Tail`]. Without a tail, or with a heavy one, there is [`OneMore`] of the longest.
    ///
    /// A detour stays whole and belongs to the block in which it begins: cutting it would weaken exactly the detours
    /// that matter at scale. A detour that it then overlaps comes after it.
    pub(super) fn draw(&self, draws: &Draws) -> Vec<Trace> {
        let Self { blocks, tail, recorded, .. } = self;
        let whole = blocks.span.length().as_nanos();
        let durations = Draws::new(draws.at(u64::MAX), &[]);
        let more = OneMore::from_noise(recorded, &durations).filter(|_| has_one_more(tail.as_ref()));
        let tail = tail.map(|tail| tail.again(&Draws::new(durations.at(u64::MAX), &[])));
        let places = blocks.matched(recorded, draws);
        let of_cpu = |left: &LeftOnCpu| {
            let more = more.as_ref().filter(|more| Some(more.at) == left.recorded);
            let more = more.map(|more| (more, more.left(&left.detours)));
            let mut detours = Vec::with_capacity(left.detours.len() + left.detours.len() / 8);
            for &(place, from) in &places {
                let duration = |one: &Left| {
                    let Some((from_start, recorded)) = one.whole else { return one.duration };
                    let draw = place.wrapping_add(from_start);
                    if let Some((more, rest)) = more
                        && more.chooses(draw)
                    {
                        let is_first = !starts_within(&left.detours, from_start..one.start);
                        return if is_first { rest.max(one.duration) } else { one.duration };
                    }
                    let redrawn = tail.map(|tail| tail.redraw(recorded, durations.at(draw)));
                    redrawn.map_or(one.duration, |redrawn| scaled(one.duration, redrawn, recorded))
                };
                let part = (from, blocks.length.min(whole - place), whole);
                copy(&left.detours, part, place, duration, &mut detours);
            }
            if !self.is_whole {
                detours.retain(|detour| detour.duration > Nanos::ZERO);
            }
            Trace { cpu: left.cpu, span: Span { start: Nanos::ZERO, end: Nanos::from_nanos(whole) }, detours }
        };
        self.left.iter().map(of_cpu).collect()
    }
}

/// On average one more detour as long as the longest: every detour of that CPU becomes as long with a probability of one in their number.
///
/// Of n long detours, a resampled trace has a Poisson number with mean n. If n is small, its 97.5 % point is below the upper end of the exact
/// interval of a count (Garwood, Biometrika 28, 1936). With mean n + 1, both ends are within one detour of the exact ones, up to n = 100.
///
/// Where noise was taken out, the one more is what is left of the longest, whatever is left of the detour in its place.
struct OneMore {
    start: u64,
    longest: Nanos,
    /// The index of its CPU.
    at: usize,
    /// The probability in 2^64 parts.
    probability: u64,
    draws: Draws,
}

/// Whether there is one more of the longest: without a tail, or with a heavy one.
fn has_one_more(tail: Option<&Tail>) -> bool {
    tail.is_none_or(|tail| tail.is_heavy())
}

/// The duration of the longest detour, the index of its CPU, and its start.
fn longest(all: &[Vec<(u64, Nanos)>]) -> Option<(Nanos, usize, u64)> {
    let of_cpu = |(at, noise): (usize, &Vec<(u64, Nanos)>)| {
        noise.iter().map(move |&(start, length)| (length, at, start)).max()
    };
    all.iter().enumerate().filter_map(of_cpu).max()
}

impl OneMore {
    fn from_noise(all: &[Vec<(u64, Nanos)>], draws: &Draws) -> Option<Self> {
        let (longest, at, start) = longest(all)?;
        let probability = u64::MAX / all[at].len() as u64;
        Some(Self { start, longest, at, probability, draws: Draws::new(draws.at(u64::MAX - 1), &[]) })
    }

    /// Whether the one more takes the place of this detour.
    fn chooses(&self, detour: u64) -> bool {
        self.draws.at(detour) < self.probability
    }

    /// What is left of the longest in the noise of its CPU.
    fn left(&self, noise: &[Left]) -> Nanos {
        let from = noise.partition_point(|detour| detour.start < self.start);
        let within = |detour: &&Left| detour.start - self.start < self.longest.as_nanos();
        let parts = noise[from..].iter().take_while(within).map(|detour| detour.duration.as_nanos());
        Nanos::from_nanos(parts.fold(0, u64::saturating_add)).min(self.longest)
    }
}

/// Number of places from which that of a block is chosen.
const CANDIDATES: u64 = 16;

/// The time from the beginning of the last detour to this moment; past the start the trace wraps around to its end.
fn since(noise: &[(u64, Nanos)], now: u64, whole: u64) -> u64 {
    let before = noise.partition_point(|detour| detour.0 < now);
    match (before.checked_sub(1).and_then(|last| noise.get(last)), noise.last()) {
        (Some((start, _)), _) => now - start,
        (None, Some((start, _))) => now + whole - start,
        (None, None) => 0,
    }
}

/// The detour that has not ended at this moment.
fn holding(noise: &[(u64, Nanos)], now: u64) -> Option<(u64, Nanos)> {
    let before = noise.partition_point(|detour| detour.0 <= now).checked_sub(1)?;
    let &(start, duration) = noise.get(before)?;
    (now - start < duration.as_nanos()).then_some((start, duration))
}

/// Whether any detour starts in this range.
fn starts_within(noise: &[Left], range: std::ops::Range<u64>) -> bool {
    let from = noise.partition_point(|detour| detour.start < range.start);
    noise.get(from).is_some_and(|detour| detour.start < range.end)
}

/// Adds the recorded detours of which nothing is left, without a duration.
fn add_gone(noise: &mut Vec<(u64, Nanos)>, recorded: &[(u64, Nanos)]) {
    let mut from = 0;
    let is_gone = |&&(start, length): &&(u64, Nanos)| {
        // Recorded detours ascend.
        from += noise[from..].iter().take_while(|left| left.0 < start).count();
        noise.get(from).is_none_or(|left| left.0 >= start.saturating_add(length.as_nanos()))
    };
    let gone: Vec<u64> = recorded.iter().filter(is_gone).map(|detour| detour.0).collect();
    noise.extend(gone.into_iter().map(|start| (start, Nanos::ZERO)));
    noise.sort_by_key(|detour| detour.0);
}

/// `duration` × `new` / `old`: what is left of a detour after noise was taken out of it grows as the whole does.
fn scaled(duration: Nanos, new: Nanos, old: Nanos) -> Nanos {
    let of_old =
        u128::from(duration.as_nanos()) * u128::from(new.as_nanos()) / u128::from(old.as_nanos().max(1));
    Nanos::from_nanos(u64::try_from(of_old).unwrap_or(u64::MAX))
}

/// Copies the detours that begin in the `length` nanoseconds after `from`, modulo `whole`, to `place`.
fn copy(
    noise: &[Left],
    (from, length, whole): (u64, u64, u64),
    place: u64,
    drawn: impl Fn(&Left) -> Nanos,
    detours: &mut Vec<Detour>,
) {
    let below = |start| noise.partition_point(|detour| detour.start < start);
    let to_end = below(from)..below(from + length);
    let round = 0..below((from + length).saturating_sub(whole));
    for left in noise[to_end].iter().chain(&noise[round]) {
        let start = left.start;
        let way = if start >= from { start - from } else { start + whole - from };
        let free = detours.last().map_or(Nanos::ZERO, Detour::end);
        let start = Nanos::from_nanos(place + way).max(free);
        detours.push(Detour { start, duration: drawn(left), own: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> NodeNoise {
        let ns = Nanos::from_nanos;
        let trace = |cpu: u32| Trace {
            cpu: Cpu(cpu),
            span: Span { start: ns(500), end: ns(100_500) },
            detours: (0..1_000)
                .map(|i| Detour { start: ns(500 + i * 100), duration: ns(1 + i % 7), own: i == 3 })
                .collect(),
        };
        NodeNoise {
            name: "n".to_owned(),
            origin: None,
            traces: vec![trace(0), trace(1), trace(2)],
            limits: Vec::new(),
        }
    }

    fn left(noise: &[(u64, Nanos)]) -> Vec<Left> {
        noise.iter().map(|&(start, duration)| Left { start, duration, whole: None }).collect()
    }

    #[test]
    fn blocks_keep_span_rhythm_and_what_cpus_share() {
        let node = node();
        let resampler = Resampler::new(&node, &node, Nanos::from_nanos(50)).unwrap();
        assert_eq!(resampler.blocks.length, 1_000);
        let traces = resampler.draw(&Draws::new(1, &[]));
        // The last of the three has the one more.
        assert_eq!(traces[0].detours, traces[1].detours);
        assert_eq!(traces[0].span.length(), Nanos::from_nanos(100_000));
        assert!((980..=1_020).contains(&traces[0].detours.len()), "{}", traces[0].detours.len());
        assert!(traces[0].detours.windows(2).all(|pair| pair[0].end() <= pair[1].start));
    }

    /// Durations are redrawn from a tail, the same for a trace and for what is left of it.
    #[test]
    fn what_is_left_of_a_trace_is_resampled_as_the_trace() {
        let ns = Nanos::from_nanos;
        let draws = Draws::new(5, &[]);
        let exponential = |at: u64| -(1.0 - draws.unit(at)).ln() * 40_000.0;
        let detour = |at: u64| Detour {
            start: ns(1_000_000 * at + draws.below(at, 9) * 1_000),
            duration: ns(2 * exponential(at) as u64 + 2_000),
            own: false,
        };
        let whole: Vec<Detour> = (0..1_000).map(detour).collect();
        // The first half of each detour is gone.
        let second = |detour: &Detour| Detour {
            start: ns(detour.start.as_nanos() + detour.duration.as_nanos() / 2),
            duration: ns(detour.duration.as_nanos() / 2),
            own: false,
        };
        let halves = whole.iter().map(second).collect();
        let of = |detours| {
            let trace = Trace { cpu: Cpu(0), span: Span { start: ns(0), end: ns(1_000_000_000) }, detours };
            NodeNoise { name: "n".to_owned(), origin: None, traces: vec![trace], limits: Vec::new() }
        };
        let (whole, half) = (of(whole), of(halves));
        let [of_whole, of_half] =
            [&whole, &half].map(|node| Resampler::new(node, &whole, ns(1_000_000)).unwrap());
        let longest = |resampler: &Resampler, seed| {
            let trace = &resampler.draw(&Draws::new(seed, &[]))[0];
            trace.detours.iter().map(|detour| detour.duration.as_nanos()).max().unwrap()
        };
        let recorded = whole.traces[0].detours.iter().map(|detour| detour.duration.as_nanos()).max().unwrap();
        let mut drawn = 0;
        for seed in 0..20 {
            let (all, left) = (longest(&of_whole, seed), longest(&of_half, seed));
            assert!(all.abs_diff(2 * left) <= 4 || all.abs_diff(2 * left) < all / 50, "{all} {left}");
            drawn += u32::from(all > recorded);
        }
        assert!((1..=19).contains(&drawn), "{drawn}");
    }

    #[test]
    fn short_traces_still_make_four_blocks() {
        let blocks = Blocks::from_node(&node(), Nanos::from_secs(1)).unwrap();
        assert_eq!(blocks.length, 25_000);
        assert!(blocks.too_short_for(Nanos::from_secs(1)));
        let resampler = Resampler::new(&node(), &node(), Nanos::from_secs(1)).unwrap();
        assert!(!resampler.draw(&Draws::new(1, &[]))[0].detours.is_empty());
    }

    /// A Poisson number with mean 1: none in 36.8 of 100 draws, 1 on average; on the CPU that has the longest.
    #[test]
    fn one_more_of_the_longest_is_drawn_on_average() {
        let ns = Nanos::from_nanos;
        let all = [vec![(0, ns(5)); 3], (0..100).map(|at| (100 * at, ns(at % 50))).collect(), Vec::new()];
        let drawn: Vec<usize> = (0..4_000)
            .map(|seed| {
                let more = OneMore::from_noise(&all, &Draws::new(seed, &[])).unwrap();
                assert_eq!((more.longest, more.at), (ns(49), 1));
                assert_eq!(more.left(&left(&all[1])), ns(49));
                (0..100).filter(|detour| more.chooses(*detour)).count()
            })
            .collect();
        let (none, sum) = (drawn.iter().filter(|count| **count == 0).count(), drawn.iter().sum::<usize>());
        assert!((1_340..1_600).contains(&none) && (3_750..4_250).contains(&sum), "{none} {sum}");
        assert!(OneMore::from_noise(&all[2..], &Draws::new(0, &[])).is_none());
    }

    /// A hundred short detours of one source and a long one of another, of which one source is taken out.
    #[test]
    fn the_one_more_is_of_the_source_of_the_longest() {
        let ns = Nanos::from_nanos;
        let of = |lengths: &[u64]| {
            let detour = |at: u64| Detour {
                start: ns(at * 1_000),
                duration: ns(if at == 50 { 500 } else { 10 }),
                own: false,
            };
            let detours =
                (0..101).map(detour).filter(|one| lengths.contains(&one.duration.as_nanos())).collect();
            let trace = Trace { cpu: Cpu(0), span: Span { start: ns(0), end: ns(101_000) }, detours };
            NodeNoise { name: "n".to_owned(), origin: None, traces: vec![trace], limits: Vec::new() }
        };
        let (all, long, short) = (of(&[10, 500]), of(&[500]), of(&[10]));
        let mut drawn = 0;
        for seed in 0..50 {
            let lengths = |node: &NodeNoise| -> Vec<u64> {
                let traces = Resampler::new(node, &all, ns(50)).unwrap().draw(&Draws::new(seed, &[]));
                traces[0].detours.iter().map(|detour| detour.duration.as_nanos()).collect()
            };
            let long_ones = |lengths: &[u64]| lengths.iter().filter(|length| **length == 500).count();
            let (of_all, of_long, of_short) = (lengths(&all), lengths(&long), lengths(&short));
            assert_eq!((long_ones(&of_all), of_long.len()), (of_long.len(), long_ones(&of_long)));
            assert!(of_short.iter().all(|length| *length == 10));
            drawn += of_long.len();
        }
        // One of the blocks, and one more.
        assert!((70..130).contains(&drawn), "{drawn}");
    }

    const NOISE: [(u64, Nanos); 2] = [(10, Nanos::from_nanos(5)), (30, Nanos::from_nanos(5))];

    #[test]
    fn the_last_detour_began_before_now_or_before_the_end() {
        assert_eq!([35, 31, 30, 11, 5, 10].map(|now| since(&NOISE, now, 100)), [5, 1, 20, 1, 75, 80]);
        assert_eq!(since(&[], 5, 100), 0);
    }

    #[test]
    fn a_detour_holds_from_its_start_to_before_its_end() {
        let of = |now| holding(&NOISE, now).map(|detour| detour.0);
        assert_eq!(
            [9, 10, 14, 15, 30, 34, 35].map(of),
            [None, Some(10), Some(10), None, Some(30), Some(30), None]
        );
    }

    #[test]
    fn what_is_left_grows_as_the_whole() {
        let ns = Nanos::from_nanos;
        assert_eq!(scaled(ns(6), ns(10), ns(4)), ns(15));
        assert_eq!(scaled(ns(6), ns(10), ns(0)), ns(60));
        assert_eq!(scaled(Nanos::MAX, Nanos::MAX, ns(1)), Nanos::MAX);
    }

    #[test]
    fn a_block_wraps_around_and_waits_for_the_one_before_it() {
        let ns = Nanos::from_nanos;
        let noise = [(0, ns(4)), (10, ns(5)), (20, ns(1)), (89, ns(1)), (90, ns(2)), (95, ns(30))];
        let copied = |part, before: Option<Detour>| {
            let mut detours: Vec<Detour> = before.into_iter().collect();
            copy(&left(&noise), part, 200, |left| left.duration, &mut detours);
            let plain = |detour: &Detour| (detour.start.as_nanos(), detour.duration.as_nanos());
            detours.iter().map(plain).collect::<Vec<_>>()
        };
        // From 90 to the end and on to 20, which is left out. The one at 95 lasts until 235.
        assert_eq!(copied((90, 30, 100), None), [(200, 2), (205, 30), (235, 4), (239, 5)]);
        assert_eq!(copied((90, 10, 100), None), [(200, 2), (205, 30)]);
        assert_eq!(copied((10, 10, 100), None), [(200, 5)]);
        let before = Detour { start: ns(150), duration: ns(57), own: false };
        assert_eq!(copied((10, 11, 100), Some(before)), [(150, 57), (207, 5), (212, 1)]);
    }

    #[test]
    fn a_block_is_a_hundredth_or_ten_quanta_or_a_quarter() {
        let ns = Nanos::from_nanos;
        let blocks = |quantum| Blocks::from_node(&node(), ns(quantum)).unwrap();
        assert_eq!(
            [1, 100, 101, 2_500, 2_501].map(|q| blocks(q).length),
            [1_000, 1_000, 1_010, 25_000, 25_000]
        );
        assert!(!blocks(2_500).too_short_for(ns(2_500)) && blocks(2_501).too_short_for(ns(2_501)));
    }
}
