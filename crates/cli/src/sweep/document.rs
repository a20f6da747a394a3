//! The document that a run of a sweep, or its dry run, prints at the end.

use schemars::JsonSchema;
use serde::Serialize;

use super::Context;
use super::folder::Folder;
pub use super::identity::Identity;
use super::work::Counts;
use crate::share::Share;

/// The schema's name and version.
const SCHEMA: &str = "quell.sweep/1";

/// One run of a sweep.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Sweep {
    /// Always `quell.sweep/1`.
    pub schema: String,
    /// The verb that computes the points.
    pub verb: String,
    /// The name that the plan gives itself.
    pub name: Option<String>,
    /// The folder of the dataset.
    pub folder: String,
    /// The SHA-256 of the plan and the files that it names, as in `_sweep.json`.
    pub hash: String,
    /// Number of points of the plan.
    pub points: u64,
    /// Number of points per file.
    pub points_a_file: u64,
    /// Number of files of the whole dataset.
    pub files: u64,
    /// Number of files that exist, from any process and run.
    pub files_there: u64,
    /// This process's share: the files whose number modulo `of` equals `index`.
    pub share: Share,
    /// The results of this process's share; all zero in a dry run.
    #[serde(flatten)]
    pub counts: Counts,
    /// In a dry run, the estimated cost of what remains.
    pub dry_run: Option<Estimate>,
}

/// The estimated cost of the rest of a sweep. It is the verb's own count of its work (detours and nodes at 300 ns; messages at 50 ns each, which `simulate` plays sooner in rounds)
/// at some points that are evenly spread over the plan. Nothing is timed: the estimate is good to a factor of two or three.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Estimate {
    /// Number of curves or points that were sampled.
    pub samples: u64,
    /// CPU time for everything that remains, in seconds.
    pub cpu_s: f64,
    /// CPU time for what remains of this process's share, in seconds.
    pub cpu_of_share_s: f64,
}

impl Sweep {
    /// The document before any work.
    pub fn new(verb: &str, context: &Context, folder: &Folder, share: &Share) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            verb: verb.to_owned(),
            name: context.plan.name.clone(),
            folder: folder.path.display().to_string(),
            hash: folder.identity.hash.clone(),
            points: context.plan.points(),
            points_a_file: context.plan.points_a_chunk(),
            files: context.plan.chunks(),
            files_there: 0,
            share: share.clone(),
            counts: Counts::default(),
            dry_run: None,
        }
    }

    /// The document as text for a terminal.
    pub fn text(&self) -> String {
        self.dry_run.map_or_else(|| self.done(), |estimate| self.planned(&estimate))
    }

    fn done(&self) -> String {
        if self.files_there < self.files {
            return format!(
                "{} of {} files are in {} ({}); the others belong to other processes, running or not yet started\n",
                self.files_there,
                self.files,
                self.folder,
                self.whose()
            );
        }
        let rows = if self.share.of == 1 { format!("{} rows", self.counts.rows) } else { "all rows".into() };
        format!(
            "{rows} of {} points in {}   read it: duckdb -c \"select * from '{}/*.parquet' order by point\"\n",
            self.points, self.folder, self.folder
        )
    }

    fn planned(&self, estimate: &Estimate) -> String {
        let own = |files: u64| (files + self.share.of - 1 - self.share.index) / self.share.of;
        let name = self.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        format!(
            "{name}{} points of `{}` in {} files of {} points, into {}\ndone       {} files, {} left\n\
             share      {} files of this process ({})\ncost       about {} of CPU time for what is left, {} of it in this share; by count at {} \
             places, not timed\n",
            self.points,
            self.verb,
            self.files,
            self.points_a_file,
            self.folder,
            self.files_there,
            self.files - self.files_there,
            own(self.files),
            self.whose(),
            seconds(estimate.cpu_s),
            seconds(estimate.cpu_of_share_s),
            estimate.samples
        )
    }

    fn whose(&self) -> String {
        format!("{} of {}: {}", self.share.index + 1, self.share.of, self.share.from)
    }

    /// A warning that some points have no result.
    pub fn failures(&self) -> String {
        format!(
            "{} of {} rows hold an error in place of a result: duckdb -c \"select point, error from '{}/*.parquet' where error is not null\"",
            self.counts.failed_rows, self.counts.rows, self.folder
        )
    }
}

/// Formats a time with few digits, since an estimate is not more accurate.
fn seconds(time: f64) -> String {
    match time {
        t if t < 120.0 => format!("{t:.1} s"),
        t if t < 7_200.0 => format!("{:.0} min", t / 60.0),
        t => format!("{:.1} h", t / 3_600.0),
    }
}
