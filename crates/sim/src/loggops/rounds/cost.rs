//! What operations cost, in signed nanoseconds: vector units compare signed numbers.

use crate::loggops::Kind;
use crate::loggops::play::Cost;

/// Times stay below this, in nanoseconds, so that no sum in a pass overflows.
pub(super) const MAX_TIME: u128 = 1 << 61;

/// Cost of a send, and of handling its message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageCost {
    pub(super) latency: i64,
    pub(super) overhead: i64,
    pub(super) gap: i64,
    /// CPU time of its bytes.
    pub(super) copy: i64,
    /// Wire time of its bytes.
    pub(super) wire: i64,
}

impl MessageCost {
    pub(super) fn new(cost: &Cost) -> Self {
        Self {
            latency: cost.latency as i64,
            overhead: cost.overhead as i64,
            gap: cost.gap as i64,
            copy: cost.cpu_bytes as i64,
            wire: cost.wire_bytes as i64,
        }
    }

    /// The cost of the request of its rendezvous, which has no bytes.
    pub(super) fn request(&self) -> Self {
        Self { copy: 0, wire: 0, ..*self }
    }

    /// Whether an interface can still be busy when the CPU that used it is free again.
    pub(super) fn has_gaps(&self) -> bool {
        self.gap + self.wire > self.overhead + self.copy || self.gap > self.overhead
    }
}

/// Whether a rank can do such operations in rounds: on its only CPU.
pub(super) fn is_playable(cost: &Cost) -> bool {
    cost.cpu == 0 && cost.nic == 0
}

/// An upper bound of the noise-free time of an operation, in nanoseconds.
pub(super) fn longest(cost: &Cost) -> u128 {
    let parts = [cost.latency, cost.overhead, cost.gap, cost.cpu_bytes, cost.wire_bytes];
    match cost.kind {
        Kind::Calc => cost.work.into(),
        // A rendezvous has a request too.
        Kind::Send | Kind::Recv => 2 * parts.into_iter().map(u128::from).sum::<u128>(),
    }
}
