//! Communicators: which rank in the world a number is, and who takes part in collectives.

use quell_recording::mpi::{Comm, Definitions, UNKNOWN};
use rustc_hash::FxHashMap;

use super::message_matching::Channel;

/// The communicators of a run, made ready.
#[derive(Debug)]
pub(super) struct Communicators {
    /// For each, the place of a rank in the world among all who take part; `None` if it is the rank itself.
    places: Vec<Option<FxHashMap<u32, u32>>>,
}

/// A message's other end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Peer {
    To(u32),
    From(u32),
}

impl Communicators {
    pub fn new(definitions: &Definitions) -> Self {
        let places = |comm: &Comm| {
            let identity = comm.remote.is_none()
                && comm.members.iter().enumerate().all(|(at, rank)| at == *rank as usize);
            let places = || comm.everybody().enumerate().map(|(place, rank)| (rank, place as u32)).collect();
            (!identity).then(places)
        };
        Self { places: definitions.comms.iter().map(places).collect() }
    }

    /// The place of a rank among those who take part in a communicator's collectives, if it is one of them.
    pub fn place(&self, definitions: &Definitions, comm: u32, rank: u32) -> Option<u32> {
        match self.places.get(comm as usize)? {
            Some(places) => places.get(&rank).copied(),
            None => (definitions.comms[comm as usize].members.len() > rank as usize).then_some(rank),
        }
    }
}

/// The channel of a message between a rank and a peer, which is a number in the communicator.
pub(super) fn channel(
    definitions: &Definitions,
    rank: u32,
    (comm, peer, tag): (u32, Peer, u32),
) -> Option<Channel> {
    let peers = definitions.comms.get(comm as usize)?.peers(rank);
    Some(match peer {
        Peer::To(to) => Channel { comm, from: rank, to: *peers.get(to as usize)?, tag },
        Peer::From(from) => Channel { comm, from: *peers.get(from as usize)?, to: rank, tag },
    })
}

/// The root of a collective, as a place among its ranks. Between two groups it is a rank of the other one, or none (MPI 4.0, 6.2.3): it tells
/// nobody who waits for whom.
pub(super) fn root(definitions: &Definitions, comm: u32, root: u32) -> Option<u32> {
    let two_groups = definitions.comms.get(comm as usize).is_some_and(|comm| comm.remote.is_some());
    (root != UNKNOWN && !two_groups).then_some(root)
}
