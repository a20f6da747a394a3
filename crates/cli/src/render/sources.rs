//! Renders noise sources as text for a terminal. Names come from processes and drivers, so each goes through [`name`].

use quell_analysis::attribution::{
    Attribution, CommandRow, CpuSources, Explained, Figures, Hypothesis, LeftOverRow, SourceRow, TaskRow,
    ThreadRow, ThreadSource,
};
use quell_recording::RecorderEffect;
use quell_recording::columns::Columns;

use super::plots;
use super::rows::{name, rows};
use super::table::{table, time};
use crate::printer::{one_line, width};

/// Maximum number of sources in a short view.
const BRIEF: usize = 3;
/// Maximum number of sources in a plot, and of rows in the table per CPU.
const MOST_DRAWN: usize = 12;
/// Maximum number of CPUs side by side; the JSON document has all of them.
const MOST_CPUS: usize = 8;
/// Maximum number of threads with a table of their own sources.
const MOST_THREADS: usize = 16;
/// Maximum number of rows in a table of sources or tasks, most time first; the rest is summed up.
const MOST_ROWS: usize = 40;

/// For the view by CPU: the three figures, and the sources that took most.
pub fn brief(attribution: &Attribution) -> String {
    let Some(sources) = &attribution.sources else { return unknown(attribution) };
    let mut text = warnings(attribution) + &explained(attribution);
    for row in sources.iter().filter(|row| !row.own).take(BRIEF) {
        let part = row.in_detours_ns.map(|ns| format!(", {} of it in detours", time(ns as f64)));
        text += &format!(
            "  {}: {} × {}, {}{}{}\n",
            name(&row.source),
            row.count,
            time(row.mean_ns),
            time(row.total_ns as f64),
            part.unwrap_or_default(),
            row.period_ns.map_or_else(String::new, |ns| format!(", every {}", time(ns))),
        );
    }
    text
}

/// `--by source`.
pub fn by_source(attribution: &Attribution) -> String {
    let Some(sources) = &attribution.sources else { return unknown(attribution) };
    let text = warnings(attribution) + &command(attribution) + &source_table(sources);
    text + &explained(attribution) + &pictures(attribution, sources)
}

/// The sources in full below [`brief`], which has already printed the warnings and the three figures.
pub fn after_brief(attribution: &Attribution) -> String {
    let Some(sources) = &attribution.sources else { return String::new() };
    format!("\nSources\n{}{}", source_table(sources), pictures(attribution, sources))
}

fn pictures(attribution: &Attribution, sources: &[SourceRow]) -> String {
    let mut text = bars(sources, attribution.explained.as_ref());
    text += &per_cpu(attribution.per_cpu.as_deref().unwrap_or_default());
    text + &details(sources) + &unattributed(attribution.explained.as_ref())
}

/// `--by task`.
pub fn by_task(attribution: &Attribution) -> String {
    let Some(tasks) = &attribution.tasks else { return unknown(attribution) };
    let text = warnings(attribution) + &command(attribution) + &task_table(tasks);
    text + &explained(attribution) + &unattributed(attribution.explained.as_ref())
}

/// `--by class`.
pub fn by_class(attribution: &Attribution) -> String {
    let Some(classes) = &attribution.classes else { return unknown(attribution) };
    let text = warnings(attribution) + &rows(classes);
    text + &explained(attribution) + &unattributed(attribution.explained.as_ref())
}

fn unknown(attribution: &Attribution) -> String {
    let why = attribution.sources_unknown_because.as_deref().unwrap_or("they were not recorded");
    format!("Sources are not known: {}.\n", one_line(why))
}

fn warnings(attribution: &Attribution) -> String {
    super::warnings::lines(&attribution.sources_warnings)
}

/// The columns of IBM's osjitter tool and, in addition, the class and the effect on the program.
fn source_table(sources: &[SourceRow]) -> String {
    if sources.is_empty() {
        return "The kernel reported no interval on these CPUs.\n".into();
    }
    let text = rows(sources.iter().take(MOST_ROWS));
    let text = text + &more(sources.iter().skip(MOST_ROWS).map(|row| row.total_ns));
    let own = sources.iter().any(|row| row.own);
    text + if own { "Class `own` is quell itself, not noise of this node.\n" } else { "" }
}

fn task_table(tasks: &[TaskRow]) -> String {
    if tasks.is_empty() {
        return "No other task preempted the program.\n".into();
    }
    let called = |row: &TaskRow| {
        let own = if row.own { " (quell itself)" } else { "" };
        TaskRow { name: format!("{}{own}", row.name), ..row.clone() }
    };
    let shown: Vec<TaskRow> = tasks.iter().take(MOST_ROWS).map(called).collect();
    rows(&shown) + &more(tasks.iter().skip(MOST_ROWS).map(|row| row.total_ns))
}

/// A line that sums up the rows that a table leaves out.
fn more(totals: impl Iterator<Item = u64>) -> String {
    let (count, total) = totals.fold((0, 0u64), |(n, sum), ns| (n + 1, sum.saturating_add(ns)));
    match count {
        0 => String::new(),
        _ => format!(" … and {count} more that took {} together: --json has them\n", time(total as f64)),
    }
}

/// The three figures; a single one of them misleads.
fn figures(figures: &Figures) -> String {
    let without = match figures.time_without_tasks_percent {
        Some(percent) => format!("{percent:.1} % of the time that tasks do not explain"),
        None => "(tasks explain all the time)".into(),
    };
    format!(
        "{:.1} % of the time of detours, {without}, {:.1} % of their number (each by its share)",
        figures.time_percent, figures.count_percent
    )
}

/// How much of the detours is explained, and what explaining them adds.
fn explained(attribution: &Attribution) -> String {
    let Some(explained) = &attribution.explained else { return String::new() };
    let effect = attribution.recorder_effect.as_ref().map(effect).unwrap_or_default();
    let text = format!(
        "Explained: {}; {} of {} unattributed (tolerance {}; chance would explain {:.1} % of the time)\n",
        figures(&explained.figures),
        time(explained.figures.unattributed_ns as f64),
        time(explained.figures.detour_ns as f64),
        time(explained.tolerance_ns as f64),
        explained.chance_percent,
    );
    text + &effect
}

/// An interval that is wider than this, in percentage points, answers nothing.
const WIDE_PERCENT: f64 = 20.0;

fn effect(effect: &RecorderEffect) -> String {
    let is_wide = effect.high_percent - effect.low_percent > WIDE_PERCENT;
    let found =
        if is_wide { "not resolved".to_owned() } else { format!("{:+.1} % of their length", effect.percent) };
    format!(
        "The recorder's own effect on detours below {}: {found} ({:+.1} to {:+.1} %; {} pairs of {}{}); without it they take {} per second\n",
        time(effect.below_ns as f64),
        effect.low_percent,
        effect.high_percent,
        effect.pairs,
        time(effect.block_ns as f64),
        if is_wide { ", more with `record --effect 200`" } else { "" },
        time(effect.without_ns_per_s),
    )
}

fn bars(sources: &[SourceRow], explained: Option<&Explained>) -> String {
    let noise = sources.iter().filter(|row| !row.own).take(MOST_DRAWN);
    let mut rows: Vec<(String, u64)> =
        noise.map(|row| (name(&row.source), row.in_detours_ns.unwrap_or(row.total_ns))).collect();
    rows.extend(explained.map(|one| ("unattributed".to_owned(), one.figures.unattributed_ns)));
    if rows.is_empty() {
        return String::new();
    }
    let title = match explained {
        Some(_) => "Who took the time of the detours",
        None => "Who took how much time",
    };
    format!("\n{}", plots::time_bars(title, width(), &rows))
}

/// A table of sources by CPU.
fn per_cpu(cpus: &[CpuSources]) -> String {
    let shown = &cpus[..cpus.len().min(MOST_CPUS)];
    let mut totals: Vec<(&str, u64)> = Vec::new();
    let took =
        |source: &quell_analysis::attribution::CpuSource| source.in_detours_ns.unwrap_or(source.total_ns);
    for source in cpus.iter().flat_map(|cpu| &cpu.sources).filter(|source| !source.own) {
        match totals.iter_mut().find(|(known, _)| *known == source.source) {
            Some((_, total)) => *total += took(source),
            None => totals.push((&source.source, took(source))),
        }
    }
    if shown.is_empty() || totals.is_empty() {
        return String::new();
    }
    totals.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    totals.truncate(MOST_DRAWN);
    let header: Vec<String> = std::iter::once("source".to_owned())
        .chain(shown.iter().map(|cpu| format!("CPU {}", cpu.cpu)))
        .collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let line = |label: &str, cell: &dyn Fn(&CpuSources) -> String| {
        std::iter::once(label.to_owned()).chain(shown.iter().map(cell)).collect::<Vec<_>>()
    };
    let of = |cpu: &CpuSources, wanted: &str| {
        let found = cpu.sources.iter().find(|one| !one.own && one.source == wanted);
        found.map_or_else(|| "-".into(), |one| time(took(one) as f64))
    };
    let mut rows: Vec<Vec<String>> =
        totals.iter().map(|(source, _)| line(&name(source), &|cpu| of(cpu, source))).collect();
    let percent = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.1} %"));
    if shown.iter().any(|cpu| cpu.explained.is_some()) {
        let cell = |get: &dyn Fn(&Figures) -> Option<f64>, cpu: &CpuSources| {
            percent(cpu.explained.as_ref().and_then(get))
        };
        rows.push(line("unattributed", &|cpu| {
            cpu.explained.map_or_else(|| "-".into(), |figures| time(figures.unattributed_ns as f64))
        }));
        rows.push(line("explained: detours", &|cpu| cell(&|f| Some(f.count_percent), cpu)));
        rows.push(line("explained: time", &|cpu| cell(&|f| Some(f.time_percent), cpu)));
        rows.push(line("explained: without tasks", &|cpu| cell(&|f| f.time_without_tasks_percent, cpu)));
    }
    let rest = match cpus.len() - shown.len() {
        0 => String::new(),
        rest => format!("{rest} more CPUs are in --json\n"),
    };
    format!("\nWhat each source took, per CPU\n{}{rest}", table(&header, rows.into_iter()))
}

/// What the sources ran, and what caused them.
fn details(sources: &[SourceRow]) -> String {
    let mut text = String::new();
    for row in sources.iter().filter(|row| !row.own).take(MOST_DRAWN) {
        for (word, names) in [("ran", &row.details), ("caused by", &row.causes)] {
            let list: Vec<String> = names
                .iter()
                .take(BRIEF)
                .map(|one| format!("{} ({} ×, {})", name(&one.name), one.count, time(one.total_ns as f64)))
                .collect();
            if !list.is_empty() {
                text += &format!("  {} {word} {}\n", name(&row.source), list.join(", "));
            }
        }
    }
    if text.is_empty() { text } else { format!("\nCauses\n{text}") }
}

fn unattributed(explained: Option<&Explained>) -> String {
    let Some(left) = explained.map(|one| &one.unattributed).filter(|left| left.total_ns > 0) else {
        return String::new();
    };
    let row = |what, left, by_chance| LeftOverRow { what, left, by_chance };
    let mut table = vec![
        row("around known intervals", &left.around_known, None),
        row("without any interval", &left.alone, None),
    ];
    table.extend(left.parts.iter().map(|part| row(part.class.words(), &part.left, part.by_chance)));
    let mut text = format!("\n{}", rows(&table));
    if !left.hypotheses.is_empty() {
        text += "Possible causes (hypotheses, none is proven)\n";
    }
    text.extend(left.hypotheses.iter().map(|Hypothesis { says, .. }| format!("  - {}\n", one_line(says))));
    text
}

/// The totals of a recorded command, and a row per thread.
fn command(attribution: &Attribution) -> String {
    let (Some(command), Some(threads)) = (&attribution.command, &attribution.threads) else {
        return String::new();
    };
    let text = had(command) + &rows(threads);
    text + &thread_sources(threads) + "\n"
}

fn had(command: &CommandRow) -> String {
    let had = command.share.had_percent.map_or_else(
        || "never ran".into(),
        |percent| format!("got {percent:.2} % of the CPU time available to it"),
    );
    let ended = command.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    let share = command.share;
    let threads = if command.threads == 1 { "thread" } else { "threads" };
    format!(
        "The command (pid {}, {} {threads}{ended}) {had}: {} on CPUs, {} of it interrupted, {} preempted by other tasks{}\n",
        command.pid,
        command.threads,
        time(share.on_cpu_ns as f64),
        time(share.interrupted_ns as f64),
        time(share.preempted_ns as f64),
        given_up(command),
    )
}

/// What the command gave up by itself, if anything.
fn given_up(command: &CommandRow) -> String {
    let share = command.share;
    let one = |ns: u64, how: &str| (ns > 0).then(|| format!(", {} {how}", time(ns as f64)));
    [one(share.yielded_ns, "given up by sched_yield"), one(share.moved_ns, "moving to other CPUs by itself")]
        .into_iter()
        .flatten()
        .collect()
}

/// What one source took from a thread.
#[derive(Debug, Columns)]
struct ThreadSourceRow<'a> {
    /// Thread id.
    #[column(id)]
    tid: u32,
    #[column(flatten)]
    source: &'a ThreadSource,
}

fn thread_sources(threads: &[ThreadRow]) -> String {
    let shown = threads.iter().filter(|thread| !thread.sources.is_empty()).take(MOST_THREADS);
    let shown: Vec<ThreadSourceRow<'_>> = shown
        .flat_map(|thread| {
            let sources = thread.sources.iter().take(MOST_DRAWN);
            sources.map(move |source| ThreadSourceRow { tid: thread.tid, source })
        })
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    format!("\nWho took it from each thread\n{}", rows(&shown))
}
