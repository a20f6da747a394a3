//! What a run of a sweep says at its end, or would do.

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
    /// Whose points they are.
    pub verb: String,
    /// The plan's own name.
    pub name: Option<String>,
    /// The dataset's folder.
    pub folder: String,
    /// The SHA-256 of the plan with the files that it names, as `_sweep.json` has it.
    pub hash: String,
    /// Points of the plan.
    pub points: u64,
    /// Points of a file.
    pub points_a_file: u64,
    /// Files of the whole dataset.
    pub files: u64,
    /// Those that are there, from whichever process and run.
    pub files_there: u64,
    /// This process's share: of the files each whose number leaves `index` when divided by `of`.
    pub share: Share,
    /// What became of its share; all zero in a dry run.
    #[serde(flatten)]
    pub counts: Counts,
    /// In a dry run, what is left to do.
    pub dry_run: Option<Estimate>,
}

/// What the rest of a sweep would cost, by the verb's own count of its work (detours and nodes at 300 ns, messages at 50 ns each) at
/// some points evenly spread over the plan. Nothing is timed: it is good to a factor of two or three.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Estimate {
    /// How many curves or points were looked at.
    pub samples: u64,
    /// CPU time for all that is left, in seconds.
    pub cpu_s: f64,
    /// For what is left of this process's share.
    pub cpu_of_share_s: f64,
}

impl Sweep {
    /// Before anything is done.
    pub fn of(verb: &str, context: &Context, folder: &Folder, share: &Share) -> Self {
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

    /// For people.
    pub fn text(&self) -> String {
        self.dry_run.map_or_else(|| self.done(), |estimate| self.planned(&estimate))
    }

    fn done(&self) -> String {
        if self.files_there < self.files {
            return format!(
                "{} of {} files are in {} ({}); the others are other processes', at work or to be started\n",
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

    /// That some points have no result.
    pub fn failures(&self) -> String {
        format!(
            "{} of {} rows hold an error in place of a result: duckdb -c \"select point, error from '{}/*.parquet' where error is not null\"",
            self.counts.failed_rows, self.counts.rows, self.folder
        )
    }
}

/// Two digits are more than is known.
fn seconds(time: f64) -> String {
    match time {
        t if t < 120.0 => format!("{t:.1} s"),
        t if t < 7_200.0 => format!("{:.0} min", t / 60.0),
        t => format!("{:.1} h", t / 3_600.0),
    }
}
