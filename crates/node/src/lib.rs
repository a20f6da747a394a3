//! What touches a Linux machine: clocks, probes, the injector, the site's MPI, and facts about the machine.

pub mod clock;
pub mod doctor;
pub mod injector;
pub mod leftovers;
pub mod machine;
mod memory;
pub mod mpi;
pub mod probe;
mod processor;
mod realtime;
