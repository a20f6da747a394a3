//! The parameters of the LogGOPS model.

/// Nanoseconds per byte, kept in whole femtoseconds so that 200 Gb/s (0.04 ns) and far more can be said exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerByte {
    femtoseconds: u64,
}

/// Femtoseconds in a nanosecond.
const FEMTO: u64 = 1_000_000;

impl PerByte {
    /// So many whole nanoseconds for each byte; saturates above 18 seconds.
    pub fn from_nanos(ns: u64) -> Self {
        Self { femtoseconds: ns.saturating_mul(FEMTO) }
    }

    /// So many femtoseconds for each byte.
    pub fn from_femtoseconds(femtoseconds: u64) -> Self {
        Self { femtoseconds }
    }

    /// The whole nanoseconds for each byte, if it is so many.
    pub fn whole_nanos(self) -> Option<u64> {
        self.femtoseconds.is_multiple_of(FEMTO).then_some(self.femtoseconds / FEMTO)
    }

    /// Nanoseconds for each byte.
    pub fn as_nanos(self) -> f64 {
        self.femtoseconds as f64 / FEMTO as f64
    }

    /// What `bytes` take, to the nearest nanosecond; saturates.
    pub fn of(self, bytes: u64) -> u64 {
        let fs = u128::from(self.femtoseconds) * u128::from(bytes) + u128::from(FEMTO / 2);
        u64::try_from(fs / u128::from(FEMTO)).unwrap_or(u64::MAX)
    }
}

/// A network under LogGOPS (Hoefler, Schneider & Lumsdaine, "LogGOPSim", LSAP 2010, §2): what a message costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    /// L: from the sender's CPU to the receiver's, first byte, in nanoseconds.
    pub latency: u64,
    /// o: CPU time of each send and of each arrival, in nanoseconds.
    pub overhead: u64,
    /// g: from one message's start to the next's on a network interface, in nanoseconds.
    pub gap: u64,
    /// G: time of each further byte on the wire.
    pub gap_per_byte: PerByte,
    /// O: CPU time of each further byte.
    pub overhead_per_byte: PerByte,
    /// S: messages of more bytes are sent by rendezvous.
    pub eager_limit: u64,
}

impl Default for Net {
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
