//! `quell convert`: other tools' files into recordings, and back.

mod ranks;
mod said;

use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use quell_recording::formats::{self, Format, Imported};
use quell_recording::{Cpu, Error, Method, Recording, State, Writer, add_phases, read_phases};

use super::Outcome;
use crate::args::{Convert, FormatName};
use crate::plan::Usage;
use crate::printer::Printer;

/// Reads whatever it is, writes what was asked for, and says what the new format cannot hold.
pub fn run(args: &Convert, printer: Printer) -> anyhow::Result<Outcome> {
    let mut input = read(&args.input, printer)?;
    let target = Target::of(args);
    if let Some(cpu) = args.cpu.map(Cpu) {
        keep_cpu(&mut input, cpu, args)?;
    }
    if let Some(rank) = args.rank {
        ranks::keep(&mut input, rank, target, args)?;
    }
    target.check(&input.recording, args)?;
    match target {
        Target::Recording => write_recording(&mut input, &args.output)?,
        Target::File(format) => export(&input, format, &args.output)?,
    }
    said::what_is_left_out(&input, target, args, printer);
    Ok(Outcome::Done)
}

/// What to write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Recording,
    File(Format),
}

impl Target {
    fn of(args: &Convert) -> Self {
        match (args.to, args.output.extension().and_then(|extension| extension.to_str())) {
            (None, Some("quell")) => Self::Recording,
            (Some(FormatName::Csv), _) | (None, Some("csv")) => Self::File(Format::Csv),
            (Some(FormatName::Perfetto), _) | (None, Some("pftrace" | "perfetto-trace")) => {
                Self::File(Format::Perfetto)
            }
            (Some(FormatName::Vpsum), _) | (None, Some("vpsum")) => Self::File(Format::Vpsum),
            (Some(FormatName::Psnap), _) | (None, Some("psnap")) => Self::File(Format::Psnap),
            _ => Self::File(Format::Netgauge),
        }
    }

    /// Whether it has room for what the recording holds.
    fn check(self, recording: &Recording, args: &Convert) -> anyhow::Result<()> {
        let method = recording.manifest.method;
        let room = match self {
            Self::Recording | Self::File(Format::Perfetto) => true,
            Self::File(Format::Csv) => method == Method::Detour,
            Self::File(Format::Netgauge) => matches!(method, Method::Detour | Method::Fwq | Method::Ftq),
            Self::File(Format::Vpsum | Format::Psnap) => method == Method::Phases,
        };
        let others = match method {
            Method::Detour => "a recording, CSV, netgauge's format and",
            Method::Fwq | Method::Ftq => "a recording, netgauge's format and",
            Method::Kernel => "a recording and",
            Method::Phases => "a recording, vpsum (--to vpsum), PSNAP (--to psnap) and",
        };
        if !room {
            anyhow::bail!(
                "{} holds {}; only {others} a Perfetto timeline (--to perfetto) have room for that",
                args.input.display(),
                method.holds()
            );
        }
        Ok(())
    }
}

fn keep_cpu(input: &mut Imported, cpu: Cpu, args: &Convert) -> anyhow::Result<()> {
    let recording = &mut input.recording;
    if !recording.threads.is_empty() {
        let text = "--cpu would cut the command's threads in two, which move between CPUs: leave it out";
        return Err(Usage(text.into()).into());
    }
    input.phases.retain(|(of, _)| *of == cpu);
    recording.quanta.retain(|series| series.cpu == cpu);
    recording.traces.retain(|trace| trace.cpu == cpu);
    recording.intervals.retain(|side| side.cpu == cpu);
    recording.manifest.cpus.retain(|facts| facts.cpu == cpu);
    if recording.manifest.cpus.is_empty() {
        return Err(Usage(format!("{} holds nothing of CPU {cpu}", args.input.display())).into());
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
        imported.recording.manifest.warnings.iter().for_each(|warning| printer.warn(warning));
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
        // Its spans were read from the progress file, which a finished recording has no more.
        manifest.state = State::Interrupted;
        manifest.note = Some("converted from a recording that was cut off".into());
    }
    let mpi = manifest.mpi.clone().filter(|_| manifest.method == Method::Phases);
    if mpi.is_some() {
        // They are a part of the phases, which come last.
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
    if output.exists() {
        anyhow::bail!("{} exists already: choose another name, or remove it first", output.display());
    }
    if matches!(format, Format::Vpsum | Format::Psnap) {
        return ranks::export(input, format, output);
    }
    let cpus = recording.traces.len().max(recording.quanta.len());
    if format == Format::Netgauge && cpus != 1 {
        return Err(Usage(format!(
            "netgauge's format holds one CPU and the recording has {cpus}: choose one with --cpu"
        ))
        .into());
    }
    into_file(output, |file| formats::export(recording, format, file))
}

fn into_file(
    output: &Path,
    write: impl FnOnce(&mut BufWriter<fs_err::File>) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let mut file = BufWriter::new(fs_err::File::create(output)?);
    write(&mut file)
        .and_then(|()| file.flush())
        .with_context(|| format!("failed to write {}", output.display()))
}
