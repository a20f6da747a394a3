#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use super::*;
use crate::Recording;

fn softirq(vector: u32) -> What {
    What::Enter(Key::Softirq(vector), Source::Softirq("RCU".into()))
}

fn irq(number: u32) -> What {
    What::Enter(Key::Irq(number), Source::Irq("eth0".into()))
}

fn tick() -> What {
    What::Enter(Key::Vector(236), Source::Tick)
}

fn late(ns: u64) -> What {
    What::Late { kind: HistogramKind::IrqLatency, ns }
}

fn recorded(all: Vec<(u64, What)>) -> Recording {
    let mut events = Events::default();
    for (time, what) in all {
        events.push(Cpu(0), time, "any", what).unwrap();
    }
    events.content("a test", false).unwrap().finish(Path::new("in")).unwrap().recording
}

/// Start, duration and net time of each interval.
fn times(recording: &Recording) -> Vec<(u64, u64, u64)> {
    let all = recording.intervals.iter().flat_map(|side| &side.intervals);
    all.map(|one| (one.start.as_nanos(), one.duration.as_nanos(), one.net.as_nanos())).collect()
}

fn left_out(cut: u64, periods: u64, latencies: u64) -> Warning {
    Warning::EventsLeftOut { cut, periods, latencies }
}

#[test]
fn intervals_without_their_begin_or_end_are_counted() {
    let found = recorded(vec![
        (100, What::Exit(Key::Irq(9))), // 1: it has no begin
        (110, tick()),
        (120, irq(2)),     // 2: it has no end
        (130, softirq(9)), // 3: as well
        (150, What::Exit(Key::Vector(236))),
        (200, What::Switch { pid: 7, comm: "a".into() }),
        (210, tick()),
        (215, What::Exit(Key::Vector(236))),
        (230, irq(3)), // 4: the switch ends it
        (240, What::Switch { pid: 0, comm: "swapper".into() }),
        (300, What::Switch { pid: 8, comm: "b".into() }),
    ]);
    // Times count from the first event; the idle task is no noise.
    assert_eq!(times(&found), [(10, 40, 40), (100, 40, 35), (110, 5, 5)]);
    assert_eq!(found.manifest.warnings, [left_out(4, 0, 0)]);
}

#[test]
fn an_interrupt_within_another_is_taken_off_the_outer_one() {
    let found = recorded(vec![
        (1_000, softirq(1)),
        (1_010, irq(5)),
        (1_013, tick()),
        (1_015, What::Exit(Key::Vector(236))),
        (1_020, What::Exit(Key::Irq(5))),
        (1_021, What::Took { source: Source::Nmi, ns: 1 }),
        (1_100, What::Exit(Key::Softirq(1))),
    ]);
    assert_eq!(times(&found), [(0, 100, 100 - 10 - 1), (10, 10, 8), (13, 2, 2), (20, 1, 1)]);
    assert_eq!(found.manifest.warnings, []);
}

#[test]
fn what_osnoise_reports_is_not_counted_again() {
    let found = recorded(vec![
        (900, irq(5)), // before the tracer
        (905, What::Exit(Key::Irq(5))),
        (1_000, What::Switch { pid: 70, comm: "osnoise/0".into() }),
        (1_010, tick()),
        (1_013, What::Exit(Key::Vector(236))),
        (1_014, What::Ended { source: Source::Tick, pid: 0, start: 1_010, net: 3 }),
        (1_020, softirq(1)), // the tracer reports no softirq
        (1_027, What::Exit(Key::Softirq(1))),
        (1_030, irq(5)),
        (1_034, What::Exit(Key::Irq(5))),
        (1_035, What::Ended { source: Source::Irq("eth0".into()), pid: 0, start: 1_030, net: 4 }),
        (1_200, What::Switch { pid: 0, comm: "swapper".into() }),
    ]);
    assert_eq!(times(&found), [(0, 5, 5), (110, 4, 3), (120, 7, 7), (130, 5, 4)]);
    assert_eq!(found.manifest.warnings, []);
}

#[test]
fn no_more_than_32_interrupts_are_open_at_a_time() {
    let begins = |count: u32| (0..count).map(|at| (u64::from(at), irq(at)));
    let ends = |from: u32, to: u32| (from..to).rev().map(|at| (100, What::Exit(Key::Irq(at))));
    assert_eq!(recorded(begins(32).chain(ends(0, 32)).collect()).manifest.warnings, []);
    let found = recorded(begins(33).chain(ends(1, 33)).collect());
    assert_eq!((times(&found).len(), &found.manifest.warnings[..]), (32, [left_out(1, 0, 0)].as_slice()));
}

#[test]
fn what_a_recording_has_no_room_for_is_counted() {
    let period = || (5_000, What::Period { watched: 4_000, noise: 100 });
    let interval = || [(5_000, tick()), (5_010, What::Exit(Key::Vector(236)))];
    let gap = || (5_000, What::Gap { start: 4_000, duration: 10 });
    let warned = |all: Vec<(u64, What)>| {
        let warnings = recorded(all).manifest.warnings;
        warnings.into_iter().find(|warning| matches!(warning, Warning::EventsLeftOut { .. }))
    };
    assert_eq!(warned(vec![period()]), None);
    assert_eq!(warned(vec![(5_000, late(7))]), None);
    assert_eq!(warned(vec![period(), (5_000, late(7)), (5_000, late(7))]), Some(left_out(0, 0, 2)));
    assert_eq!(
        warned([period(), (5_000, late(7))].into_iter().chain(interval()).collect()),
        Some(left_out(0, 1, 1))
    );
    assert_eq!(warned(vec![gap(), period()]), Some(left_out(0, 1, 0)));
    assert_eq!(warned(vec![gap(), (5_000, late(7))]), Some(left_out(0, 0, 1)));
}

#[test]
fn latencies_are_counted_over_the_time_of_their_events() {
    let found = recorded(vec![(1_100, late(7)), (1_250, late(7)), (1_250, late(9))]);
    assert_eq!(found.manifest.method, Method::Histogram);
    assert_eq!(found.manifest.cpus[0].end_ns.as_nanos(), 150);
    let buckets = &found.histograms[0].buckets;
    let counts: Vec<_> = buckets.iter().map(|b| (b.from.as_nanos(), b.to.as_nanos(), b.count)).collect();
    assert_eq!(counts, [(7, 7, 2), (9, 9, 1)]);
}

#[test]
fn a_kind_of_noise_is_missing_unless_the_trace_has_an_event_of_it() {
    let words = ["irq_vectors", "irq_handler_entry", "softirq_entry", "sched_switch", "nmi_handler"];
    let ended = What::Ended { source: Source::Nmi, pid: 0, start: 90, net: 5 };
    for (what, known) in [
        (tick(), vec!["irq_vectors"]),
        (What::Enter(Key::Ipi, Source::Ipi("unnamed".into())), vec!["irq_vectors"]),
        (irq(1), vec!["irq_handler_entry"]),
        (softirq(1), vec!["softirq_entry"]),
        (What::Switch { pid: 3, comm: "a".into() }, vec!["sched_switch"]),
        (What::Took { source: Source::Nmi, ns: 1 }, vec!["nmi_handler"]),
        (ended, words.to_vec()),
    ] {
        let found = recorded(vec![(50, What::Gap { start: 40, duration: 1 }), (100, what.clone())]);
        let missing = found.manifest.sources.unwrap().missing;
        for word in words {
            let named = missing.iter().any(|line| line.contains(&format!("`{word}`")));
            assert_eq!(named, !known.contains(&word), "{what:?} {word}");
        }
        assert!(missing.last().unwrap().starts_with("page faults"));
    }
}

#[test]
fn a_gap_within_the_one_before_begins_at_its_end() {
    let gap = |start, duration| (500, What::Gap { start, duration });
    let found = recorded(vec![gap(100, 50), gap(140, 30), gap(150, 20), gap(300, 0), gap(170, 5)]);
    let detours: Vec<_> =
        found.traces[0].detours.iter().map(|d| (d.start.as_nanos(), d.duration.as_nanos())).collect();
    assert_eq!(detours, [(0, 50), (50, 20), (70, 5)]);
    assert_eq!(found.manifest.method, Method::Detour);
}
