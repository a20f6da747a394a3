//! OTF2 archives of MPI runs: a thin binding to the OTF2 library. [`Archive`] reads archives of Score-P, the Python module `otf2` or quell
//! as a [`Run`](quell_recording::mpi::Run); [`write()`] makes an archive of any run, and [`Writer`] of single events.
//!
//! The library is written in C, and reads untrusted files: see [`Archive::open`] for how damaged archives are handled.

mod anchor;
mod archive;
mod arrays;
mod chunks;
mod clock;
mod collected;
mod define;
mod definitions;
mod error;
mod ffi;
mod limits;
mod metrics;
mod ranks;
mod translate;
mod write;
mod writer;

pub use archive::Archive;
pub use define::Facts;
pub use error::Error;
pub use write::{Written, write};
pub use writer::Writer;

/// The prefix of a noise source's metric, followed by the source's name. In ns, cumulative.
pub const NOISE_METRIC: &str = "quell.noise.";
/// The attribute for a communicator where OTF2's event has none: the one on which a receive or a collective was posted, or of a probed
/// message.
pub const COMM_ATTRIBUTE: &str = "quell.comm";
/// The attribute for the rank from which a message is requested, or was probed; absent for `MPI_ANY_SOURCE`.
pub const SOURCE_ATTRIBUTE: &str = "quell.source";
/// The attribute for the tag; absent for `MPI_ANY_TAG`.
pub const TAG_ATTRIBUTE: &str = "quell.tag";
/// The archive's property that metrics come before the event at which they were read, if both have the same time.
pub(crate) const METRICS_FIRST: &std::ffi::CStr = c"QUELL::METRICS_FIRST";
