//! Renders many hosts as text for a terminal.

use quell_analysis::fleet::hosts::{FEWEST, HostRow, Hosts, Typical, WorstCpu};
use quell_recording::columns::Columns;

use crate::printer::one_line;
use crate::render::rows::{name, rows};
use crate::render::{fleet, warnings};

/// Maximum number of rows in the table of hosts.
const MOST_HOSTS: usize = 40;
/// Maximum number of outlier hosts to list.
const MOST_UNLIKE: usize = 40;
/// Maximum number of hosts that a warning names.
const MOST_NAMED: usize = 8;
/// Maximum number of rows in the table of sources.
const MOST_SOURCES: usize = 40;
/// Maximum number of ranks to list per host.
const MOST_RANKS: usize = 4;

/// A row per host, and the typical values; of many hosts only the noisiest, unless `all` is set.
pub fn by_host(hosts: &Hosts, all: bool) -> String {
    let shown = if all { hosts.hosts.len() } else { MOST_HOSTS.min(hosts.hosts.len()) };
    let listed: Vec<Host<'_>> = hosts.hosts.iter().take(shown).map(Host::from).collect();
    let mut text = heading(hosts) + &rows(&listed);
    if shown < hosts.hosts.len() {
        text += &format!("... and {} more (--all shows them)\n", hosts.hosts.len() - shown);
    }
    text.push('\n');
    text.extend(hosts.typical.iter().map(typical));
    if let Some(fleet) = &hosts.fleet {
        text += &warnings::lines(&fleet.warnings);
        let most = if all { fleet.unlike.len() } else { MOST_UNLIKE };
        text += &format!("\n{}", fleet::unlike(fleet, most));
        text += &fleet::differences(&fleet.differences);
    }
    text
}

/// A row per source, summed over the hosts.
pub fn by_source(hosts: &Hosts) -> String {
    let Some(sources) = &hosts.sources else {
        return heading(hosts) + "No host knows its sources; `quell show` of one recording says why.\n";
    };
    let mut text = heading(hosts) + &rows(sources.iter().take(MOST_SOURCES));
    if sources.len() > MOST_SOURCES {
        text += &format!("and {} more sources (--json has them all)\n", sources.len() - MOST_SOURCES);
    }
    text
}

fn heading(hosts: &Hosts) -> String {
    let mut text = format!("{} · {} recordings", one_line(&hosts.folder), hosts.hosts.len());
    if !hosts.unread.is_empty() {
        text += &format!(" · {} left out", hosts.unread.len());
    }
    text.push('\n');
    text += &warnings::lines(&hosts.warnings);
    let cut: Vec<String> = hosts
        .hosts
        .iter()
        .filter(|row| !matches!(row.state.as_str(), "complete" | "imported"))
        .map(label)
        .collect();
    if !cut.is_empty() {
        text += &format!("warning: not complete: {}\n", first_of(&cut));
    }
    let lost: Vec<String> = hosts
        .hosts
        .iter()
        .filter(|row| row.lost > 0)
        .map(|row| format!("{} {}", label(row), row.lost))
        .collect();
    if !lost.is_empty() {
        text += &format!("warning: rows were lost: {}\n", first_of(&lost));
    }
    text.push('\n');
    text
}

fn first_of(names: &[String]) -> String {
    let mut text = names.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MOST_NAMED {
        text += &format!(" and {} more", names.len() - MOST_NAMED);
    }
    text
}

/// The host, and the name of the recording if it differs.
fn label(row: &HostRow) -> String {
    match &row.host {
        Some(host) if *host == row.name => name(host),
        Some(host) => format!("{} ({})", name(host), name(&row.name)),
        None => name(&row.name),
    }
}

/// A row of the table of hosts.
#[derive(Debug, Columns)]
struct Host<'a> {
    #[column]
    host: String,
    #[column(name)]
    top_source: Option<&'a str>,
    #[column]
    method: &'a str,
    #[column(title = "CPUs", number)]
    cpus: &'a str,
    #[column(title = "watched")]
    span_ns: u64,
    #[column(title = "noise %", precision = 4)]
    overhead_percent: Option<f64>,
    #[column(title = "worst CPU %", percent)]
    worst_cpu: Option<String>,
    #[column(title = "per s", precision = 1)]
    rate_per_s: Option<f64>,
    #[column(title = "p99")]
    p99_ns: Option<u64>,
    #[column(title = "longest")]
    max_ns: Option<u64>,
    #[column(title = "rank@CPUs", number, absent = "", filled)]
    ranks: Option<String>,
    #[column(title = "stands out (× median)", number)]
    stands_out: String,
}

impl<'a> From<&'a HostRow> for Host<'a> {
    fn from(row: &'a HostRow) -> Self {
        let worst = |worst: WorstCpu| format!("{:.4} (CPU {})", worst.overhead_percent, worst.cpu);
        Self {
            host: label(row),
            top_source: row.top_source.as_ref().map(|top| top.source.as_str()),
            method: &row.method,
            cpus: &row.cpus,
            span_ns: row.span_ns,
            overhead_percent: row.overhead_percent,
            worst_cpu: row.worst_cpu.map(worst),
            rate_per_s: row.events.map(|events| events.rate_per_s),
            p99_ns: row.events.map(|events| events.p99_ns),
            max_ns: row.events.map(|events| events.max_ns),
            ranks: (!row.ranks.is_empty()).then(|| bindings(row)),
            stands_out: stands_out(row),
        }
    }
}

fn bindings(row: &HostRow) -> String {
    let listed = row.ranks.iter().take(MOST_RANKS).map(|one| format!("{}@{}", one.rank, one_line(&one.cpus)));
    let mut text = listed.collect::<Vec<_>>().join(" ");
    if row.ranks.len() > MOST_RANKS {
        text += &format!(" and {} more", row.ranks.len() - MOST_RANKS);
    }
    text
}

fn stands_out(row: &HostRow) -> String {
    let part = |one: &quell_analysis::fleet::hosts::StandsOut| match one.times_median {
        Some(times) => format!("{} {times:.1} ×", one.figure.name()),
        None => format!("{}, others have none", one.figure.name()),
    };
    row.stands_out.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn typical(of: &Typical) -> String {
    let limit = match of.limit_percent {
        Some(limit) => format!("a host above {limit:.4} % stands out"),
        None => format!("too few to say which stands out (it takes {FEWEST})"),
    };
    format!(
        "{} · {} hosts · median noise {:.4} %, median absolute deviation {:.4} %: {limit}\n",
        of.method, of.hosts, of.overhead_percent, of.deviation_percent
    )
}
