//! Noise sources: the tables of `show --by`, from synthetic recordings.

use std::path::Path;

use crate::support;
use crate::support::{json, run, transcript};
use insta::assert_snapshot;
use quell_recording::{
    Cpu, CpuFacts, Detour, Interval, Manifest, Method, Nanos, Source, SourceKind, SourcesFacts, Span, State,
    Taken, Thread, Writer,
};
use serde_json::{Value, json as made};

/// A hostile process name.
const HOSTILE: &str = "\u{1b}[31m<script>\nx";

fn ns(ns: u64) -> Nanos {
    Nanos::from_nanos(ns)
}

fn interval(source: Source, pid: u32, start: u64, duration: u64) -> Interval {
    let (start, duration) = (ns(start), ns(duration));
    Interval { start, duration, net: duration, source, pid, victim: 0, detail: None, cause: None }
}

fn manifest(method: Method) -> Manifest {
    let mut manifest = Manifest::new(method, State::Complete);
    manifest.threshold_ns = Some(150.0);
    manifest.sources = Some(SourcesFacts { own_pid: Some(4_242), ..SourcesFacts::default() });
    let span = Span { start: ns(0), end: ns(1_000_000_000) };
    manifest.cpus = vec![CpuFacts::from_span(Cpu(1), span), CpuFacts::from_span(Cpu(3), span)];
    manifest
}

/// A recording: a tick every 4 ms with a softirq in each tenth, a hostile daemon every 100 ms, 300 ns unattributed after each tick.
fn node(folder: &Path) {
    let mut manifest = manifest(Method::Detour);
    let mut writer = Writer::create(&folder.join("node.quell"), &manifest).unwrap();
    for cpu in [Cpu(1), Cpu(3)] {
        let (mut detours, mut intervals) = (Vec::new(), Vec::new());
        for i in 0..240u64 {
            let at = 1_000_000 + i * 4_000_000;
            let softirq = if i % 10 == 0 { 3_000 } else { 0 };
            let timer = Some("tick_nohz_handler".into());
            intervals.push(Interval { detail: timer, ..interval(Source::Tick, 0, at + 200, 5_000) });
            if softirq > 0 {
                intervals.push(interval(Source::Softirq("RCU".into()), 0, at + 5_300, softirq));
            }
            detours.push((at, 6_000 + softirq));
            detours.push((at + 14_000, 300));
            if i % 25 == 0 {
                let waker = Some(HOSTILE.into());
                let daemon = interval(Source::Task(HOSTILE.into()), 77, at + 2_001_000, 200_000);
                intervals.push(Interval { cause: waker, ..daemon });
                detours.push((at + 2_000_000, 203_000));
            }
        }
        intervals.push(interval(Source::Task("quell".into()), 4_242, 11_000, 1_000));
        let detour =
            |(start, duration)| (cpu, Detour { start: ns(start), duration: ns(duration), own: false });
        writer.detours(&detours.into_iter().map(detour).collect::<Vec<_>>()).unwrap();
        writer.intervals(&intervals.into_iter().map(|one| (cpu, one)).collect::<Vec<_>>()).unwrap();
    }
    writer.finish(&mut manifest).unwrap();
}

/// A recording of a command with two threads, one of which a bully preempts.
fn command(folder: &Path) {
    let mut manifest = manifest(Method::Kernel);
    manifest.sources.as_mut().unwrap().command_pid = Some(900);
    manifest.sources.as_mut().unwrap().command_exit_code = Some(0);
    let mut writer = Writer::create(&folder.join("job.quell"), &manifest).unwrap();
    let bully = Interval { victim: 900, ..interval(Source::Task("bully".into()), 5, 10_000, 4_000_000) };
    let tick = Interval { victim: 901, ..interval(Source::Tick, 0, 20_000, 6_000) };
    writer.intervals(&[(Cpu(1), bully), (Cpu(3), tick)]).unwrap();
    let thread = |tid: u32, kind: SourceKind, took: u64| {
        let mut taken = [Taken::default(); SourceKind::ALL.len()];
        taken[kind as usize] = Taken { time: ns(took), count: 1 };
        let (comm, on_cpu, run_delay) = ("job\u{7}".into(), ns(16_000_000), ns(took));
        let yielded = Taken { time: ns(if kind == SourceKind::Tick { 2_000_000 } else { 0 }), count: 1 };
        let (start, end, moved) = (ns(0), ns(30_000_000), Taken::default());
        Thread { tid, pid: 900, comm, start, end, on_cpu, run_delay, taken, yielded, moved }
    };
    let first = (Cpu(1), thread(900, SourceKind::Task, 4_000_000));
    writer.threads(&[first, (Cpu(3), thread(901, SourceKind::Tick, 6_000))]).unwrap();
    writer.finish(&mut manifest).unwrap();
}

#[test]
fn sources_tasks_and_classes_are_tables() {
    let dir = tempfile::tempdir().unwrap();
    node(dir.path());
    let printed = ["source", "task", "class"].map(|by| {
        let text = transcript(dir.path(), &["show", "node.quell", "--by", by]);
        assert!(text.contains('\u{fffd}') || by == "class", "{text}");
        format!("$ quell show node.quell --by {by}\n{text}\n")
    });
    assert_snapshot!(printed.concat());
}

#[test]
fn a_command_is_shown_by_thread() {
    let dir = tempfile::tempdir().unwrap();
    command(dir.path());
    assert_snapshot!(transcript(dir.path(), &["show", "job.quell"]));
    let show = json(dir.path(), &["show", "job.quell", "--json"]);
    assert_eq!(show["command"]["threads"], 2);
    assert_eq!(show["threads"][0]["had_percent"], 80.0);
    assert!(show["explained"].is_null() && show["sources"].is_array());
}

#[test]
fn hostile_names_do_no_harm_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    node(dir.path());
    command(dir.path());
    for recording in ["node.quell", "job.quell"] {
        for by in ["cpu", "source", "task", "class"] {
            let output = run(dir.path(), &["show", recording, "--by", by]);
            assert!(output.status.success());
            assert!(![0x1b, 0x07].iter().any(|byte| output.stdout.contains(byte)), "{recording} by {by}");
        }
        let page = dir.path().join(recording).with_extension("html");
        assert!(run(dir.path(), &["report", recording, "--ranks", "16", "--phases", "50"]).status.success());
        let page = fs_err::read_to_string(page).unwrap();
        assert!(!page.contains("<script>\\nx") && !page.contains('\u{1b}'), "{recording}");
    }
    let show = json(dir.path(), &["show", "node.quell", "--json", "--by", "task"]);
    assert_eq!(show["tasks"][0]["name"], HOSTILE, "JSON keeps what was there, escaped");
}

#[test]
fn a_study_is_reported_again_with_its_trials() {
    let dir = tempfile::tempdir().unwrap();
    let study = dir.path().join("s");
    fs_err::create_dir(&study).unwrap();
    node(&study);
    let write = |name: &str, text: &str| fs_err::write(study.join(name), text).unwrap();
    write(
        "predict-none.json",
        r#"{"quantum_ns":500000,"phases":50,"seed":9,"points":[{"ranks":16},{"ranks":4}]}"#,
    );
    write("try-ksm.json", r#"{"schema":"quell.tune-try/3","mitigations":[{"id":"ksm","title":"applied"}]}"#);
    write("try-other.json", r#"{"schema":"quell.show/2","title":"unreported"}"#);
    let output = run(dir.path(), &["report", "s"]);
    let reported = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{reported}");
    assert!(
        reported.contains("try-other.json is not on the page") && !reported.contains("try-ksm.json"),
        "{reported}"
    );
    let page = fs_err::read_to_string(study.join("report.html")).unwrap();
    let (_, data) = page.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["trials"].as_array().unwrap().len(), 1);
    assert_eq!(data["trials"][0]["mitigations"][0]["title"], "applied");
    let job = made!({"quantum_ns": 500_000, "op": "max", "sync": "none", "phases": 50, "seed": 9});
    assert_eq!(data["advice"]["job"], job);
}

#[test]
fn json_of_sources_has_the_fields_that_others_rely_on() {
    let dir = tempfile::tempdir().unwrap();
    node(dir.path());
    let show = json(dir.path(), &["show", "node.quell", "--json", "--by", "source"]);
    assert_eq!(show["schema"], "quell.show/2");
    for field in ["source", "count", "total_ns", "min_ns", "max_ns", "mean_ns", "period_ns", "class"] {
        assert!(show["sources"][0].get(field).is_some(), "{field}");
    }
    for field in ["count_percent", "time_percent", "time_without_tasks_percent", "unattributed_ns"] {
        assert!(show["explained"][field].is_number(), "{field}");
    }
    let tick = show["sources"].as_array().unwrap().iter().find(|row| row["source"] == "tick").unwrap();
    assert_eq!((tick["count"].as_u64(), tick["class"].as_str()), (Some(480), Some("type1")));
    assert!(show.get("tasks").is_none() && show["cpus"][0]["detours"].is_u64());
    let classes = json(dir.path(), &["show", "node.quell", "--json", "--by", "class"]);
    assert_eq!(classes["classes"][0]["class"], "type1");
}

#[test]
fn unknown_sources_are_reported_as_unknown() {
    let dir = tempfile::tempdir().unwrap();
    support::netgauge(dir.path());
    assert!(run(dir.path(), &["convert", "selfish.txt", "a.quell"]).status.success());
    let text = transcript(dir.path(), &["show", "a.quell", "--by", "source"]);
    assert!(text.contains("Sources are not known") && text.contains("quell doctor"), "{text}");
    let show = json(dir.path(), &["show", "a.quell", "--json"]);
    assert!(show["sources"].is_null() && show["sources_unknown_because"].is_string());
}
