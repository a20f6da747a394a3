//! `quell convert` to a Perfetto timeline, run as a program.

use std::path::Path;

use crate::support::{netgauge, run, transcript};
use insta::assert_snapshot;
use quell_recording::{
    Cpu, CpuFacts, Detour, Interval, Manifest, Method, Nanos, Source, SourcesFacts, Span, State, Writer,
};

const HOSTILE: &str = "\u{1b}]0;owned\u{7}\n<script>";

fn ns(n: u64) -> Nanos {
    Nanos::from_nanos(n)
}

/// A recording of CPU 1: two detours and four kernel intervals, some of them with hostile names.
fn record(folder: &Path, method: Method) {
    let span = Span { start: Nanos::ZERO, end: ns(1_000_000) };
    let mut manifest = Manifest::new(method, State::Recording);
    manifest.zero_monotonic_ns = Some(7_000_000_000);
    manifest.cpus = vec![CpuFacts::from_span(Cpu(1), span)];
    manifest.sources = Some(SourcesFacts { lost: 3, ..SourcesFacts::default() });
    let mut writer = Writer::create(&folder.join("a.quell"), &manifest).unwrap();
    if method == Method::Detour {
        let detour = |start| (Cpu(1), Detour { start: ns(start), duration: ns(4_000), own: false });
        writer.detours(&[detour(10_000), detour(20_000)]).unwrap();
    }
    let interval = |source: Source, start, duration| {
        let detail = Some(HOSTILE.into());
        let (start, duration) = (ns(start), ns(duration));
        (Cpu(1), Interval { start, duration, net: duration, source, pid: 0, victim: 0, detail, cause: None })
    };
    let rows = [
        interval(Source::Tick, 10_500, 2_000),
        interval(Source::Softirq("TIMER".into()), 12_500, 500),
        interval(Source::Task(HOSTILE.into()), 20_100, 3_800),
        interval(Source::Irq(HOSTILE.into()), 21_000, 0),
    ];
    writer.intervals(&rows).unwrap();
    manifest.state = State::Complete;
    writer.finish(&mut manifest).unwrap();
}

#[test]
fn a_timeline_says_what_it_holds_and_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    netgauge(dir.path());
    record(dir.path(), Method::Detour);
    let calls: [&[&str]; 4] = [
        &["convert", "a.quell", "a.pftrace"],
        &["convert", "selfish.txt", "b.perfetto-trace"],
        &["convert", "a.quell", "c.trace", "--to", "perfetto", "--cpu", "2"],
        &["convert", "--help"],
    ];
    let printed = calls.map(|args| format!("$ quell {}\n{}\n", args.join(" "), transcript(dir.path(), args)));
    assert_snapshot!(printed.concat());
}

#[test]
fn names_reach_the_timeline_harmless() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), Method::Detour);
    assert!(run(dir.path(), &["convert", "a.quell", "a.pftrace"]).status.success());
    let trace = fs_err::read(dir.path().join("a.pftrace")).unwrap();
    let text = String::from_utf8_lossy(&trace);
    assert!(text.contains("task:\u{fffd}]0;owned\u{fffd}\u{fffd}<script>") && text.contains("softirq:TIMER"));
    assert!(!text.contains("\u{1b}]0;") && !text.contains("owned\u{7}") && !text.contains("\n<script>"));
}

#[test]
fn what_has_no_detours_is_still_a_timeline_and_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    record(dir.path(), Method::Kernel);
    for output in ["a.pftrace", "b.quell"] {
        assert!(run(dir.path(), &["convert", "a.quell", output]).status.success(), "{output}");
    }
    let refused = transcript(dir.path(), &["convert", "a.quell", "a.txt", "--to", "netgauge"]);
    assert!(refused.contains("holds kernel intervals"), "{refused}");
    assert!(!dir.path().join("a.txt").exists());
}
