//! Reports what the new file holds, and what the format cannot hold.

use quell_recording::formats::{Format, Imported};
use quell_recording::{Method, Recording};

use super::{Request, Target};
use crate::printer::Printer;

pub(super) fn what_is_left_out(input: &Imported, target: Target, args: &Request<'_>, printer: Printer) {
    let recording = &input.recording;
    let output = args.output.display();
    let kept = match target {
        Target::Recording => return,
        Target::File(Format::Perfetto) => return what_is_on_the_timeline(recording, args, printer),
        Target::File(Format::Csv) => match recording.manifest.method {
            Method::Fwq | Method::Ftq => "the quanta; not their nominal length, the clock, the host",
            Method::Kernel => {
                "the kernel's intervals; not when each CPU's span ends, what was lost, the clock, the host"
            }
            Method::Histogram => "the buckets; not how long each CPU was watched, nor the host",
            _ => "the detours; not when each CPU's span ends, the kernel's intervals, the clock, the host",
        },
        Target::File(Format::HdrHistogram) => {
            "how long detours were or how often buckets were hit, to three digits, a line for each CPU; neither order nor starts"
        }
        Target::File(Format::Chrome) => {
            "detours, quanta and the kernel's intervals; not the spans of CPUs, what was lost, the threads of a command"
        }
        Target::Otf2 => {
            "a location for each CPU, with detours, quanta and the kernel's intervals as regions; not net times, details, causes, the \
             threads of a command"
        }
        Target::OpenMetrics => {
            "sums by CPU and source, and a histogram for each kind; no single detour or interval"
        }
        Target::File(Format::LogGopSim) => {
            "the detours and their span, as LogGOPSim reads them (--noise-trace); not the CPU, the clock, the wall-clock time"
        }
        Target::File(Format::Netgauge) => match recording.manifest.method {
            Method::Fwq => "how many whole us each quantum took; not when it began, the CPU, the clock",
            Method::Ftq => "the work in each quantum; not when it began, the CPU, the clock",
            _ => "the detours and their span; not the CPU, the clock, the host, nor the wall-clock time",
        },
        Target::File(Format::Vpsum) => {
            "when each phase began and how long it computed, in whole us; not the time in the operation, the steps of work, the \
             kernel's intervals"
        }
        Target::File(Format::Psnap) => {
            "how many phases of each rank took how many whole us; not their order, when they were, the time in the operation, the \
             kernel's intervals"
        }
    };
    printer.status(&format!("{output} holds {kept}"));
    let own = recording.traces.iter().flat_map(|t| &t.detours).filter(|d| d.own).count();
    if own > 0 && matches!(target, Target::File(Format::Netgauge | Format::LogGopSim | Format::HdrHistogram))
    {
        printer.status(&format!("{own} detours of quell's own are left out"));
    }
}

fn what_is_on_the_timeline(recording: &Recording, args: &Request<'_>, printer: Printer) {
    let manifest = &recording.manifest;
    let detours: usize = recording.traces.iter().map(|trace| trace.detours.len()).sum();
    let quanta: usize = recording.quanta.iter().map(|series| series.quanta.len()).sum();
    let intervals: usize = recording.intervals.iter().map(|side| side.intervals.len()).sum();
    let counts = [(detours, "detours"), (quanta, "quanta"), (intervals, "kernel intervals")];
    let held: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let held =
        if held.is_empty() { "nothing but when each CPU was watched".to_owned() } else { held.join(", ") };
    printer.status(&format!("{} holds {held}; open it at https://ui.perfetto.dev", args.output.display()));
    if intervals == 0 {
        let why = manifest.sources.as_ref().and_then(|sources| sources.unknown_because.as_deref());
        printer.warn(&format!(
            "sources are unknown: {}",
            why.unwrap_or("the recording holds no kernel intervals")
        ));
    }
    if manifest.zero_monotonic_ns.is_none() {
        printer.warn(
            "its times count from the start of the recording: CLOCK_MONOTONIC at that moment is unknown",
        );
    }
    let lost = manifest.lost().saturating_add(manifest.sources.as_ref().map_or(0, |sources| sources.lost));
    if lost > 0 {
        printer.warn(&format!("{lost} rows were lost while recording and are not on the timeline"));
    }
}
