//! The effect of each source on a run.

use quell_recording::columns::Columns;
use serde::Serialize;

use super::{Tracked, TrackedSource};

/// The effect of one source, over all ranks.
#[derive(Clone, Debug, Serialize, Columns)]
pub struct RunSource {
    /// The source.
    #[column(name)]
    pub source: String,
    /// Noise of it that struck ranks.
    #[column(title = "local", zero)]
    pub local_ns: i64,
    /// Delay of the ranks at the end relative to a run without it.
    #[column(zero)]
    pub accumulated_ns: i64,
    /// Time that ranks lost through its noise on others.
    #[column(zero)]
    pub amplified_ns: i64,
    /// Noise of it that did not delay anything.
    #[column(zero)]
    pub absorbed_ns: i64,
    /// Its share in the sum of what each source costs alone.
    #[column(precision = 1)]
    pub share_percent: Option<f64>,
    /// Reduction of the run time without this source.
    #[column(title = "saved", zero)]
    pub saved_ns: i64,
    /// Ratio of accumulated noise to the noise that struck.
    #[column(minor)]
    pub ratio: Option<f64>,
}

impl RunSource {
    /// The effect of each source of a run.
    pub fn from_run(tracked: &Tracked) -> Vec<Self> {
        let one = |(name, without): (&String, &i64)| {
            let sum = |value: fn(&TrackedSource) -> i64| -> i64 {
                tracked.ranks.iter().filter_map(|rank| rank.by_source.get(name)).map(value).sum()
            };
            let (local_ns, accumulated_ns) = (sum(|of| of.local_ns), sum(|of| of.accumulated_ns));
            Self {
                source: name.clone(),
                local_ns,
                accumulated_ns,
                amplified_ns: sum(|of| of.amplified_ns),
                absorbed_ns: sum(|of| of.absorbed_ns),
                share_percent: tracked.composition.get(name).map(|share| 100.0 * share),
                saved_ns: tracked.runtime_ns - without,
                ratio: (local_ns > 0).then(|| accumulated_ns as f64 / local_ns as f64),
            }
        };
        tracked.compensated_runtime_by_source_ns.iter().map(one).collect()
    }
}
