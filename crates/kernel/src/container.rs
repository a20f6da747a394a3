//! The metric container: who may read it, and how Rust reads it.
//!
//! The container is a frozen BPF array map: programs write it, no system call can, and everyone who has its
//! descriptor may map it read-only. quell hands descriptors out over an abstract Unix socket, so that nothing
//! is left in any file system when quell is killed. `peer.rs` says to whom.

use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use memmap2::{MmapOptions, MmapRaw};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::adopt::Adopter;
use crate::bpf::{RecorderSkel, types};
use crate::error::KernelError;
use crate::layout::{self, Header, LEVELS};
use crate::peer::Peer;

/// The variable that tells a program under which name to request the container.
pub const VARIABLE: &str = layout::VARIABLE;
/// The name to try where the variable is not set.
pub const COMMON_NAME: &str = layout::COMMON_NAME;

/// Pause after a failed accept.
const RETRY: Duration = Duration::from_millis(200);

/// The byte that comes with the descriptor, and the one in its place.
const GIVEN: &[u8] = b"q";
const REFUSED: &[u8] = b"n";

/// The container of a running recorder.
#[derive(Debug)]
pub struct Container {
    map: OwnedFd,
    /// The slots by thread.
    slots: Arc<MapHandle>,
    view: View,
    name: String,
    adopter: Option<Arc<Adopter>>,
}

impl Container {
    /// Writes the header, pushes all slots onto the programs' free list and freezes the map.
    pub(crate) fn make(skeleton: &RecorderSkel<'_>, slots: u32) -> Result<Self, KernelError> {
        let refused = |e: libbpf_rs::Error| KernelError::refused("the metric container", &e);
        let maps = &skeleton.maps;
        maps.container.update(&0u32.to_ne_bytes(), &header(slots), MapFlags::ANY).map_err(refused)?;
        for slot in (1..slots).rev() {
            maps.free_slots.update(&[], &slot.to_ne_bytes(), MapFlags::ANY).map_err(refused)?;
        }
        let of_threads = MapHandle::try_from(&maps.slots).map_err(refused)?;
        let map = MapHandle::try_from(&maps.container).map_err(refused)?;
        map.freeze().map_err(refused)?;
        let map = map.as_fd().try_clone_to_owned().map_err(KernelError::container("cannot be held"))?;
        let view = View::from_map(map.as_fd(), slots).map_err(KernelError::container("cannot be mapped"))?;
        let name = format!("{COMMON_NAME}-{}", std::process::id());
        Ok(Self { map, slots: Arc::new(of_threads), view, name, adopter: None })
    }

    /// From the next [`Container::serve`] on, a process of the job that requests the container by its own name is followed.
    pub(crate) fn adopt(&mut self, adopter: Adopter) {
        self.adopter = Some(Arc::new(adopter));
    }

    /// Hands the container to those who request it and may read it, from a thread of its own, under this process's name and, where that
    /// is free, under the common one. Returns the value for [`VARIABLE`].
    ///
    /// # Errors
    /// [`KernelError::Container`] where the socket cannot be opened.
    pub fn serve(&self) -> Result<String, KernelError> {
        // A quell in another PID namespace may have the same process id in the same network namespace.
        self.serve_as(
            std::iter::once(self.name.clone()).chain((1..100).map(|n| format!("{}-{n}", self.name))),
        )
    }

    /// Serves under a name that the readers already know.
    ///
    /// # Errors
    /// [`KernelError::Container`] where the socket cannot be opened, for instance because another process serves there.
    pub fn serve_under(&self, name: &str) -> Result<(), KernelError> {
        self.serve_as(std::iter::once(name.to_owned())).map(drop)
    }

    fn serve_as(&self, names: impl Iterator<Item = String>) -> Result<String, KernelError> {
        let mut found = Err(io::Error::from(io::ErrorKind::AddrInUse));
        for name in names {
            found = listen(&name).map(|listener| (name, listener));
            if !matches!(&found, Err(error) if error.kind() == io::ErrorKind::AddrInUse) {
                break;
            }
        }
        let (name, own) = found.map_err(KernelError::container("cannot be offered"))?;
        let adopting = self.adopter.clone().map(|adopter| (adopter, name.clone()));
        for (listener, adopting) in
            std::iter::once((own, adopting)).chain(listen(COMMON_NAME).map(|it| (it, None)))
        {
            let offer = Offer {
                map: self.map.try_clone().map_err(KernelError::container("cannot be held"))?,
                slots: Arc::clone(&self.slots),
                adopting,
            };
            std::thread::Builder::new()
                .name("quell-metrics".into())
                .spawn(move || offer.hand_out(&listener))
                .map_err(KernelError::container("cannot be offered"))?;
        }
        Ok(name)
    }

    /// The numbers and copies of the slots that are in use.
    pub(crate) fn slots(&self) -> Vec<(u32, types::quell_slot)> {
        let read = |number: u32| Some((number, self.view.read(number)?));
        (1..self.view.slots).filter_map(read).filter(|(_, slot)| slot.tid != 0).collect()
    }
}

fn header(slots: u32) -> [u8; size_of::<types::quell_slot>()] {
    let mut bytes = [0; size_of::<types::quell_slot>()];
    let mut put = |at: usize, field: &[u8]| bytes[at..][..field.len()].copy_from_slice(field);
    put(offset_of!(Header, magic), &layout::MAGIC.to_ne_bytes());
    put(offset_of!(Header, version), &layout::VERSION.to_ne_bytes());
    put(offset_of!(Header, slot_size), &(size_of::<types::quell_slot>() as u32).to_ne_bytes());
    put(offset_of!(Header, slots), &slots.to_ne_bytes());
    put(offset_of!(Header, recorder_pid), &std::process::id().to_ne_bytes());
    bytes
}

fn listen(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// What a thread that serves a name hands out.
struct Offer {
    map: OwnedFd,
    slots: Arc<MapHandle>,
    /// What follows processes of the job, and the name under which they request the container.
    adopting: Option<(Arc<Adopter>, String)>,
}

impl Offer {
    /// Sends one byte to each process that connects, with the descriptor if the process may read the container, once it is adopted if it is
    /// of the job. The thread ends with the process.
    fn hand_out(&self, listener: &UnixListener) {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // For instance no descriptor is free: a later program may be served.
                std::thread::sleep(RETRY);
                continue;
            };
            let peer = Peer::from_stream(&stream);
            if let Some((adopter, name)) = &self.adopting
                && let Some(peer) = peer.filter(|peer| peer.is_of_job(name))
            {
                // A process that cannot be adopted finds no slot, and its reader reports that.
                let _ = adopter.adopt(peer.pid);
            }
            let fds = [self.map.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut message = SendAncillaryBuffer::new(&mut space);
            let byte = if peer.is_some_and(|peer| peer.may_read(&self.slots)) {
                message.push(SendAncillaryMessage::ScmRights(&fds));
                GIVEN
            } else {
                REFUSED
            };
            // A peer that hangs up before the answer does not want it.
            let _ = rustix::net::sendmsg(
                &stream,
                &[io::IoSlice::new(byte)],
                &mut message,
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            );
        }
    }
}

/// The container as mapped memory.
#[derive(Debug)]
struct View {
    memory: MmapRaw,
    slots: u32,
}

impl View {
    fn from_map(map: BorrowedFd<'_>, slots: u32) -> io::Result<Self> {
        let length = slots as usize * size_of::<types::quell_slot>();
        let memory = MmapOptions::new().len(length).map_raw_read_only(&map)?;
        Ok(Self { memory, slots })
    }

    /// A consistent copy of a slot; `None` where writers were active on every attempt.
    fn read(&self, slot: u32) -> Option<types::quell_slot> {
        const TRIES: usize = 10_000;
        let place = self.memory.as_ptr().cast::<types::quell_slot>().wrapping_add(slot as usize);
        let levels = || -> [u32; LEVELS] {
            std::array::from_fn(|level| {
                // SAFETY: `level_seq` is the first field of each slot, aligned and within the mapping; only the kernel writes it,
                // one word at a time.
                let seq = unsafe { AtomicU32::from_ptr(place.cast::<u32>().cast_mut().add(level)) };
                seq.load(Ordering::Acquire)
            })
        };
        (0..TRIES).find_map(|_| {
            let before = levels();
            // SAFETY: the slot lies within the mapping. The kernel may write during the copy; the copy is used only if
            // the sequence numbers show that it did not.
            let copy = unsafe { std::ptr::read_volatile(place) };
            fence(Ordering::Acquire);
            (before == levels() && before.iter().all(|seq| seq % 2 == 0)).then_some(copy)
        })
    }
}
