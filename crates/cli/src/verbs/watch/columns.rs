//! The columns of both tables: their headings, their cells, and which of them fit.

use quell_analysis::live::SourceNow;

use super::display_state::CpuRow;
use crate::printer::one_line;
use crate::render::table::time;

/// A column of a table whose rows are `R`.
pub struct Column<R> {
    /// The heading.
    pub head: &'static str,
    /// Minimum width, in columns of the terminal; a wide column may get more.
    pub width: u16,
    /// Whether it takes a share of the remaining width.
    pub wide: bool,
    /// Whether it holds text, which is left-aligned; figures are right-aligned.
    pub words: bool,
    /// The text of a cell, for a given width.
    pub cell: fn(&R, u16) -> String,
}

impl<R> Clone for Column<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Column<R> {}

fn figure<R>(head: &'static str, width: u16, cell: fn(&R, u16) -> String) -> Column<R> {
    Column { head, width, wide: false, words: false, cell }
}

fn words<R>(head: &'static str, width: u16, cell: fn(&R, u16) -> String) -> Column<R> {
    Column { head, width, wide: true, words: true, cell }
}

/// Selects the columns with the lowest ranks that fit, in their original order; wide columns share the remaining width.
pub fn fit<R>(all: &[(u8, Column<R>)], width: u16) -> Vec<Column<R>> {
    let mut ranks: Vec<u8> = all.iter().map(|(rank, _)| *rank).collect();
    ranks.sort_unstable();
    let needs =
        |most: u8| all.iter().filter(|(rank, _)| *rank <= most).map(|(_, c)| c.width + 1).sum::<u16>();
    let most = ranks.iter().copied().filter(|&rank| needs(rank) <= width + 1).max().unwrap_or(0);
    let mut chosen: Vec<Column<R>> = all.iter().filter(|(rank, _)| *rank <= most).map(|(_, c)| *c).collect();
    let left = (width + 1).saturating_sub(needs(most));
    let wide = chosen.iter().filter(|column| column.wide).count().max(1) as u16;
    chosen.iter_mut().filter(|column| column.wide).for_each(|column| column.width += left / wide);
    chosen
}

/// The columns of the table of CPUs; `passive` means without a probe.
pub fn cpus(passive: bool) -> Vec<(u8, Column<CpuRow>)> {
    let label = figure("CPU", 4, |row: &CpuRow, _| row.label.clone());
    let history = words("last minute", 12, |row: &CpuRow, width| sparkline(&row.figures.history, width));
    let kernel = figure("kernel %", 8, |row: &CpuRow, _| share(row.figures.kernel_percent));
    let tasks = figure("tasks %", 7, |row: &CpuRow, _| share(row.figures.tasks_percent));
    if passive {
        return vec![
            (0, label),
            (0, kernel),
            (1, figure("since", 7, |row: &CpuRow, _| share(row.figures.kernel_percent_since_start))),
            (0, tasks),
            (1, figure("since", 7, |row: &CpuRow, _| share(row.figures.tasks_percent_since_start))),
            (1, history),
        ];
    }
    vec![
        (0, label),
        (0, figure("noise %", 7, |row: &CpuRow, _| share(row.figures.noise_percent))),
        (1, figure("since", 7, |row: &CpuRow, _| share(row.figures.noise_percent_since_start))),
        (0, figure("detours/s", 9, |row: &CpuRow, _| rate(row.figures.detours_per_s))),
        (0, figure("longest", 8, |row: &CpuRow, _| length(row.figures.max_ns))),
        (2, figure("ever", 8, |row: &CpuRow, _| length(row.figures.max_ns_since_start))),
        (3, kernel),
        (3, tasks),
        (1, history),
    ]
}

/// The columns of the table of sources.
pub fn sources(passive: bool) -> Vec<(u8, Column<SourceNow>)> {
    let mut all = vec![
        (0, words("SOURCE", 16, |row: &SourceNow, _| one_line(&row.source))),
        (0, figure("% CPU", 7, |row: &SourceNow, _| share(Some(row.now.percent)))),
        (1, figure("since", 7, |row: &SourceNow, _| share(Some(row.since_start.percent)))),
        (0, figure("per s", 7, |row: &SourceNow, _| rate(Some(row.now.per_s)))),
        (0, figure("mean", 8, |row: &SourceNow, _| length(Some(row.now.mean_ns.round() as u64)))),
        (0, figure("max", 8, |row: &SourceNow, _| length(Some(row.now.max_ns)))),
        (3, figure("ever", 8, |row: &SourceNow, _| length(Some(row.since_start.max_ns)))),
        (
            5,
            figure("mean ever", 9, |row: &SourceNow, _| length(Some(row.since_start.mean_ns.round() as u64))),
        ),
    ];
    if !passive {
        all.push((6, figure("in detours", 10, |row: &SourceNow, _| length(row.now.in_detours_ns))));
    }
    all.push((4, Column { wide: false, ..words("class", 12, |row: &SourceNow, _| row.class.name().into()) }));
    all.push((
        2,
        words("what", 12, |row: &SourceNow, _| row.detail.as_deref().map(one_line).unwrap_or_default()),
    ));
    all
}

/// A percentage in at most seven characters.
pub fn share(percent: Option<f64>) -> String {
    match percent {
        None => "-".into(),
        Some(percent) if percent >= 9.999_95 => format!("{percent:.2}"),
        Some(percent) => format!("{percent:.4}"),
    }
}

fn rate(per_s: Option<f64>) -> String {
    match per_s {
        None => "-".into(),
        Some(per_s) if per_s >= 99.95 => format!("{per_s:.0}"),
        Some(per_s) => format!("{per_s:.1}"),
    }
}

fn length(ns: Option<u64>) -> String {
    ns.filter(|&ns| ns > 0).map_or_else(|| "-".into(), |ns| time(ns as f64))
}

/// The latest values as bars, the newest at the right; the highest value is a full block.
fn sparkline(values: &[f64], width: u16) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(usize::from(width))..];
    let most = shown.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        let share = if most > 0.0 { value / most } else { 0.0 };
        BARS[((share * 7.0).round() as usize).min(7)]
    };
    let blank = " ".repeat(usize::from(width).saturating_sub(shown.len()));
    blank + &shown.iter().map(bar).collect::<String>()
}
