//! How algorithms for powers of two serve any number of ranks.

use super::StepOps;

/// Of the first ranks beyond a power of two, each even one hands its data to the odd one after it, sits out, and gets the
/// result back; the others take numbers below the power (Thakur, Rabenseifner & Gropp, "Optimization of collective
/// communication operations in MPICH", 2005, §4).
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold {
    /// log₂ of the largest power of two that is no more than the ranks.
    pub(super) rounds: u32,
    /// How many ranks are beyond it.
    pub(super) rest: u32,
}

/// What a rank does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// It hands its data to that rank and waits for the result.
    Out(u32),
    /// It has a number below the power of two, and the data of one more rank, or not.
    In { number: u32, extra: Option<u32> },
}

impl Fold {
    pub(super) fn new(ranks: u32) -> Self {
        let rounds = ranks.ilog2();
        Self { rounds, rest: ranks - (1 << rounds) }
    }

    /// How many take part: the power of two.
    pub(super) fn inside(self) -> u32 {
        1 << self.rounds
    }

    /// What a rank does.
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

    /// The rank that has a number.
    #[inline]
    pub(super) fn rank(self, number: u32) -> u32 {
        if number < self.rest { 2 * number + 1 } else { number + self.rest }
    }

    /// Rounds of an algorithm of so many: one before and one after, where ranks sit out.
    #[inline]
    pub(super) fn with_ends(self, rounds: u32) -> u32 {
        rounds + if self.rest > 0 { 2 } else { 0 }
    }

    /// The round inside, of so many, that a round is.
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
    /// What a rank does before and after the rounds inside; `combines` is the second step of a round.
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
    /// Data are handed in.
    Before,
    /// That round inside.
    Inside(u32),
    /// Results are handed out.
    After,
}
