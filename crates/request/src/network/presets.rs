//! Networks whose parameters were published.

use quell_sim::loggops::{NamedNetwork, Network, PerByte};

/// A network whose parameters were published.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name that `--net` takes.
    pub name: &'static str,
    /// The network.
    pub net: fn() -> Network,
    /// Where its parameters were published.
    pub source: &'static str,
}

impl Preset {
    /// The network under the preset's name.
    pub fn named(&self) -> NamedNetwork {
        NamedNetwork { preset: Some(self.name.to_owned()), ..(self.net)().into() }
    }
}

/// The network of a simulation that is given none: a fabric of today.
pub const DEFAULT: &Preset = &PRESETS[0];

/// The network of a simulation under LogGOPSim's rules that is given none.
pub const LOGGOPSIM: &Preset = &PRESETS[8];

/// Parameters in nanoseconds: L, o, g, and G in femtoseconds; S in bytes. O is 0.
fn network(times: [u64; 3], gap_per_byte_fs: u64, eager_limit: u64) -> Network {
    let [latency, overhead, gap] = times;
    let [gap_per_byte, overhead_per_byte] =
        [PerByte::from_femtoseconds(gap_per_byte_fs), PerByte::from_femtoseconds(0)];
    Network { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_limit }
}

/// All presets. A new one must cite the publication of its six numbers; unpublished numbers are not accepted.
///
/// Most are of De Sensi et al., "Noise in the Clouds: Influence of Network Performance Variability on Application Scalability", Proc. ACM
/// Meas. Anal. Comput. Syst. 6(3), 2022 (arXiv 2210.15315): one message at a time between two nodes, in different racks where both were
/// measured. Their simulations take O = 0.
pub const PRESETS: [Preset; 9] = [
    Preset {
        name: "slingshot",
        net: || network([1900, 230, 0], 92_000, 4096),
        source: "Alps, Slingshot with links of 100 Gb/s: De Sensi et al. 2022, simulations/loggp_params.py of cloud_noise; the default",
    },
    Preset {
        name: "hdr",
        net: || network([1700, 0, 1000], 46_000, 4096),
        source: "InfiniBand of 200 Gb/s, Azure's HPC instances: De Sensi et al. 2022, as above",
    },
    Preset {
        name: "edr",
        net: || network([1600, 350, 5500], 89_000, 4096),
        source: "InfiniBand of 100 Gb/s, DEEP-EST: De Sensi et al. 2022, as above",
    },
    Preset {
        name: "aries",
        net: || network([500, 0, 6000], 140_000, 4096),
        source: "Cray Aries, Piz Daint: De Sensi et al. 2022, as above",
    },
    Preset {
        name: "roce",
        net: || network([1600, 150, 5000], 105_000, 4096),
        source: "RoCE of 100 Gb/s, Oracle's HPC instances: De Sensi et al. 2022, as above",
    },
    Preset {
        name: "efa",
        net: || network([28_000, 0, 22_000], 300_000, 65_536),
        source: "EFA of 100 Gb/s, AWS's HPC instances: De Sensi et al. 2022, as above",
    },
    Preset {
        name: "gvnic",
        net: || network([23_000, 0, 0], 390_000, 65_536),
        source: "gVNIC of 100 Gb/s, Google's HPC instances: De Sensi et al. 2022, as above",
    },
    Preset {
        name: "atlahs",
        net: || network([3700, 200, 5], 40_000, 0),
        source: "the command line of ATLAHS's NCCL demo, links of 200 Gb/s (spcl/atlahs, demo/ai_nccl/README.md)",
    },
    Preset {
        name: "loggopsim",
        net: Network::default,
        source: "LogGOPSim's own defaults (options -L -o -g -G -O -S of commit 76451de); the default under --compat",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_their_names() {
        assert_eq!([DEFAULT.name, LOGGOPSIM.name], ["slingshot", "loggopsim"]);
        assert_eq!((LOGGOPSIM.net)(), Network::default());
    }
}
