//! `quell bench loggp`: LogGOPS parameters of the network between ranks, as a file for `--net`.

use std::path::Path;
use std::time::SystemTime;

use quell_analysis::bench::job::RunFacts;
use quell_analysis::bench::loggp::preset::Preset;

use super::document;
use super::run::LOGGP;
use super::{Site, failure, job_of, ranks};
use crate::args::BenchLoggp;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::steps::measured_networks;
use quell_request::Usage;

/// Measures, shows the parameters, and writes a preset for each kind of network.
pub fn run(args: &BenchLoggp, printer: Printer) -> anyhow::Result<Outcome> {
    let count = match &args.job.ranks {
        None => 2,
        Some(_) => match ranks(&args.job)?[..] {
            [count] if count >= 2 => count,
            _ => return Err(Usage("bench loggp takes one number of ranks, 2 at least".into()).into()),
        },
    };
    let site = Site::prepare(&args.job, LOGGP, printer)?;
    let words = vec![
        format!("bench={LOGGP}"),
        format!("sizes_to={}", args.sizes_to.0),
        format!("rounds={}", args.rounds),
    ];
    let facts = RunFacts { bench: LOGGP.into(), ..RunFacts::default() };
    let run = job_of(&site, &args.job, false, count, words, facts).run(printer)?;
    match run.facts.state.as_str() {
        "failed" => return Err(failure(&run)),
        "complete" => {}
        _ => anyhow::bail!("interrupted before the measurement was complete: no network is written"),
    }
    let found = document::build_loggp(&run)?;
    document::show(&document::Document::Loggp(found.clone()), Some(&site.folder), args.job.json, printer)?;
    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    for kind in &found.kinds {
        let path = site.folder.join(format!("{}.toml", kind.kind.word()));
        let preset = Preset::from_document(&found, kind, date.get(..10).unwrap_or_default());
        let text = preset.to_toml().map_err(anyhow::Error::msg)?;
        quell_recording::atomic_write(&path, text.as_bytes())?;
        measured_networks::keep(&site.mpi.wrapper(), &kind.hosts, &text).unwrap_or_else(|error| {
            printer.warn(&format!("later traces do not find this network: {error:#}"));
        });
        printer.status(&format!("use it with `quell simulate … --net {}`", shown(&path)));
    }
    Ok(Outcome::Done)
}

/// The shortest form of a path from here.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let short = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    short.unwrap_or(path).display().to_string()
}
