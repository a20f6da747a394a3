//! A study's folder, as input of `quell report`: the recording, the study's job, and trials that were put next to them.

use std::path::{Path, PathBuf};

use quell_analysis::predict::SyncName;
use quell_recording::warning::typed_or_sentences;
use quell_recording::{Nanos, Warning, whole_file};
use quell_request::job::JobArgs;
use serde::Deserialize;
use serde_json::Value;

use crate::printer::Printer;
use crate::steps::record;
use quell_request::tune::trial::SCHEMA as TRIAL;

/// Schemas of earlier trials: before warnings had codes, and before verdicts had limits.
const OLDER_TRIALS: [&str; 2] = ["quell.tune-try/1", "quell.tune-try/2"];
/// Maximum size of a trial's document, in bytes; a trial has some kilobytes.
const MOST_BYTES: u64 = 1 << 20;

/// A folder that `quell study` made.
#[derive(Clone, Copy, Debug)]
pub struct Study<'a>(&'a Path);

/// The job of a study, from its prediction.
#[derive(Deserialize)]
struct Predicted {
    quantum_ns: u64,
    #[serde(default)]
    skew_ns: u64,
    #[serde(default)]
    drift_ppm: f64,
    phases: u64,
    seed: u64,
    points: Vec<Point>,
}

#[derive(Deserialize)]
struct Point {
    ranks: u64,
}

impl<'a> Study<'a> {
    /// `None` for a path that is a recording itself, and for one that contains none.
    pub fn at(path: &'a Path) -> Option<Self> {
        let is_recording = |path: &Path| path.join("manifest.json").is_file();
        (!is_recording(path) && is_recording(&record::inside(path))).then_some(Self(path))
    }

    /// The path of its recording.
    pub fn recording(self) -> PathBuf {
        record::inside(self.0)
    }

    /// The path of its page.
    pub fn page(self) -> PathBuf {
        self.0.join("report.html")
    }

    /// The given job or, without any option, the study's own job.
    pub fn job(self, typed: &JobArgs) -> JobArgs {
        // A study with `--sync phase` has one prediction; any other has the prediction of its own mode first.
        let own = || SyncName::ALL.into_iter().find_map(|sync| self.predicted(sync));
        if *typed == JobArgs::default() { own().unwrap_or_else(|| typed.clone()) } else { typed.clone() }
    }

    /// The job of its prediction for a mode.
    fn predicted(self, sync: SyncName) -> Option<JobArgs> {
        let document = json(&self.0.join(format!("predict-{}.json", sync.as_str()))).ok()?;
        let job: Predicted = serde_json::from_value(document).ok()?;
        let ranks: Vec<String> = job.points.iter().map(|point| point.ranks.to_string()).collect();
        Some(JobArgs {
            ranks: Some(ranks.join(",").parse().ok()?),
            quantum: Nanos::from_nanos(job.quantum_ns),
            sync,
            skew: Nanos::from_nanos(job.skew_ns),
            drift: job.drift_ppm,
            phases: Some(job.phases),
            seed: job.seed,
        })
    }

    /// The documents of `quell tune try --json` in all files `try*.json`; other files are left out with a warning.
    pub fn trials(self, printer: Printer) -> anyhow::Result<Vec<Value>> {
        let mut paths: Vec<PathBuf> = fs_err::read_dir(self.0)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        paths.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("try") && name.ends_with(".json")
        });
        paths.sort();
        let read = |path: &PathBuf| match trial(path) {
            Ok(document) => Some(document),
            Err(why) => {
                printer.warn(&format!("{} is not on the page: {why:#}", path.display()));
                None
            }
        };
        Ok(paths.iter().filter_map(read).collect())
    }
}

fn trial(path: &Path) -> anyhow::Result<Value> {
    let mut document = json(path)?;
    match document.get("schema").and_then(Value::as_str) {
        Some(schema) if schema == TRIAL || OLDER_TRIALS.contains(&schema) => {}
        _ => anyhow::bail!("it is not a {TRIAL} document, which `quell tune try --json` prints"),
    }
    let mitigations = document.get_mut("mitigations").and_then(Value::as_array_mut);
    for mitigation in mitigations.into_iter().flatten() {
        let Some(mitigation) = mitigation.as_object_mut() else { continue };
        let warnings = mitigation.get("warnings").cloned().unwrap_or_else(|| Value::Array(Vec::new()));
        let warnings: Vec<Warning> = typed_or_sentences(warnings)?;
        let sentences = warnings.iter().map(|warning| Value::String(warning.to_string())).collect();
        mitigation.insert("sentences".into(), sentences);
    }
    Ok(document)
}

/// Reads a small JSON file. It refuses a pipe, which might never end, and a file that is too large for the page.
fn json(path: &Path) -> anyhow::Result<Value> {
    anyhow::ensure!(fs_err::metadata(path)?.is_file(), "it is not a file");
    Ok(serde_json::from_slice(&whole_file::read(path, MOST_BYTES)?)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use quell_request::RankList;

    use super::*;

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs_err::create_dir(record::inside(dir.path())).unwrap();
        fs_err::write(record::inside(dir.path()).join("manifest.json"), "{}").unwrap();
        dir
    }

    #[test]
    fn only_what_holds_a_recording_is_a_study() {
        let dir = folder();
        assert!(Study::at(dir.path()).is_some());
        assert!(Study::at(&record::inside(dir.path())).is_none(), "a recording is none");
        assert!(Study::at(&dir.path().join("nothing")).is_none());
    }

    #[test]
    fn only_trials_come_onto_the_page() {
        let dir = folder();
        let write = |name: &str, text: &str| fs_err::write(dir.path().join(name), text).unwrap();
        write("try-b.json", r#"{"schema":"quell.tune-try/3","seed":2}"#);
        write("try-a.json", r#"{"schema":"quell.tune-try/1","seed":1}"#);
        write("try-other.json", r#"{"schema":"quell.show/1"}"#);
        write("try-cut.json", r#"{"schema":"quell.tune-try/1","#);
        write("try-long.json", &" ".repeat(MOST_BYTES as usize + 1));
        write("show.json", r#"{"schema":"quell.tune-try/1","seed":3}"#);
        fs_err::create_dir(dir.path().join("try-folder.json")).unwrap();
        let trials = Study::at(dir.path()).unwrap().trials(Printer::new(true)).unwrap();
        let seeds: Vec<_> = trials.iter().map(|one| one["seed"].as_u64().unwrap()).collect();
        assert_eq!(seeds, [1, 2], "in the order of their names, and no others");
    }

    #[test]
    fn warnings_of_trials_come_with_their_sentences() {
        let dir = folder();
        let write = |name: &str, schema: u32, warning: &str| {
            let mitigations = format!(r#"[{{"id":"thp","warnings":[{warning}]}}]"#);
            let text = format!(r#"{{"schema":"quell.tune-try/{schema}","mitigations":{mitigations}}}"#);
            fs_err::write(dir.path().join(name), text).unwrap();
        };
        write("try-a.json", 1, r#""printed then""#);
        write("try-b.json", 2, r#"{"code":"rows-lost","rows":7}"#);
        write("try-c.json", 3, r#"{"code":"no-such-code"}"#);
        let trials = Study::at(dir.path()).unwrap().trials(Printer::new(true)).unwrap();
        let sentences: Vec<_> = trials.iter().map(|one| &one["mitigations"][0]["sentences"][0]).collect();
        assert_eq!(
            sentences,
            ["printed then", "7 rows were lost: they came faster than they could be written"]
        );
    }

    #[test]
    fn a_study_is_drawn_again_with_its_options() {
        let dir = folder();
        let study = Study::at(dir.path()).unwrap();
        let usual = JobArgs::default();
        assert_eq!(study.job(&usual), usual, "without a prediction nothing is known");
        let predicted = r#"{"quantum_ns":500000,"phases":7,"seed":9,"points":[{"ranks":16},{"ranks":64}]}"#;
        fs_err::write(dir.path().join("predict-none.json"), predicted).unwrap();
        let own = study.job(&usual);
        assert_eq!(
            (own.quantum.as_nanos(), own.phases, own.seed, own.ranks),
            (500_000, Some(7), 9, Some(RankList(vec![16, 64])))
        );
        let typed = JobArgs { phases: Some(100), ..usual };
        assert_eq!(study.job(&typed), typed, "what is typed counts");
        fs_err::write(dir.path().join("predict-none.json"), r#"{"points":[{"ranks":0}]}"#).unwrap();
        assert_eq!(study.job(&JobArgs::default()), JobArgs::default());
    }
}
