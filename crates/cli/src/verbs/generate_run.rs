//! `quell generate-run`: a bulk-synchronous run under periodic noise, as an archive for which the run without noise is known.

use anyhow::Context as _;
use quell_otf2::Writer;
use quell_recording::mpi::{BLOCKING, Comm, Definitions, Event, Location, Operation, Region, UNKNOWN, What};
use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use quell_sim::ProgressClock;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

use crate::args::GenerateRun;
use crate::outcome::Outcome;
use crate::printer::Printer;
use quell_request::Usage;

/// The state of a rank.
#[derive(Clone, Debug)]
struct Rank {
    /// The offset in the noise at which it started.
    offset: u64,
    now: u64,
}

/// One rank's part of a phase.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// When its work is done, and when it leaves the all-reduce.
    entered: u64,
    left: u64,
}

/// The run. It is simulated once for all ranks, to find the last in each phase, and once for each rank.
#[derive(Debug)]
struct Job {
    /// `None` without noise.
    clock: Option<ProgressClock>,
    quantum: u64,
    sync: u64,
}

impl Job {
    fn finish(&self, rank: &Rank, start: u64, work: u64) -> u64 {
        let noisy = |clock: &ProgressClock| clock.finish(rank.offset + start, work) - rank.offset;
        self.clock.as_ref().map_or(start + work, noisy)
    }

    fn noise(&self, rank: &Rank, from: u64, until: u64) -> u64 {
        let useful = |clock: &ProgressClock| {
            clock.useful_at(rank.offset + until) - clock.useful_at(rank.offset + from)
        };
        self.clock.as_ref().map_or(0, |clock| until - from - useful(clock))
    }

    fn phase(&self, rank: &mut Rank, last: u64) -> Part {
        let entered = self.finish(rank, rank.now, self.quantum);
        rank.now = self.finish(rank, last.max(entered), self.sync);
        Part { entered, left: rank.now }
    }
}

/// Simulates the run, writes the archive, and prints what is known of it.
pub fn run(args: &GenerateRun, printer: Printer) -> anyhow::Result<Outcome> {
    printer.json(&write(args)?)?;
    Ok(Outcome::Done)
}

/// Simulates the run and writes the archive.
pub fn write(args: &GenerateRun) -> anyhow::Result<serde_json::Value> {
    if args.ranks == 0 || args.detour >= args.period || args.quantum == Nanos::ZERO {
        return Err(
            Usage("--ranks and --quantum must be above 0, and --detour below --period".to_owned()).into()
        );
    }
    let job = Job { clock: clock(args)?, quantum: args.quantum.as_nanos(), sync: args.sync.as_nanos() };
    let mut random = rand_pcg::Pcg64::seed_from_u64(args.seed);
    let ranks: Vec<Rank> = (0..args.ranks)
        .map(|_| Rank { offset: random.random_range(0..args.period.as_nanos()), now: 0 })
        .collect();
    let lasts = lasts(&job, ranks.clone(), args.phases);
    let mut writer = Writer::create(&args.output, &definitions(args.ranks))?;
    let (mut end, mut events) = (0, 0);
    for (location, mut rank) in ranks.into_iter().enumerate() {
        let mut noise = 0;
        let mut event = |time_ns: u64, what: What| {
            events += 1;
            writer.event(location, Event { time_ns, what }).context("the archive cannot be written")
        };
        event(0, What::Enter(0))?;
        for last in &lasts {
            let begun = rank.now;
            let part = job.phase(&mut rank, *last);
            noise += job.noise(&rank, begun, part.entered);
            event(part.entered, What::Noise { source: 0, total_ns: noise })?;
            event(part.entered, What::Enter(1))?;
            event(part.entered, What::CollectiveBegin)?;
            noise += job.noise(&rank, part.entered, part.left);
            let (operation, request) = (Operation::Allreduce, BLOCKING);
            event(part.left, What::Noise { source: 0, total_ns: noise })?;
            event(
                part.left,
                What::Collective { operation, comm: 0, root: UNKNOWN, sent: 8, received: 8, request },
            )?;
            event(part.left, What::Leave(1))?;
        }
        event(rank.now, What::Leave(0))?;
        end = end.max(rank.now);
        writer.close(location)?;
    }
    writer.finish()?;
    Ok(json!({
        "schema": "quell.generate-run/1",
        "runtime_ns": end,
        "quiet_runtime_ns": args.phases * (job.quantum + job.sync),
        "events": events,
    }))
}

fn clock(args: &GenerateRun) -> anyhow::Result<Option<ProgressClock>> {
    if args.detour == Nanos::ZERO {
        return Ok(None);
    }
    let detours = vec![Detour { start: Nanos::ZERO, duration: args.detour, own: false }];
    let trace = Trace { cpu: Cpu(0), span: Span { start: Nanos::ZERO, end: args.period }, detours };
    Ok(Some(ProgressClock::new(&trace)?))
}

/// When the last rank enters the all-reduce, in each phase.
fn lasts(job: &Job, mut ranks: Vec<Rank>, phases: u64) -> Vec<u64> {
    let phase = |_| {
        let come = |rank: &Rank| job.finish(rank, rank.now, job.quantum);
        let last = ranks.iter().map(come).max().unwrap_or(0);
        for rank in &mut ranks {
            job.phase(rank, last);
        }
        last
    };
    (0..phases).map(phase).collect()
}

fn definitions(ranks: u32) -> Definitions {
    let region = |name: &str, mpi| Region { name: name.to_owned(), site: None, mpi };
    let location = |rank| Location {
        id: u64::from(rank),
        name: format!("rank {rank}"),
        rank,
        thread: 0,
        host: "simulated".to_owned(),
    };
    Definitions {
        regions: vec![region("main", false), region("MPI_Allreduce", true)],
        comms: vec![Comm { name: "MPI_COMM_WORLD".to_owned(), members: (0..ranks).collect(), remote: None }],
        locations: (0..ranks).map(location).collect(),
        sources: vec!["injected".to_owned()],
        span_ns: [0, 0],
    }
}
