//! What MPI benchmarks found: phases of all ranks, and the kernel's intervals beside them.

pub mod bsp;
pub mod job;
pub mod spread;
