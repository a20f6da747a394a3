use quell_recording::mpi::{Operation, Waits};

use super::{CollectiveId, Collectives, Part};
use crate::track::event_reader::CollectiveEnd;

fn ends(kind: Operation, root: Option<u32>) -> CollectiveEnd {
    CollectiveEnd { kind, root, sent: 0, received: 0 }
}

/// The rank at `place` enters the first collective of communicator 0. Returns the part's index and the locations that it woke.
fn enter(
    all: &mut Collectives,
    ranks: usize,
    (place, entered): (u32, i64),
    ends: &CollectiveEnd,
) -> (CollectiveId, usize, Vec<u32>) {
    let part = Part { location: place, place, entered, left: None, bytes: 0 };
    all.enter((0, 0), ranks, part, Some(ends), &[0])
}

#[test]
fn those_that_wait_for_all_go_once_all_have_entered() {
    let mut all = Collectives::new(1);
    let barrier = ends(Operation::Barrier, None);
    let (id, part, woken) = enter(&mut all, 2, (0, 10), &barrier);
    assert_eq!((part, woken), (0, vec![]));
    assert!(!all.may_go(id, part, false, 0));
    assert_eq!(enter(&mut all, 2, (1, 20), &barrier), (id, 1, vec![0]));
    assert!(all.may_go(id, 0, false, 0));
    assert_eq!(all.get(id).unwrap().waiting, []);
}

#[test]
fn those_that_block_go_once_the_exits_of_all_are_known() {
    let mut all = Collectives::new(1);
    let barrier = ends(Operation::Barrier, None);
    let (id, first, _) = enter(&mut all, 2, (0, 10), &barrier);
    let (_, second, _) = enter(&mut all, 2, (1, 20), &barrier);
    assert!(!all.may_go(id, first, true, 0));
    assert_eq!(all.leave(id, second, 50, &[7]), [0; 0]);
    assert!(!all.may_go(id, first, true, 5));
    assert_eq!(all.leave(id, first, 30, &[3]), [0, 5]);
    assert!(all.may_go(id, first, true, 0) && all.may_go(id, second, true, 1));
    let collective = all.get(id).unwrap();
    assert_eq!(collective.tails, (10, 30), "after the last entry at 20");
    assert_eq!((collective.noise(first), collective.noise(second)), (&[3][..], &[7][..]));
}

#[test]
fn an_exit_before_the_last_entry_is_no_time_after_it() {
    let mut all = Collectives::new(1);
    let barrier = ends(Operation::Barrier, None);
    let (id, first, _) = enter(&mut all, 2, (0, 10), &barrier);
    let (_, second, _) = enter(&mut all, 2, (1, 20), &barrier);
    all.leave(id, first, 15, &[0]);
    all.leave(id, second, 26, &[0]);
    assert_eq!(all.get(id).unwrap().tails, (0, 6));
}

#[test]
fn only_the_root_of_a_reduction_waits() {
    let mut all = Collectives::new(1);
    let reduce = ends(Operation::Reduce, Some(2));
    let (id, other, _) = enter(&mut all, 3, (0, 10), &reduce);
    assert!(all.may_go(id, other, true, 0));
    let (_, root, woken) = enter(&mut all, 3, (2, 20), &reduce);
    assert_eq!((root, woken), (1, vec![]));
    assert!(!all.may_go(id, root, true, 2) && all.may_go(id, other, true, 0));
    assert_eq!(enter(&mut all, 3, (1, 30), &reduce).2, [2]);
    assert!(all.may_go(id, root, true, 2));
}

#[test]
fn the_root_of_a_broadcast_wakes_those_that_wait_for_it() {
    let mut all = Collectives::new(1);
    let bcast = ends(Operation::Bcast, Some(1));
    let (id, first, _) = enter(&mut all, 3, (0, 10), &bcast);
    assert!(!all.may_go(id, first, true, 0));
    assert_eq!(enter(&mut all, 3, (2, 20), &bcast).2, [0; 0], "it is not the root");
    assert_eq!(enter(&mut all, 3, (1, 30), &bcast).2, [0]);
    assert_eq!(all.get(id).unwrap().root, Some(2));
    assert!(all.may_go(id, first, true, 0));
}

#[test]
fn a_rank_in_a_scan_waits_for_those_before_it() {
    let mut all = Collectives::new(1);
    let scan = ends(Operation::Scan, None);
    // The last rank enters first, and the first one last but one.
    let (id, third, _) = enter(&mut all, 4, (2, 10), &scan);
    assert!(!all.may_go(id, third, true, 2));
    assert_eq!(enter(&mut all, 4, (1, 20), &scan).2, [0; 0], "the first one is missing");
    assert!(!all.may_go(id, 1, true, 1));
    assert_eq!(enter(&mut all, 4, (0, 30), &scan).2, [2, 1]);
    assert!([third, 1, 2].iter().all(|part| all.may_go(id, *part, true, 9)));
    let (_, last, _) = enter(&mut all, 4, (3, 40), &scan);
    assert!(all.may_go(id, last, true, 3));
}

#[test]
fn a_rank_that_enters_a_scan_wakes_only_those_that_wait_for_no_other() {
    let mut all = Collectives::new(1);
    let scan = ends(Operation::Scan, None);
    for place in [5, 1, 3] {
        let (id, part, _) = enter(&mut all, 6, (place, 10), &scan);
        assert!(!all.may_go(id, part, true, place));
    }
    assert_eq!(enter(&mut all, 6, (0, 20), &scan).2, [1]);
    assert_eq!(enter(&mut all, 6, (2, 30), &scan).2, [3]);
    assert_eq!(enter(&mut all, 6, (4, 30), &scan).2, [5]);
}

/// Of the ranks at 0, 1 and 2 the second enters last, and the third without noise.
#[test]
fn a_scan_waits_for_the_latest_of_the_ranks_before() {
    let mut all = Collectives::new(2);
    let scan = ends(Operation::Exscan, None);
    let mut enter = |place: u32, entered: i64, accumulated: [i64; 2]| {
        let part = Part { location: place, place, entered, left: None, bytes: 0 };
        let (id, part, _) = all.enter((0, 0), 5, part, Some(&scan), &accumulated);
        (id, part, all.may_go(id, part, true, place))
    };
    let (id, last, _) = enter(4, 10, [0, 0]);
    let (_, second, _) = enter(1, 400, [300, 0]);
    let (_, first, _) = enter(0, 200, [0, 50]);
    let (_, third, may_go) = enter(2, 300, [0, 100]);
    assert!(may_go);
    let collective = all.get(id).unwrap();
    assert_eq!(collective.before(first), None);
    assert_eq!(collective.before(second), Some((first, &[200, 150][..])));
    assert_eq!(collective.before(third), Some((second, &[200, 400][..])));
    // Without the rank at 3, which never comes.
    all.get_mut(id).unwrap().force();
    assert!(all.may_go(id, last, true, 4));
    assert_eq!(all.get(id).unwrap().before(last), Some((second, &[300, 400][..])));
}

#[test]
fn where_the_root_is_not_known_no_one_waits() {
    let mut all = Collectives::new(1);
    let (id, part, _) = enter(&mut all, 2, (0, 10), &ends(Operation::Bcast, None));
    assert_eq!(all.get(id).unwrap().waits(), Waits::NoOne);
    assert!(all.may_go(id, part, true, 0));
    // Another rank tells it.
    enter(&mut all, 2, (1, 20), &ends(Operation::Bcast, Some(0)));
    let collective = all.get(id).unwrap();
    assert_eq!((collective.waits(), collective.root), (Waits::ForRoot, Some(0)));
    assert!(!collective.mismatched);
}

#[test]
fn ranks_disagree_if_they_report_other_operations_or_roots() {
    let reported = |reports: &[(Operation, Option<u32>)]| {
        let mut all = Collectives::new(1);
        let mut id = 0;
        for (place, (kind, root)) in reports.iter().enumerate() {
            id = enter(&mut all, 3, (place as u32, 10), &ends(*kind, *root)).0;
        }
        let collective = all.get(id).unwrap();
        (collective.mismatched, collective.operation)
    };
    let (bcast, reduce, sum) = (Operation::Bcast, Operation::Reduce, Operation::Allreduce);
    assert_eq!(reported(&[(bcast, Some(1)), (bcast, Some(1))]), (false, Some(bcast)));
    assert_eq!(reported(&[(bcast, Some(1)), (bcast, None)]), (false, Some(bcast)));
    assert_eq!(reported(&[(bcast, Some(1)), (bcast, Some(0))]), (true, Some(bcast)));
    assert_eq!(reported(&[(bcast, Some(1)), (reduce, Some(1))]), (true, Some(bcast)));
    assert_eq!(reported(&[(bcast, Some(1)), (reduce, Some(1)), (bcast, Some(1))]), (true, Some(bcast)));
    assert_eq!(reported(&[(sum, Some(1)), (sum, Some(0))]), (false, Some(sum)), "it has no root");
}

#[test]
fn a_collective_that_was_only_posted_is_named_later() {
    let mut all = Collectives::new(1);
    let part = |place: u32| Part { location: place, place, entered: 10, left: None, bytes: 0 };
    let (id, first, _) = all.enter((0, 0), 2, part(1), None, &[0]);
    assert_eq!(all.get(id).unwrap().waits(), Waits::All);
    all.name(id, &ends(Operation::Reduce, Some(1)));
    let collective = all.get(id).unwrap();
    assert_eq!((collective.operation, collective.root), (Some(Operation::Reduce), Some(first)));
}

#[test]
fn only_an_operation_without_data_or_with_own_shares_may_be_left_early() {
    let early = |kind: Operation, bytes: u64, left: i64| {
        let mut all = Collectives::new(1);
        let (id, part, _) = enter(&mut all, 2, (0, 10), &ends(kind, Some(0)));
        enter(&mut all, 2, (1, 100), &ends(kind, Some(0)));
        all.carries(id, part, bytes);
        all.get(id).unwrap().left_early(left)
    };
    use Operation::*;
    for kind in Operation::ALL {
        let own_shares =
            matches!(kind, Allgatherv | Alltoallv | Alltoallw | Gatherv | Scatterv | ReduceScatter);
        assert_eq!(early(kind, 8, 99), own_shares, "{kind:?}");
        assert_eq!(early(kind, 0, 99), kind != Barrier, "{kind:?}");
        assert!(!early(kind, 0, 100), "{kind:?}: the last had entered");
    }
}

#[test]
fn the_last_entry_is_the_latest_with_and_without_noise() {
    let mut all = Collectives::new(2);
    let mut enter = |place: u32, entered: i64, accumulated: [i64; 2]| {
        let part = Part { location: place, place, entered, left: None, bytes: 0 };
        all.enter((3, 4), 3, part, None, &accumulated).0
    };
    enter(0, 100, [90, 0]);
    enter(1, 200, [150, 120]);
    let id = enter(2, 200, [180, 150]);
    let collective = all.get(id).unwrap();
    assert_eq!((collective.comm, collective.number), (3, 4));
    assert_eq!(collective.last_entry, (200, 1), "the first of equals");
    assert_eq!([0, 1, 2].map(|part| collective.quiet(part).to_vec()), [[10, 100], [50, 80], [20, 50]]);
    assert_eq!(collective.last_quiet, [50, 100]);
}

#[test]
fn a_collective_carries_what_its_largest_part_does() {
    let mut all = Collectives::new(1);
    let sum = ends(Operation::Allreduce, None);
    let (id, first, _) = enter(&mut all, 2, (0, 10), &sum);
    let (_, second, _) = enter(&mut all, 2, (1, 10), &sum);
    all.carries(id, first, 9);
    all.carries(id, second, 5);
    let collective = all.get(id).unwrap();
    assert_eq!((collective.bytes, collective.parts[0].bytes, collective.parts[1].bytes), (9, 9, 5));
}

#[test]
fn a_collective_is_over_once_each_part_is_and_its_place_is_used_again() {
    let mut all = Collectives::new(1);
    let barrier = ends(Operation::Barrier, None);
    let (id, ..) = enter(&mut all, 2, (0, 10), &barrier);
    enter(&mut all, 2, (1, 20), &barrier);
    assert!(all.remove_complete(id).is_none());
    assert_eq!(all.remove_complete(id).unwrap().parts.len(), 2);
    assert!(all.get(id).is_none() && all.left().is_empty());
    let (again, part, _) = enter(&mut all, 2, (1, 30), &barrier);
    assert_eq!((again, part), (id, 0));
}

#[test]
fn a_forced_collective_goes_on_with_those_that_came() {
    let mut all = Collectives::new(1);
    let barrier = ends(Operation::Barrier, None);
    let (id, first, _) = enter(&mut all, 3, (0, 10), &barrier);
    let (_, second, _) = enter(&mut all, 3, (1, 20), &barrier);
    all.leave(id, first, 30, &[0]);
    all.leave(id, second, 45, &[0]);
    assert!(!all.may_go(id, first, true, 0) && !all.may_go(id, second, true, 1));
    assert_eq!(all.get_mut(id).unwrap().force(), [0, 1]);
    assert_eq!(all.get(id).unwrap().tails, (10, 25));
    assert!(all.may_go(id, first, true, 0));
    assert!(all.remove_complete(id).is_none());
    assert!(all.remove_complete(id).is_some());
}

#[test]
fn what_is_left_comes_in_the_order_of_the_last_entries() {
    let mut all = Collectives::new(1);
    for (number, entered) in [(0, 30), (1, 10), (2, 20)] {
        let part = Part { location: 0, place: 0, entered, left: None, bytes: 0 };
        all.enter((0, number), 2, part, None, &[0]);
    }
    assert_eq!(all.left().iter().map(|left| left.number).collect::<Vec<_>>(), [1, 2, 0]);
}
