//! The document that a simulation is.

use std::collections::BTreeMap;

use quell_recording::Nanos;
use quell_sim::loggops::{Outcome, Rules};
use schemars::JsonSchema;
use serde::Serialize;

use quell_analysis::Warning;
use quell_analysis::predict::{NetFacts, NoiseSource};
use quell_analysis::stats::nearest_rank;
use quell_analysis::whatif::culprits::CulpritFacts;

/// The schema's name and version.
pub const SCHEMA: &str = "quell.simulate/2";
/// Up to so many ranks the document has a time for each unless more is requested.
pub const MOST_TIMES: usize = 4_096;

/// A played program: when each rank is done.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Simulation {
    /// Always `quell.simulate/2`.
    pub schema: String,
    /// The file or the pattern that was played.
    pub program: String,
    /// The parameters of the pattern by the options that set them; null for a file.
    pub parameters: Option<BTreeMap<String, String>>,
    /// By which rules ranks and messages meet.
    pub rules: RulesName,
    /// The network.
    pub net: NetFacts,
    /// Seed of the places in the noise; run again with it for the same bits.
    pub seed: u64,
    /// How many ranks there are.
    pub ranks: u32,
    /// Operations that became free and messages that were sent, which is what LogGOPSim counts.
    pub events: u64,
    /// Whether every operation was done and every message received.
    pub finished: bool,
    /// When the last rank was done, in nanoseconds; null if not finished.
    pub max_ns: Option<u64>,
    /// The lowest of the ranks that were done last; null if not finished.
    pub max_rank: Option<u32>,
    /// When each rank was done, in nanoseconds, rank 0 first; null if not finished, and above 4,096 ranks unless
    /// `--all-times` is given.
    pub finish_times_ns: Option<Vec<u64>>,
    /// When the first rank, a tenth, half, nine tenths and all of the ranks were done, in nanoseconds; null if not finished.
    pub finish_quantiles_ns: Option<[u64; 5]>,
    /// The noise; null for a silent machine.
    pub noise: Option<NoiseFacts>,
    /// The same without noise, if that was requested.
    pub baseline: Option<Baseline>,
    /// Which noise made it late, if that was requested.
    pub culprits: Option<CulpritFacts>,
    /// What was left over, if not finished.
    pub stuck: Option<StuckFacts>,
    /// What limits the result.
    pub warnings: Vec<Warning>,
}

/// A set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RulesName {
    /// LogGOPSim's, nanosecond for nanosecond.
    Compatible,
    /// What a machine does.
    Physical,
}

impl From<Rules> for RulesName {
    fn from(rules: Rules) -> Self {
        match rules {
            Rules::Compatible => Self::Compatible,
            Rules::Physical => Self::Physical,
        }
    }
}

/// Where in its noise each rank begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StartName {
    /// Each node at a place of its own, drawn evenly.
    Independent,
    /// All nodes at one place.
    Together,
    /// As a file says, rank by rank.
    Offsets,
}

impl StartName {
    /// What the options mean.
    pub fn of(cosched: bool, skew: Option<Nanos>) -> Self {
        if cosched || skew.is_some() { Self::Together } else { Self::Independent }
    }
}

/// The noise of a simulation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NoiseFacts {
    /// The files, in the order in which nodes take them.
    pub sources: Vec<NoiseSource>,
    /// Where in it each rank begins.
    pub start: StartName,
    /// With `together`: nodes begin up to this much later than the first, in nanoseconds.
    pub skew_ns: u64,
    /// The noise that struck the work of all ranks together, in nanoseconds; null if not finished.
    pub injected_total_ns: Option<u64>,
    /// The noise that struck each rank's work, in nanoseconds, rank 0 first; left out as `finish_times_ns` is.
    pub injected_noise_ns: Option<Vec<u64>>,
}

impl NoiseFacts {
    /// Before the run.
    pub fn new(sources: Vec<NoiseSource>, start: StartName, skew: Option<Nanos>) -> Self {
        let skew_ns = skew.unwrap_or_default().as_nanos();
        Self { sources, start, skew_ns, injected_total_ns: None, injected_noise_ns: None }
    }
}

/// The same program without noise.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Baseline {
    /// When its last rank was done, in nanoseconds.
    pub max_ns: u64,
    /// 100 × (with noise − without) / without; null where there is nothing to be slowed down.
    pub slowdown_percent: Option<f64>,
}

/// What was left when nothing could go on. Of each kind the first few are listed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StuckFacts {
    /// Ranks that wait for one another in a circle, each for the next and the last for the first.
    pub cycle: Vec<u32>,
    /// Receives that no message came for.
    pub receives: Vec<LeftOver>,
    /// How many of them there are.
    pub receives_total: u64,
    /// Messages that nobody received; `rank` is the receiver's, `operation` the send's.
    pub messages: Vec<LeftOver>,
    /// How many of them there are.
    pub messages_total: u64,
    /// Ranks whose operations were not all free to start in the end.
    pub unfreed: Vec<Unfreed>,
    /// How many operations were never free to start, on all ranks.
    pub unfreed_total: u64,
}

/// One end of a message without the other.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LeftOver {
    /// The rank where it waits.
    pub rank: u32,
    /// The number of the operation in its rank, from 0.
    pub operation: u32,
    /// Its label in the text, if it has one.
    pub label: Option<String>,
    /// Its line in the text, from 1.
    pub line: Option<u64>,
    /// The other rank; null for any.
    pub peer: Option<u32>,
    /// The tag; null for any.
    pub tag: Option<u32>,
    /// Bytes.
    pub bytes: u64,
}

/// A rank with operations that were never free to start.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Unfreed {
    /// The rank.
    pub rank: u32,
    /// How many operations.
    pub operations: u64,
}

impl Simulation {
    /// Fills in what came out.
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

    /// Fills in how the run without noise ended.
    pub fn compare(&mut self, silent: &Outcome) {
        let base = silent.last().1;
        let slower = |noisy: u64| 100.0 * (noisy as f64 - base as f64) / base as f64;
        let slowdown_percent = self.max_ns.filter(|_| base > 0).map(slower);
        self.baseline = Some(Baseline { max_ns: base, slowdown_percent });
    }
}

/// The first, 10 %, 50 %, 90 % (nearest rank) and last.
fn quantiles(times: &[u64]) -> [u64; 5] {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    [0.0, 0.1, 0.5, 0.9, 1.0].map(|p| nearest_rank(&sorted, p).unwrap_or_default())
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
