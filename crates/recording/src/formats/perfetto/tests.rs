//! Decodes what was written and replays it, as a reader would.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;
use prost::Message as _;

use super::schema;
use crate::{
    Cpu, CpuFacts, Detour, Interval, Intervals, Manifest, Method, Nanos, Recording, Source, SourceKind, Span,
    State, Taken, Thread, Trace, Warning,
};

const ZERO: u64 = 5_000_000_000;

fn ns(n: u64) -> Nanos {
    Nanos::from_nanos(n)
}

fn interval(source: &str, start: u64, duration: u64) -> Interval {
    Interval {
        start: ns(start),
        duration: ns(duration),
        net: ns(duration / 2),
        source: source.parse::<Source>().unwrap(),
        pid: 0,
        victim: 0,
        detail: None,
        cause: None,
    }
}

fn recording(detours: Vec<Detour>, intervals: Vec<Interval>) -> Recording {
    let span = Span { start: Nanos::ZERO, end: ns(1_000_000) };
    let mut manifest = Manifest::new(Method::Detour, State::Complete);
    manifest.zero_monotonic_ns = Some(ZERO);
    manifest.zero_unix_ns = Some(1_700_000_000_000_000_000);
    manifest.cpus = vec![CpuFacts::from_span(Cpu(3), span)];
    Recording {
        path: PathBuf::from("a.quell"),
        manifest,
        traces: vec![Trace { cpu: Cpu(3), span, detours }],
        quanta: Vec::new(),
        intervals: vec![Intervals { cpu: Cpu(3), intervals }],
        threads: Vec::new(),
        histograms: Vec::new(),
    }
}

fn thread(tid: u32, comm: &str, start: u64, end: u64) -> Thread {
    Thread {
        tid,
        pid: 70,
        comm: comm.into(),
        start: ns(start),
        end: ns(end),
        on_cpu: ns(9),
        run_delay: ns(4),
        taken: [Taken::default(); SourceKind::ALL.len()],
        yielded: Taken::default(),
        moved: Taken::default(),
    }
}

/// One slice as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slice {
    track: String,
    name: String,
    start: u64,
    end: u64,
    depth: usize,
    notes: BTreeMap<String, String>,
}

fn packets(recording: &Recording) -> Vec<schema::TracePacket> {
    let mut out = Vec::new();
    super::write(recording, &mut out).unwrap();
    schema::Trace::decode(out.as_slice()).unwrap().packet
}

fn notes(event: &schema::TrackEvent) -> BTreeMap<String, String> {
    let note = |a: &schema::DebugAnnotation| {
        let number = a.uint_value.map(|n| n.to_string());
        (a.name.clone().unwrap(), a.string_value.clone().or(number).unwrap())
    };
    event.debug_annotations.iter().map(note).collect()
}

/// Replays the packets: tracks by path, slices by their pairs. Fails if a pair is broken or a track goes back in time.
fn slices(recording: &Recording) -> Vec<Slice> {
    let mut paths: BTreeMap<u64, String> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    let mut latest: BTreeMap<u64, u64> = BTreeMap::new();
    let mut done = Vec::new();
    for packet in packets(recording) {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        if let Some(track) = packet.track_descriptor {
            let parent = track.parent_uuid.map_or("", |uuid| paths[&uuid].as_str());
            let path = format!("{parent}/{}", track.name.unwrap());
            assert!(paths.insert(track.uuid.unwrap(), path).is_none(), "a track is described once");
        }
        let Some(event) = packet.track_event else { continue };
        assert_eq!(packet.timestamp_clock_id, Some(schema::MONOTONIC));
        let (track, at) = (event.track_uuid.unwrap(), packet.timestamp.unwrap());
        let last = latest.insert(track, at).unwrap_or(0);
        assert!(last <= at, "time goes back on {}", paths[&track]);
        let stack = open.entry(track).or_default();
        if event.r#type == Some(schema::SLICE_BEGIN) {
            let notes = notes(&event);
            let (track, name) = (paths[&track].clone(), event.name.unwrap());
            stack.push(Slice { track, name, start: at, end: 0, depth: stack.len(), notes });
        } else {
            assert_eq!(event.r#type, Some(schema::SLICE_END));
            done.push(Slice { end: at, ..stack.pop().expect("an end has its begin") });
        }
    }
    assert!(open.values().all(Vec::is_empty), "every slice ends");
    done
}

fn at(found: &[Slice], name: &str) -> (u64, u64, usize) {
    let slice =
        found.iter().find(|slice| slice.name == name).unwrap_or_else(|| panic!("no {name} in {found:?}"));
    (slice.start - ZERO, slice.end - ZERO, slice.depth)
}

#[test]
fn detours_and_levels_are_tracks_of_their_cpu_on_one_clock() {
    let detours = vec![
        Detour { start: ns(100), duration: ns(50), own: false },
        Detour { start: ns(150), duration: ns(7), own: true },
    ];
    let mut task = interval("task:kworker/3:1", 90, 70);
    (task.pid, task.detail, task.cause) = (17, Some("vmstat_update".into()), Some("timer".into()));
    let mut steal = interval("steal", 0, 1000);
    steal.net = ns(33);
    let found = slices(&recording(
        detours,
        vec![
            steal,
            task,
            interval("tick", 110, 20),
            interval("softirq:TIMER", 130, 5),
            interval("nmi", 112, 1),
            interval("fault", 200, 1),
        ],
    ));
    let track = |name: &str| found.iter().find(|slice| slice.name == name).unwrap().track.clone();
    assert_eq!(at(&found, "detour"), (100, 150, 0));
    assert_eq!(at(&found, "detour (quell's own)"), (150, 157, 0), "touching, not nested");
    assert_eq!(at(&found, "watched"), (0, 1_000_000, 0));
    for (name, place) in [
        ("watched", ""),
        ("detour", "/detours"),
        ("nmi", "/nmi"),
        ("tick", "/hardirq"),
        ("softirq:TIMER", "/softirq"),
        ("task:kworker/3:1", "/tasks"),
        ("fault", "/faults"),
        ("steal window", "/steal (windows)"),
    ] {
        assert_eq!(track(name), format!("/quell: a/CPU 3{place}"));
    }
    let notes = &found.iter().find(|slice| slice.name.starts_with("task")).unwrap().notes;
    let expected =
        [("net_ns", "35"), ("cpu", "3"), ("pid", "17"), ("detail", "vmstat_update"), ("cause", "timer")];
    assert_eq!(notes, &expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

#[test]
fn the_first_packet_sets_the_clock() {
    let first = packets(&recording(Vec::new(), Vec::new())).remove(0);
    let snapshot = first.clock_snapshot.unwrap();
    assert_eq!(snapshot.primary_trace_clock, Some(schema::MONOTONIC));
    let clocks: Vec<_> =
        snapshot.clocks.iter().map(|c| (c.clock_id.unwrap(), c.timestamp.unwrap())).collect();
    assert_eq!(clocks, [(schema::MONOTONIC, ZERO), (schema::REALTIME, 1_700_000_000_000_000_000)]);
    assert_eq!(first.sequence_flags, Some(schema::SEQUENCE_STARTS));
}

#[test]
fn nothing_breaks_the_nesting() {
    let found = slices(&recording(
        Vec::new(),
        vec![
            interval("task:empty", 10, 0),
            interval("task:outer", 10, 40),
            interval("task:inner", 20, 10),
            interval("task:touches", 30, 20),
            interval("task:next", 50, 10),
            interval("task:cuts", 55, 20),
            interval("task:at-the-end", 60, 0),
        ],
    ));
    assert_eq!(at(&found, "task:outer"), (10, 50, 0));
    assert_eq!(at(&found, "task:empty"), (10, 10, 1));
    assert_eq!(at(&found, "task:inner"), (20, 30, 1));
    assert_eq!(at(&found, "task:touches"), (30, 50, 1));
    assert_eq!(at(&found, "task:next"), (50, 60, 0));
    assert_eq!(at(&found, "task:cuts"), (55, 60, 1));
    assert_eq!(at(&found, "task:at-the-end"), (60, 60, 0));
    let cut = found.iter().find(|slice| slice.name == "task:cuts").unwrap();
    assert_eq!(cut.notes["cut_off_ns"], "15");
}

#[test]
fn a_command_s_intervals_stand_under_the_thread_that_waited() {
    let mut recording = recording(Vec::new(), Vec::new());
    let victim = |victim, start| Interval { victim, ..interval("tick", start, 2) };
    recording.threads =
        vec![thread(71, "solver", 0, 100), thread(72, "io", 5, 100), thread(71, "again", 200, 300)];
    recording.intervals = vec![
        Intervals {
            cpu: Cpu(0),
            intervals: vec![victim(71, 10), victim(71, 210), victim(99, 20), victim(0, 30)],
        },
        Intervals { cpu: Cpu(3), intervals: vec![victim(72, 6), victim(71, 12)] },
    ];
    let found = slices(&recording);
    let ticks: Vec<_> =
        found.iter().filter(|s| s.name == "tick").map(|s| (s.track.as_str(), s.start - ZERO)).collect();
    assert_eq!(
        ticks,
        [
            ("/quell: a/CPU 0/hardirq", 30),
            ("/quell: a/solver 71/hardirq", 10),
            ("/quell: a/solver 71/hardirq", 12),
            ("/quell: a/io 72/hardirq", 6),
            ("/quell: a/again 71/hardirq", 210),
            ("/quell: a/thread 99 (not listed)/hardirq", 20),
        ]
    );
}

#[test]
fn names_come_out_harmless() {
    let hostile = "\u{1b}[2J\n<script>\u{202e}";
    let mut interval = interval("tick", 10, 5);
    interval.source = Source::Task(hostile.into());
    (interval.detail, interval.cause) = (Some(hostile.into()), Some(hostile.into()));
    let mut recording = recording(Vec::new(), vec![interval]);
    recording.path = PathBuf::from(format!("{hostile}.quell"));
    recording.threads = vec![thread(71, hostile, 0, 100)];
    recording.manifest.warnings.push(Warning::Sentence { text: hostile.to_owned() });
    let mut out = Vec::new();
    super::write(&recording, &mut out).unwrap();
    let text = String::from_utf8_lossy(&out);
    assert!(text.matches("\u{fffd}[2J\u{fffd}<script>\u{fffd}").count() >= 5, "shown, with its teeth drawn");
    assert!(!text.contains("\u{1b}[2J") && !text.contains("\n<script>") && !text.contains('\u{202e}'));
}

#[test]
fn times_beyond_the_format_stay_in_order() {
    let mut recording = recording(Vec::new(), vec![interval("tick", 10, 5), interval("tick", 20, 5)]);
    recording.manifest.zero_monotonic_ns = Some(u64::MAX - 12);
    assert!(slices(&recording).iter().all(|slice| slice.end == i64::MAX as u64));
}

proptest! {
    #[test]
    fn whatever_the_intervals_the_pairs_match(
        rows in prop::collection::vec((0usize..8, 0u64..60, 0u64..20, 0u32..4), 0..60),
        threads in 0u32..3,
    ) {
        let names = ["nmi", "tick", "irq:eth0", "ipi:irq_work", "softirq:RCU", "task:x", "fault", "steal"];
        let made = |&(name, start, duration, victim): &_| Interval { victim, ..interval(names[name], start, duration) };
        let intervals: Vec<Interval> = rows.iter().map(made).collect();
        let mut recording = recording(Vec::new(), intervals.clone());
        recording.threads = (0..threads).map(|i| thread(i + 1, "t", 10 * u64::from(i), 50)).collect();
        let found = slices(&recording);
        let watched = threads.max(1) as usize;
        prop_assert_eq!(found.len(), intervals.len() + watched, "each interval is one slice");
        let of = |slice: &Slice| slice.notes.get("cut_off_ns").map_or(0, |cut| cut.parse::<u64>().unwrap());
        let whole: u64 = found.iter().filter(|s| s.name != "watched").map(|s| s.end - s.start + of(s)).sum();
        prop_assert_eq!(whole, intervals.iter().map(|i| i.duration.as_nanos()).sum::<u64>(), "no time is lost");
    }
}

#[test]
fn the_top_track_tells_the_limits_of_the_recording() {
    let described = |recording: &Recording| {
        let tracks = packets(recording).into_iter().filter_map(|packet| packet.track_descriptor);
        let tracks: Vec<schema::TrackDescriptor> = tracks.collect();
        assert!(tracks.iter().all(|track| track.sibling_merge_behavior == Some(schema::NEVER_MERGED)));
        let of = |name: &str| tracks.iter().find(|track| track.name.as_deref() == Some(name)).cloned();
        (
            of("quell: a").unwrap().description.unwrap(),
            of("steal (windows)").and_then(|track| track.description),
        )
    };
    let mut recording = recording(Vec::new(), vec![interval("steal", 0, 9), interval("nmi", 20, 1)]);
    recording.manifest.quell = "7.8.9".into();
    let (top, steal) = described(&recording);
    assert_eq!(top, "Written by quell 7.8.9.");
    assert!(steal.unwrap().contains("the hypervisor took net_ns"));
    recording.manifest.zero_monotonic_ns = None;
    recording.manifest.cpus[0].lost = 3;
    recording.manifest.sources = Some(crate::SourcesFacts { lost: 4, ..Default::default() });
    let (top, _) = described(&recording);
    for part in ["from the recording's zero", "3 rows of the probe were lost.", "4 intervals were lost."] {
        assert!(top.contains(part), "{top}");
    }
    recording.manifest.sources = Some(crate::SourcesFacts::default());
    assert!(!described(&recording).0.contains("intervals were lost"));
}

#[test]
fn slices_have_categories_to_filter_them_by() {
    let mut recording = recording(
        vec![Detour { start: ns(5), duration: ns(1), own: false }],
        vec![interval("softirq:RCU", 10, 2)],
    );
    let quanta = vec![crate::Quantum { start: ns(100), duration: ns(40), work: 3 }];
    recording.quanta = vec![crate::Quanta { cpu: Cpu(3), quanta }];
    assert_eq!(at(&slices(&recording), "quantum"), (100, 140, 0));
    let events = packets(&recording).into_iter().filter_map(|packet| packet.track_event);
    let found: BTreeMap<String, Vec<String>> =
        events.filter_map(|event| Some((event.name?, event.categories))).collect();
    let expected =
        [("detour", "detours"), ("quantum", "quanta"), ("softirq:RCU", "softirq"), ("watched", "watched")];
    assert_eq!(found, expected.map(|(name, category)| (name.to_owned(), vec![category.to_owned()])).into());
    recording.quanta[0].quanta[0].work = 0;
    recording.manifest.method = crate::Method::Memory;
    recording.manifest.memory =
        vec![crate::MemoryLevel { name: crate::MemoryName::Main, bytes: 64, loads: 1 }];
    assert_eq!(at(&slices(&recording), "loads from main memory"), (100, 140, 0));
}

#[test]
fn a_simulated_timeline_keeps_the_order_of_its_tracks() {
    let mut out = Vec::new();
    let mut timeline = super::Timeline::start(&mut out, "run", "simulated").unwrap();
    let first = timeline.track(None, "one").unwrap();
    timeline.counter(None, "two").unwrap();
    timeline.track(Some(first), "three").unwrap();
    let label =
        super::Label { name: "a", category: "compute", notes: &[], arrows_from: &[4], arrow_to: Some(5) };
    timeline.begin(first, ns(10), &label).unwrap();
    timeline.end(first, ns(12)).unwrap();
    let packets = schema::Trace::decode(out.as_slice()).unwrap().packet;
    let tracks: Vec<_> = packets
        .iter()
        .filter_map(|packet| packet.track_descriptor.as_ref())
        .map(|track| (track.name.clone().unwrap(), track.sibling_order_rank.unwrap()))
        .collect();
    let expected = [("run", 0), ("one", 1), ("two", 2), ("three", 3)];
    assert_eq!(tracks, expected.map(|(name, rank)| (name.to_owned(), rank)));
    let begin = packets.iter().find_map(|packet| packet.track_event.clone()).unwrap();
    assert_eq!(
        (begin.categories, begin.flow_ids, begin.terminating_flow_ids),
        (vec!["compute".to_owned()], vec![4], vec![5])
    );
}
