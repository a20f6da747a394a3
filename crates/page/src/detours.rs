//! Reduces a recording's detours to a number that a page can hold.

use quell_analysis::density::Density;
use quell_analysis::downsample;
use quell_analysis::stats::Durations;
use quell_analysis::whatif::{MainSources, OTHERS};
use quell_recording::{Detour, Nanos, Trace};
use serde_json::{Value, json};

/// Maximum number of points in one CPU's timeline: more are indistinguishable.
const MOST_POINTS: usize = 4_000;
/// Maximum number of points for all CPUs together, which bounds the size of the page.
const MOST_POINTS_ALL: usize = 44_000;

/// Maximum number of sources that a timeline names; the others are one.
const MOST_SOURCES: usize = 8;

/// The names of the sources in a timeline, in the order of their digits.
pub(super) fn names(sources: &MainSources) -> Value {
    let named = sources.families.iter().map(String::as_str).take(MOST_SOURCES);
    let others = (sources.families.len() > MOST_SOURCES).then_some(OTHERS);
    named.chain(others).collect()
}

/// The detours of each CPU over time.
pub(super) fn timeline(traces: &[Trace], sources: Option<&MainSources>) -> Value {
    let room = (MOST_POINTS_ALL / traces.len().max(1)).min(MOST_POINTS);
    let sources = |at: usize| sources.and_then(|sources| sources.detours.get(at)).map(Vec::as_slice);
    traces.iter().enumerate().map(|(at, trace)| cpu_values(trace, sources(at), room)).collect()
}

/// At most `room` detours of a CPU, selected by [`downsample`].
fn cpu_values(trace: &Trace, sources: Option<&[(Nanos, usize)]>, room: usize) -> Value {
    let durations: Vec<u64> = trace.detours.iter().map(|d| d.duration.as_nanos()).collect();
    let kept: Vec<&Detour> =
        downsample(&durations, room).into_iter().map(|place| &trace.detours[place]).collect();
    let starts: Vec<u64> = kept.iter().map(|d| (d.start - trace.span.start).as_nanos() / 1_000).collect();
    // From each start to the next, which has half the digits of the start.
    let before = std::iter::once(0).chain(starts.iter().copied());
    // Imported files may not be sorted.
    let steps: Vec<i64> =
        starts.iter().zip(before).map(|(start, before)| *start as i64 - before as i64).collect();
    json!({
        "cpu": trace.cpu.0,
        "steps_us": steps,
        "duration_ns": kept.iter().map(|d| d.duration.as_nanos()).collect::<Vec<_>>(),
        // One digit for each detour.
        "sources": sources.map(|sources| kept.iter().map(|d| digit(d, sources)).collect::<String>()),
        "own": (0..kept.len()).filter(|&at| kept[at].own).collect::<Vec<_>>(),
        "shown": kept.len(),
        "total": trace.detours.len(),
    })
}

/// The digit of the source that took most of a detour; detours without a gap between them are one there.
fn digit(detour: &Detour, sources: &[(Nanos, usize)]) -> char {
    let before = sources.partition_point(|(start, _)| *start <= detour.start);
    let source = before.checked_sub(1).map_or(MOST_SOURCES, |at| sources[at].1.min(MOST_SOURCES));
    char::from(b'0' + source as u8)
}

/// The distribution of detour durations, for each CPU that has detours.
pub(super) fn density(traces: &[Trace]) -> Value {
    let cpu_values = |trace: &Trace| curve(&Durations::from_noise([trace]), &json!({ "cpu": trace.cpu.0 }));
    traces.iter().filter_map(cpu_values).collect()
}

/// The distribution of detour durations of whole recordings, by name.
pub(super) fn densities(recordings: &[(String, Vec<Trace>)]) -> Value {
    let of_one = |(number, (name, traces)): (usize, &(String, Vec<Trace>))| {
        curve(&Durations::from_noise(traces.iter()), &json!({ "cpu": number, "name": name }))
    };
    recordings.iter().enumerate().filter_map(of_one).collect()
}

/// The curve of a CPU or a recording, which `whose` identifies.
fn curve(noise: &Durations, whose: &Value) -> Option<Value> {
    if noise.is_empty() {
        return None;
    }
    let Density { log10_ns, density, .. } = Density::estimate(noise);
    let round = |values: Vec<f64>| values.into_iter().map(|v| (v * 1e5).round() / 1e5).collect::<Vec<_>>();
    let mut whose = whose.clone();
    // The grid is even.
    let ends = log10_ns.first().copied().zip(log10_ns.last().copied());
    whose["log10_ns"] = json!(ends.map(|(first, last)| round(vec![first, last])));
    whose["density"] = json!(round(density));
    Some(whose)
}

#[cfg(test)]
mod tests {
    use quell_recording::{Cpu, Span};

    use super::*;

    fn trace(cpu: u32, detours: u64) -> Trace {
        let detour = |at: u64| Detour {
            start: Nanos::from_nanos(at * 60_000_000_000 / detours),
            duration: Nanos::from_nanos(1_000 + at * 7_919 % 90_000),
            own: at == 1,
        };
        let span = Span { start: Nanos::ZERO, end: Nanos::from_secs(60) };
        Trace { cpu: Cpu(cpu), span, detours: (0..detours).map(detour).collect() }
    }

    #[test]
    fn a_timeline_holds_steps_and_which_detours_are_quells_own() {
        let line = cpu_values(&trace(3, 4), None, 10);
        assert_eq!(line["steps_us"], json!([0, 15_000_000, 15_000_000, 15_000_000]));
        assert_eq!((&line["own"], &line["cpu"], &line["total"]), (&json!([1]), &json!(3), &json!(4)));
        let mut backwards = trace(0, 2);
        backwards.detours.reverse();
        assert_eq!(cpu_values(&backwards, None, 10)["steps_us"], json!([30_000_000, -30_000_000]));
    }

    /// A page has some 300 kB of styles and scripts, and the tables.
    #[test]
    fn the_plots_of_64_cpus_leave_room_in_a_page_of_a_megabyte() {
        let traces: Vec<Trace> = (0..64).map(|cpu| trace(cpu, 4_000)).collect();
        let length = timeline(&traces, None).to_string().len() + density(&traces).to_string().len();
        assert!(length < 600_000, "{length}");
    }

    #[test]
    fn a_timeline_has_a_digit_for_the_source_of_each_detour() {
        let at = |us: u64, source| (Nanos::from_nanos(1_000 * us), source);
        // The second detour touches the first; the last is of one of many sources.
        let sources = [at(0, 2), at(30_000_000, 0), at(45_000_000, 12)];
        assert_eq!(cpu_values(&trace(0, 4), Some(&sources), 10)["sources"], json!("2208"));
        assert_eq!(cpu_values(&trace(0, 2), Some(&[]), 10)["sources"], json!("88"));
        let families = |count: usize| (0..count).map(|family| family.to_string()).collect();
        let named = |count| names(&MainSources { families: families(count), detours: Vec::new() });
        assert_eq!(
            (named(1), named(8)[7].clone(), named(9)[8].clone()),
            (json!(["0"]), json!("7"), json!(OTHERS))
        );
    }
}
