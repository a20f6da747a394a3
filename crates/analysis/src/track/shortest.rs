//! The shortest waits of a run: what a longer one has more may be noise.

use rustc_hash::FxHashMap;

/// Cause, waiter, operation, size class.
pub(super) type WaitKind = (u32, u32, u8, u8);

/// The shortest time that waits of each kind continued after their cause, over a whole run.
#[derive(Clone, Debug)]
pub struct ShortestWaits {
    of_kind: FxHashMap<WaitKind, Shortest>,
    /// Whether no wait was judged by a time that proved too long later.
    pub(super) are_final: bool,
}

#[derive(Clone, Copy, Debug)]
struct Shortest {
    tail: i64,
    /// Whether it limited the noise of a wait.
    limited: bool,
}

impl Default for ShortestWaits {
    fn default() -> Self {
        Self { of_kind: FxHashMap::default(), are_final: true }
    }
}

impl ShortestWaits {
    /// The shortest wait of a kind, `tail` included.
    pub(super) fn with(&mut self, kind: WaitKind, tail: i64) -> i64 {
        let shortest = self.of_kind.entry(kind).or_insert(Shortest { tail, limited: false });
        if tail < shortest.tail {
            self.are_final &= !shortest.limited;
            *shortest = Shortest { tail, limited: false };
        }
        shortest.tail
    }

    /// Notes that the shortest wait of a kind limited the noise of a longer one.
    pub(super) fn limited(&mut self, kind: WaitKind) {
        if let Some(shortest) = self.of_kind.get_mut(&kind) {
            shortest.limited = true;
        }
    }
}

#[cfg(test)]
mod tests;
