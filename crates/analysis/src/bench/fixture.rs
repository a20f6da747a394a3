//! Runs made by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use quell_recording::{
    Cpu, Intervals, Manifest, Method, MpiFacts, Nanos, Phase, RankFacts, Recording, State,
};

use super::job::{HostRun, Job};

/// A phase from its times in ns.
pub fn phase(rank: u32, index: u64, start: u64, compute: u64, wait: u64) -> Phase {
    let [start, compute, wait] = [start, compute, wait].map(Nanos::from_nanos);
    Phase { rank, index, start, work: 1, compute, wait }
}

/// A host with ranks (number, process) and their phases (CPU, phase).
pub fn host(ranks: &[(u32, u32)], phases: Vec<(u32, Phase)>, intervals: Vec<Intervals>) -> HostRun {
    let mut manifest = Manifest::new(Method::Phases, State::Complete);
    manifest.host = Some("node".into());
    manifest.zero_monotonic_ns = Some(0);
    let facts = |&(rank, pid): &(u32, u32)| RankFacts {
        rank,
        pid,
        cpus: rank.to_string(),
        ns_per_iteration: 1_000.0,
        timing_ns: 0.0,
        clock_offset_ns: 0,
        clock_error_ns: 0,
    };
    manifest.mpi = Some(MpiFacts {
        bench: "bsp".into(),
        library: "none".into(),
        operation: "barrier".into(),
        bytes: 8,
        ranks: ranks.len() as u32,
        here: ranks.iter().map(facts).collect(),
    });
    let mut phases: Vec<(Cpu, Phase)> = phases.into_iter().map(|(cpu, phase)| (Cpu(cpu), phase)).collect();
    phases.sort_by_key(|(_, phase)| (phase.rank, phase.index));
    let recording = Recording {
        path: PathBuf::from("node.quell"),
        manifest,
        traces: Vec::new(),
        quanta: Vec::new(),
        intervals,
        threads: Vec::new(),
        histograms: Vec::new(),
    };
    HostRun { recording, phases }
}

/// The job of these hosts, which must form one.
pub fn job_of(hosts: &[HostRun]) -> Job {
    Job::from_hosts(hosts).unwrap()
}
