//! Resamples a node's traces in blocks.

use quell_recording::{Detour, Nanos, Span, Trace};
use quell_sim::{BspError, Draws};

use super::NodeNoise;

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

    /// Draws as much trace again from blocks that begin anywhere (past the end the trace wraps around to its start), the
    /// same blocks for all CPUs.
    ///
    /// A detour stays whole and belongs to the block in which it begins: cutting it would weaken exactly the detours
    /// that matter at scale. A detour that it then overlaps comes after it.
    pub(crate) fn resample(self, node: &NodeNoise, draws: &Draws) -> Vec<Trace> {
        let whole = self.span.length().as_nanos();
        node.traces
            .iter()
            .map(|trace| {
                let noise = self.noise(trace);
                let mut detours = Vec::with_capacity(noise.len() + noise.len() / 8);
                let places = (0..whole).step_by(usize::try_from(self.length).unwrap_or(usize::MAX));
                for (block, place) in places.enumerate() {
                    let from = draws.below(block as u64, whole);
                    copy(&noise, (from, self.length.min(whole - place), whole), place, &mut detours);
                }
                Trace { cpu: trace.cpu, span: Span { start: Nanos::ZERO, end: self.span.length() }, detours }
            })
            .collect()
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

/// Copies the detours that begin in the `length` nanoseconds after `from`, modulo `whole`, to `place`.
fn copy(
    noise: &[(u64, Nanos)],
    (from, length, whole): (u64, u64, u64),
    place: u64,
    detours: &mut Vec<Detour>,
) {
    let below = |start| noise.partition_point(|detour| detour.0 < start);
    let to_end = below(from)..below(from + length);
    let round = 0..below((from + length).saturating_sub(whole));
    for &(start, duration) in noise[to_end].iter().chain(&noise[round]) {
        let way = if start >= from { start - from } else { start + whole - from };
        let free = detours.last().map_or(Nanos::ZERO, Detour::end);
        detours.push(Detour { start: Nanos::from_nanos(place + way).max(free), duration, own: false });
    }
}

#[cfg(test)]
mod tests {
    use quell_recording::Cpu;

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
        NodeNoise { name: "n".to_owned(), traces: vec![trace(0), trace(1)], limits: Vec::new() }
    }

    #[test]
    fn blocks_keep_span_rhythm_and_what_cpus_share() {
        let node = node();
        let blocks = Blocks::from_node(&node, Nanos::from_nanos(50)).unwrap();
        assert_eq!(blocks.length, 1_000);
        let traces = blocks.resample(&node, &Draws::new(1, &[]));
        assert_eq!(traces[0].detours, traces[1].detours);
        assert_eq!(traces[0].span.length(), Nanos::from_nanos(100_000));
        assert!((980..=1_020).contains(&traces[0].detours.len()), "{}", traces[0].detours.len());
        assert!(traces[0].detours.windows(2).all(|pair| pair[0].end() <= pair[1].start));
    }

    #[test]
    fn short_traces_still_make_four_blocks() {
        let blocks = Blocks::from_node(&node(), Nanos::from_secs(1)).unwrap();
        assert_eq!(blocks.length, 25_000);
        assert!(blocks.too_short_for(Nanos::from_secs(1)));
        assert!(!blocks.resample(&node(), &Draws::new(1, &[]))[0].detours.is_empty());
    }
}
