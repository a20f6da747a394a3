//! Simulated runs, for which the same run without noise is known.

use proptest::prelude::*;
use quell_recording::mpi::{Operation, UNKNOWN, What};
use quell_sim::goal::{Schedule, ScheduleBuilder};
use quell_sim::loggops::{Activity, Network, Noise, PerByte, Rules, Run, Shape, Timeline, run_for_timeline};

use super::archives::Made;

/// A step of a rank.
#[derive(Clone, Debug)]
pub enum Step {
    /// Work, and the noise of each source that strikes it.
    Work(u64, [u64; 2]),
    Send(u32, u32, u64),
    Receive(u32, u32, u64),
}

/// Messages between ranks, each after work on both sides.
pub fn programs() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let work = || (1u64..5000, prop::array::uniform2(prop_oneof![Just(0u64), 0u64..3000]));
    let message = (0usize..100, 1usize..100, work(), work(), 1u64..3000);
    (2usize..6, prop::collection::vec(message, 1..60)).prop_map(|(ranks, messages)| {
        let mut steps = vec![Vec::new(); ranks];
        for (tag, (from, further, before, after, bytes)) in messages.into_iter().enumerate() {
            let (from, tag) = (from % ranks, tag as u32);
            let to = (from + 1 + further % (ranks - 1)) % ranks;
            steps[from].push(Step::Work(before.0, before.1));
            steps[from].push(Step::Send(to as u32, tag, bytes));
            steps[to].push(Step::Work(after.0, after.1));
            steps[to].push(Step::Receive(from as u32, tag, bytes));
        }
        for steps in &mut steps {
            steps.push(Step::Work(1, [0, 0]));
        }
        steps
    })
}

/// The schedule with the noise of the selected sources.
pub fn schedule(program: &[Vec<Step>], sources: [bool; 2]) -> Schedule {
    let mut builder = ScheduleBuilder::new(program.len() as u32);
    for steps in program {
        builder.begin_rank();
        for step in steps {
            let op = match step {
                Step::Work(work, noise) => {
                    let noise: u64 =
                        noise.iter().zip(sources).map(|(noise, strikes)| noise * u64::from(strikes)).sum();
                    builder.op(Shape::calc(work + noise), 0)
                }
                Step::Send(to, tag, bytes) => builder.op(Shape::send(*bytes, *tag), *to),
                Step::Receive(from, tag, bytes) => builder.op(Shape::recv(*bytes, *tag), *from),
            };
            if op > 0 {
                builder.requires(op, op - 1);
            }
        }
        builder.end_rank();
    }
    builder.finish().unwrap()
}

/// When each rank's steps end: for work and sends from the simulator; a receive ends when its message has arrived.
pub fn ends(program: &[Vec<Step>], net: Network, sources: [bool; 2]) -> Vec<Vec<u64>> {
    let schedule = schedule(program, sources);
    let run = Run {
        net,
        ranges: &[],
        levels: &[],
        rules: Rules::Physical,
        noise: &Noise::None,
        threads: 1,
        progress: quell_sim::loggops::NO_PROGRESS,
    };
    let mut timeline = Timeline::new((0..program.len() as u32).collect(), usize::MAX);
    let outcome = run_for_timeline(&schedule, &run, &mut timeline).unwrap();
    assert!(outcome.stuck.is_none());
    let mut own = vec![Vec::new(); program.len()];
    let mut arrivals = std::collections::HashMap::new();
    for slice in timeline.slices() {
        if let Activity::Send { arrives, .. } = slice.activity {
            let Step::Send(_, tag, _) = program[slice.rank as usize][slice.op as usize] else {
                panic!("no send")
            };
            arrivals.insert(tag, arrives);
        }
        if !matches!(slice.activity, Activity::Receive { .. }) {
            own[slice.rank as usize].push(slice.end);
        }
    }
    let ends = program.iter().zip(own).map(|(steps, own)| {
        let (mut own, mut now) = (own.into_iter(), 0);
        let end = |step: &Step| {
            now = match step {
                Step::Receive(_, tag, _) => now.max(arrivals[tag]),
                _ => own.next().unwrap(),
            };
            now
        };
        steps.iter().map(end).collect::<Vec<u64>>()
    });
    let ends: Vec<Vec<u64>> = ends.collect();
    for (ends, finish) in ends.iter().zip(&outcome.finish) {
        assert_eq!(ends.last(), Some(finish));
    }
    ends
}

/// The trace that a tracer would write.
pub fn trace(program: &[Vec<Step>], ends: &[Vec<u64>]) -> Made {
    let mut made = Made::new(program.len() as u32, &["tick", "task"]);
    for (rank, (steps, ends)) in program.iter().zip(ends).enumerate() {
        let (rank, mut now, mut totals) = (rank as u32, 0, [0; 2]);
        made.at(rank, 0, What::Enter(0));
        for (step, end) in steps.iter().zip(ends) {
            match step {
                Step::Work(_, noise) => {
                    for source in 0..2 {
                        totals[source] += noise[source];
                        made.at(rank, *end, What::Noise { source: source as u32, total_ns: totals[source] });
                    }
                }
                Step::Send(to, tag, _) => drop(made.sends(rank, [now, *end], *to, *tag)),
                Step::Receive(from, tag, _) => drop(made.receives(rank, [now, *end], *from, *tag)),
            }
            now = *end;
        }
        made.at(rank, now, What::Leave(0));
    }
    // The size of a message matters only to the network.
    for (steps, events) in program.iter().zip(&mut made.events) {
        let sizes = steps.iter().filter_map(|step| match step {
            Step::Send(.., bytes) | Step::Receive(.., bytes) => Some(*bytes),
            Step::Work(..) => None,
        });
        let messages = events.iter_mut().filter_map(|event| match &mut event.what {
            What::Send { bytes, .. } | What::Recv { bytes, .. } => Some(bytes),
            _ => None,
        });
        for (place, size) in messages.zip(sizes) {
            *place = size;
        }
    }
    made
}

fn check(program: &[Vec<Step>], net: Network) -> Result<(), TestCaseError> {
    let noisy = ends(program, net, [true, true]);
    let mut made = trace(program, &noisy);
    let tracked = made.track_with(Some(&net.into()));
    prop_assert!(!tracked.findings.broken(), "{:?}", tracked.findings);
    let last = |ends: &[u64]| ends.last().map_or(0, |end| *end as i64);
    let quiet = ends(program, net, [false, false]);
    let without = [ends(program, net, [false, true]), ends(program, net, [true, false])];
    for rank in &tracked.ranks {
        let at = rank.rank as usize;
        prop_assert_eq!(rank.runtime_ns, last(&noisy[at]));
        prop_assert_eq!(rank.compensated_ns, last(&quiet[at]), "rank {}", at);
        prop_assert_eq!(rank.accumulated_ns, rank.local_ns + rank.amplified_ns - rank.absorbed_ns);
        for (source, name) in ["tick", "task"].into_iter().enumerate() {
            let alone = rank.runtime_ns - rank.by_source[name].accumulated_ns;
            prop_assert_eq!(alone, last(&without[source][at]), "rank {} without {}", at, name);
        }
    }
    let longest = |all: &[Vec<u64>]| all.iter().map(|ends| last(ends)).max().unwrap_or(0);
    prop_assert_eq!(tracked.compensated_runtime_ns, longest(&quiet));
    Ok(())
}

proptest! {
    #[test]
    fn without_a_network_the_quiet_run_is_that_of_the_simulator(program in programs()) {
        let net = Network { latency: 0, overhead: 0, gap: 0, gap_per_byte: PerByte::default(), ..Network::default() };
        check(&program, net)?;
    }

    #[test]
    fn with_a_network_too(program in programs(), latency in 0u64..3000) {
        // No message waits for another's bytes or for a CPU, so all of its time is its own.
        let net = Network { latency, overhead: 0, gap: 0, gap_per_byte: PerByte::default(), ..Network::default() };
        check(&program, net)?;
    }

    #[test]
    fn a_bulk_synchronous_run_without_noise_is_as_long_as_its_slowest_quiet_phases(
        phases in prop::collection::vec(prop::collection::vec((1u64..10_000, 0u64..5_000, 0u64..5_000), 4), 1..40),
        sync in 1u64..500,
    ) {
        let mut made = Made::new(4, &["tick", "task"]);
        let mut now = 0;
        let mut totals = [[0; 2]; 4];
        let mut quiet = [0; 3];
        for phase in &phases {
            let entries: Vec<u64> = phase.iter().map(|(work, tick, task)| now + work + tick + task).collect();
            let end = entries.iter().max().unwrap() + sync;
            for (rank, (_, tick, task)) in phase.iter().enumerate() {
                for (source, noise) in [tick, task].into_iter().enumerate() {
                    totals[rank][source] += noise;
                    let total_ns = totals[rank][source];
                    made.at(rank as u32, entries[rank], What::Noise { source: source as u32, total_ns });
                }
                made.collective(rank as u32, [entries[rank], end], Operation::Allreduce, UNKNOWN);
            }
            now = end;
            quiet[0] += phase.iter().map(|(work, ..)| work).max().unwrap() + sync;
            quiet[1] += phase.iter().map(|(work, _, task)| work + task).max().unwrap() + sync;
            quiet[2] += phase.iter().map(|(work, tick, _)| work + tick).max().unwrap() + sync;
        }
        let tracked = made.track();
        prop_assert_eq!(tracked.runtime_ns, now as i64);
        prop_assert_eq!(tracked.compensated_runtime_ns, quiet[0] as i64);
        prop_assert_eq!(tracked.compensated_runtime_by_source_ns["tick"], quiet[1] as i64);
        prop_assert_eq!(tracked.compensated_runtime_by_source_ns["task"], quiet[2] as i64);
        // All ranks end together, so the sum over ranks is the same multiple above and below.
        let alone = (2 * now - quiet[1] - quiet[2]) as f64;
        let together = (now - quiet[0]) as f64;
        prop_assert_eq!(tracked.orthogonal_sum_ratio, (together > 0.0).then(|| alone / together));
    }
}
