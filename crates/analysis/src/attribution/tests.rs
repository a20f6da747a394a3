//! Whole recordings, made by hand.

use proptest::prelude::*;
use quell_recording::{
    Cpu, Interval, Method, Nanos, Recording, Source, SourceKind, Taken, Thread, Throttling,
};

use super::fixture::{detour, recording, softirq, steal, task, tick, trace};
use super::*;
use crate::whatif::AttributedNoise;

thread_local! {
    /// Number of joins of a recording.
    pub(super) static JOINS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A tick every 4 ms with a softirq in each fourth, a daemon every 50 ms, and short detours without a source.
fn node() -> Recording {
    let (mut detours, mut intervals) = (Vec::new(), Vec::new());
    for i in 0..1_000u64 {
        let at = 1_000_000 + i * 4_000_000;
        intervals.push(Interval { detail: Some("tick_nohz_handler".into()), ..tick(at + 200, 5_000) });
        let softirqs = if i % 4 == 0 { 3_000 } else { 0 };
        if softirqs > 0 {
            intervals.push(softirq("TIMER", at + 5_300, softirqs));
        }
        detours.push(detour(at, 6_000 + softirqs));
        detours.push(detour(at + 1_500_000 + (i * i * 7_919) % 1_000_000, 300));
    }
    for i in 0..80u64 {
        let at = 3_700_000 + i * 50_000_000;
        intervals.push(task("daemon", 77, at + 1_000, 200_000));
        detours.push(detour(at, 203_000));
    }
    intervals.push(task("quell", 4_242, 11_000, 1_000));
    detours.sort_by_key(|d| d.start);
    intervals.sort_by_key(|i| i.start);
    recording(vec![trace(4_100_000_000, detours)], vec![intervals])
}

/// A study needs both results of one join.
#[test]
fn one_join_gives_the_attribution_and_what_what_ifs_start_from() {
    let made = node();
    let joins = JOINS.get();
    let joined = JoinedRecording::new(&made);
    let found = joined.attribution();
    let node = AttributedNoise::from_joined(joined, Vec::new());
    assert_eq!(JOINS.get() - joins, 1);
    assert_eq!(format!("{found:?}"), format!("{:?}", attribution(&made)));
    assert_eq!(format!("{node:?}"), format!("{:?}", AttributedNoise::from_recording(&made, Vec::new())));
}

#[test]
fn sources_are_named_counted_and_classed() {
    let found = attribution(&node());
    let sources = found.sources.unwrap();
    let row = |name: &str| sources.iter().find(|row| row.source == name).unwrap();
    let tick = row("tick");
    assert_eq!((tick.count, tick.total_ns, tick.class), (1_000, 5_000_000, Class::Type1));
    assert!((tick.period_ns.unwrap() - 4e6).abs() < 4e3, "{tick:?}");
    assert_eq!((tick.details[0].name.as_str(), tick.details[0].count), ("tick_nohz_handler", 1_000));
    assert_eq!((row("softirq:TIMER").count, row("softirq:TIMER").class), (250, Class::Type1));
    let daemon = row("task:daemon");
    assert_eq!((daemon.class, daemon.pid, daemon.in_detours_ns), (Class::Type2, Some(77), Some(16_000_000)));
    assert!((daemon.period_ns.unwrap() - 5e7).abs() < 5e4);
    assert_eq!((sources.last().unwrap().class, sources.last().unwrap().own), (Class::Own, true));
    assert_eq!(found.tasks.unwrap()[0].name, "daemon");
    let classes: Vec<Class> = found.classes.unwrap().iter().map(|row| row.class).collect();
    assert_eq!(classes, [Class::Type1, Class::Type2, Class::Unattributed, Class::Own]);
}

/// Known work within a detour explains only its own length.
#[test]
fn a_short_tick_does_not_explain_a_long_gap() {
    let made = recording(
        vec![trace(10_000_000_000, vec![detour(1_000_000_000, 5_000_000), detour(2_000_000_000, 2_000)])],
        vec![vec![tick(1_002_000_000, 1_000), tick(2_000_000_000, 2_000)]],
    );
    let figures = attribution(&made).explained.unwrap().figures;
    assert!((figures.count_percent - 100.0 * (0.0002 + 1.0) / 2.0).abs() < 1e-9, "{figures:?}");
    assert!((figures.time_percent - 100.0 * 3_000.0 / 5_002_000.0).abs() < 1e-9, "{figures:?}");
}

#[test]
fn the_three_figures_differ_as_they_must() {
    let explained = attribution(&node()).explained.unwrap();
    let Figures { count_percent, time_percent, time_without_tasks_percent, .. } = explained.figures;
    // 750 ticks of 5 us in 6 us, 250 with a softirq of 3 us more, 80 daemons of 200 us in 203 us.
    let explained_detours = 750.0 * 5.0 / 6.0 + 250.0 * 8.0 / 9.0 + 80.0 * 200.0 / 203.0;
    assert!((count_percent - 100.0 * explained_detours / 2_080.0).abs() < 1e-9, "{explained:?}");
    let taskless_ns = 6_000_000.0 + 750_000.0 + 300_000.0;
    let without = 100.0 * 5_750_000.0 / taskless_ns;
    assert!((time_without_tasks_percent.unwrap() - without).abs() < 1e-9);
    assert!(time_percent > 90.0 && explained.tolerance_ns == 10 && explained.chance_percent < 5.0);
    let left = &explained.unattributed;
    assert_eq!((left.alone.count, left.alone_ns, left.around_known_ns), (1_000, 300_000, 1_240_000));
    assert_eq!(left.total_ns, explained.figures.unattributed_ns);
    let kinds: Vec<Suspect> = left.hypotheses.iter().map(|h| h.kind).collect();
    assert_eq!(kinds, [Suspect::EntryAndExit, Suspect::Periodic, Suspect::FirmwareOrSibling]);
}

#[test]
fn an_unattributed_train_and_detours_after_ticks_raise_suspicion() {
    let mut made = node();
    let mut detours = std::mem::take(&mut made.traces[0].detours);
    detours.retain(|d| d.duration.as_nanos() != 300);
    for i in 0..500u64 {
        detours.push(detour(1_000_000 + i * 8_000_000 + 15_000, 700));
    }
    detours.sort_by_key(|d| d.start);
    made.traces[0].detours = detours;
    made.manifest.warnings.push(quell_recording::Warning::VirtualMachine);
    let explained = attribution(&made).explained.unwrap();
    let hypotheses = explained.unattributed.hypotheses;
    let of = |kind: Suspect| hypotheses.iter().find(|h| h.kind == kind);
    assert!((of(Suspect::Periodic).unwrap().period_ns.unwrap() - 8e6).abs() < 8e3, "{hypotheses:?}");
    let near = of(Suspect::NearKnown).unwrap();
    assert!(near.share_percent > 99.0 && near.chance_percent.unwrap() < 60.0, "{near:?}");
    assert!(of(Suspect::HypervisorExits).is_some() && of(Suspect::FirmwareOrSibling).is_none());
}

#[test]
fn the_processors_count_of_smis_clears_firmware_or_accuses_it() {
    let cases = [
        (None, "firmware (SMI), or"),
        (Some(0), "counted no system"),
        (Some(3), "for some of them: the processor counted 3 system"),
        (Some(1_000), "may be firmware: the processor counted 1000 system"),
    ];
    for (smis, words) in cases {
        let mut made = node();
        made.manifest.cpus.iter_mut().for_each(|facts| facts.smis = smis);
        let hypotheses = attribution(&made).explained.unwrap().unattributed.hypotheses;
        assert!(hypotheses.last().unwrap().says.contains(words), "{hypotheses:?}");
    }
}

#[test]
fn a_slowed_processor_is_suspected_where_it_was_slowed() {
    let slowed = |times, ms: u64| Throttling { times, total_ns: Nanos::from_nanos(ms * 1_000_000) };
    for (throttling, words) in [
        (None, None),
        (Some(slowed(0, 0)), None),
        (Some(slowed(4, 12)), Some("up to 4 times and for 12ms")),
        // It began before the recording.
        (Some(slowed(0, 12)), Some("up to 0 times and for 12ms")),
    ] {
        let mut made = node();
        made.manifest.cpus[0].throttling = throttling;
        let hypotheses = attribution(&made).explained.unwrap().unattributed.hypotheses;
        let found = hypotheses.iter().find(|one| one.kind == Suspect::Throttling);
        assert_eq!(found.is_some(), words.is_some(), "{hypotheses:?}");
        assert!(found.zip(words).is_none_or(|(one, words)| one.says.contains(words)), "{found:?}");
    }
}

#[test]
fn what_is_not_known_is_reported() {
    let mut made = node();
    made.manifest.sources = None;
    let none = attribution(&made);
    assert!(none.sources.is_none() && none.explained.is_none());
    assert!(none.sources_unknown_because.unwrap().contains("--sources on"));
    made.manifest.sources =
        Some(quell_recording::SourcesFacts { unknown_because: Some("no BTF".into()), ..Default::default() });
    assert!(attribution(&made).sources_unknown_because.unwrap().starts_with("no BTF"));
    // Nothing was lost and nothing recorded: no figure is invented.
    let empty = recording(vec![trace(1_000, vec![])], vec![vec![]]);
    let found = attribution(&empty);
    assert!(found.explained.is_none() && found.sources.unwrap().is_empty());
}

#[test]
fn a_command_had_its_share() {
    let mut made = recording(
        vec![trace(10_000_000, vec![])],
        vec![vec![
            Interval { victim: 9, ..task("bully", 5, 1_000, 4_000) },
            Interval { victim: 9, ..tick(100, 500) },
        ]],
    );
    made.manifest.method = Method::Kernel;
    made.manifest.sources.as_mut().unwrap().command_pid = Some(9);
    let mut taken = [Taken::default(); SourceKind::ALL.len()];
    let ns = Nanos::from_nanos;
    taken[SourceKind::Tick as usize] = Taken { time: ns(500), count: 1 };
    taken[SourceKind::Task as usize] = Taken { time: ns(4_000), count: 1 };
    taken[SourceKind::Fault as usize] = Taken { time: ns(900), count: 3 };
    made.threads.push(Thread {
        tid: 9,
        pid: 9,
        comm: "job".into(),
        start: ns(0),
        end: ns(10_000),
        on_cpu: ns(6_000),
        run_delay: ns(4_000),
        taken,
        yielded: Taken { time: ns(2_000), count: 2 },
        moved: Taken::default(),
    });
    let found = attribution(&made);
    let command = found.command.unwrap();
    assert_eq!((command.share.had_percent, command.share.preempted_ns), (Some(55.0), 4_000));
    let thread = &found.threads.unwrap()[0];
    assert_eq!((thread.sources[0].source.as_str(), thread.sources[1].count), ("task:bully", 1));
    assert!(found.explained.is_none() && found.sources.unwrap()[0].in_detours_ns.is_none());
}

proptest! {
    #[test]
    fn figures_stay_within_their_bounds(
        gaps in prop::collection::vec((1u64..5_000, 1u64..3_000, any::<bool>()), 0..40),
        rows in prop::collection::vec((0u64..200_000, 0u64..5_000, 0usize..4), 0..40),
    ) {
        let mut at = 0;
        let detours = gaps.into_iter().map(|(gap, length, own)| {
            at += gap + length;
            quell_recording::Detour { own, ..detour(at - length, length) }
        });
        let detours: Vec<_> = detours.collect();
        let mut intervals: Vec<_> = rows.into_iter().map(|(start, length, kind)| match kind {
            0 => tick(start, length),
            1 => task("t", 4_242, start, length),
            2 => task("t", 3, start, length),
            _ => steal(start, length, length),
        }).collect();
        intervals.sort_by_key(|i| i.start);
        let made = recording(vec![trace(400_000, detours)], vec![intervals]);
        let found = attribution(&made);
        if let Some(explained) = found.explained {
            let figures = explained.figures;
            for percent in [figures.count_percent, figures.time_percent, explained.chance_percent]
                .into_iter().chain(figures.time_without_tasks_percent)
            {
                prop_assert!((0.0..=100.0).contains(&percent), "{explained:?}");
            }
            let sources: u64 = found.sources.unwrap().iter().filter_map(|row| row.in_detours_ns).sum();
            prop_assert_eq!(sources, figures.attributed_ns);
            prop_assert_eq!(figures.attributed_ns + figures.unattributed_ns, figures.detour_ns);
            prop_assert_eq!(explained.unattributed.total_ns, figures.unattributed_ns);
        }
        let of_cpu: u64 = found.per_cpu.unwrap().iter().filter_map(|c| c.explained).map(|f| f.detour_ns).sum();
        prop_assert_eq!(of_cpu, blames(&made)[0].1.iter().map(|b| b.detour.duration.as_nanos()).sum::<u64>());
        prop_assert_eq!(made.traces[0].cpu, Cpu(1));
        prop_assert!(made.intervals[0].intervals.iter().all(|i| i.source != Source::Fault));
    }
}
