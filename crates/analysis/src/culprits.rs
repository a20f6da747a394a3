//! Which sources of noise made a simulated program late: the detours on its critical path, split by who took them.

use std::collections::BTreeMap;

use quell_recording::{Recording, Trace};
use quell_sim::loggops::{Culprits, Hit, Outcome};
use schemars::JsonSchema;
use serde::Serialize;

use crate::attribution::blames;

/// So many of the worst hits are listed.
const WORST: usize = 10;
/// Up to so many iterations are listed.
const MOST_ITERATIONS: usize = 4_096;
/// The source of what nothing explains, or of noise whose sources nobody recorded.
const UNATTRIBUTED: &str = "unattributed";

/// What each source took of a detour, in nanoseconds.
type Shares = Vec<(String, u64)>;

/// The detours of one clock, by start, each with what its sources took.
#[derive(Clone, Debug, Default)]
pub struct ClockSources {
    period: u64,
    /// (start, end, shares).
    detours: Vec<(u64, u64, Shares)>,
}

impl ClockSources {
    /// A trace of which only the detours are known; the clock runs over `trace.span` cut to `start..end`.
    pub fn unknown(trace: &Trace, start: u64, end: u64) -> Self {
        let detours = trace.noise().map(|detour| {
            let (from, length) = (detour.start.as_nanos(), detour.duration.as_nanos());
            (from, from.saturating_add(length), vec![(UNATTRIBUTED.to_owned(), length.max(1))])
        });
        Self::placed(detours, start, end)
    }

    /// The CPUs of a recording, in the order of its traces, with the sources that its attribution names.
    pub fn of_recording(recording: &Recording, start: u64, end: u64) -> Vec<Self> {
        let sides = blames(recording);
        let of_trace = |trace: &Trace| {
            let Some((_, blames)) = sides.iter().find(|(cpu, _)| *cpu == trace.cpu) else {
                return Self::unknown(trace, start, end);
            };
            let intervals = recording.intervals.iter().find(|side| side.cpu == trace.cpu);
            let name = |interval: usize| {
                let interval = intervals.and_then(|side| side.intervals.get(interval));
                interval.map_or_else(|| UNATTRIBUTED.to_owned(), |interval| interval.source.to_string())
            };
            let detours = blames.iter().map(|blame| {
                let mut shares: Vec<_> =
                    blame.parts.iter().map(|part| (name(part.interval), part.ns)).collect();
                shares.push(("steal".to_owned(), blame.stolen_ns));
                shares.push((UNATTRIBUTED.to_owned(), blame.left_ns));
                shares.retain(|share| share.1 > 0);
                (blame.detour.start.as_nanos(), blame.detour.end().as_nanos(), shares)
            });
            Self::placed(detours, start, end)
        };
        recording.traces.iter().map(of_trace).collect()
    }

    fn placed(detours: impl Iterator<Item = (u64, u64, Shares)>, start: u64, end: u64) -> Self {
        let place = |at: u64| at.clamp(start, end) - start;
        let mut detours: Vec<_> =
            detours.map(|(from, to, shares)| (place(from), place(to), shares)).collect();
        detours.retain(|(from, to, _)| from < to);
        detours.sort_by_key(|detour| detour.0);
        Self { period: end - start, detours }
    }

    /// How much each source took of the time that a hit lasted, in nanoseconds, weighted by its share of each detour.
    fn taken(&self, hit: &Hit) -> BTreeMap<&str, f64> {
        let mut taken = BTreeMap::new();
        let length = hit.end - hit.start;
        let turns = (hit.at + length).checked_div(self.period).map_or(0, |turns| turns + 1);
        for turn in 0..turns.min(1_000) {
            let shift = turn * self.period;
            let first = self.detours.partition_point(|detour| detour.1 + shift <= hit.at);
            for (from, to, shares) in &self.detours[first..] {
                let (from, to) = ((from + shift).max(hit.at), (to + shift).min(hit.at + length));
                if from >= hit.at + length {
                    break;
                }
                let all: u64 = shares.iter().map(|share| share.1).sum();
                for (source, ns) in shares {
                    let part = to.saturating_sub(from) as f64 * *ns as f64 / all.max(1) as f64;
                    *taken.entry(source.as_str()).or_insert(0.0) += part;
                }
            }
        }
        taken
    }
}

/// What made a program late. `end = silent path + delay`, and `delay` is the sum over the sources.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CulpritFacts {
    /// The noise on the critical path, in nanoseconds: what the program would not have waited for on that path.
    pub delay_ns: u64,
    /// The critical path without its noise, in nanoseconds.
    pub silent_path_ns: u64,
    /// The noise that struck all ranks, in nanoseconds.
    pub struck_ns: u64,
    /// What of it is on no critical path, in nanoseconds: it struck while the rank would have waited anyway.
    pub absorbed_ns: u64,
    /// How often noise struck on the critical path.
    pub hits: u64,
    /// Who took it, the most first.
    pub sources: Vec<SourceDelay>,
    /// The longest delays on the critical path, up to ten, the longest first.
    pub worst: Vec<WorstHit>,
    /// The delay of each iteration of the program, in nanoseconds, the first first; null above 4,096 of them.
    pub iterations_ns: Option<Vec<u64>>,
    /// The noise of each rank that is on the critical path, in nanoseconds, rank 0 first; null where `finish_times_ns` is.
    pub propagated_ns: Option<Vec<u64>>,
}

/// What one source did to the program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SourceDelay {
    /// The source, as in `show --by source`.
    pub source: String,
    /// Its part of the delay, in nanoseconds.
    pub delay_ns: u64,
    /// The same in percent of the delay.
    pub percent: f64,
}

/// One delay on the critical path.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorstHit {
    /// The rank that it struck.
    pub rank: u32,
    /// The iteration of the program, from 0.
    pub iteration: u32,
    /// When the work that it struck began, in nanoseconds.
    pub start_ns: u64,
    /// How long it kept that up, in nanoseconds.
    pub delay_ns: u64,
    /// Who took the most of it.
    pub source: String,
}

impl CulpritFacts {
    /// Splits the delay of a run by source. `clocks` are those that the hits name, by number.
    pub fn new(culprits: &Culprits, outcome: &Outcome, clocks: &[ClockSources], per_rank: bool) -> Self {
        let mut by_source: BTreeMap<String, f64> = BTreeMap::new();
        let mut worst = Vec::new();
        let last = culprits.hits.iter().map(|hit| hit.iteration as usize + 1).max().unwrap_or(0);
        let mut iterations = vec![0u64; if last <= MOST_ITERATIONS { last } else { 0 }];
        for hit in &culprits.hits {
            let taken = clocks.get(hit.clock as usize).map(|clock| clock.taken(hit)).unwrap_or_default();
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

/// Whole nanoseconds for each source that add up to `delay`: the largest takes what rounding leaves.
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
        let clocks = ClockSources::of_recording(&recording(vec![trace], vec![intervals]), 0, 10_000);
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
        let clock = ClockSources::unknown(&ends, 0, 1_000);
        let taken: f64 = clock.taken(&hit(990, 60, 30)).values().sum();
        assert!((taken - 30.0).abs() < 1e-9, "{taken}");
    }
}
