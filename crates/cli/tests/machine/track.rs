//! Real applications, traced and tracked: all messages are matched, nothing is lost, and other tools can open the archives.

use std::path::Path;
use std::process::Command;

use crate::support::applications::{HPCC, MELT};
use crate::support::quell;
use crate::support::replaying::launch;
use crate::support::tools::{compile, is_here, mpis};
use quell_testing::{machine, measure};
use serde_json::Value;

/// Traces a command into `run`; returns what quell printed. The kernel's intervals come as fast as ranks that wait yield, on a busy machine
/// faster than they can be read. No event of MPI may be lost.
fn traced(folder: &Path, run: &str, command: &[String]) -> String {
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/mpi-cache");
    let mut words = vec!["trace", "-o", run, "--"];
    words.extend(command.iter().map(String::as_str));
    let mut printed = String::new();
    measure(|attempt| {
        if attempt > 0 {
            fs_err::remove_dir_all(folder.join(run)).unwrap();
        }
        let traced =
            quell(folder).args(&words).env("OMP_NUM_THREADS", "1").env("QUELL_CACHE", cache).output();
        let traced = traced.unwrap();
        printed = String::from_utf8_lossy(&traced.stderr).into_owned();
        assert!(traced.status.success(), "{run}: {printed}");
        let lost: Vec<&str> = printed.lines().filter(|line| line.contains("lost")).collect();
        assert!(lost.iter().all(|line| line.contains("kernel intervals were lost")), "{run}: {printed}");
        if lost.is_empty() { Ok(()) } else { Err(format!("{run}: {}", lost.join(", "))) }
    });
    printed
}

/// Traces a command into `run`, and tracks the run.
fn tracked(folder: &Path, run: &str, command: &[String]) -> Value {
    let printed = traced(folder, run, command);
    if is_here("otf2-print") {
        let printed = Command::new("otf2-print").arg(folder.join(run).join("traces.otf2")).output().unwrap();
        let complained = String::from_utf8_lossy(&printed.stderr).into_owned();
        assert!(printed.status.success() && complained.is_empty(), "{run}: {complained}");
    }
    let traced =
        printed.lines().find_map(|line| line.split(" ranks, ").nth(1)?.split(' ').next()?.parse().ok());
    let output = quell(folder).args(["track", run, "--json"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{run}: {printed}");
    let tracked: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(tracked["events"].as_u64(), traced, "{run}: both count the same events");
    tracked
}

/// Checks that every rank is listed, and that its noise adds up.
fn adds_up(run: &str, tracked: &Value, ranks: usize) {
    let reported = tracked["ranks"].as_array().unwrap();
    assert_eq!(reported.len(), ranks, "{run}");
    for rank in reported {
        let number = |name: &str| rank[name].as_i64().unwrap();
        for part in std::iter::once(rank).chain(rank["by_source"].as_object().unwrap().values()) {
            let number = |name: &str| part[name].as_i64().unwrap();
            let sum = number("local_ns") + number("amplified_ns") - number("absorbed_ns");
            assert_eq!(sum - number("noise_without_time_ns"), number("accumulated_ns"), "{run}: {rank}");
        }
        assert!(number("compensated_ns") <= number("runtime_ns"), "{run}: {rank}");
    }
}

fn command(mpi: &str, ranks: usize, program: &[&str]) -> Vec<String> {
    launch(mpi, ranks).into_iter().chain(program.iter().map(|&word| word.to_owned())).collect()
}

/// Tests that judge what was lost, which run while no other test uses the machine.
mod measured {
    use super::*;

    /// What an MPI does between 8 bytes and a mebibyte differs; that it sends the first eagerly and lets the last wait does not.
    #[test]
    fn the_eager_limit_is_learned_from_real_sends() {
        let _machine = machine();
        for mpi in mpis() {
            let dir = tempfile::tempdir().unwrap();
            let program = dir.path().join("sends");
            compile(&format!("mpicc.{mpi}"), "sends.c", &program, &[]);
            for how in ["send", "sendrecv", "waitall"] {
                let command = command(mpi, 2, &[program.to_str().unwrap(), how]);
                let tracked = tracked(dir.path(), &format!("{mpi}-{how}"), &command);
                let limits = tracked["eager_limits"].as_array().unwrap();
                let [limit] = &limits[..] else { panic!("{mpi} {how}: {limits:?}") };
                assert_eq!(
                    (limit["between"].as_str(), limit["origin"].as_str()),
                    (Some("one host"), Some("learned")),
                    "{mpi} {how}: {limit}"
                );
                let number =
                    |name: &str| limit[name].as_u64().unwrap_or_else(|| panic!("{mpi} {how}: {limit}"));
                let [eager, waiting, limit] = ["eager_bytes", "waiting_bytes", "limit_bytes"].map(number);
                let in_order = 8 <= eager && eager <= limit && limit < waiting && waiting <= 1 << 20;
                assert!(in_order, "{mpi} {how}: {limits:?}");
            }
        }
    }

    #[test]
    fn a_melt_is_tracked() {
        let _machine = machine();
        if !is_here("lmp") || !is_here("mpirun.openmpi") {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("melt.in"), MELT).unwrap();
        let program = ["lmp", "-in", "melt.in", "-log", "none"];
        let tracked = tracked(dir.path(), "melt", &command("openmpi", 2, &program));
        adds_up("melt", &tracked, 2);
        let places = tracked["paths"].as_array().unwrap();
        let sites: Vec<&str> = places.iter().filter_map(|place| place["site"].as_str()).collect();
        assert!(sites.iter().any(|site| site.contains("LAMMPS_NS::")), "{sites:?}");
    }

    #[test]
    fn the_challenge_is_tracked() {
        let _machine = machine();
        if !is_here("hpcc") || !is_here("mpirun.openmpi") {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs_err::write(dir.path().join("hpccinf.txt"), HPCC).unwrap();
        let tracked = tracked(dir.path(), "hpcc", &command("openmpi", 2, &["hpcc"]));
        adds_up("hpcc", &tracked, 2);
        assert!(tracked["events"].as_u64() > Some(10_000), "{}", tracked["events"]);
    }

    #[test]
    fn all_ways_to_call_an_mpi_are_tracked() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mpi");
        for mpi in ["openmpi", "mpich"] {
            // Wildcards, sub-communicators, persistent requests and non-blocking collectives; then Fortran with its three interfaces.
            for source in ["everything.c", "with_mpif.f90", "with_mpi.f90", "with_mpi_f08.f90"] {
                let fortran = source.ends_with("f90");
                let compiler = format!("{}.{mpi}", if fortran { "mpifort" } else { "mpicc" });
                if !is_here(&compiler) || !is_here(&format!("mpirun.{mpi}")) {
                    continue;
                }
                let name = format!("{}-{mpi}", source.replace('.', "-"));
                let mut build = Command::new(&compiler);
                build
                    .args(["-O1", "-w", "-I"])
                    .arg(&sources)
                    .args(fortran.then_some("-fallow-argument-mismatch"));
                build.arg("-o").arg(dir.path().join(&name)).arg(sources.join(source)).arg("-lpthread");
                let built = build.output().unwrap();
                assert!(built.status.success(), "{name}: {}", String::from_utf8_lossy(&built.stderr));
                let run = format!("run-{name}");
                let tracked = tracked(dir.path(), &run, &command(mpi, 4, &[&format!("./{name}")]));
                adds_up(&run, &tracked, 4);
            }
        }
    }
}
