//! A network in a file, as `--net FILE.toml` reads it.
//!
//! ```toml
//! L_ns = 157
//! o_ns = 46
//! g_ns = 87
//! G_ns_per_byte = 0.055
//! O_ns_per_byte = 0.02
//! S_bytes = 256
//! source = "quell bench loggp, Open MPI 4.1.4"
//! hosts = ["node1", "node2"]
//! date = "2026-11-21"
//!
//! [[range]]          # optional: parameters that fit messages of these sizes better
//! from_bytes = 1
//! to_bytes = 256
//! L_ns = 157
//! o_ns = 46
//! g_ns = 87
//! G_ns_per_byte = 0.4
//! O_ns_per_byte = 0.02
//!
//! [[level]]          # optional: the network among near ranks, such as those of a node, the nearest first
//! ranks = 64         # each 64 consecutive ranks are near
//! L_ns = 80
//! o_ns = 40
//! g_ns = 60
//! G_ns_per_byte = 0.05
//! O_ns_per_byte = 0.02
//! S_bytes = 256
//! ```
//!
//! A level may have ranges of its own, as `[[level.range]]`.

use quell_sim::loggops::{Level, MOST_LEVELS, Network, PerByte, SizeRange};
use serde::{Deserialize, Serialize};

use super::{Document, Kind};

/// Maximum time, in ns: times of a run end at 146 years.
const MOST_NS: f64 = (1u64 << 62) as f64;
/// Maximum time per byte, in ns: one byte per second.
const MOST_NS_PER_BYTE: f64 = 1e9;
const MOST_BYTES: u64 = 1 << 62;
const MOST_RANGES: usize = 1024;

/// A network from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Parameters for messages of all sizes.
    pub net: Network,
    /// Parameters for ranges of sizes, in order.
    pub ranges: Vec<SizeRange>,
    /// The networks among near ranks, the nearest first.
    pub levels: Vec<Level>,
    /// Origin of the numbers.
    pub source: String,
    /// The hosts between which they were measured.
    pub hosts: Vec<String>,
    /// The date of the measurement, as in `2026-11-21`.
    pub date: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "L_ns")]
    latency: f64,
    #[serde(rename = "o_ns")]
    overhead: f64,
    #[serde(rename = "g_ns")]
    gap: f64,
    #[serde(rename = "G_ns_per_byte")]
    gap_per_byte: f64,
    #[serde(rename = "O_ns_per_byte")]
    overhead_per_byte: f64,
    #[serde(rename = "S_bytes")]
    eager_limit: u64,
    #[serde(default)]
    source: String,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    date: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    range: Vec<WrittenRange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    level: Vec<WrittenLevel>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLevel {
    ranks: u32,
    #[serde(rename = "L_ns")]
    latency: f64,
    #[serde(rename = "o_ns")]
    overhead: f64,
    #[serde(rename = "g_ns")]
    gap: f64,
    #[serde(rename = "G_ns_per_byte")]
    gap_per_byte: f64,
    #[serde(rename = "O_ns_per_byte")]
    overhead_per_byte: f64,
    #[serde(rename = "S_bytes")]
    eager_limit: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    range: Vec<WrittenRange>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRange {
    from_bytes: u64,
    to_bytes: u64,
    #[serde(rename = "L_ns")]
    latency: f64,
    #[serde(rename = "o_ns")]
    overhead: f64,
    #[serde(rename = "g_ns")]
    gap: f64,
    #[serde(rename = "G_ns_per_byte")]
    gap_per_byte: f64,
    #[serde(rename = "O_ns_per_byte")]
    overhead_per_byte: f64,
}

fn within(name: &str, value: f64, most: f64) -> Result<f64, String> {
    match value {
        value if value.is_nan() => Err(format!("{name} is not a number")),
        value if value.is_sign_negative() && value != 0.0 => Err(format!("{name} = {value} is below 0")),
        value if value > most => Err(format!("{name} = {value} is more than {most:e}")),
        value => Ok(value.abs()),
    }
}

/// Checks and converts parameters: `times` are L, o and g; `rates` are G and O.
fn checked(times: [f64; 3], rates: [f64; 2], eager_limit: u64) -> Result<Network, String> {
    let time = |name: &str, ns: f64| Ok::<_, String>(within(name, ns, MOST_NS)?.round() as u64);
    let rate = |name: &str, ns: f64| {
        let ns = within(name, ns, MOST_NS_PER_BYTE)?;
        Ok::<_, String>(PerByte::from_femtoseconds((ns * 1e6).round() as u64))
    };
    if eager_limit > MOST_BYTES {
        return Err(format!("S_bytes = {eager_limit} is more than {MOST_BYTES}"));
    }
    Ok(Network {
        latency: time("L_ns", times[0])?,
        overhead: time("o_ns", times[1])?,
        gap: time("g_ns", times[2])?,
        gap_per_byte: rate("G_ns_per_byte", rates[0])?,
        overhead_per_byte: rate("O_ns_per_byte", rates[1])?,
        eager_limit,
    })
}

impl WrittenRange {
    fn check(&self, eager_limit: u64) -> Result<SizeRange, String> {
        let times = [self.latency, self.overhead, self.gap];
        let net = checked(times, [self.gap_per_byte, self.overhead_per_byte], eager_limit)?;
        if self.from_bytes > self.to_bytes {
            return Err(format!(
                "from_bytes = {} is more than to_bytes = {}",
                self.from_bytes, self.to_bytes
            ));
        }
        Ok(SizeRange { from_bytes: self.from_bytes, to_bytes: self.to_bytes, network: net })
    }

    fn from_range(range: &SizeRange) -> Self {
        Self {
            from_bytes: range.from_bytes,
            to_bytes: range.to_bytes,
            latency: range.network.latency as f64,
            overhead: range.network.overhead as f64,
            gap: range.network.gap as f64,
            gap_per_byte: range.network.gap_per_byte.as_nanos(),
            overhead_per_byte: range.network.overhead_per_byte.as_nanos(),
        }
    }
}

/// Checks and converts ranges of sizes.
fn checked_ranges(written: &[WrittenRange], eager_limit: u64) -> Result<Vec<SizeRange>, String> {
    if written.len() > MOST_RANGES {
        return Err(format!("{} ranges are more than {MOST_RANGES}", written.len()));
    }
    let mut ranges: Vec<SizeRange> = Vec::new();
    for (index, range) in written.iter().enumerate() {
        let place = |reason: String| format!("range {}: {reason}", index + 1);
        let range = range.check(eager_limit).map_err(place)?;
        if let Some(before) = ranges.last().filter(|before| before.to_bytes >= range.from_bytes) {
            return Err(place(format!(
                "from_bytes = {} is not above the to_bytes = {} before it",
                range.from_bytes, before.to_bytes
            )));
        }
        ranges.push(range);
    }
    Ok(ranges)
}

/// Checks that each level is made of whole groups of the level before it.
///
/// # Errors
/// Which level is not.
pub fn check_levels(levels: &[Level]) -> Result<(), String> {
    if levels.len() > MOST_LEVELS {
        return Err(format!("{} levels are more than {MOST_LEVELS}", levels.len()));
    }
    let mut before = 1;
    for ranks in levels.iter().map(|level| level.ranks) {
        match ranks {
            0 | 1 => return Err(format!("a level needs 2 or more ranks, not {ranks}")),
            ranks if ranks <= before || ranks % before != 0 => {
                return Err(format!("a level of {ranks} ranks is not made of whole groups of {before}"));
            }
            ranks => before = ranks,
        }
    }
    Ok(())
}

impl WrittenLevel {
    fn check(&self) -> Result<Level, String> {
        let times = [self.latency, self.overhead, self.gap];
        let network = checked(times, [self.gap_per_byte, self.overhead_per_byte], self.eager_limit)?;
        let ranges = checked_ranges(&self.range, self.eager_limit)?;
        Ok(Level { ranks: self.ranks, network, ranges })
    }

    fn from_level(level: &Level) -> Self {
        let net = &level.network;
        Self {
            ranks: level.ranks,
            latency: net.latency as f64,
            overhead: net.overhead as f64,
            gap: net.gap as f64,
            gap_per_byte: net.gap_per_byte.as_nanos(),
            overhead_per_byte: net.overhead_per_byte.as_nanos(),
            eager_limit: net.eager_limit,
            range: level.ranges.iter().map(WrittenRange::from_range).collect(),
        }
    }
}

impl Preset {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What is missing, unknown or out of range, and where.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let written: Written =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let times = [written.latency, written.overhead, written.gap];
        let net = checked(times, [written.gap_per_byte, written.overhead_per_byte], written.eager_limit)?;
        let ranges = checked_ranges(&written.range, written.eager_limit)?;
        let place = |(index, level): (usize, &WrittenLevel)| {
            level.check().map_err(|reason| format!("level {}: {reason}", index + 1))
        };
        let levels = written.level.iter().enumerate().map(place).collect::<Result<Vec<_>, _>>()?;
        check_levels(&levels)?;
        let Written { source, hosts, date, .. } = written;
        Ok(Self { net, ranges, levels, source, hosts, date })
    }

    /// The file's text.
    ///
    /// # Errors
    /// If TOML cannot represent a value.
    pub fn to_toml(&self) -> Result<String, String> {
        let net = &self.net;
        let written = Written {
            latency: net.latency as f64,
            overhead: net.overhead as f64,
            gap: net.gap as f64,
            gap_per_byte: net.gap_per_byte.as_nanos(),
            overhead_per_byte: net.overhead_per_byte.as_nanos(),
            eager_limit: net.eager_limit,
            source: self.source.clone(),
            hosts: self.hosts.clone(),
            date: self.date.clone(),
            range: self.ranges.iter().map(WrittenRange::from_range).collect(),
            level: self.levels.iter().map(WrittenLevel::from_level).collect(),
        };
        toml::to_string(&written).map_err(|error| error.to_string())
    }

    /// The measurements of one kind as a file. `date` is as in `2026-11-21`.
    pub fn from_document(document: &Document, kind: &Kind, date: &str) -> Self {
        let eager_limit = kind.eager_limit_bytes.value as u64;
        let mut from_bytes = 1;
        let mut ranges = Vec::new();
        for (index, range) in kind.ranges.iter().enumerate() {
            // Between measured sizes, a range extends to S, or to the next range.
            let next = kind.ranges.get(index + 1).map(|next| next.from_bytes);
            let limit = (range.to_bytes..next.unwrap_or(range.to_bytes)).contains(&eager_limit);
            let to_bytes = if limit { eager_limit } else { next.map_or(range.to_bytes, |next| next - 1) };
            ranges.push(SizeRange { from_bytes, to_bytes, network: range.net(eager_limit) });
            from_bytes = to_bytes + 1;
        }
        Self {
            net: kind.parameters.net(eager_limit),
            ranges,
            levels: Vec::new(),
            source: format!("quell bench loggp, {}-node, {}", kind.kind.word(), document.mpi),
            hosts: kind.hosts.clone(),
            date: date.to_owned(),
        }
    }
}
