//! `quell example`: the files that the documentation's commands use. It is not among the verbs, because it uses several of them.

use std::path::Path;

use anyhow::Context as _;
use quell_recording::formats::{self, Format as FileFormat};
use quell_recording::{AtomicFile, Nanos, Recording};
use quell_sim::goal::Format;
use quell_sim::pattern::{Params, by_name};
use rayon::prelude::*;

use crate::args::{Example, FaultScenario, GenerateFleet, GenerateRun};
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;
use crate::steps::schedule_file;
use crate::verbs::{generate_fleet, generate_run, goal};

/// Number of CPUs of a computed node, and of its ticks per second.
const CPUS: u32 = 4;
const TICK_HZ: u32 = 250;
/// Number of nodes of the fleet.
const NODES: u64 = 12;

/// A file or folder: its name, what it is, and a command to try on it.
struct Made {
    name: &'static str,
    what: &'static str,
    command: &'static str,
    make: fn(&Path) -> anyhow::Result<()>,
}

const FILES: [Made; 10] = [
    Made {
        name: "a.quell",
        what: "a healthy node of four CPUs, 10 s",
        command: "quell show a.quell --by source",
        make: |path| node(path, 1, None),
    },
    Made {
        name: "b.quell",
        what: "another one",
        command: "quell compare a.quell b.quell",
        make: |path| node(path, 2, None),
    },
    Made {
        name: "node.quell",
        what: "a node with a daemon, 10 ms every 2 s",
        command: "quell advise node.quell --ranks 4096",
        make: |path| node(path, 1, Some(FaultScenario::Daemon)),
    },
    Made {
        name: "before.quell",
        what: "a node with twice as many ticks",
        command: "quell compare before.quell after.quell",
        make: |path| node(path, 1, Some(FaultScenario::TicksOften)),
    },
    Made {
        name: "after.quell",
        what: "the same with the usual ticks",
        command: "quell predict after.quell",
        make: |path| node(path, 2, None),
    },
    Made {
        name: "runs",
        what: "twelve nodes, one of them with a fault",
        command: "quell show runs",
        make: nodes,
    },
    Made { name: "run", what: "an MPI run of eight ranks", command: "quell track run", make: mpi_run },
    Made {
        name: "app.goal",
        what: "a message schedule, as text",
        command: "quell simulate app.goal --noise a.quell",
        make: |path| schedule(path, Format::Text),
    },
    Made {
        name: "app.bin",
        what: "the same, as LogGOPSim reads it",
        command: "quell goal check app.bin",
        make: |path| schedule(path, Format::Binary),
    },
    Made {
        name: "selfish.txt",
        what: "a file of netgauge",
        command: "quell convert selfish.txt selfish.quell",
        make: selfish,
    },
];

/// Makes the folder and all files in it, and prints what to try on each.
pub fn run(args: &Example, printer: Printer) -> anyhow::Result<Outcome> {
    let folder = &args.folder;
    if folder.is_dir() {
        anyhow::ensure!(
            fs_err::read_dir(folder)?.next().is_none(),
            "{} is not empty: give a folder that is new or empty",
            folder.display()
        );
    } else {
        fs_err::create_dir(folder)?;
    }
    let step = Step::new(printer, "example", Some(FILES.len() as u64));
    for (done, file) in (1..).zip(&FILES) {
        (file.make)(&folder.join(file.name))?;
        step.reach(done);
    }
    drop(step);
    let mut text = format!("{} has what the documentation's commands use. Try there:\n\n", folder.display());
    for Made { name, what, command, .. } in &FILES {
        text += &format!("  {name:<14}{what:<40}{command}\n");
    }
    printer.result(&text)?;
    Ok(Outcome::Done)
}

fn node(path: &Path, seed: u64, fault: Option<FaultScenario>) -> anyhow::Result<()> {
    let ways = fault.into_iter().collect();
    generate_fleet::one(&fleet(path, 1, Nanos::from_secs(10), seed, ways), 0, path)?;
    Ok(())
}

fn nodes(path: &Path) -> anyhow::Result<()> {
    let fleet = fleet(path, NODES, Nanos::from_secs(5), 1, vec![FaultScenario::Daemon]);
    fs_err::create_dir(path)?;
    (0..NODES).into_par_iter().try_for_each(|index| {
        generate_fleet::one(&fleet, index, &path.join(format!("{}.quell", generate_fleet::name(index))))
            .map(|_| ())
    })
}

fn fleet(output: &Path, nodes: u64, duration: Nanos, seed: u64, ways: Vec<FaultScenario>) -> GenerateFleet {
    let ill = u64::from(!ways.is_empty());
    let (output, cpus, tick_hz) = (output.to_owned(), CPUS, TICK_HZ);
    GenerateFleet { output, nodes, ill, ways, duration, cpus, tick_hz, no_sources: false, seed }
}

fn mpi_run(path: &Path) -> anyhow::Result<()> {
    let micros = |us: u64| Nanos::from_nanos(1_000 * us);
    generate_run::write(&GenerateRun {
        output: path.to_owned(),
        ranks: 8,
        phases: 200,
        quantum: micros(1_000),
        sync: micros(5),
        period: micros(1_000),
        detour: micros(20),
        seed: 1,
    })?;
    Ok(())
}

fn schedule(path: &Path, format: Format) -> anyhow::Result<()> {
    let steps = by_name("dissemination", &Params { ranks: 16, ..Params::default() })?;
    schedule_file::write(&goal::build(&steps)?, format, path)?;
    Ok(())
}

/// A recording of one CPU in netgauge's format.
fn selfish(path: &Path) -> anyhow::Result<()> {
    let healthy = path.with_file_name(FILES[0].name);
    let mut recording = Recording::open(&healthy)?;
    recording.traces.truncate(1);
    let mut file = AtomicFile::create(path)?;
    formats::export(&recording, FileFormat::Netgauge, &mut file)
        .with_context(|| path.display().to_string())?;
    Ok(file.commit_new()?)
}
