//! `quell show`: summarizes a recording, or the recordings of many hosts.

use quell_analysis::attribution::Attribution;
use quell_analysis::fleet::hosts::Hosts;
use quell_analysis::overview::Overview;
use quell_recording::Recording;
use quell_request::show::{self as request, By, Shown};

use crate::args::Show;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;
use crate::render;

/// How to see the rest of the sources.
fn hint(attribution: &Attribution) -> &'static str {
    match attribution.sources {
        Some(_) => "\n`--by source`, `--by task` and `--by class` show which sources took the CPUs.\n",
        None => "",
    }
}

/// Prints the summary as tables and plots, or as JSON.
pub fn run(args: &Show, printer: Printer) -> anyhow::Result<Outcome> {
    let shown = {
        let step = Step::long(printer, "read", Some(1));
        request::shown(&args.options, &mut |text| printer.warn(text), &|done, all| step.go_on(done, all))?
    };
    if args.json {
        printer.json_text(&request::json(shown, args.options.by)?)?;
        return Ok(Outcome::Done);
    }
    let text = match &shown {
        Shown::Many(hosts) => many(hosts, args),
        Shown::One(one) => self::one(&one.0, &one.1, &one.2, args.options.by),
    };
    printer.result(&text)?;
    Ok(Outcome::Done)
}

fn one(recording: &Recording, overview: &Overview, attribution: &Attribution, by: By) -> String {
    let view = match by {
        By::Cpu => return render::show::show(overview, attribution, recording) + hint(attribution),
        By::Source => render::sources::by_source(attribution),
        By::Task => render::sources::by_task(attribution),
        By::Class => render::sources::by_class(attribution),
    };
    render::show::heading(overview) + &view
}

fn many(hosts: &Hosts, args: &Show) -> String {
    match args.options.by {
        By::Source => render::fleet::hosts::by_source(hosts),
        _ => render::fleet::hosts::by_host(hosts, args.all),
    }
}
