//! Others' use of memory, which quell must see in the time of loads, and only then.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::node::{last_cpu, median, monotonic_ns, pin};
use crate::support::tools::has_two_cpus;
use crate::support::{json, run};
use quell_recording::{MemoryName, Recording};
use quell_testing::{inconclusive, machine, measure};

/// Bytes that the other CPU copies again and again: more than caches hold.
const COPIED: usize = 96 << 20;
/// How long it copies, and then rests.
const TURN_NS: u64 = 400_000_000;
/// The least by which its copies must slow loads for the figure to be compared.
const LEAST_SLOWER: f64 = 0.04;

/// Copies memory on the first CPU in every other turn until `stop`. Returns when it did, on CLOCK_MONOTONIC.
fn copy_in_turns(stop: &AtomicBool) -> Vec<(u64, u64)> {
    pin(0);
    let (from, mut to) = (vec![1u8; COPIED], vec![2u8; COPIED]);
    let mut turns = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let start = monotonic_ns();
        while monotonic_ns() < start + TURN_NS && !stop.load(Ordering::Relaxed) {
            // Piece by piece, so that it ends in time.
            for (from, to) in from.chunks(1 << 20).zip(to.chunks_mut(1 << 20)) {
                to.copy_from_slice(from);
            }
            std::hint::black_box(&mut to);
        }
        turns.push((start, monotonic_ns()));
        std::thread::sleep(std::time::Duration::from_nanos(TURN_NS));
    }
    turns
}

/// Records the last CPU. Returns the part of the time of loads from main memory that is others' use of it, and by which share loads were slower while
/// the other CPU copied, with the share of the time in which it did.
fn recorded(folder: &Path, copies: bool) -> (Option<f64>, f64, f64) {
    let stop = AtomicBool::new(false);
    let turns = std::thread::scope(|scope| {
        let copier = copies.then(|| scope.spawn(|| copy_in_turns(&stop)));
        let cpu = last_cpu().to_string();
        let args =
            ["record", "-q", "-o", "m.quell", "--method", "memory", "--cpus", &cpu, "--duration", "6s"];
        let output = run(folder, &args);
        stop.store(true, Ordering::SeqCst);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        copier.map_or_else(Vec::new, |copier| copier.join().unwrap())
    });
    let recording = Recording::open(&folder.join("m.quell")).unwrap();
    let zero = recording.manifest.zero_monotonic_ns.unwrap();
    let at = recording.manifest.memory.iter().position(|level| level.name == MemoryName::Main).unwrap();
    let main = recording.quanta[0].quanta.iter().filter(|one| one.work == at as u64);
    let (during, between): (Vec<_>, Vec<_>) = main.partition(|one| {
        let start = zero + one.start.as_nanos();
        turns.iter().any(|turn| (turn.0..turn.1).contains(&start))
    });
    let usual = |quanta: &[&quell_recording::Quantum]| {
        median(quanta.iter().map(|one| one.duration.as_nanos()).collect()) as f64
    };
    let (slower, share) = match during.is_empty() || between.is_empty() {
        true => (0.0, 0.0),
        false => (
            usual(&during) / usual(&between) - 1.0,
            during.len() as f64 / (during.len() + between.len()) as f64,
        ),
    };
    let show = json(folder, &["show", "m.quell", "--json"]);
    fs_err::remove_dir_all(folder.join("m.quell")).unwrap();
    (show["memory"][at]["memory_percent"].as_f64(), slower, share)
}

#[test]
fn loads_from_each_level_take_longer_than_from_the_one_before() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let args = ["record", "-q", "-o", "m.quell", "--method", "memory", "--duration", "1s"];
    assert!(run(dir.path(), &args).status.success());
    let recording = Recording::open(&dir.path().join("m.quell")).unwrap();
    let levels = &recording.manifest.memory;
    for series in &recording.quanta {
        // The quickest quantum, which no other test disturbs.
        let quickest = |level: usize| {
            let of_level = series.quanta.iter().filter(|one| one.work == level as u64);
            let shortest = of_level.map(|one| one.duration.as_nanos()).min().unwrap();
            shortest as f64 / f64::from(levels[level].loads)
        };
        // A machine that shows no shared cache has no such level.
        let loads: Vec<f64> = (0..levels.len()).map(quickest).collect();
        assert!(loads.len() >= 2 && 0.0 < loads[0] && 2.0 * loads[0] < loads[1], "{loads:?}");
        assert!(loads.is_sorted(), "{loads:?}");
    }
    assert!(run(dir.path(), &["show", "m.quell"]).status.success());
    let refused = run(dir.path(), &["predict", "m.quell"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("record with --method detour"));
}

/// Tests of figures, which run while no other test uses the machine.
mod measured {
    use super::*;

    #[test]
    fn copies_on_another_cpu_are_seen_as_use_of_memory() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !has_two_cpus() {
            return;
        }
        let mut unseen = None;
        measure(|_| {
            let (quiet, ..) = recorded(dir.path(), false);
            let (percent, slower, share) = recorded(dir.path(), true);
            let (Some(quiet), Some(percent)) = (quiet, percent) else {
                return Err("too few loads: the CPU was not free".into());
            };
            let expected = 100.0 * slower * share;
            // Others may use this machine's memory, as on a virtual machine's host.
            if slower < LEAST_SLOWER || quiet > 0.5 * expected {
                unseen = Some((slower, quiet));
                return Ok(());
            }
            unseen = None;
            match percent >= 0.5 * expected && percent <= 2.0 * expected + quiet {
                true => Ok(()),
                false => Err(format!(
                    "loads take {:.1} % longer during copies, in {:.0} % of the time: {percent:.2} % are others' use of memory, \
                     and {quiet:.2} % without copies",
                    100.0 * slower,
                    100.0 * share
                )),
            }
        });
        if let Some((slower, quiet)) = unseen {
            let slower = 100.0 * slower;
            let why =
                format!("copies on another CPU slow loads by {slower:.1} % here, and others by {quiet:.2} %");
            inconclusive(&why);
        }
    }
}
