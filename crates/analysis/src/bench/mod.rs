//! What the MPI benchmarks found: findings from the phases of all ranks, and from the kernel's intervals beside them.

pub mod culprit;
pub mod fwq;
