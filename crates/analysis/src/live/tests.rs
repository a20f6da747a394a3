//! The gatherer on artificial rows.

use quell_recording::{Cpu, Detour, Interval, Nanos, Source};

use super::table::MOST_SOURCES;
use super::{Frame, Gatherer, Overhead, SourceNow};
use crate::attribution::Class;

const CPU: Cpu = Cpu(3);
const OWN: u32 = 4_242;

fn ns(ns: u64) -> Nanos {
    Nanos::from_nanos(ns)
}

fn gatherer() -> Gatherer {
    Gatherer::new(&[CPU], true, None, OWN)
}

fn detour(start: u64, duration: u64) -> (Cpu, Detour) {
    (CPU, Detour { start: ns(start), duration: ns(duration), own: false })
}

fn interval(source: Source, pid: u32, start: u64, duration: u64) -> (Cpu, Interval) {
    let (start, duration) = (ns(start), ns(duration));
    let (detail, cause) = (Some("work".into()), None);
    (CPU, Interval { start, duration, net: duration, source, pid, victim: 0, detail, cause })
}

fn tick(start: u64, duration: u64) -> (Cpu, Interval) {
    interval(Source::Tick, 0, start, duration)
}

fn task(name: &str, start: u64, duration: u64) -> (Cpu, Interval) {
    interval(Source::Task(name.into()), 7, start, duration)
}

fn frame(gatherer: &mut Gatherer, seconds: u64) -> Frame {
    gatherer.frame(Nanos::from_secs(seconds), Overhead::default())
}

fn row<'a>(frame: &'a Frame, name: &str) -> &'a SourceNow {
    frame.sources.iter().flatten().find(|row| row.source == name).unwrap()
}

#[test]
fn an_interval_is_summed_next_to_all_time() {
    let mut gatherer = gatherer();
    gatherer.detours(&[detour(1_000, 10_000_000)]);
    gatherer.intervals([tick(1_100, 6_000_000)].into_iter());
    let first = frame(&mut gatherer, 1);
    gatherer.detours(&[detour(1_500_000_000, 2_000_000)]);
    gatherer.intervals([tick(1_500_000_000, 2_000_000)].into_iter());
    let second = frame(&mut gatherer, 2);

    let left = row(&first, "unattributed");
    assert_eq!((left.now.time_ns, left.class), (4_000_000, Class::Unattributed));
    let cpu = &second.cpus[0];
    assert_eq!((cpu.noise_percent, cpu.noise_percent_since_start), (Some(0.2), Some(0.6)));
    assert_eq!((cpu.max_ns, cpu.max_ns_since_start), (Some(2_000_000), Some(10_000_000)));
    assert_eq!((cpu.kernel_percent, cpu.tasks_percent, cpu.detours_per_s), (Some(0.2), Some(0.0), Some(1.0)));
    assert_eq!(cpu.history, [1.0, 0.2]);
    let tick = row(&second, "tick");
    assert_eq!((tick.now.count, tick.now.percent, tick.now.in_detours_ns), (1, 0.2, Some(2_000_000)));
    assert_eq!((tick.since_start.count, tick.since_start.max_ns), (2, 6_000_000));
    assert_eq!(tick.detail.as_deref(), Some("work"));
    assert_eq!(row(&second, "unattributed").now.count, 0);
}

#[test]
fn a_detour_over_an_interval_s_end_keeps_what_came_before_it() {
    let mut gatherer = gatherer();
    gatherer.detours(&[detour(500, 1_000)]);
    // Both lie in a detour whose end has not arrived yet.
    gatherer.intervals([tick(600, 800), tick(999_000_000, 1_000)].into_iter());
    frame(&mut gatherer, 1);
    gatherer.detours(&[detour(998_000_000, 4_000_000)]);
    gatherer.intervals([task("bully", 998_000_000, 4_000_000)].into_iter());
    let second = frame(&mut gatherer, 2);
    let culprits: Vec<_> =
        second.longest[0].culprits.iter().map(|one| (one.source.as_str(), one.ns)).collect();
    assert_eq!(culprits, [("task:bully", 3_999_000), ("tick", 1_000)]);
    assert_eq!(row(&second, "tick").now.count, 0, "it was counted in the interval in which it came");
}

#[test]
fn only_longer_detours_than_any_before_are_reported() {
    let mut gatherer = gatherer();
    gatherer.detours(&[detour(0, 10), detour(100, 30), detour(200, 20)]);
    let lengths = |frame: Frame| frame.longest.iter().map(|one| one.duration_ns).collect::<Vec<_>>();
    assert_eq!(lengths(frame(&mut gatherer, 1)), [30]);
    gatherer.detours(&[detour(1_000_000_000, 30), detour(1_000_001_000, 31), detour(1_000_002_000, 40)]);
    assert_eq!(lengths(frame(&mut gatherer, 2)), [31, 40]);
}

#[test]
fn quell_s_own_is_in_no_figure_of_noise() {
    let mut gatherer = gatherer();
    let mut own = detour(100, 500_000_000);
    own.1.own = true;
    gatherer.detours(&[own, detour(600_000_000, 5_000_000)]);
    gatherer.intervals([interval(Source::Task("quell".into()), OWN, 100, 500_000_000)].into_iter());
    let frame = frame(&mut gatherer, 1);
    assert_eq!(frame.cpus[0].noise_percent, Some(1.0), "of the half second in which noise could be seen");
    assert_eq!((frame.cpus[0].tasks_percent, frame.overhead.own_detours), (Some(0.0), 1));
    assert_eq!(row(&frame, "task:quell").class, Class::Own);
    assert_eq!(frame.longest[0].duration_ns, 5_000_000);
}

#[test]
fn memory_is_bounded_whatever_processes_call_themselves() {
    let mut gatherer = gatherer();
    let names = (0..5_000u64).map(|i| task(&format!("evil-{i}"), i * 1_000, 100));
    gatherer.intervals(names);
    let frame = frame(&mut gatherer, 1);
    assert!(frame.sources.as_ref().unwrap().len() <= MOST_SOURCES + 1);
    assert!(row(&frame, "other tasks").now.count > 3_000);
    let all: u64 = frame.sources.iter().flatten().map(|row| row.now.time_ns).sum();
    assert_eq!(all, 500_000, "no time is lost");
    // Sources that are gone make room for new ones.
    gatherer.frame(Nanos::from_secs(2), Overhead::default());
    gatherer.intervals([task("new", 2_000_000_000, 100)].into_iter());
    let third = gatherer.frame(Nanos::from_secs(3), Overhead::default());
    assert_eq!(row(&third, "task:new").now.count, 1);
    assert!(third.sources.as_ref().unwrap().len() < MOST_SOURCES / 2);
    let all: u64 = third.sources.iter().flatten().map(|row| row.since_start.time_ns).sum();
    assert_eq!(all, 500_100);
}

#[test]
fn without_sources_or_probe_their_figures_are_null() {
    let mut blind = Gatherer::new(&[CPU], true, Some("no privilege".into()), OWN);
    blind.detours(&[detour(0, 10)]);
    let blind = frame(&mut blind, 1);
    assert!(blind.sources.is_none() && blind.cpus[0].kernel_percent.is_none());
    assert!(blind.longest[0].culprits.is_empty());
    let mut passive = Gatherer::new(&[CPU], false, None, OWN);
    passive.intervals([tick(0, 10_000_000)].into_iter());
    let passive = frame(&mut passive, 1);
    assert_eq!((passive.cpus[0].noise_percent, passive.cpus[0].kernel_percent), (None, Some(1.0)));
    assert_eq!(row(&passive, "tick").now.in_detours_ns, None);
}

#[test]
fn rows_of_other_cpus_are_left_out() {
    let mut gatherer = gatherer();
    gatherer.detours(&[(Cpu(9), detour(0, 10).1)]);
    gatherer.intervals([(Cpu(9), tick(0, 10).1)].into_iter());
    let frame = frame(&mut gatherer, 1);
    assert_eq!((frame.cpus[0].max_ns, frame.sources.unwrap().len()), (Some(0), 0));
}
