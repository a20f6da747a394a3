//! Schedules: a job reads what quell writes, its clock equals the simulator's, and damage is detected.

use proptest::prelude::*;
use quell_node::injector::compile::{Compiled, CpuNoise, Limits, compile};
use quell_node::injector::schedule::{Order, check, words};
use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use quell_replay::ProgressClockView;
use quell_replay::schedule::{Context, HEAD, Schedule, Sync};
use quell_sim::ProgressClock;

/// A trace from pairs of gap and duration; some detours touch.
fn trace(cpu: u32, pairs: &[(u64, u64)], tail: u64) -> Trace {
    let mut at = 0;
    let mut detours = Vec::new();
    for &(gap, length) in pairs {
        let (start, duration) = (Nanos::from_nanos(at + gap), Nanos::from_nanos(length));
        detours.push(Detour { start, duration, own: false });
        at += gap + length;
    }
    Trace { cpu: Cpu(cpu), span: Span { start: Nanos::ZERO, end: Nanos::from_nanos(at + tail) }, detours }
}

fn pairs() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((prop_oneof![0u64..20, 0u64..5_000], prop_oneof![1u64..10, 1u64..3_000]), 0..40)
}

fn compiled(traces: &[Trace]) -> Compiled {
    compile(&[("node", traces)], Limits::NONE).unwrap()
}

/// A track of a schedule, read as a job reads it.
fn read(words: &[u64], number: u64) -> ProgressClockView<'_> {
    let entry = Schedule::from_words(words).unwrap().entry(number).unwrap();
    entry.within(words).unwrap()
}

proptest! {
    #[test]
    fn its_clock_is_the_simulators(pairs in pairs(), tail in 1u64..5_000, asks in prop::collection::vec((0u64..100_000, 0u64..20_000), 1..50)) {
        let trace = trace(0, &pairs, tail);
        let clock = ProgressClock::new(&trace).unwrap();
        let words = words(&Order::new(Context::Boundary, 0), &compiled(&[trace]).groups);
        let track = read(&words, 0);
        prop_assert_eq!(track.period().get(), clock.period());
        for (start, work) in asks {
            prop_assert_eq!(track.delay(start, work), clock.delay(start, work), "{} from {}", work, start);
            prop_assert_eq!(track.useful_at(start), clock.useful_at(start));
            prop_assert_eq!(track.noise_in(start, work), work - (clock.useful_at(start + work) - clock.useful_at(start)));
            let quiet = clock.quiet(start);
            match track.ahead(start) {
                None => prop_assert_eq!(clock.detours(), 0),
                // The simulator's clock reports noise-free time only up to the end of the trace.
                Some(ahead) => prop_assert!(ahead.wait_ns >= quiet && ahead.length_ns > 0),
            }
        }
    }

    #[test]
    fn ranks_fill_node_after_node(sizes in prop::collection::vec(1usize..5, 1..4), ranks in 1u64..60) {
        let group = |(kind, &size): (usize, &usize)| (0..size).map(|cpu| CpuNoise { cpu: Cpu((10 * kind + cpu) as u32), period_ns: 100, detours: vec![] }).collect();
        let groups: Vec<Vec<CpuNoise>> = sizes.iter().enumerate().map(group).collect();
        let words = words(&Order::new(Context::Boundary, 0), &groups);
        let schedule = check(&words).unwrap();
        let mut rank = 0;
        for node in 0.. {
            for cpu in &groups[node % groups.len()] {
                let seat = schedule.seat(rank);
                prop_assert_eq!((seat.node, schedule.entry(seat.track).unwrap().cpu), (node as u64, u64::from(cpu.cpu.0)));
                rank += 1;
            }
            if rank > ranks {
                break;
            }
        }
    }

    #[test]
    fn nodes_start_at_the_offset_of_the_sync_mode(places in prop::collection::vec(any::<u64>(), 1..9), skew in 0u64..50, node in 0u64..20, phase in 0u64..20, period in 1u64..1000) {
        let place = |sync, skews: &[u64], node, phase| {
            let order = Order { sync, places: places.clone(), skews: skews.to_vec(), ..Order::new(Context::Boundary, 0) };
            let words = words(&order, &[vec![CpuNoise { cpu: Cpu(0), period_ns: period, detours: vec![] }]]);
            let place = check(&words).unwrap().place(node, phase, period.try_into().unwrap());
            assert!(place < period);
            place
        };
        prop_assert_eq!(place(Sync::None, &[], node, phase), place(Sync::None, &[], node, 0), "a place of its own, in every phase");
        prop_assert_eq!(place(Sync::Phase, &[], node, phase), place(Sync::Phase, &[], 0, phase), "one place for all, in each phase");
        prop_assert_eq!(place(Sync::Start, &[], node, phase), place(Sync::Start, &[], 0, 0), "one place for all");
        prop_assert_eq!(place(Sync::Start, &[skew], node, 0), (place(Sync::Start, &[], 0, 0) + skew) % period);
    }

    #[test]
    fn damage_is_noticed_and_nonsense_is_borne(pairs in pairs(), places in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 1..4), cut in any::<prop::sample::Index>()) {
        let good = words(&Order::new(Context::Timer, 5), &compiled(&[trace(0, &pairs, 9), trace(1, &pairs, 9)]).groups);
        prop_assert!(check(&good).is_ok());
        prop_assert!(check(&good[..cut.index(good.len())]).is_err(), "cut off");
        let mut bad = good.clone();
        for (place, value) in places {
            let place = place.index(bad.len());
            bad[place] = value;
        }
        prop_assert!(bad == good || check(&bad).is_err());
        // Damage with a matching checksum.
        if let Some(end) = Schedule::from_words(&good).ok().map(|schedule| schedule.head.tables_end() as usize) {
            bad[3] = quell_replay::schedule::checksum(quell_replay::schedule::SEED, &bad[4..end]);
            let _ = check(&bad);
        }
    }

    #[test]
    fn any_words_are_a_track_or_none(values in prop::collection::vec(prop_oneof![0u64..50, any::<u64>()], 0..20), t in any::<u64>(), work in any::<u64>()) {
        for count in 0..values.len() {
            if let Ok(track) = ProgressClockView::from_words(count, &values) {
                let _ = (track.delay(t, work), track.ahead(t), track.noise_in(t, work), track.useful_at(t));
            }
        }
        let mut head = [0u64; HEAD];
        head.iter_mut().zip(&values).for_each(|(word, &value)| *word = value);
        let _ = Schedule::from_words(&head);
    }
}
