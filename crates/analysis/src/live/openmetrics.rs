//! [`Counters`] as OpenMetrics text (version 1.0.0, <https://prometheus.io/docs/specs/om/open_metrics_spec/>).

use std::fmt::Write as _;

use super::Counters;
use super::counters::{BOUNDS, Sum};

/// The content type of [`openmetrics`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The current values of all counters. `version` is that of quell.
pub fn openmetrics(counters: &Counters, version: &str) -> String {
    let mut text = String::new();
    build(&mut text, version);
    observed(&mut text, counters);
    noise(&mut text, counters);
    durations(&mut text, counters);
    if let Some(detours) = &counters.detours {
        by_cpu(
            &mut text,
            counters,
            ("quell_detour_seconds", "quell_detours"),
            ("Time that the probe lost", "Detours that the probe saw"),
            detours,
        );
    }
    by_cpu(
        &mut text,
        counters,
        ("quell_own_seconds", "quell_own_runs"),
        ("Time that quell itself took", "How often quell itself ran"),
        &counters.own,
    );
    lost(&mut text, counters);
    text + "# EOF\n"
}

fn head(text: &mut String, name: &str, kind: &str, unit: Option<&str>, help: &str) {
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if let Some(unit) = unit {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {help}.");
}

fn build(text: &mut String, version: &str) {
    // Not of the type `info`: readers of Prometheus's older text format, as node_exporter's of files, refuse it.
    head(text, "quell_build_info", "gauge", None, "The program that answers");
    let _ = writeln!(text, "quell_build_info{{version=\"{}\"}} 1", escaped(version));
}

fn observed(text: &mut String, counters: &Counters) {
    let name = "quell_observed_seconds";
    head(text, name, "counter", Some("seconds"), "Time for which a CPU has been watched");
    for (cpu, observed) in counters.cpus.iter().zip(&counters.observed) {
        let _ = writeln!(text, "{name}_total{{cpu=\"{}\"}} {}", cpu.0, seconds(observed.as_nanos()));
    }
}

/// A metric of sources: its name, unit and help, and how its value is computed from a sum.
type Metric = (&'static str, Option<&'static str>, &'static str, fn(&Sum) -> String);

/// Writes a line for each CPU and each source that was seen on it.
fn noise(text: &mut String, counters: &Counters) {
    let help = "Time that a source took from a CPU, net of what interrupted it; tasks are all that ran, programs of users too";
    let metrics: [Metric; 2] = [
        ("quell_noise_seconds", Some("seconds"), help, |sum| seconds(sum.ns)),
        ("quell_noise_events", None, "How often a source took a CPU", |sum| sum.count.to_string()),
    ];
    for (name, unit, help, value) in metrics {
        head(text, name, "counter", unit, help);
        for (source, sums) in &counters.named {
            let source = escaped(source);
            for (cpu, sum) in counters.cpus.iter().zip(sums).filter(|(_, sum)| sum.count > 0) {
                let _ =
                    writeln!(text, "{name}_total{{cpu=\"{}\",source=\"{source}\"}} {}", cpu.0, value(sum));
            }
        }
    }
}

fn durations(text: &mut String, counters: &Counters) {
    let name = "quell_noise_duration_seconds";
    head(
        text,
        name,
        "histogram",
        Some("seconds"),
        "How long what took a CPU lasted, by kind of source, on all CPUs",
    );
    for (kind, histogram) in &counters.kinds {
        let mut below = 0;
        for (at, count) in histogram.buckets.iter().enumerate() {
            below += count;
            let bound = BOUNDS.get(at).map_or_else(|| "+Inf".to_owned(), |&ns| float(ns));
            let _ = writeln!(text, "{name}_bucket{{kind=\"{kind}\",le=\"{bound}\"}} {below}");
        }
        let _ = writeln!(text, "{name}_count{{kind=\"{kind}\"}} {below}");
        let _ = writeln!(text, "{name}_sum{{kind=\"{kind}\"}} {}", seconds(histogram.sum.ns));
    }
}

fn by_cpu(text: &mut String, counters: &Counters, names: (&str, &str), help: (&str, &str), sums: &[Sum]) {
    head(text, names.0, "counter", Some("seconds"), help.0);
    for (cpu, sum) in counters.cpus.iter().zip(sums) {
        let _ = writeln!(text, "{}_total{{cpu=\"{}\"}} {}", names.0, cpu.0, seconds(sum.ns));
    }
    head(text, names.1, "counter", None, help.1);
    for (cpu, sum) in counters.cpus.iter().zip(sums) {
        let _ = writeln!(text, "{}_total{{cpu=\"{}\"}} {}", names.1, cpu.0, sum.count);
    }
}

fn lost(text: &mut String, counters: &Counters) {
    let name = "quell_lost_events";
    head(
        text,
        name,
        "counter",
        None,
        "Rows that came faster than they could be read, and are in no other figure",
    );
    for (table, lost) in [("detours", counters.lost_detours), ("intervals", counters.lost_intervals)] {
        let _ = writeln!(text, "{name}_total{{table=\"{table}\"}} {lost}");
    }
}

/// Nanoseconds as seconds, exactly.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// A bound as the canonical real number that the specification requires.
fn float(ns: u64) -> String {
    let value = ns as f64 / 1e9;
    let text = if value < 1e-4 { format!("{value:e}") } else { value.to_string() };
    match text.split_once("e-") {
        Some((digits, power)) => format!("{digits}e-{power:0>2}"),
        None if text.contains('.') => text,
        None => text + ".0",
    }
}

/// Escapes a label's value, which a process or a driver chose: untrusted text.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use quell_recording::{Cpu, Nanos};

    use super::*;
    use crate::attribution::fixture::{task, tick};

    #[test]
    fn all_counters_are_reported() {
        let mut counters = Counters::new(&[Cpu(1), Cpu(3)], true, 7);
        let bad = "a\"b\\c\nd";
        for at in 0..2 {
            let rows = [
                (Cpu(1), tick(0, 2_000)),
                (Cpu(3), task(bad, 9, 0, 1_500_000)),
                (Cpu(3), task("q", 7, 0, 9)),
            ];
            counters.intervals(rows.into_iter());
            counters.observe(Nanos::from_nanos(at + 1_000_000_000), |_| true);
            counters.turn(at, 0);
        }
        let text = openmetrics(&counters, "1.2.3");
        for line in [
            "# TYPE quell_noise_seconds counter",
            "# UNIT quell_noise_seconds seconds",
            "# TYPE quell_build_info gauge",
            "quell_build_info{version=\"1.2.3\"} 1",
            "quell_observed_seconds_total{cpu=\"3\"} 1.000000001",
            "quell_noise_seconds_total{cpu=\"1\",source=\"tick\"} 0.000004000",
            "quell_noise_seconds_total{cpu=\"3\",source=\"task:a\\\"b\\\\c\u{fffd}d\"} 0.001500000",
            "quell_noise_events_total{cpu=\"3\",source=\"other\"} 1",
            "quell_noise_duration_seconds_bucket{kind=\"tick\",le=\"2.5e-06\"} 2",
            "quell_noise_duration_seconds_bucket{kind=\"task\",le=\"0.001\"} 0",
            "quell_noise_duration_seconds_bucket{kind=\"task\",le=\"+Inf\"} 2",
            "quell_noise_duration_seconds_sum{kind=\"task\"} 0.003000000",
            "quell_own_seconds_total{cpu=\"3\"} 0.000000018",
            "quell_lost_events_total{table=\"intervals\"} 1",
            "quell_detours_total{cpu=\"1\"} 0",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n") && !text.contains("\n\n"));
        assert!(!openmetrics(&Counters::new(&[Cpu(1)], false, 7), "1").contains("detours_total{cpu"));
    }

    #[test]
    fn bounds_are_canonical() {
        let bounds = [1_000, 25_000, 100_000, 2_500_000, 1_000_000_000].map(float);
        assert_eq!(bounds, ["1e-06", "2.5e-05", "0.0001", "0.0025", "1.0"]);
    }
}
