//! Runs all numbers of ranks, each with its chains of phases.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use quell_analysis::emulation::{Measured, OwnNoise};
use quell_node::injector::phases::{Plan, Start, Tally, Team, emulate};
use quell_sim::{Job, Places};

use super::noise::Noise;
use crate::printer::Printer;
use crate::progress::Step;
use crate::signals::stopped_by_signals;

/// Runs all numbers of ranks, or those before Ctrl-C, of which the last may be cut short. The flag is `true` if Ctrl-C ended the run.
pub fn run(
    plan: &Plan<'_>,
    noise: &Noise,
    jobs: &[Job],
    share: Option<f64>,
    words: &str,
    printer: Printer,
) -> anyhow::Result<(Vec<Measured>, bool)> {
    let stop = stopped_by_signals()?;
    printer.status(words);
    let all: u64 = jobs.iter().map(|job| job.ranks.saturating_mul(job.phases)).fold(0, u64::saturating_add);
    let step = Step::long(printer, "emulate", Some(all));
    let share_ns = share.map(|share| (share * noise.shortest_period() as f64) as u128);
    let quantum = plan.quantum.as_nanos();
    let measured = emulate(plan, &stop, |team| {
        let mut done = 0u64;
        let mut measured = Vec::new();
        for job in jobs {
            let before = done;
            let mut tick = |phases: u64| {
                done = before + phases * job.ranks;
                step.set(done, all);
            };
            measured.push(scale(team, noise, job, quantum, share_ns, &stop, &mut tick));
            done = before + job.ranks.saturating_mul(job.phases);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        measured
    })?;
    // From here on a signal ends quell as usual.
    let interrupted = stop.swap(true, Ordering::SeqCst);
    Ok((measured, interrupted))
}

/// One number of ranks. Within a chain, all ranks advance by the time of the slowest: noise that strikes while a rank waits is absorbed.
fn scale(
    team: &mut Team<'_>,
    noise: &Noise,
    job: &Job,
    quantum: u64,
    share_ns: Option<u128>,
    stop: &AtomicBool,
    tick: &mut dyn FnMut(u64),
) -> Measured {
    let begun = Instant::now();
    let (mut max_ns, mut in_place_ns) = (Vec::new(), Vec::new());
    'chains: for chain in 0..job.chains() {
        let places = Places::new(&noise.nodes, job, chain);
        let mut elapsed = 0u128;
        for phase in 0..job.phases_of(chain) {
            if share_ns.is_some_and(|most| elapsed >= most) {
                break;
            }
            let start = |place| Start { track: noise.track_of(&place), at_ns: place.at };
            let Some(ran) = team.phase(places.at(phase, elapsed).map(start), stop) else {
                break 'chains;
            };
            let slowest = places.at(phase, elapsed).map(|place| noise.delay(&place, quantum)).max();
            in_place_ns.push((quantum + slowest.unwrap_or(0)) as f64);
            elapsed += ran.max_ns.round() as u128;
            max_ns.push(ran.max_ns);
            tick(max_ns.len() as u64);
        }
    }
    let mut tally = team.tally();
    let references_ns = std::mem::take(&mut tally.references_ns);
    let wall_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Measured { max_ns, in_place_ns, references_ns, wall_ns, own: own(&tally) }
}

fn own(tally: &Tally) -> OwnNoise {
    OwnNoise {
        runs: tally.runs,
        runs_again: tally.runs_again,
        thrown_away: tally.thrown_away,
        disturbed: tally.disturbed,
        with_own: tally.with_own,
        own_ns: tally.own_ns,
        mean_speed_correction_ns: tally.drift_ns / tally.runs.max(1) as f64,
    }
}
