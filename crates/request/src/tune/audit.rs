//! The result of `quell tune audit`: which mitigations of the catalogue are applied here, ordered by the noise that they address.

use quell_analysis::mitigation_coverage::{Addressed, Sources};
use quell_recording::{Recording, format_cpu_list};
use quell_tune::audit::{Audit, Audited, ByHand, PlaceState, State};
use quell_tune::catalogue::{Category, Risk};
use schemars::JsonSchema;
use serde::Serialize;

/// The JSON document of `quell tune audit --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Document {
    /// `quell.tune-audit/1`.
    pub schema: &'static str,
    /// Name of the host.
    pub host: String,
    /// Its kernel release.
    pub kernel: String,
    /// CPUs that compute, as a list; null if the CPUs are not divided.
    pub compute: Option<String>,
    /// CPUs that are left to the system, as a list; null if the CPUs are not divided.
    pub housekeeping: Option<String>,
    /// Why the CPUs are not divided into compute and housekeeping CPUs.
    pub no_parts: Option<String>,
    /// The recordings whose noise orders the entries.
    pub recordings: Vec<String>,
    /// Whether the audit ran without root privileges.
    pub unprivileged: bool,
    /// Places that could not be read, and why.
    pub unseen: Vec<Unseen>,
    /// Each mitigation, ordered by the noise that it addresses, then by id.
    pub mitigations: Vec<Entry>,
}

/// A place that could not be read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unseen {
    /// Id of the mitigation.
    pub mitigation: String,
    /// The place.
    pub place: String,
    /// Why it could not be read.
    pub why: String,
}

/// The audit of one mitigation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// One-line title.
    pub title: String,
    /// What it changes: a part of the machine, or of how programs run on it.
    pub category: Category,
    /// Its risk.
    pub risk: Risk,
    /// Its state on this machine.
    pub state: State,
    /// The reason for the state, if the state alone does not give it.
    pub why: Option<String>,
    /// The noise of the sources that it addresses, as recorded here; null without a recording that names sources.
    pub noise: Option<Addressed>,
    /// Patterns of the noise that it removes.
    pub patterns: Vec<String>,
    /// What it does.
    pub what: String,
    /// What it costs.
    pub caveat: String,
    /// For a mitigation that no longer exists: what happened to it.
    pub gone: Option<String>,
    /// What replaces it today.
    pub successor: Option<String>,
    /// The row of IBM's page that it comes from.
    pub ibm: Option<String>,
    /// Where its facts come from.
    pub provenance: Vec<String>,
    /// The places that it changes.
    pub places: Vec<PlaceState>,
    /// Steps to do by hand.
    pub by_hand: Vec<ByHand>,
}

/// The JSON document of an audit.
///
/// `unprivileged`: whether the audit ran without root privileges.
pub fn document(
    audit: &Audit<'_>,
    sources: &Sources,
    recordings: &[Recording],
    unprivileged: bool,
) -> Document {
    let mut mitigations: Vec<Entry> = audit.entries.iter().map(|one| entry(one, sources)).collect();
    // The sort is stable: entries with equal noise stay in the order of ids.
    mitigations.sort_by_key(|one| std::cmp::Reverse(one.noise.map_or(0, |noise| noise.total_ns)));
    let parts = audit.parts.as_ref().ok();
    Document {
        schema: "quell.tune-audit/1",
        host: audit.facts.host.clone(),
        kernel: audit.facts.kernel.clone(),
        compute: parts.map(|parts| format_cpu_list(&parts.compute)),
        housekeeping: parts.map(|parts| format_cpu_list(&parts.housekeeping)),
        no_parts: audit.parts.as_ref().err().cloned(),
        recordings: recordings.iter().map(Recording::name).collect(),
        unprivileged,
        unseen: audit.entries.iter().flat_map(unseen).collect(),
        mitigations,
    }
}

fn unseen<'a>(one: &'a Audited<'_>) -> impl Iterator<Item = Unseen> + 'a {
    let here = one.state != State::NotHere;
    let hidden = one
        .places
        .iter()
        .filter(move |place_state| here && place_state.now.is_none() && place_state.why.is_some());
    hidden.map(|place_state| Unseen {
        mitigation: one.mitigation.id.clone(),
        place: place_state.place.to_string(),
        why: place_state.why.clone().unwrap_or_default(),
    })
}

fn entry(one: &Audited<'_>, sources: &Sources) -> Entry {
    let mitigation = one.mitigation;
    Entry {
        id: mitigation.id.clone(),
        title: mitigation.title.clone(),
        category: mitigation.category,
        risk: mitigation.risk,
        state: one.state,
        why: one.why.clone(),
        noise: (!sources.is_empty()).then(|| sources.addressed(&mitigation.noise)),
        patterns: mitigation
            .noise
            .iter()
            .map(ToString::to_string)
            .chain(mitigation.noise_in_words.iter().cloned())
            .collect(),
        what: mitigation.what.trim().to_owned(),
        caveat: mitigation.caveat.trim().to_owned(),
        gone: mitigation.gone.clone(),
        successor: mitigation.successor.clone(),
        ibm: mitigation.ibm.clone(),
        provenance: mitigation.provenance.clone(),
        places: one.places.clone(),
        by_hand: one.by_hand.clone(),
    }
}
