//! The kernel recorder: what the kernel did on each CPU, and what each followed thread suffered.
//!
//! [`Recorder`] loads a few dozen small eBPF programs (`src/bpf`, one file per kind of source), which pair entries
//! with exits inside the kernel, resolve nesting (NMI > interrupt > softirq > task) and put one entry per interval into a
//! ring per CPU that the recorder maps, without any wakeup. The owner of the recorder empties the rings ([`Recorder::drain`]).
//!
//! Followed threads own a slot in the metric container ([`container`]): memory that the programs
//! write and the user's processes may read. Its layout is `include/quell_metrics.h`.

mod adopt;
pub mod container;
mod cost;
mod cpu_state;
mod drained;
mod error;
mod faults;
mod hooks;
mod layout;
mod libbpf_log;
mod names;
mod namespaces;
mod peer;
mod recorder;
mod rings;
mod translate;

pub use cost::{Cost, count_cost};
pub use drained::{Drained, drain_portions};
pub use error::KernelError;
pub use hooks::missing_hooks;
pub use recorder::{Plan, Recorder};

/// What the build generates from `src/bpf/recorder.bpf.c`: its maps, programs and types.
#[expect(clippy::all, clippy::pedantic, clippy::restriction, reason = "generated")]
mod bpf {
    include!(concat!(env!("OUT_DIR"), "/recorder.skel.rs"));
}
