//! All combinations of a few sources switched off, for interactive use.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

use super::attributed_noise::AttributedNoise;
use super::costs::{OTHERS, Source};
use super::job::Job;
use crate::predict::{JobNoise, NodeNoise, Options, PredictError};

/// Maximum number of switchable sources for phases without messages: each doubles the number of predictions.
const MOST: usize = 5;
/// Maximum number of switchable sources with messages.
const MOST_WITH_MESSAGES: usize = 3;

/// The slowdown without any combination of some sources.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Switches {
    /// The sources, the costliest first; untrusted text.
    pub sources: Vec<String>,
    /// The scales.
    pub ranks: Vec<u64>,
    /// For each combination the slowdown at each scale, in percent. Bit i of a combination's number is set if source i is removed.
    pub slowdown_percent: Vec<Vec<f64>>,
}

/// Predicts every combination, without confidence intervals.
pub(crate) fn switches(
    nodes: &[AttributedNoise],
    job: &Job<'_>,
    sources: &[Source],
) -> Result<Switches, PredictError> {
    let (job, most) = match job {
        Job::Phases(options) if options.messages.is_none() => {
            (Job::Phases(Options { replicates: 0, ..options.clone() }), MOST)
        }
        Job::Phases(options) => {
            (Job::Phases(Options { replicates: 0, ..options.clone() }), MOST_WITH_MESSAGES)
        }
        Job::Schedule(_) => (job.clone(), MOST_WITH_MESSAGES),
    };
    let costs =
        |source: &&Source| source.source != OTHERS && source.costs.iter().any(|cost| cost.part_percent > 0.0);
    let names: Vec<String> =
        sources.iter().filter(costs).take(most).map(|source| source.source.clone()).collect();
    let of_combination = |combination: usize| {
        let gone = |family: &str| {
            names.iter().enumerate().any(|(i, name)| combination >> i & 1 == 1 && name == family)
        };
        let noise = nodes.par_iter().map(|node| {
            node.weighed(|kind| if gone(&node.kinds()[kind].family) { 0.0 } else { 1.0 }).noise()
        });
        let ran = job.run(JobNoise::from_nodes(&noise.collect::<Vec<NodeNoise>>()))?;
        Ok(ran.costs.iter().map(|cost| cost.slowdown_percent).collect())
    };
    let slowdown_percent =
        (0..1usize << names.len()).map(of_combination).collect::<Result<_, PredictError>>()?;
    Ok(Switches { sources: names, ranks: job.ranks(), slowdown_percent })
}
