//! Why a place cannot be read or written, in words for the reader.

use std::io;

/// Why. Each is told in its own words, for each has its own remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It is not there: another kernel, other hardware.
    #[error("it is not on this machine")]
    Missing,
    /// EACCES, EPERM.
    #[error("{0}")]
    Denied(String),
    /// EROFS.
    #[error("it is on a read-only file system: mount it writable, or run outside of the container")]
    ReadOnly,
    /// EINVAL, ERANGE.
    #[error("the kernel does not take `{0}` here (a limit, or another setting that it depends on)")]
    Invalid(String),
    /// EBUSY.
    #[error("it is in use: {0}")]
    Busy(String),
    /// ENOSPC.
    #[error("there is no space left for it")]
    NoSpace,
    /// The kernel lets nobody move it: a managed interrupt, a bound thread.
    #[error("the kernel does not let it be moved: {0}")]
    Immovable(String),
    /// The thread or the interrupt that was meant is gone, or another has its number.
    #[error("it is gone: {0}")]
    Gone(String),
    /// What it needs is not here.
    #[error("{0}")]
    Unavailable(String),
    /// It took the write, and holds something else.
    #[error("it took the value, and shows `{}`", .0.trim())]
    Ignored(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Trouble {
    /// From what the kernel said at a read or write of `value`.
    pub fn from_io(error: &io::Error, value: &str) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => Self::Missing,
            Some(libc::EACCES | libc::EPERM) => Self::Denied(denied()),
            Some(libc::EROFS) => Self::ReadOnly,
            Some(libc::EINVAL | libc::ERANGE | libc::EOPNOTSUPP) => Self::Invalid(value.trim().to_owned()),
            Some(libc::EBUSY) => Self::Busy(error.to_string()),
            Some(libc::ENOSPC | libc::EDQUOT) => Self::NoSpace,
            _ if error.kind() == io::ErrorKind::NotFound => Self::Missing,
            _ => Self::Other(error.to_string()),
        }
    }

    /// Whether it says that the machine lacks the thing, which is nobody's failure.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Missing | Self::Unavailable(_) | Self::Gone(_))
    }
}

fn denied() -> String {
    // SAFETY: geteuid has no precondition.
    if unsafe { libc::geteuid() } == 0 {
        "the kernel denies it even to root (a read-only setting, missing hardware, or kernel lockdown)".into()
    } else {
        "only root may".into()
    }
}
