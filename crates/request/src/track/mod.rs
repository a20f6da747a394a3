//! `track`: what noise did to an MPI run. The caller opens the archive.

pub mod args;

use std::path::Path;

use quell_analysis::track::{Given, MeasuredLimits, NoiseOnly, Tracked};
use quell_recording::mpi::Run;

pub use args::TrackArgs;

use crate::{Usage, network};

/// Networks in the folder of a run, as `quell bench loggp` measured them: between ranks of one host, and of different hosts.
pub const NETWORKS: [&str; 2] = ["intra.toml", "inter.toml"];

impl TrackArgs {
    /// The network and the eager limit, as far as they were given; otherwise the run's own messages show them. S alone gives no times. Eager
    /// limits that were measured on the run's hosts are in its folder.
    ///
    /// # Errors
    /// [`Usage`] for a file that holds no network.
    pub fn given(&self) -> Result<Given, Usage> {
        let network = || network::from_args(&self.net, network::DEFAULT);
        let network = self.net.gives_times().then(network).transpose()?;
        let [one_host, different_hosts] =
            NETWORKS.map(|name| network::measured_limit(&self.folder().join(name)));
        let measured_limits = MeasuredLimits { one_host: one_host?, different_hosts: different_hosts? };
        Ok(Given { network, eager_limit: network::eager_limit(&self.net)?, measured_limits })
    }

    /// The folder of the archive.
    pub fn folder(&self) -> &Path {
        match self.archive.parent() {
            Some(folder) if !self.archive.is_dir() => folder,
            _ => &self.archive,
        }
    }

    /// The run with the counters that are noise.
    pub fn noise_of<R: Run>(&self, run: R) -> NoiseOnly<R> {
        NoiseOnly::new(run, self.own_work)
    }
}

/// Why a run counts as failed although it was read to its end.
pub fn failure(tracked: &Tracked) -> Option<&'static str> {
    let broken = "the archive is incomplete or contradicts itself; the results hold for the part that quell could read";
    tracked.findings.broken().then_some(broken)
}
