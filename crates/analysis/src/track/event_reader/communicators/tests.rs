use quell_recording::mpi::{Comm, Definitions, UNKNOWN};

use super::{Communicators, Peer, channel, root};
use crate::track::event_reader::Channel;

/// The world, a part of it in another order, and two groups.
fn definitions() -> Definitions {
    let comm = |members: &[u32], remote: Option<&[u32]>| Comm {
        name: String::new(),
        members: members.to_vec(),
        remote: remote.map(<[u32]>::to_vec),
    };
    let comms = vec![comm(&[0, 1, 2, 3], None), comm(&[3, 1], None), comm(&[0, 1], Some(&[2, 3]))];
    Definitions { comms, ..Definitions::default() }
}

#[test]
fn a_rank_has_its_place_among_all_that_take_part() {
    let definitions = definitions();
    let communicators = Communicators::new(&definitions);
    let places = |comm| [0, 1, 2, 3, 4].map(|rank| communicators.place(&definitions, comm, rank));
    assert_eq!(places(0), [Some(0), Some(1), Some(2), Some(3), None]);
    assert_eq!(places(1), [None, Some(1), None, Some(0), None]);
    assert_eq!(places(2), [Some(0), Some(1), Some(2), Some(3), None]);
    assert_eq!(places(3), [None; 5]);
}

#[test]
fn a_peer_is_a_rank_of_the_communicator_or_of_the_other_group() {
    let definitions = definitions();
    let to = |rank, comm, to| channel(&definitions, rank, (comm, Peer::To(to), 5));
    assert_eq!(to(1, 1, 0), Some(Channel { comm: 1, from: 1, to: 3, tag: 5 }));
    assert_eq!(to(1, 1, 2), None);
    assert_eq!(to(1, 2, 0), Some(Channel { comm: 2, from: 1, to: 2, tag: 5 }));
    assert_eq!(to(3, 2, 0), Some(Channel { comm: 2, from: 3, to: 0, tag: 5 }));
    assert_eq!(to(1, 3, 0), None);
    let from = channel(&definitions, 1, (1, Peer::From(0), 6));
    assert_eq!(from, Some(Channel { comm: 1, from: 3, to: 1, tag: 6 }));
}

#[test]
fn only_one_group_has_a_root_that_is_one_of_its_ranks() {
    let definitions = definitions();
    assert_eq!(root(&definitions, 0, 2), Some(2));
    assert_eq!(root(&definitions, 0, UNKNOWN), None);
    assert_eq!(root(&definitions, 2, 1), None);
}
