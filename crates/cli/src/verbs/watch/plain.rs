//! Prints frames as blocks of text, and the summary at the end.

use quell_analysis::live::{Frame, SourceNow};

use super::columns::{self, Column, share};
use super::display_state::CpuRow;
use super::panes;
use super::view::View;
use crate::printer::{one_line, width};
use crate::render::table::{table_with_words, time};

/// Maximum number of rows in a table of sources.
const MOST_ROWS: usize = 20;

/// One interval.
pub fn block(frame: &Frame, view: &View) -> String {
    let mut text = format!("── {}\n", panes::moment(frame));
    let rows: Vec<CpuRow> = frame.cpus.iter().map(CpuRow::from_cpu).collect();
    text += &table(&columns::cpus(frame.passive), &rows.iter().collect::<Vec<_>>());
    match (&frame.sources, &frame.sources_unknown_because) {
        (Some(sources), _) => {
            let mut rows = view.sources(sources);
            rows.retain(|row| row.now.count > 0);
            let more = rows.len().saturating_sub(MOST_ROWS);
            rows.truncate(MOST_ROWS);
            text += &table(&columns::sources(frame.passive), &rows);
            text += &and_more(more);
        }
        (None, why) => text += &unknown(why.as_deref()),
    }
    text.extend(frame.longest.iter().map(|one| format!("new longest {}\n", panes::longest(one))));
    let cost = panes::packed("quell itself: ", &panes::overhead(frame), usize::from(width()));
    text + &cost.join("\n") + "\n\n"
}

/// Why sources are not known.
pub fn unknown(why: Option<&str>) -> String {
    format!("sources are unknown: {}\n", one_line(why.unwrap_or("they were not requested (--sources off)")))
}

/// All rows, in all columns except plots.
fn table<R>(columns: &[(u8, Column<R>)], rows: &[&R]) -> String {
    let columns: Vec<Column<R>> =
        columns.iter().map(|(_, column)| *column).filter(|c| c.head != "last minute").collect();
    let heads: Vec<&str> = columns.iter().map(|column| column.head).collect();
    let cells = |row: &&R| columns.iter().map(|column| (column.cell)(row, column.width)).collect::<Vec<_>>();
    table_with_words(usize::from(columns[0].words), &heads, rows.iter().map(cells))
}

/// The summary of the whole run: totals per CPU and source.
pub fn summary(frame: &Frame) -> String {
    let mut text = format!("watched for {:.1}s\n", frame.time_ns as f64 / 1e9);
    for cpu in &frame.cpus {
        let lost = cpu.noise_percent_since_start.map(|percent| {
            format!(
                "noise {} %, longest {}",
                share(Some(percent)),
                time(cpu.max_ns_since_start.unwrap_or(0) as f64)
            )
        });
        let kernel = cpu.kernel_percent_since_start.map(|kernel| {
            format!("kernel {} %, tasks {} %", share(Some(kernel)), share(cpu.tasks_percent_since_start))
        });
        let parts: Vec<String> = lost.into_iter().chain(kernel).collect();
        text += &format!("CPU {}: {}\n", cpu.cpu, parts.join(", "));
    }
    let Some(sources) = &frame.sources else {
        return text + &unknown(frame.sources_unknown_because.as_deref());
    };
    let mut rows: Vec<&SourceNow> = sources.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.since_start.time_ns));
    let more = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    let cells = |row: &SourceNow| {
        let all = row.since_start;
        let times = [all.time_ns as f64, all.mean_ns, all.max_ns as f64].map(time);
        let [total, mean, max] = times;
        vec![
            one_line(&row.source),
            row.class.name().into(),
            share(Some(all.percent)),
            all.count.to_string(),
            total,
            mean,
            max,
        ]
    };
    let heads = ["SOURCE", "class", "% CPU", "count", "total", "mean", "max"];
    text + &table_with_words(2, &heads, rows.into_iter().map(cells)) + &and_more(more)
}

fn and_more(sources: usize) -> String {
    if sources > 0 { format!("and {sources} more sources\n") } else { String::new() }
}
