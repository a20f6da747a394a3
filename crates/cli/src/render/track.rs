//! What noise did to an MPI run, as text for a terminal.

use quell_analysis::track::{Tracked, TrackedPath, TrackedRank, TrackedSource};

use super::plots::{self, Scale, Series};
use super::table::{table, time};
use crate::printer::{one_line, width};

/// Up to so many ranks get a row each.
const FEW_RANKS: usize = 16;
/// Of more ranks, so many that lost most get one, and the one that lost least.
const WORST_RANKS: usize = 10;
/// From so many on, ranks are drawn.
const DRAWN_RANKS: usize = 8;
/// Places in the program that get a row.
const MOST_PATHS: usize = 12;
/// Columns that a name has at least.
const LEAST_NAME: usize = 16;
/// From so many columns on, tables are whole.
const WIDE: u16 = 92;
/// Columns between two of a table.
const BETWEEN: usize = 3;
const OWN_WORK: &str = "the program's own work";

/// The run at a glance, its sources, ranks, and places in the program.
pub fn tracked(tracked: &Tracked) -> String {
    let mut text = extent(tracked);
    if tracked.compensated_runtime_by_source_ns.is_empty() {
        text += "\nThe archive has no noise counters: what noise did to this run is not known.\n`quell trace` counts it, for root or who may use eBPF.\n";
        return text + &busiest(&tracked.paths);
    }
    text += &effect(tracked);
    if tracked.ranks.iter().all(|rank| rank.local_ns == 0 && rank.accumulated_ns == 0) {
        return text + "\nThe counters of noise in the archive stayed at zero.\n" + &busiest(&tracked.paths);
    }
    text += &sources(tracked);
    text += &plot(&tracked.ranks);
    text += &ranks(&tracked.ranks);
    text + &paths(&tracked.paths)
}

fn percent(part: i64, whole: i64) -> String {
    if whole > 0 { format!("{:.2} %", 100.0 * part as f64 / whole as f64) } else { "-".to_owned() }
}

fn quotient(part: i64, whole: i64) -> String {
    if whole > 0 { format!("{:.2}", part as f64 / whole as f64) } else { "-".to_owned() }
}

/// A time; nothing where there is none, so that what is there stands out.
fn some(ns: i64) -> String {
    match ns {
        0 => "-".to_owned(),
        ..0 => format!("-{}", time(-ns as f64)),
        _ => time(ns as f64),
    }
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
    format!("{ranks} {word}{on} · {} events · {}\n", tracked.events, time(tracked.runtime_ns as f64))
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
            "noise struck ranks for {} of their time\nthey ended later by {}, {} times as much\n",
            percent(local, runtime),
            percent(accumulated, runtime),
            quotient(accumulated, local),
        );
    }
    text
}

/// Each source: what it did, and what its removal alone would save.
fn sources(tracked: &Tracked) -> String {
    let of = |name: &String, value: fn(&TrackedSource) -> i64| -> i64 {
        tracked.ranks.iter().filter_map(|rank| rank.by_source.get(name)).map(value).sum()
    };
    let row = |(name, without): (&String, &i64)| {
        let (local, accumulated) = (of(name, |of| of.local_ns), of(name, |of| of.accumulated_ns));
        let share = tracked.composition.get(name);
        let figures = vec![
            some(local),
            some(accumulated),
            some(of(name, |of| of.amplified_ns)),
            some(of(name, |of| of.absorbed_ns)),
            share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", 100.0 * share)),
            some(tracked.runtime_ns - without),
            quotient(accumulated, local),
        ];
        (accumulated.max(local), one_line(name), figures)
    };
    let mut rows: Vec<_> = tracked.compensated_runtime_by_source_ns.iter().map(row).collect();
    rows.retain(|(cost, ..)| *cost != 0);
    rows.sort_by_key(|(cost, ..)| -cost);
    let (names, figures): (Vec<String>, Vec<Vec<String>>) =
        rows.into_iter().map(|(_, name, figures)| (name, figures)).unzip();
    let header = ["source", "struck", "accumulated", "amplified", "absorbed", "share %", "saved", "ratio"];
    let mut text =
        "\nSources, over all ranks; saved: the run would be shorter by so much without it\n".to_owned();
    text += &fitting(with_ratio(&header), figures, |row, room| middle(&names[row], room));
    if let Some(sum) = tracked.orthogonal_sum_ratio {
        let words = if sum > 1.005 { "sources hide one another" } else { "each adds its own" };
        text += &format!("the shares add up to {:.1} %: {words}\n", 100.0 * sum);
    }
    text
}

/// Accumulated and struck noise over ranks.
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
        Series { name: "struck".into(), points: points(|rank| rank.local_ns), line: false },
    ];
    let last = ranks.iter().map(|rank| rank.rank).max().unwrap_or(0);
    let x = Scale::linear(0.0, f64::from(last), |rank| format!("{rank:.0}"));
    let y = Scale::linear(0.0, most as f64, |ns| time(ns.round()));
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
    let figures = |rank: &&TrackedRank| {
        vec![
            time(rank.runtime_ns as f64),
            time(rank.compensated_ns as f64),
            some(rank.local_ns),
            some(rank.accumulated_ns),
            some(rank.amplified_ns),
            some(rank.absorbed_ns),
            quotient(rank.accumulated_ns, rank.local_ns),
        ]
    };
    let header = ["rank", "took", "without noise", "struck", "accumulated", "amplified", "absorbed", "ratio"];
    let figures = chosen.iter().map(figures).collect();
    format!("\n{title}\n{}", fitting(with_ratio(&header), figures, |row, _| chosen[row].rank.to_string()))
}

fn paths(paths: &[TrackedPath]) -> String {
    let lost = |path: &&TrackedPath| path.local_ns != 0 || path.amplified_ns != 0;
    let row = |path: &TrackedPath| vec![some(path.local_ns), some(path.amplified_ns), some(path.absorbed_ns)];
    places(paths.iter().filter(lost).collect(), &["struck", "amplified", "absorbed"], row)
}

/// Where time went, if there is no noise to tell of.
fn busiest(paths: &[TrackedPath]) -> String {
    let mut busy: Vec<&TrackedPath> = paths.iter().filter(|path| path.time_ns > 0).collect();
    busy.sort_by_key(|path| -path.time_ns);
    places(busy, &[], |_| Vec::new())
}

/// A table of places in the program.
fn places(
    mut all: Vec<&TrackedPath>,
    header: &[&str],
    figures: impl Fn(&TrackedPath) -> Vec<String>,
) -> String {
    let count = all.len();
    all.truncate(MOST_PATHS);
    if all.is_empty() {
        return String::new();
    }
    let row = |path: &&TrackedPath| {
        let calls = if path.calls == 0 { "-".to_owned() } else { path.calls.to_string() };
        [vec![calls, some(path.time_ns)], figures(path)].concat()
    };
    let fewer =
        if count > MOST_PATHS { format!(": the first {MOST_PATHS} of {count}") } else { String::new() };
    let header = [&["place", "calls", "time"], header].concat();
    let rows = all.iter().map(row).collect();
    let table = fitting(&header, rows, |row, room| place(all[row], room));
    format!("\nPlaces in the program, over all ranks{fewer}\n{table}")
}

/// Narrow terminals have no room for the last column, which follows from others.
fn with_ratio<'a>(header: &'a [&'a str]) -> &'a [&'a str] {
    if width() < WIDE { &header[..header.len() - 1] } else { header }
}

/// A table as wide as the terminal at most: `name` gives the first cell of a row in so many columns. What the header does not name is left out.
fn fitting(header: &[&str], mut rows: Vec<Vec<String>>, name: impl Fn(usize, usize) -> String) -> String {
    rows.iter_mut().for_each(|row| row.truncate(header.len() - 1));
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column + 1].len()]).max().unwrap_or(0) + BETWEEN
    };
    let taken: usize = (0..header.len() - 1).map(wide).sum();
    let room = usize::from(width()).saturating_sub(taken + 2).max(LEAST_NAME);
    let named = rows.into_iter().enumerate().map(|(at, row)| [vec![name(at, room)], row].concat());
    table(header, named)
}

/// A place in so many columns: of its regions the innermost says most, and of its site the function.
fn place(path: &TrackedPath, room: usize) -> String {
    let Some((call, around)) = path.path.split_last() else { return middle(OWN_WORK, room) };
    let call = one_line(call);
    let around: String = around.iter().map(|region| one_line(region) + " > ").collect();
    let site = path.site.as_deref().map(one_line).unwrap_or_default();
    // The library matters least.
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

/// Text in so many columns at most, with its beginning left out if it is longer.
fn tail(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    ['…'].into_iter().chain(text.chars().skip(count + 1 - room.max(1))).collect()
}

/// Text in so many columns at most, with its middle left out if it is longer.
fn middle(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let head = room.saturating_sub(1) / 2;
    let tail = room.saturating_sub(1) - head;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(count - tail)).collect()
}
