//! `quell track --goal`: converts the run to a schedule for `quell simulate`.

use std::path::Path;

use quell_analysis::bench::loggp::preset::Preset;
use quell_analysis::track::{Extrapolation, Replayable, Scaling, goal};
use quell_otf2::Archive;
use quell_recording::atomic_write;
use quell_recording::mpi::Run;
use quell_sim::loggops::{NamedNetwork, Network};

use crate::args::{GoalTarget, ScalingName, Track};
use crate::outcome::Outcome;
use crate::printer::Printer;
use crate::progress::Step;
use crate::steps::schedule_file as schedules;
use quell_request::track::NETWORKS;
use quell_request::{Usage, network};

/// Maximum number of skipped events to list on stderr.
const MAX_LISTED: usize = 8;

const LARGE_S: &str = "give `quell simulate` a network with a large S, such as --net S=1Gi";

/// Makes the schedule, and writes it.
pub fn run(args: &Track, output: &Path, printer: Printer) -> anyhow::Result<Outcome> {
    let target = GoalTarget { output: output.to_owned(), to: None, force: false };
    let format = schedules::form(&target).map_err(|_| {
        Usage(format!("{} does not determine the format: name it NAME.goal or NAME.bin", output.display()))
    })?;
    if output.exists() {
        anyhow::bail!("{} exists already: choose another name, or remove it first", output.display());
    }
    let mut archive = args.options.noise_of(Archive::open(&args.options.archive)?);
    let extrapolation = extrapolation(args);
    let measured = measured_network(args, &archive)?;
    let network = measured.as_ref().map_or_else(|| Network::default().into(), named);
    let made = {
        let step = Step::new(printer, "track", None);
        goal(&mut archive, extrapolation, &network, &mut |events| step.reach(events))?
    };
    let bytes = schedules::write(&made.schedule, format, output)?;
    report(&made, args.scaling, measured.is_some(), printer);
    let network_file = network::traced_with(output);
    if let Some(mut measured) = measured {
        measured.net.eager_limit = made.network.network.eager_limit;
        atomic_write(&network_file, measured.to_toml().map_err(anyhow::Error::msg)?.as_bytes())?;
        printer.status(&format!("{} holds its network: {}", network_file.display(), measured.source));
    } else {
        printer.status(
            "its network was not measured, so `quell simulate` takes LogGOPSim's, which is slow: \
             trace with --network, or measure with `quell bench loggp`",
        );
    }
    printer.status(&format!(
        "{} holds {}: {}; without noise it takes {:.6} s on that network",
        output.display(),
        schedules::size(&made.schedule),
        schedules::bytes(bytes),
        made.quiet_ns as f64 / 1e9
    ));
    printer.status(&format!(
        "next: quell simulate {} --noise NODE.quell --baseline, with a recording of a node by `quell record`",
        output.display()
    ));
    Ok(Outcome::Done)
}

/// The network that was measured on the run's hosts: between hosts if there are several. The network within a host is none for other ranks.
fn measured_network(args: &Track, run: &impl Run) -> anyhow::Result<Option<Preset>> {
    let mut hosts = run.definitions().locations.iter().map(|location| &location.host);
    let first = hosts.next();
    let on_one_host = args.extrapolate.is_none() && hosts.all(|host| Some(host) == first);
    let [intra, inter] = NETWORKS.map(|name| args.options.folder().join(name));
    let path = if on_one_host { intra } else { inter };
    Ok(path.exists().then(|| network::read(&path)).transpose().map_err(Usage)?)
}

fn named(preset: &Preset) -> NamedNetwork {
    NamedNetwork { preset: None, network: preset.net, ranges: preset.ranges.clone() }
}

/// The ranks that are to be extrapolated to, if any.
fn extrapolation(args: &Track) -> Option<Extrapolation> {
    let scaling = match args.scaling {
        ScalingName::Weak => Scaling::Weak,
        ScalingName::Strong => Scaling::Strong,
    };
    let dims = args.dims.as_ref().map(|dims| dims.0.clone());
    args.extrapolate.map(|ranks| Extrapolation { ranks: ranks.0, dims, scaling, seed: args.seed })
}

/// Prints how the schedule differs from the run.
fn report(made: &Replayable, scaling: ScalingName, is_measured: bool, printer: Printer) {
    let skipped = &made.skipped;
    let counts = [
        (skipped.sends, "sends without a receive"),
        (skipped.receives, "receives without a send"),
        (skipped.collectives, "parts of incomplete collectives"),
        (skipped.threads, "threads that are not the first of their rank"),
    ];
    let counted: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !counted.is_empty() {
        printer.warn(&format!("left out: {}", counted.join(", ")));
    }
    for words in skipped.notes.iter().take(MAX_LISTED) {
        printer.warn(words);
    }
    if skipped.notes.len() > MAX_LISTED {
        printer.warn("and more");
    }
    if made.needs_buffers {
        let what = if is_measured { "its network has a larger S than measured" } else { LARGE_S };
        printer.warn(&format!("it ends only if its sends do not wait for their receivers: {what}"));
    }
    if let Some(grid) = &made.grid {
        let sizes = match scaling {
            ScalingName::Weak => "sizes of each rank kept",
            ScalingName::Strong => "less of it and smaller messages for more ranks",
        };
        printer
            .status(&format!("regular: {grid}; work drawn from the traced ranks' at the same step, {sizes}"));
    }
}
