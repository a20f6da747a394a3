//! What touches a Linux machine: the clock, the probes, and facts about the machine.

pub mod clock;
pub mod doctor;
pub mod injector;
pub mod machine;
pub mod mpi;
pub mod probe;
mod realtime;
