//! Extends algorithms for powers of two to any number of ranks.

use super::StepOps;

/// Among the first ranks, twice as many as exceed the power of two, each even one hands its data to the odd one after it, sits
/// out, and gets the result back; the others take numbers below the power (Thakur, Rabenseifner & Gropp, "Optimization of
/// collective communication operations in MPICH", 2005, §4).
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold {
    /// log₂ of the largest power of two that does not exceed the number of ranks.
    pub(super) rounds: u32,
    /// Number of ranks in excess of that power.
    pub(super) rest: u32,
}

/// Role of a rank.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// It sits out: it hands its data to this rank and waits for the result.
    Out(u32),
    /// It takes part under a number below the power of two, and holds the data of `extra` too, if any.
    In { number: u32, extra: Option<u32> },
}

impl Fold {
    pub(super) fn new(ranks: u32) -> Self {
        let rounds = ranks.ilog2();
        Self { rounds, rest: ranks - (1 << rounds) }
    }

    /// Number of ranks that take part: the power of two.
    pub(super) fn inside(self) -> u32 {
        1 << self.rounds
    }

    /// The role of a rank.
    #[inline]
    pub(super) fn role(self, rank: u32) -> Role {
        if rank >= 2 * self.rest {
            Role::In { number: rank - self.rest, extra: None }
        } else if rank.is_multiple_of(2) {
            Role::Out(rank + 1)
        } else {
            Role::In { number: rank / 2, extra: Some(rank - 1) }
        }
    }

    /// The rank that takes part under a number.
    #[inline]
    pub(super) fn rank(self, number: u32) -> u32 {
        if number < self.rest { 2 * number + 1 } else { number + self.rest }
    }

    /// Number of rounds with the ends: if ranks sit out, one more before and one after the `rounds` inside.
    #[inline]
    pub(super) fn with_ends(self, rounds: u32) -> u32 {
        rounds + if self.rest > 0 { 2 } else { 0 }
    }

    /// Which round of the whole algorithm a round is, with `rounds` inside.
    #[inline]
    pub(super) fn round(self, round: u32, rounds: u32) -> Round {
        let round = if self.rest > 0 { round } else { round + 1 };
        match round {
            0 => Round::Before,
            _ if round <= rounds => Round::Inside(round - 1),
            _ => Round::After,
        }
    }
}

impl Role {
    /// What a rank does in the rounds before and after those inside; `combines` is the second step of a round.
    #[inline]
    pub(super) fn at_end(self, round: Round, combines: bool, shapes: [u32; 3], ops: &mut StepOps<'_>) {
        let [send, recv, reduce] = shapes;
        match (self, round, combines) {
            (Self::In { extra: Some(_), .. }, Round::Before, true) => ops.calc(reduce),
            (_, _, true) => {}
            (Self::In { extra: Some(extra), .. }, Round::Before, _) => ops.recv(extra, recv),
            (Self::In { extra: Some(extra), .. }, Round::After, _) => ops.send(extra, send),
            (Self::Out(partner), Round::Before, _) => ops.send(partner, send),
            (Self::Out(partner), Round::After, _) => ops.recv(partner, recv),
            _ => {}
        }
    }
}

/// A round of an algorithm with ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Round {
    /// Ranks that sit out hand in their data.
    Before,
    /// This round of the algorithm for powers of two.
    Inside(u32),
    /// Ranks that sit out get the result.
    After,
}
