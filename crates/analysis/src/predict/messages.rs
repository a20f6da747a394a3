//! Phases that end with messages, on the LogGOPS engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quell_sim::loggops::{
    self, NamedNetwork, Noise, Place, Program as _, RankClocks, Rules, RunError, Speed,
};
use quell_sim::pattern::{self, AnyPattern, Params, Steps};
use quell_sim::{Draws, Node, ProgressClock, SyncMode};
use rayon::prelude::*;

use crate::Progress;
use crate::stats::mean;

use super::assemble::{self, Resampled, Support};
use super::interval;
use super::resample::Blocks;
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
/// billions where the messages are played in rounds. Larger scales run fewer phases, then fewer runs, and below eight runs there is no interval. At least one phase always runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    /// The pattern's name in `quell_sim::pattern`.
    pub op: String,
    /// Bytes of a message, depending on the pattern.
    pub bytes: u64,
    /// The cost of a message.
    pub network: NamedNetwork,
    /// When a message is handled: the physical rules with either kind of progress.
    pub rules: Rules,
}

/// Maximum cost of a scale, in picoseconds of CPU time.
const EFFORT_PS: u64 = 3_000_000_000_000;
/// Maximum cost of one phase, in picoseconds.
const EFFORT_OF_ONE_PS: u64 = 25_000_000_000_000;
/// Maximum number of runs on the recorded traces, if there are that many phases, …
const MOST_RUNS: u64 = 20;
/// … of runs on resampled ones, …
const MOST_RESAMPLED: u64 = 40;
/// … and minimum number of runs for an interval.
const FEWEST_RUNS: u64 = interval::FEWEST as u64;

impl Messages {
    /// How fast a program with these messages is played.
    fn speed(&self, program: &Steps<AnyPattern>) -> Result<Speed, PredictError> {
        let run = loggops::Run {
            net: self.network.network,
            ranges: &self.network.ranges,
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
    /// Approximate CPU time of an event, in picoseconds.
    event_ps: u64,
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
    let scales = options.ranks.iter().map(|&ranks| scale(options, messages, ranks));
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
    let support = Support::from_nodes(nodes, options);
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
    let of_scale = |&ranks: &u64| {
        let scale = scale(options, messages, ranks)?;
        let runs = (0..scale.runs.count.min(WATCHED_RUNS)).into_par_iter();
        let hits = runs.map(|number| engine.culprits(&scale, &clocks, number));
        Ok(hits.collect::<Result<Vec<_>, PredictError>>()?.concat())
    };
    options.ranks.par_iter().map(of_scale).collect()
}

/// The part of the request that a scale can afford.
fn scale(options: &Options, messages: &Messages, ranks: u64) -> Result<Scale, PredictError> {
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
        // A run of one phase takes as long to list as to play event by event.
        Speed::Listed if options.sync == SyncMode::Phase => Speed::Events,
        speed => speed,
    };
    let event_ps = speed.event_ps();
    if events.saturating_mul(event_ps) > EFFORT_OF_ONE_PS {
        let (op, most) = (messages.op.clone(), EFFORT_OF_ONE_PS / event_ps);
        return Err(PredictError::TooLarge { op, ranks, events, most });
    }
    let affordable = EFFORT_PS / event_ps / options.effort_divisor.max(1) / events;
    let runs = Runs::new((affordable / 4).clamp(1, options.phases), MOST_RUNS, options, &params)?;
    let resamples = options.replicates > 0 && runs.count >= FEWEST_RUNS;
    let most = options.replicates.min(MOST_RESAMPLED);
    let resampled = resamples.then(|| Runs::new(affordable / 4 * 3, most, options, &params)).transpose()?;
    Ok(Scale { ranks: ranks as u32, events, event_ps, runs, resampled })
}

impl Scale {
    /// Number of events of all its runs.
    fn all_events(&self) -> u64 {
        let resampled = self.resampled.as_ref().map_or(0, Runs::all);
        (self.runs.all() + resampled + self.silent_phases()).saturating_mul(self.events)
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
pub(super) fn cost_ns(options: &Options, messages: &Messages) -> Result<u64, PredictError> {
    let mut ns = 0u64;
    for &ranks in &options.ranks {
        let scale = scale(options, messages, ranks)?;
        ns = ns.saturating_add(scale.all_events().saturating_mul(scale.event_ps) / 1000);
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
    let options = engine.options;
    let tried = scales.iter().filter_map(|scale| Some(scale.resampled.as_ref()?.count)).max().unwrap_or(0);
    let mut means = vec![Vec::new(); scales.len()];
    let mut done = 0;
    for number in 0..tried {
        let anew = noise.nodes.par_iter().enumerate().map(|(source, node)| {
            let draws = Draws::new(options.seed, &[stream::BLOCKS, number, source as u64]);
            let recorded = noise.recorded.get(source).unwrap_or(node);
            Node::new(&Blocks::from_node(node, options.quantum)?.resample(node, recorded, &draws))
        });
        let here = |scale: &Scale| scale.resampled.as_ref().filter(|runs| number < runs.count).is_some();
        // A draw can leave no useful time at all.
        let Ok(anew) = anew.collect::<Result<Vec<_>, _>>() else {
            means
                .iter_mut()
                .zip(scales)
                .filter(|(_, scale)| here(scale))
                .for_each(|(means, _)| means.push(None));
            continue;
        };
        let clocks = Clocks::new(&anew);
        drop(anew);
        done += 1;
        // The starts differ from those of the first runs.
        let run = |scale: &Scale| {
            let runs = scale.resampled.as_ref().filter(|runs| number < runs.count);
            runs.map(|runs| engine.run(scale, runs, &clocks, MOST_RUNS + number)).transpose()
        };
        let found = scales.par_iter().map(run).collect::<Result<Vec<_>, _>>()?;
        means.iter_mut().zip(found).for_each(|(means, mean)| means.extend(mean.map(|mean| Some(vec![mean]))));
    }
    Ok((means, Resampled { done, tried }))
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
