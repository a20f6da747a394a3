//! The options of the network.

use clap::Args;

use crate::network::{NearText, NetText, Parameters, PerByteText, TimeText};
use crate::size::Size;

/// The network.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Network (LogGOPS)")]
pub struct NetArgs {
    /// A preset, or parameters as in `L=2500,o=1500,g=1000,G=0.04,O=0,S=65535`; `help` lists the presets with their sources. Or a file of
    /// measured parameters: each message takes those for its size, and with `FILE.toml@4Ki` all take those for 4 KiB. Parameters that are
    /// not given are those of `slingshot`, and of `loggopsim` under LogGOPSim's rules. The options below override it. Without a network, a schedule `run.goal` is played on that of
    /// `run.net.toml`, which `quell track` writes with a schedule where the network was measured.
    #[arg(long, value_name = "NAME|L=..,o=..")]
    pub net: Option<NetText>,
    /// The network among near ranks, such as those of a node: with `64=node.toml`, messages among each 64 consecutive ranks take the network
    /// of that file, and all others that of `--net`. NET is all that `--net` takes. Repeat the option for more levels, as for sockets
    /// (`32=..`) and nodes (`64=..`). It replaces the levels of a file. The options below do not change it.
    #[arg(long, value_name = "RANKS=NET")]
    pub within: Vec<NearText>,
    /// L: latency from the sender's CPU to the receiver's, in ns (1900).
    #[arg(long, value_name = "NS")]
    pub latency: Option<TimeText>,
    /// o: CPU overhead of each send and of each arrival, in ns (230).
    #[arg(long, value_name = "NS")]
    pub overhead: Option<TimeText>,
    /// g: gap between one message and the next on an interface, in ns (0).
    #[arg(long, value_name = "NS")]
    pub gap: Option<TimeText>,
    /// G: gap per byte, the time on the wire of each further byte, in ns; may be a fraction, as 0.04 (200 Gb/s) (0.092).
    #[arg(long, value_name = "NS")]
    pub gap_per_byte: Option<PerByteText>,
    /// O: CPU overhead of each further byte, in ns (0).
    #[arg(long, value_name = "NS")]
    pub overhead_per_byte: Option<PerByteText>,
    /// S: largest message, in bytes, that is sent eagerly; larger ones go by rendezvous (4096).
    #[arg(long, value_name = "BYTES")]
    pub eager_limit: Option<Size>,
}

impl NetArgs {
    /// The parameters that have an option of their own.
    pub(super) fn parameters(&self) -> Parameters {
        Parameters {
            latency: self.latency,
            overhead: self.overhead,
            gap: self.gap,
            gap_per_byte: self.gap_per_byte,
            overhead_per_byte: self.overhead_per_byte,
            eager_limit: self.eager_limit.map(|size| size.0),
        }
    }

    /// Whether any of these options was given.
    pub fn is_given(&self) -> bool {
        self.gives_times() || self.eager_limit.is_some()
    }

    /// Whether any of these options was given, other than one for S alone.
    pub fn gives_times(&self) -> bool {
        let times = [self.latency, self.overhead, self.gap].iter().any(Option::is_some);
        let rates = [self.gap_per_byte, self.overhead_per_byte].iter().any(Option::is_some);
        self.net.is_some() || !self.within.is_empty() || times || rates
    }
}
