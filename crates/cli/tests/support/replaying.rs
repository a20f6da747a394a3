//! Noise of known habits, programs to suffer it, and what they reported.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

use quell_node::injector::reports::{self, ProcessReport};

/// A model of one CPU: a detour of this length at each beat, for a second.
pub fn beat(folder: &Path, name: &str, period: &str, length: &str) -> PathBuf {
    let path = folder.join(format!("{name}.toml"));
    let text = format!(
        "name = \"{name}\"\nspan = \"1s\"\n[[component]]\nname = \"beat\"\n\
         periodic = {{ period = \"{period}\" }}\nduration = {{ constant = \"{length}\" }}\n"
    );
    fs_err::write(&path, text).unwrap();
    path
}

/// Compiles a source of this folder's; `None`, aloud, where its compiler is not there.
pub fn compile(compiler: &str, source: &str, program: &Path, more: &[&str]) -> Option<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support").join(source);
    compile_text(compiler, &source, program, more)
}

/// The same of any source.
#[expect(clippy::print_stdout, reason = "a test tells what it skips")]
pub fn compile_text(compiler: &str, source: &Path, program: &Path, more: &[&str]) -> Option<()> {
    let mut command = Command::new(compiler);
    command.args(["-O2", "-o"]).arg(program).arg(source).args(more);
    let Ok(output) = command.output() else {
        println!("skipped: there is no {compiler}");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// How an MPI starts `ranks` ranks.
pub fn launch(mpi: &str, ranks: usize) -> Vec<String> {
    let ranks = ranks.to_string();
    let words: &[&str] = match mpi {
        "openmpi" => {
            &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", &ranks]
        }
        _ => &["mpiexec.mpich", "-n", &ranks],
    };
    words.iter().map(|&word| word.to_owned()).collect()
}

/// What the processes of the last run with noise said, from the folder that was kept.
pub fn last_reports(kept: &Path) -> Vec<ProcessReport> {
    reports::read(&last_run(kept).join("reports")).unwrap()
}

/// The folder of the last run with noise.
pub fn last_run(kept: &Path) -> PathBuf {
    let runs = std::fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path());
    runs.filter(|path| path.to_string_lossy().ends_with("-noise")).max().unwrap()
}

/// A schedule's words.
pub fn words(path: &Path) -> Vec<u64> {
    fs_err::read(path).unwrap().as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect()
}
