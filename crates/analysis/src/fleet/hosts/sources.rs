//! Sources summed over hosts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use quell_recording::columns::{Columns, describe};
use quell_recording::{Recording, Source, SourceKind};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;

use crate::attribution::{Class, SourceRow};

/// One source on all hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema, Columns)]
#[schemars(transform = describe::<Self>)]
pub struct SourceOverHosts {
    /// Its name, which a process or a driver chose: untrusted text.
    #[column(name)]
    pub source: String,
    /// Number of hosts on which it was seen.
    #[column]
    pub hosts: u64,
    /// Number of intervals.
    #[column]
    pub count: u64,
    /// Sum of their times.
    #[column(title = "total")]
    pub total_ns: u64,
    /// The part of that time that lies in detours; null if no host recorded detours.
    #[column(title = "in detours")]
    pub in_detours_ns: Option<u64>,
    /// The longest interval.
    #[column(title = "longest")]
    pub max_ns: u64,
    /// The host on which it took most time.
    #[column(title = "worst host", number)]
    pub worst_host: String,
    /// The time that it took there.
    #[column(title = "time on it")]
    pub worst_host_ns: u64,
}

/// Sums the sources over hosts, each with its recording's name.
pub(super) fn over_hosts(hosts: &[(&str, &[SourceRow])]) -> Vec<SourceOverHosts> {
    let mut sums: BTreeMap<&str, SourceOverHosts> = BTreeMap::new();
    for (host, rows) in hosts {
        for row in *rows {
            let sum = sums.entry(&row.source).or_insert_with(|| SourceOverHosts {
                source: row.source.clone(),
                hosts: 0,
                count: 0,
                total_ns: 0,
                max_ns: 0,
                in_detours_ns: None,
                worst_host: String::new(),
                worst_host_ns: 0,
            });
            sum.hosts += 1;
            sum.count = sum.count.saturating_add(row.count);
            sum.total_ns = sum.total_ns.saturating_add(row.total_ns);
            sum.max_ns = sum.max_ns.max(row.max_ns);
            if let Some(ns) = row.in_detours_ns {
                sum.in_detours_ns = Some(sum.in_detours_ns.unwrap_or(0).saturating_add(ns));
            }
            if sum.worst_host.is_empty() || row.total_ns > sum.worst_host_ns {
                (sum.worst_host, sum.worst_host_ns) = ((*host).to_owned(), row.total_ns);
            }
        }
    }
    let mut sums: Vec<SourceOverHosts> = sums.into_values().collect();
    sums.sort_by_key(|sum| Reverse(sum.total_ns));
    sums
}

/// The sources of a recording from its intervals alone: without join, periods and causes.
pub(super) fn plain(recording: &Recording) -> Vec<SourceRow> {
    let own_pid = recording.manifest.sources.as_ref().and_then(|facts| facts.own_pid);
    let mut rows: FxHashMap<(&Source, bool), SourceRow> = FxHashMap::default();
    for one in recording.intervals.iter().flat_map(|side| &side.intervals) {
        let own = one.source.kind() == SourceKind::Task && Some(one.pid) == own_pid;
        let row = rows.entry((&one.source, own)).or_insert_with(|| empty(&one.source, own));
        let ns = one.net.as_nanos();
        row.count += 1;
        row.total_ns = row.total_ns.saturating_add(ns);
        row.min_ns = row.min_ns.min(ns);
        row.max_ns = row.max_ns.max(ns);
        row.mean_ns = row.total_ns as f64 / row.count as f64;
    }
    let mut rows: Vec<SourceRow> = rows.into_values().collect();
    rows.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.source.cmp(&b.source)));
    rows
}

fn empty(source: &Source, own: bool) -> SourceRow {
    SourceRow {
        source: source.to_string(),
        class: Class::from_source(source, own),
        own,
        pid: None,
        count: 0,
        total_ns: 0,
        min_ns: u64::MAX,
        max_ns: 0,
        mean_ns: 0.0,
        period_ns: None,
        in_detours_ns: None,
        details: Vec::new(),
        causes: Vec::new(),
    }
}
