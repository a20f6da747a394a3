//! Runs a job under a node's noise, at one or several scales, and finds the noise on its critical path.

use std::collections::BTreeMap;

use quell_sim::goal::Schedule;
use quell_sim::loggops::{self, NamedNetwork, Noise, Program as _, RankClocks, Rules, Run, Start};
use quell_sim::{DelayedPhase, Draws, Node, Program, SyncMode};
use rayon::prelude::*;

use super::attributed_noise::AttributedNoise;
use super::culprits::ClockSources;
use crate::Warning;
use crate::predict::{
    self, JobNoise, NodeNoise, Options, PredictError, Redraw, Sample, Support, culprits_of_messages,
    few_recordings, stream,
};

/// A job whose cost is requested.
#[derive(Clone, Debug)]
pub enum Job<'a> {
    /// A bulk-synchronous program at each of its scales.
    Phases(Options),
    /// A schedule of messages, such as that of a traced application.
    Schedule(Application<'a>),
}

/// A schedule on a network.
#[derive(Clone, Copy, Debug)]
pub struct Application<'a> {
    /// Its operations.
    pub schedule: &'a Schedule,
    /// The cost of a message.
    pub net: &'a NamedNetwork,
    /// The seed of the nodes' places in their noise, and of the resampling.
    pub seed: u64,
    /// Number of runs with their own starts, and of runs on resampled traces.
    pub runs: u64,
}

/// The cost of noise at one scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// 100 × (with noise − without) / without.
    pub slowdown_percent: f64,
    /// 95 % confidence interval.
    pub ci95_percent: Option<[f64; 2]>,
    /// Whether the traces support this number of ranks.
    pub supported: bool,
}

/// A run of the job at all its scales.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub costs: Vec<Cost>,
    pub samples: Vec<Sample>,
    /// Limits of the results.
    pub warnings: Vec<Warning>,
}

/// Minimum length of the blocks of resampled traces, in lengths of a schedule: the same as the ten quanta for phases.
const BLOCK_QUANTA: u64 = 10;

impl Job<'_> {
    /// Its scales, in ranks.
    pub fn ranks(&self) -> Vec<u64> {
        match self {
            Self::Phases(options) => options.ranks.clone(),
            Self::Schedule(application) => vec![application.schedule.ranks().into()],
        }
    }

    /// Runs the job.
    pub(crate) fn run(&self, noise: JobNoise<'_>) -> Result<Ran, PredictError> {
        match self {
            Self::Phases(options) => {
                let (prediction, samples) = predict::sample(noise, options, crate::NO_PROGRESS)?;
                let cost = |point: &predict::Point| Cost {
                    slowdown_percent: point.slowdown_percent,
                    ci95_percent: point.ci95_percent,
                    supported: point.supported,
                };
                let costs = prediction.points.iter().map(cost).collect();
                Ok(Ran { costs, samples, warnings: prediction.warnings })
            }
            Self::Schedule(_) if noise.common.is_some() => Err(PredictError::Common),
            Self::Schedule(application) => application.run(noise),
        }
    }

    /// The noise on the critical path at each scale, by family of sources, in any unit.
    pub(crate) fn split(
        &self,
        nodes: &[AttributedNoise],
    ) -> Result<Vec<BTreeMap<String, f64>>, PredictError> {
        let noise: Vec<NodeNoise> = nodes.iter().map(AttributedNoise::noise).collect();
        let clocks = clocks(nodes, &noise)?;
        match self {
            Self::Phases(options) if options.messages.is_none() => {
                let kinds = noise.iter().map(predict::clock).collect::<Result<_, _>>()?;
                let program = Program::new(kinds, options.quantum)?;
                let of_job = |job| {
                    let (_, strikes) = program.watch(&job)?;
                    Ok(taken(&strikes, options.quantum.as_nanos(), &clocks))
                };
                options.jobs(&noise)?.into_par_iter().map(of_job).collect()
            }
            Self::Phases(options) => {
                let flat: Vec<&ClockSources> = clocks.iter().flatten().collect();
                let hits = culprits_of_messages(&noise, options)?;
                Ok(hits.iter().map(|hits| taken_by_hits(hits, &flat)).collect())
            }
            Self::Schedule(application) => {
                let flat: Vec<&ClockSources> = clocks.iter().flatten().collect();
                Ok(vec![taken_by_hits(&application.hits(&noise)?, &flat)])
            }
        }
    }
}

/// The clocks of each node, over the time in which all its CPUs were observed.
fn clocks(nodes: &[AttributedNoise], noise: &[NodeNoise]) -> Result<Vec<Vec<ClockSources>>, PredictError> {
    let per_node = |(node, noise): (&AttributedNoise, &NodeNoise)| {
        let span = Node::shared_span(&noise.traces)?;
        Ok(ClockSources::from_node(node, span.start.as_nanos(), span.end.as_nanos()))
    };
    nodes.iter().zip(noise).map(per_node).collect()
}

/// Time that each family took of the phases' delays.
fn taken(strikes: &[DelayedPhase], quantum: u64, clocks: &[Vec<ClockSources>]) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for strike in strikes {
        let length = quantum.saturating_add(strike.delay);
        let shares = clocks[strike.kind][strike.cpu].taken(strike.at, length);
        add(&mut all, shares, strike.delay);
    }
    all
}

fn taken_by_hits(hits: &[loggops::Hit], clocks: &[&ClockSources]) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for hit in hits {
        if let Some(clock) = clocks.get(hit.clock as usize) {
            add(&mut all, clock.taken(hit.at, hit.end - hit.start), hit.delay);
        }
    }
    all
}

/// Divides a delay in proportion to the shares.
fn add(all: &mut BTreeMap<String, f64>, shares: BTreeMap<&str, f64>, delay: u64) {
    let sum: f64 = shares.values().sum();
    for (family, ns) in shares {
        if sum > 0.0 {
            *all.entry(family.to_owned()).or_default() += ns / sum * delay as f64;
        }
    }
}

impl Application<'_> {
    fn run(&self, noise: JobNoise<'_>) -> Result<Ran, PredictError> {
        let nodes = noise.nodes;
        let kinds = nodes.iter().map(predict::clock).collect::<Result<Vec<_>, _>>()?;
        let silent_ns = self.play(&Noise::None)? as f64;
        let noisy = (0..self.runs).into_par_iter().map(|number| self.number(&kinds, number));
        let recorded_ns = noisy.collect::<Result<Vec<f64>, _>>()?;
        let quantum = quell_recording::Nanos::from_nanos(silent_ns as u64 / BLOCK_QUANTA);
        let redraw = Redraw::new(noise, quantum)?;
        let resampled = (0..self.runs).into_par_iter().map(|number| {
            let Some((kinds, _)) = redraw.draw(self.seed, number) else { return Ok(None) };
            self.number(&kinds, self.runs + number).map(|mean| Some(vec![mean]))
        });
        let resampled_ns = resampled.collect::<Result<Vec<_>, PredictError>>()?;
        let sample = Sample { silent_ns, recorded_ns, resampled_ns, longer: 1.0 };
        let slowdown_percent = sample.slowdown_percent();
        let ci95_percent = sample.slowdown_interval();
        // As for phases: for each rank ten windows of the trace, with the job as the quantum.
        let length = quell_recording::Nanos::from_nanos(silent_ns as u64);
        let support = Support::from_nodes(nodes, length, SyncMode::None);
        let supported = support.holds(self.schedule.ranks().into());
        let cost = Cost { slowdown_percent, ci95_percent, supported };
        Ok(Ran {
            costs: vec![cost],
            samples: vec![sample],
            warnings: nodes.iter().flat_map(NodeNoise::warnings).chain(few_recordings(nodes)).collect(),
        })
    }

    /// When the last rank finishes in the run with this number, in nanoseconds.
    fn number(&self, kinds: &[Node], number: u64) -> Result<f64, PredictError> {
        Ok(self.play(&Noise::Clocks(self.place(kinds, number)?))? as f64)
    }

    fn place(&self, kinds: &[Node], number: u64) -> Result<RankClocks, PredictError> {
        let seed = Draws::new(self.seed, &[stream::BATCHES]).at(number);
        let clocks = RankClocks::on_nodes(kinds, self.schedule.ranks(), Start::Independent, seed);
        Ok(clocks.map_err(loggops::RunError::from)?)
    }

    fn play(&self, noise: &Noise) -> Result<u64, PredictError> {
        let run = Run {
            net: self.net.network,
            ranges: &self.net.ranges,
            levels: &self.net.levels,
            rules: Rules::Physical,
            noise,
            threads: 1,
            progress: quell_sim::loggops::NO_PROGRESS,
        };
        Ok(loggops::run(self.schedule, &run)?.last().1)
    }

    /// The noise on the critical paths of its runs.
    fn hits(&self, nodes: &[NodeNoise]) -> Result<Vec<loggops::Hit>, PredictError> {
        let kinds = nodes.iter().map(predict::clock).collect::<Result<Vec<_>, _>>()?;
        let from_run = |number| {
            let noise = Noise::Clocks(self.place(&kinds, number)?);
            let run = Run {
                net: self.net.network,
                ranges: &self.net.ranges,
                levels: &self.net.levels,
                rules: Rules::Physical,
                noise: &noise,
                threads: 1,
                progress: quell_sim::loggops::NO_PROGRESS,
            };
            Ok(loggops::run_for_culprits(self.schedule, &run)?.1.hits)
        };
        let runs = (0..self.runs).into_par_iter().map(from_run).collect::<Result<Vec<_>, PredictError>>()?;
        Ok(runs.concat())
    }
}
