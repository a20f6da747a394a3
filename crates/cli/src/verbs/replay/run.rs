//! Runs a command under replayed noise, and reports the noise that it had.

use std::io::{ErrorKind, IsTerminal as _};
use std::num::NonZeroU64;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use quell_analysis::Warning;
use quell_analysis::interleaved::{FEWEST_PAIRS, Interleaved};
use quell_analysis::replay::{Process, Replay as Document, Run, SCHEMA, Slowdown};
use quell_node::clock;
use quell_node::injector::job::{self, Ended, Input, Output, RunOptions};
use quell_node::injector::passing::{Loading, Passed};
use quell_node::injector::process::Disturbers;
use quell_node::injector::{reports, schedule};
use quell_recording::{Nanos, atomic_write, format_cpu_list};
use quell_replay::schedule::{Blocks, Context, Schedule};
use quell_sim::Draws;

use super::prepare::{self, Prepared};
use super::process_reports;
use super::setting::{self, DisturbedCpus, Folder};
use crate::args::Replay;
use crate::printer::{Printer, one_line};
use crate::progress::Step;
use crate::render;
use crate::signals::Signals;
use crate::values::replay::{BlockText, SCALE};
use quell_request::Usage;

/// Maximum number of blocks that a rank logs: some 100 minutes of the usual ones.
const MOST_BLOCKS: u64 = 1 << 16;
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
    if args.interleave.is_some() && context != Context::Boundary {
        return Err(Usage(format!(
            "--interleave needs --context boundary: with {} quell does not see the end of a phase",
            prepare::name(context)
        ))
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
    let mut job = Job {
        args,
        prepared: &mut prepared,
        disturbed,
        folder: &folder.path,
        input,
        runs: Vec::new(),
        printer,
    };
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
    // A run that failed half-way took no time that could be compared.
    let compares = args.baseline.is_some() && last.ended.status.success() && !last.cut_short;
    document.slowdown = Slowdown::from_runs(&document.runs).filter(|_| compares);
    document.exit_code = Some(last.ended.code());
    if let Some(found) = last.interleaved {
        match found {
            Ok(interleaved) => document.interleaved = Some(interleaved),
            Err(warning) if last.ended.status.success() => document.warnings.push(warning),
            // A command that failed says why itself.
            Err(_) => {}
        }
    }
    if last.cut_short {
        let (code, run) = (last.ended.code(), document.runs.len() as u64 + 1);
        document.warnings.push(Warning::RunEnded { run, exit_code: code.into(), stderr: words });
        document.exit_code = Some(if code == 0 { INTERRUPTED } else { code });
    } else {
        document.processes = last.processes;
    }
    document.warnings.extend(process_reports::warnings(
        &document,
        last.launched,
        context,
        prepared.order.sync,
    ));
    if args.output.is_some() {
        let text = serde_json::to_string_pretty(&document)? + "\n";
        atomic_write(&folder.path.join("replay.json"), text.as_bytes())?;
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
    let unresolved = args.interleave.is_some() && !args.dry_run && document.interleaved.is_none();
    Ok(match document.exit_code.unwrap_or(0) {
        0 if nothing || unheard || unresolved => 3,
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
    printer: Printer,
}

/// One run.
struct Once {
    ended: Ended,
    processes: Vec<Process>,
    /// Number of ranks that a launcher started, as the processes report it.
    launched: u64,
    /// Its slowdown, or why there is none, if it was interleaved.
    interleaved: Option<Result<Interleaved, Warning>>,
    /// Whether it ended a series of runs early.
    cut_short: bool,
}

impl Job<'_> {
    /// Pairs of runs with and without noise in random order, or a single run. The last run has noise, and is the only one whose output is
    /// shown.
    fn all(&mut self, printer: Printer) -> anyhow::Result<Once> {
        let signals = Signals::catch()?;
        if let Some(block) = self.args.interleave {
            return self.interleaved(block, &signals, printer);
        }
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

    /// A run with noise in one of each two blocks. If they are to last a time, a run without noise counts the phases first.
    fn interleaved(&mut self, block: BlockText, signals: &Signals, printer: Printer) -> anyhow::Result<Once> {
        let seed = self.args.job.seed;
        let block = match block {
            BlockText::Phases(phases) => {
                self.prepared.order.blocks = Some(Blocks { phases, seed });
                self.prepared.order.events = MOST_BLOCKS;
                return self.once(true, true, signals);
            }
            BlockText::Time(block) => block,
        };
        printer.status("running the command without noise, to count its phases");
        let counted = self.once(false, false, signals)?;
        if signals.stopped() || !counted.ended.status.success() {
            self.runs.pop();
            return Ok(Once { cut_short: true, ..counted });
        }
        let phases = counted.processes.iter().map(|process| process.phases).max().unwrap_or(0);
        let span_ns = counted.processes.iter().map(|process| process.span_ns).max().unwrap_or(0);
        let each = block_phases(phases, span_ns, block);
        printer.status(&format!(
            "it has {phases} phases in {}: noise in one of each two blocks of {each}",
            Nanos::from_nanos(span_ns)
        ));
        self.prepared.order.blocks = Some(Blocks { phases: each, seed });
        self.prepared.order.events = MOST_BLOCKS;
        self.once(true, true, signals)
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
        let interleaved =
            schedule.head.blocks().map(|blocks| process_reports::interleaved(&reported, blocks));
        let launched = process_reports::launched(&reported);
        let mpi_ns = processes.iter().map(|process| process.span_ns).max();
        let mpi_ns = mpi_ns.filter(|_| self.prepared.context == Context::Boundary);
        self.runs.push(Run { noise, wall_ns: ended.wall_ns, mpi_ns });
        Ok(Once { ended, processes, launched, interleaved, cut_short: false })
    }

    fn start(
        &self,
        loading: Option<&Loading>,
        output: Output<'_>,
        signals: &Signals,
    ) -> anyhow::Result<Ended> {
        let command = &self.args.command;
        let as_it_is = || Passed { words: command.clone(), variables: Vec::new(), doubts: Vec::new() };
        let Passed { words, mut variables, doubts } =
            loading.map_or_else(as_it_is, |loading| loading.passed(command));
        if self.runs.is_empty() {
            doubts.iter().for_each(|doubt| self.printer.warn(&doubt.to_string()));
        }
        variables.push((SCALE, self.prepared.plan.scale.to_string().into()));
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

/// Number of phases in blocks of about this length, of which the run has enough for a slowdown, if it has that many phases.
fn block_phases(phases: u64, span_ns: u64, block: Nanos) -> NonZeroU64 {
    // Twice as many pairs as there must be: a run under noise may be unlike the one that was counted.
    let most = phases / (4 * FEWEST_PAIRS as u64 + 1);
    let wanted = (phases as f64 * block.as_nanos() as f64 / span_ns.max(1) as f64).round() as u64;
    NonZeroU64::new(wanted.min(most)).unwrap_or(NonZeroU64::MIN)
}

/// The standard input of the command: quell's own, re-read for each of several runs, or nothing if it can be read only once.
fn input(args: &Replay, printer: Printer) -> Input {
    if (args.baseline.is_none() && args.interleave.is_none()) || std::io::stdin().is_terminal() {
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
