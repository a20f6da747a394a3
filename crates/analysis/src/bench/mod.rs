//! What MPI benchmarks found: findings from the phases of all ranks, and from the kernel's intervals beside them.

pub mod allreduce;
pub mod anomalies;
pub mod bsp;
pub mod culprit;
#[cfg(test)]
mod fixture;
pub mod fwq;
pub mod halo;
pub mod job;
pub mod jones;
pub mod loggp;
pub mod spread;
