//! LogGOPS: messages between ranks, with noise.

mod net;
mod program;

pub use net::{Net, PerByte};
pub use program::{ANY, Free, Kind, Program, Shape, Shapes};
