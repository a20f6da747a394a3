//! The operations that an engine reads from a schedule.

use super::*;
use crate::loggops::{ReadyOp, Shape};

fn numbers(free: &[ReadyOp]) -> Vec<(u32, u64)> {
    free.iter().map(|free| (free.op, free.ready)).collect()
}

#[test]
fn dependents_come_free_in_the_order_of_the_text() {
    let schedule = read(&rank_0(
        "a: calc 1\nb: calc 2\nc: calc 3\nd: send 8b to 1\nd requires a\nb requires a\nc irequires a\nc requires b",
    ));
    let mut free = Vec::new();
    let mut state = schedule.begin(0, &mut free);
    assert_eq!(numbers(&free), [(0, 0)]);
    free.clear();
    schedule.started(0, &mut state, 0, 10, &mut free);
    assert_eq!(numbers(&free), []);
    schedule.done(0, &mut state, 0, 11, &mut free);
    assert_eq!(numbers(&free), [(3, 11), (1, 11)]);
    assert_eq!((free[0].peer, schedule.shapes()[free[0].shape as usize]), (1, Shape::send(8, 0)));
    assert_eq!(schedule.unfreed(0, &state), 1);
    schedule.done(0, &mut state, 1, 12, &mut free);
    assert_eq!(numbers(&free[2..]), [(2, 12)]);
    assert_eq!(schedule.unfreed(0, &state), 0);
}

#[test]
fn with_more_cpus_the_latest_time_counts() {
    let schedule = read(&rank_0("a: calc 9\nb: calc 2 cpu 1\nc: calc 3\nc requires a\nc irequires b"));
    let mut free = Vec::new();
    let mut state = schedule.begin(0, &mut free);
    free.clear();
    schedule.done(0, &mut state, 0, 9, &mut free);
    schedule.started(0, &mut state, 1, 2, &mut free);
    assert_eq!(numbers(&free), [(2, 9)]);
}

#[test]
fn a_repeated_report_counts_twice_and_wraps() {
    let schedule = read(&rank_0("a: calc 1\nb: calc 2\nc: calc 3\nc requires a\nc requires b"));
    let mut free = Vec::new();
    let mut state = schedule.begin(0, &mut free);
    free.clear();
    schedule.done(0, &mut state, 0, 1, &mut free);
    schedule.done(0, &mut state, 0, 2, &mut free);
    assert_eq!(numbers(&free), [(2, 2)]);
    schedule.done(0, &mut state, 1, 3, &mut free);
    assert_eq!((free.len(), schedule.unfreed(0, &state)), (1, 0));
}

#[test]
fn a_builder_tells_what_was_wrong_first() {
    let build = |each: &dyn Fn(&mut ScheduleBuilder)| {
        let mut builder = ScheduleBuilder::new(1);
        each(&mut builder);
        builder.finish().unwrap_err().to_string()
    };
    let in_rank = |each: &dyn Fn(&mut ScheduleBuilder)| {
        build(&|builder| {
            builder.begin_rank();
            each(builder);
            builder.end_rank();
        })
    };
    assert!(build(&|_| ()).starts_with("the schedule has 0 of 1 ranks"));
    assert!(
        build(&|builder| {
            builder.op(Shape::calc(1), 0);
        })
        .starts_with("an operation was given outside")
    );
    assert!(build(&ScheduleBuilder::end_rank).starts_with("a rank was begun where none can be"));
    assert!(in_rank(&ScheduleBuilder::begin_rank).starts_with("a rank was begun"));
    assert!(in_rank(&|_| ()).starts_with("the schedule has no operation"));
    let error = in_rank(&|builder| {
        builder.op(Shape::calc(1), 0);
        builder.requires(0, 1);
        builder.op(Shape::send(1, 0), 9);
    });
    assert_eq!(
        error,
        "rank 0, operation 1: a dependency names operation 2 of a rank that has 1; add the operation first"
    );
    let error = in_rank(&|builder| {
        builder.op(Shape::calc(MAX_SIZE + 1), 0);
    });
    assert!(error.starts_with("rank 0, operation 1: its size is 4611686018427387905, above the limit"));
    let error = in_rank(&|builder| {
        builder.op(Shape::send(1, 0), crate::loggops::ANY);
    });
    assert!(error.contains("it sends to any rank"));
}

#[test]
fn a_rank_within_a_rank_is_counted() {
    let begun = |ranks: u32, each: &dyn Fn(&mut ScheduleBuilder)| {
        let mut builder = ScheduleBuilder::new(ranks);
        each(&mut builder);
        match builder.finish() {
            Err(BuildError::ExtraRank { begun, ranks }) => (begun, ranks),
            other => panic!("{other:?}"),
        }
    };
    let one = |builder: &mut ScheduleBuilder| {
        builder.begin_rank();
        builder.op(Shape::calc(1), 0);
        builder.end_rank();
    };
    assert_eq!(begun(1, &|builder| (0..2).for_each(|_| builder.begin_rank())), (1, 1));
    assert_eq!(
        begun(3, &|builder| {
            one(builder);
            builder.begin_rank();
            builder.begin_rank();
        }),
        (2, 3)
    );
    assert_eq!(
        begun(1, &|builder| {
            one(builder);
            builder.begin_rank();
        }),
        (1, 1)
    );
}

#[test]
fn sixty_four_defects_are_kept() {
    let mut builder = ScheduleBuilder::new(1);
    builder.begin_rank();
    for _ in 0..100 {
        builder.op(Shape::send(1, 0), 9);
    }
    assert!(builder.is_broken());
    assert_eq!(std::iter::from_fn(|| builder.take_defect()).count(), 64);
}
