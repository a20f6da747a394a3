//! `quell track --extrapolate`: what it makes of a run has the messages that are traced when the program runs on that many ranks.

use std::path::Path;
use std::process::Command;

use crate::support::replaying::launch;
use crate::support::tools::{self, compile};
use crate::support::{quell, transcript};
use quell_testing::machine;

/// The arguments of a program on a grid.
fn words(shape: &str, dims: &[usize]) -> Vec<String> {
    [shape.to_owned()].into_iter().chain(dims.iter().map(usize::to_string)).collect()
}

/// Traces a shape on a grid, unless that was done. Returns the name of the archive.
fn trace(folder: &Path, mpi: &str, shape: &str, dims: &[usize]) -> String {
    let name = words(shape, dims).join("-");
    if !folder.join(&name).exists() {
        let mut command = quell(folder);
        command.env("QUELL_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/mpi-cache"));
        command.args(["trace", "-o", &name, "--sources", "off", "--"]);
        command.args(launch(mpi, dims.iter().product())).arg("./shapes").args(words(shape, dims));
        let traced = command.output().unwrap();
        assert!(traced.status.success(), "{name}: {traced:?}");
    }
    name
}

/// Makes a schedule of a run.
fn schedule(folder: &Path, run: &str, goal: &str, more: &[&str]) {
    let printed = transcript(folder, &[&["track", run, "--goal", goal], more].concat());
    assert!(printed.starts_with("exit 0"), "{goal}: {printed}");
}

#[test]
fn extrapolated_messages_are_those_of_the_traced_program() {
    let _machine = machine();
    let dir = tempfile::tempdir().unwrap();
    let Some(mpi) = tools::mpis().first().copied() else { return };
    compile(&format!("mpicc.{mpi}"), "shapes.c", &dir.path().join("shapes"), &[]);
    let compare = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/compare_schedules.py");
    let cases: [(&str, &[usize], &[usize]); 8] = [
        ("pipeline", &[2, 2], &[2, 4]),
        ("pipeline", &[2, 2], &[4, 4]),
        ("pipeline", &[2, 4], &[4, 4]),
        ("halo", &[2, 2, 2], &[4, 2, 2]),
        ("transposes", &[4], &[16]),
        ("transposes", &[8], &[16]),
        ("powers", &[8], &[16]),
        ("transposed", &[2, 2], &[4, 4]),
    ];
    for (number, (shape, from, to)) in cases.into_iter().enumerate() {
        let (small, large) = (trace(dir.path(), mpi, shape, from), trace(dir.path(), mpi, shape, to));
        let ranks = to.iter().product::<usize>().to_string();
        let dims = to.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let [extrapolated, traced] = ["a", "b"].map(|name| format!("{number}{name}.goal"));
        let strong = ["--extrapolate", &ranks, "--scaling", "strong", "--dims", &dims];
        schedule(dir.path(), &small, &extrapolated, &strong);
        schedule(dir.path(), &large, &traced, &[]);
        let mut command = Command::new("python3");
        let compared =
            command.current_dir(dir.path()).arg(&compare).args([&extrapolated, &traced]).output().unwrap();
        assert!(compared.status.success(), "{shape} from {from:?} to {to:?}: {compared:?}");
    }
}
