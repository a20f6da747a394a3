//! `quell study`: the main command. It records this node, shows it, predicts at scale, advises, and writes a report.

use std::path::{Path, PathBuf};

use quell_analysis::attribution::JoinedRecording;
use quell_analysis::overview::overview;
use quell_analysis::show::Show;
use quell_node::doctor::{self, Finding, Verdict};
use quell_recording::{Recording, State, atomic_write};
use quell_request::job::Defaults;
use serde::Serialize;

use crate::args::Study;
use crate::outcome::Outcome;
use crate::plan::{self, name_of_now};
use crate::printer::Printer;
use crate::render;
use crate::steps::page::{Cost, Measured, write};
use crate::steps::record::{inside, record};

/// Runs every step, and leaves a folder with all results.
pub fn run(args: &Study, printer: Printer) -> anyhow::Result<Outcome> {
    let plan = plan::for_study(args)?;
    let options = args.job.options(&Defaults::for_study())?;
    let folder = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("study-{}", name_of_now())));
    if folder.exists() {
        anyhow::bail!(
            "{} exists already: choose another folder with -o, or remove it first",
            folder.display()
        );
    }
    quell_recording::create_folder(&folder)?;
    report_limits(printer);
    let manifest = record(&plan, args.watching.sources.into(), &inside(&folder), printer)?;
    if manifest.state == State::Interrupted {
        printer.status(&format!(
            "interrupted: the study predicts from what was recorded up to now; interrupt it again to end it, {} has the rest",
            folder.join("report.html").display()
        ));
    }
    let recording = Recording::open(&inside(&folder))?;
    let overview = overview(&recording);
    let joined = JoinedRecording::new(&recording);
    let attribution = joined.attribution();
    let mut text = render::show::show(&overview, &attribution, &recording);
    text += &render::sources::after_brief(&attribution);
    write_json(&folder.join("show.json"), &Show { overview: &overview, attribution: &attribution })?;
    let page = folder.join("report.html");
    let measured = Measured { recording: &recording, overview: &overview, attribution: &attribution };
    let save = |text: &str, cost: &Cost| -> anyhow::Result<()> {
        write(&page, measured, cost, &[])?;
        Ok(atomic_write(&folder.join("report.txt"), text.as_bytes())?)
    };
    // Whoever ends the study while it predicts has what was measured.
    save(&text, &Cost::default())?;
    let cost = Cost::predicted(joined, &options, "the study", printer)?;
    for (index, curve) in cost.curves.iter().enumerate() {
        text.push('\n');
        text += &if index == 0 { render::predict::curve(curve) } else { render::predict::briefly(curve) };
        write_json(&folder.join(format!("predict-{}.json", curve.sync.as_str())), curve)?;
    }
    if let Some(advice) = &cost.advice {
        text += &render::advise::briefly(advice);
        write_json(&folder.join("advise.json"), advice)?;
    }
    save(&text, &cost)?;
    printer.result(&text)?;
    printer.status(&format!("the study is in {}: open {}", folder.display(), page.display()));
    Ok(Outcome::Done)
}

/// Prints limits of this machine that the recording itself does not show.
fn report_limits(printer: Printer) {
    let limited = |f: &&Finding| f.subject == "CPUs" && f.verdict != Verdict::Good;
    if let Some(finding) = doctor::examine().iter().find(limited) {
        let advice = finding.advice.as_ref().map(|advice| format!(" ({advice})")).unwrap_or_default();
        printer.warn(&format!("{}: {}{advice}", finding.subject, finding.text));
    }
}

fn write_json(path: &Path, document: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(document)? + "\n";
    Ok(atomic_write(path, text.as_bytes())?)
}
