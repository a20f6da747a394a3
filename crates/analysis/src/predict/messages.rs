//! Phases that end with messages, on the LogGOPS engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quell_recording::Trace;
use quell_sim::loggops::{
    self, NamedNetwork, Noise, Place, Program as _, RankClocks, Rules, RunError, Speed,
};
use quell_sim::pattern::{self, AnyPattern, Params, Steps};
use quell_sim::{Draws, Node, ProgressClock, SyncMode};
use rayon::prelude::*;

use crate::Progress;
use crate::stats::mean;

use super::assemble::{self, Resampled};
use super::interval;
use super::redraw::Redraw;
use super::support::Support;
use super::{JobNoise, NodeNoise, Options, Point, PredictError, Prediction, Sample, stream};

/// The messages that end each phase.
///
/// # Model
/// Every rank works for a quantum, then takes its part in the pattern, then works again: no rank waits for anything but its own
/// messages. So in a pattern in which no rank hears from all others (a broadcast, a halo exchange), fast ranks run
/// ahead. Work and the CPU's part of messages go through the progress clock of the rank's CPU
/// (`docs/reference/loggops.md`, the physical rules, with the progress that is asked for). A run of k phases takes as long as its last rank; the mean phase
/// is that time over k, with noise and without, and the slowdown 100 × (with − without) / without.
///
/// With [`SyncMode::Phase`] each phase is a run of its own, with all nodes at one place, a new one in each.
///
/// # Confidence
/// Phases are split evenly over up to twenty independent runs, each with its own starts; up to forty more use
/// resampled traces, a new one each (see [`predict`](super::predict)). If the means of runs of k phases have the variance v, chance alone
/// gives those of k' phases v·k/k', which is taken out of the variance of the resampled runs.
///
/// A scale may cost some three seconds of CPU time; three quarters of them are for resampled runs. That is sixty million events, or
/// billions where the messages are played in rounds, where the noise costs more than they. Larger scales run fewer phases, then fewer runs. An interval
/// needs eight runs of either kind, for which a scale may cost more; without them there is none. At least one phase always runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    /// The pattern's name in `quell_sim::pattern`.
    pub op: String,
    /// Bytes of a message, depending on the pattern.
    pub bytes: u64,
    /// The cost of a message.
    pub network: Box<NamedNetwork>,
    /// When a message is handled: the physical rules with either kind of progress.
    pub rules: Rules,
}

/// Maximum cost of a scale, in picoseconds of CPU time.
const EFFORT_PS: u64 = 3_000_000_000_000;
/// The same for a scale with no more runs than an interval needs.
const EFFORT_OF_INTERVAL_PS: u64 = 5 * EFFORT_PS;
/// Maximum cost of one phase, in picoseconds.
const EFFORT_OF_ONE_PS: u64 = 25_000_000_000_000;
/// Maximum number of runs on the recorded traces, if there are that many phases, …
const MOST_RUNS: u64 = 20;
/// … of runs on resampled ones, …
const MOST_RESAMPLED: u64 = 40;
/// … and minimum number of runs for an interval.
const FEWEST_RUNS: u64 = interval::FEWEST as u64;
/// Maximum number of resampled traces in memory at once.
const MOST_TRACES: usize = 8;
/// Where messages are played in rounds: approximate cost of a rank's noise in a phase, without and for each detour, in picoseconds.
const NOISE_PS: u64 = 50_000;
const DETOUR_PS: u64 = 15_000;

impl Messages {
    /// How fast a program with these messages is played.
    fn speed(&self, program: &Steps<AnyPattern>) -> Result<Speed, PredictError> {
        let run = loggops::Run {
            net: self.network.network,
            ranges: &self.network.ranges,
            levels: &self.network.levels,
            rules: self.rules,
            noise: &Noise::None,
            threads: 1,
            progress: loggops::NO_PROGRESS,
        };
        Ok(loggops::speed(program, &run)?)
    }
}

/// The runs of one scale.
struct Scale {
    ranks: u32,
    /// Number of events of a phase.
    events: u64,
    /// Approximate CPU time of a phase, in picoseconds.
    phase_ps: u64,
    runs: Runs,
    /// The runs on resampled traces.
    resampled: Option<Runs>,
}

/// Independent runs.
struct Runs {
    count: u64,
    /// Number of phases of each.
    phases: u64,
    /// The program of a run: all its phases, or one if each is a run of its own.
    steps: Steps<AnyPattern>,
}

impl Runs {
    /// Splits `phases` over up to `most` runs, each of at most the requested number of phases.
    fn new(phases: u64, most: u64, options: &Options, params: &Params) -> Result<Self, PredictError> {
        let count = phases.clamp(1, most);
        let phases = (phases / count).clamp(1, options.phases);
        let iterations = if options.sync == SyncMode::Phase { 1 } else { phases as u32 };
        let steps = pattern::by_name("bsp", &Params { iterations, ..params.clone() })?;
        Ok(Self { count, phases, steps })
    }

    /// Number of phases of all runs.
    fn all(&self) -> u64 {
        self.count * self.phases
    }
}

/// Predicts as [`predict`](super::predict) does.
pub(super) fn predict(
    noise: JobNoise<'_>,
    options: &Options,
    messages: &Messages,
    progress: Progress<'_>,
) -> Result<(Prediction, Vec<Sample>), PredictError> {
    let nodes = noise.nodes;
    if options.sync.drift_ppm() != 0.0 {
        return Err(PredictError::Drift);
    }
    let rank_ps = noise_ps(noise.recorded, options);
    let scales = options.ranks.iter().map(|&ranks| scale(options, messages, ranks, rank_ps));
    let scales = scales.collect::<Result<Vec<_>, _>>()?;
    let all = scales.iter().map(Scale::all_events).fold(0, u64::saturating_add);
    let done = AtomicU64::new(0);
    let tick = |more: u64| progress((done.fetch_add(more, Ordering::Relaxed) + more).min(all), all);
    let engine = Engine { options, messages, tick: &tick };

    let clocks = Clocks::new(&super::clocks(nodes)?);
    let silent = scales.par_iter().map(|scale| engine.silent(scale)).collect::<Result<Vec<_>, _>>()?;
    let each = |scale: &Scale| {
        let runs = (0..scale.runs.count).into_par_iter();
        runs.map(|number| engine.run(scale, &scale.runs, &clocks, number)).collect()
    };
    let noisy = scales.par_iter().map(each).collect::<Result<Vec<Vec<f64>>, PredictError>>()?;
    drop(clocks);
    let (resampled, tally) = resample(noise, &scales, &engine)?;
    let support = Support::from_nodes(nodes, options.quantum, options.sync);
    let samples = scales.iter().zip(silent).zip(noisy.into_iter().zip(resampled));
    let samples: Vec<Sample> = samples
        .map(|((scale, silent_ns), (recorded_ns, resampled_ns))| Sample {
            silent_ns,
            recorded_ns,
            resampled_ns,
            longer: scale.longer(),
        })
        .collect();
    let points = scales.iter().zip(&samples).map(|(scale, sample)| point(scale, sample, &support)).collect();
    Ok((assemble::assemble(nodes, options, points, tally), samples))
}

/// Number of runs of a scale whose critical path is examined.
const WATCHED_RUNS: u64 = 4;

/// The noise on the critical paths of some runs of each scale, which begin as those that [`predict`] plays.
pub(crate) fn culprits_of_messages(
    nodes: &[NodeNoise],
    options: &Options,
) -> Result<Vec<Vec<loggops::Hit>>, PredictError> {
    let Some(messages) = &options.messages else { return Ok(Vec::new()) };
    let clocks = Clocks::new(&super::clocks(nodes)?);
    let engine = Engine { options, messages, tick: loggops::NO_PROGRESS };
    let rank_ps = noise_ps(nodes, options);
    let of_scale = |&ranks: &u64| {
        let scale = scale(options, messages, ranks, rank_ps)?;
        let runs = (0..scale.runs.count.min(WATCHED_RUNS)).into_par_iter();
        let hits = runs.map(|number| engine.culprits(&scale, &clocks, number));
        Ok(hits.collect::<Result<Vec<_>, PredictError>>()?.concat())
    };
    options.ranks.par_iter().map(of_scale).collect()
}

/// Approximate cost of a rank's noise in a phase played in rounds, in picoseconds: it passes all detours until the slowest rank is done, which
/// has the longest detour at many ranks.
fn noise_ps(nodes: &[NodeNoise], options: &Options) -> u64 {
    let traces = || nodes.iter().flat_map(|node| &node.traces);
    let watched: u64 = traces().map(|trace| trace.span.length().as_nanos()).fold(0, u64::saturating_add);
    let detours: u64 = nodes.iter().map(NodeNoise::detours).sum();
    let longest = traces().flat_map(Trace::noise).map(|detour| detour.duration.as_nanos()).max().unwrap_or(0);
    let phase = options.quantum.as_nanos().saturating_add(longest);
    let passed = detours as f64 * phase as f64 / watched.max(1) as f64;
    // The cast saturates.
    NOISE_PS + (DETOUR_PS as f64 * passed) as u64
}

/// The part of the request that a scale can afford; `rank_ps` is [`noise_ps`].
fn scale(options: &Options, messages: &Messages, ranks: u64, rank_ps: u64) -> Result<Scale, PredictError> {
    let params = Params {
        ranks: ranks as u32,
        bytes: messages.bytes,
        work_ns: options.quantum.as_nanos(),
        inner: Some(messages.op.clone()),
        ..Params::default()
    };
    let one = pattern::by_name("bsp", &params)?;
    let events = one.totals().map_or(u64::MAX, |(operations, sends)| operations.saturating_add(sends)).max(1);
    let speed = match messages.speed(&one)? {
        // A run of one phase is played while its order is found, which takes about as long as event by event.
        Speed::Listed if options.sync == SyncMode::Phase => Speed::Events,
        speed => speed,
    };
    let event_ps = speed.event_ps();
    if events.saturating_mul(event_ps) > EFFORT_OF_ONE_PS {
        let (op, most) = (messages.op.clone(), EFFORT_OF_ONE_PS / event_ps);
        return Err(PredictError::TooLarge { op, ranks, events, most });
    }
    let of_noise = if speed == Speed::Passes { ranks.saturating_mul(rank_ps) } else { 0 };
    let phase_ps = events.saturating_mul(event_ps).saturating_add(of_noise);
    let divisor = options.effort_divisor.max(1);
    let affordable = EFFORT_PS / divisor / phase_ps;
    let has_interval = options.replicates > 0
        && options.phases >= FEWEST_RUNS
        && EFFORT_OF_INTERVAL_PS / divisor / phase_ps >= 2 * FEWEST_RUNS;
    let least = if has_interval { FEWEST_RUNS } else { 1 };
    let (of_runs, of_resampled) = ((affordable / 4).max(least), (affordable / 4 * 3).max(least));
    let runs = Runs::new(of_runs.clamp(1, options.phases), MOST_RUNS, options, &params)?;
    let resamples = options.replicates > 0 && runs.count >= FEWEST_RUNS;
    let most = options.replicates.min(MOST_RESAMPLED);
    let resampled = resamples.then(|| Runs::new(of_resampled, most, options, &params)).transpose()?;
    Ok(Scale { ranks: ranks as u32, events, phase_ps, runs, resampled })
}

impl Scale {
    /// Number of events of all its runs.
    fn all_events(&self) -> u64 {
        self.all_phases().saturating_mul(self.events)
    }

    fn all_phases(&self) -> u64 {
        self.runs.all() + self.resampled.as_ref().map_or(0, Runs::all) + self.silent_phases()
    }

    /// Whether it has a run on the resampled trace with this number.
    fn has_replicate(&self, number: u64) -> bool {
        self.resampled.as_ref().is_some_and(|runs| number < runs.count)
    }

    /// Number of phases of the run without noise.
    fn silent_phases(&self) -> u64 {
        u64::from(self.runs.steps.iterations())
    }

    /// The ratio of the length of resampled runs to that of the others.
    fn longer(&self) -> f64 {
        self.resampled.as_ref().map_or(1.0, |runs| runs.phases as f64 / self.runs.phases as f64)
    }
}

/// Approximate CPU time of all scales, in nanoseconds.
pub(super) fn cost_ns(
    nodes: &[NodeNoise],
    options: &Options,
    messages: &Messages,
) -> Result<u64, PredictError> {
    let rank_ps = noise_ps(nodes, options);
    let mut ns = 0u64;
    for &ranks in &options.ranks {
        let scale = scale(options, messages, ranks, rank_ps)?;
        ns = ns.saturating_add(scale.all_phases().saturating_mul(scale.phase_ps) / 1000);
    }
    Ok(ns)
}

/// The progress clocks of all nodes, shared by the runs.
struct Clocks {
    all: Vec<Arc<ProgressClock>>,
    /// For each node, the range of its clocks and the length of its trace.
    nodes: Vec<(std::ops::Range<u32>, u64)>,
}

impl Clocks {
    fn new(nodes: &[Node]) -> Self {
        let mut this = Self { all: Vec::new(), nodes: Vec::new() };
        for node in nodes {
            let first = this.all.len() as u32;
            this.all.extend(node.clocks().iter().cloned().map(Arc::new));
            let period = node.clocks().first().map_or(1, ProgressClock::period);
            this.nodes.push((first..this.all.len() as u32, period));
        }
        this
    }

    /// Places ranks node after node, one per CPU; nodes take the given nodes' noise round-robin.
    fn place(&self, ranks: u32, options: &Options, seed: u64) -> Result<RankClocks, PredictError> {
        let (offsets, skews) = (Draws::new(seed, &[stream::PLACES]), Draws::new(seed, &[stream::SKEWS]));
        let skew = options.sync.skew().as_nanos();
        let places = (0u64..).zip(self.nodes.iter().cycle()).flat_map(|(number, (clocks, period))| {
            let late = skews.below(number, skew.saturating_add(1)) % period;
            let offset = match options.sync {
                SyncMode::None => offsets.below(number, *period),
                SyncMode::Start { .. } | SyncMode::Phase => {
                    (offsets.below(0, *period) + period - late) % period
                }
            };
            clocks.clone().map(move |clock| Place { clock, offset })
        });
        let places = places.take(ranks as usize).collect();
        Ok(RankClocks::new(self.all.clone(), places).map_err(loggops::RunError::from)?)
    }
}

/// Plays runs and reports their progress.
struct Engine<'a> {
    options: &'a Options,
    messages: &'a Messages,
    tick: loggops::Progress<'a>,
}

impl Engine<'_> {
    /// The mean phase without noise, in nanoseconds, from one run, because all are equal.
    fn silent(&self, scale: &Scale) -> Result<f64, PredictError> {
        Ok(self.play(&scale.runs, &Noise::None)? as f64 / scale.silent_phases() as f64)
    }

    /// The mean phase of the run with this number, in nanoseconds.
    fn run(&self, scale: &Scale, runs: &Runs, clocks: &Clocks, number: u64) -> Result<f64, PredictError> {
        let seed = Draws::new(self.options.seed, &[stream::BATCHES]).at(number);
        let seeds = Draws::new(seed, &[stream::PHASES]);
        let mut total = 0.0;
        for start in 0..runs.phases / u64::from(runs.steps.iterations()) {
            let places = clocks.place(scale.ranks, self.options, seeds.at(start))?;
            total += self.play(runs, &Noise::Clocks(places))? as f64;
        }
        Ok(total / runs.phases as f64)
    }

    /// The noise on the critical path of the run with this number; if its phases are runs of their own, of the first.
    fn culprits(
        &self,
        scale: &Scale,
        clocks: &Clocks,
        number: u64,
    ) -> Result<Vec<loggops::Hit>, PredictError> {
        let seed = Draws::new(self.options.seed, &[stream::BATCHES]).at(number);
        let places = clocks.place(scale.ranks, self.options, Draws::new(seed, &[stream::PHASES]).at(0))?;
        let (noise, progress) = (Noise::Clocks(places), loggops::NO_PROGRESS);
        let (net, rules) = (&self.messages.network, self.messages.rules);
        let run = loggops::Run {
            net: net.network,
            ranges: &net.ranges,
            levels: &net.levels,
            rules,
            noise: &noise,
            threads: 1,
            progress,
        };
        Ok(loggops::run_for_culprits(&scale.runs.steps, &run)?.1.hits)
    }

    /// When the last rank is done, in nanoseconds.
    fn play(&self, runs: &Runs, noise: &Noise) -> Result<u64, PredictError> {
        let reported = AtomicU64::new(0);
        let tell = |done: u64| (self.tick)(done.saturating_sub(reported.fetch_max(done, Ordering::Relaxed)));
        // Many runs keep the cores busy without more threads.
        let threads = if runs.count < FEWEST_RUNS { rayon::current_num_threads() } else { 1 };
        let run = loggops::Run {
            net: self.messages.network.network,
            ranges: &self.messages.network.ranges,
            levels: &self.messages.network.levels,
            rules: self.messages.rules,
            noise,
            threads,
            progress: &tell,
        };
        let outcome = loggops::run(&runs.steps, &run)?;
        if tell(outcome.events).is_break() {
            return Err(RunError::Stopped.into());
        }
        Ok(outcome.last().1)
    }
}

/// The mean phase of each run on resampled traces.
type OfScale = Vec<Option<Vec<f64>>>;

/// The mean phases of each scale's runs on resampled traces, `None` if a trace left no useful time, and the number of traces.
fn resample(
    noise: JobNoise<'_>,
    scales: &[Scale],
    engine: &Engine<'_>,
) -> Result<(Vec<OfScale>, Resampled), PredictError> {
    let tried = scales.iter().filter_map(|scale| Some(scale.resampled.as_ref()?.count)).max().unwrap_or(0);
    let mut means = vec![Vec::new(); scales.len()];
    let mut done = 0;
    let redraw = Redraw::new(noise, engine.options.quantum)?;
    let numbers: Vec<u64> = (0..tried).collect();
    for some in numbers.chunks(rayon::current_num_threads().min(MOST_TRACES)) {
        let found = some.par_iter().map(|&number| replicate(&redraw, scales, engine, number));
        for (number, found) in some.iter().zip(found.collect::<Result<Vec<_>, _>>()?) {
            done += u64::from(found.is_some());
            let of_scales = means.iter_mut().zip(scales).enumerate();
            for (at, (means, _)) in of_scales.filter(|(_, (_, scale))| scale.has_replicate(*number)) {
                means.push(found.as_ref().and_then(|found| Some(vec![found[at]?])));
            }
        }
    }
    Ok((means, Resampled { done, tried }))
}

/// The mean phase of each scale's run on the resampled trace with this number, if it has one; `None` if the draw left no useful time at all.
fn replicate(
    redraw: &Redraw,
    scales: &[Scale],
    engine: &Engine<'_>,
    number: u64,
) -> Result<Option<Vec<Option<f64>>>, PredictError> {
    let Some((anew, _)) = redraw.draw(engine.options.seed, number) else { return Ok(None) };
    let clocks = Clocks::new(&anew);
    drop(anew);
    // The starts differ from those of the first runs.
    let run = |scale: &Scale| {
        let runs = scale.resampled.as_ref().filter(|_| scale.has_replicate(number));
        runs.map(|runs| engine.run(scale, runs, &clocks, MOST_RUNS + number)).transpose()
    };
    scales.par_iter().map(run).collect::<Result<Vec<_>, _>>().map(Some)
}

fn point(scale: &Scale, sample: &Sample, support: &Support) -> Point {
    let (silent, recorded) = (sample.silent_ns, &sample.recorded_ns);
    let mean_phase_ns = mean(recorded.iter().copied()).unwrap_or(0.0);
    let slowdown = |phase: f64| if silent > 0.0 { 100.0 * (phase - silent) / silent } else { 0.0 };
    Point {
        ranks: scale.ranks.into(),
        phases: scale.runs.all(),
        replicates: sample.resampled_ns.iter().flatten().count() as u64,
        base_phase_ns: silent.round() as u64,
        mean_phase_ns,
        slowdown_percent: slowdown(mean_phase_ns),
        ci95_percent: sample.slowdown_interval(),
        max_phase_ns: recorded.iter().copied().fold(0.0, f64::max).round() as u64,
        supported: support.holds(scale.ranks.into()),
    }
}

#[cfg(test)]
mod tests;
