//! The worked examples of Nataraj et al. 2007, Fig. 2, as archives that the OTF2 library wrote, and the paper's validation (§4.1),
//! simulated.

use std::path::Path;

use crate::support::quell;
use quell_otf2::Writer;
use quell_recording::mpi::{BLOCKING, Comm, Definitions, Event, Location, Operation, Region, UNKNOWN, What};
use serde_json::Value;

const MS: u64 = 1_000_000;

/// An archive under construction. Times are in ms.
struct Made(Writer);

impl Made {
    fn new(folder: &Path, ranks: u32) -> Self {
        let region = |name: &str, mpi| Region { name: name.to_owned(), site: None, mpi };
        let definitions = Definitions {
            regions: vec![
                region("main", false),
                region("MPI_Send", true),
                region("MPI_Recv", true),
                region("MPI_Barrier", true),
            ],
            comms: vec![Comm {
                name: "MPI_COMM_WORLD".to_owned(),
                members: (0..ranks).collect(),
                remote: None,
            }],
            locations: (0..ranks)
                .map(|rank| Location { id: rank.into(), rank, ..Location::default() })
                .collect(),
            sources: vec!["timer_interrupt".to_owned()],
            span_ns: [0, 3000 * MS],
        };
        let mut made = Self(Writer::create(folder, &definitions).unwrap());
        for rank in 0..ranks {
            made.at(rank, 0, What::Enter(0));
        }
        made
    }

    fn at(&mut self, rank: u32, ms: u64, what: What) {
        self.0.event(rank as usize, Event { time_ns: ms * MS, what }).unwrap();
    }

    fn noise(&mut self, rank: u32, ms: u64, total: u64) {
        self.at(rank, ms, What::Noise { source: 0, total_ns: total * MS });
    }

    fn send(&mut self, rank: u32, [begin, end]: [u64; 2], to: u32) {
        self.at(rank, begin, What::Enter(1));
        self.at(rank, begin, What::Send { comm: 0, to, tag: 1, bytes: 64, request: BLOCKING });
        self.at(rank, end, What::Leave(1));
    }

    fn receive(&mut self, rank: u32, [begin, end]: [u64; 2], from: u32) {
        self.at(rank, begin, What::Enter(2));
        self.at(rank, end, What::Recv { comm: 0, from, tag: 1, bytes: 64, request: BLOCKING });
        self.at(rank, end, What::Leave(2));
    }

    fn barrier(&mut self, rank: u32, [begin, end]: [u64; 2]) {
        let (operation, request) = (Operation::Barrier, BLOCKING);
        self.at(rank, begin, What::Enter(3));
        self.at(rank, begin, What::CollectiveBegin);
        self.at(
            rank,
            end,
            What::Collective { operation, comm: 0, root: UNKNOWN, sent: 0, received: 0, request },
        );
        self.at(rank, end, What::Leave(3));
    }

    /// Ends every rank at `ms`, and tracks the archive.
    fn track(mut self, folder: &Path, ranks: u32, ms: u64) -> Value {
        for rank in 0..ranks {
            self.at(rank, ms, What::Leave(0));
        }
        self.0.finish().unwrap();
        track(folder)
    }
}

fn track(archive: &Path) -> Value {
    let output = quell(Path::new(".")).arg("track").arg(archive).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A figure of each rank, in ns.
fn each(tracked: &Value, name: &str) -> Vec<i64> {
    tracked["ranks"].as_array().unwrap().iter().map(|rank| rank[name].as_i64().unwrap()).collect()
}

fn ms(values: &[i64]) -> Vec<i64> {
    values.iter().map(|value| value * MS as i64).collect()
}

#[test]
fn a_hundred_are_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = Made::new(folder.path(), 2);
    made.noise(0, 1000, 100);
    made.send(0, [1000, 1000], 1);
    made.receive(1, [200, 1000], 0);
    let tracked = made.track(folder.path(), 2, 1500);
    assert_eq!(each(&tracked, "accumulated_ns"), ms(&[100, 100]));
    assert_eq!(each(&tracked, "amplified_ns"), ms(&[0, 100]));
    assert_eq!(each(&tracked, "compensated_ns"), ms(&[1400, 1400]));
    assert_eq!(tracked["compensated_runtime_ns"], 1400 * MS);
    // The path of the anchor file selects the archive, too.
    assert_eq!(track(&folder.path().join("traces.otf2")), tracked);
}

#[test]
fn thirty_of_a_hundred_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = Made::new(folder.path(), 2);
    made.noise(0, 2000, 30);
    made.send(0, [2000, 2000], 1);
    made.noise(1, 1000, 100);
    made.receive(1, [1000, 2000], 0);
    let tracked = made.track(folder.path(), 2, 2500);
    assert_eq!(each(&tracked, "accumulated_ns"), ms(&[30, 30]));
    assert_eq!(each(&tracked, "absorbed_ns"), ms(&[0, 70]));
}

#[test]
fn thirty_three_of_a_hundred_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = Made::new(folder.path(), 2);
    made.noise(0, 1000, 30);
    made.send(0, [1000, 1000], 1);
    made.noise(1, 1001, 100);
    made.receive(1, [1001, 1003], 0);
    let tracked = made.track(folder.path(), 2, 1500);
    assert_eq!(each(&tracked, "accumulated_ns"), ms(&[30, 33]));
    assert_eq!(each(&tracked, "absorbed_ns"), ms(&[0, 67]));
}

#[test]
fn a_barrier_is_left_its_sync_time_after_the_last_would_have_come() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = Made::new(folder.path(), 3);
    made.noise(0, 1000, 100);
    made.barrier(0, [1000, 1003]);
    made.noise(1, 950, 20);
    made.barrier(1, [950, 1003]);
    made.barrier(2, [700, 1003]);
    let tracked = made.track(folder.path(), 3, 1100);
    assert_eq!(each(&tracked, "accumulated_ns"), ms(&[70, 70, 70]));
    assert_eq!(each(&tracked, "amplified_ns"), ms(&[0, 50, 70]));
    assert_eq!(each(&tracked, "absorbed_ns"), ms(&[30, 0, 0]));
}

/// The paper's program in strong scaling, with a tenth of the phases of its noise levels; the paper's own worst error is 1.06 %.
#[test]
fn simulated_runs_are_compensated_to_what_they_are_without_noise() {
    for (ranks, phases) in [(32, 200), (256, 60)] {
        for detour in ["10us", "50us", "100us"] {
            let folder = tempfile::tempdir().unwrap();
            let archive = folder.path().join("run");
            let quantum = format!("{}ns", 64_000_000 / ranks);
            let mut command = quell(folder.path());
            command.args(["generate-run", "--ranks", &ranks.to_string(), "--phases", &phases.to_string()]);
            command.args(["--quantum", &quantum, "--detour", detour, "-o"]).arg(&archive);
            let made: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
            let number = |name: &str| made[name].as_f64().unwrap();
            let (noisy, quiet) = (number("runtime_ns"), number("quiet_runtime_ns"));
            let compensated = track(&archive)["compensated_runtime_ns"].as_f64().unwrap();
            let runtime_error = 100.0 * (quiet - compensated) / quiet;
            let noise_error = 100.0 * (compensated - quiet) / (noisy - quiet);
            assert!(runtime_error.abs() <= 1.06, "{ranks} ranks, {detour}: {runtime_error} %");
            assert!(noise_error.abs() <= 5.0, "{ranks} ranks, {detour}: {noise_error} %");
        }
    }
}
