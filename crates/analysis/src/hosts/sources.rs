//! Sources summed over hosts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::attribution::SourceRow;

/// One source on all hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceOverHosts {
    /// Its name, which is a process's or a driver's own: hostile input.
    pub source: String,
    /// Hosts on which it was seen.
    pub hosts: u64,
    /// Intervals.
    pub count: u64,
    /// All their time.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The part of it that lies in detours; null where no host recorded any.
    pub in_detours_ns: Option<u64>,
    /// The host on which it took most.
    pub worst_host: String,
    /// The time that it took there.
    pub worst_host_ns: u64,
}

/// Sums the sources of hosts, each with its recording's name.
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
