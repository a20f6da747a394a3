//! Renders what noise did to an MPI run as text for a terminal.

use quell_analysis::track::{
    EagerLimit, RunSource, Tracked, TrackedPath, TrackedRank, TrackedThread, UnknownWait,
};
use quell_recording::SourceKind;
use quell_recording::columns::{Columns, Importance, Unit};
use quell_recording::mpi_log::{OTHER_RANKS, OWN_THREADS};

use super::plots::{self, Scale, Series};
use super::rows::{cell, least_important, not_shown};
use super::table::{aligned, time};
use crate::printer::{one_line, width};

/// Maximum number of ranks for which each rank has a row.
const FEW_RANKS: usize = 16;
/// Above that, the number of ranks with a row: those that lost most, in addition to the one that lost least.
const WORST_RANKS: usize = 10;
/// Minimum number of ranks for a plot by rank.
const DRAWN_RANKS: usize = 8;
/// Maximum number of places in the program with a row.
const MOST_PATHS: usize = 12;
/// Minimum width of a name, in columns.
const LEAST_NAME: usize = 16;
/// Spacing between two columns of a table.
const BETWEEN: usize = 3;
/// Minimum share of the run time by which the rank with most work exceeds the mean, to be reported.
const LEAST_IMBALANCE: f64 = 0.02;
const OWN_WORK: &str = "the program's own work";

/// A summary of the run, its sources, ranks, and places in the program.
pub fn tracked(tracked: &Tracked) -> String {
    let mut text = extent(tracked);
    if tracked.compensated_runtime_by_source_ns.is_empty() {
        text += "\nThe archive has no noise counters, so the effect of noise on this run is unknown.\n`quell trace` records them as root or with the privileges for eBPF.\n";
        return text + &imbalance(tracked) + &busiest(&tracked.paths);
    }
    text += &effect(tracked);
    text += &imbalance(tracked);
    text += &tracked.eager_limits.iter().map(eager_limit).collect::<String>();
    if tracked.ranks.iter().all(|rank| rank.local_ns == 0 && rank.accumulated_ns == 0) {
        return text + "\nThe noise counters in the archive stayed at zero.\n" + &busiest(&tracked.paths);
    }
    text += &sources(tracked);
    text += &own_work(tracked);
    text += &unknown_waits(&tracked.unknown_waits);
    if tracked.findings.noise_without_time_ns > 0 {
        text += &format!(
            "{} of the noise has no place between the events: it is local noise, and delayed nothing\n",
            time(tracked.findings.noise_without_time_ns as f64)
        );
    }
    text += &plot(&tracked.ranks);
    text += &ranks(&tracked.ranks);
    text += &threads(&tracked.threads);
    text + &paths(&tracked.paths)
}

fn percent(part: i64, whole: i64) -> String {
    if whole > 0 { format!("{:.2} %", 100.0 * part as f64 / whole as f64) } else { "-".to_owned() }
}

fn quotient(part: i64, whole: i64) -> String {
    if whole > 0 { format!("{:.2}", part as f64 / whole as f64) } else { "-".to_owned() }
}

fn extent(tracked: &Tracked) -> String {
    let ranks = tracked.ranks.len();
    let mut hosts: Vec<&str> = tracked.ranks.iter().map(|rank| rank.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let on = match hosts[..] {
        [] | [""] => String::new(),
        [host] => format!(" on {}", one_line(host)),
        _ => format!(" on {} hosts", hosts.len()),
    };
    let word = if ranks == 1 { "rank" } else { "ranks" };
    let took = time(tracked.runtime_ns as f64);
    format!("{ranks} {word}{on} · {} events · {took}{}\n", tracked.events, begin_and_end(tracked))
}

/// How much of the run time is the MPI's own beginning and end.
fn begin_and_end(tracked: &Tracked) -> String {
    let calls = [("MPI_Init", tracked.init_ns), ("MPI_Finalize", tracked.finalize_ns)];
    let parts =
        calls.iter().filter(|(_, ns)| *ns > 0).map(|(call, ns)| format!("{} in {call}", time(*ns as f64)));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { String::new() } else { format!(", of it {}", parts.join(" and ")) }
}

/// What more work of one rank than of the others costs, if it is a share of the run that counts.
fn imbalance(tracked: &Tracked) -> String {
    let most = tracked.ranks.iter().max_by_key(|rank| rank.work_ns);
    let Some(most) = most.filter(|_| tracked.ranks.len() > 1) else { return String::new() };
    let mean = tracked.ranks.iter().map(|rank| rank.work_ns).sum::<i64>() / tracked.ranks.len() as i64;
    let more = most.work_ns - mean;
    if more as f64 <= LEAST_IMBALANCE * tracked.runtime_ns as f64 {
        return String::new();
    }
    format!(
        "work is uneven: rank {} works {}, {} in the mean; shared evenly, the run could be up to {} shorter\n",
        most.rank,
        time(most.work_ns as f64),
        time(mean as f64),
        time(more as f64)
    )
}

fn effect(tracked: &Tracked) -> String {
    let sum = |value: fn(&TrackedRank) -> i64| -> i64 { tracked.ranks.iter().map(value).sum() };
    let (local, accumulated) = (sum(|rank| rank.local_ns), sum(|rank| rank.accumulated_ns));
    let runtime = sum(|rank| rank.runtime_ns);
    let without = tracked.compensated_runtime_ns;
    let saved = tracked.runtime_ns - without;
    let mut text = format!(
        "without noise {}: {} less; noise made it {} longer\n",
        time(without as f64),
        time(saved as f64),
        percent(saved, without),
    );
    if local > 0 {
        text += &format!(
            "noise took {} of the ranks' time\nit made them end {} later, {} times as much\n",
            percent(local, runtime),
            percent(accumulated, runtime),
            quotient(accumulated, local),
        );
    }
    text
}

/// From which size on sends waited, and how that is known.
fn eager_limit(limit: &EagerLimit) -> String {
    let which = match limit.between.as_str() {
        "one host" => " within a host",
        "different hosts" => " between hosts",
        _ => "",
    };
    let origin = match limit.origin.as_str() {
        "learned" if limit.sends == 1 => "learned from 1 send".to_owned(),
        "learned" => format!("learned from {} sends", limit.sends),
        "assumed" => "assumed; --eager-limit gives it".to_owned(),
        origin => origin.to_owned(),
    };
    format!("sends{which} wait for receivers above {} B ({origin})\n", limit.limit_bytes)
}

/// Each source: what it did, and what removing it alone would save.
fn sources(tracked: &Tracked) -> String {
    let mut rows = RunSource::from_run(tracked);
    let cost = |row: &RunSource| row.accumulated_ns.max(row.local_ns);
    rows.retain(|row| cost(row) != 0);
    rows.sort_by_key(|row| -cost(row));
    let mut text =
        "\nSources, over all ranks; saved: the run would be shorter by this time without it\n".to_owned();
    text += &fitting(&rows.iter().collect::<Vec<_>>(), &[], |row, room| middle(&one_line(&row.source), room));
    if rows.iter().any(|row| row.source == OTHER_RANKS) {
        text += &format!("{OTHER_RANKS}: ranks of this job share CPUs, and take them from one another\n");
    }
    if let Some(sum) = tracked.orthogonal_sum_ratio {
        let words = if sum > 1.005 { "sources hide one another" } else { "each adds its own" };
        text += &format!("the shares add up to {:.1} %: {words}\n", 100.0 * sum);
    }
    text
}

/// What was counted and is no noise.
fn own_work(tracked: &Tracked) -> String {
    let line = |(name, ns): (&String, &u64)| {
        let what = match name.as_str() {
            _ if name == SourceKind::Fault.name() => "page faults".to_owned(),
            OWN_THREADS => "other threads of the same process".to_owned(),
            _ => one_line(name),
        };
        format!("not noise: {what}, {} of the program's own work\n", time(*ns as f64))
    };
    tracked.own_work_ns.iter().filter(|(_, ns)| **ns > 0).map(line).collect()
}

/// Calls that may have waited in ways that quell does not know, the longest by name.
fn unknown_waits(waits: &[UnknownWait]) -> String {
    let Some(longest) = waits.first() else { return String::new() };
    let others = match waits.len() - 1 {
        0 => String::new(),
        1 => " and one other call".to_owned(),
        more => format!(" and {more} other calls"),
    };
    format!(
        "{}{others} may wait for other ranks in ways that the archive does not show: {} count as work\n",
        one_line(&longest.call),
        time(waits.iter().map(|wait| wait.time_ns as f64).sum())
    )
}

/// A plot of accumulated and local noise by rank.
fn plot(ranks: &[TrackedRank]) -> String {
    if ranks.len() < DRAWN_RANKS {
        return String::new();
    }
    let most = ranks.iter().map(|rank| rank.accumulated_ns.max(rank.local_ns)).max().unwrap_or(0);
    let points = |value: fn(&TrackedRank) -> i64| {
        ranks.iter().map(|rank| (f64::from(rank.rank), value(rank) as f64)).collect()
    };
    let series = [
        Series { name: "accumulated".into(), points: points(|rank| rank.accumulated_ns), line: true },
        Series { name: "local".into(), points: points(|rank| rank.local_ns), line: false },
    ];
    let last = ranks.iter().map(|rank| rank.rank).max().unwrap_or(0);
    let x = Scale::whole(last);
    let y = Scale::linear(most as f64, |ns| time(ns.round()));
    format!("\n{}", plots::chart("Noise by rank", width(), 12, &x, &y, &series))
}

fn ranks(ranks: &[TrackedRank]) -> String {
    let mut chosen: Vec<&TrackedRank> = ranks.iter().collect();
    let mut title = "Ranks".to_owned();
    if ranks.len() > FEW_RANKS {
        chosen.sort_by_key(|rank| (-rank.accumulated_ns, rank.rank));
        let least = chosen.pop();
        chosen.truncate(WORST_RANKS);
        chosen.extend(least);
        title = format!(
            "Ranks: the {WORST_RANKS} of {} that lost most, and the one that lost least",
            ranks.len()
        );
    }
    format!("\n{title}\n{}", fitting(&chosen, &[], |rank, _| rank.rank.to_string()))
}

/// The threads other than each rank's first that noise struck or delayed.
fn threads(threads: &[TrackedThread]) -> String {
    let cost = |thread: &TrackedThread| thread.local_ns.max(thread.accumulated_ns);
    let mut chosen: Vec<&TrackedThread> = threads.iter().filter(|thread| cost(thread) != 0).collect();
    if chosen.is_empty() {
        return String::new();
    }
    let mut title = "Threads other than each rank's first".to_owned();
    if chosen.len() > FEW_RANKS {
        title += &format!(": the {WORST_RANKS} of {} with most noise", chosen.len());
        chosen.sort_by_key(|thread| (-thread.local_ns, thread.rank, thread.thread));
        chosen.truncate(WORST_RANKS);
    }
    format!("\n{title}\n{}", fitting(&chosen, &[], |thread, _| thread.rank.to_string()))
}

fn paths(paths: &[TrackedPath]) -> String {
    let lost = |path: &&TrackedPath| path.local_ns != 0 || path.amplified_ns != 0;
    places(paths.iter().filter(lost).collect(), &[])
}

/// Where time went, for a run without noise.
fn busiest(paths: &[TrackedPath]) -> String {
    let mut busy: Vec<&TrackedPath> = paths.iter().filter(|path| path.time_ns > 0).collect();
    busy.sort_by_key(|path| -path.time_ns);
    places(busy, &["local_ns", "most_local_source", "amplified_ns", "absorbed_ns"])
}

/// A table of places in the program, without some of its fields.
fn places(mut all: Vec<&TrackedPath>, without: &[&str]) -> String {
    let count = all.len();
    all.truncate(MOST_PATHS);
    if all.is_empty() {
        return String::new();
    }
    let fewer =
        if count > MOST_PATHS { format!(": the first {MOST_PATHS} of {count}") } else { String::new() };
    format!("\nPlaces in the program, over all ranks{fewer}\n{}", fitting(&all, without, place))
}

/// A table that fits the terminal: `name` formats the first cell of a row for a given number of columns. Narrow terminals leave out the least
/// important columns.
fn fitting<T: Columns>(rows: &[&T], without: &[&str], name: impl Fn(&T, usize) -> String) -> String {
    let columns = T::columns();
    let cells = |row: &&T| -> Vec<String> {
        columns.iter().zip(row.values()).map(|(column, value)| cell(column, &value)).collect()
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let wanted = |at: &usize| {
        columns[*at].importance <= Importance::Minor && !without.contains(&columns[*at].field.as_str())
    };
    let mut chosen: Vec<usize> = (0..columns.len()).filter(wanted).collect();
    let wide = |&at: &usize| {
        let cells = cells.iter().map(|row| row[at].chars().count());
        cells.chain([columns[at].title.chars().count()]).max().unwrap_or(0) + BETWEEN
    };
    // The columns that are left for the first cell.
    let room =
        |chosen: &[usize]| usize::from(width()).saturating_sub(chosen.iter().map(wide).sum::<usize>() + 2);
    let names = rows.iter().map(|row| name(row, LEAST_NAME).chars().count());
    let least = names.chain([columns[0].title.chars().count()]).max().unwrap_or(0);
    let mut left_out = Vec::new();
    while room(&chosen[1..]) < least
        && let Some(place) = least_important(&columns, &chosen)
    {
        left_out.push(chosen.remove(place));
    }
    let chosen = &chosen[1..];
    let room = room(chosen).max(LEAST_NAME);
    let header: Vec<&str> = [0].iter().chain(chosen).map(|&at| columns[at].title.as_str()).collect();
    let named = rows.iter().zip(&cells).map(|(row, cells)| {
        [name(row, room)].into_iter().chain(chosen.iter().map(|&at| cells[at].clone())).collect()
    });
    let right = |at: usize| at > 0 && !matches!(columns[chosen[at - 1]].unit, Unit::Words | Unit::Name);
    aligned(&header, named, right) + &not_shown(&columns, left_out, usize::from(width()))
}

/// A place in at most `room` columns; the innermost region and the function of the call site are kept longest.
fn place(path: &TrackedPath, room: usize) -> String {
    let Some((call, around)) = path.path.split_last() else { return middle(OWN_WORK, room) };
    let call = one_line(call);
    let around: String = around.iter().map(|region| one_line(region) + " > ").collect();
    let site = path.site.as_deref().map(one_line).unwrap_or_default();
    // The library is the least important part.
    let function = site.rsplit_once(" (").map_or(site.as_str(), |(function, _)| function);
    let columns = |text: &str| text.chars().count();
    let own = |site: &str| if site.is_empty() { call.clone() } else { format!("{call} in {site}") };
    for own in [own(&site), own(function)] {
        if columns(&own) + columns(&around).min(LEAST_NAME) <= room {
            return middle(&around, room - columns(&own)) + &own;
        }
    }
    if function.is_empty() {
        return middle(&call, room);
    }
    let call = middle(&call, room / 2) + " in ";
    let end = tail(function, room.saturating_sub(columns(&call)));
    call + &end
}

/// Text in at most `room` columns, cut at its start.
fn tail(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    ['…'].into_iter().chain(text.chars().skip(count + 1 - room.max(1))).collect()
}

/// Text in at most `room` columns, cut in its middle.
fn middle(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let head = room.saturating_sub(1) / 2;
    let tail = room.saturating_sub(1) - head;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(count - tail)).collect()
}
