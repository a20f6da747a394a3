use quell_recording::mpi::{Comm, Definitions, Operation as CollectiveKind, UNKNOWN};
use rustc_hash::FxHashMap;

use super::super::SkippedEvents;
use super::super::expand::What;
use super::super::sequence::Sequence;
use super::super::steps::{Call, Message, Operation, Step};
use super::{COLLECTIVE_TAGS, Group, Matching, Numbers, Outcome, collective_tag};
use crate::track::event_reader::{Channel, CollectivePart, MessageKey};

const NONE: Outcome =
    Outcome { kind: None, root: None, sent: 0, received: 0, all_sent: 0, parts: 0, sound: true };

fn message([from, to]: [u32; 2], tag: u32, number: u64, peer: u32) -> Message {
    Message { key: Some(MessageKey { channel: Channel { comm: 0, from, to, tag }, number }), peer, bytes: 8 }
}

fn sends([from, to]: [u32; 2], tag: u32, number: u64) -> Operation {
    Operation::Send(message([from, to], tag, number, to))
}

fn receives([from, to]: [u32; 2], tag: u32, number: u64) -> Operation {
    Operation::Receive(message([from, to], tag, number, from))
}

fn sequences(of_ranks: &[Vec<Operation>]) -> Vec<Sequence> {
    let step = |operation: &Operation| Step { gap_ns: 0, operation: *operation };
    let one = |(rank, operations): (usize, &Vec<Operation>)| Sequence {
        rank: rank as u32,
        steps: operations.iter().map(step).collect(),
        rest_ns: 0,
    };
    of_ranks.iter().enumerate().map(one).collect()
}

fn definitions(ranks: u32) -> Definitions {
    let world = Comm { name: "world".to_owned(), members: (0..ranks).collect(), remote: None };
    Definitions { comms: vec![world], ..Definitions::default() }
}

/// What remains of each rank's operations, and what was left out.
fn matched(of_ranks: &[Vec<Operation>]) -> (Matching, Vec<Vec<bool>>, SkippedEvents) {
    let (mut sequences, mut skipped) = (sequences(of_ranks), SkippedEvents::default());
    let matching = Matching::new(&definitions(of_ranks.len() as u32), &mut sequences, &mut skipped);
    let stays = |sequence: &Sequence| {
        sequence.steps.iter().map(|step| step.operation != Operation::Nothing).collect()
    };
    (matching, sequences.iter().map(stays).collect(), skipped)
}

#[test]
fn numbers_have_no_gaps_if_there_are_as_many_as_from_the_first_to_the_last() {
    let of = |numbers: &[u64]| {
        let mut all = Numbers::default();
        numbers.iter().for_each(|number| all.add(*number));
        all
    };
    assert_eq!(of(&[7, 5, 6]), Numbers { count: 3, first: 5, last: 7 });
    assert!(of(&[7, 5, 6]).without_gaps() && of(&[5]).without_gaps() && of(&[0, 1]).without_gaps());
    assert!(!of(&[5, 7]).without_gaps());
}

#[test]
fn messages_with_both_ends_stay_and_each_tag_has_its_own() {
    let first = [sends([0, 1], 40, 5), sends([0, 1], 30, 0), sends([0, 1], 40, 6)];
    let second = [receives([0, 1], 30, 0), receives([0, 1], 40, 5), receives([0, 1], 40, 6)];
    let (matching, stays, skipped) = matched(&[first.to_vec(), second.to_vec()]);
    assert_eq!(stays, [[true; 3]; 2]);
    assert_eq!(skipped, SkippedEvents::default());
    let tag = |tag| matching.tag(&message([0, 1], tag, 0, 1));
    assert_eq!([tag(40), tag(30), tag(9)], [0, 1, 0]);
    assert_eq!(matching.tag(&Message { key: None, peer: UNKNOWN, bytes: 1 }), 0);
}

#[test]
fn a_message_with_one_end_is_left_out_and_named() {
    // The second of three is not received, and one is received that was not sent.
    let first = [sends([0, 1], 7, 0), sends([0, 1], 7, 1), sends([0, 1], 7, 2)];
    let second = [receives([0, 1], 7, 0), receives([0, 1], 7, 2), receives([0, 1], 8, 0)];
    let nowhere = Operation::Send(Message { key: None, peer: UNKNOWN, bytes: 1 });
    let (_, stays, skipped) = matched(&[first.to_vec(), second.to_vec(), vec![nowhere]]);
    assert_eq!(stays, [vec![true, false, true], vec![true, true, false], vec![false]]);
    assert_eq!((skipped.sends, skipped.receives, skipped.collectives), (2, 1, 0));
    let notes = [
        "rank 0: a send to rank 1 with tag 7 on world is not received",
        "rank 1: a receive from rank 0 with tag 8 on world has no send",
        "rank 2: a send to a rank without a trace is not received",
    ];
    assert_eq!(skipped.notes, notes);
}

#[test]
fn channels_of_equal_numbers_with_the_same_gap_keep_their_messages() {
    let first = [sends([0, 1], 7, 0), sends([0, 1], 7, 2)];
    let second = [receives([0, 1], 7, 0), receives([0, 1], 7, 2)];
    assert_eq!(matched(&[first.to_vec(), second.to_vec()]).1, [[true; 2]; 2]);
    // As many, from the same first to the same last, and another one between.
    let first = [0, 1, 3].map(|number| sends([0, 1], 7, number));
    let second = [0, 2, 3].map(|number| receives([0, 1], 7, number));
    let (_, stays, skipped) = matched(&[first.to_vec(), second.to_vec()]);
    assert_eq!(stays, [[true, false, true]; 2]);
    assert_eq!((skipped.sends, skipped.receives), (1, 1));
}

#[test]
fn tags_of_collectives_are_above_all_others_and_below_the_wildcard() {
    assert_eq!([0, 1, 77].map(collective_tag), [0, 1, 77].map(|number| COLLECTIVE_TAGS + number));
    let most = COLLECTIVE_TAGS as usize - 1;
    assert_eq!(collective_tag(most - 1), u32::MAX - 1);
    assert_eq!([collective_tag(most), collective_tag(most + 3)], [COLLECTIVE_TAGS, COLLECTIVE_TAGS + 3]);
}

fn call(number: u64, place: u32, kind: CollectiveKind, root: Option<u32>) -> Operation {
    let part = Some(CollectivePart { comm: 0, number, place });
    Operation::Collective(Call { part, kind: Some(kind), root, sent: 12, received: 8, blocking: true })
}

#[test]
fn a_collective_of_all_has_its_place_members_and_tag() {
    use CollectiveKind::{Allreduce, Bcast};
    let rank = |place| vec![call(0, place, Allreduce, None), call(1, place, Bcast, Some(2))];
    let (matching, _, skipped) = matched(&[rank(0), rank(1), rank(2)]);
    assert_eq!(skipped, SkippedEvents::default());
    let Operation::Collective(second) = call(1, 1, Bcast, Some(2)) else { panic!("a collective") };
    let part = matching.part(1, &second).unwrap();
    assert_eq!((part.place, part.members, part.tag), (1, &[0, 1, 2][..], COLLECTIVE_TAGS + 1));
    assert_eq!(part.what, What { operation: Bcast, bytes: 8, root: 2 });
    assert!(matching.part(3, &second).is_none(), "there are three ranks");
}

#[test]
fn collectives_of_some_or_with_other_operations_are_left_out_and_named() {
    use CollectiveKind::{Allreduce, Barrier};
    let unknown = Operation::Collective(Call {
        part: None,
        kind: Some(Barrier),
        root: None,
        sent: 0,
        received: 0,
        blocking: true,
    });
    let first = vec![call(0, 0, Barrier, None), call(1, 0, Barrier, None), unknown];
    let second = vec![call(0, 1, Allreduce, None), unknown];
    let (matching, _, skipped) = matched(&[first, second]);
    assert_eq!(skipped.collectives, 5);
    let notes = [
        "rank 0: a collective on a communicator that is not known",
        "rank 1: a collective on a communicator that is not known",
        "Allreduce on world: 2 of 2 ranks took part, and they do not agree",
        "Barrier on world: 1 of 2 ranks took part",
    ];
    assert_eq!(skipped.notes, notes);
    assert!(matching.collectives.iter().all(Option::is_none));
}

#[test]
fn ranks_disagree_about_roots_only_where_there_are_some() {
    let add = |reports: &[(CollectiveKind, Option<u32>)]| {
        let mut outcome = NONE;
        for (kind, root) in reports {
            let (sent, received) = (5 + u64::from(outcome.parts), 9);
            outcome.add(Call { part: None, kind: Some(*kind), root: *root, sent, received, blocking: true });
        }
        outcome
    };
    use CollectiveKind::{Allreduce, Bcast, Reduce};
    let all = add(&[(Bcast, None), (Bcast, Some(1)), (Bcast, Some(1))]);
    assert_eq!((all.sound, all.root, all.kind), (true, Some(1), Some(Bcast)));
    assert_eq!((all.parts, all.sent, all.received, all.all_sent), (3, 7, 9, 18));
    assert!(!add(&[(Bcast, Some(1)), (Bcast, Some(0))]).sound);
    assert!(!add(&[(Bcast, Some(1)), (Reduce, Some(1))]).sound);
    assert!(add(&[(Allreduce, Some(1)), (Allreduce, Some(0))]).sound);
    // An end that was not recorded takes part, and tells nothing.
    let mut posted = add(&[(Bcast, Some(1))]);
    posted.add(Call { part: None, kind: None, root: Some(0), sent: 0, received: 0, blocking: false });
    assert_eq!((posted.sound, posted.parts, posted.kind), (true, 2, Some(Bcast)));
}

/// Bytes of an operation of four ranks in which one sent and received at most this much, and all together sent 33.
fn bytes(kind: CollectiveKind, sent: u64, received: u64) -> u64 {
    let group = Group { members: vec![0, 1, 2, 3], places: FxHashMap::default(), calls: 0..1 };
    let outcome = Outcome { kind: Some(kind), sent, received, all_sent: 33, parts: 4, ..NONE };
    group.what(&outcome, kind, Some(0)).bytes
}

#[test]
fn the_size_of_a_collective_is_that_of_its_vector_or_of_a_rank_s_block() {
    use CollectiveKind::*;
    for kind in CollectiveKind::ALL {
        // With both known, only sent, only received, and nothing: 13 bytes in blocks of four ranks are 4 each.
        let expected = match kind {
            Barrier | Create | Destroy => [1, 1, 1, 1],
            Bcast | Allreduce | Reduce | Scan | Exscan => [13, 21, 13, 1],
            ReduceScatter | ReduceScatterBlock => [21, 21, 13, 1],
            Gather | Gatherv | Allgather | Allgatherv => [4, 21, 4, 1],
            Scatter | Scatterv => [6, 6, 13, 1],
            // 33 bytes in 16 blocks.
            Alltoall | Alltoallv | Alltoallw => [3; 4],
        };
        let actual = [(21, 13), (21, 0), (0, 13), (0, 0)].map(|(sent, received)| bytes(kind, sent, received));
        assert_eq!(actual, expected, "{kind:?}");
    }
}

#[test]
fn without_a_known_root_all_wait_for_all() {
    use CollectiveKind::{Allreduce, Barrier, Bcast};
    let group = Group { members: vec![0, 1, 2, 3], places: FxHashMap::default(), calls: 0..1 };
    let what = |kind, root| {
        let what = group.what(&Outcome { kind: Some(kind), ..NONE }, kind, root);
        (what.operation, what.root)
    };
    assert_eq!(what(Bcast, Some(3)), (Bcast, 3));
    assert_eq!(what(Bcast, None), (Allreduce, 0));
    assert_eq!(what(Barrier, Some(3)), (Barrier, 0));
}
