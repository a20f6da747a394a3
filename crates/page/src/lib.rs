//! The HTML page: a template, its style and scripts, and one JSON document that the scripts draw. The command writes it to a file; a
//! notebook shows some of its sections.

mod detours;
mod track;

use std::collections::BTreeMap;
use std::time::SystemTime;

use quell_analysis::Warning;
use quell_analysis::advise::{Effect, LeaveScale};
use quell_analysis::attribution::{LeftOverRow, SourceRow, TaskRow, ThreadRow};
use quell_analysis::compare::{Changes, SideDocument, SourceChange};
use quell_analysis::fleet::hosts::SourceOverHosts;
use quell_analysis::fleet::{Scale, SlowNode, TypicalSource};
use quell_analysis::memory::MemoryRow;
use quell_analysis::overview::{CpuOverview, PeriodRow, QuantaOverview};
use quell_analysis::predict::Point;
use quell_analysis::track::{RunSource, Tracked, TrackedPath, TrackedRank, TrackedThread};
use quell_analysis::whatif::culprits::{SourceDelay, WorstHit};
use quell_analysis::whatif::{CostRow, MainSources};
use quell_recording::columns::{Column, Columns as _};
use quell_recording::warning::typed_or_sentences;
use quell_recording::{Trace, lines, one_line};
use serde::Serialize;
use serde_json::{Error, Map, Value, json};

const TEMPLATE: &str = include_str!("../assets/report.html");
const STYLES: [&str; 2] =
    [include_str!("../assets/vendor/uPlot.min.css"), include_str!("../assets/report.css")];
const UPLOT: &str = include_str!("../assets/vendor/uPlot.iife.min.js");
/// The scripts, each after those that it uses.
const SCRIPTS: [&str; 26] = [
    include_str!("../assets/report/text.js"),
    include_str!("../assets/report/elements.js"),
    include_str!("../assets/report/terms.js"),
    include_str!("../assets/report/rows.js"),
    include_str!("../assets/report/plot.js"),
    include_str!("../assets/report/detours.js"),
    include_str!("../assets/report/recording.js"),
    include_str!("../assets/report/sources.js"),
    include_str!("../assets/report/prediction.js"),
    include_str!("../assets/report/comparison.js"),
    include_str!("../assets/report/hosts.js"),
    include_str!("../assets/report/advice.js"),
    include_str!("../assets/report/advice_marks.js"),
    include_str!("../assets/report/advice_split.js"),
    include_str!("../assets/report/advice_whatif.js"),
    include_str!("../assets/report/advice_costs.js"),
    include_str!("../assets/report/advice_sets.js"),
    include_str!("../assets/report/advice_remedies.js"),
    include_str!("../assets/report/trial.js"),
    include_str!("../assets/report/track_plots.js"),
    include_str!("../assets/report/track.js"),
    include_str!("../assets/report/simulation.js"),
    include_str!("../assets/report/audit_row.js"),
    include_str!("../assets/report/audit_table.js"),
    include_str!("../assets/report/audit.js"),
    include_str!("../assets/report.js"),
];

/// A document that a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The figures of a recording: `show`.
    Show,
    /// The noise sources of a recording: `show --by source`.
    Sources,
    /// A scaling curve: `predict`. A page can hold several.
    Predict,
    /// Two recordings in comparison: `compare`.
    Compare,
    /// What each source costs, and what to do about it: `advise`.
    Advice,
    /// A simulated schedule: `simulate`.
    Simulate,
    /// The state of mitigations: `tune audit`.
    Audit,
    /// Recordings of several hosts: `show DIR`.
    Hosts,
    /// Which of several hosts are outliers, and what all cost together: `advise DIR`.
    Fleet,
    /// Noise before and after a mitigation: `tune try`, with the `sentences` of each mitigation's warnings. A page can hold several.
    Trial,
}

impl Part {
    const ALL: [Self; 10] = [
        Self::Show,
        Self::Sources,
        Self::Predict,
        Self::Compare,
        Self::Advice,
        Self::Simulate,
        Self::Audit,
        Self::Hosts,
        Self::Fleet,
        Self::Trial,
    ];

    /// Its key in the page's data.
    pub fn name(self) -> &'static str {
        match self {
            Self::Show => "show",
            Self::Sources => "sources",
            Self::Predict => "predict",
            Self::Compare => "compare",
            Self::Advice => "advice",
            Self::Simulate => "simulate",
            Self::Audit => "audit",
            Self::Hosts => "hosts",
            Self::Fleet => "fleet",
            Self::Trial => "trials",
        }
    }

    /// The part with a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    fn can_be_several(self) -> bool {
        matches!(self, Self::Predict | Self::Trial)
    }

    /// The key of the document's warnings, if the page shows them as sentences.
    fn warnings(self) -> Option<&'static str> {
        match self {
            Self::Sources => Some("sources_warnings"),
            // Each mitigation has warnings of its own.
            Self::Audit | Self::Trial => None,
            _ => Some("warnings"),
        }
    }
}

/// A page under construction; it shows only what is added to it.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    /// The data that the script draws.
    data: Map<String, Value>,
}

impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Self {
        Self { title: title.to_owned(), data: Map::new() }
    }

    /// Adds a document, as its verb prints it.
    ///
    /// # Errors
    /// If it is no JSON object, or its warnings are not quell's.
    pub fn with(mut self, part: Part, document: &impl Serialize) -> Result<Self, Error> {
        let mut value = serde_json::to_value(document)?;
        if let Some(warnings) = part.warnings().and_then(|field| value.get(field)) {
            let warnings: Vec<Warning> = typed_or_sentences(warnings)?;
            value["sentences"] = warnings.iter().map(|warning| Value::String(warning.to_string())).collect();
        }
        match (part.can_be_several(), self.data.get_mut(part.name())) {
            (true, Some(Value::Array(all))) => all.push(value),
            (true, _) => drop(self.data.insert(part.name().to_owned(), Value::Array(vec![value]))),
            (false, _) => drop(self.data.insert(part.name().to_owned(), value)),
        }
        Ok(self)
    }

    /// Adds what noise did to an MPI run.
    ///
    /// # Errors
    /// None are known for a run.
    pub fn with_run(mut self, tracked: &Tracked) -> Result<Self, Error> {
        self.data.insert("track".to_owned(), serde_json::to_value(track::Run::new(tracked))?);
        Ok(self)
    }

    /// Adds a recording's detours: over time and by duration, for each CPU; with their sources if there are several.
    pub fn with_detours(mut self, traces: &[Trace], sources: Option<&MainSources>) -> Self {
        // One colour for all detours would say less than one for each CPU.
        let sources = sources.filter(|sources| sources.families.len() > 1);
        self.data.insert("timeline".to_owned(), detours::timeline(traces, sources));
        if let Some(sources) = sources {
            self.data.insert("timeline_sources".to_owned(), detours::names(sources));
        }
        self.data.insert("density".to_owned(), detours::density(traces));
        self
    }

    /// Adds the distribution of detour durations of several recordings, a curve for each.
    pub fn with_densities(mut self, recordings: &[(String, Vec<Trace>)]) -> Self {
        self.data.insert("density".to_owned(), detours::densities(recordings));
        self
    }

    /// Restricts the page to these sections, with nothing around them, for a notebook.
    pub fn only(mut self, sections: &[String]) -> Self {
        self.data.insert("only".to_owned(), json!(sections));
        self
    }

    /// The page as the content of a file.
    ///
    /// # Errors
    /// None are known for its documents.
    pub fn html(&self) -> Result<String, Error> {
        let mut data = self.data.clone();
        data.insert("title".to_owned(), json!(self.title));
        data.insert("quell".to_owned(), json!(env!("CARGO_PKG_VERSION")));
        let now = humantime::format_rfc3339_seconds(SystemTime::now());
        data.insert("generated".to_owned(), json!(now.to_string()));
        data.insert("columns".to_owned(), serde_json::to_value(described())?);
        let values = [
            ("{{TITLE}}", escape_html(&self.title)),
            ("{{STYLE}}", STYLES.join("\n")),
            ("{{UPLOT}}", UPLOT.to_owned()),
            ("{{SCRIPT}}", SCRIPTS.join("\n")),
            ("{{DATA}}", script_safe(&serde_json::to_string(&data)?)),
        ];
        Ok(fill(TEMPLATE, &values))
    }
}

/// The rows that the page's script draws as tables, with their columns.
fn described() -> BTreeMap<&'static str, Vec<Column>> {
    BTreeMap::from([
        ("advice_effects", Effect::columns()),
        ("advice_leave", LeaveScale::columns()),
        ("advice_sources", CostRow::columns()),
        ("changes", Changes::columns()),
        ("cpus", CpuOverview::columns()),
        ("culprits", SourceDelay::columns()),
        ("fleet_scales", Scale::columns()),
        ("fleet_slowest", SlowNode::columns()),
        ("fleet_typical", TypicalSource::columns()),
        ("hits", WorstHit::columns()),
        ("left_over", LeftOverRow::columns()),
        ("over_hosts", SourceOverHosts::columns()),
        ("memory", MemoryRow::columns()),
        ("periods", PeriodRow::columns()),
        ("predict", Point::columns()),
        ("quanta", QuantaOverview::columns()),
        ("sides", SideDocument::columns()),
        ("source-changes", SourceChange::columns()),
        ("sources", SourceRow::columns()),
        ("tasks", TaskRow::columns()),
        ("threads", ThreadRow::columns()),
        ("track_paths", TrackedPath::columns()),
        ("track_ranks", TrackedRank::columns()),
        ("track_threads", TrackedThread::columns()),
        ("track_sources", RunSource::columns()),
    ])
}

/// Fills the template in one pass, so that a value that looks like a placeholder is not replaced.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    let next = |rest: &str| {
        values.iter().filter_map(|(key, value)| Some((rest.find(key)?, *key, value))).min_by_key(|hit| hit.0)
    };
    let (mut page, mut rest) = (String::new(), template);
    while let Some((at, key, value)) = next(rest) {
        page += &rest[..at];
        page += value;
        rest = &rest[at + key.len()..];
    }
    page + rest
}

/// JSON in which no text can end the script element or open another, or control how the page is displayed.
fn script_safe(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => safe += &format!("\\u{:04x}", c as u32),
            _ => safe.push(c),
        }
    }
    lines(&safe)
}

fn escape_html(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use quell_analysis::advise::{Advice, Given, Leaving, Question, advise};
    use quell_analysis::predict::Options;
    use quell_analysis::whatif::Job;
    use quell_recording::Nanos;
    use serde_json::{Value, json};

    use super::*;
    use quell_request::noise::{self, ModelScale};

    const HOSTILE: &str = "</script><img src=x onerror=alert(1)>{{SCRIPT}}\u{1b}[31m\u{2028}";

    /// Advice about two sources, one of which has a hostile name.
    fn advice() -> Advice {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.toml");
        let component = |name: &str| {
            let name = json!(name);
            format!(
                "[[component]]\nname = {name}\nperiodic = {{ period = \"4ms\" }}\nduration = {{ constant = \"9us\" }}\n"
            )
        };
        let hostile = HOSTILE.replace('\u{1b}', "");
        fs_err::write(&path, format!("name = \"m\"\n{}{}", component("tick"), component(&hostile))).unwrap();
        let scale = ModelScale { quantum: Nanos::from_nanos(1_000_000), ranks: 16, seed: 1 };
        let nodes = [noise::attributed(&path, scale).unwrap()];
        let job = Job::Phases(Options { phases: 50, replicates: 8, ..Options::new(vec![2, 16]) });
        let question = Question {
            nodes: &nodes,
            job: &job,
            candidates: &[],
            compute: &[],
            most_sources: 8,
            leave: Leaving::default(),
            given: &Given::default(),
        };
        advise(&question, &|_, _| ()).unwrap()
    }

    /// The JSON document of a page.
    fn data(text: &str) -> Value {
        let start = "<script type=\"application/json\" id=\"data\">";
        let from = text.find(start).unwrap() + start.len();
        let length = text[from..].find("</script>").unwrap();
        serde_json::from_str(&text[from..from + length]).unwrap()
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let text = Page::new(HOSTILE).html().unwrap();
        assert!(!text.contains("<img src=x"), "the title must be escaped");
        assert_eq!(text.matches("</script>").count(), TEMPLATE.matches("</script>").count());
        assert!(text.contains("{{SCRIPT}}\\u001b[31m\\u2028"), "a placeholder in data stays data");
    }

    #[test]
    fn neither_can_names_of_sources_and_trials() {
        let advice = advice();
        let trial = json!({"schema": "quell.tune-try/3", "mitigations": [{"id": HOSTILE, "title": HOSTILE}]});
        let page = Page::new("node").with(Part::Advice, &advice).unwrap();
        let text = page.with(Part::Trial, &trial).unwrap().html().unwrap();
        assert!(!text.contains("<img src=x"));
        assert_eq!(text.matches("</script>").count(), TEMPLATE.matches("</script>").count());
        let data = data(&text);
        assert_eq!(data["trials"][0]["mitigations"][0]["id"], HOSTILE);
        let names: Vec<_> =
            data["advice"]["sources"].as_array().unwrap().iter().map(|one| &one["source"]).collect();
        assert!(names.iter().any(|name| name.as_str().unwrap().contains("<img src=x")), "{names:?}");
        assert_eq!(data["advice"]["what_if"]["slowdown_percent"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn what_is_not_known_is_not_in_the_data() {
        let data = data(&Page::new("node").html().unwrap());
        assert!(data["advice"].is_null() && data["trials"].is_null());
    }

    /// The scripts share one scope: a name that two of them declare would break the page.
    #[test]
    fn scripts_give_each_name_once() {
        let mut names: Vec<&str> = SCRIPTS
            .iter()
            .flat_map(|script| script.lines())
            .filter_map(|line| {
                ["function ", "async function ", "const ", "let "]
                    .iter()
                    .find_map(|word| line.strip_prefix(word))
            })
            .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
            .collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        assert!(names.len() > 100 && twice.is_empty(), "{twice:?}");
    }
}
