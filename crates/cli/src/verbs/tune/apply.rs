//! `quell tune apply`: applies a plan, so that it can be reverted whatever happens.

use std::collections::BTreeSet;
use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering;
use std::time::Duration;

use quell_tune::Root;
use quell_tune::apply::{Applied, ApplyError, Applying, apply, check};
use quell_tune::guard::{Refusal, refusals};
use quell_tune::keeper::Until;
use quell_tune::place::started;
use quell_tune::plan::Plan;
use quell_tune::revert::{RevertError, revert_with_timeout};
use schemars::JsonSchema;
use serde::Serialize;

use super::{allowed, diff, may_write, need_root, program, read_plan, timed};
use crate::args::TuneApply;
use crate::outcome::Outcome;
use crate::printer::{Printer, one_line};
use crate::signals::Signals;
use crate::signals::stopped_by_signals;
use crate::steps::audit::{catalogue_at, root};
use quell_request::Usage;

/// The JSON document of `tune apply --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Application {
    /// `quell.tune-apply/1`.
    schema: &'static str,
    /// Id of the transaction; null if nothing was written.
    transaction: Option<String>,
    /// Whether the plan was only checked.
    dry_run: bool,
    /// The reasons why it was refused.
    refused: Vec<Refusal>,
    /// Ids of the writes that were done.
    written: Vec<String>,
    /// Ids of the writes whose value was already in place.
    already: Vec<String>,
    /// Ids of those of them whose value an earlier transaction has set for a time, and that transaction: the value goes with it.
    passing: Vec<(String, String)>,
    /// Ids of the writes that the kernel refused or whose places are gone, where the plan allows that, and the reasons.
    not_taken: Vec<(String, String)>,
    /// When it is reverted automatically.
    until: Option<String>,
}

/// Checks the plan, and applies it with `--yes`.
pub fn run(args: &TuneApply, printer: Printer) -> anyhow::Result<ExitCode> {
    let root = root(args.sysroot.as_deref())?;
    let plan = read_plan(&args.plan)?;
    let until = until(args)?;
    let catalogue = catalogue_at(&args.site, &root)?;
    let refused = refusals(&root, &plan, allowed(&args.allow), &catalogue);
    if !refused.is_empty() || !args.yes {
        return dry(args, &root, &plan, refused, printer);
    }
    need_root(&root, "change")?;
    if !args.command.is_empty() {
        return with(args, &root, &plan, printer);
    }
    let stop = stopped_by_signals()?;
    let applied = match applied(&root, &plan, until, &|| stop.load(Ordering::SeqCst)) {
        Err(error) if error.is::<Taken>() => {
            printer.error(&error);
            return Ok(ExitCode::from(3));
        }
        other => other?,
    };
    if args.json {
        printer.json(&document(&applied))?;
    } else {
        printer.result(&text(&applied, args))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What ends the transaction.
fn until(args: &TuneApply) -> anyhow::Result<Option<Until>> {
    if let Some(time) = args.time {
        quell_request::positive(time, "--for")?;
    }
    let process = args.until_pid.map(|pid| {
        let start = started(pid).ok_or_else(|| Usage(format!("--until-pid {pid}: there is no such process")));
        start.map(|start| (pid, start))
    });
    let process = process.transpose()?;
    let after = args.time.map(|time| Duration::from_nanos(time.as_nanos()));
    Ok((after.is_some() || process.is_some()).then_some(Until { after, process }))
}

/// Another transaction has applied all of it already, and reverts it when its own time ends.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Taken(ApplyError);

/// Applies the plan; reverts what has been written if `stopped` returns true.
pub fn applied(
    root: &Root,
    plan: &Plan,
    until: Option<Until>,
    stopped: &dyn Fn() -> bool,
) -> anyhow::Result<Applied> {
    match apply(
        root,
        plan,
        &Applying { program: program()?, until, keepers: Vec::new(), holds: Vec::new(), stopped },
    ) {
        Err(ApplyError::Store(error)) if error.is_denied() => anyhow::bail!("{error}: only root may apply"),
        Err(error @ ApplyError::Applied(_)) => Err(Taken(error).into()),
        other => Ok(other?),
    }
}

/// Prints what would be written, and what prevents it.
fn dry(
    args: &TuneApply,
    root: &Root,
    plan: &Plan,
    refused: Vec<Refusal>,
    printer: Printer,
) -> anyhow::Result<ExitCode> {
    let code = if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) };
    let checked = if refused.is_empty() { check(root, plan)? } else { Applied::default() };
    if args.json {
        printer.json(&Application { dry_run: !args.yes, refused, ..document(&checked) })?;
        return Ok(code);
    }
    if !args.yes {
        printer.result(&diff(plan, &timed(root)))?;
    }
    for refusal in &refused {
        printer.notice(&format!("refused: {refusal}"));
    }
    if refused.is_empty() {
        printer.notice(&due(&checked, may_write(root)));
    }
    Ok(code)
}

/// What `--yes` would write.
fn due(checked: &Applied, may_write: bool) -> String {
    let (due, already) = (checked.written.len(), checked.already.len());
    if due == 0 {
        let all = if checked.refused.is_empty() { "every setting" } else { "every setting that is here" };
        let why = if already > 0 { format!(": {all} has the plan's value already") } else { String::new() };
        return format!("nothing was written, and --yes has nothing to write{why}");
    }
    let writes = match due {
        1 => "the write that is due".to_owned(),
        _ => format!("the {due} writes that are due"),
    };
    let is = if already == 1 { "is" } else { "are" };
    let so = if already > 0 { format!("; {already} {is} set already") } else { String::new() };
    let who = if may_write { "" } else { " (only root may)" };
    format!("nothing was written: --yes makes {writes}{so}{who}")
}

/// Applies, runs the command, and reverts. If quell is killed in between, a keeper reverts.
fn with(args: &TuneApply, root: &Root, plan: &Plan, printer: Printer) -> anyhow::Result<ExitCode> {
    let me = std::process::id();
    let start =
        started(me).ok_or_else(|| anyhow::anyhow!("/proc does not show when this process started"))?;
    let after = args.time.map(|time| Duration::from_nanos(time.as_nanos()));
    // From here on signals are passed on to the command; quell itself ends only after it has reverted.
    let signals = Signals::catch()?;
    let until = Some(Until { after, process: Some((me, start)) });
    let applied = match applied(root, plan, until, &|| signals.stopped()) {
        Err(error) if error.is::<Taken>() => {
            printer.error(&error);
            return Ok(ExitCode::from(3));
        }
        other => other?,
    };
    printer.status(text(&applied, args).trim_end());
    let ended = run_command(args, &signals);
    let Some(id) = &applied.id else { return ended };
    let reverted = match revert_with_timeout(root, id, "the end of its command", TIMEOUT) {
        // The time limit may have passed before the command ended.
        Err(RevertError::Unknown(_)) => return ended,
        other => other?,
    };
    printer.status(super::revert::text(&reverted).trim_end());
    match super::revert::outcome(&reverted)? {
        Outcome::Done => ended,
        failed => ended.map(|_| failed.into()),
    }
}

/// How long to wait for another quell that holds the lock, when it is time to revert.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the command to its end, and passes signals on to it.
fn run_command(args: &TuneApply, signals: &Signals) -> anyhow::Result<ExitCode> {
    use std::os::unix::process::ExitStatusExt as _;
    let (program, rest) = args.command.split_first().ok_or_else(|| Usage("--with needs a command".into()))?;
    let mut child = Command::new(program)
        .args(rest)
        .spawn()
        .map_err(|e| anyhow::anyhow!("{} cannot be started: {e}", program.to_string_lossy()))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let signal = signals.pass.swap(0, Ordering::SeqCst);
        if signal != 0 {
            // SAFETY: kill has no precondition; the child is not reaped yet, so its pid is its own.
            unsafe { libc::kill(child.id().cast_signed(), signal) };
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn text(applied: &Applied, args: &TuneApply) -> String {
    let mut text = match &applied.id {
        Some(id) => format!("applied as {id}: {} written\n", applied.written.len()),
        None if applied.refused.is_empty() && applied.passing.is_empty() => {
            return "nothing to write: every setting has the plan's value already\n".into();
        }
        None => "nothing to write\n".to_owned(),
    };
    if !applied.already.is_empty() {
        text += &format!("{} were set already\n", applied.already.len());
    }
    let earlier: BTreeSet<&String> = applied.passing.iter().map(|(_, id)| id).collect();
    for id in earlier {
        let of = applied.passing.iter().filter(|(_, one)| one == id).count();
        text += &format!(
            "{of} of them by {id}, and end with it: to keep them, `quell tune revert {id}` first, then plan and apply again\n"
        );
    }
    for (write, why) in &applied.refused {
        text += &format!("rejected: {}: {}\n", one_line(write), one_line(why));
    }
    if applied.id.is_none() {
        return text;
    }
    if let Some(until) =
        applied.keepers.first().and_then(|keeper| keeper.until.as_ref()).filter(|_| !args.with)
    {
        text += &format!("quell reverts it at {until}\n");
    }
    if !args.with {
        text += "`quell tune revert` reverts it\n";
    }
    text
}

fn document(applied: &Applied) -> Application {
    Application {
        schema: "quell.tune-apply/1",
        transaction: applied.id.clone(),
        dry_run: false,
        refused: Vec::new(),
        written: applied.written.clone(),
        already: applied.already.clone(),
        passing: applied.passing.clone(),
        not_taken: applied.refused.clone(),
        until: applied.keepers.first().and_then(|keeper| keeper.until.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_yes_would_write_is_counted() {
        let ids = |count: usize| vec!["test:x".to_owned(); count];
        for (written, already, expected) in [
            (2, 0, "nothing was written: --yes makes the 2 writes that are due"),
            (1, 1, "nothing was written: --yes makes the write that is due; 1 is set already"),
            (2, 3, "nothing was written: --yes makes the 2 writes that are due; 3 are set already"),
            (0, 0, "nothing was written, and --yes has nothing to write"),
        ] {
            let checked = Applied { written: ids(written), already: ids(already), ..Applied::default() };
            assert_eq!(due(&checked, true), expected);
        }
        let done = Applied { already: ids(2), ..Applied::default() };
        assert!(
            due(&done, true).ends_with("has nothing to write: every setting has the plan's value already")
        );
        let one = Applied { written: ids(1), ..Applied::default() };
        assert!(due(&one, false).ends_with("the write that is due (only root may)"));
        let gone = vec![("test:y".to_owned(), "it is gone".to_owned())];
        let absent = Applied { already: ids(1), refused: gone, ..Applied::default() };
        assert!(due(&absent, true).contains("every setting that is here has"));
    }
}
