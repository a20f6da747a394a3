//! `track`: what noise did to an MPI run. The caller opens the archive.

pub mod args;

use quell_analysis::track::{Given, NoiseOnly, Tracked};
use quell_recording::mpi::Run;

pub use args::TrackArgs;

use crate::{Usage, network};

impl TrackArgs {
    /// The network and the eager limit, as far as they were given; otherwise the run's own messages show them. S alone gives no times.
    ///
    /// # Errors
    /// [`Usage`] for a file that holds no network.
    pub fn given(&self) -> Result<Given, Usage> {
        let network = self.net.gives_times().then(|| network::from_args(&self.net)).transpose()?;
        Ok(Given { network, eager_limit: network::eager_limit(&self.net)? })
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
