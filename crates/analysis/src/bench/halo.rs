//! The halo exchange with MPI_Sendrecv: the effect of noise on full nodes, and on nodes with one CPU left to the system (Jones et al.,
//! LLNL, Table 2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::anomalies::{self, Anomalies};
use super::job::{HostRun, Job, RunFacts};
use super::spread::Spread;
use crate::Warning;
use crate::stats::mean;

/// The schema's name and version.
pub const SCHEMA: &str = "quell.bench-halo/2";

/// The exchange on one or two layouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Halo {
    /// Always `quell.bench-halo/2`.
    pub schema: String,
    /// Dimensions of the grid.
    pub dims: u32,
    /// One for each layout of ranks on nodes.
    pub layouts: Vec<LayoutRow>,
    /// With two layouts: each figure of the first, on full nodes, divided by that of the second.
    pub full_over_left: Option<Ratios>,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
}

/// One layout, over all its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayoutRow {
    /// What ran.
    pub run: RunFacts,
    /// Maximum number of ranks on a host.
    pub per_node: u32,
    /// Number of runs.
    pub rounds: u32,
    /// Times of all ranks in the exchange.
    pub times: Spread,
    /// Mean of each round, in ns: they show whether a difference exceeds chance.
    pub means_ns: Vec<f64>,
    /// Exchanges of the last round that took too long, and what delayed them.
    pub anomalies: Anomalies,
}

/// The ratios of one layout's figures to another's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratios {
    /// Ratio of the shortest times.
    pub min: f64,
    /// Ratio of the means.
    pub mean: f64,
    /// Ratio of the longest times.
    pub max: f64,
    /// Ratio of the standard deviations.
    pub sigma: f64,
}

/// Collects the rounds of one layout.
#[derive(Debug, Default)]
pub struct Rounds {
    run: RunFacts,
    times: Vec<u64>,
    means: Vec<f64>,
    anomalies: Anomalies,
    per_node: usize,
}

impl Rounds {
    /// Adds a round.
    pub fn add(&mut self, job: &Job, run: &RunFacts, hosts: &[HostRun]) {
        let times: Vec<u64> = job.iter().flatten().map(|cell| cell.wait).collect();
        self.means.push(mean(times.iter().map(|&t| t as f64)).unwrap_or(0.0));
        self.times.extend(times);
        self.anomalies = anomalies::find(job, hosts);
        self.run = run.clone();
        let on = |host: usize| job.ranks.iter().filter(|rank| rank.host == host).count();
        self.per_node = (0..hosts.len()).map(on).max().unwrap_or(0);
    }

    /// The row of the layout, if any round ran.
    pub fn row(self) -> Option<LayoutRow> {
        (!self.means.is_empty()).then(|| LayoutRow {
            run: self.run,
            per_node: self.per_node as u32,
            rounds: self.means.len() as u32,
            times: Spread::from_times(self.times),
            means_ns: self.means,
            anomalies: self.anomalies,
        })
    }
}

/// Compares the layouts; full nodes come first.
pub fn together(dims: u32, layouts: Vec<LayoutRow>, warnings: Vec<Warning>) -> Halo {
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { f64::NAN };
    let full_over_left = match layouts.as_slice() {
        [full, left] => Some(Ratios {
            min: ratio(full.times.min_ns as f64, left.times.min_ns as f64),
            mean: ratio(full.times.mean_ns, left.times.mean_ns),
            max: ratio(full.times.max_ns as f64, left.times.max_ns as f64),
            sigma: ratio(full.times.sigma_ns, left.times.sigma_ns),
        }),
        _ => None,
    };
    // JSON has no infinity or NaN.
    let full_over_left =
        full_over_left.filter(|r| [r.min, r.mean, r.max, r.sigma].iter().all(|ratio| ratio.is_finite()));
    Halo { schema: SCHEMA.into(), dims, layouts, full_over_left, warnings }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{host, job_of, phase};
    use super::*;

    #[test]
    fn layouts_are_compared_over_all_their_rounds() {
        let round = |rounds: &mut Rounds, wait: u64| {
            let phases = (0..4).map(|index| (0, phase(0, index, index * 100, 0, wait + index))).collect();
            let hosts = vec![host(&[(0, 70)], phases, Vec::new())];
            rounds.add(&job_of(&hosts), &RunFacts::default(), &hosts);
        };
        let (mut full, mut left) = (Rounds::default(), Rounds::default());
        round(&mut full, 40);
        round(&mut full, 60);
        round(&mut left, 25);
        let rows = [full, left].into_iter().filter_map(Rounds::row).collect();
        let halo = together(2, rows, Vec::new());
        assert_eq!((halo.layouts[0].rounds, halo.layouts[0].times.count), (2, 8));
        let Some(ratios) = halo.full_over_left else { panic!("two layouts make ratios") };
        assert!((ratios.min - 1.6).abs() < 1e-9 && (ratios.max - 63.0 / 28.0).abs() < 1e-9);
        assert!(together(2, Vec::new(), Vec::new()).full_over_left.is_none());
    }
}
