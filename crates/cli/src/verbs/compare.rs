//! `quell compare`: what changed between two recordings.

use quell_page::{Page, Part};
use quell_request::compare as request;

use crate::args::Compare;
use crate::html;
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::render;

/// Compares, prints the result, and checks the limits.
pub fn run(args: &Compare, printer: Printer) -> anyhow::Result<Outcome> {
    let comparison = request::comparison(&args.options)?;
    if let Some(path) = &args.html {
        let title = format!("{} and {}", comparison.a.name, comparison.b.name);
        html::write(path, &Page::new(&title).with(Part::Compare, &comparison)?)?;
        printer.status(&format!("wrote {}", path.display()));
    }
    if args.json {
        printer.json(&comparison)?;
    } else {
        printer.result(&render::compare::compare(&comparison))?;
    }
    let violations: Vec<_> = args.fail_above.iter().filter_map(|limit| limit.check(&comparison)).collect();
    for violation in &violations {
        printer.warn(&violation.to_string());
    }
    Ok(if violations.is_empty() { Outcome::Done } else { Outcome::LimitExceeded })
}
