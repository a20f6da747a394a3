//! Follows processes that are already running, once they request the container.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, libbpf_sys};

use crate::bpf::RecorderSkel;
use crate::error::KernelError;

/// From include/uapi/linux/bpf.h.
const BPF_F_TEST_RUN_ON_CPU: u32 = 1;

/// Gives slots to all threads of a process.
#[derive(Debug)]
pub(crate) struct Adopter {
    /// The process whose threads the iterator visits; the lock admits one process at a time.
    adopted: Mutex<MapHandle>,
    threads: OwnedFd,
    begin_here: OwnedFd,
    cpus: u32,
}

impl Adopter {
    /// Takes what it needs from a skeleton whose programs are loaded and attached.
    pub(crate) fn new(skeleton: &RecorderSkel<'_>, cpus: u32) -> Result<Self, KernelError> {
        let failed = KernelError::container("cannot adopt who asks for it");
        let adopted = MapHandle::try_from(&skeleton.maps.adopted)
            .map_err(|e| KernelError::refused("to adopt processes", &e))?;
        let link = skeleton.links.adopt_threads.as_ref();
        let link = link.ok_or_else(|| failed(io::Error::from(io::ErrorKind::Unsupported)))?;
        Ok(Self {
            adopted: Mutex::new(adopted),
            threads: link.as_fd().try_clone_to_owned().map_err(failed)?,
            begin_here: skeleton.progs.begin_here.as_fd().try_clone_to_owned().map_err(failed)?,
            cpus,
        })
    }

    /// Follows a process from now on. A process that is already followed is left alone.
    pub(crate) fn adopt(&self, pid: u32) -> io::Result<()> {
        let adopted = self.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        adopted
            .update(&0u32.to_ne_bytes(), &pid.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| io::Error::other(e.to_string()))?;
        self.go_through_threads()?;
        (0..self.cpus).for_each(|cpu| self.begin_on(cpu));
        Ok(())
    }

    fn go_through_threads(&self) -> io::Result<()> {
        // SAFETY: the link is open, and a missing options argument is allowed.
        let fd = unsafe { libbpf_sys::bpf_iter_create(self.threads.as_raw_fd()) };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: the descriptor is new, and nothing else owns it.
        let mut walk = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        loop {
            match io::copy(&mut walk, &mut io::sink()) {
                // The kernel pauses the iteration after a large number of threads.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other.map(drop),
            }
        }
    }

    /// Starts the account of the thread that is on this CPU now. Where the CPU is offline, or the kernel is older than 5.10, the
    /// account starts at the next context switch instead.
    fn begin_on(&self, cpu: u32) {
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            flags: BPF_F_TEST_RUN_ON_CPU,
            cpu,
            ..Default::default()
        };
        // SAFETY: the program is open; the options live through the call and state their own size.
        unsafe { libbpf_sys::bpf_prog_test_run_opts(self.begin_here.as_raw_fd(), &raw mut options) };
    }
}
