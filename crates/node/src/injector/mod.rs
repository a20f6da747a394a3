//! Noise injection: turns traces into a schedule for quell-replay, reads the reports, and runs quell's own phases under noise.

pub mod calibrate;
pub mod compile;
pub mod job;
mod launches;
mod median;
pub mod passing;
pub mod phases;
pub mod preload;
pub mod process;
pub mod reports;
pub mod schedule;

/// Whether a command starts a launcher of MPI programs: itself, behind a program that runs another, or in the script of a shell.
pub fn has_launcher(command: &[String]) -> bool {
    !launches::launches(command).is_empty()
}
