//! Things that have an effect while they are kept open. A keeper (a process of quell) opens them; the effect ends with the keeper, however
//! it ends.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use super::{ABSENT, PlaceError};
use crate::catalogue::Held;
use crate::root::Root;

const LATENCY: &str = "/dev/cpu_dma_latency";

/// The file's value if no process requests a lower latency: 2000 s.
const NO_LIMIT: i32 = 2_000_000_000;

/// The value in force, whichever process holds it: the kernel shows only the lowest of all requests.
pub(super) fn read(root: &Root, what: Held) -> Result<String, PlaceError> {
    match what {
        Held::CpuDmaLatency if !root.is_system() => {
            Err(PlaceError::Unavailable(format!("{LATENCY} works only on a running machine")))
        }
        Held::CpuDmaLatency => {
            let mut bytes = [0u8; 4];
            open(false)
                .and_then(|mut file| file.read_exact(&mut bytes))
                .map_err(|e| PlaceError::from_io(&e, ""))?;
            Ok(match i32::from_ne_bytes(bytes) {
                NO_LIMIT => ABSENT.to_owned(),
                limit => limit.to_string(),
            })
        }
        // The kernel does not show which sockets have time stamps enabled.
        Held::TimestampSocket => Ok(ABSENT.to_owned()),
    }
}

/// Takes hold, for as long as the returned descriptor stays open.
///
/// # Errors
/// The kernel's error, or a value that is not valid.
pub fn take(what: Held, value: &str) -> Result<OwnedFd, PlaceError> {
    match what {
        Held::CpuDmaLatency => {
            let limit = value.trim().parse::<i32>().ok().filter(|limit| *limit >= 0);
            let limit = limit.ok_or_else(|| PlaceError::Invalid(value.trim().to_owned()))?;
            let mut file = open(true).map_err(|e| PlaceError::from_io(&e, value))?;
            file.write_all(&limit.to_ne_bytes()).map_err(|e| PlaceError::from_io(&e, value))?;
            Ok(file.into())
        }
        Held::TimestampSocket => stamped().map_err(|e| PlaceError::from_io(&e, value)),
    }
}

fn open(write: bool) -> std::io::Result<std::fs::File> {
    OpenOptions::new().read(!write).write(write).custom_flags(libc::O_CLOEXEC).open(LATENCY)
}

fn stamped() -> std::io::Result<OwnedFd> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let on: libc::c_int = 1;
    // SAFETY: the socket is open, and the option's value is an int that lives through the call.
    let code = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMP,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if code == 0 { Ok(socket.into()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]
    use super::super::trial;
    use super::*;

    /// On the kernel that runs the tests.
    mod on_this_machine {
        use super::*;

        #[test]
        fn latency_is_held_until_it_is_closed() {
            let root = Root::system();
            if !trial::is_root() || read(&root, Held::CpuDmaLatency).is_err() {
                return trial::skip("/dev/cpu_dma_latency is not open to this user");
            }
            let before = read(&root, Held::CpuDmaLatency).unwrap();
            let held = take(Held::CpuDmaLatency, "37\n").unwrap();
            if before == ABSENT {
                assert_eq!(read(&root, Held::CpuDmaLatency).unwrap(), "37");
            }
            drop(held);
            assert_eq!(read(&root, Held::CpuDmaLatency).unwrap(), before);
        }

        #[test]
        fn a_socket_stamps_and_refuses_nothing() {
            take(Held::TimestampSocket, "1").unwrap();
            assert_eq!(read(&Root::system(), Held::TimestampSocket).unwrap(), ABSENT);
        }
    }

    #[test]
    fn what_is_no_latency_is_refused_before_it_is_written() {
        for bad in ["", "-1", "absent", "99999999999"] {
            assert!(matches!(take(Held::CpuDmaLatency, bad), Err(PlaceError::Invalid(_))), "{bad}");
        }
    }
}
