//! Why a point has no result, and whether it would have none another time.

use std::io::{self, ErrorKind};

/// Why a point has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Failure {
    pub reason: String,
    /// Whether another attempt may succeed: a disk or a limit failed, not the point. It ends the sweep, which can go on later, and is not
    /// written as the point's result.
    pub passes: bool,
}

impl Failure {
    /// The reason, to be written as the point's result.
    ///
    /// # Errors
    /// The failure itself, if it passes.
    pub fn written_reason(self) -> Result<String, Self> {
        if self.passes { Err(self) } else { Ok(self.reason) }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        if let Some(failure) = error.downcast_ref::<Self>() {
            return Self { reason: format!("{error:#}"), passes: failure.passes };
        }
        let passes = error.chain().filter_map(of_the_system).any(|cause| {
            use ErrorKind as Kind;
            // What the file says, or that there is none, will be the same.
            let stays = [
                Kind::NotFound,
                Kind::InvalidData,
                Kind::InvalidInput,
                Kind::FileTooLarge,
                Kind::IsADirectory,
                Kind::NotADirectory,
            ];
            !stays.contains(&cause.kind())
        });
        Self { reason: format!("{error:#}"), passes }
    }
}

fn of_the_system<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    match cause.downcast_ref::<quell_recording::Error>() {
        Some(quell_recording::Error::Io(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn what_a_disk_did_passes_and_what_a_file_says_does_not() {
        let passes = |error: io::Error| {
            let first =
                Failure::from(anyhow::Error::new(quell_recording::Error::from(error)).context("a.quell"));
            let again: Result<(), _> = Err(first.clone()).context("again");
            assert_eq!(Failure::from(again.unwrap_err()).passes, first.passes);
            first.passes
        };
        for code in [libc::EIO, libc::EMFILE, libc::ENOMEM, libc::EACCES, libc::ESTALE] {
            assert!(passes(io::Error::from_raw_os_error(code)), "{code}");
        }
        assert!(!passes(io::Error::from_raw_os_error(libc::ENOENT)));
        assert!(!passes(io::Error::new(ErrorKind::InvalidData, "it is not text")));
        assert!(!Failure::from(anyhow::anyhow!("no noise")).passes);
    }
}
