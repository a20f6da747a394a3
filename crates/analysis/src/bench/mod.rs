//! What MPI benchmarks found: findings from the phases of all ranks, and from the kernel's intervals beside them.

pub mod anomalies;
pub mod bsp;
pub mod culprit;
pub mod fwq;
pub mod job;
pub mod spread;
