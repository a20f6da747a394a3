//! The HTML page: a template, its style and script, and one JSON document that the script draws.

mod track;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use quell_analysis::Warning;
use quell_analysis::advise::{Advice, Effect, LeaveScale};
use quell_analysis::attribution::{Attribution, SourceRow, TaskRow, ThreadRow};
use quell_analysis::compare::{Changes, Comparison, SideDocument};
use quell_analysis::density::Density;
use quell_analysis::downsample;
use quell_analysis::overview::{CpuOverview, Overview, QuantaOverview};
use quell_analysis::predict::{Point, Prediction};
use quell_analysis::stats::Durations;
use quell_analysis::track::{Tracked, TrackedPath, TrackedRank};
use quell_recording::columns::{Column, Columns as _};
use quell_recording::{Detour, Trace};
use serde::Serialize;

use crate::render::advise::CostRow;
use crate::render::show::PeriodRow;
use crate::render::sources::LeftOverRow;
use crate::render::track::SourceRow as SourceRowOfRun;

const TEMPLATE: &str = include_str!("../assets/report.html");
const STYLES: [&str; 2] =
    [include_str!("../assets/vendor/uPlot.min.css"), include_str!("../assets/report.css")];
const UPLOT: &str = include_str!("../assets/vendor/uPlot.iife.min.js");
/// In the order in which they build on one another.
const SCRIPTS: [&str; 23] = [
    include_str!("../assets/report/text.js"),
    include_str!("../assets/report/elements.js"),
    include_str!("../assets/report/rows.js"),
    include_str!("../assets/report/plot.js"),
    include_str!("../assets/report/detours.js"),
    include_str!("../assets/report/recording.js"),
    include_str!("../assets/report/sources.js"),
    include_str!("../assets/report/prediction.js"),
    include_str!("../assets/report/comparison.js"),
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
    include_str!("../assets/report/audit_row.js"),
    include_str!("../assets/report/audit_table.js"),
    include_str!("../assets/report/audit.js"),
    include_str!("../assets/report.js"),
];

/// Points of one CPU's time line on a page: as many as one can tell apart.
const MOST_POINTS: usize = 4_000;
/// Points for all CPUs together, which bounds the page.
const MOST_POINTS_ALL: usize = 64_000;

/// What a page shows; what is absent is left out.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Its title.
    pub title: &'a str,
    /// A recording in figures.
    pub show: Option<&'a Overview>,
    /// Who took its CPUs.
    pub sources: Option<&'a Attribution>,
    /// The recording's detours.
    pub traces: &'a [Trace],
    /// Scaling curves.
    pub predict: &'a [Prediction],
    /// Two recordings side by side.
    pub compare: Option<&'a Comparison>,
    /// What noise did to an MPI run.
    pub track: Option<&'a Tracked>,
    /// Mitigations.
    pub audit: Option<&'a quell_request::tune::audit::Document>,
    /// What each source costs, and what to do about it.
    pub advice: Option<&'a Advice>,
    /// What `tune try --json` told, before and after, with the `sentences` of each mitigation's warnings.
    pub trials: &'a [serde_json::Value],
}

impl<'a> Page<'a> {
    /// An empty page.
    pub fn new(title: &'a str) -> Self {
        Self {
            title,
            show: None,
            sources: None,
            traces: &[],
            predict: &[],
            compare: None,
            track: None,
            audit: None,
            advice: None,
            trials: &[],
        }
    }
}

/// A document with the sentences of its warnings, which the script shows.
#[derive(Serialize)]
struct Told<'a, T> {
    #[serde(flatten)]
    document: &'a T,
    sentences: Vec<String>,
}

impl<'a, T> Told<'a, T> {
    fn new(document: &'a T, warnings: &[Warning]) -> Self {
        Self { document, sentences: warnings.iter().map(ToString::to_string).collect() }
    }
}

/// The document that the script draws.
#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    generated: String,
    quell: &'static str,
    show: Option<Told<'a, Overview>>,
    sources: Option<Told<'a, Attribution>>,
    timeline: Vec<TimeLine>,
    density: Vec<CpuDensity>,
    /// What its tables' columns are, by kind of row.
    columns: BTreeMap<&'static str, Vec<Column>>,
    predict: Vec<Told<'a, Prediction>>,
    compare: Option<Told<'a, Comparison>>,
    track: Option<track::Run<'a>>,
    audit: Option<&'a quell_request::tune::audit::Document>,
    advice: Option<Told<'a, Advice>>,
    trials: &'a [serde_json::Value],
}

#[derive(Serialize)]
struct TimeLine {
    cpu: u32,
    seconds: Vec<f64>,
    duration_ns: Vec<u64>,
    own: Vec<u8>,
    shown: usize,
    total: usize,
}

#[derive(Serialize)]
struct CpuDensity {
    cpu: u32,
    log10_ns: Vec<f64>,
    density: Vec<f64>,
}

/// The rows that the page's script draws as tables.
fn described() -> BTreeMap<&'static str, Vec<Column>> {
    BTreeMap::from([
        ("advice_effects", Effect::columns()),
        ("advice_leave", LeaveScale::columns()),
        ("advice_sources", CostRow::columns()),
        ("changes", Changes::columns()),
        ("cpus", CpuOverview::columns()),
        ("left_over", LeftOverRow::columns()),
        ("periods", PeriodRow::columns()),
        ("predict", Point::columns()),
        ("quanta", QuantaOverview::columns()),
        ("sides", SideDocument::columns()),
        ("sources", SourceRow::columns()),
        ("tasks", TaskRow::columns()),
        ("threads", ThreadRow::columns()),
        ("track_paths", TrackedPath::columns()),
        ("track_ranks", TrackedRank::columns()),
        ("track_sources", SourceRowOfRun::columns()),
    ])
}

/// Writes the page.
pub fn write(path: &Path, page: &Page) -> anyhow::Result<()> {
    let is_page = path.extension().is_some_and(|extension| extension == "html" || extension == "htm");
    if path.exists() && !is_page {
        anyhow::bail!("{} exists already and is not named as a page: choose another name", path.display());
    }
    Ok(fs_err::write(path, render(page)?)?)
}

fn render(page: &Page) -> anyhow::Result<String> {
    let room = (MOST_POINTS_ALL / page.traces.len().max(1)).min(MOST_POINTS);
    let data = Data {
        title: page.title,
        generated: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        quell: env!("CARGO_PKG_VERSION"),
        show: page.show.map(|one| Told::new(one, &one.warnings)),
        sources: page.sources.map(|one| Told::new(one, &one.sources_warnings)),
        timeline: page.traces.iter().map(|trace| time_line(trace, room)).collect(),
        density: page.traces.iter().filter_map(density).collect(),
        columns: described(),
        predict: page.predict.iter().map(|one| Told::new(one, &one.warnings)).collect(),
        compare: page.compare.map(|one| Told::new(one, &one.warnings)),
        audit: page.audit,
        advice: page.advice.map(|one| Told::new(one, &one.warnings)),
        trials: page.trials,
        track: page.track.map(track::Run::of),
    };
    let values = [
        ("{{TITLE}}", escape_html(page.title)),
        ("{{STYLE}}", STYLES.join("\n")),
        ("{{UPLOT}}", UPLOT.to_owned()),
        ("{{SCRIPT}}", SCRIPTS.join("\n")),
        ("{{DATA}}", script_safe(&serde_json::to_string(&data)?)),
    ];
    Ok(fill(TEMPLATE, &values))
}

/// Fills the template in one pass, so that a value which looks like a placeholder stays what it is.
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

/// JSON that can neither end its script element nor open another.
fn script_safe(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => safe += &format!("\\u{:04x}", c as u32),
            _ => safe.push(c),
        }
    }
    safe
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// At most `room` detours, by the rule of [`downsample`].
fn time_line(trace: &Trace, room: usize) -> TimeLine {
    let durations: Vec<u64> = trace.detours.iter().map(|d| d.duration.as_nanos()).collect();
    let kept: Vec<&Detour> =
        downsample(&durations, room).into_iter().map(|place| &trace.detours[place]).collect();
    let second = |d: &Detour| ((d.start - trace.span.start).as_nanos() / 1_000) as f64 / 1e6;
    TimeLine {
        cpu: trace.cpu.0,
        seconds: kept.iter().map(|d| second(d)).collect(),
        duration_ns: kept.iter().map(|d| d.duration.as_nanos()).collect(),
        own: kept.iter().map(|d| u8::from(d.own)).collect(),
        shown: kept.len(),
        total: trace.detours.len(),
    }
}

fn density(trace: &Trace) -> Option<CpuDensity> {
    let noise = Durations::of_noise([trace]);
    if noise.is_empty() {
        return None;
    }
    let Density { log10_ns, density, .. } = Density::of(&noise);
    let round = |values: Vec<f64>| values.into_iter().map(|v| (v * 1e5).round() / 1e5).collect();
    Some(CpuDensity { cpu: trace.cpu.0, log10_ns: round(log10_ns), density: round(density) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use quell_analysis::advise::{Question, advise};
    use quell_analysis::predict::Options;
    use quell_analysis::whatif::Job;
    use quell_recording::Nanos;
    use serde_json::{Value, json};

    use super::*;
    use quell_request::noise::{self, ModelScale};

    const HOSTILE: &str = "</script><img src=x onerror=alert(1)>{{SCRIPT}}\u{1b}[31m\u{2028}";

    /// Advice about two sources, of which one has a hostile name.
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
        let nodes = [noise::attributed(&path, scale).unwrap().0];
        let job = Job::Phases(Options { phases: 50, replicates: 8, ..Options::new(vec![2, 16]) });
        let question = Question { nodes: &nodes, job: &job, candidates: &[], compute: &[], most_sources: 8 };
        advise(&question, &|_, _| ()).unwrap()
    }

    /// The document within a page.
    fn data(text: &str) -> Value {
        let start = "<script type=\"application/json\" id=\"data\">";
        let from = text.find(start).unwrap() + start.len();
        let length = text[from..].find("</script>").unwrap();
        serde_json::from_str(&text[from..from + length]).unwrap()
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let text = render(&Page::new(HOSTILE)).unwrap();
        assert!(!text.contains("<img src=x"), "the title must be escaped");
        assert_eq!(text.matches("</script>").count(), TEMPLATE.matches("</script>").count());
        assert!(text.contains("{{SCRIPT}}\\u001b[31m\\u2028"), "a placeholder in data stays data");
    }

    #[test]
    fn neither_can_names_of_sources_and_trials() {
        let advice = advice();
        let trials =
            [json!({"schema": "quell.tune-try/2", "mitigations": [{"id": HOSTILE, "title": HOSTILE}]})];
        let page = Page { advice: Some(&advice), trials: &trials, ..Page::new("node") };
        let text = render(&page).unwrap();
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
        let data = data(&render(&Page::new("node")).unwrap());
        assert!(data["advice"].is_null() && data["trials"].as_array().unwrap().is_empty());
    }

    /// The scripts are one: a name that two of them give would end the page.
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
