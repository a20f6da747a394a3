//! Communicators: the world rank of a number in a communicator, and the ranks that take part in its collectives.

use quell_recording::mpi::{Comm, Definitions, UNKNOWN};
use rustc_hash::FxHashMap;

use super::message_matching::Channel;

/// The communicators of a run, indexed for look-ups.
#[derive(Debug)]
pub(super) struct Communicators {
    /// For each communicator, the index of a world rank among all that take part; `None` if it is the rank itself.
    places: Vec<Option<FxHashMap<u32, u32>>>,
}

/// The other end of a message.
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
            let places =
                || comm.all_world_ranks().enumerate().map(|(place, rank)| (rank, place as u32)).collect();
            (!identity).then(places)
        };
        Self { places: definitions.comms.iter().map(places).collect() }
    }

    /// The index of a rank among those that take part in a communicator's collectives, if it is one of them.
    pub fn place(&self, definitions: &Definitions, comm: u32, rank: u32) -> Option<u32> {
        match self.places.get(comm as usize)? {
            Some(places) => places.get(&rank).copied(),
            None => (definitions.comms[comm as usize].members.len() > rank as usize).then_some(rank),
        }
    }
}

/// The channel of a message between a rank and a peer, which is given as a number in the communicator.
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

/// The root of a collective, as an index among its ranks. Between two groups it is a rank of the other one, or none (MPI 4.0, 6.2.3): it does
/// not determine which rank waits for which.
pub(super) fn root(definitions: &Definitions, comm: u32, root: u32) -> Option<u32> {
    let two_groups = definitions.comms.get(comm as usize).is_some_and(|comm| comm.remote.is_some());
    (root != UNKNOWN && !two_groups).then_some(root)
}

#[cfg(test)]
mod tests;
