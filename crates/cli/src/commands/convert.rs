//! `quell convert`: other tools' files into recordings, and back.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use quell_recording::formats::{self, Format};
use quell_recording::{Cpu, Error, Method, Recording, State, Writer};

use super::Outcome;
use crate::args::{Convert, FormatName};
use crate::plan::Usage;
use crate::printer::Printer;

/// Reads whatever it is, writes what was asked for, and says what the new format cannot hold.
pub fn run(args: &Convert, printer: Printer) -> anyhow::Result<Outcome> {
    let mut recording = read(&args.input)?;
    if let Some(cpu) = args.cpu.map(Cpu) {
        recording.traces.retain(|trace| trace.cpu == cpu);
        recording.intervals.retain(|side| side.cpu == cpu);
        recording.manifest.cpus.retain(|facts| facts.cpu == cpu);
        if recording.manifest.cpus.is_empty() {
            return Err(Usage(format!("{} holds nothing of CPU {cpu}", args.input.display())).into());
        }
    }
    if recording.manifest.method != Method::Detour {
        anyhow::bail!(
            "{} holds {}; only detours can be converted",
            args.input.display(),
            recording.manifest.method.holds()
        );
    }
    let extension = args.output.extension().and_then(|e| e.to_str());
    match (args.to, extension) {
        (None, Some("quell")) => write_recording(&mut recording, &args.output)?,
        (Some(FormatName::Csv), _) | (None, Some("csv")) => export(&recording, Format::Csv, &args.output)?,
        _ => export(&recording, Format::Netgauge, &args.output)?,
    }
    say_what_is_left_out(&recording, args, extension, printer);
    Ok(Outcome::Done)
}

fn read(input: &Path) -> anyhow::Result<Recording> {
    Ok(if input.is_dir() { Recording::open(input)? } else { formats::import(input)? })
}

fn write_recording(recording: &mut Recording, output: &Path) -> anyhow::Result<()> {
    let manifest = &mut recording.manifest;
    if matches!(manifest.state, State::Recording | State::Failed) {
        // Its spans were read from the progress file, which a finished recording has no more.
        manifest.state = State::Interrupted;
        manifest.note = Some("converted from a recording that was cut off".into());
    }
    let mut writer = Writer::create(output, manifest)?;
    let copied = copy(recording, &mut writer);
    let manifest = &mut recording.manifest;
    match copied {
        Ok(()) => Ok(writer.finish(manifest)?),
        Err(error) => {
            writer.abandon(manifest, &error);
            Err(error.into())
        }
    }
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

fn export(recording: &Recording, format: Format, output: &Path) -> anyhow::Result<()> {
    if output.exists() {
        anyhow::bail!("{} exists already: choose another name, or remove it first", output.display());
    }
    let traces = &recording.traces;
    if format == Format::Netgauge && traces.len() != 1 {
        return Err(Usage(format!(
            "netgauge's format holds one CPU and the recording has {}: choose one with --cpu",
            traces.len()
        ))
        .into());
    }
    let mut file = BufWriter::new(fs_err::File::create(output)?);
    formats::export(traces, format, &mut file)
        .and_then(|()| file.flush())
        .with_context(|| format!("failed to write {}", output.display()))
}

fn say_what_is_left_out(recording: &Recording, args: &Convert, extension: Option<&str>, printer: Printer) {
    let kept = match (args.to, extension) {
        (None, Some("quell")) => return,
        (Some(FormatName::Csv), _) | (None, Some("csv")) => {
            "the detours; not when each CPU's span ends, the clock, the host"
        }
        _ => "the detours and their span; not the CPU, the clock, the host, nor the wall-clock time",
    };
    let own = recording.traces.iter().flat_map(|t| &t.detours).filter(|d| d.own).count();
    printer.say(&format!("{} holds {kept}", args.output.display()));
    if own > 0 && !kept.starts_with("the detours;") {
        printer.say(&format!("{own} detours of quell's own are left out"));
    }
}
