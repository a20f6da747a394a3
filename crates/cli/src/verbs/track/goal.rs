//! `quell track --goal`: converts the run to a schedule for `quell simulate`.

use std::path::Path;

use quell_analysis::bench::loggp::preset::Preset;
use quell_analysis::track::{Extrapolation, Replayable, Scaling, goal};
use quell_otf2::Archive;
use quell_recording::atomic_write;
use quell_recording::mpi::{Location, Run};
use quell_sim::loggops::{Level, NamedNetwork};

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
    let network = measured.as_ref().map_or_else(|| network::DEFAULT.named(), named);
    let made = {
        let step = Step::new(printer, "track", None);
        goal(&mut archive, extrapolation, &network, &mut |events| step.reach(events))?
    };
    let bytes = schedules::write(&made.schedule, format, output)?;
    report(&made, args.scaling, measured.is_some(), printer);
    let network_file = network::traced_with(output);
    if let Some(mut measured) = measured {
        measured.net.eager_limit = made.network.network.eager_limit;
        measured.levels.clone_from(&made.network.levels);
        atomic_write(&network_file, measured.to_toml().map_err(anyhow::Error::msg)?.as_bytes())?;
        printer.status(&format!("{} holds its network: {}", network_file.display(), measured.source));
    } else {
        printer.status(
            "its network was not measured, so `quell simulate` takes that of another machine: \
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

/// The network that was measured on the run's hosts: between hosts if there are several, and within each where all have as many ranks.
fn measured_network(args: &Track, run: &impl Run) -> anyhow::Result<Option<Preset>> {
    let locations = &run.definitions().locations;
    let first = locations.first().map(|location| &location.host);
    let on_one_host =
        args.extrapolate.is_none() && locations.iter().all(|location| Some(&location.host) == first);
    let read = |name| {
        let path = args.options.folder().join(name);
        path.exists().then(|| network::read(&path)).transpose().map_err(Usage)
    };
    let [intra, inter] = NETWORKS;
    if on_one_host {
        return Ok(read(intra)?);
    }
    let Some(mut between) = read(inter)? else { return Ok(None) };
    if let (Some(ranks), Some(within)) = (ranks_per_host(locations), read(intra)?) {
        between.levels = vec![Level { ranks, network: within.net, ranges: within.ranges }];
    }
    Ok(Some(between))
}

/// Number of ranks of each host, if hosts follow one another in the order of ranks and all but the last have as many, at least two.
fn ranks_per_host(locations: &[Location]) -> Option<u32> {
    let mut hosts: Vec<(u32, &str)> = locations.iter().map(|one| (one.rank, one.host.as_str())).collect();
    hosts.sort_unstable();
    hosts.dedup_by_key(|(rank, _)| *rank);
    let groups: Vec<&[(u32, &str)]> = hosts.chunk_by(|a, b| a.1 == b.1).collect();
    let (last, others) = groups.split_last()?;
    let ranks = others.first()?.len();
    let mut names: Vec<&str> = groups.iter().map(|group| group[0].1).collect();
    names.sort_unstable();
    let are_apart = names.windows(2).all(|pair| pair[0] != pair[1]);
    let are_equal = others.iter().all(|group| group.len() == ranks) && last.len() <= ranks;
    (are_apart && are_equal && ranks >= 2).then_some(ranks as u32)
}

fn named(preset: &Preset) -> NamedNetwork {
    let Preset { net: network, ranges, levels, .. } = preset.clone();
    NamedNetwork { preset: None, network, ranges, levels }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_as_many_ranks_are_a_level() {
        let ranks = |hosts: &str| {
            let location = |(rank, host): (u32, char)| Location {
                id: u64::from(rank),
                name: String::new(),
                rank,
                thread: 0,
                host: host.to_string(),
            };
            ranks_per_host(&(0..).zip(hosts.chars()).map(location).collect::<Vec<_>>())
        };
        assert_eq!(["aabb", "aaabbbcc", "aabbccdd"].map(ranks), [Some(2), Some(3), Some(2)]);
        for none in ["", "aaaa", "abab", "ab", "aabbb", "aabaa", "aabbaa", "abbcc"] {
            assert_eq!(ranks(none), None, "{none}");
        }
    }
}
