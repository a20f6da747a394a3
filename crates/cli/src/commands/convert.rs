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
        if !recording.threads.is_empty() {
            let text = "--cpu would cut the command's threads in two, which move between CPUs: leave it out";
            return Err(Usage(text.into()).into());
        }
        recording.quanta.retain(|series| series.cpu == cpu);
        recording.traces.retain(|trace| trace.cpu == cpu);
        recording.intervals.retain(|side| side.cpu == cpu);
        recording.manifest.cpus.retain(|facts| facts.cpu == cpu);
        if recording.manifest.cpus.is_empty() {
            return Err(Usage(format!("{} holds nothing of CPU {cpu}", args.input.display())).into());
        }
    }
    let target = Target::of(args);
    if matches!(target, Target::File(Format::Csv | Format::Netgauge))
        && recording.manifest.method != Method::Detour
    {
        anyhow::bail!(
            "{} holds {}; only a recording and a Perfetto timeline (--to perfetto) have room for that",
            args.input.display(),
            recording.manifest.method.holds()
        );
    }
    match target {
        Target::Recording => write_recording(&mut recording, &args.output)?,
        Target::File(format) => export(&recording, format, &args.output)?,
    }
    say_what_is_left_out(&recording, target, args, printer);
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
            _ => Self::File(Format::Netgauge),
        }
    }
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
    let cpus = recording.traces.len();
    if format == Format::Netgauge && cpus != 1 {
        return Err(Usage(format!(
            "netgauge's format holds one CPU and the recording has {cpus}: choose one with --cpu"
        ))
        .into());
    }
    let mut file = BufWriter::new(fs_err::File::create(output)?);
    formats::export(recording, format, &mut file)
        .and_then(|()| file.flush())
        .with_context(|| format!("failed to write {}", output.display()))
}

fn say_what_is_left_out(recording: &Recording, target: Target, args: &Convert, printer: Printer) {
    let output = args.output.display();
    let kept = match target {
        Target::Recording => return,
        Target::File(Format::Perfetto) => return say_what_is_on_the_timeline(recording, args, printer),
        Target::File(Format::Csv) => "the detours; not when each CPU's span ends, the clock, the host",
        Target::File(Format::Netgauge) => {
            "the detours and their span; not the CPU, the clock, the host, nor the wall-clock time"
        }
    };
    printer.say(&format!("{output} holds {kept}"));
    let own = recording.traces.iter().flat_map(|t| &t.detours).filter(|d| d.own).count();
    if own > 0 && target == Target::File(Format::Netgauge) {
        printer.say(&format!("{own} detours of quell's own are left out"));
    }
}

fn say_what_is_on_the_timeline(recording: &Recording, args: &Convert, printer: Printer) {
    let manifest = &recording.manifest;
    let detours: usize = recording.traces.iter().map(|trace| trace.detours.len()).sum();
    let quanta: usize = recording.quanta.iter().map(|series| series.quanta.len()).sum();
    let intervals: usize = recording.intervals.iter().map(|side| side.intervals.len()).sum();
    let counts = [(detours, "detours"), (quanta, "quanta"), (intervals, "kernel intervals")];
    let held: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let held =
        if held.is_empty() { "nothing but when each CPU was watched".to_owned() } else { held.join(", ") };
    printer.say(&format!("{} holds {held}; open it at https://ui.perfetto.dev", args.output.display()));
    if intervals == 0 {
        let why = manifest.sources.as_ref().and_then(|sources| sources.unknown_because.as_deref());
        printer.warn(&format!(
            "sources are unknown: {}",
            why.unwrap_or("the recording holds no kernel intervals")
        ));
    }
    if manifest.zero_monotonic_ns.is_none() {
        printer.warn("its times count from the recording's zero: what CLOCK_MONOTONIC was then is not known");
    }
    let lost = manifest.lost().saturating_add(manifest.sources.as_ref().map_or(0, |sources| sources.lost));
    if lost > 0 {
        printer.warn(&format!("{lost} rows were lost while recording and are not on the timeline"));
    }
}
