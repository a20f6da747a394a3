use proptest::prelude::*;
use quell_recording::Detour;

use super::*;

pub(crate) fn trace(span: (u64, u64), detours: &[(u64, u64)]) -> Trace {
    let ns = Nanos::from_nanos;
    let detours = detours.iter().map(|&(start, duration)| Detour {
        start: ns(start),
        duration: ns(duration),
        own: false,
    });
    Trace { cpu: Cpu(0), span: Span { start: ns(span.0), end: ns(span.1) }, detours: detours.collect() }
}

fn clock(span: u64, detours: &[(u64, u64)]) -> ProgressClock {
    ProgressClock::new(&trace((0, span), detours)).unwrap()
}

/// One period, instant by instant: whether the CPU is lost in `[i, i + 1)`.
fn lost(span: u64, detours: &[(u64, u64)]) -> Vec<bool> {
    (0..span).map(|t| detours.iter().any(|&(start, duration)| start <= t && t < start + duration)).collect()
}

/// Walks the trace nanosecond by nanosecond until the work is done.
fn walk(lost: &[bool], start: u64, work: u64) -> u64 {
    let (mut t, mut done) = (start, 0);
    while done < work {
        done += u64::from(!lost[(t % lost.len() as u64) as usize]);
        t += 1;
    }
    t
}

fn noisy() -> impl Strategy<Value = (u64, Vec<(u64, u64)>)> {
    (2u64..200).prop_flat_map(|span| (Just(span), proptest::collection::vec((0..span, 0u64..12), 0..12)))
}

proptest! {
    #[test]
    fn agrees_with_a_walk_over_every_nanosecond((span, detours) in noisy(), start in 0u64..600, work in 0u64..700) {
        let lost = lost(span, &detours);
        prop_assume!(lost.contains(&false));
        let clock = clock(span, &detours);
        let useful = (0..start).filter(|t| !lost[(t % span) as usize]).count() as u64;
        prop_assert_eq!(clock.useful_at(start), useful);
        prop_assert_eq!(clock.finish(start, work), walk(&lost, start, work));
    }

    #[test]
    fn nothing_strikes_while_it_is_quiet((span, detours) in noisy(), start in 0u64..600) {
        let lost = lost(span, &detours);
        prop_assume!(lost.contains(&false));
        let quiet = clock(span, &detours).quiet(start);
        prop_assert!((start..start + quiet).all(|t| !lost[(t % span) as usize]));
        // At most to the end of the trace; the next repetition needs another call.
        let end = (start + quiet) % span;
        prop_assert!(quiet > span || lost[end as usize] || end == 0, "{} {}", start, quiet);
    }

    #[test]
    fn the_delay_grows_at_worst_starts_only((span, detours) in noisy(), work in 1u64..700) {
        prop_assume!(lost(span, &detours).contains(&false));
        let clock = clock(span, &detours);
        let worst = clock.worst_starts(work);
        prop_assert!(worst.iter().all(|one| one.start < span && one.delay == clock.delay(one.start, work)));
        prop_assert!(worst.is_sorted_by(|one, next| one.start < next.start));
        for start in 0..span {
            let grows = clock.delay(start, work) > clock.delay((start + span - 1) % span, work);
            prop_assert!(!grows || worst.iter().any(|one| one.start == start), "{} {:?}", start, worst);
        }
    }

    #[test]
    fn no_trace_panics(
        span in (any::<u64>(), any::<u64>()),
        detours in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..8),
        start in any::<u64>(),
        work in any::<u64>(),
    ) {
        if let Ok(clock) = ProgressClock::new(&trace(span, &detours)) {
            prop_assert!(clock.finish(start, work) >= start);
            clock.worst_starts(work);
        }
    }
}

#[test]
fn a_detour_at_the_very_end_of_the_work_does_not_count() {
    let clock = clock(100, &[(10, 5)]);
    assert_eq!(clock.finish(0, 10), 10);
    assert_eq!(clock.finish(0, 11), 16);
    assert_eq!(clock.finish(12, 1), 16, "a start within a detour waits for its rest");
    assert_eq!(clock.finish(12, 0), 12);
    assert_eq!(clock.finish(0, 96), 101, "the trace repeats: 95 useful a turn, and one more");
}

#[test]
fn a_quiet_trace_delays_nothing() {
    assert_eq!(clock(1, &[]).finish(12_345, 678), 13_023);
    assert_eq!(clock(1 << 62, &[]).finish(u64::MAX, u64::MAX), u64::MAX);
}

#[test]
fn own_detours_and_what_lies_outside_are_left_out() {
    let mut trace = trace((100, 200), &[(90, 20), (150, 10), (190, 50), (300, 5)]);
    trace.detours[1].own = true;
    let clock = ProgressClock::new(&trace).unwrap();
    assert_eq!((clock.period(), clock.useful_period(), clock.detours()), (100, 80, 2));
}

#[test]
fn refuses_traces_that_make_no_clock() {
    let refused = |span, detours: &[(u64, u64)]| ProgressClock::new(&trace(span, detours)).unwrap_err();
    assert_eq!(refused((5, 5), &[]), ClockError::EmptySpan(Cpu(0)));
    assert_eq!(refused((0, 10), &[(0, 4), (3, 9)]), ClockError::AllNoise(Cpu(0)));
    assert_eq!(refused((0, u64::MAX), &[]), ClockError::LongSpan(Cpu(0)));
}
