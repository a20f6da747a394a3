//! Reduces a recording's detours to a number that a page can hold.

use quell_analysis::density::Density;
use quell_analysis::downsample;
use quell_analysis::stats::Durations;
use quell_recording::{Detour, Trace};
use serde_json::{Value, json};

/// Maximum number of points in one CPU's timeline: more are indistinguishable.
const MOST_POINTS: usize = 4_000;
/// Maximum number of points for all CPUs together, which bounds the size of the page.
const MOST_POINTS_ALL: usize = 64_000;

/// The detours of each CPU over time.
pub(super) fn timeline(traces: &[Trace]) -> Value {
    let room = (MOST_POINTS_ALL / traces.len().max(1)).min(MOST_POINTS);
    traces.iter().map(|trace| cpu_values(trace, room)).collect()
}

/// At most `room` detours of a CPU, selected by [`downsample`].
fn cpu_values(trace: &Trace, room: usize) -> Value {
    let durations: Vec<u64> = trace.detours.iter().map(|d| d.duration.as_nanos()).collect();
    let kept: Vec<&Detour> =
        downsample(&durations, room).into_iter().map(|place| &trace.detours[place]).collect();
    let second = |d: &Detour| ((d.start - trace.span.start).as_nanos() / 1_000) as f64 / 1e6;
    json!({
        "cpu": trace.cpu.0,
        "seconds": kept.iter().map(|d| second(d)).collect::<Vec<_>>(),
        "duration_ns": kept.iter().map(|d| d.duration.as_nanos()).collect::<Vec<_>>(),
        "own": kept.iter().map(|d| u8::from(d.own)).collect::<Vec<_>>(),
        "shown": kept.len(),
        "total": trace.detours.len(),
    })
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
    whose["log10_ns"] = json!(round(log10_ns));
    whose["density"] = json!(round(density));
    Some(whose)
}
