//! Noise of known period, programs to run under it, and their reports.

use std::path::{Path, PathBuf};

use quell_node::injector::reports::{self, ProcessReport};

/// Writes the model of one CPU: one detour of this length per period, for a second.
pub fn beat(folder: &Path, name: &str, period: &str, length: &str) -> PathBuf {
    let path = folder.join(format!("{name}.toml"));
    let text = format!(
        "name = \"{name}\"\nspan = \"1s\"\n[[component]]\nname = \"beat\"\n\
         periodic = {{ period = \"{period}\" }}\nduration = {{ constant = \"{length}\" }}\n"
    );
    fs_err::write(&path, text).unwrap();
    path
}

/// The command line by which an MPI starts `ranks` ranks.
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

/// The reports of the processes in the last run with noise, from the kept folder.
pub fn last_reports(kept: &Path) -> Vec<ProcessReport> {
    reports::read(&last_run(kept).join("reports")).unwrap()
}

/// The folder of the last run with noise.
pub fn last_run(kept: &Path) -> PathBuf {
    let runs = std::fs::read_dir(kept).unwrap().map(|entry| entry.unwrap().path());
    runs.filter(|path| path.to_string_lossy().ends_with("-noise")).max().unwrap()
}

/// The words of a schedule.
pub fn words(path: &Path) -> Vec<u64> {
    fs_err::read(path).unwrap().as_chunks::<8>().0.iter().map(|&word| u64::from_le_bytes(word)).collect()
}
