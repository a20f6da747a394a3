//! Many hosts as text for a terminal.

use quell_analysis::hosts::{FEWEST, HostRow, Hosts, SourceOverHosts, Typical};

use super::fleet;
use super::table::{table_with_words, time};
use super::warnings;
use crate::printer::one_line;

/// Rows of the table of hosts.
const MOST_HOSTS: usize = 40;
/// Hosts that are unlike the rest, and are told.
const MOST_UNLIKE: usize = 40;
/// Hosts that a warning names.
const MOST_NAMED: usize = 8;
/// Rows of the table of sources.
const MOST_SOURCES: usize = 40;
/// Ranks of a host that are listed.
const MOST_RANKS: usize = 4;

/// A row per host, and what is usual; of very many hosts the noisiest, unless `all` are wanted.
pub fn by_host(hosts: &Hosts, all: bool) -> String {
    let shown = if all { hosts.hosts.len() } else { MOST_HOSTS.min(hosts.hosts.len()) };
    let ranks = hosts.hosts.iter().any(|row| !row.ranks.is_empty());
    let mut header = vec![
        "host",
        "top source",
        "method",
        "CPUs",
        "watched",
        "noise %",
        "worst CPU %",
        "per s",
        "p99",
        "longest",
    ];
    header.extend(ranks.then_some("rank@CPUs"));
    header.push("stands out (× median)");
    let rows = hosts.hosts.iter().take(shown).map(|row| {
        let mut cells = host(row);
        cells.extend(ranks.then(|| bindings(row)));
        cells.push(stands_out(row));
        cells
    });
    let mut text = heading(hosts) + &table_with_words(3, &header, rows);
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
    let header = ["source", "hosts", "count", "total", "in detours", "longest", "most on", "there"];
    let row = |one: &SourceOverHosts| {
        vec![
            name(&one.source),
            one.hosts.to_string(),
            one.count.to_string(),
            time(one.total_ns as f64),
            one.in_detours_ns.map_or_else(|| "-".into(), |ns| time(ns as f64)),
            time(one.max_ns as f64),
            name(&one.worst_host),
            time(one.worst_host_ns as f64),
        ]
    };
    let mut text = heading(hosts) + &table_with_words(1, &header, sources.iter().take(MOST_SOURCES).map(row));
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

/// The host, and the recording's name where that says something else.
fn label(row: &HostRow) -> String {
    match &row.host {
        Some(host) if *host == row.name => name(host),
        Some(host) => format!("{} ({})", name(host), name(&row.name)),
        None => name(&row.name),
    }
}

fn name(text: &str) -> String {
    one_line(text).chars().take(40).collect()
}

fn host(row: &HostRow) -> Vec<String> {
    let unknown = || "-".to_owned();
    let percent = |value: f64| format!("{value:.4}");
    vec![
        label(row),
        row.top_source.as_ref().map_or_else(unknown, |top| name(&top.source)),
        row.method.clone(),
        row.cpus.clone(),
        time(row.span_ns as f64),
        row.overhead_percent.map_or_else(unknown, percent),
        row.worst_cpu
            .map_or_else(unknown, |worst| format!("{} (CPU {})", percent(worst.overhead_percent), worst.cpu)),
        row.events.map_or_else(unknown, |events| format!("{:.1}", events.rate_per_s)),
        row.events.map_or_else(unknown, |events| time(events.p99_ns as f64)),
        row.events.map_or_else(unknown, |events| time(events.max_ns as f64)),
    ]
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
    let part = |one: &quell_analysis::hosts::StandsOut| match one.times_median {
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
