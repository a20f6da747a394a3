//! `quell convert`: converts other tools' files to recordings, and back.

pub mod list;
mod lossiness_report;
mod network;
mod otf2;
mod ranks;
mod target;

use std::io::{BufWriter, Write as _};
use std::path::Path;

use quell_analysis::live::{Counters, openmetrics};
use quell_node::leftovers;
use quell_recording::formats::{self, Format, Imported};
use quell_recording::{AtomicFile, Cpu, Error, Method, Recording, State, Writer, add_phases, read_phases};

use self::target::Target;
use crate::args::{Convert, FormatName};
use crate::outcome::Outcome;
use crate::printer::Printer;
use quell_request::Usage;

/// Begin of the names of folders in which recordings and archives are made.
const ASIDE: &str = ".quell-convert-";

/// Reads any known format, writes the requested one, and reports what the new format cannot hold.
pub fn run(args: &Convert, printer: Printer) -> anyhow::Result<Outcome> {
    if args.list {
        list::print(args.json, printer)?;
        return Ok(Outcome::Done);
    }
    let (Some(input), Some(output)) = (&args.input, &args.output) else {
        return Err(Usage("IN and OUT are missing".into()).into());
    };
    convert(&Request { input, output, to: args.to, cpu: args.cpu, rank: args.rank }, printer)?;
    Ok(Outcome::Done)
}

fn convert(args: &Request<'_>, printer: Printer) -> anyhow::Result<()> {
    if network::is_one(args.input)? {
        return network::convert(args, printer);
    }
    let mut input = read(args.input, printer)?;
    let target = Target::from_request(args)?;
    if let Some(cpu) = args.cpu.map(Cpu) {
        keep_cpu(&mut input, cpu, args)?;
    }
    if let Some(rank) = args.rank {
        ranks::keep(&mut input, rank, target, args)?;
    }
    target.check(&input.recording, args)?;
    match target {
        Target::Recording => {
            if args.output.exists() {
                return Err(Error::Exists { path: args.output.to_owned() }.into());
            }
            leftovers::make_aside(args.output, ASIDE, |folder| write_recording(&mut input, folder))?;
        }
        Target::File(format) => export(&input, format, args.output)?,
        Target::Otf2 => {
            must_be_new(args.output)?;
            leftovers::make_aside(args.output, ASIDE, |folder| otf2::write(&input.recording, folder))?;
        }
        Target::OpenMetrics => {
            must_be_new(args.output)?;
            let counters = Counters::from_recording(&input.recording);
            let text = openmetrics(&counters, env!("CARGO_PKG_VERSION"));
            into_file(args.output, |file| file.write_all(text.as_bytes()))?;
        }
    }
    lossiness_report::what_is_left_out(&input, target, args, printer);
    Ok(())
}

fn must_be_new(output: &Path) -> anyhow::Result<()> {
    if output.exists() {
        anyhow::bail!("{} exists already: choose another name, or remove it first", output.display());
    }
    Ok(())
}

/// The request to convert.
struct Request<'a> {
    input: &'a Path,
    output: &'a Path,
    to: Option<FormatName>,
    cpu: Option<u32>,
    rank: Option<u32>,
}

fn keep_cpu(input: &mut Imported, cpu: Cpu, args: &Request<'_>) -> anyhow::Result<()> {
    let recording = &mut input.recording;
    if !recording.threads.is_empty() {
        let text = "--cpu would split the command's threads, which move between CPUs: leave it out";
        return Err(Usage(text.into()).into());
    }
    input.phases.retain(|(of, _)| *of == cpu);
    recording.quanta.retain(|series| series.cpu == cpu);
    recording.traces.retain(|trace| trace.cpu == cpu);
    recording.intervals.retain(|side| side.cpu == cpu);
    recording.histograms.retain(|one| one.cpu == cpu);
    recording.manifest.cpus.retain(|facts| facts.cpu == cpu);
    if recording.manifest.cpus.is_empty() {
        return Err(Usage(format!("{} has no data of CPU {cpu}", args.input.display())).into());
    }
    Ok(())
}

fn read(input: &Path, printer: Printer) -> anyhow::Result<Imported> {
    if input.join("run.json").exists() {
        let text = format!(
            "{} is a run of `quell bench`: convert the recordings of its hosts, which are in it",
            input.display()
        );
        return Err(Usage(text).into());
    }
    if !input.is_dir() || !input.join("manifest.json").exists() {
        let imported = formats::import_all(input)?;
        let warnings = &imported.recording.manifest.warnings;
        warnings.iter().for_each(|warning| printer.warn(&warning.to_string()));
        return Ok(imported);
    }
    let recording = Recording::open(input)?;
    let phases = if recording.manifest.method == Method::Phases { read_phases(input)? } else { Vec::new() };
    Ok(Imported { recording, phases })
}

fn write_recording(input: &mut Imported, output: &Path) -> anyhow::Result<()> {
    let recording = &mut input.recording;
    let manifest = &mut recording.manifest;
    if matches!(manifest.state, State::Recording | State::Failed) {
        // Its spans were read from the progress file, which a finished recording no longer has.
        manifest.state = State::Interrupted;
        manifest.note = Some("converted from a recording that was cut off".into());
    }
    let mpi = manifest.mpi.clone().filter(|_| manifest.method == Method::Phases);
    if mpi.is_some() {
        // They are part of the phases, which are added last.
        recording.quanta.clear();
    }
    let mut writer = Writer::create(output, &recording.manifest)?;
    let copied = copy(recording, &mut writer);
    let manifest = &mut recording.manifest;
    if let Err(error) = copied {
        writer.abandon(manifest, &error);
        return Err(error.into());
    }
    writer.finish(manifest)?;
    if let Some(mpi) = mpi {
        add_phases(output, manifest, mpi, &input.phases)?;
    }
    Ok(())
}

fn copy(recording: &Recording, writer: &mut Writer) -> Result<(), Error> {
    for trace in &recording.traces {
        in_batches(trace.cpu, &trace.detours, |rows| writer.detours(rows))?;
    }
    for series in &recording.quanta {
        in_batches(series.cpu, &series.quanta, |rows| writer.quanta(rows))?;
    }
    for side in &recording.intervals {
        in_batches(side.cpu, &side.intervals, |rows| writer.intervals(rows))?;
    }
    for histogram in &recording.histograms {
        in_batches(histogram.cpu, &histogram.buckets, |rows| writer.histograms(rows))?;
    }
    let cpu = recording.manifest.cpus.first().map_or(Cpu(0), |facts| facts.cpu);
    in_batches(cpu, &recording.threads, |rows| writer.threads(rows))
}

fn in_batches<R: Clone>(
    cpu: Cpu,
    rows: &[R],
    mut write: impl FnMut(&[(Cpu, R)]) -> Result<(), Error>,
) -> Result<(), Error> {
    rows.chunks(1 << 16).try_for_each(|chunk| {
        let batch: Vec<(Cpu, R)> = chunk.iter().map(|row| (cpu, row.clone())).collect();
        write(&batch)
    })
}

fn export(input: &Imported, format: Format, output: &Path) -> anyhow::Result<()> {
    let recording = &input.recording;
    must_be_new(output)?;
    if matches!(format, Format::Vpsum | Format::Psnap) {
        return ranks::export(input, format, output);
    }
    let cpus = recording.traces.len().max(recording.quanta.len());
    if matches!(format, Format::Netgauge | Format::LogGopSim) && cpus != 1 {
        return Err(Usage(format!(
            "netgauge's format holds one CPU and the recording has {cpus}: choose one with --cpu"
        ))
        .into());
    }
    into_file(output, |file| formats::export(recording, format, file))
}

fn into_file(
    output: &Path,
    write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let mut file = AtomicFile::create(output)?;
    let mut buffered = BufWriter::with_capacity(1 << 20, &mut file);
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    Ok(file.commit_new()?)
}
