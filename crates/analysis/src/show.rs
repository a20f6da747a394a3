//! The document of `show --json`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::attribution::Attribution;
use crate::overview::Overview;

/// The output of `show --json`: an overview of the recording, and its sources.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Show")]
pub struct Show<'a> {
    /// Overview of the recording.
    #[serde(flatten)]
    pub overview: &'a Overview,
    /// The sources of its noise.
    #[serde(flatten)]
    pub attribution: &'a Attribution,
}
