//! OTF2 archives of MPI runs: a thin binding to the OTF2 library. [`Archive`] reads what Score-P, the Python module `otf2` or quell wrote
//! as a [`Run`](quell_recording::mpi::Run); [`write()`] makes an archive of any run, and [`Writer`] of single events.
//!
//! The library is C, and reads what others wrote: see [`Archive::open`] for what becomes of damaged archives.

mod archive;
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

/// The metric of a noise source: this, and the source's name. In ns, cumulative.
pub const NOISE_METRIC: &str = "quell.noise.";
/// The attribute that tells a communicator where OTF2's event has none: of what a receive or a collective was posted on, of a probed
/// message.
pub const COMM_ATTRIBUTE: &str = "quell.comm";
/// The same for the rank from which a message is asked for, or was probed; absent if any will do.
pub const SOURCE_ATTRIBUTE: &str = "quell.source";
/// The same for the tag.
pub const TAG_ATTRIBUTE: &str = "quell.tag";
/// The archive's property that says that metrics stand before the event at which they were read, if they are of one time.
pub(crate) const METRICS_FIRST: &std::ffi::CStr = c"QUELL::METRICS_FIRST";
