//! Results of MPI benchmarks, from the phases of all ranks and the kernel's intervals.

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
