//! `track`: what noise did to an MPI run. The caller opens the archive.

pub mod args;

use quell_analysis::track::{NoiseOnly, Tracked};
use quell_recording::mpi::Run;
use quell_sim::loggops::NamedNetwork;

pub use args::TrackArgs;

use crate::{Usage, network};

impl TrackArgs {
    /// The network, if one was given; otherwise it is estimated from the run's own messages.
    ///
    /// # Errors
    /// [`Usage`] for a file that holds no network.
    pub fn network(&self) -> Result<Option<NamedNetwork>, Usage> {
        let given = self.net.is_given().then(|| network::from_args(&self.net));
        given.transpose()
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
