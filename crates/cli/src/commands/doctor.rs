//! `quell doctor`: what this machine permits.

use comfy_table::{Table, presets};
use quell_node::doctor::{self, Verdict};
use schemars::JsonSchema;
use serde::Serialize;

use super::Outcome;
use crate::args::Doctor;
use crate::printer::{Printer, width};

/// What `doctor --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Examination {
    /// `quell.doctor/1`.
    schema: &'static str,
    /// One entry a check.
    checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Serialize, JsonSchema)]
struct Check {
    /// What was looked at.
    subject: &'static str,
    /// `good`, `limited` or `missing`.
    verdict: &'static str,
    /// What was found.
    finding: String,
    /// What to do about it.
    advice: Option<String>,
}

/// Examines the machine; that something is missing is a finding, not a failure.
pub fn run(args: &Doctor, printer: Printer) -> anyhow::Result<Outcome> {
    let checks: Vec<Check> = doctor::examine()
        .into_iter()
        .map(|finding| Check {
            subject: finding.subject,
            verdict: match finding.verdict {
                Verdict::Good => "good",
                Verdict::Limited => "limited",
                Verdict::Missing => "missing",
            },
            finding: finding.text,
            advice: finding.advice,
        })
        .collect();
    if args.json {
        printer.json(&Examination { schema: "quell.doctor/1", checks })?;
    } else {
        printer.result(&table(&checks))?;
    }
    Ok(Outcome::Done)
}

fn table(checks: &[Check]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_width(width())
        .set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    for check in checks {
        let mark = match check.verdict {
            "good" => "✓",
            "limited" => "~",
            _ => "✗",
        };
        table.add_row([mark, check.subject, &check.finding]);
        if let Some(advice) = &check.advice {
            table.add_row(["", "", &format!("→ {advice}")]);
        }
    }
    table.to_string().lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
