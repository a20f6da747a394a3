//! The outcome of a verb.

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was requested.
    Done,
    /// It is done, but a stated limit is exceeded.
    LimitExceeded,
}
