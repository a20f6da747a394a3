//! Times per size and round, from rows of samples.

use std::collections::{BTreeMap, BTreeSet};

use quell_recording::columns::{AsValue, Value, ValueKind};
use quell_recording::rank_file::{RankFile, Series};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::{ascending, type7_nearest};

/// Whether messages stayed on their host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KindName {
    /// Both ranks on one host.
    Intra,
    /// The ranks on two hosts.
    Inter,
}

impl KindName {
    /// Its name in files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Intra => "intra",
            Self::Inter => "inter",
        }
    }
}

/// A figure with the 5th and 95th percentile over resampled rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

impl AsValue for Estimate {
    const KIND: ValueKind = ValueKind::F64;

    fn value(&self) -> Value {
        Value::F64(self.value)
    }
}

/// The quantile of times that is used: a low one, because noise only adds to a time.
const QUARTILE: f64 = 0.25;
/// Maximum number of repeats of a trip or burst; a larger count is not from our benchmark.
const MOST: u64 = 1 << 20;

/// Times of a message of one size, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub bytes: u64,
    /// PRTT(1, 0, s) / 2.
    pub half: f64,
    /// (PRTT(n, 0, s) − PRTT(1, 0, s)) / (n − 1).
    pub interval: f64,
    /// Time of a send to a rank that computes.
    pub send: f64,
    /// Time of a receive whose message has arrived.
    pub receive: f64,
    /// The paper's o_s.
    pub paced_send: f64,
}

/// Times of one check, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Checked {
    pub bytes: u64,
    /// Half a round trip, from `count` in a row.
    pub half: f64,
    /// One scatter, from `count` in a row, including its share of the answer.
    pub scatter: f64,
}

/// The times of one kind of network.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub hosts: Vec<String>,
    pub partner: u64,
    /// For each round its times by size: the trip, the burst, the paced burst, its delays, a send, a receive.
    by_round: Vec<BTreeMap<u64, [f64; 6]>>,
    /// Number of messages of a burst.
    messages: u64,
    /// The checks of all rounds, in order of size.
    pub checked: Vec<Checked>,
    /// Number of round trips, or of scatters, in a row.
    pub count: u64,
    /// Number of ranks that a scatter sends to.
    pub receivers: u64,
}

/// All series with a name. Each round opens a new one.
fn named(file: &RankFile, kind: KindName, what: &str) -> Vec<Series> {
    let name = format!("loggp {}{what}", kind.word());
    file.series.iter().filter(|series| series.name == name).cloned().collect()
}

/// The rows of the requested columns; none if a column is missing.
fn rows<const N: usize>(series: &Series, columns: [&str; N]) -> Vec<[u64; N]> {
    let mut rows = vec![[0; N]; series.len()];
    for (index, name) in columns.into_iter().enumerate() {
        let Some(values) = series.column(name) else { return Vec::new() };
        rows.iter_mut().zip(values).for_each(|(row, value)| row[index] = value);
    }
    rows
}

fn quartile(values: impl Iterator<Item = f64>) -> f64 {
    type7_nearest(&ascending(values), QUARTILE).unwrap_or(0.0)
}

impl Samples {
    /// The samples of one kind; `None` if there are none.
    pub fn from_file(file: &RankFile, kind: KindName) -> Option<Self> {
        let series = named(file, kind, "");
        let mut samples = Self::default();
        for series in &series {
            let (messages, late) = (series.number("messages")?, series.number("late_messages")?);
            samples.add_rounds(series, messages, late);
            samples.partner = series.number("partner").unwrap_or(samples.partner);
        }
        samples.by_round.retain(|round| !round.is_empty());
        if samples.by_round.is_empty() {
            return None;
        }
        let theirs = series.iter().filter_map(|series| series.facts.get("partner_host"));
        samples.hosts = file.facts.get("host").into_iter().chain(theirs.take(1)).cloned().collect();
        samples.hosts.dedup();
        samples.add_checks(&named(file, kind, " check"));
        Some(samples)
    }

    fn add_rounds(&mut self, series: &Series, messages: u64, late: u64) {
        if !(2..=MOST).contains(&messages) || !(1..=MOST).contains(&late) {
            return;
        }
        let columns = [
            "round",
            "bytes",
            "trips",
            "trips_ns",
            "burst_ns",
            "paced_ns",
            "delays_ns",
            "sends_ns",
            "receives_ns",
        ];
        let mut cells: BTreeMap<(u64, u64), Vec<[u64; 9]>> = BTreeMap::new();
        for row in rows(series, columns) {
            if row[1] > 0 && (1..=MOST).contains(&row[2]) {
                cells.entry((row[0], row[1])).or_default().push(row);
            }
        }
        self.messages = messages;
        let mut of_round: BTreeMap<u64, BTreeMap<u64, [f64; 6]>> = BTreeMap::new();
        for ((round, bytes), rows) in cells {
            let of = |column: usize| quartile(rows.iter().map(|row| row[column] as f64));
            let trip = quartile(rows.iter().map(|row| row[3] as f64 / row[2] as f64));
            let times = [trip, of(4), of(5), of(6), of(7) / late as f64, of(8) / late as f64];
            of_round.entry(round).or_default().insert(bytes, times);
        }
        self.by_round.extend(of_round.into_values());
    }

    fn add_checks(&mut self, series: &[Series]) {
        let Some(first) = series.first() else { return };
        self.count = first.number("count").unwrap_or(0);
        self.receivers = first.number("receivers").unwrap_or(0);
        if !(1..=MOST).contains(&self.count) || self.receivers == 0 {
            return;
        }
        let rows: Vec<[u64; 4]> = series
            .iter()
            .flat_map(|series| rows(series, ["round", "bytes", "pingpong_ns", "scatter_ns"]))
            .collect();
        let rounds: BTreeSet<u64> = rows.iter().map(|row| row[0]).collect();
        let sizes: BTreeSet<u64> = rows.iter().map(|row| row[1]).collect();
        for bytes in sizes {
            let of_round = |round: u64, column: usize| {
                let here = rows.iter().filter(|row| row[0] == round && row[1] == bytes);
                type7_nearest(&ascending(here.map(|row| row[column] as f64)), QUARTILE)
            };
            let of = |column| quartile(rounds.iter().filter_map(|&round| of_round(round, column)));
            let count = self.count as f64;
            self.checked.push(Checked { bytes, half: of(2) / count / 2.0, scatter: of(3) / count });
        }
    }

    pub fn rounds(&self) -> usize {
        self.by_round.len()
    }

    /// The points over these rounds, in order of size. Differences are computed last, because noise only lengthens the times themselves.
    pub fn points(&self, rounds: impl Iterator<Item = usize>) -> Vec<Point> {
        let mut by_size: BTreeMap<u64, Vec<[f64; 6]>> = BTreeMap::new();
        for (&bytes, &times) in rounds.filter_map(|round| self.by_round.get(round)).flatten() {
            by_size.entry(bytes).or_default().push(times);
        }
        let apart = self.messages.saturating_sub(1).max(1) as f64;
        let together = |(bytes, times): (u64, Vec<[f64; 6]>)| {
            let of = |column: usize| quartile(times.iter().map(|times| times[column]));
            let trip = of(0);
            Point {
                bytes,
                half: (trip / 2.0).max(1.0),
                interval: ((of(1) - trip) / apart).max(1.0),
                send: of(4),
                receive: of(5),
                paced_send: ((of(2) - trip - of(3)) / apart).max(0.0),
            }
        };
        by_size.into_iter().map(together).collect()
    }
}

/// The size above which sends wait for their receives.
///
/// A send to a rank that posts its receive late returns early if it is eager. Each round narrows down the largest eager size.
#[derive(Clone, Debug, Default)]
pub(super) struct Threshold {
    /// For each round, the largest eager message.
    eager: Vec<f64>,
    /// Whether a larger message waited, in most rounds.
    found: bool,
}

impl Threshold {
    pub fn from_file(file: &RankFile, kind: KindName) -> Self {
        let series = named(file, kind, " threshold");
        let rows = series.iter().flat_map(|series| rows(series, ["round", "bytes", "send_ns", "late_ns"]));
        let mut rounds: BTreeMap<u64, (u64, bool)> = BTreeMap::new();
        for [round, bytes, send, late] in rows {
            let (eager, waited) = rounds.entry(round).or_default();
            if send > late / 2 {
                *waited = true;
            } else {
                *eager = bytes.max(*eager);
            }
        }
        let waited = rounds.values().filter(|(_, waited)| *waited).count();
        let eager = rounds.values().map(|(eager, _)| *eager as f64).collect();
        Self { eager, found: 2 * waited > rounds.len() }
    }

    pub fn estimate(&self) -> Estimate {
        let eager = ascending(self.eager.iter().copied());
        let at = |part| type7_nearest(&eager, part).unwrap_or(0.0);
        Estimate { value: at(0.5), low: at(0.0), high: at(1.0) }
    }

    pub fn bytes(&self) -> u64 {
        self.estimate().value as u64
    }

    pub fn found(&self) -> bool {
        self.found
    }
}
