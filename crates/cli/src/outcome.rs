//! How a verb ended.

/// How a command ended when it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As asked.
    Done,
    /// Done, but a limit that was stated does not hold.
    LimitExceeded,
}
