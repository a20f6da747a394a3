//! The folder of a traced run.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use quell_node::injector::preload;
use quell_node::machine;

use crate::plan::place;
use quell_request::Usage;

/// The paths of all files of a run.
#[derive(Debug)]
pub struct Folder {
    /// The folder, as an absolute path.
    pub path: PathBuf,
    /// The folder of the ranks' logs.
    pub logs: PathBuf,
    /// Whether the folder was created for this run.
    made: bool,
}

impl Folder {
    /// A new or empty folder, from which a job can load a library.
    pub fn new(path: &Path) -> anyhow::Result<Self> {
        if path.is_file() || path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            let path = path.display();
            return Err(Usage(format!("{path} exists already: name another folder with -o")).into());
        }
        let made = !path.exists();
        quell_recording::create_folder(path)?;
        let path = std::path::absolute(path)?;
        let folder = Self { logs: path.join("logs"), path, made };
        if let Some(why) = preload::obstacle(&folder.path) {
            let path = folder.path.display().to_string();
            folder.give_up();
            anyhow::bail!("{path}: {why}: name another folder with -o");
        }
        // Of two traces that begin at once, one gets the folder.
        match fs_err::create_dir(&folder.logs) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let path = folder.path.display();
                Err(Usage(format!("another `quell trace` writes to {path}: name another folder with -o"))
                    .into())
            }
            made => made.map(|()| folder).map_err(Into::into),
        }
    }

    /// The folder of a run that has logs and no archive.
    pub fn left_behind(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        let folder = Self { logs: path.join("logs"), path, made: false };
        let shown = folder.path.display();
        if !folder.logs.is_dir() {
            return Err(Usage(format!("{shown} has no logs: it is no run that `quell trace` began")).into());
        }
        if folder.path.join("traces.otf2").exists() {
            return Err(Usage(format!("{shown} has its archive already: see `quell track {shown}`")).into());
        }
        Ok(folder)
    }

    /// Path of the library that ranks load.
    pub fn library(&self) -> PathBuf {
        self.path.join("quell-trace.so")
    }

    /// Path of the recording of this host's kernel.
    pub fn recording(&self) -> PathBuf {
        recording_in(&self.path)
    }

    /// Paths of the recordings of all hosts.
    pub fn recordings(&self) -> std::io::Result<Vec<PathBuf>> {
        let entries: Vec<_> = fs_err::read_dir(&self.path)?.collect::<Result<_, _>>()?;
        let paths = entries.into_iter().map(|entry| entry.path());
        Ok(paths.filter(|path| path.join("manifest.json").is_file()).collect())
    }

    /// Deletes the files that only the run itself needed.
    pub fn clear(&self, keep_logs: bool) {
        let _ = fs_err::remove_file(self.library());
        if !keep_logs {
            let _ = fs_err::remove_dir_all(&self.logs);
        }
    }

    /// Deletes the files of a run that did not start, since the next attempt requires an empty folder.
    pub fn give_up(&self) {
        self.clear(false);
        if self.made {
            let _ = fs_err::remove_dir(&self.path);
        }
    }
}

/// An unused name for this host's recording: a later job of the same run may need another recorder.
pub fn recording_in(run: &Path) -> PathBuf {
    let host = this_host();
    let numbered = (2..).map(|number| run.join(format!("{host}-{number}.quell")));
    let mut names = std::iter::once(run.join(format!("{host}.quell"))).chain(numbered);
    names.find(|name| !name.exists()).unwrap_or_default()
}

/// This host's name with only characters that are safe in a file name.
pub fn this_host() -> String {
    place::file_name(&machine::host().unwrap_or_else(|| "node".into()))
}
