//! Renders a recording's findings as text for a terminal.

use quell_analysis::attribution::Attribution;
use quell_analysis::density::LogHistogram;
use quell_analysis::downsample;
use quell_analysis::histogram_summary::HistogramOverview;
use quell_analysis::overview::{CpuOverview, Overview, PeriodRow};
use quell_analysis::simultaneous::Simultaneous;
use quell_analysis::stats::Durations;
use quell_recording::{Method, Recording, Trace};

use super::plots::{self, Scale, Series};
use super::rows::rows;
use super::sources;
use super::table::time;
use super::warnings;
use crate::printer::{one_line, width};

/// Maximum number of points that a terminal can show in one plot.
const MOST_POINTS: usize = 4_000;
/// Maximum number of CPUs with a plot of their own; the noisiest first.
const MOST_PLOTS: usize = 2;

const MEMORY: &str = "Slower is the time above that of the quietest moments, of all loads: by work of the kernel and other tasks, by a slower core, by others' use \
                      of the caches and of memory, and by the rest (single loads, what lasts for less than 20 ms, and what a hypervisor steals). By chance is what would be in \"memory %\", for \
                      the core in \"core %\", where nothing slows memory.\n";

const KERNEL_UNKNOWN: &str = "What the kernel took is not known: it is within the other parts.\n";

const TOO_FEW: &str = "\nToo few undisturbed loads to split their time: record for a second or more, on CPUs with nothing else to do.\n";

const NO_LOADS: &str = "\nNo loads were timed: the recording ended before the first.\n";

/// Noise overheads of systems for parallel programs, in percent: of a Cray XT-4, and of a Linux cluster (Hoefler, Schneider & Lumsdaine, SC 2010).
const USUAL_PERCENT: [f64; 2] = [0.02, 0.21];

/// `show`: the conclusion, facts, a row per CPU, sources, the distribution of detours, when they came, periods.
pub fn show(overview: &Overview, attribution: &Attribution, recording: &Recording) -> String {
    let mut text = verdict(overview, attribution) + &heading(overview);
    if recording.manifest.method == Method::Kernel {
        return text + &sources::by_source(attribution);
    }
    if recording.manifest.method == Method::Histogram {
        return text + &histogram_table(&overview.histograms);
    }
    if recording.manifest.method == Method::Memory {
        if recording.quanta.iter().all(|series| series.quanta.is_empty()) {
            return text + NO_LOADS;
        }
        let is_unknown = overview.memory.iter().all(|row| row.kernel_percent.is_none());
        let table = match overview.memory.is_empty() {
            true => TOO_FEW.to_owned(),
            false => rows(&overview.memory) + MEMORY + if is_unknown { KERNEL_UNKNOWN } else { "" },
        };
        return text + &table + &sources::brief(attribution);
    }
    if overview.cpus.is_empty() && overview.quanta.is_empty() {
        return text + "\nIt holds no CPU.\n";
    }
    if !overview.quanta.is_empty() {
        return text + &rows(&overview.quanta) + &sources::brief(attribution);
    }
    text += &cpu_table(&overview.cpus);
    text += &overview.simultaneous.as_ref().map(simultaneous).unwrap_or_default();
    text += &sources::brief(attribution);
    let noise = Durations::from_noise(&recording.traces);
    if noise.is_empty() {
        return text + "\nNo detour was above the threshold.\n";
    }
    text.push('\n');
    text += &histogram(&noise);
    for trace in noisiest(&recording.traces) {
        text.push('\n');
        text += &time_line(trace);
    }
    text + &periods(&overview.cpus)
}

/// What strikes all CPUs at the same time, if anything does.
fn simultaneous(found: &Simultaneous) -> String {
    if found.strikes == 0 {
        return String::new();
    }
    format!(
        "At the same time on all {} CPUs: {} detours, {} in all, up to {} ({:.1} by chance)\n",
        found.cpus,
        found.strikes,
        time(found.total_ns as f64),
        time(found.longest_ns as f64),
        found.by_chance,
    )
}

/// How much noise there is, compared with other systems, and which source has most of it.
fn verdict(overview: &Overview, attribution: &Attribution) -> String {
    let sum = |of: fn(&CpuOverview) -> u64| overview.cpus.iter().map(of).fold(0, u64::saturating_add) as f64;
    let (noise, observed) = (sum(|cpu| cpu.noise_ns), sum(|cpu| cpu.observed_ns));
    if observed <= 0.0 {
        return String::new();
    }
    let percent = 100.0 * noise / observed;
    let [least, most] = USUAL_PERCENT;
    let compared = match percent {
        _ if percent < least => "less than",
        _ if percent <= most => "as much as",
        _ => "more than",
    };
    let sources = attribution.sources.iter().flatten().filter(|row| !row.own);
    let first = sources.max_by_key(|row| row.in_detours_ns).filter(|row| row.in_detours_ns > Some(0));
    let who = first.map_or_else(String::new, |row| format!(", mostly {}", one_line(&row.source)));
    format!(
        "noise takes {percent:.3} % of the CPUs' time{who}: {compared} systems for parallel programs have ({least} – {most} %)\n"
    )
}

/// What was recorded, and its warnings.
pub fn heading(overview: &Overview) -> String {
    let mut facts = vec![one_line(&overview.name)];
    facts.extend(overview.host.as_deref().map(|host| format!("host {}", one_line(host))));
    facts.push(format!("method {}", overview.method));
    let spans = overview.cpus.iter().map(|cpu| cpu.span_ns).chain(overview.quanta.iter().map(|q| q.span_ns));
    let spans = spans.chain(overview.memory.iter().map(|row| row.span_ns));
    let counted = overview.histograms.iter().map(|one| one.span_ns).filter(|ns| *ns > 0);
    let watched = spans.chain(counted).max();
    facts.extend(watched.map(|ns| format!("watched {}", time(ns as f64))));
    facts.extend(overview.threshold_ns.map(|ns| format!("threshold {}", time(ns))));
    facts.extend(
        overview
            .clock
            .as_ref()
            .map(|c| format!("clock {} in steps of {}", one_line(&c.name), time(c.granularity_ns))),
    );
    facts.push(format!("lost {}", overview.lost));
    let mut text = facts.join(" · ") + "\n";
    if overview.state != "complete" {
        text += &format!(
            "state: {}{}\n",
            overview.state,
            match overview.state.as_str() {
                "recording" => " (it was cut off, or is still being made; this is what was written)",
                _ => "",
            }
        );
    }
    text.extend(overview.note.iter().map(|note| format!("note: {}\n", one_line(note))));
    text += &warnings::lines(&overview.warnings);
    text
}

fn cpu_table(cpus: &[CpuOverview]) -> String {
    let mut text = rows(cpus);
    for cpu in cpus.iter().filter(|cpu| cpu.own_detours > 0) {
        let (count, taken) = (cpu.own_detours, time(cpu.own_ns as f64));
        text += &format!(
            "quell's own writing: {count} detours, {taken}, on CPU {}; the figures exclude them\n",
            cpu.cpu
        );
    }
    text
}

fn histogram_table(histograms: &[HistogramOverview]) -> String {
    rows(histograms)
        + "A quantile is the upper end of its bucket. Order and start times are unknown: quell cannot predict or replay from this.\n"
}

fn histogram(noise: &Durations) -> String {
    let histogram = LogHistogram::from_sample(noise, 3);
    let bars: Vec<(String, u64)> = histogram
        .counts
        .iter()
        .enumerate()
        .map(|(i, &count)| {
            (format!("{:>7} – {:>7}", time(histogram.edges_ns[i]), time(histogram.edges_ns[i + 1])), count)
        })
        .collect();
    plots::bars("How long detours last, all CPUs (bars on a log scale)", width(), &bars)
}

fn noisiest(traces: &[Trace]) -> Vec<&Trace> {
    let lost = |trace: &&Trace| trace.noise().map(|d| d.duration.as_nanos()).fold(0, u64::saturating_add);
    let mut order: Vec<&Trace> = traces.iter().collect();
    order.sort_by_key(|trace| std::cmp::Reverse(lost(trace)));
    order.truncate(MOST_PLOTS);
    order.sort_by_key(|trace| trace.cpu);
    order
}

fn time_line(trace: &Trace) -> String {
    let noise: Vec<_> = trace.noise().collect();
    let durations: Vec<u64> = noise.iter().map(|d| d.duration.as_nanos()).collect();
    let log = |ns: u64| (ns.max(1) as f64).log10();
    let point = |place: usize| ((noise[place].start - trace.span.start).as_secs_f64(), log(durations[place]));
    let points: Vec<(f64, f64)> = downsample(&durations, MOST_POINTS).into_iter().map(point).collect();
    let (low, high) =
        points.iter().fold((f64::INFINITY, 0.0), |(low, high), p| (p.1.min(low), p.1.max(high)));
    if points.is_empty() {
        return format!("CPU {}: no detours\n", trace.cpu);
    }
    let x = Scale::linear(trace.span.length().as_secs_f64(), |s| plots::time(1e9 * s));
    let y = Scale::log(low, high, plots::decade);
    let series = Series { name: String::new(), points, line: false };
    plots::chart(&format!("Detours over time, CPU {}", trace.cpu), width(), 14, &x, &y, &[series])
}

fn periods(cpus: &[CpuOverview]) -> String {
    let found: Vec<PeriodRow<'_>> = cpus
        .iter()
        .flat_map(|cpu| cpu.periods.iter().map(move |period| PeriodRow { cpu: cpu.cpu, period }))
        .collect();
    if found.is_empty() {
        return "\nNo periodic source stands out.\n".into();
    }
    format!("\nPeriodic sources (by spectrum)\n{}", rows(&found))
}
