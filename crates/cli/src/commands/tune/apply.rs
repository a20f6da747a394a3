//! `quell tune apply`: a plan is done, so that it can be taken back whatever happens.

use std::process::{Command, ExitCode};
use std::sync::atomic::Ordering;
use std::time::Duration;

use quell_node::tune::Root;
use quell_node::tune::apply::{Applied, ApplyError, Applying, apply};
use quell_node::tune::catalogue::Catalogue;
use quell_node::tune::guard::{Refusal, refusals};
use quell_node::tune::keeper::Until;
use quell_node::tune::place::started;
use quell_node::tune::plan::Plan;
use quell_node::tune::revert::{Foreign, revert};
use schemars::JsonSchema;
use serde::Serialize;

use super::{allowed, need_root, program, read_plan, root};
use crate::args::TuneApply;
use crate::commands::Outcome;
use crate::commands::record::stopped_by_signals;
use crate::commands::replay::Signals;
use crate::plan::{self, Usage};
use crate::printer::{Printer, one_line};

/// What `tune apply --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Application {
    /// `quell.tune-apply/1`.
    schema: &'static str,
    /// The transaction; null where nothing was written.
    transaction: Option<String>,
    /// Whether it was only checked.
    dry_run: bool,
    /// Why it was refused.
    refused: Vec<Refusal>,
    /// Ids of writes that were done.
    written: Vec<String>,
    /// Ids of writes whose value was there already.
    already: Vec<String>,
    /// Ids of writes that the kernel refused, which the plan allows, and why.
    not_taken: Vec<(String, String)>,
    /// When it is taken back by itself.
    until: Option<String>,
}

/// Checks, and with `--yes` applies.
pub fn run(args: &TuneApply, printer: Printer) -> anyhow::Result<ExitCode> {
    let root = root(args.sysroot.as_deref())?;
    let plan = read_plan(&args.plan)?;
    let until = until(args)?;
    let catalogue = Catalogue::with_site(&root.path(crate::args::SITE))?;
    let refused = refusals(&root, &plan, allowed(&args.allow), &catalogue);
    if !refused.is_empty() || !args.yes {
        return dry(args, &plan, refused, printer);
    }
    need_root(&root, "change")?;
    if !args.command.is_empty() {
        return with(args, &root, &plan, printer);
    }
    let applied = applied(&root, &plan, until)?;
    if args.json {
        printer.json(&document(&applied))?;
    } else {
        printer.result(&text(&applied, args))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What ends it.
fn until(args: &TuneApply) -> anyhow::Result<Option<Until>> {
    if let Some(time) = args.time {
        plan::positive(time, "--for")?;
    }
    let process = args.until_pid.map(|pid| {
        let start = started(pid).ok_or_else(|| Usage(format!("--until-pid {pid}: there is no such process")));
        start.map(|start| (pid, start))
    });
    let process = process.transpose()?;
    let after = args.time.map(|time| Duration::from_nanos(time.as_nanos()));
    Ok((after.is_some() || process.is_some()).then_some(Until { after, process }))
}

/// Applies; Ctrl-C takes back what was begun.
pub fn applied(root: &Root, plan: &Plan, until: Option<Until>) -> anyhow::Result<Applied> {
    let stop = stopped_by_signals()?;
    let applying = Applying { program: program()?, until, stopped: &|| stop.load(Ordering::SeqCst) };
    let applied = apply(root, plan, &applying);
    // From here on a signal ends quell as usual.
    stop.store(true, Ordering::SeqCst);
    match applied {
        Err(ApplyError::Store(error)) if error.is_denied() => anyhow::bail!("{error}: only root may apply"),
        other => Ok(other?),
    }
}

/// Says what would be done, and what stands against it.
fn dry(args: &TuneApply, plan: &Plan, refused: Vec<Refusal>, printer: Printer) -> anyhow::Result<ExitCode> {
    let code = if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(3) };
    if args.json {
        let document = Application { dry_run: true, refused, ..document(&Applied::default()) };
        printer.json(&document)?;
        return Ok(code);
    }
    if !args.yes {
        printer.result(&plan.diff())?;
    }
    for refusal in &refused {
        printer.tell(&format!("refused: {refusal}"));
    }
    if refused.is_empty() {
        printer.tell("nothing was written: add --yes to apply it");
    }
    Ok(code)
}

/// Applies, runs the command, gives back. Should quell be killed meanwhile, a keeper gives back.
fn with(args: &TuneApply, root: &Root, plan: &Plan, printer: Printer) -> anyhow::Result<ExitCode> {
    let me = std::process::id();
    let start =
        started(me).ok_or_else(|| anyhow::anyhow!("/proc does not tell when this process started"))?;
    let after = args.time.map(|time| Duration::from_nanos(time.as_nanos()));
    let applied = applied(root, plan, Some(Until { after, process: Some((me, start)) }))?;
    printer.say(text(&applied, args).trim_end());
    let ended = run_command(args);
    let Some(id) = &applied.id else { return ended };
    let reverted = match revert(root, Some(id), Foreign::Keep, "the end of its command") {
        // Its time may have been over before the command's.
        Err(quell_node::tune::revert::RevertError::Unknown(_)) => return ended,
        other => other?,
    };
    printer.say(super::revert::text(&reverted).trim_end());
    match super::revert::outcome(&reverted)? {
        Outcome::Done => ended,
        Outcome::LimitExceeded => ended.map(|_| ExitCode::from(3)),
    }
}

/// Runs the command to its end; signals are its.
fn run_command(args: &TuneApply) -> anyhow::Result<ExitCode> {
    let (program, rest) = args.command.split_first().ok_or_else(|| Usage("--with needs a command".into()))?;
    let signals = Signals::catch()?;
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
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn text(applied: &Applied, args: &TuneApply) -> String {
    let Some(id) = &applied.id else {
        return "nothing to write: all of it is as the plan wants it\n".into();
    };
    let mut text = format!("applied {} writes as {id}\n", applied.written.len());
    if !applied.already.is_empty() {
        text += &format!("{} were so already\n", applied.already.len());
    }
    for (write, why) in &applied.refused {
        text += &format!("not taken: {}: {}\n", one_line(write), one_line(why));
    }
    if let Some(until) =
        applied.keeper.as_ref().and_then(|keeper| keeper.until.as_ref()).filter(|_| !args.with)
    {
        text += &format!("it is taken back at {until}\n");
    }
    if !args.with {
        text += "`quell tune revert` takes it back\n";
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
        not_taken: applied.refused.clone(),
        until: applied.keeper.as_ref().and_then(|keeper| keeper.until.clone()),
    }
}
