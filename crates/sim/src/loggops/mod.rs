//! LogGOPS: messages between ranks, with noise.
//!
//! [`run`] plays a [`Program`] on a [`Net`] under [`Rules`] and [`Noise`]. The rules are in `docs/reference/loggops.md`.

mod event;
mod few;
mod global;
mod matching;
mod net;
mod noise;
mod outcome;
mod play;
mod prefetch;
mod program;
mod rank;
mod stuck;
mod windows;

pub use net::{Net, PerByte};
pub use noise::{Noise, NoiseError, Place, RankClocks, Start, WindowNoise};
pub use outcome::{Outcome, RunError, Stuck, Waiting};
pub use program::{ANY, Free, Frees, Kind, Program, Shape, Shapes};

use global::Global;
use rank::{FreeFrom, Several, Single};

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
    let context = play::Context::new(program, run)?;
    if context.layout.is_single() {
        run_on::<P, Single>(context, run)
    } else {
        run_on::<P, Several>(context, run)
    }
}

fn run_on<P: Program, F: FreeFrom>(
    context: play::Context<'_, P>,
    run: &Run<'_>,
) -> Result<Outcome, RunError> {
    let (program, layout) = (context.program, context.layout);
    // Whatever one rank does, no other knows sooner.
    let reach = if context.has_rendezvous() { run.net.latency } else { run.net.latency + run.net.overhead };
    let (ranks, events) = match run.rules {
        Rules::Compatible => {
            let rules = play::Compatible(context);
            Global::<P, F, _>::new(program, &rules, layout, true).run(run)?
        }
        Rules::Physical if reach == 0 => {
            let rules = play::Physical(context);
            Global::<P, F, _>::new(program, &rules, layout, false).run(run)?
        }
        Rules::Physical => windows::run(program, &play::Physical(context), layout, reach, run)?,
    };
    Ok(Outcome {
        events,
        finish: ranks.iter().map(|rank| rank.free.finish()).collect(),
        noise: ranks.iter().map(|rank| rank.noise).collect(),
        stuck: stuck::find(program, &ranks, run.net.eager_limit),
    })
}
