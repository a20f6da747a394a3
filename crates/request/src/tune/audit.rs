//! What `quell tune audit` finds: what of the catalogue is on here, by the noise that it addresses.

use quell_analysis::addressed::{Addressed, Sources};
use quell_recording::{Recording, format_cpu_list};
use quell_tune::audit::{Audit, Audited, ByHand, Sight, State};
use quell_tune::catalogue::{Category, Risk};
use schemars::JsonSchema;
use serde::Serialize;

/// What `tune audit --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Document {
    /// `quell.tune-audit/1`.
    pub schema: &'static str,
    /// The machine.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// CPUs that compute, as a list; null where the machine has no such part.
    pub compute: Option<String>,
    /// CPUs that are left to the system.
    pub housekeeping: Option<String>,
    /// Why the machine has no such parts.
    pub no_parts: Option<String>,
    /// The recordings by whose noise the entries are ordered.
    pub recordings: Vec<String>,
    /// Whether this was looked at without root's rights.
    pub unprivileged: bool,
    /// What could not be seen, and why.
    pub unseen: Vec<Unseen>,
    /// Each mitigation: by the noise that it addresses, then by id.
    pub mitigations: Vec<Entry>,
}

/// Something that could not be seen.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Unseen {
    /// The mitigation.
    pub mitigation: String,
    /// The place.
    pub place: String,
    /// Why.
    pub why: String,
}

/// One mitigation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Entry {
    /// Its id.
    pub id: String,
    /// One line.
    pub title: String,
    /// What of a machine it is about.
    pub category: Category,
    /// How much can go wrong.
    pub risk: Risk,
    /// How it stands.
    pub state: State,
    /// Why, where the state alone does not say.
    pub why: Option<String>,
    /// The noise that its sources made here; null without a recording that names sources.
    pub noise: Option<Addressed>,
    /// Patterns of the noise that it takes away.
    pub patterns: Vec<String>,
    /// What it does.
    pub what: String,
    /// What it costs.
    pub caveat: String,
    /// Where it is gone, what happened to it.
    pub gone: Option<String>,
    /// What does today what it did.
    pub successor: Option<String>,
    /// The row of IBM's page that it comes from.
    pub ibm: Option<String>,
    /// Where its facts come from.
    pub provenance: Vec<String>,
    /// What it touches.
    pub places: Vec<Sight>,
    /// What is to be done by hand.
    pub by_hand: Vec<ByHand>,
}

/// The audit as a document.
///
/// `unprivileged` says whether it was looked at without root's rights.
pub fn document(
    audit: &Audit<'_>,
    sources: &Sources,
    recordings: &[Recording],
    unprivileged: bool,
) -> Document {
    let mut mitigations: Vec<Entry> = audit.entries.iter().map(|one| entry(one, sources)).collect();
    // Stable: equal noise stays in the order of ids.
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
    let hidden = one.places.iter().filter(move |sight| here && sight.now.is_none() && sight.why.is_some());
    hidden.map(|sight| Unseen {
        mitigation: one.mitigation.id.clone(),
        place: sight.place.to_string(),
        why: sight.why.clone().unwrap_or_default(),
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
