//! `quell trace` and `quell track` of MPI programs with OpenMP threads.

use std::path::Path;
use std::process::Command;

use crate::support::disturbers::Chain;
use crate::support::node::until;
use crate::support::replaying::launch;
use crate::support::tools::{self, compile};
use crate::support::{json, quell};
use quell_testing::{machine, measure, skip};
use serde_json::Value;

/// Traces a program of one rank with two threads while tasks disturb its worker; returns their CPU time.
fn disturbed(folder: &Path, mpi: &str, run: &str, program: &str, chain: &Chain) -> Result<Vec<u64>, String> {
    let logs = folder.join(run).join("logs");
    let (output, ran_ns) = std::thread::scope(|scope| {
        let ran_ns = scope.spawn(|| {
            // The worker has a log once it works.
            until("two logs", || logs.read_dir().is_ok_and(|logs| logs.count() >= 2));
            chain.run()
        });
        let mut command = quell(folder);
        command.env("QUELL_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/mpi-cache"));
        command.args(["trace", "-o", run, "--"]).args(launch(mpi, 1)).args([program, "400"]);
        let output = command.output().unwrap();
        (output, ran_ns.join().unwrap())
    });
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{run}: {printed}");
    // Of what was lost no figure is known.
    if printed.contains("lost") { Err(format!("{run}: {printed}")) } else { Ok(ran_ns) }
}

/// Whether each location's delay is what its figures add up to.
fn adds_up(tracked: &Value) -> bool {
    let lists = ["ranks", "threads"].map(|list| tracked[list].as_array().unwrap().clone());
    lists.concat().iter().all(|row| {
        let number = |name: &str| row[name].as_i64().unwrap();
        let sum = number("local_ns") + number("amplified_ns") - number("absorbed_ns");
        number("accumulated_ns") == sum - number("noise_without_time_ns")
    })
}

/// Compares what the kernel charged the tasks with the worker's noise, and that with what its rank lost.
fn lost_by_the_worker(
    folder: &Path,
    (mpi, program): (&str, &str),
    run: &str,
    chain: &Chain,
) -> Result<(), String> {
    let ran_ns = disturbed(folder, mpi, run, program, chain)?;
    let tracked = json(folder, &["track", run, "--json"]);
    assert!(tracked["findings"]["warnings"].as_array().unwrap().is_empty(), "{run}: {}", tracked["findings"]);
    assert!(adds_up(&tracked), "{run}: {} {}", tracked["ranks"], tracked["threads"]);
    let [worker] = &tracked["threads"].as_array().unwrap()[..] else {
        panic!("{run}: {}", tracked["threads"])
    };
    assert_eq!((worker["rank"].as_u64(), worker["thread"].as_u64()), (Some(0), Some(1)));
    let struck = |source: &str| worker["local_by_source_ns"][source].as_u64().unwrap_or(0);
    chain.hold_against(&ran_ns, struck).map_err(|wrong| format!("{run}: {wrong}"))?;
    for number in 0..ran_ns.len() {
        let source = format!("task:{}", chain.task(number));
        let of_rank = &tracked["ranks"][0]["by_source"][&source];
        let lost_ns = of_rank["accumulated_ns"].as_f64().unwrap_or(0.0);
        let ratio = lost_ns / struck(&source) as f64;
        // Noise that strikes the worker between regions costs nothing.
        if !(0.9..=1.02).contains(&ratio) {
            return Err(format!("{run}: the rank lost {ratio:.3} of what {source} took from its worker"));
        }
        assert_eq!(of_rank["local_ns"].as_u64(), Some(0), "{run}: it struck the worker alone");
    }
    Ok(())
}

fn check(folder: &Path, mpi: &str, program: &str) {
    let chain = Chain::on_last_cpu(vec![3_000_000], false);
    measure(|attempt| {
        let run = format!("{program}-{attempt}").replace("./", "run-");
        lost_by_the_worker(folder, (mpi, program), &run, &chain)
    });
}

mod measured {
    use super::*;

    #[test]
    fn the_noise_of_a_worker_is_listed_and_reaches_its_rank() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !tools::has_two_cpus() || !tools::may_watch_the_kernel(dir.path()) {
            return;
        }
        for mpi in tools::mpis() {
            let program = format!("./{mpi}");
            compile(&format!("mpicc.{mpi}"), "hybrid.c", &dir.path().join(mpi), &["-fopenmp"]);
            check(dir.path(), mpi, &program);
        }
    }

    /// LLVM's runtime reports its teams itself.
    #[test]
    fn a_runtime_with_ompt_is_traced_alike() {
        let _machine = machine();
        let dir = tempfile::tempdir().unwrap();
        if !tools::has_two_cpus() || !tools::may_watch_the_kernel(dir.path()) {
            return;
        }
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/hybrid.c");
        for mpi in tools::mpis() {
            let program = format!("{mpi}-llvm");
            let mut compile = Command::new(format!("mpicc.{mpi}"));
            compile.env("OMPI_CC", "clang").env("MPICH_CC", "clang").args(["-O2", "-fopenmp", "-o"]);
            let built = compile.arg(dir.path().join(&program)).arg(source).output().unwrap();
            if !built.status.success() {
                skip("there is no clang with an OpenMP runtime");
                return;
            }
            check(dir.path(), mpi, &format!("./{program}"));
        }
    }
}
