//! What noise did to an MPI run, as text for a terminal.

use quell_analysis::track::{Tracked, TrackedPath, TrackedRank};

use crate::printer::one_line;
use crate::terminal::{table, table_with_words, time};

/// Up to so many ranks get a row each; of more, those that lost most.
const MOST_RANKS: usize = 32;
/// Places in the program that get a row.
const MOST_PATHS: usize = 12;

/// The run at a glance, its sources, ranks, and places in the program.
pub fn tracked(tracked: &Tracked) -> String {
    let mut text = heading(tracked);
    if tracked.ranks.iter().all(|rank| rank.by_source.is_empty()) {
        text += "\nno noise counters are in this archive: `quell trace` puts them there, for root or who may use eBPF\n";
        return text + &paths(&tracked.paths);
    }
    text += &sources(tracked);
    text += &ranks(&tracked.ranks);
    text + &paths(&tracked.paths)
}

fn percent(part: i64, whole: i64) -> String {
    if whole > 0 { format!("{:.2} %", 100.0 * part as f64 / whole as f64) } else { "-".to_owned() }
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

fn signed(ns: i64) -> String {
    if ns < 0 { format!("-{}", time(-ns as f64)) } else { time(ns as f64) }
}

fn heading(tracked: &Tracked) -> String {
    let ranks = tracked.ranks.len();
    let saved = tracked.runtime_ns - tracked.compensated_runtime_ns;
    let local: i64 = tracked.ranks.iter().map(|rank| rank.local_ns).sum();
    let accumulated: i64 = tracked.ranks.iter().map(|rank| rank.accumulated_ns).sum();
    let runtime: i64 = tracked.ranks.iter().map(|rank| rank.runtime_ns).sum();
    let mut text = format!(
        "{ranks} {}, {} events, {}\n",
        if ranks == 1 { "rank" } else { "ranks" },
        tracked.events,
        time(tracked.runtime_ns as f64),
    );
    text += &format!(
        "without the noise that was seen it would have taken {}: {} less, {}\n",
        time(tracked.compensated_runtime_ns as f64),
        signed(saved),
        percent(saved, tracked.compensated_runtime_ns),
    );
    text + &format!(
        "noise struck ranks for {} of their time; it made them end later by {} of it, {} times what struck\n",
        percent(local, runtime),
        percent(accumulated, runtime),
        if local > 0 { format!("{:.2}", accumulated as f64 / local as f64) } else { "-".to_owned() },
    )
}

/// Each source: what it did, and what its removal alone would save.
fn sources(tracked: &Tracked) -> String {
    let names = tracked.compensated_runtime_by_source_ns.keys();
    let of = |name: &String, value: fn(&quell_analysis::track::TrackedSource) -> i64| -> i64 {
        tracked.ranks.iter().filter_map(|rank| rank.by_source.get(name)).map(value).sum()
    };
    let mut rows: Vec<(i64, Vec<String>)> = names
        .map(|name| {
            let (local, accumulated) = (of(name, |of| of.local_ns), of(name, |of| of.accumulated_ns));
            let saved = tracked.runtime_ns - tracked.compensated_runtime_by_source_ns[name];
            let row = vec![
                one_line(name),
                time(local as f64),
                signed(accumulated),
                time(of(name, |of| of.amplified_ns) as f64),
                time(of(name, |of| of.absorbed_ns) as f64),
                if local > 0 { format!("{:.2}", accumulated as f64 / local as f64) } else { "-".to_owned() },
                tracked
                    .composition
                    .get(name)
                    .map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share)),
                signed(saved),
            ];
            (accumulated.max(local), row)
        })
        .collect();
    rows.sort_by_key(|(cost, _)| -cost);
    let shown = rows.into_iter().filter(|(cost, _)| *cost != 0).map(|(_, row)| row);
    let header =
        ["source", "struck", "accumulated", "amplified", "absorbed", "ratio", "of all", "run shorter by"];
    let mut text = format!("\nover all ranks\n{}", table(&header, shown));
    if let Some(sum) = tracked.orthogonal_sum_ratio {
        let words = if sum > 1.005 { "sources hide one another" } else { "sources add up" };
        text += &format!("the shares add up to {sum:.3}: {words}\n");
    }
    text
}

fn ranks(ranks: &[TrackedRank]) -> String {
    let mut chosen: Vec<&TrackedRank> = ranks.iter().collect();
    let all = chosen.len();
    let mut text = "\n".to_owned();
    if all > MOST_RANKS {
        chosen.sort_by_key(|rank| (-rank.accumulated_ns, rank.rank));
        chosen.truncate(MOST_RANKS);
        text += &format!("the {MOST_RANKS} of {all} ranks that lost most\n");
    }
    let row = |rank: &&TrackedRank| {
        vec![
            rank.rank.to_string(),
            time(rank.runtime_ns as f64),
            time(rank.compensated_ns as f64),
            time(rank.local_ns as f64),
            signed(rank.accumulated_ns),
            time(rank.amplified_ns as f64),
            time(rank.absorbed_ns as f64),
            ratio(rank.amplification_ratio),
        ]
    };
    let header = ["rank", "took", "without noise", "struck", "accumulated", "amplified", "absorbed", "ratio"];
    text + &table(&header, chosen.iter().map(row))
}

fn paths(paths: &[TrackedPath]) -> String {
    let told: Vec<&TrackedPath> =
        paths.iter().filter(|path| path.local_ns != 0 || path.amplified_ns != 0).take(MOST_PATHS).collect();
    if told.is_empty() {
        return String::new();
    }
    let row = |path: &&TrackedPath| {
        let words =
            if path.path.is_empty() { "outside of all calls".to_owned() } else { path.path.join(" > ") };
        let site = path.site.as_deref().map(|site| format!(" in {site}")).unwrap_or_default();
        vec![
            one_line(&(words + &site)),
            path.calls.to_string(),
            time(path.time_ns as f64),
            time(path.local_ns as f64),
            time(path.amplified_ns as f64),
            time(path.absorbed_ns as f64),
        ]
    };
    let header = ["where noise was lost", "calls", "time", "struck", "amplified", "absorbed"];
    format!("\n{}", table_with_words(1, &header, told.iter().map(row)))
}
