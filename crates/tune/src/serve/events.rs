//! The kernel's messages about devices that come and go (uevents), CPUs among them.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
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

    /// Waits for a message, at most this long. A signal ends the wait. Returns the devices that came or went.
    pub fn wait(&self, timeout: Duration) -> Vec<Device> {
        let end = Instant::now() + timeout;
        let mut devices = Vec::new();
        if !self.ready(end) {
            return devices;
        }
        let rest = Instant::now() + REST;
        while self.ready(rest) {
            let mut message = [0; LARGEST];
            let Some(socket) = &self.0 else { break };
            match recv(socket, &mut message, RecvFlags::empty()) {
                Ok((length, _)) => {
                    let device = Device::parse(&message[..length.min(LARGEST)]);
                    devices.extend(device.filter(|device| !devices.contains(device)));
                }
                // Messages were lost: any CPU may have come or gone.
                Err(Errno::NOBUFS) => devices.push(Device { path: CPUS.into(), subsystem: "cpu".into() }),
                Err(_) => break,
            }
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

/// A device that came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its folder below /sys.
    path: String,
    /// Its class or bus.
    subsystem: String,
}

/// The folder of the CPUs below /sys.
const CPUS: &str = "/devices/system/cpu";

impl Device {
    /// The device of a message, `ACTION@DEVPATH` followed by variables, if it came or went: a `change` is of its state, not of its settings.
    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let mut words = message.split(|byte| *byte == 0).map(|word| std::str::from_utf8(word).ok());
        let (action, path) = words.next()??.split_once('@')?;
        let comes_or_goes = ["add", "remove", "online", "offline"].contains(&action);
        let subsystem = words.flatten().find_map(|word| word.strip_prefix("SUBSYSTEM="));
        let is_path = path.starts_with('/') && !path.ends_with('/');
        (comes_or_goes && is_path)
            .then(|| Self { path: path.to_owned(), subsystem: subsystem.unwrap_or_default().to_owned() })
    }

    /// Whether it is a CPU.
    pub fn is_cpu(&self) -> bool {
        self.subsystem == "cpu" && self.path.starts_with(CPUS)
    }

    /// Whether a file is one of its own.
    pub(super) fn has(&self, file: &str) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        // Links to the device, by class.
        let link = match self.subsystem.as_str() {
            "block" => format!("/sys/block/{name}/"),
            class => format!("/sys/class/{class}/{name}/"),
        };
        file.starts_with(&link) || file.starts_with(&format!("/sys{}/", self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_its_device() {
        let of = |text: &[u8]| Device::parse(text);
        let cpu = of(b"offline@/devices/system/cpu/cpu3\0ACTION=offline\0SUBSYSTEM=cpu\0").unwrap();
        assert!(cpu.is_cpu() && cpu.has("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"));
        assert!(!cpu.has("/sys/devices/system/cpu/cpu30/cpufreq/scaling_governor"));
        let link = of(b"add@/devices/virtual/net/eth0\0SUBSYSTEM=net\0").unwrap();
        assert!(link.has("/sys/class/net/eth0/queues/rx-0/rps_cpus") && !link.is_cpu());
        assert!(!link.has("/sys/class/net/eth1/queues/rx-0/rps_cpus"));
        let disk = of(b"add@/devices/pci0/block/sda\0SUBSYSTEM=block\0").unwrap();
        assert!(disk.has("/sys/block/sda/queue/scheduler"));
        let changed: &[u8] = b"change@/devices/pci0/block/sda\0SUBSYSTEM=block\0";
        for no_device in [&b""[..], b"libudev", b"add@", b"add@/x/", b"\xff@/cpu1", b"\0add@/cpu1", changed] {
            assert_eq!(of(no_device), None, "{no_device:?}");
        }
    }
}
