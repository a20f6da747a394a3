//! The dissemination barrier, with one or several messages per round.

use super::{Params, Pattern, Peers, StepOps, UniformStep};
use crate::loggops::Shape;

const SEND: u32 = 0;
const RECV: u32 = 1;

/// The dissemination barrier (Hensgen, Finkel & Manber, "Two algorithms for barrier synchronization", 1988): in round
/// k each rank sends to the one 2ᵏ after it and receives from the one 2ᵏ before, and goes on when both are done.
/// Works for any number of ranks, in ⌈log₂ P⌉ rounds.
///
/// The schedules of LogGOPSim's generator take the same time without noise. Under noise they can differ, because there a send
/// waits only for the receive of the round before, not for those of earlier rounds.
#[derive(Clone, Debug)]
pub(super) struct Dissemination {
    ranks: u32,
    rounds: u32,
    shapes: [Shape; 2],
}

impl Dissemination {
    /// Messages of `bytes`.
    pub(super) fn new(params: &Params) -> Self {
        let shapes = [Shape::send(params.bytes, 0), Shape::recv(params.bytes, 0)];
        Self { ranks: params.ranks, rounds: rounds(params.ranks), shapes }
    }
}

/// ⌈log₂ ranks⌉.
pub(super) fn rounds(ranks: u32) -> u32 {
    u32::BITS - (ranks - 1).leading_zeros()
}

/// The rank `distance` after `rank` on a ring of `ranks`; `distance` is at most `ranks`.
#[inline]
pub(super) fn ahead(rank: u32, distance: u32, ranks: u32) -> u32 {
    let sum = rank + distance;
    if sum >= ranks { sum - ranks } else { sum }
}

/// The rank `distance` before `rank` on a ring of `ranks`; `distance` is at most `ranks`.
#[inline]
pub(super) fn behind(rank: u32, distance: u32, ranks: u32) -> u32 {
    if rank >= distance { rank - distance } else { rank + ranks - distance }
}

impl Pattern for Dissemination {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        self.rounds
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let distance = 1 << step;
        ops.exchange(ahead(rank, distance, self.ranks), SEND, behind(rank, distance, self.ranks), RECV);
    }

    fn uniform_step(&self, step: u32) -> Option<UniformStep> {
        Some(UniformStep::Exchange { peers: Peers::Ahead(1 << step), sent: SEND, received: RECV })
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let sends = u64::from(self.ranks) * u64::from(self.rounds);
        Some((2 * sends, sends))
    }
}

/// The n-way dissemination barrier (Hoefler, Mehlan, Mietke & Rehm, "Fast barrier synchronization for InfiniBand",
/// 2006): in round k each rank sends to those i·(n+1)ᵏ after it, for i from 1 to n, and receives from as many
/// before. A message that would go around the ring once or more carries nothing new and is omitted. ⌈log₍ₙ₊₁₎ P⌉ rounds.
#[derive(Clone, Debug)]
pub(super) struct NWay {
    ranks: u32,
    /// For each round, the distance between its peers, and their number.
    rounds: Vec<(u32, u32)>,
    shapes: [Shape; 2],
}

impl NWay {
    /// Messages of `bytes`, `nway` of them per round.
    pub(super) fn new(params: &Params) -> Self {
        let mut rounds = Vec::new();
        let mut distance = 1;
        while distance < params.ranks {
            let peers = params.nway.min((params.ranks - 1) / distance);
            rounds.push((distance, peers));
            distance = distance.saturating_mul(params.nway + 1);
        }
        let shapes = [Shape::send(params.bytes, 0), Shape::recv(params.bytes, 0)];
        Self { ranks: params.ranks, rounds, shapes }
    }
}

impl Pattern for NWay {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        self.rounds.len() as u32
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let (distance, peers) = self.rounds[step as usize];
        for peer in 1..=peers {
            ops.send(ahead(rank, peer * distance, self.ranks), SEND);
        }
        for peer in 1..=peers {
            ops.recv(behind(rank, peer * distance, self.ranks), RECV);
        }
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let peers: u64 = self.rounds.iter().map(|&(_, peers)| u64::from(peers)).sum();
        let sends = u64::from(self.ranks) * peers;
        Some((2 * sends, sends))
    }
}
