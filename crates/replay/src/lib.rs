//! What burns recorded noise inside a program that knows nothing of it.
//!
//! A flat file, the [`schedule`], says when each rank loses its CPU and for how long; a [`Track`] is one CPU's part of it,
//! a progress clock as `quell-sim` has one (DESIGN §3). This crate reads the file, and burns. It is on libc alone,
//! without an allocator and without a panic, for it lives in other people's jobs. The file is written by `quell-node`.
//!
//! With the feature `boundary` it is a library to preload that acts at each MPI call; with `timer` one that acts by timers and
//! signals. Without either it is the common ground, which `quell` itself links too.

#![cfg_attr(not(test), no_std)]

#[cfg(all(feature = "boundary", target_arch = "x86_64"))]
mod boundary;
mod flaw;
mod launched;
pub mod load;
pub mod report;
pub mod schedule;
pub mod spin;
pub mod timer;
mod track;

pub use launched::Launched;
pub use track::{Ahead, Track};

#[cfg(all(any(feature = "boundary", feature = "timer"), not(test)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: the call does not return. No path leads here: a test says that no panic is linked in.
    unsafe { libc::abort() }
}
