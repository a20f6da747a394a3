//! `show`: an overview of a recording, or of the recordings of several hosts.

pub mod args;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use quell_analysis::attribution::{Attribution, attribution};
use quell_analysis::fleet::hosts::{Hosts, OneHost, hosts, one_host, one_of_many};
use quell_analysis::fleet::{FEWEST_NODES, FleetJob, NodeSummary, Unread, fleet};
use quell_analysis::overview::{Overview, overview};
use quell_analysis::show::Show;
use quell_analysis::{Progress, Stopped};
use quell_recording::{Manifest, Recording};
use rayon::prelude::*;

pub use args::{By, ShowArgs};

use crate::{Usage, noise};

/// Above this number of recordings, sources are summed up over the whole recordings: joining each with its detours would take minutes.
const MANY: usize = 64;

/// What `show` prints.
#[derive(Debug)]
pub enum Shown {
    /// One recording, with its overview and its attribution.
    One(Box<(Recording, Overview, Attribution)>),
    /// Several recordings.
    Many(Box<Hosts>),
}

/// Opens and summarizes the requested recordings. `warn` receives a message for each of several recordings that cannot be read.
///
/// # Errors
/// If there is no recording, or several runs; [`Usage`] for `--by task` or `--by class` over several hosts.
pub fn shown(args: &ShowArgs, warn: &mut dyn FnMut(&str), progress: Progress<'_>) -> anyhow::Result<Shown> {
    if let Some(several) = Several::among(&args.recordings)? {
        if matches!(args.by, By::Task | By::Class) {
            let text = "over many hosts there is `--by cpu`, a row per host, and `--by source`; for tasks and classes name one recording";
            return Err(Usage(text.into()).into());
        }
        return Ok(Shown::Many(Box::new(several.summarized(None, warn, progress)?)));
    }
    let Some(path) = args.recordings.first() else { anyhow::bail!("no recording is named") };
    if let Some(run) = one_of_several_runs(path) {
        anyhow::bail!(
            "{} holds several runs of a benchmark: `quell bench show` shows them together, `quell show {}` the hosts of one",
            path.display(),
            run.display()
        );
    }
    let recording = noise::recording(path)?;
    let (overview, attribution) = (overview(&recording), attribution(&recording));
    Ok(Shown::One(Box::new((recording, overview, attribution))))
}

/// Recordings that are summarized together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Several {
    /// Where they are.
    folder: String,
    paths: Vec<PathBuf>,
}

impl Several {
    /// The given recordings, and those in the given folders; `None` for a single recording.
    ///
    /// # Errors
    /// If a folder cannot be read, or one of several paths is no recording.
    pub fn among(given: &[PathBuf]) -> anyhow::Result<Option<Self>> {
        let mut paths = Vec::new();
        for path in given {
            let within = recordings_in(path)?;
            if within.is_empty() && given.len() > 1 {
                if !path.is_file() && !path.join("manifest.json").is_file() {
                    // What is named must be there; what lies in a folder may be left out.
                    noise::recording(path)?;
                }
                paths.push(path.clone());
            }
            paths.extend(within);
        }
        let folder = match given {
            [one] => one.display().to_string(),
            _ => common_folder(&paths),
        };
        Ok((!paths.is_empty()).then_some(Self { folder, paths }))
    }

    /// The summary of all. With a job it includes what they cost together, if there are enough for a typical host.
    ///
    /// # Errors
    /// If none can be read, or `progress` ends it.
    pub fn summarized(
        &self,
        job: Option<FleetJob>,
        warn: &mut dyn FnMut(&str),
        progress: Progress<'_>,
    ) -> anyhow::Result<Hosts> {
        let host = if self.paths.len() > MANY { one_of_many } else { one_host };
        let (quantum, seed) = job.as_ref().map_or((None, 0), |job| (Some(job.quantum), job.seed));
        let sum_up =
            |recording: &Recording| (host(recording), NodeSummary::from_recording(recording, quantum, seed));
        let (read, unread) = read_all(&self.paths, warn, progress, sum_up)?;
        let (known, nodes): (Vec<OneHost>, Vec<NodeSummary>) = read.into_iter().unzip();
        anyhow::ensure!(
            !known.is_empty(),
            "none of the {} recordings in {} can be read",
            self.paths.len(),
            self.folder
        );
        let mut document = hosts(self.folder.clone(), known, unread);
        document.fleet =
            (nodes.len() >= FEWEST_NODES).then(|| fleet(self.folder.clone(), nodes, Vec::new(), job));
        Ok(document)
    }
}

/// The folder that holds all of the paths.
fn common_folder(paths: &[PathBuf]) -> String {
    let parent = |path: &PathBuf| path.parent().map(Path::to_owned).unwrap_or_default();
    let mut folder = paths.first().map(parent).unwrap_or_default();
    while !paths.iter().all(|path| path.starts_with(&folder)) && folder.pop() {}
    if folder.as_os_str().is_empty() { ".".into() } else { folder.display().to_string() }
}

/// The recordings in a folder; empty if it is a recording itself or holds none.
///
/// # Errors
/// If the folder cannot be read.
pub fn recordings_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !folder.is_dir() || folder.join("manifest.json").exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "quell") && path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Whether several recordings are of the same CPUs of one host, under one kernel, as far as their manifests say. Very many count as those of many
/// nodes, of which only one at a time is in memory.
pub fn are_of_one_node(recordings: &[PathBuf]) -> bool {
    let node = |path: &PathBuf| {
        let manifest = Manifest::read(path).ok()?;
        let cpus: Vec<_> = manifest.cpus.iter().map(|facts| facts.cpu).collect();
        Some((manifest.host?, manifest.kernel, manifest.processor, cpus))
    };
    let [first, others @ ..] = recordings else { return false };
    if recordings.len() > MANY {
        return false;
    }
    let first = node(first);
    first.is_some() && !others.is_empty() && others.iter().all(|other| node(other) == first)
}

/// The first run in the folder of a benchmark with several runs.
fn one_of_several_runs(folder: &Path) -> Option<PathBuf> {
    let inside = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    inside.filter(|path| path.join("run.json").is_file()).min()
}

/// Applies `sum_up` to each recording, and returns the results in the order of the paths, and the recordings that could not be read. A
/// thread drops the rows of one recording before it reads the next.
///
/// # Errors
/// [`Stopped`] by `progress`, which receives the number of recordings read.
pub fn read_all<T: Send>(
    paths: &[PathBuf],
    warn: &mut dyn FnMut(&str),
    progress: Progress<'_>,
    sum_up: impl Fn(&Recording) -> T + Sync,
) -> Result<(Vec<T>, Vec<Unread>), Stopped> {
    let done = AtomicU64::new(0);
    let one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let read = noise::recording(path).map(|recording| sum_up(&recording));
        match progress(done.fetch_add(1, Ordering::Relaxed) + 1, paths.len() as u64) {
            ControlFlow::Continue(()) => Ok(read.map_err(|error| Unread { name, reason: error.to_string() })),
            ControlFlow::Break(()) => Err(Stopped),
        }
    };
    let read: Vec<Result<T, Unread>> = paths.par_iter().map(one).collect::<Result<_, _>>()?;
    let (mut known, mut unread) = (Vec::new(), Vec::new());
    for one in read {
        match one {
            Ok(one) => known.push(one),
            Err(one) => {
                warn(&format!("{} is left out: {}", one.name, one.reason));
                unread.push(one);
            }
        }
    }
    Ok((known, unread))
}

/// The JSON document that `--json` prints.
///
/// # Errors
/// None are known.
pub fn json(shown: Shown, by: By) -> serde_json::Result<String> {
    match shown {
        Shown::One(one) => {
            let (_, overview, mut attribution) = *one;
            attribution.tasks = attribution.tasks.filter(|_| by == By::Task);
            attribution.classes = attribution.classes.filter(|_| by == By::Class);
            serde_json::to_string_pretty(&Show { overview: &overview, attribution: &attribution })
        }
        Shown::Many(mut hosts) => {
            hosts.sources = hosts.sources.filter(|_| by == By::Source);
            serde_json::to_string_pretty(&*hosts)
        }
    }
}
