//! `quell doctor`: what this machine permits.

use comfy_table::{Table, presets};
use quell_node::doctor::{self, Finding, Remedy, Verdict};
use quell_tune::{Root, guard};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::Doctor;
use crate::outcome::Outcome;
use crate::printer::{Printer, width};

/// The JSON document of `doctor --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Examination {
    /// `quell.doctor/1`.
    schema: &'static str,
    /// The checks, one entry each.
    checks: Vec<Check>,
}

/// The result of one check.
#[derive(Debug, Serialize, JsonSchema)]
struct Check {
    /// What was checked.
    subject: &'static str,
    /// `good`, `limited` or `missing`.
    verdict: &'static str,
    /// What was found.
    finding: String,
    /// What to do about it.
    advice: Option<String>,
    /// Shell commands that lift the limit, one per line; empty if no command can.
    commands: Vec<String>,
}

/// Checks the machine. A missing capability is a finding, not a failure.
pub fn run(args: &Doctor, printer: Printer) -> anyhow::Result<Outcome> {
    let mut findings = doctor::examine();
    if let Some(hooks) = hooks() {
        let after = findings.iter().position(|finding| finding.subject == "kernel types (BTF)");
        findings.insert(after.map_or(findings.len(), |at| at + 1), hooks);
    }
    findings.push(settings());
    let program = std::env::current_exe().unwrap_or_else(|_| "quell".into());
    let commands = doctor::commands(&findings, &program.to_string_lossy());
    let checks: Vec<Check> = findings
        .into_iter()
        .zip(commands)
        .map(|(finding, commands)| Check {
            subject: finding.subject,
            verdict: match finding.verdict {
                Verdict::Good => "good",
                Verdict::Limited => "limited",
                Verdict::Missing => "missing",
            },
            finding: finding.text,
            advice: finding.advice,
            commands,
        })
        .collect();
    if args.json {
        printer.json(&Examination { schema: "quell.doctor/1", checks })?;
    } else if args.commands {
        printer.result(&script(&checks))?;
    } else {
        printer.marked(&table(&checks))?;
        let liftable = checks.iter().filter(|check| !check.commands.is_empty()).count();
        if liftable > 0 {
            printer.status(&format!(
                "`quell doctor --commands` prints commands that lift {liftable} of these limits, to paste into a shell"
            ));
        }
    }
    Ok(Outcome::Done)
}

/// Whether the kernel has the tracepoints that the recorder's programs attach to; none where its types do not show.
fn hooks() -> Option<Finding> {
    let missing = quell_kernel::missing_hooks().ok()?;
    let (verdict, text, advice) = match missing.is_empty() {
        true => (Verdict::Good, "all of the recorder's tracepoints are here".to_owned(), None),
        false => (Verdict::Limited, missing.join("; "), Some("the recorder works without them".to_owned())),
    };
    Some(Finding { subject: "kernel hooks", verdict, text, advice, remedy: None })
}

/// Whether mitigations can be applied; reading them requires no privileges.
fn settings() -> Finding {
    let finding = |verdict, text: String, advice: Option<&str>| Finding {
        subject: "settings",
        verdict,
        text,
        advice: advice.map(str::to_owned),
        remedy: None,
    };
    let root = Root::system();
    if let Some(sign) = guard::container(&root) {
        let advice = "run `quell tune` on the host; `quell tune audit` works here too";
        return finding(Verdict::Missing, format!("a container ({sign}): they are the host's"), Some(advice));
    }
    if !rustix::process::geteuid().is_root() {
        let advice = "`quell tune audit` and `plan` need no root; `apply`, `revert` and `try` do";
        return finding(Verdict::Limited, "only root may change them".into(), Some(advice));
    }
    match guard::owner(&root) {
        Some(owner) => {
            let stop = match owner.contains("TuneD") {
                true => Some(Remedy::Commands(vec!["sudo systemctl stop tuned".into()])),
                false => None,
            };
            let advice = "`quell tune apply` refuses while it runs: stop it, or give it the plan (`quell tune export`)";
            let found = finding(Verdict::Limited, format!("{owner} owns them"), Some(advice));
            Finding { remedy: stop, ..found }
        }
        None => finding(Verdict::Good, "`quell tune` may change them".into(), None),
    }
}

/// A script that lifts the limits that commands can lift, with comments on why the others need something else.
fn script(checks: &[Check]) -> String {
    let mut text =
        "# Commands that lift limits of quell on this machine: read them, then paste those that you want.\n"
            .to_owned();
    let mut printed: Vec<&[String]> = Vec::new();
    for check in checks.iter().filter(|check| !check.commands.is_empty()) {
        if printed.contains(&check.commands.as_slice()) {
            continue;
        }
        let same = checks.iter().filter(|other| other.commands == check.commands);
        for of in same {
            text += &format!("\n# {}: {}", of.subject, of.finding);
        }
        text += &format!("\n{}\n", check.commands.join("\n"));
        printed.push(&check.commands);
    }
    let stays = checks.iter().filter(|check| check.verdict != "good" && check.commands.is_empty());
    for check in stays {
        let advice = check.advice.as_deref().unwrap_or("no action is possible");
        text += &format!("\n# no command lifts this: {}: {}\n#   {advice}\n", check.subject, check.finding);
    }
    text
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
