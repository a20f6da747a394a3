//! Reduces what noise did to an MPI run to a size for a page: the figures of ranks are in columns, and only some of many ranks and sources
//! are drawn.

use quell_analysis::track::{
    EagerLimit, Findings, RunSource, Tracked, TrackedPath, TrackedRank, TrackedSource, TrackedThread,
    UnknownWait,
};
use quell_recording::cut;
use serde::Serialize;

/// Maximum number of ranks to draw: more than a screen has columns.
const MOST_RANKS: usize = 2_048;
/// Number of these that are the ranks that lost most; they have rows in the table.
const MOST_WORST: usize = 64;
/// Maximum number of sources to draw; the table has more.
const MOST_DRAWN: usize = 12;
/// Maximum number of sources in the table.
const MOST_SOURCES: usize = 200;
/// Maximum number of places in the program.
const MOST_PATHS: usize = 300;
/// Maximum length of names, in characters, because they come from the archive.
const LONGEST_NAME: usize = 300;

/// The run's part of the document. Times are in ns.
#[derive(Debug, Serialize)]
pub(super) struct Run<'a> {
    runtime_ns: i64,
    init_ns: i64,
    finalize_ns: i64,
    compensated_runtime_ns: i64,
    local_ns: i64,
    accumulated_ns: i64,
    /// Sum of the run times of all ranks.
    time_ns: i64,
    events: u64,
    orthogonal_sum_ratio: Option<f64>,
    hosts: usize,
    /// Number of ranks of the run; `ranks` has some of them.
    all_ranks: usize,
    counted: bool,
    eager_limits: &'a [EagerLimit],
    unknown_waits: &'a [UnknownWait],
    sources: Vec<Source>,
    ranks: Ranks,
    /// Of the threads other than each rank's first, those with most noise.
    threads: Vec<&'a TrackedThread>,
    all_threads: usize,
    paths: Vec<Path>,
    all_paths: usize,
    findings: &'a Findings,
    /// The warnings of the findings as text.
    sentences: Vec<String>,
}

/// A source's figures over all ranks, and for each rank that is drawn.
#[derive(Debug, Serialize)]
struct Source {
    #[serde(flatten)]
    row: RunSource,
    /// Empty if the source is not drawn.
    local: Vec<i64>,
    accumulated: Vec<i64>,
}

/// The figures of ranks, by column.
#[derive(Debug, Default, Serialize)]
struct Ranks {
    rank: Vec<u32>,
    host: Vec<String>,
    runtime: Vec<i64>,
    local: Vec<i64>,
    accumulated: Vec<i64>,
    amplified: Vec<i64>,
    absorbed: Vec<i64>,
    /// Indices in these columns of the ranks that lost most, the worst first.
    worst: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct Path {
    path: Vec<String>,
    site: Option<String>,
    calls: u64,
    time_ns: i64,
    local_ns: i64,
    amplified_ns: i64,
    absorbed_ns: i64,
}

impl<'a> Run<'a> {
    pub(super) fn new(tracked: &'a Tracked) -> Self {
        let drawn = drawn(&tracked.ranks);
        let sum = |value: fn(&TrackedRank) -> i64| tracked.ranks.iter().map(value).sum();
        let mut hosts: Vec<&str> = tracked.ranks.iter().map(|rank| rank.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.retain(|host| !host.is_empty());
        let lost = |path: &&TrackedPath| path.local_ns != 0 || path.amplified_ns != 0;
        Self {
            runtime_ns: tracked.runtime_ns,
            init_ns: tracked.init_ns,
            finalize_ns: tracked.finalize_ns,
            compensated_runtime_ns: tracked.compensated_runtime_ns,
            local_ns: sum(|rank| rank.local_ns),
            accumulated_ns: sum(|rank| rank.accumulated_ns),
            time_ns: sum(|rank| rank.runtime_ns),
            events: tracked.events,
            orthogonal_sum_ratio: tracked.orthogonal_sum_ratio,
            hosts: hosts.len(),
            all_ranks: tracked.ranks.len(),
            counted: !tracked.compensated_runtime_by_source_ns.is_empty(),
            eager_limits: &tracked.eager_limits,
            unknown_waits: &tracked.unknown_waits,
            sources: sources(tracked, &drawn),
            ranks: Ranks::new(&drawn),
            threads: noisiest(&tracked.threads),
            all_threads: tracked.threads.len(),
            paths: tracked.paths.iter().filter(lost).take(MOST_PATHS).map(Path::new).collect(),
            all_paths: tracked.paths.iter().filter(lost).count(),
            findings: &tracked.findings,
            sentences: tracked.findings.warnings.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Ranks that are evenly spread, in addition to those that lost most.
fn drawn(ranks: &[TrackedRank]) -> Vec<&TrackedRank> {
    let step = ranks.len().div_ceil(MOST_RANKS - MOST_WORST).max(1);
    let mut drawn: Vec<&TrackedRank> = ranks.iter().step_by(step).collect();
    drawn.extend(worst(ranks.iter().collect()));
    drawn.sort_by_key(|rank| rank.rank);
    drawn.dedup_by_key(|rank| rank.rank);
    drawn
}

fn worst(mut ranks: Vec<&TrackedRank>) -> Vec<&TrackedRank> {
    ranks.sort_by_key(|rank| (-rank.accumulated_ns, rank.rank));
    ranks.truncate(MOST_WORST);
    ranks
}

fn noisiest(threads: &[TrackedThread]) -> Vec<&TrackedThread> {
    let mut noisy: Vec<&TrackedThread> =
        threads.iter().filter(|thread| thread.local_ns != 0 || thread.accumulated_ns != 0).collect();
    noisy.sort_by_key(|thread| (-thread.local_ns, thread.rank, thread.thread));
    noisy.truncate(MOST_WORST);
    noisy
}

impl Ranks {
    fn new(drawn: &[&TrackedRank]) -> Self {
        let column = |value: fn(&TrackedRank) -> i64| drawn.iter().map(|rank| value(rank)).collect();
        let place = |rank: &TrackedRank| drawn.iter().position(|one| one.rank == rank.rank);
        Self {
            rank: drawn.iter().map(|rank| rank.rank).collect(),
            host: drawn.iter().map(|rank| cut(&rank.host, 64)).collect(),
            runtime: column(|rank| rank.runtime_ns),
            local: column(|rank| rank.local_ns),
            accumulated: column(|rank| rank.accumulated_ns),
            amplified: column(|rank| rank.amplified_ns),
            absorbed: column(|rank| rank.absorbed_ns),
            worst: worst(drawn.to_vec()).into_iter().filter_map(place).collect(),
        }
    }
}

/// The sources, the costliest first; those without effect are left out.
fn sources(tracked: &Tracked, drawn: &[&TrackedRank]) -> Vec<Source> {
    let mut rows = RunSource::from_run(tracked);
    rows.retain(|row| row.local_ns != 0 || row.accumulated_ns != 0);
    rows.sort_by_key(|row| (-row.accumulated_ns, -row.local_ns));
    rows.truncate(MOST_SOURCES);
    let source = |row| Source { row, local: Vec::new(), accumulated: Vec::new() };
    let mut sources: Vec<Source> = rows.into_iter().map(source).collect();
    for source in sources.iter_mut().take(MOST_DRAWN) {
        let column = |value: fn(&TrackedSource) -> i64| {
            drawn.iter().map(|rank| rank.by_source.get(&source.row.source).map_or(0, value)).collect()
        };
        source.local = column(|source| source.local_ns);
        source.accumulated = column(|source| source.accumulated_ns);
    }
    for source in &mut sources {
        source.row.source = cut(&source.row.source, LONGEST_NAME);
    }
    sources
}

impl Path {
    fn new(path: &TrackedPath) -> Self {
        // The innermost regions are the most informative.
        let depth = path.path.len().saturating_sub(12);
        let dots = (depth > 0).then(|| "…".to_owned());
        let names = path.path[depth..].iter().map(|name| cut(name, LONGEST_NAME));
        Self {
            path: dots.into_iter().chain(names).collect(),
            site: path.site.as_deref().map(|site| cut(site, LONGEST_NAME)),
            calls: path.calls,
            time_ns: path.time_ns,
            local_ns: path.local_ns,
            amplified_ns: path.amplified_ns,
            absorbed_ns: path.absorbed_ns,
        }
    }
}
