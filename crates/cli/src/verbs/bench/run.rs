//! A finished run, as stored in its folder.

use std::path::PathBuf;

use quell_analysis::bench::job::{HostRun, Job, RunFacts};

/// The name of the network benchmark in the facts of its runs.
pub const LOGGP: &str = "loggp";
/// The file of a run's prediction in its folder.
pub const PREDICTION: &str = "predict.json";

/// A finished run.
#[derive(Debug)]
pub struct Run {
    pub folder: PathBuf,
    pub facts: RunFacts,
    pub hosts: Vec<HostRun>,
}

impl Run {
    /// The phases of all its hosts.
    pub fn job(&self) -> anyhow::Result<Job> {
        Job::from_hosts(&self.hosts).map_err(anyhow::Error::msg)
    }
}
