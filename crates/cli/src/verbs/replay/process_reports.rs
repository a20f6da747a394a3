//! Compares what processes report of their noise with what was scheduled, and warns about the limits.

use std::collections::BTreeSet;

use quell_analysis::Warning;
use quell_analysis::interleaved::{self, Interleaved, RankBlock};
use quell_analysis::replay::{Process, Replay, quantile_of_powers};
use quell_node::injector::reports::{Event, ProcessReport};
use quell_replay::Launched;
use quell_replay::report::Field;
use quell_replay::schedule::{Blocks, Context, Schedule, Sync};

/// If burning takes longer than requested by this factor, it was interrupted itself.
const BUSY: f64 = 1.2;

/// A process's report, with what its trace holds for the same time.
pub fn process(report: &ProcessReport, schedule: &Schedule<'_>, words: &[u64]) -> Process {
    let get = |field: Field| report.get(field);
    let span_ns = get(Field::LastNs).saturating_sub(get(Field::BegunNs));
    let entry = schedule.entry(get(Field::ProgressClockView));
    let trace = entry.and_then(|entry| entry.within(words).ok());
    let in_step = schedule.head.sync == Sync::Phase;
    let trace_ns = trace.filter(|_| !in_step).map_or(0, |track| track.noise_in(get(Field::Place), span_ns));
    Process {
        rank: report.rank(),
        host: report.host.clone(),
        pid: get(Field::Pid),
        name: report.name(),
        node: get(Field::Node),
        cpu: entry.map_or(0, |entry| entry.cpu as u32),
        threads: get(Field::Threads),
        calls: get(Field::Calls),
        burns: get(Field::Burns),
        asked_ns: get(Field::AskedNs),
        took_ns: get(Field::TookNs),
        trace_ns,
        absorbed_ns: get(Field::AbsorbedNs),
        within_ns: get(Field::WithinNs),
        span_ns,
        over_p50_ns: quantile_of_powers(report.histogram(), 0.5),
        over_p99_ns: quantile_of_powers(report.histogram(), 0.99),
        most_over_ns: get(Field::MostOverNs),
        phases: get(Field::Phases),
        used_up: get(Field::UsedUp) != 0,
        missed: get(Field::Missed),
    }
}

/// The slowdown of an interleaved run, or why there is none.
pub fn interleaved(reports: &[ProcessReport], blocks: Blocks) -> Result<Interleaved, Warning> {
    let block = |event: Event| RankBlock { injected_ns: event.asked_ns, length_ns: event.took_ns };
    let called = |report: &&ProcessReport| report.get(Field::Calls) > 0;
    let ranks: Vec<Vec<RankBlock>> =
        reports.iter().filter(called).map(|report| report.events().map(block).collect()).collect();
    interleaved::interleaved(&ranks, blocks.phases.get(), blocks.seed, |block| blocks.has_noise(block))
}

/// The number of ranks that a launcher started, as the processes report it; 0 if none does.
pub fn launched(reports: &[ProcessReport]) -> u64 {
    reports.iter().map(|report| report.get(Field::Ranks)).max().unwrap_or(0)
}

/// Warnings for the reader; `launched` is the number of ranks that a launcher started.
pub fn warnings(document: &Replay, launched: u64, context: Context, sync: Sync) -> Vec<Warning> {
    let processes = &document.processes;
    let mut warnings = Vec::new();
    // For a command that failed, the reason for a missing report is not known, and quell does not guess it.
    let succeeded = document.exit_code == Some(0);
    if processes.is_empty() && succeeded {
        warnings.push(match context {
            Context::Boundary => Warning::NoMpiCalls,
            _ => Warning::NoProcess,
        });
    }
    let ranks: Vec<u64> = processes.iter().filter_map(|process| process.rank).collect();
    let all = ranks.iter().max().map_or(0, |rank| rank + 1).max(launched);
    // A rank may report twice: a command may launch several programs.
    let reported: BTreeSet<u64> = ranks.into_iter().collect();
    let missing = all - reported.len() as u64;
    // If each rank has a quell of its own, each reports its own.
    if missing > 0 && succeeded && Launched::here().is_none() {
        warnings.push(Warning::RanksUnreported { missing, ranks: all });
    }
    let sum = |of: fn(&Process) -> u64| processes.iter().map(of).sum::<u64>();
    let (requested_ns, took_ns) = (sum(|process| process.asked_ns), sum(|process| process.took_ns));
    if took_ns as f64 > BUSY * requested_ns as f64 {
        warnings.push(Warning::BurningInterrupted { requested_ns, took_ns });
    }
    if sync == Sync::Phase && !processes.is_empty() && sum(|process| process.phases) == 0 {
        warnings.push(Warning::NoPhaseEnded);
    }
    if let Some(used) = processes.iter().find(|process| process.used_up) {
        warnings.push(Warning::ShareUsedUp { rank: used.rank });
    }
    let threads = sum(|process| process.missed);
    if threads > 0 {
        warnings.push(Warning::ThreadsUnreached { threads });
    }
    warnings
}
