//! What ends a phase of a bulk-synchronous job: the slowest rank, or messages on a network.

use clap::{Args, ValueEnum};
use quell_analysis::predict::Messages;
use quell_sim::loggops::Rules;

use crate::Usage;
use crate::network::{self, NetArgs};
use crate::pattern::OpText;
use crate::size::Size;

/// When a message that has arrived is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgressName {
    /// When it arrives, as by an MPI with a progress thread.
    Async,
    /// Once its receive is posted, in the call that waits for it.
    Call,
}

impl From<ProgressName> for Rules {
    fn from(progress: ProgressName) -> Self {
        match progress {
            ProgressName::Async => Self::Physical,
            ProgressName::Call => Self::Call,
        }
    }
}

/// The messages that end a phase, the same for every verb that has such a job.
#[derive(Clone, Debug, Args)]
pub struct MessageArgs {
    /// What ends a phase: `max` (all wait for the slowest rank, at no further cost), or messages under LogGOPS: barrier, allreduce, bcast,
    /// reduce, alltoall, halo2d, halo3d, or any other pattern of `quell goal list`.
    #[arg(long, default_value = "max", value_name = "NAME")]
    pub op: OpText,
    /// Message size of --op, or size of each rank's part of it, in bytes [default: 8].
    #[arg(long, value_name = "SIZE")]
    pub bytes: Option<Size>,
    /// When a message of --op is handled: `call`, once its receive is posted, as by most MPIs, or `async`, when it arrives, as with a
    /// progress thread [default: call].
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    pub progress: Option<ProgressName>,
}

impl MessageArgs {
    /// The messages on this network; `None` for `--op max`, where all ranks wait for the slowest at no further cost.
    ///
    /// # Errors
    /// [`Usage`] for a network without messages, and for a file that holds no network.
    pub fn messages(&self, net: &NetArgs) -> Result<Option<Messages>, Usage> {
        let OpText::Pattern(op) = &self.op else {
            return match self.bytes.is_some() || self.progress.is_some() || net.is_given() {
                true => Err(Usage(
                    "--op max sends no messages: name an --op that does, or leave --bytes, --progress and the network out"
                        .into(),
                )),
                false => Ok(None),
            };
        };
        let bytes = self.bytes.map_or(8, |size| size.0);
        let rules = self.progress.unwrap_or(ProgressName::Call).into();
        let network = Box::new(network::from_args(net, network::DEFAULT)?);
        Ok(Some(Messages { op: op.clone(), bytes, network, rules }))
    }
}
