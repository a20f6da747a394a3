//! The JSON document of a simulation.

use std::collections::BTreeMap;

use quell_recording::Nanos;
use quell_sim::loggops::{NamedNetwork, Outcome, Rules};
use schemars::JsonSchema;
use serde::Serialize;

use quell_analysis::Warning;
use quell_analysis::predict::{MessageProgress, NoiseSource};
use quell_analysis::stats::nearest_rank_of_any_order;
use quell_analysis::whatif::culprits::CulpritFacts;

/// The schema's name and version.
pub const SCHEMA: &str = "quell.simulate/2";
/// Maximum number of ranks for which the document lists times per rank, unless `--all-times` is given.
pub const MOST_TIMES: usize = 4_096;

/// The result of a simulation: when each rank finished.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Simulation {
    /// Always `quell.simulate/2`.
    pub schema: String,
    /// The file or the pattern that was simulated.
    pub program: String,
    /// The parameters of the pattern, by the options that set them; null for a file.
    pub parameters: Option<BTreeMap<String, String>>,
    /// The rules of the simulation.
    pub rules: RulesName,
    /// When a message is handled; null under LogGOPSim's rules, which have their own.
    pub progress: Option<MessageProgress>,
    /// The network.
    pub net: NamedNetwork,
    /// Seed of the offsets in the noise trace; equal seeds give bit-identical results.
    pub seed: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of operations that became ready plus messages that were sent, which is what LogGOPSim counts.
    pub events: u64,
    /// Whether every operation finished and every message was received.
    pub finished: bool,
    /// When the last rank finished, in nanoseconds; null if the program did not finish.
    pub max_ns: Option<u64>,
    /// The lowest number among the ranks that finished last; null if the program did not finish.
    pub max_rank: Option<u32>,
    /// When each rank finished, in nanoseconds, rank 0 first; null if the program did not finish, and above 4,096 ranks unless
    /// `--all-times` is given.
    pub finish_times_ns: Option<Vec<u64>>,
    /// When the first rank, a tenth, half, nine tenths and all of the ranks had finished, in nanoseconds; null if the program did not
    /// finish.
    pub finish_quantiles_ns: Option<[u64; 5]>,
    /// The noise; null if there was none.
    pub noise: Option<NoiseFacts>,
    /// The same program without noise, if requested.
    pub baseline: Option<Baseline>,
    /// The noise that delayed the program, if requested.
    pub culprits: Option<CulpritFacts>,
    /// What remained when the program could not continue; null if it finished.
    pub stuck: Option<StuckFacts>,
    /// What limits the result.
    pub warnings: Vec<Warning>,
}

/// A set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RulesName {
    /// LogGOPSim's, exact to the nanosecond.
    Compatible,
    /// Rules that hold on real machines.
    Physical,
}

impl From<Rules> for RulesName {
    fn from(rules: Rules) -> Self {
        match rules {
            Rules::Compatible => Self::Compatible,
            Rules::Physical | Rules::Call => Self::Physical,
        }
    }
}

/// The offset in the noise trace at which each rank starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StartName {
    /// Each node at an offset of its own, uniformly distributed.
    Independent,
    /// All nodes at the same offset.
    Together,
    /// As given in a file, rank by rank.
    Offsets,
}

impl StartName {
    /// The mode that the options select.
    pub fn from_options(cosched: bool, skew: Option<Nanos>) -> Self {
        if cosched || skew.is_some() { Self::Together } else { Self::Independent }
    }
}

/// The noise of a simulation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NoiseFacts {
    /// The noise files, in the order in which they are assigned to nodes.
    pub sources: Vec<NoiseSource>,
    /// The offset in the noise trace at which each rank starts.
    pub start: StartName,
    /// With `together`: nodes start up to this much later than the first, in nanoseconds.
    pub skew_ns: u64,
    /// The noise that delayed the work of all ranks together, in nanoseconds; null if the program did not finish.
    pub injected_total_ns: Option<u64>,
    /// The noise that delayed each rank's work, in nanoseconds, rank 0 first; left out as `finish_times_ns` is.
    pub injected_noise_ns: Option<Vec<u64>>,
}

impl NoiseFacts {
    /// The facts that are known before the run; what the run injects is filled in later.
    pub fn new(sources: Vec<NoiseSource>, start: StartName, skew: Option<Nanos>) -> Self {
        let skew_ns = skew.unwrap_or_default().as_nanos();
        Self { sources, start, skew_ns, injected_total_ns: None, injected_noise_ns: None }
    }
}

/// The same program without noise.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Baseline {
    /// When its last rank finished, in nanoseconds.
    pub max_ns: u64,
    /// 100 × (with noise − without) / without; null if the program takes no time without noise.
    pub slowdown_percent: Option<f64>,
}

/// What remained when no operation could continue. The first few of each kind are listed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StuckFacts {
    /// Ranks that wait for one another in a cycle: each for the next, and the last for the first.
    pub cycle: Vec<u32>,
    /// Receives without a matching message.
    pub receives: Vec<LeftOver>,
    /// The total number of these receives.
    pub receives_total: u64,
    /// Messages that were never received; `rank` is the receiver, `operation` is the send.
    pub messages: Vec<LeftOver>,
    /// The total number of these messages.
    pub messages_total: u64,
    /// Ranks with operations that never became ready.
    pub unfreed: Vec<Unfreed>,
    /// The total number of operations that never became ready, on all ranks.
    pub unfreed_total: u64,
}

/// One end of a message whose other end is missing.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LeftOver {
    /// The rank that waits.
    pub rank: u32,
    /// The index of the operation in its rank, from 0.
    pub operation: u32,
    /// Its label in the GOAL text, if it has one.
    pub label: Option<String>,
    /// Its line in the GOAL text, from 1.
    pub line: Option<u64>,
    /// The other rank; null for any.
    pub peer: Option<u32>,
    /// The tag; null for any.
    pub tag: Option<u32>,
    /// The size of the message.
    pub bytes: u64,
}

/// A rank with operations that never became ready.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Unfreed {
    /// The number of the rank.
    pub rank: u32,
    /// How many of its operations never became ready.
    pub operations: u64,
}

impl Simulation {
    /// Fills in the outcome of the run.
    pub fn finish(&mut self, outcome: &Outcome, all_times: bool) {
        self.events = outcome.events;
        self.finished = outcome.stuck.is_none();
        if !self.finished {
            return;
        }
        let (rank, at) = outcome.last();
        (self.max_ns, self.max_rank) = (Some(at), Some(rank));
        self.finish_quantiles_ns = Some(quantiles(&outcome.finish));
        let times = |of: &[u64]| (all_times || of.len() <= MOST_TIMES).then(|| of.to_vec());
        self.finish_times_ns = times(&outcome.finish);
        if let Some(noise) = &mut self.noise {
            noise.injected_total_ns = Some(outcome.noise.iter().fold(0, |sum, ns| sum.saturating_add(*ns)));
            noise.injected_noise_ns = times(&outcome.noise);
        }
    }

    /// Fills in the outcome of the run without noise.
    pub fn compare(&mut self, silent: &Outcome) {
        let base = silent.last().1;
        let slower = |noisy: u64| 100.0 * (noisy as f64 - base as f64) / base as f64;
        let slowdown_percent = self.max_ns.filter(|_| base > 0).map(slower);
        self.baseline = Some(Baseline { max_ns: base, slowdown_percent });
    }
}

/// The first, 10 %, 50 %, 90 % (nearest rank) and last.
fn quantiles(times: &[u64]) -> [u64; 5] {
    let mut times = times.to_vec();
    [0.0, 0.1, 0.5, 0.9, 1.0].map(|p| nearest_rank_of_any_order(&mut times, p).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::quantiles;

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        assert_eq!(quantiles(&(1..=10).rev().collect::<Vec<_>>()), [1, 1, 5, 9, 10]);
        assert_eq!(quantiles(&[7]), [7; 5]);
        assert_eq!(quantiles(&[]), [0; 5]);
    }
}
