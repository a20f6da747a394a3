//! A command under replayed noise: run, and told what it suffered.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use quell_analysis::replay::{Process, Replay as Document, Run, SCHEMA, Slowdown, quantile_of_powers};
use quell_node::clock;
use quell_node::injector::calibrate::calibrate;
use quell_node::injector::job::{self, Ended, Loading, Output};
use quell_node::injector::process::{self, Disturbers};
use quell_node::injector::reports::{self, ProcessReport};
use quell_node::injector::{preload, schedule};
use quell_node::machine::Cpus;
use quell_recording::Cpu;
use quell_replay::Launched;
use quell_replay::report::Field;
use quell_replay::schedule::{Context, Schedule};
use quell_sim::Draws;

use super::prepare::{self, Cost, Prepared};
use crate::args::Replay;
use crate::commands::record::stopped_by_signals;
use crate::plan::Usage;
use crate::printer::Printer;
use crate::terminal_replay;

/// What a command under noise came to: the exit code is its own.
pub fn run(args: &Replay, printer: Printer) -> anyhow::Result<u8> {
    if args.command.is_empty() && !args.dry_run {
        return Err(
            Usage("give the command to run after --, or --emulate, --validate or --dry-run".into()).into()
        );
    }
    let context = args.context.map_or_else(|| context_of(&args.command), prepare::of_name);
    let beside = match context {
        Context::Process => Some(beside(args)?),
        _ => None,
    };
    let mut prepared = prepare::prepare(args, context, cost(args, context, beside.as_ref())?, printer)?;
    prepared.order.ranked_only = starts_ranks(&args.command);
    let mut document = Document {
        schema: SCHEMA.into(),
        command: args.command.clone(),
        plan: prepared.plan.clone(),
        warnings: prepared.warnings.clone(),
        ..Document::default()
    };
    if !args.dry_run {
        let folder = Folder::of(args)?;
        let mut job = Job { args, prepared: &mut prepared, beside, folder: &folder.path, runs: Vec::new() };
        let last = job.all()?;
        document.runs = std::mem::take(&mut job.runs);
        document.slowdown = Slowdown::of(&document.runs).filter(|_| args.baseline.is_some());
        document.exit_code = Some(last.ended.code());
        document.processes = last.processes;
        document.warnings.extend(warnings(&document, context));
    }
    if args.json {
        printer.json(&document)?;
    } else {
        printer.say(&terminal_replay::replay(&document));
    }
    document.warnings.iter().for_each(|warning| printer.warn(warning));
    let unheard = !args.dry_run && context != Context::Process && document.processes.is_empty();
    // The command's own code comes first; where it is good, but no noise came in, that is said.
    Ok(document.exit_code.unwrap_or(0).max(if unheard && document.exit_code == Some(0) { 3 } else { 0 }))
}

/// MPI programs are best disturbed at their calls.
fn context_of(command: &[String]) -> Context {
    let ranks = starts_ranks(command) || Launched::here().is_some();
    if ranks || command.is_empty() { Context::Boundary } else { Context::Timer }
}

/// Whether a command starts ranks: a launcher does, and quell itself, where it runs a benchmark or records what does.
fn starts_ranks(command: &[String]) -> bool {
    let own = std::env::current_exe().ok();
    let name = |path: &Path| path.file_name().map(ToOwned::to_owned);
    let Some((program, words)) = command.split_first() else { return false };
    if own.is_none_or(|own| name(&own) != name(Path::new(program))) {
        return job::is_launcher(program);
    }
    let mut parts = words.splitn(2, |word| word == "--");
    let verb = parts.next().and_then(|options| options.iter().find(|word| !word.starts_with('-')));
    verb.is_some_and(|verb| verb == "bench") || parts.next().is_some_and(starts_ranks)
}

/// Which CPUs are disturbed from beside, and which is left alone.
pub struct Beside {
    pub cpus: Vec<Cpu>,
    pub alone: Cpu,
}

/// The CPUs that were asked for, or all but one.
pub fn beside(args: &Replay) -> anyhow::Result<Beside> {
    let machine = Cpus::of_this_machine()?;
    let wanted = args.cpus.as_ref().map(|list| list.0.as_slice());
    if let Some(wanted) = wanted {
        machine.check(wanted).map_err(|error| Usage(error.to_string()))?;
    }
    let (cpus, alone) = process::choose(wanted, &machine.allowed)?;
    Ok(Beside { cpus, alone })
}

/// What one detour costs in this context, here.
pub fn cost(args: &Replay, context: Context, beside: Option<&Beside>) -> anyhow::Result<Cost> {
    let given = args.overhead.map(|overhead| overhead.as_nanos());
    let mut cost = match (context, beside) {
        (Context::Boundary, _) => Cost::default(),
        (_, Some(beside)) => {
            let found = process::calibrate(beside.cpus[0], beside.alone)?;
            Cost {
                overhead_ns: found.overhead_ns,
                early_ns: found.early_ns,
                smallest_gap_ns: found.overhead_ns,
            }
        }
        (_, None) => {
            let found = calibrate(Cpus::of_this_machine()?.allowed.last().copied())?;
            Cost {
                overhead_ns: found.overhead_ns,
                early_ns: found.early_ns,
                smallest_gap_ns: found.apart_ns(),
            }
        }
    };
    cost.overhead_ns = given.unwrap_or(cost.overhead_ns);
    Ok(cost)
}

/// Where schedule and reports are, which may be needed after the end, or not.
pub struct Folder {
    pub path: PathBuf,
    keep: bool,
}

impl Folder {
    /// The one that was asked for, or one that is deleted at the end.
    pub fn of(args: &Replay) -> anyhow::Result<Self> {
        let (path, keep) = match &args.output {
            Some(path) if path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) => {
                let path = path.display();
                return Err(Usage(format!(
                    "{path} is there already, and holds something: name another folder with -o"
                ))
                .into());
            }
            Some(path) => (path.clone(), true),
            // Other hosts see the folder that a job is started in, and rarely /tmp.
            None if starts_ranks(&args.command) => {
                (std::env::current_dir()?.join(format!(".quell-replay-{}", std::process::id())), false)
            }
            None => (std::env::temp_dir().join(format!("quell-replay-{}", std::process::id())), false),
        };
        fs_err::create_dir_all(&path)?;
        Ok(Self { path: std::path::absolute(path)?, keep })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs_err::remove_dir_all(&self.path);
        }
    }
}

/// All runs of a command.
struct Job<'a> {
    args: &'a Replay,
    prepared: &'a mut Prepared,
    beside: Option<Beside>,
    folder: &'a Path,
    runs: Vec<Run>,
}

/// One run.
struct Once {
    ended: Ended,
    processes: Vec<Process>,
}

impl Job<'_> {
    /// Pairs of runs with and without noise in random order, or one run; the last is with noise, and is the one that is heard.
    fn all(&mut self) -> anyhow::Result<Once> {
        let stop = stopped_by_signals()?;
        let heard = if self.args.json { Output::Stderr } else { Output::Own };
        let pairs = self.args.baseline.unwrap_or(0);
        let order = Draws::new(self.args.seed, &[201]);
        for pair in 0..pairs {
            let last = pair + 1 == pairs;
            let noise_first = !last && order.at(u64::from(pair)) & 1 == 1;
            for noise in [noise_first, !noise_first] {
                if last && noise {
                    break;
                }
                self.once(noise, Output::Nowhere, &stop)?;
            }
        }
        let last = self.once(true, heard, &stop)?;
        // From here on a signal ends quell as usual.
        stop.store(true, Ordering::SeqCst);
        Ok(last)
    }

    fn once(&mut self, noise: bool, output: Output, stop: &AtomicBool) -> anyhow::Result<Once> {
        let number = self.runs.len();
        let folder = self.folder.join(format!("run-{number}-{}", if noise { "noise" } else { "quiet" }));
        let reports = folder.join("reports");
        fs_err::create_dir_all(&reports)?;
        self.prepared.order.epoch_ns = clock::realtime_ns();
        let words = self.prepared.words(!noise)?;
        let loading = loading(self.prepared.context, &folder, &reports)?;
        loading.iter().try_for_each(|loading| schedule::write(&loading.schedule, &words))?;
        let program = &self.args.command[0];
        let words = Arc::new(words);
        let beside = self
            .beside
            .as_ref()
            .map(|beside| Disturbers::start(&words, &beside.cpus, beside.alone))
            .transpose()?;
        let ended = job::run(&self.args.command, loading.as_ref(), output, stop)
            .with_context(|| format!("`{program}` cannot be started"))?;
        let schedule = Schedule::of(&words).map_err(|flaw| anyhow::anyhow!(flaw.reason()))?;
        let said = match beside {
            Some(disturbers) => disturbers.end(),
            None => reports::read(&reports)?,
        };
        let processes: Vec<Process> = said.iter().map(|report| suffered(report, &schedule, &words)).collect();
        let mpi_ns = processes.iter().map(|process| process.span_ns).max();
        let mpi_ns = mpi_ns.filter(|_| self.prepared.context == Context::Boundary);
        self.runs.push(Run { noise, wall_ns: ended.wall_ns, mpi_ns });
        anyhow::ensure!(
            output != Output::Nowhere || ended.status.success(),
            "run {} of `{program}`, {} noise, ended with exit code {}: it must do well alone before noise tells anything",
            number + 1,
            if noise { "with" } else { "without" },
            ended.code()
        );
        Ok(Once { ended, processes })
    }
}

/// What a job is to load, in a folder: its library is written, its schedule is not. `None` where a context loads nothing.
pub fn loading(context: Context, folder: &Path, reports: &Path) -> std::io::Result<Option<Loading>> {
    let library = preload::write(context, folder)?;
    let with = |library| Loading { library, schedule: folder.join("schedule"), reports: reports.to_owned() };
    Ok(library.map(with))
}

/// What a process said, beside what its trace held.
fn suffered(report: &ProcessReport, schedule: &Schedule<'_>, words: &[u64]) -> Process {
    let get = |field: Field| report.get(field);
    let span_ns = get(Field::LastNs).saturating_sub(get(Field::BegunNs));
    let entry = schedule.entry(get(Field::Track));
    let trace = entry.and_then(|entry| {
        let place = entry.first as usize..(entry.first + entry.words()) as usize;
        entry.read(words.get(place)?).ok()
    });
    let in_step = schedule.head.sync == quell_replay::schedule::Sync::Phase;
    let trace_ns = trace.filter(|_| !in_step).map_or(0, |track| track.noise_in(get(Field::Place), span_ns));
    Process {
        rank: report.rank(),
        host: report.host.clone(),
        pid: get(Field::Pid),
        node: get(Field::Node),
        cpu: entry.map_or(0, |entry| entry.cpu as u32),
        threads: get(Field::Threads),
        calls: get(Field::Calls),
        burns: get(Field::Burns),
        asked_ns: get(Field::AskedNs),
        took_ns: get(Field::TookNs),
        trace_ns,
        absorbed_ns: get(Field::AbsorbedNs),
        within_ns: get(Field::WithinNs),
        span_ns,
        over_p50_ns: quantile_of_powers(report.histogram(), 0.5),
        over_p99_ns: quantile_of_powers(report.histogram(), 0.99),
        most_over_ns: get(Field::MostOverNs),
        phases: get(Field::Phases),
        used_up: get(Field::UsedUp) != 0,
        missed: get(Field::Missed),
    }
}

/// What a reader must know.
fn warnings(document: &Document, context: Context) -> Vec<String> {
    let processes = &document.processes;
    let mut warnings = Vec::new();
    if processes.is_empty() {
        warnings.push(match context {
            Context::Boundary => "no process called MPI through quell, so no noise came in: it is no MPI program, or MPI is linked into it \
                                  statically; --context timer or process may do"
                .into(),
            _ => "no process took the noise: it is linked statically, or runs with privileges of its own; --context process may do".into(),
        });
    }
    let ranks: Vec<u64> = processes.iter().filter_map(|process| process.rank).collect();
    let highest = ranks.iter().max().map_or(0, |rank| rank + 1);
    let missing = (0..highest).filter(|rank| !ranks.contains(rank)).count();
    if missing > 0 {
        warnings.push(format!(
            "{missing} of {highest} ranks did not report, and may have run without noise: does every host see the folder? Name one that it does with -o"
        ));
    }
    if let Some(used) = processes.iter().find(|process| process.used_up) {
        let rank = used.rank.map_or(String::new(), |rank| format!("rank {rank} and perhaps others "));
        warnings.push(format!("{rank}used up the share of the trace, and ran without noise from then on"));
    }
    let missed: u64 = processes.iter().map(|process| process.missed).sum();
    if missed > 0 {
        warnings.push(format!("{missed} threads were beyond reach, and ran without noise"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    #[test]
    fn quell_itself_starts_ranks_only_for_benchmarks_and_launchers() {
        let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
        let of = |text: &str| {
            starts_ranks(&text.replace("QUELL", &own).split(' ').map(str::to_owned).collect::<Vec<_>>())
        };
        for ranks in ["mpirun -n 2 ./app", "QUELL -q bench bsp", "QUELL record -o x -- srun ./app"] {
            assert!(of(ranks), "{ranks}");
        }
        for one in
            ["./app", "QUELL record -q --cpus 1", "QUELL record -o bench", "QUELL record -- ./app", "QUELL"]
        {
            assert!(!of(one), "{one}");
        }
        assert!(!starts_ranks(&[]));
    }
}
