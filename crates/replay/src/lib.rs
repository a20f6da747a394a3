//! Burns recorded noise inside a program that is not aware of it.
//!
//! A flat file, the [`schedule`], says when each rank loses its CPU and for how long. A [`ProgressClockView`] is one CPU's part of it:
//! a progress clock like `quell-sim`'s (docs/concepts/progress-clock.md). `quell-node` writes the file; this crate reads it and burns
//! the noise. The crate runs inside other people's jobs, so it uses only libc, no allocator, and cannot panic.
//!
//! With the feature `boundary` it is a preload library that acts at each MPI call; with `timer` it is one that acts by timers and
//! signals. Without either it is the common part, which `quell` links too.

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
pub use track::{Ahead, LEAST_APART_NS, LEAST_USEFUL, LONGEST_DETOUR_NS, ProgressClockView};

#[cfg(all(any(feature = "boundary", feature = "timer"), not(test)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: the call does not return. It is never reached: a test checks that no panic is linked in.
    unsafe { libc::abort() }
}
