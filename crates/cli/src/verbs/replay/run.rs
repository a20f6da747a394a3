//! Runs a command under replayed noise, and reports the noise that it had.

use std::io::{ErrorKind, IsTerminal as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use quell_analysis::Warning;
use quell_analysis::replay::{Process, Replay as Document, Run, SCHEMA, Slowdown};
use quell_node::clock;
use quell_node::injector::job::{self, Ended, Input, Loading, Output, RunOptions};
use quell_node::injector::process::Disturbers;
use quell_node::injector::{reports, schedule};
use quell_recording::format_cpu_list;
use quell_replay::schedule::{Context, Schedule};
use quell_sim::Draws;

use super::prepare::{self, Prepared};
use super::process_reports;
use super::setting::{self, DisturbedCpus, Folder};
use crate::args::Replay;
use crate::printer::{Printer, one_line};
use crate::progress::Step;
use crate::render;
use crate::signals::Signals;
use crate::values::replay::SCALE;
use quell_request::Usage;

/// The exit code after an interrupt, as in a shell.
const INTERRUPTED: u8 = 130;
/// The exit codes of a command that does not exist, and of one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Runs a command under noise; returns the command's exit code.
pub fn run(args: &Replay, printer: Printer) -> anyhow::Result<u8> {
    if args.command.is_empty() && !args.dry_run {
        return Err(
            Usage("give the command to run after --, or --emulate, --validate or --dry-run".into()).into()
        );
    }
    let context = setting::context(args, printer)?;
    if args.cpus.is_some() && context != Context::Process {
        return Err(Usage(
            "--cpus needs --context process: in other contexts the noise follows the program".into(),
        )
        .into());
    }
    let folder = if args.dry_run { None } else { Some(Folder::from_args(args)?) };
    let disturbed = match context {
        Context::Process => Some(setting::disturbed(args)?),
        _ => None,
    };
    if let Some(DisturbedCpus { cpus, alone }) = &disturbed {
        printer.status(&format!("quell disturbs CPUs {}, but not CPU {alone}", format_cpu_list(cpus)));
    }
    let cost = |period_ns| setting::cost(args, context, disturbed.as_ref(), period_ns);
    let mut prepared = prepare::prepare(args, context, &cost, printer)?;
    prepared.order.ranked_only = setting::starts_ranks(&args.command);
    let mut document = Document {
        schema: SCHEMA.into(),
        command: args.command.clone(),
        plan: prepared.plan.clone(),
        warnings: prepared.warnings.clone(),
        ..Document::default()
    };
    if prepared.plan.detours > 0 && prepared.plan.kept == 0 {
        document.warnings.push(Warning::NothingInjectable);
    }
    let Some(folder) = folder else {
        return finish(args, &document, context, printer);
    };
    let input = input(args, printer);
    let mut job =
        Job { args, prepared: &mut prepared, disturbed, folder: &folder.path, input, runs: Vec::new() };
    let last = match job.all(printer) {
        Ok(last) => last,
        Err(error) => {
            let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            folder.give_up();
            return match kind {
                Some(kind) => {
                    printer.error(&error);
                    Ok(if kind == ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED })
                }
                None => Err(error),
            };
        }
    };
    let words = if last.cut_short { job.last_words() } else { String::new() };
    document.runs = std::mem::take(&mut job.runs);
    document.slowdown = Slowdown::from_runs(&document.runs).filter(|_| args.baseline.is_some());
    document.exit_code = Some(last.ended.code());
    if last.cut_short {
        let (code, run) = (last.ended.code(), document.runs.len() as u64 + 1);
        document.warnings.push(Warning::RunEnded { run, exit_code: code.into(), stderr: words });
        document.exit_code = Some(if code == 0 { INTERRUPTED } else { code });
    } else {
        document.processes = last.processes;
    }
    document.warnings.extend(process_reports::warnings(&document, context, prepared.order.sync));
    if args.output.is_some() {
        let text = serde_json::to_string_pretty(&document)? + "\n";
        fs_err::write(folder.path.join("replay.json"), text)?;
    }
    finish(args, &document, context, printer)
}

/// Prints the document, and returns the command's exit code; 3 if the command succeeded and no noise was injected.
fn finish(args: &Replay, document: &Document, context: Context, printer: Printer) -> anyhow::Result<u8> {
    if args.json {
        printer.json(document)?;
    } else if args.dry_run {
        printer.result(&render::replay::plan(document))?;
    } else {
        printer.notice(&render::replay::replay(document));
    }
    document.warnings.iter().for_each(|warning| printer.warn(&warning.to_string()));
    let nothing = document.plan.detours > 0 && document.plan.kept == 0;
    let unheard = !args.dry_run && context != Context::Process && document.processes.is_empty();
    Ok(match document.exit_code.unwrap_or(0) {
        0 if nothing || unheard => 3,
        code => code,
    })
}

/// All runs of a command.
struct Job<'a> {
    args: &'a Replay,
    prepared: &'a mut Prepared,
    disturbed: Option<DisturbedCpus>,
    folder: &'a Path,
    input: Input,
    runs: Vec<Run>,
}

/// One run.
struct Once {
    ended: Ended,
    processes: Vec<Process>,
    /// Whether it ended a series of runs early.
    cut_short: bool,
}

impl Job<'_> {
    /// Pairs of runs with and without noise in random order, or a single run. The last run has noise, and is the only one whose output is
    /// shown.
    fn all(&mut self, printer: Printer) -> anyhow::Result<Once> {
        let signals = Signals::catch()?;
        let pairs = self.args.baseline.unwrap_or(0);
        let order = Draws::new(self.args.job.seed, &[201]);
        let step = (pairs > 0).then(|| Step::long(printer, "replay", Some(2 * u64::from(pairs))));
        for pair in 0..pairs {
            let last = pair + 1 == pairs;
            let noise_first = !last && order.at(u64::from(pair)) & 1 == 1;
            for noise in [noise_first, !noise_first] {
                if last && noise {
                    break;
                }
                let once = self.once(noise, false, &signals)?;
                if signals.stopped() || !once.ended.status.success() {
                    // Half a pair gives no difference.
                    self.runs.pop();
                    return Ok(Once { cut_short: true, ..once });
                }
                step.iter().for_each(|step| step.reach(self.runs.len() as u64));
            }
        }
        drop(step);
        self.once(true, true, &signals)
    }

    fn once(&mut self, noise: bool, heard: bool, signals: &Signals) -> anyhow::Result<Once> {
        let number = self.runs.len();
        let folder = self.folder.join(format!("run-{number:04}-{}", if noise { "noise" } else { "quiet" }));
        let reports = folder.join("reports");
        fs_err::create_dir_all(&reports)?;
        self.prepared.order.epoch_ns = clock::realtime_ns();
        let words = Arc::new(self.prepared.words(!noise)?);
        let loading = setting::loading(self.prepared.context, &folder, &reports)?;
        loading.iter().try_for_each(|_| schedule::write(&setting::schedule_in(&folder), &words))?;
        let printed = folder.join("stderr");
        let (ended, reported) = {
            let start =
                |disturbed: &DisturbedCpus| Disturbers::start(&words, &disturbed.cpus, disturbed.alone);
            let disturbers = self.disturbed.as_ref().map(start).transpose()?;
            let output = match (heard, self.args.json) {
                (false, _) => Output::File(&printed),
                (true, false) => Output::Own,
                (true, true) => Output::Stderr,
            };
            let ended = self.start(loading.as_ref(), output, signals)?;
            (ended, disturbers.map(Disturbers::end))
        };
        let reported = reported.map_or_else(|| reports::read(&reports), Ok)?;
        let schedule = Schedule::from_words(&words).map_err(|flaw| anyhow::anyhow!(flaw.reason()))?;
        let processes: Vec<Process> =
            reported.iter().map(|report| process_reports::process(report, &schedule, &words)).collect();
        let mpi_ns = processes.iter().map(|process| process.span_ns).max();
        let mpi_ns = mpi_ns.filter(|_| self.prepared.context == Context::Boundary);
        self.runs.push(Run { noise, wall_ns: ended.wall_ns, mpi_ns });
        Ok(Once { ended, processes, cut_short: false })
    }

    fn start(
        &self,
        loading: Option<&Loading>,
        output: Output<'_>,
        signals: &Signals,
    ) -> anyhow::Result<Ended> {
        let command = &self.args.command;
        let mut variables = loading.map(|loading| loading.variables(command)).unwrap_or_default();
        variables.push((SCALE, self.prepared.plan.scale.to_string().into()));
        let words = loading.map_or_else(|| command.clone(), |loading| loading.taken_along(command));
        let how = RunOptions { variables: &variables, input: self.input, output };
        job::run(&words, &how, &signals.pass).with_context(|| format!("`{}` cannot be started", command[0]))
    }

    /// The last lines that the last run with hidden output wrote to stderr.
    fn last_words(&self) -> String {
        let number = self.runs.len();
        let kinds = ["noise", "quiet"].map(|kind| self.folder.join(format!("run-{number:04}-{kind}/stderr")));
        let text = kinds.iter().find_map(|path| fs_err::read(path).ok()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        one_line(&lines[lines.len().saturating_sub(4)..].join(" | "))
    }
}

/// The standard input of the command: quell's own, re-read for each of several runs, or nothing if it can be read only once.
fn input(args: &Replay, printer: Printer) -> Input {
    if args.baseline.is_none() || std::io::stdin().is_terminal() {
        return Input::Own;
    }
    match std::fs::metadata("/proc/self/fd/0").map(|facts| facts.file_type()) {
        Ok(kind) if kind.is_file() => Input::Again,
        Ok(kind) if kind.is_fifo() || kind.is_socket() => {
            printer
                .status("a pipe can be read only once, so the runs get no input; redirect a file with `<`");
            Input::None
        }
        _ => Input::None,
    }
}
