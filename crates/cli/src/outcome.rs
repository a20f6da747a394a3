//! The outcome of a verb.

use std::process::ExitCode;

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did what was requested.
    Done,
    /// It is done, but a stated limit is exceeded.
    LimitExceeded,
    /// The command that it ran failed, with this exit code, which becomes quell's own.
    CommandFailed(u8),
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::LimitExceeded => Self::from(3),
            Outcome::CommandFailed(code) => Self::from(code),
        }
    }
}
