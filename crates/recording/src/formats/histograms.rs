//! Histograms of other tools: number of occurrences by length, without order and starts.

mod cyclictest;
mod hdr;
mod json;
mod oslat;
mod rtla;
mod table;

use std::collections::BTreeMap;

pub(super) use self::cyclictest::{read_text as read_cyclictest, read_verbose as read_cyclictest_verbose};
pub(super) use self::hdr::{read as read_hdr, write as write_hdr};
pub(super) use self::json::read as read_json;
pub(super) use self::oslat::read as read_oslat;
pub(super) use self::rtla::{read_hist as read_rtla_hist, read_top as read_rtla_top};
pub(super) use self::table::{read as read_table, write as write_table};
use super::content::{Content, Rows};
use crate::{Bucket, Cpu, Histogram, HistogramKind, Method, Nanos, Span, Warning};

/// ns in a us.
const US: u64 = 1_000;

/// Identifies a histogram of a CPU: the tool's thread, and what it timed.
pub(super) type Series = (Cpu, u32, HistogramKind);

/// Maximum number of buckets: a real histogram has fewer, and a small packed file could claim any number.
const MOST_BUCKETS: usize = 1 << 21;

type Ranges = BTreeMap<(u64, u64), u64>;

/// Collects buckets while they are read.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Number of occurrences of each range of lengths, in ns.
    buckets: BTreeMap<Series, Ranges>,
    /// How long each CPU was observed, if it is known.
    watched: BTreeMap<Cpu, Nanos>,
    /// Number of ranges in all.
    held: usize,
    pub warnings: Vec<Warning>,
}

impl Counts {
    /// Adds `count` times of `from` to `to` ns. A count of 0 adds no bucket, but records the CPU.
    pub fn add(&mut self, series: Series, from: u64, to: u64, count: u64) -> Result<(), String> {
        let buckets = self.buckets.entry(series).or_default();
        if count > 0 {
            let before = buckets.len();
            let all = buckets.entry((from, to.max(from))).or_default();
            *all = all.checked_add(count).ok_or("its counts are beyond what 64 bits hold")?;
            self.held += buckets.len() - before;
            if self.held > MOST_BUCKETS {
                return Err(format!("it has more than {MOST_BUCKETS} buckets"));
            }
        }
        Ok(())
    }

    /// Drops a series that was none.
    pub fn forget(&mut self, series: Series) {
        self.held -= self.buckets.remove(&series).map_or(0, |buckets| buckets.len());
    }

    /// Adds times of `number` whole units: the bucket holds all times below the next unit.
    pub fn add_units(&mut self, series: Series, number: u64, unit: u64, count: u64) -> Result<(), String> {
        let from = number.checked_mul(unit).ok_or("a bucket begins beyond all time")?;
        self.add(series, from, from.saturating_add(unit - 1), count)
    }

    /// Adds `count` times of `from` ns or more. The longest of them is known to be `longest` ns or a little more, up to `to`.
    pub fn add_overflow(
        &mut self,
        series: Series,
        from: u64,
        longest: [u64; 2],
        count: u64,
    ) -> Result<(), String> {
        let [least, most] = longest;
        if count == 0 {
            return Ok(());
        }
        if most <= from {
            return self.add(series, from, from, count);
        }
        self.add(series, from, most, count - 1)?;
        self.add(series, least.max(from), most, 1)
    }

    pub fn count(&self, series: Series) -> u64 {
        self.buckets
            .get(&series)
            .map_or(0, |b| b.values().fold(0, |sum: u64, count| sum.saturating_add(*count)))
    }

    pub fn watch(&mut self, cpu: Cpu, for_ns: Nanos) {
        self.watched.insert(cpu, for_ns);
    }

    /// Converts to a recording's content; `note` names the origin.
    pub fn content(self, note: &str) -> Content {
        let mut all: BTreeMap<Cpu, Vec<Bucket>> = BTreeMap::new();
        for ((cpu, thread, kind), buckets) in self.buckets {
            let bucket = |((from, to), count): ((u64, u64), u64)| {
                let [from, to] = [from, to].map(Nanos::from_nanos);
                Bucket { thread, kind, from, to, count }
            };
            all.entry(cpu).or_default().extend(buckets.into_iter().map(bucket));
        }
        let span = |cpu: Cpu| Span {
            start: Nanos::ZERO,
            end: self.watched.get(&cpu).copied().unwrap_or(Nanos::ZERO),
        };
        let rows = all.into_iter().map(|(cpu, buckets)| (Histogram { cpu, buckets }, span(cpu))).collect();
        let mut content = Content::new(Method::Histogram, note, Rows::Histograms(rows));
        content.manifest.unordered = true;
        content.manifest.warnings = self.warnings;
        content
    }
}
