//! What noise did to an MPI run, made small enough for a page: figures of ranks stand in columns, and of many ranks and sources some are drawn.

use quell_analysis::track::{Findings, Tracked, TrackedPath, TrackedRank, TrackedSource};
use serde::Serialize;

use crate::printer::cut;
use crate::render::track::SourceRow;

/// So many ranks are drawn: more than a screen has columns.
const MOST_RANKS: usize = 2_048;
/// Of these, so many are those that lost most; they have rows in the table.
const MOST_WORST: usize = 64;
/// So many sources are drawn; the table has all.
const MOST_DRAWN: usize = 12;
/// So many sources are told of.
const MOST_SOURCES: usize = 200;
/// So many places in the program.
const MOST_PATHS: usize = 300;
/// Names are cut to so many characters: they come from the archive.
const LONGEST_NAME: usize = 300;

/// The document's part. Times in ns.
#[derive(Debug, Serialize)]
pub(super) struct Run<'a> {
    runtime_ns: i64,
    compensated_runtime_ns: i64,
    local_ns: i64,
    accumulated_ns: i64,
    /// Of all ranks' run times.
    time_ns: i64,
    events: u64,
    orthogonal_sum_ratio: Option<f64>,
    hosts: usize,
    /// Ranks of the run, of which `ranks` has some.
    all_ranks: usize,
    counted: bool,
    sources: Vec<Source>,
    ranks: Ranks,
    paths: Vec<Path>,
    all_paths: usize,
    findings: &'a Findings,
}

/// A source over all ranks, and at each of those that are drawn.
#[derive(Debug, Serialize)]
struct Source {
    #[serde(flatten)]
    row: SourceRow,
    /// Empty where it is not drawn.
    local: Vec<i64>,
    accumulated: Vec<i64>,
}

/// Ranks by column.
#[derive(Debug, Default, Serialize)]
struct Ranks {
    rank: Vec<u32>,
    host: Vec<String>,
    runtime: Vec<i64>,
    local: Vec<i64>,
    accumulated: Vec<i64>,
    amplified: Vec<i64>,
    absorbed: Vec<i64>,
    /// Places in these columns of ranks that lost most, the worst first.
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
    pub(super) fn of(tracked: &'a Tracked) -> Self {
        let drawn = drawn(&tracked.ranks);
        let sum = |value: fn(&TrackedRank) -> i64| tracked.ranks.iter().map(value).sum();
        let mut hosts: Vec<&str> = tracked.ranks.iter().map(|rank| rank.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.retain(|host| !host.is_empty());
        let lost = |path: &&TrackedPath| path.local_ns != 0 || path.amplified_ns != 0;
        Self {
            runtime_ns: tracked.runtime_ns,
            compensated_runtime_ns: tracked.compensated_runtime_ns,
            local_ns: sum(|rank| rank.local_ns),
            accumulated_ns: sum(|rank| rank.accumulated_ns),
            time_ns: sum(|rank| rank.runtime_ns),
            events: tracked.events,
            orthogonal_sum_ratio: tracked.orthogonal_sum_ratio,
            hosts: hosts.len(),
            all_ranks: tracked.ranks.len(),
            counted: !tracked.compensated_runtime_by_source_ns.is_empty(),
            sources: sources(tracked, &drawn),
            ranks: Ranks::of(&drawn),
            paths: tracked.paths.iter().filter(lost).take(MOST_PATHS).map(Path::of).collect(),
            all_paths: tracked.paths.iter().filter(lost).count(),
            findings: &tracked.findings,
        }
    }
}

/// Evenly spread, with those that lost most among them.
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

impl Ranks {
    fn of(drawn: &[&TrackedRank]) -> Self {
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

/// The costliest first; those that did nothing are left out.
fn sources(tracked: &Tracked, drawn: &[&TrackedRank]) -> Vec<Source> {
    let mut rows = SourceRow::of_run(tracked);
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
    fn of(path: &TrackedPath) -> Self {
        // What is innermost says most.
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
