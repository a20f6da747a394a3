//! Why a place cannot be read or written, with a text for the user.

use std::io;

/// The reason. Each has a text of its own, because each has a different remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// It does not exist: another kernel, other hardware.
    #[error("it is not on this machine")]
    Missing,
    /// EACCES, EPERM.
    #[error("{0}")]
    Denied(String),
    /// EROFS.
    #[error("it is on a read-only file system: mount it writable, or run outside of the container")]
    ReadOnly,
    /// EINVAL, ERANGE.
    #[error("the kernel rejects `{0}`: it exceeds a limit, or another setting must change first")]
    Invalid(String),
    /// EBUSY.
    #[error("it is in use: {0}")]
    Busy(String),
    /// ENOSPC.
    #[error("there is no space left for it: free some, or use a smaller value")]
    NoSpace,
    /// The kernel does not permit moving it: a managed interrupt, a bound thread.
    #[error("the kernel does not allow moving it: {0}")]
    Immovable(String),
    /// The thread or the interrupt no longer exists, or its number is reused.
    #[error("it is gone: {0}")]
    Gone(String),
    /// Something that it requires is missing.
    #[error("{0}")]
    Unavailable(String),
    /// It accepted the write, and has another value.
    #[error("it accepted the value, but shows `{}`", .0.trim())]
    Ignored(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl PlaceError {
    /// The reason for the kernel's error at a read or write of `value`.
    pub fn from_io(error: &io::Error, value: &str) -> Self {
        let Some(code) = quell_recording::os_error(error) else { return Self::without_code(error) };
        match code {
            libc::ENOENT | libc::ENXIO | libc::ENODEV | libc::ENOTDIR => Self::Missing,
            libc::EACCES => Self::Denied(denied("its mode, or a security module, forbids it")),
            libc::EPERM => Self::Denied(denied("a setting made read-only, missing hardware, or a lockdown")),
            libc::EROFS => Self::ReadOnly,
            libc::EINVAL | libc::ERANGE | libc::EOPNOTSUPP | libc::EOVERFLOW | libc::EDOM => {
                Self::Invalid(shown(value))
            }
            libc::EBUSY | libc::ETXTBSY => {
                Self::Busy("something else holds it; stop that, then try again".into())
            }
            libc::ENOSPC | libc::EDQUOT => Self::NoSpace,
            libc::EIO => Self::Other(
                "the kernel or the device behind it failed (EIO): see `dmesg` for its messages".into(),
            ),
            libc::ESRCH => Self::Gone("no such thread any more".into()),
            libc::ELOOP => Self::Other("its path is a loop of links, or ends in a link".into()),
            libc::EAGAIN => Self::Other("it did not answer: a pipe instead of a file?".into()),
            _ => Self::Other(error.to_string()),
        }
    }

    /// `fs_err` names the file and hides the error number; the error's kind still gives most reasons.
    fn without_code(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            io::ErrorKind::ResourceBusy => Self::Busy(error.to_string()),
            io::ErrorKind::PermissionDenied => Self::Denied(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }

    /// Whether the machine lacks the place, which is not a failure.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Missing | Self::Unavailable(_) | Self::Gone(_))
    }

    /// Whether the machine lacks the place, or its driver is not there now.
    pub fn is_for_now(&self) -> bool {
        self.is_absence() || matches!(self, Self::Busy(_))
    }
}

/// Whether this process runs as root.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn denied(reason: &str) -> String {
    if !is_root() {
        return "only root may: run it with sudo".into();
    }
    let lockdown = fs_err::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    match lockdown.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((mode, _)) if mode != "none" => {
            format!("the kernel denies it even to root: it is locked down ({mode}), or {reason}")
        }
        _ => format!("the kernel denies it even to root: {reason}"),
    }
}

/// The beginning of a value, short enough for a message, on one line.
fn shown(value: &str) -> String {
    value.trim().chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::*;

    #[test]
    fn each_number_of_the_kernels_has_its_own_words() {
        let codes = [
            libc::ENOENT,
            libc::EACCES,
            libc::EPERM,
            libc::EROFS,
            libc::EINVAL,
            libc::EBUSY,
            libc::ENOSPC,
            libc::EIO,
            libc::ESRCH,
            libc::ELOOP,
        ];
        let words: std::collections::BTreeSet<String> = codes
            .iter()
            .map(|&code| PlaceError::from_io(&io::Error::from_raw_os_error(code), "7\n").to_string())
            .collect();
        // EACCES and EPERM give the same text to users other than root: the remedy is the same.
        assert_eq!(words.len(), codes.len() - usize::from(!is_root()));
    }

    #[test]
    fn an_error_that_names_its_file_keeps_its_kind() {
        let error = fs_err::read("/nowhere/at/all").unwrap_err();
        assert_eq!(PlaceError::from_io(&error, ""), PlaceError::Missing);
    }
}
