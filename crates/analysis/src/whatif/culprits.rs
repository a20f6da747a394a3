//! The sources of noise that made a simulated program late: the detours on its critical path, divided by source.

use std::collections::BTreeMap;
use std::sync::Arc;

use quell_recording::Nanos;
use quell_recording::columns::{Columns, describe};
use quell_sim::loggops::{Culprits, Hit, Outcome};
use schemars::JsonSchema;
use serde::Serialize;

use super::attributed_noise::{AttributedNoise, AttributedTrace};
use crate::attribution::{AttributedSegment, UNATTRIBUTED};

/// Maximum number of hits that are listed: the worst.
const WORST: usize = 10;
/// Maximum number of iterations that are listed.
const MOST_ITERATIONS: usize = 4_096;

/// The source of each part of a clock's detours.
#[derive(Clone, Debug)]
pub struct ClockSources {
    period: u64,
    /// The names of the sources, by number.
    names: Arc<[Arc<str>]>,
    /// Start, end and number of the source of each part; in order.
    parts: Vec<(u64, u64, u32)>,
}

impl ClockSources {
    /// The CPUs of a node, in the order of its traces; their clocks run from `start` to `end`. Sources of one family count as one.
    pub fn from_node(node: &AttributedNoise, start: u64, end: u64) -> Vec<Self> {
        let names: Arc<[Arc<str>]> = node.kinds().iter().map(|kind| kind.family.clone()).collect();
        let place = |at: Nanos| at.as_nanos().clamp(start, end) - start;
        let part = |segment: &AttributedSegment| (place(segment.start), place(segment.end()), segment.kind);
        let per_trace = |trace: &AttributedTrace| {
            let mut parts: Vec<_> = trace.segments.iter().map(part).filter(|one| one.0 < one.1).collect();
            parts.sort_by_key(|part| part.0);
            Self { period: end - start, names: names.clone(), parts }
        };
        node.traces().iter().map(per_trace).collect()
    }

    /// Time that each source took of the `length` nanoseconds from `at` on.
    pub(crate) fn taken(&self, at: u64, length: u64) -> BTreeMap<&str, f64> {
        let mut taken = BTreeMap::new();
        if self.period == 0 {
            return taken;
        }
        let mut add = |source: u32, ns: f64| {
            if ns > 0.0 {
                *taken.entry(&*self.names[source as usize]).or_insert(0.0) += ns;
            }
        };
        // First whole repetitions of the trace, then the rest, which may wrap around to its start.
        let turns = length / self.period;
        if turns > 0 {
            self.parts.iter().for_each(|(from, to, source)| add(*source, turns as f64 * (to - from) as f64));
        }
        let (from, rest) = (at % self.period, length % self.period);
        let end = from + rest;
        for (from, to) in [(from, end.min(self.period)), (0, end.saturating_sub(self.period))] {
            let first = self.parts.partition_point(|part| part.1 <= from);
            for (start, stop, source) in self.parts[first..].iter().take_while(|part| part.0 < to) {
                add(*source, (*stop).min(to).saturating_sub((*start).max(from)) as f64);
            }
        }
        taken
    }
}

/// The noise that made a program late. `end = silent path + delay`, and `delay` is the sum over the sources.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CulpritFacts {
    /// The noise on the critical path, in nanoseconds: the delay of the program along that path.
    pub delay_ns: u64,
    /// The critical path without its noise, in nanoseconds.
    pub silent_path_ns: u64,
    /// The noise that struck all ranks, in nanoseconds.
    pub struck_ns: u64,
    /// The part of it that is on no critical path, in nanoseconds: it struck while the rank would have waited anyway.
    pub absorbed_ns: u64,
    /// Number of times that noise struck on the critical path.
    pub hits: u64,
    /// The sources that caused the delay, the largest first.
    pub sources: Vec<SourceDelay>,
    /// The longest delays on the critical path, up to ten, the longest first.
    pub worst: Vec<WorstHit>,
    /// The delay of each iteration of the program, in nanoseconds, in order; null if there are more than 4,096.
    pub iterations_ns: Option<Vec<u64>>,
    /// The noise of each rank on the critical path, in nanoseconds, rank 0 first; null if `finish_times_ns` is null.
    pub propagated_ns: Option<Vec<u64>>,
}

/// The effect of one source on the program.
#[derive(Clone, Debug, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct SourceDelay {
    /// The source, as in `show --by source`.
    #[column(name)]
    pub source: String,
    /// Its share of the delay, in nanoseconds.
    #[column]
    pub delay_ns: u64,
    /// Its share in percent of the delay.
    #[column(title = "share", percent, precision = 1, suffix = " %")]
    pub percent: f64,
}

/// One delay on the critical path.
#[derive(Clone, Debug, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct WorstHit {
    /// The source that took most of it.
    #[column(title = "main source", name)]
    pub source: String,
    /// The rank that it struck.
    #[column(id)]
    pub rank: u32,
    /// The iteration of the program, from 0.
    #[column(id)]
    pub iteration: u32,
    /// When the work that it struck began, in nanoseconds.
    #[column(title = "start")]
    pub start_ns: u64,
    /// The delay, in nanoseconds.
    #[column]
    pub delay_ns: u64,
}

impl CulpritFacts {
    /// Divides the delay of a run by source. `clocks` are those that the hits refer to, by index.
    pub fn new(culprits: &Culprits, outcome: &Outcome, clocks: &[ClockSources], per_rank: bool) -> Self {
        let mut by_source: BTreeMap<String, f64> = BTreeMap::new();
        let mut worst = Vec::new();
        let last = culprits.hits.iter().map(|hit| hit.iteration as usize + 1).max().unwrap_or(0);
        let mut iterations = vec![0u64; if last <= MOST_ITERATIONS { last } else { 0 }];
        for hit in &culprits.hits {
            let taken = clocks
                .get(hit.clock as usize)
                .map(|clock| clock.taken(hit.at, hit.end - hit.start))
                .unwrap_or_default();
            let all: f64 = taken.values().sum();
            let mut main = (UNATTRIBUTED, 0.0);
            for (&source, &ns) in &taken {
                *by_source.entry(source.to_owned()).or_default() += ns / all * hit.delay as f64;
                if ns > main.1 {
                    main = (source, ns);
                }
            }
            if all <= 0.0 {
                *by_source.entry(UNATTRIBUTED.to_owned()).or_default() += hit.delay as f64;
            }
            if let Some(iteration) = iterations.get_mut(hit.iteration as usize) {
                *iteration += hit.delay;
            }
            let Hit { rank, iteration, start, delay, .. } = *hit;
            worst.push(WorstHit {
                rank,
                iteration,
                start_ns: start,
                delay_ns: delay,
                source: main.0.to_owned(),
            });
        }
        worst.sort_by(|a, b| b.delay_ns.cmp(&a.delay_ns).then(a.start_ns.cmp(&b.start_ns)));
        worst.truncate(WORST);
        let (delay_ns, struck_ns) = (culprits.delay(), outcome.noise.iter().sum::<u64>());
        Self {
            delay_ns,
            silent_path_ns: outcome.last().1.saturating_sub(delay_ns),
            struck_ns,
            absorbed_ns: struck_ns.saturating_sub(delay_ns),
            hits: culprits.hits.len() as u64,
            sources: split(by_source, delay_ns),
            worst,
            iterations_ns: (last <= MOST_ITERATIONS).then_some(iterations),
            propagated_ns: per_rank.then(|| culprits.propagated.clone()),
        }
    }
}

/// Whole nanoseconds for each source that add up to `delay`: the largest gets the remainder of rounding.
fn split(by_source: BTreeMap<String, f64>, delay: u64) -> Vec<SourceDelay> {
    let mut sources: Vec<SourceDelay> = by_source
        .into_iter()
        .map(|(source, ns)| SourceDelay { source, delay_ns: ns.floor() as u64, percent: 0.0 })
        .collect();
    sources.sort_by(|a, b| b.delay_ns.cmp(&a.delay_ns).then(a.source.cmp(&b.source)));
    let sum: u64 = sources.iter().map(|source| source.delay_ns).sum();
    if let Some(first) = sources.first_mut() {
        first.delay_ns = (first.delay_ns + delay).saturating_sub(sum);
    }
    for source in &mut sources {
        source.percent = 100.0 * source.delay_ns as f64 / delay.max(1) as f64;
    }
    sources
}

#[cfg(test)]
mod tests {
    use quell_recording::Source;

    use super::*;
    use crate::attribution::fixture::{detour, interval, recording, task, tick, trace};
    use crate::predict::NodeNoise;

    fn hit(at: u64, length: u64, delay: u64) -> Hit {
        Hit { rank: 3, iteration: 1, start: 500, end: 500 + length, delay, clock: 0, at }
    }

    fn outcome(end: u64) -> Outcome {
        Outcome { events: 1, finish: vec![end, 0, 0, 0], noise: vec![0, 0, 700, 300], stuck: None }
    }

    #[test]
    fn the_delay_is_shared_out_among_the_sources_of_its_detours() {
        let trace = trace(10_000, vec![detour(1_000, 100), detour(4_000, 300)]);
        let intervals =
            vec![tick(1_000, 100), task("daemon", 7, 4_000, 200), interval(Source::Nmi, 4_200, 50)];
        let node = AttributedNoise::from_recording(&recording(vec![trace], vec![intervals]), Vec::new());
        let clocks = ClockSources::from_node(&node, 0, 10_000);
        let culprits =
            Culprits { hits: vec![hit(900, 400, 100), hit(3_900, 600, 300)], propagated: vec![0, 0, 0, 400] };
        let facts = CulpritFacts::new(&culprits, &outcome(2_000), &clocks, true);
        let of = |source: &str| {
            facts.sources.iter().find(|one| one.source == source).map_or(0, |one| one.delay_ns)
        };
        assert_eq!(
            (of("tick"), of("task:daemon"), of("nmi"), of("unattributed")),
            (100, 200, 50, 50),
            "{facts:?}"
        );
        assert_eq!(facts.sources.iter().map(|source| source.delay_ns).sum::<u64>(), facts.delay_ns);
        assert_eq!((facts.delay_ns, facts.silent_path_ns, facts.absorbed_ns), (400, 1_600, 600));
        assert_eq!(facts.worst[0].source, "task:daemon");
        assert_eq!(facts.iterations_ns, Some(vec![0, 400]));
    }

    #[test]
    fn a_hit_over_the_end_of_the_trace_meets_its_beginning() {
        let ends = trace(1_000, vec![detour(10, 20), detour(980, 20)]);
        let noise = NodeNoise { name: String::new(), origin: None, traces: vec![ends], limits: Vec::new() };
        let clocks = ClockSources::from_node(&AttributedNoise::unknown(&noise), 0, 1_000);
        let taken: f64 = clocks[0].taken(990, 60).values().sum();
        assert!((taken - 30.0).abs() < 1e-9, "{taken}");
    }
}
