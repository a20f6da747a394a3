//! Noise of known habits, programs to suffer it, and what they reported.

use std::path::{Path, PathBuf};

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
