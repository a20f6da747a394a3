//! The parameters of the LogGOPS model.

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Nanoseconds per byte, kept in whole femtoseconds so that 200 Gb/s (0.04 ns) and much faster networks are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerByte {
    femtoseconds: u64,
}

/// Femtoseconds in a nanosecond.
const FEMTO: u64 = 1_000_000;

impl PerByte {
    /// Whole nanoseconds per byte; saturates above 18 seconds.
    pub fn from_nanos(ns: u64) -> Self {
        Self { femtoseconds: ns.saturating_mul(FEMTO) }
    }

    /// Femtoseconds per byte.
    pub fn from_femtoseconds(femtoseconds: u64) -> Self {
        Self { femtoseconds }
    }

    /// The nanoseconds per byte, if they are a whole number.
    pub fn whole_nanos(self) -> Option<u64> {
        self.femtoseconds.is_multiple_of(FEMTO).then_some(self.femtoseconds / FEMTO)
    }

    /// Nanoseconds per byte.
    pub fn as_nanos(self) -> f64 {
        self.femtoseconds as f64 / FEMTO as f64
    }

    /// The time of `bytes`, to the nearest nanosecond; saturates.
    pub fn time(self, bytes: u64) -> u64 {
        let fs = u128::from(self.femtoseconds) * u128::from(bytes) + u128::from(FEMTO / 2);
        u64::try_from(fs / u128::from(FEMTO)).unwrap_or(u64::MAX)
    }
}

/// A document holds nanoseconds.
impl Serialize for PerByte {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_nanos())
    }
}

impl<'de> Deserialize<'de> for PerByte {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ns = f64::deserialize(deserializer)?;
        match ns >= 0.0 {
            true => Ok(Self { femtoseconds: (ns * FEMTO as f64).round() as u64 }),
            false => Err(D::Error::custom(format!("{ns} is not a time for a byte"))),
        }
    }
}

/// A network under LogGOPS (Hoefler, Schneider & Lumsdaine, "LogGOPSim", LSAP 2010, §2): what a message costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// L: from the sender's CPU to the receiver's, first byte, in nanoseconds.
    #[serde(rename = "latency_ns")]
    pub latency: u64,
    /// o: CPU time of each send and of each arrival, in nanoseconds.
    #[serde(rename = "overhead_ns")]
    pub overhead: u64,
    /// g: from one message's start to the next's on a network interface, in nanoseconds.
    #[serde(rename = "gap_ns")]
    pub gap: u64,
    /// G: time of each further byte on the wire, in nanoseconds per byte.
    #[serde(rename = "gap_per_byte_ns")]
    #[schemars(with = "f64")]
    pub gap_per_byte: PerByte,
    /// O: CPU time of each further byte, in nanoseconds per byte.
    #[serde(rename = "overhead_per_byte_ns")]
    #[schemars(with = "f64")]
    pub overhead_per_byte: PerByte,
    /// S: messages of more bytes are sent by rendezvous.
    #[serde(rename = "eager_limit_bytes")]
    pub eager_limit: u64,
}

impl Network {
    /// Time from the beginning of a send of `bytes` to the end of a receive that waits for it, in nanoseconds; saturates. Further bytes go
    /// through CPUs and wire at the same time. Above S, the request and the answer of the rendezvous come first.
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        let further = self.gap_per_byte.max(self.overhead_per_byte).time(bytes.saturating_sub(1));
        let first = self.overhead.saturating_mul(2).saturating_add(self.latency);
        let once = first.saturating_add(further);
        if bytes > self.eager_limit {
            let handshake = self.overhead.saturating_add(self.latency).saturating_mul(2);
            return once.saturating_add(handshake);
        }
        once
    }
}

impl Default for Network {
    /// LogGOPSim's own defaults: L=2500, o=1500, g=1000, G=6, O=0, S=65535.
    fn default() -> Self {
        Self {
            latency: 2500,
            overhead: 1500,
            gap: 1000,
            gap_per_byte: PerByte::from_nanos(6),
            overhead_per_byte: PerByte::default(),
            eager_limit: 65535,
        }
    }
}

/// The parameters for messages of a range of sizes. Few networks fit one line, because protocols change with the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeRange {
    /// The smallest size, in bytes.
    pub from_bytes: u64,
    /// The largest size, in bytes.
    pub to_bytes: u64,
    /// Its parameters; S is the same for all sizes.
    #[serde(flatten)]
    pub network: Network,
}

impl SizeRange {
    /// The range for messages of `bytes`, if there is one. An empty message costs what one of a byte costs.
    pub fn find(ranges: &[Self], bytes: u64) -> Option<&Self> {
        let bytes = bytes.max(1);
        ranges.iter().find(|range| (range.from_bytes..=range.to_bytes).contains(&bytes))
    }
}

/// The network among near ranks, such as those of a node: of each `ranks` consecutive ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    /// Number of consecutive ranks that share it.
    pub ranks: u32,
    /// Its parameters.
    #[serde(flatten)]
    pub network: Network,
    /// Its parameters for ranges of sizes, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<SizeRange>,
}

impl Level {
    /// The index of the first level that two ranks share; `None` if they share none.
    pub fn of_pair(levels: &[Self], a: u32, b: u32) -> Option<usize> {
        levels.iter().position(|level| a / level.ranks.max(1) == b / level.ranks.max(1))
    }
}

/// A network and its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedNetwork {
    /// The name of the preset or of the file, if it has one.
    pub preset: Option<String>,
    /// Its parameters.
    #[serde(flatten)]
    pub network: Network,
    /// Parameters for ranges of sizes, if there are any; `network` holds for all other sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<SizeRange>,
    /// The networks among near ranks, the nearest first; `network` holds between all others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
}

impl NamedNetwork {
    /// The parameters for messages of `bytes` between two ranks.
    pub fn between(&self, a: u32, b: u32, bytes: u64) -> &Network {
        let near = Level::of_pair(&self.levels, a, b).map(|level| &self.levels[level]);
        let far = (&self.network, &self.ranges);
        let (network, ranges) = near.map_or(far, |level| (&level.network, &level.ranges));
        SizeRange::find(ranges, bytes).map_or(network, |range| &range.network)
    }

    /// The least CPU overhead of a message of any size between any two ranks, in nanoseconds.
    pub fn least_overhead(&self) -> u64 {
        let near = self.levels.iter().map(|level| (&level.network, &level.ranges));
        let all = std::iter::once((&self.network, &self.ranges)).chain(near);
        let sized = |(network, ranges): (&Network, &Vec<SizeRange>)| {
            ranges.iter().map(|range| range.network.overhead).fold(network.overhead, u64::min)
        };
        all.map(sized).fold(u64::MAX, u64::min)
    }

    /// The same network with another eager limit, in bytes, at every level.
    #[must_use]
    pub fn with_eager_limit(&self, bytes: u64) -> Self {
        let mut other = self.clone();
        other.network.eager_limit = bytes;
        let near = other.levels.iter_mut().flat_map(|level| {
            let ranges = level.ranges.iter_mut().map(|range| &mut range.network);
            ranges.chain(std::iter::once(&mut level.network))
        });
        let far = other.ranges.iter_mut().map(|range| &mut range.network);
        far.chain(near).for_each(|network| network.eager_limit = bytes);
        other
    }
}

impl From<Network> for NamedNetwork {
    /// A network without a name.
    fn from(network: Network) -> Self {
        Self { preset: None, network, ranges: Vec::new(), levels: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
