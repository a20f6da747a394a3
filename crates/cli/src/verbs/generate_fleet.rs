//! `quell generate-fleet`: recordings of synthetic nodes, some of which have a fault, and the list of faults.

mod fault_scenarios;

use std::path::Path;

use quell_node::probe::first_manifest;
use quell_recording::{
    ClockFacts, Cpu, CpuFacts, Detour, Interval, Manifest, Method, Nanos, SourcesFacts, Span, State, Writer,
};
use rand::SeedableRng as _;
use rand_pcg::Pcg64;
use rayon::prelude::*;
use serde_json::json;

use crate::args::{FaultScenario, GenerateFleet};
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;
use fault_scenarios::{Event, Node};
use quell_request::Usage;

/// The time that the probe's own loop adds to each detour, in ns.
const AROUND_NS: u64 = 80;

/// Writes the recordings, and prints which nodes have a fault.
pub fn run(args: &GenerateFleet, printer: Printer) -> anyhow::Result<Outcome> {
    if args.ill > args.nodes
        || args.cpus == 0
        || args.nodes == 0
        || args.tick_hz == 0
        || args.duration < Nanos::from_secs(1)
    {
        return Err(Usage(
            "--nodes, --cpus and --tick-hz must be above 0, --ill at most --nodes, --duration 1s at least"
                .into(),
        )
        .into());
    }
    quell_recording::create_folder(&args.output)?;
    let step = Step::new(printer, "generate", Some(args.nodes));
    let done = std::sync::atomic::AtomicU64::new(0);
    let write = |index: u64| -> anyhow::Result<Option<serde_json::Value>> {
        let name = name(index);
        let way = one(args, index, &args.output.join(format!("{name}.quell")))?;
        step.reach(done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
        Ok(way.map(|way| json!({ "node": name, "way": way })))
    };
    let ill: Vec<Option<serde_json::Value>> =
        (0..args.nodes).into_par_iter().map(write).collect::<anyhow::Result<_>>()?;
    let ill: Vec<serde_json::Value> = ill.into_iter().flatten().collect();
    printer.json(&json!({ "schema": "quell.generate-fleet/1", "nodes": args.nodes, "ill": ill }))?;
    Ok(Outcome::Done)
}

/// Writes the recording of one node, and returns its fault.
pub fn one(args: &GenerateFleet, index: u64, output: &Path) -> anyhow::Result<Option<FaultScenario>> {
    let way = scenario_of(args, index);
    // The random streams of nodes must not overlap: each node has a seed of its own.
    let mut draws = Pcg64::seed_from_u64(args.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index);
    let node = Node::draw(args, way, &mut draws);
    write_node(args, &name(index), &node, &mut draws, output)?;
    Ok(way)
}

/// The name of a node.
pub fn name(index: u64) -> String {
    format!("node{index:05}")
}

/// Nodes with a fault are evenly spaced; the faults alternate.
fn scenario_of(args: &GenerateFleet, index: u64) -> Option<FaultScenario> {
    let ill = (0..args.ill).find(|turn| turn * args.nodes / args.ill + args.nodes / args.ill / 2 == index)?;
    args.ways.get(ill as usize % args.ways.len().max(1)).copied()
}

fn write_node(
    args: &GenerateFleet,
    name: &str,
    node: &Node,
    draws: &mut Pcg64,
    output: &Path,
) -> anyhow::Result<()> {
    let mut manifest = manifest(args, name);
    let mut writer = Writer::create(output, &manifest)?;
    for cpu in 0..args.cpus {
        let events = node.events(cpu, draws);
        let (detours, intervals) = rows(Cpu(cpu), &events, args.duration);
        writer.detours(&detours)?;
        if !args.no_sources {
            writer.intervals(&intervals)?;
        }
    }
    Ok(writer.finish(&mut manifest)?)
}

fn manifest(args: &GenerateFleet, name: &str) -> Manifest {
    let mut manifest = first_manifest(Method::Detour, &[], &[]);
    manifest.state = State::Complete;
    manifest.host = Some(name.to_owned());
    manifest.kernel = Some("made up".into());
    manifest.processor = None;
    manifest.clock =
        Some(ClockFacts { name: "tsc".into(), ticks_per_second: 1e9, granularity_ns: 10.0, drift_ppm: 0.0 });
    manifest.threshold_ns = Some(150.0);
    manifest.sources = (!args.no_sources).then(SourcesFacts::default);
    let span = Span { start: Nanos::ZERO, end: args.duration };
    manifest.cpus = (0..args.cpus).map(|cpu| CpuFacts::from_span(Cpu(cpu), span)).collect();
    manifest
}

type Rows<R> = Vec<(Cpu, R)>;

/// Rows from events in order. Events that overlap run one after the other, and events without a gap between them form one detour.
fn rows(cpu: Cpu, events: &[Event], end: Nanos) -> (Rows<Detour>, Rows<Interval>) {
    let (mut detours, mut intervals): (Rows<Detour>, Rows<Interval>) = (Vec::new(), Vec::new());
    let mut free = 0;
    for event in events {
        let (start, duration) = (event.start.max(free), event.ns);
        if start + duration + 2 * AROUND_NS >= end.as_nanos() {
            break;
        }
        match detours.last_mut() {
            Some((_, last)) if start < last.end().as_nanos() + AROUND_NS => {
                last.duration = Nanos::from_nanos(start + duration + AROUND_NS - last.start.as_nanos());
            }
            _ => {
                let duration = Nanos::from_nanos(duration + AROUND_NS);
                detours.push((cpu, Detour { start: Nanos::from_nanos(start), duration, own: false }));
            }
        }
        free = start + duration;
        if let Some(source) = &event.source {
            let (start, duration) = (Nanos::from_nanos(start), Nanos::from_nanos(duration));
            let (pid, source) = (event.pid, source.clone());
            let interval = Interval {
                start,
                duration,
                net: duration,
                source,
                pid,
                victim: 0,
                detail: None,
                cause: None,
            };
            intervals.push((cpu, interval));
        }
    }
    (detours, intervals)
}
