//! Recordings of many hosts: which are noisy, which stand out, and which sources take most over all of them.

mod row;
mod sources;
mod typical;

use quell_recording::Recording;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Fleet, Unread};
use crate::Warning;
use crate::attribution::{SourceRow, attribution};

pub use row::{Binding, Events, HostRow, HostSource, WorstCpu};
pub use sources::SourceOverHosts;
pub use typical::{FEWEST, HostFigure, StandsOut, Typical};

/// The schema's name and version.
pub const SCHEMA: &str = "quell.show-hosts/2";

/// The output of `show DIR --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Hosts {
    /// `quell.show-hosts/2`.
    pub schema: &'static str,
    /// The folder of the recordings.
    pub folder: String,
    /// One entry per recording, the noisiest first; those whose noise is not known last.
    pub hosts: Vec<HostRow>,
    /// The typical values, for each method of recording.
    pub typical: Vec<Typical>,
    /// One entry per source, summed over the hosts, most time first; null if no host's sources are known.
    pub sources: Option<Vec<SourceOverHosts>>,
    /// Which hosts are outliers, and by which source; null if there are too few hosts, or the analysis was not requested.
    pub fleet: Option<Fleet>,
    /// Recordings that could not be read.
    pub unread: Vec<Unread>,
    /// Warnings for the reader of the figures.
    pub warnings: Vec<Warning>,
}

/// The summary of one recording, whose rows need not stay in memory.
#[derive(Clone, Debug)]
pub struct OneHost {
    row: HostRow,
    sources: Option<Vec<SourceRow>>,
}

/// Summarises one recording.
pub fn one_host(recording: &Recording) -> OneHost {
    let sources = attribution(recording).sources.map(|rows| row::sum_over_cpus(recording, rows));
    OneHost { row: row::row(recording, sources.as_deref()), sources }
}

/// Summarises one of very many recordings. Sources are by all of their time, because their time in detours would need a join.
pub fn one_of_many(recording: &Recording) -> OneHost {
    let known = recording.manifest.sources.as_ref().is_some_and(|facts| facts.unknown_because.is_none());
    let sources = known.then(|| row::sum_over_cpus(recording, sources::plain(recording)));
    OneHost { row: row::row(recording, sources.as_deref()), sources }
}

/// Combines hosts.
pub fn hosts(folder: String, hosts: Vec<OneHost>, unread: Vec<Unread>) -> Hosts {
    let known: Vec<(&str, &[SourceRow])> =
        hosts.iter().filter_map(|host| Some((host.row.name.as_str(), host.sources.as_deref()?))).collect();
    let sources = (!known.is_empty()).then(|| sources::over_hosts(&known));
    let mut warnings = Vec::new();
    if !known.is_empty() && known.len() < hosts.len() {
        let without = hosts.len() - known.len();
        warnings.push(Warning::SourcesUnknown { recordings: without as u64, of: hosts.len() as u64 });
    }
    let mut rows: Vec<HostRow> = hosts.into_iter().map(|host| host.row).collect();
    let typical = typical::mark(&mut rows);
    if typical.len() > 1 {
        warnings.push(Warning::SeveralMethods);
    }
    let noise = |row: &HostRow| row.overhead_percent.unwrap_or(-1.0);
    rows.sort_by(|a, b| noise(b).total_cmp(&noise(a)).then_with(|| a.name.cmp(&b.name)));
    Hosts { schema: SCHEMA, folder, hosts: rows, typical, sources, fleet: None, unread, warnings }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;
    use crate::attribution::fixture::{detour, recording, task, tick, trace};
    use quell_recording::{Method, MpiFacts, RankFacts};

    fn host(name: &str, noise_ns: u64) -> Recording {
        let detours = vec![detour(1_000, noise_ns), detour(500_000, 10)];
        let mut made = recording(vec![trace(1_000_000, detours)], vec![vec![tick(1_000, noise_ns)]]);
        made.manifest.host = Some(name.into());
        made.path = format!("{name}.quell").into();
        made
    }

    #[test]
    fn hosts_are_sorted_by_noise_and_their_sources_summed() {
        let all: Vec<OneHost> = [("a", 1_000), ("b", 3_000), ("c", 2_000)]
            .map(|(name, noise)| one_host(&host(name, noise)))
            .into();
        let hosts = hosts("runs".into(), all, Vec::new());
        let names: Vec<&str> = hosts.hosts.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["b", "c", "a"]);
        let first = &hosts.hosts[0];
        assert!((first.overhead_percent.unwrap() - 0.301).abs() < 1e-9);
        assert_eq!((first.events.unwrap().p99_ns, first.events.unwrap().max_ns), (3_000, 3_000));
        assert_eq!(first.top_source.as_ref().unwrap().source, "tick");
        let sources = hosts.sources.unwrap();
        assert_eq!((sources[0].source.as_str(), sources[0].hosts, sources[0].total_ns), ("tick", 3, 6_000));
        assert_eq!(sources[0].worst_host, "b");
        assert!(hosts.hosts.iter().all(|row| row.stands_out.is_empty()));
    }

    #[test]
    fn one_of_many_has_the_same_sources() {
        let recording = host("a", 1_000);
        let (one, many) = (one_host(&recording), one_of_many(&recording));
        let figures = |host: &OneHost| -> Vec<(String, u64, u64, u64)> {
            let rows = host.sources.iter().flatten();
            rows.map(|row| (row.source.clone(), row.count, row.total_ns, row.max_ns)).collect()
        };
        assert_eq!(figures(&one), figures(&many));
        assert_eq!(one.row.top_source, many.row.top_source);
    }

    #[test]
    fn the_program_itself_is_no_noise() {
        let work = vec![task("quell-bench", 77, 0, 900_000), task("daemon", 9, 900_000, 1_000)];
        let mut made = recording(vec![trace(1_000_000, Vec::new())], vec![work]);
        made.manifest.method = Method::Phases;
        let here = vec![RankFacts {
            rank: 3,
            pid: 77,
            cpus: "1".into(),
            ns_per_iteration: 1.0,
            timing_ns: 0.0,
            clock_offset_ns: 0,
            clock_error_ns: 0,
        }];
        let (bench, library, operation) = ("bsp".into(), String::new(), "barrier".into());
        made.manifest.mpi = Some(MpiFacts { bench, library, operation, bytes: 8, ranks: 4, here });
        let row = one_host(&made).row;
        assert!((row.overhead_percent.unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(row.top_source.unwrap().source, "task:daemon");
        assert_eq!(row.ranks, [Binding { rank: 3, cpus: "1".into() }]);
    }

    #[test]
    fn a_host_without_known_noise_comes_last() {
        let mut silent = host("z", 1_000);
        silent.manifest.method = Method::Phases;
        silent.manifest.sources = None;
        let all = vec![one_host(&silent), one_host(&host("a", 10))];
        let hosts = hosts("runs".into(), all, Vec::new());
        assert_eq!(hosts.hosts[1].name, "z");
        assert_eq!(hosts.hosts[1].overhead_percent, None);
        assert_eq!(hosts.warnings.len(), 1, "{:?}", hosts.warnings);
    }
}
