//! What ends a phase of a bulk-synchronous job: the slowest rank, or messages on a network.

use clap::Args;
use quell_analysis::predict::Messages;

use crate::Usage;
use crate::network::{self, NetArgs};
use crate::pattern::OpText;
use crate::size::Size;

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
}

impl MessageArgs {
    /// The messages on this network; `None` for `--op max`, where all ranks wait for the slowest at no further cost.
    ///
    /// # Errors
    /// [`Usage`] for a network without messages, and for a file that holds no network.
    pub fn messages(&self, net: &NetArgs) -> Result<Option<Messages>, Usage> {
        let OpText::Pattern(op) = &self.op else {
            return match self.bytes.is_some() || net.is_given() {
                true => Err(Usage(
                    "--op max sends no messages: name an --op that does, or leave --bytes and the network out"
                        .into(),
                )),
                false => Ok(None),
            };
        };
        let bytes = self.bytes.map_or(8, |size| size.0);
        Ok(Some(Messages { op: op.clone(), bytes, network: network::from_args(net)? }))
    }
}
