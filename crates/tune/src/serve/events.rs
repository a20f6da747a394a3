//! The kernel's messages about devices that come and go (uevents), CPUs among them.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::netlink::{KOBJECT_UEVENT, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// How long to wait for further messages after one: a device comes with many.
const REST: Duration = Duration::from_millis(200);
/// Size of the largest message (`UEVENT_BUFFER_SIZE` of linux/kobject.h, with room for the header).
const LARGEST: usize = 4096;

/// A socket that receives the messages.
#[derive(Debug)]
pub struct Events(Option<OwnedFd>);

impl Events {
    /// Listens. Where the kernel does not permit that, [`Self::wait`] only waits.
    pub fn listen() -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(KOBJECT_UEVENT));
        // Group 1 is the kernel's own; udev sends to another one.
        Self(socket.ok().filter(|socket| bind(socket, &SocketAddrNetlink::new(0, 1)).is_ok()))
    }

    /// Waits for a message, at most this long. A signal ends the wait. Returns the names of the devices that came, went or changed, such as
    /// `cpu3`.
    pub fn wait(&self, timeout: Duration) -> Vec<String> {
        let end = Instant::now() + timeout;
        let mut devices = Vec::new();
        if !self.ready(end) {
            return devices;
        }
        let rest = Instant::now() + REST;
        while self.ready(rest) {
            let mut message = [0; LARGEST];
            let Some(Ok((length, _))) =
                self.0.as_ref().map(|socket| recv(socket, &mut message, RecvFlags::empty()))
            else {
                break;
            };
            devices.extend(device(&message[..length.min(LARGEST)]).filter(|name| !devices.contains(name)));
        }
        devices
    }

    /// Whether there is a message before `end`.
    fn ready(&self, end: Instant) -> bool {
        let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).ok();
        match &self.0 {
            Some(socket) => {
                let mut polled = [PollFd::new(socket, PollFlags::IN)];
                poll(&mut polled, left.as_ref()).is_ok_and(|ready| ready > 0)
            }
            None => {
                let _ = poll(&mut [], left.as_ref());
                false
            }
        }
    }
}

/// The device of a message: `ACTION@DEVPATH`, followed by variables.
fn device(message: &[u8]) -> Option<String> {
    let head = message.split(|byte| *byte == 0).next()?;
    let (_, path) = std::str::from_utf8(head).ok()?.split_once('@')?;
    let name = path.rsplit('/').next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_its_device() {
        let named = |text: &[u8]| device(text);
        assert_eq!(named(b"offline@/devices/system/cpu/cpu3\0ACTION=offline\0"), Some("cpu3".to_owned()));
        for no_device in [&b""[..], b"libudev", b"add@", b"add@/x/", b"\xff@/cpu1", b"\0add@/cpu1"] {
            assert_eq!(named(no_device), None, "{no_device:?}");
        }
    }
}
