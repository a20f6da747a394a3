//! `track`: what noise did to an MPI run. The archive is opened by the caller.

pub mod args;

use quell_analysis::track::{Network, Tracked};

pub use args::TrackArgs;

use crate::{Usage, network};

impl TrackArgs {
    /// The network, if one was given; else it is estimated from the run's own messages.
    ///
    /// # Errors
    /// [`Usage`] for a file that holds no network.
    pub fn network(&self) -> Result<Option<Network>, Usage> {
        let given = self.net.is_given().then(|| network::of(&self.net, None));
        Ok(given.transpose()?.map(|(net, _)| Network::of(net)))
    }
}

/// Why a run that was gone through is a failure nevertheless.
pub fn failure(tracked: &Tracked) -> Option<&'static str> {
    let broken = "the archive is not whole or contradicts itself: what is said holds for what is there";
    tracked.findings.broken().then_some(broken)
}
