//! What noise did to an MPI run, as text for a terminal.

use quell_analysis::track::{Tracked, TrackedPath, TrackedRank, TrackedSource};

use crate::plots::{self, Scale, Series};
use crate::printer::{one_line, width};
use crate::terminal::{table, table_with_words, time};

/// Up to so many ranks get a row each.
const FEW_RANKS: usize = 16;
/// Of more ranks, so many that lost most get one, and the one that lost least.
const WORST_RANKS: usize = 10;
/// From so many on, ranks are drawn.
const DRAWN_RANKS: usize = 8;
/// Places in the program that get a row.
const MOST_PATHS: usize = 12;
/// Characters of a call's name that are worth a row.
const LEAST_NAME: usize = 20;

/// The run at a glance, its sources, ranks, and places in the program.
pub fn tracked(tracked: &Tracked) -> String {
    let mut text = extent(tracked);
    if tracked.compensated_runtime_by_source_ns.is_empty() {
        text += "\nThe archive has no noise counters: what noise did to this run is not known. `quell trace` counts it,\nfor root or who may use eBPF.\n";
        return text + &busiest(&tracked.paths);
    }
    text += &effect(tracked);
    if tracked.ranks.iter().all(|rank| rank.local_ns == 0 && rank.accumulated_ns == 0) {
        return text + "\nNo noise struck any rank, by the archive's counters.\n" + &busiest(&tracked.paths);
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
        "without noise it would have taken {}: {} less, noise made it {} longer\n",
        time(without as f64),
        time(saved as f64),
        percent(saved, without),
    );
    if local > 0 {
        text += &format!(
            "noise struck ranks for {} of their time; they ended later by {}, {} times as much\n",
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
        let row = vec![
            middle(&one_line(name), usize::from(width()).saturating_sub(76).max(LEAST_NAME)),
            some(local),
            some(accumulated),
            some(of(name, |of| of.amplified_ns)),
            some(of(name, |of| of.absorbed_ns)),
            quotient(accumulated, local),
            share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", 100.0 * share)),
            some(tracked.runtime_ns - without),
        ];
        (accumulated.max(local), row)
    };
    let mut rows: Vec<(i64, Vec<String>)> =
        tracked.compensated_runtime_by_source_ns.iter().map(row).collect();
    rows.sort_by_key(|(cost, _)| -cost);
    let shown = rows.into_iter().filter(|(cost, _)| *cost != 0).map(|(_, row)| row);
    let header = ["source", "struck", "accumulated", "amplified", "absorbed", "ratio", "share %", "saved"];
    let mut text = format!(
        "\nSources, over all ranks; saved: the run would be shorter by so much without it\n{}",
        table(&header, shown)
    );
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
    let row = |rank: &&TrackedRank| {
        vec![
            rank.rank.to_string(),
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
    format!("\n{title}\n{}", table(&header, chosen.iter().map(row)))
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

/// A table of places in the program, as wide as the terminal at most.
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
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|path| {
            let calls = if path.calls == 0 { "-".to_owned() } else { path.calls.to_string() };
            [vec![calls, some(path.time_ns)], figures(path)].concat()
        })
        .collect();
    let header = [&["calls", "time"], header].concat();
    // Each column has a blank on both sides.
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].len()]).max().unwrap_or(0) + 2
    };
    let taken: usize = (0..header.len()).map(wide).sum();
    let room = usize::from(width()).saturating_sub(taken + 2).max(LEAST_NAME);
    let named = all.iter().zip(rows).map(|(path, row)| [vec![place(path, room)], row].concat());
    let fewer =
        if count > MOST_PATHS { format!(": the first {MOST_PATHS} of {count}") } else { String::new() };
    let header = [&["place"], &header[..]].concat();
    format!("\nPlaces in the program, over all ranks{fewer}\n{}", table_with_words(1, &header, named))
}

/// A place in so many columns: of its regions the innermost say most, and of its site the function.
fn place(path: &TrackedPath, room: usize) -> String {
    let Some((call, around)) = path.path.split_last() else { return "the program's own work".to_owned() };
    let site = path.site.as_deref().map(|site| format!(" in {}", one_line(site))).unwrap_or_default();
    let call = one_line(call);
    let around: String = around.iter().map(|region| one_line(region) + " > ").collect();
    let own = call.chars().count() + site.chars().count();
    if around.is_empty() || own + 4 > room {
        return middle(&(call + &site), room);
    }
    middle(&around, room - own) + &call + &site
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
