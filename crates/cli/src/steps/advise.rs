//! Advice with a progress bar, and the advice of a study.

use quell_analysis::advise::{Advice, Leaving, Question, advise as ask};
use quell_analysis::predict::Options;
use quell_analysis::whatif::{AttributedNoise, Job};
use quell_recording::Recording;
use quell_request::predict;
use quell_request::tune::trial::RANK_PHASES;

use super::remedies::Remedies;
use crate::args::this_machine;
use crate::printer::Printer;
use crate::progress::Step;

/// Maximum number of sources that a page lists individually.
const MOST_SOURCES: usize = 8;

/// Divisor of the effort of a prediction with messages: advice makes one or more for each source and mitigation.
const EFFORT_DIVISOR: u64 = 10;
/// Number of resampled runs behind each confidence interval, unless traces are huge …
const REPLICATES: u64 = 40;
/// … and the minimum; an interval from fewer runs is meaningless.
const FEWEST_REPLICATES: u64 = 8;
/// Maximum effort of all resampled runs of one prediction, in parts of detours to rebuild.
const EFFORT: u64 = 8_000_000;

/// Advises, with a progress bar.
pub fn build(
    nodes: &[AttributedNoise],
    job: &Job<'_>,
    remedies: &Remedies,
    (most_sources, leave): (usize, Leaving),
    printer: Printer,
) -> anyhow::Result<Advice> {
    let step = Step::long(printer, "advise", Some(100));
    let parts: u64 = nodes.iter().map(AttributedNoise::parts).sum();
    let job = match job {
        Job::Phases(options) => {
            let affordable = (EFFORT / parts.max(1)).clamp(FEWEST_REPLICATES, REPLICATES);
            Job::Phases(Options { replicates: options.replicates.min(affordable), ..options.clone() })
        }
        Job::Schedule(application) => Job::Schedule(*application),
    };
    let (candidates, compute) = (&remedies.candidates[..], &remedies.compute[..]);
    let given = &remedies.given;
    let question = Question { nodes, job: &job, candidates, compute, most_sources, leave, given };
    let mut advice = ask(&question, &|done, all| step.set(done, all)).map_err(predict::explained)?;
    advice.warnings.extend(remedies.warnings.iter().cloned());
    Ok(advice)
}

/// Options with as many resampled runs as advice has time for.
pub fn options_for(ranks: Vec<u64>) -> Options {
    Options {
        replicates: REPLICATES,
        rank_phases: RANK_PHASES,
        effort_divisor: EFFORT_DIVISOR,
        ..Options::new(ranks)
    }
}

/// The numbers of ranks at which a study advises: those of `tune try`, and larger ones. Sources are ordered by what they cost at the last.
const ADVISED: [u64; 5] = [2, 16, 128, 1_024, 4_096];

/// What each source of a recorded node costs and what to do about it, up to the largest predicted number of ranks; prints a warning if that
/// fails.
pub fn advice(
    node: AttributedNoise,
    recording: &Recording,
    options: &Options,
    printer: Printer,
) -> Option<Advice> {
    let nodes = [node];
    let made = || {
        let most = options.ranks.iter().copied().max().unwrap_or(1);
        let mut ranks: Vec<u64> = ADVISED.into_iter().filter(|ranks| *ranks <= most).collect();
        if ranks.is_empty() {
            ranks.push(most);
        }
        // The same phases as the prediction next to it, so that a page has one slowdown for a number of ranks.
        let &Options { quantum, sync, phases, rank_phases, seed, .. } = options;
        let options = Options { quantum, sync, seed, phases, rank_phases, ..options_for(ranks) };
        let remedies = Remedies::look(&this_machine(), None, std::slice::from_ref(&recording.manifest.host))?;
        build(&nodes, &Job::Phases(options), &remedies, (MOST_SOURCES, Leaving::default()), printer)
    };
    match made() {
        Ok(advice) => Some(advice),
        Err(why) => {
            printer.warn(&format!("there is no advice: {why:#}"));
            None
        }
    }
}
