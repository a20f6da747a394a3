//! The program on the machine that runs the tests: its kernel, its MPIs, its settings. Tests run one at a time (`machine()`). Those in a
//! module `measured` have the machine for themselves, and judge figures only if it was quiet.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod advise;
mod compare;
mod extrapolate;
mod faults;
mod kernel_command;
mod kernel_sources;
mod memory;
mod mpi;
mod mpi_hosts;
mod mpi_tracer;
mod probe;
mod recorder_rings;
mod replay_applications;
mod replay_boundary;
mod replay_command;
mod replay_emulate;
mod replay_timer;
mod serve_metrics;
mod simultaneous;
mod trace;
mod trace_openmp;
mod track;
mod tune;
mod tune_audit;
mod tune_serve;
mod tune_try;
mod watch;
