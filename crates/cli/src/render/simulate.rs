//! Renders a simulation as text for a terminal.

use quell_analysis::predict::{MessageProgress, NoiseSource};
use quell_analysis::whatif::culprits::CulpritFacts;
use quell_recording::columns::Columns;
use quell_request::simulate::document::{NoiseFacts, RulesName, Simulation, StartName};
use quell_sim::loggops::{Level, NamedNetwork, Outcome};

use super::plots;
use super::rows::rows;
use super::table::time;
use super::warnings;
use crate::printer::{one_line, width};

/// Maximum number of ranks for which each rank has a row.
const MOST_RANKS: usize = 16;
/// Maximum number of rows of the histogram.
const MOST_ROWS: u64 = 10;

/// What was simulated, when it ended, what the noise did, and when ranks finished.
pub fn simulation(simulation: &Simulation, outcome: &Outcome) -> String {
    let mut text = heading(simulation);
    text += &warnings::lines(&simulation.warnings);
    text.push('\n');
    text += &facts(simulation);
    text +=
        &if outcome.finish.len() <= MOST_RANKS { rank_table(outcome) } else { histogram(&outcome.finish) };
    text + &simulation.culprits.as_ref().map_or_else(String::new, culprits)
}

/// The sources that delayed the program, the most expensive first, and the longest delays.
fn culprits(facts: &CulpritFacts) -> String {
    let spent = |ns: u64| time(ns as f64);
    let mut text = format!(
        "\ncritical path: {} without noise + {} of noise in {} places; {} of the {} of noise on all ranks was absorbed\n",
        spent(facts.silent_path_ns),
        spent(facts.delay_ns),
        facts.hits,
        spent(facts.absorbed_ns),
        spent(facts.struck_ns)
    );
    if facts.sources.is_empty() {
        return text;
    }
    text += &rows(&facts.sources);
    text.push('\n');
    text + &rows(facts.worst.iter().take(5))
}

fn heading(simulation: &Simulation) -> String {
    let rules = match simulation.rules {
        RulesName::Compatible => "LogGOPSim's rules",
        RulesName::Physical if simulation.progress == Some(MessageProgress::Call) => {
            "physical rules, progress in the call"
        }
        RulesName::Physical => "physical rules",
    };
    let parameters =
        simulation.parameters.iter().flatten().map(|(option, value)| format!(" {option} {value}"));
    let program = one_line(&simulation.program) + &parameters.collect::<String>();
    let mut text =
        format!("{program} · {} ranks · {rules}\nnetwork: {}\n", simulation.ranks, net(&simulation.net));
    text.extend(simulation.noise.iter().map(|noise| noise_line(noise, simulation.seed)));
    text
}

/// A network in LogGOPSim's notation.
pub fn net(named: &NamedNetwork) -> String {
    let preset = named.preset.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    let ranges = match named.ranges.len() {
        0 => String::new(),
        1 => ", and its own parameters for a range of sizes".to_owned(),
        several => format!(", and parameters of their own for {several} ranges of sizes"),
    };
    let near = |level: &Level| {
        format!("; among each {} ranks {}", level.ranks, quell_request::network::text(&level.network))
    };
    let levels: String = named.levels.iter().map(near).collect();
    quell_request::network::text(&named.network) + &preset + &ranges + &levels
}

fn noise_line(noise: &NoiseFacts, seed: u64) -> String {
    let source = |source: &NoiseSource| {
        let cpus = if source.cpus == 1 { "1 CPU".into() } else { format!("{} CPUs", source.cpus) };
        format!("{} ({cpus}, {:.4} % noise)", one_line(&source.name), source.overhead_percent)
    };
    let sources: Vec<String> = noise.sources.iter().map(source).collect();
    let start = match (noise.start, noise.skew_ns) {
        (StartName::Independent, _) => format!("each node at its own offset, seed {seed}"),
        (StartName::Together, 0) => format!("all nodes at the same offset, seed {seed}"),
        (StartName::Together, skew) => {
            format!("all nodes at the same offset, up to {} late, seed {seed}", time(skew as f64))
        }
        (StartName::Offsets, _) => "each rank at its given offset".into(),
    };
    format!("noise: {}; {start}\n", sources.join(", "))
}

/// The figures, one per line.
fn facts(simulation: &Simulation) -> String {
    let exact =
        |ns: u64| if ns < 1_000 { format!("{ns}ns") } else { format!("{} ({ns} ns)", time(ns as f64)) };
    let [first, tenth, half, most, _] = simulation.finish_quantiles_ns.unwrap_or_default();
    let mut rows = Vec::new();
    if let (Some(at), Some(rank)) = (simulation.max_ns, simulation.max_rank) {
        rows.push(("last rank done", format!("{}, rank {rank}", exact(at))));
    }
    let times = [tenth, half, most].map(|ns| time(ns as f64));
    rows.push(("first rank done", exact(first)));
    rows.push(("10 %, 50 %, 90 % of ranks", times.join(", ")));
    rows.push(("events", simulation.events.to_string()));
    if let Some(total) = simulation.noise.as_ref().and_then(|noise| noise.injected_total_ns) {
        let mean = total as f64 / f64::from(simulation.ranks.max(1));
        rows.push((
            "noise received",
            format!("{} on all ranks, {} per rank on average", time(total as f64), time(mean)),
        ));
    }
    if let Some(baseline) = simulation.baseline {
        let slowdown = baseline
            .slowdown_percent
            .map_or_else(String::new, |percent| format!("; the noise costs {percent:.2} %"));
        rows.push(("without noise", exact(baseline.max_ns) + &slowdown));
    }
    rows.iter().map(|(name, value)| format!("{name:27}{value}\n")).collect()
}

/// When a rank finished, and how much noise struck it.
#[derive(Debug, Columns)]
struct RankRow {
    #[column(id)]
    rank: usize,
    #[column(title = "done at ns", count)]
    #[column(title = "")]
    done_ns: u64,
    #[column(title = "noise", filled)]
    noise_ns: Option<u64>,
}

fn rank_table(outcome: &Outcome) -> String {
    let noisy = outcome.noise.iter().any(|ns| *ns > 0);
    let row = |(rank, (&done_ns, &noise)): (usize, (&u64, &u64))| RankRow {
        rank,
        done_ns,
        noise_ns: noisy.then_some(noise),
    };
    let ranks = outcome.finish.iter().zip(&outcome.noise).enumerate().map(row);
    format!("\n{}", rows(&ranks.collect::<Vec<_>>()))
}

/// A histogram of when ranks finished, in equal steps from the first to the last.
fn histogram(times: &[u64]) -> String {
    let (first, last) = (times.iter().min().copied().unwrap_or(0), times.iter().max().copied().unwrap_or(0));
    if first == last {
        return "\nAll ranks were done at the same time.\n".into();
    }
    let step = (last - first + 1).div_ceil(MOST_ROWS);
    let mut counts = vec![0u64; ((last - first) / step + 1) as usize];
    times.iter().for_each(|at| counts[((at - first) / step) as usize] += 1);
    let label = |row: usize| {
        let from = first + row as u64 * step;
        format!("{:>8} – {:>8}", time(from as f64), time((from + step) as f64))
    };
    let bars: Vec<(String, u64)> =
        counts.iter().enumerate().map(|(row, &count)| (label(row), count)).collect();
    format!("\n{}", plots::bars("When ranks were done (bars on a log scale)", width(), &bars))
}
