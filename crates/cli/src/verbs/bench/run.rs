//! A finished run, as its folder holds it.

use std::path::PathBuf;

use quell_analysis::bench::job::{HostRun, Job, RunFacts};

/// What the benchmark of the network is called in its own facts.
pub const LOGGP: &str = "loggp";
/// Where the prediction of a run is kept in its folder.
pub const PREDICTION: &str = "predict.json";

/// One finished run.
#[derive(Debug)]
pub struct Run {
    pub folder: PathBuf,
    pub facts: RunFacts,
    pub hosts: Vec<HostRun>,
}

impl Run {
    /// The phases of all its hosts.
    pub fn job(&self) -> anyhow::Result<Job> {
        Job::of(&self.hosts).map_err(anyhow::Error::msg)
    }
}
