//! Who is at the other end of the container's socket, and what it may have: any local process can connect to a name in the abstract namespace.
//!
//! `docs/concepts/trust.md` has the rules.

use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use crate::layout::VARIABLE;

/// Maximum size of an environment that is read: the kernel's limit for arguments and environment with the usual stack of 8 MiB.
const LARGEST_ENVIRONMENT: u64 = 6 << 20;

/// A process that has connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its id in this process's PID namespace, when it connected.
    pub pid: u32,
    /// Its effective user then.
    pub uid: u32,
}

impl Peer {
    /// The process at the other end; `None` where it is outside of this process's PID namespace.
    pub fn from_stream(stream: &UnixStream) -> Option<Self> {
        let mut facts = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: both pointers are valid during the call, and `length` is the size of the first.
        let code = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut facts).cast(),
                &raw mut length,
            )
        };
        let pid = u32::try_from(facts.pid).ok().filter(|&pid| code == 0 && pid > 0)?;
        Some(Self { pid, uid: facts.uid })
    }

    /// Whether it may read the container: as root, as this process's user, or as a followed process, whose slots are its own.
    pub fn may_read(self, slots: &MapHandle) -> bool {
        let followed = || matches!(slots.lookup(&self.pid.to_ne_bytes(), MapFlags::ANY), Ok(Some(_)));
        self.uid == 0 || self.uid == own_user() || followed()
    }

    /// Whether it is a process of the job: it runs as this process's user, with the name of this container in the environment in which
    /// its program began. Both are read from the process that has the id now, so a reused id does not deceive.
    pub fn is_of_job(self, name: &str) -> bool {
        self.uid == own_user() && self.environment().is_some_and(|environment| names(&environment, name))
    }

    fn environment(self) -> Option<Vec<u8>> {
        // An open file stays that of this process when another one gets its id.
        let file = fs_err::File::open(format!("/proc/{}/environ", self.pid)).ok()?;
        if file.metadata().ok()?.uid() != own_user() {
            return None;
        }
        let mut environment = Vec::new();
        file.take(LARGEST_ENVIRONMENT).read_to_end(&mut environment).ok()?;
        Some(environment)
    }
}

/// Whether an environment, with a NUL after each variable, names this container.
fn names(environment: &[u8], name: &str) -> bool {
    let expected = format!("{VARIABLE}={name}");
    environment.split(|byte| *byte == 0).any(|variable| variable == expected.as_bytes())
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn only_the_whole_name_counts() {
        let environment = b"A=1\0QUELL_METRICS=quell-metrics-12\0B=QUELL_METRICS=quell-metrics-1\0";
        assert!(names(environment, "quell-metrics-12"));
        for other in ["quell-metrics-1", "quell-metrics-123", "quell-metrics", ""] {
            assert!(!names(environment, other), "{other}");
        }
        assert!(!names(b"", "quell-metrics-12") && !names(&[0xff; 9], "quell-metrics-12"));
    }
}
