//! Compares predictions with a second, plain implementation of the same program.

use quell_analysis::Warning;
use quell_analysis::predict::{NodeNoise, Options, PredictError, Prediction, predict};
use quell_recording::{Cpu, Detour, Nanos, Span, Trace};
use quell_sim::SyncMode;

/// A linear congruential generator (Knuth's MMIX) of our own, so that the tests share no code with what they test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// (start, duration) of each detour of a CPU, and the period with which they repeat.
type PlainNode = (u64, Vec<Vec<(u64, u64)>>);

/// A trace of rare long detours among frequent short ones.
fn plain_node(dice: &mut Dice, cpus: usize) -> PlainNode {
    let period = 3_000_000 + dice.below(500_000);
    let mut cpu = || {
        let (mut at, mut detours) = (0, Vec::new());
        loop {
            at += 500 + dice.below(9_000);
            let duration =
                if dice.below(20) == 0 { 2_000 + dice.below(20_000) } else { 100 + dice.below(400) };
            if at + duration >= period {
                return detours;
            }
            detours.push((at, duration));
            at += duration;
        }
    };
    (period, (0..cpus).map(|_| cpu()).collect())
}

fn noise(nodes: &[PlainNode]) -> Vec<NodeNoise> {
    let ns = Nanos::from_nanos;
    let trace = |(period, detours): (u64, &Vec<(u64, u64)>)| Trace {
        cpu: Cpu(0),
        span: Span { start: ns(77), end: ns(77 + period) },
        detours: detours
            .iter()
            .map(|d| Detour { start: ns(77 + d.0), duration: ns(d.1), own: false })
            .collect(),
    };
    let node = |(period, cpus): &PlainNode| NodeNoise {
        limits: Vec::new(),
        name: "plain".to_owned(),
        origin: None,
        traces: cpus.iter().map(|detours| trace((*period, detours))).collect(),
    };
    nodes.iter().map(node).collect()
}

/// Walks from detour to detour until the work is done.
fn finish(period: u64, detours: &[(u64, u64)], start: u64, work: u64) -> u64 {
    let (mut t, mut left, mut turn) = (start, work, start / period);
    loop {
        let over = detours.partition_point(|detour| turn * period + detour.0 + detour.1 <= t);
        for &(begin, duration) in &detours[over..] {
            let (begin, end) = (turn * period + begin, turn * period + begin + duration);
            let free = begin.saturating_sub(t);
            if free >= left {
                return t + left;
            }
            left -= free;
            t = end;
        }
        let free = ((turn + 1) * period).saturating_sub(t);
        if free >= left {
            return t + left;
        }
        left -= free;
        t += free;
        turn += 1;
    }
}

/// The mean phase, computed from every rank of every phase, by the definition.
fn by_definition(nodes: &[PlainNode], options: &Options, ranks: u64, dice: &mut Dice) -> f64 {
    let quantum = options.quantum.as_nanos();
    // The program splits phases over chains of at least 50; with drift it does not, because drift grows from the first to the last phase.
    let chain = if options.sync.drift_ppm() > 0.0 { PHASES } else { 50 };
    let count = options.phases * REPEATS;
    let (mut total, mut now) = (0u64, 0u64);
    let mut starts: Vec<(u64, f64)> = Vec::new();
    for phase in 0..count {
        if phase % chain == 0 || options.sync == SyncMode::Phase {
            now = 0;
            let common = dice.below(1 << 30);
            starts = (0..ranks)
                .map(|node| place(&nodes[node as usize % nodes.len()], options, common, dice))
                .collect();
        }
        let (mut rank, mut slowest) = (0, 0);
        for node in 0.. {
            let (period, cpus) = &nodes[node % nodes.len()];
            for detours in cpus.iter().take((ranks - rank) as usize) {
                let start = (starts[node].0 as f64 + now as f64 * starts[node].1) as u64;
                slowest = slowest.max(finish(*period, detours, start, quantum) - start);
                rank += 1;
            }
            if rank == ranks {
                break;
            }
        }
        total += slowest;
        now += slowest;
    }
    total as f64 / count as f64
}

/// The start of a node, and the speed of its trace.
fn place(node: &PlainNode, options: &Options, common: u64, dice: &mut Dice) -> (u64, f64) {
    let common = (common as f64 / (1u64 << 30) as f64 * node.0 as f64) as u64;
    match options.sync {
        SyncMode::None => (dice.below(node.0), 1.0),
        SyncMode::Phase => (common, 1.0),
        SyncMode::Start { skew, drift_ppm } => {
            let skew = dice.below(skew.as_nanos() + 1);
            let drift = (dice.below(2_000_001) as f64 / 1e6 - 1.0) * drift_ppm * 1e-6;
            (node.0 + common + skew, 1.0 + drift)
        }
    }
}

/// Number of phases per run, and number of runs, that are compared.
const PHASES: u64 = 250;
const REPEATS: u64 = 256;

fn start(skew: u64, drift_ppm: f64) -> SyncMode {
    SyncMode::Start { skew: Nanos::from_nanos(skew), drift_ppm }
}

fn options(sync: SyncMode, ranks: Vec<u64>) -> Options {
    Options { quantum: Nanos::from_nanos(10_000), sync, phases: 4_000, replicates: 0, ..Options::new(ranks) }
}

#[test]
fn agrees_with_the_definition_in_every_mode() {
    let mut dice = Dice(2_008);
    let one = [plain_node(&mut dice, 1)];
    let three = [plain_node(&mut dice, 3)];
    let mixed = [plain_node(&mut dice, 2), plain_node(&mut dice, 3), plain_node(&mut dice, 1)];
    for nodes in [&one[..], &three, &mixed] {
        for sync in
            [SyncMode::None, start(0, 0.0), start(40_000, 0.0), start(15_000, 20_000.0), SyncMode::Phase]
        {
            // With 20 and 97 ranks the last node is partly empty in two of the three cases.
            let options = Options { phases: PHASES, ..options(sync, vec![1, 20, 97]) };
            let run = |seed| {
                predict(&noise(nodes), &Options { seed, ..options.clone() }, quell_analysis::NO_PROGRESS)
                    .unwrap()
                    .points
            };
            let runs: Vec<_> = (0..REPEATS).map(run).collect();
            for (scale, &ranks) in options.ranks.iter().enumerate() {
                let predicted =
                    runs.iter().map(|points| points[scale].mean_phase_ns).sum::<f64>() / REPEATS as f64;
                let expected = by_definition(nodes, &options, ranks, &mut dice);
                let off = predicted / expected - 1.0;
                assert!(
                    off.abs() < 0.01,
                    "{sync:?}, {} nodes, {ranks} ranks: {predicted} for {expected}",
                    nodes.len()
                );
            }
        }
    }
}

#[test]
fn equal_seeds_give_equal_documents_on_any_number_of_threads() {
    let nodes = noise(&[plain_node(&mut Dice(1), 2), plain_node(&mut Dice(2), 1)]);
    let mut options = options(SyncMode::None, vec![3, 100, 5_000]);
    (options.phases, options.replicates) = (200, 12);
    let on = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let options = Options { seed, ..options.clone() };
        // Debug prints every bit that distinguishes a float from the next.
        format!(
            "{:?}",
            pool.install(|| predict(&nodes, &options, quell_analysis::NO_PROGRESS).unwrap()).points
        )
    };
    assert_eq!(on(1, 7), on(2, 7));
    assert_ne!(on(1, 7), on(1, 8));
}

/// Long detours among short quanta: a phase feels every detour that began up to a detour's length before it. The truth is known:
/// the delay that a quantum meets is the unfinished work of an M/M/1 queue, P(W > x) = ρ exp(−(1 − ρ) x / m) (Kleinrock, "Queueing
/// Systems" I, 1975, §5.12), so the mean maximum of N is m / (1 − ρ) · (ln(N ρ) + γ).
#[test]
fn support_depends_on_how_long_detours_last() {
    const RANKS: u64 = 100_000;
    let (load, mean_ns) = (0.01_f64, 10e6);
    let truth_ns = 10e3 + mean_ns / (1.0 - load) * ((RANKS as f64 * load).ln() + 0.577_216);
    let point = |span: &str| {
        let text = format!(
            "{span}\n[[component]]\nname = \"long\"\npoisson = {{ rate = \"1/s\" }}\nduration = {{ exponential = {{ mean = \"10ms\" }} }}\n"
        );
        let model = quell_sim::Model::from_toml(&text).unwrap();
        let quantum = Nanos::from_nanos(10_000);
        let node = NodeNoise::from_model("model", &model, quantum, RANKS, 1).unwrap();
        let options = Options { quantum, phases: 300, replicates: 0, ..Options::new(vec![RANKS]) };
        predict(&[node], &options, quell_analysis::NO_PROGRESS).unwrap().points.remove(0)
    };
    for short in ["span = \"10s\"", "span = \"3000s\""] {
        assert!(!point(short).supported, "{short}");
    }
    let long = point("");
    assert!(long.supported);
    assert!((long.mean_phase_ns / truth_ns - 1.0).abs() < 0.05, "{} for {truth_ns}", long.mean_phase_ns);
}

#[test]
fn the_document_says_where_it_extrapolates() {
    let nodes = noise(&[plain_node(&mut Dice(3), 2)]);
    let mut options = options(SyncMode::None, vec![10, 15, 100_000]);
    (options.phases, options.replicates) = (100, 20);
    let prediction = predict(&nodes, &options, quell_analysis::NO_PROGRESS).unwrap();
    let span = nodes[0].traces[0].span.length().as_nanos();
    let detours = nodes[0].traces.iter().flat_map(|trace| &trace.detours);
    let longest = detours.map(|detour| detour.duration.as_nanos()).max().unwrap();
    assert_eq!(prediction.supported_ranks, span / (10_000 + longest) * 2 / 10, "ten windows for each rank");
    assert_eq!(
        prediction.points.iter().map(|point| point.supported).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert_eq!(prediction.warnings.len(), 1, "{:?}", prediction.warnings);
    assert!(matches!(prediction.warnings[0], Warning::Extrapolated { .. }));
    for point in &prediction.points {
        let Some([low, high]) = point.ci95_percent else { continue };
        assert!(low <= point.slowdown_percent && point.slowdown_percent <= high);
    }
    let [low, high] = prediction.points[0].ci95_percent.unwrap();
    assert!(low < high);
    options.sync = SyncMode::Phase;
    let in_step = predict(&nodes, &options, quell_analysis::NO_PROGRESS).unwrap();
    assert!(in_step.points.iter().all(|point| point.supported), "nodes in step are one node");
    assert_eq!((prediction.replicates, prediction.noise[0].cpus, prediction.noise[0].span_ns), (20, 2, span));
}

#[test]
fn larger_jobs_are_never_faster() {
    let nodes = noise(&[plain_node(&mut Dice(4), 2)]);
    let prediction =
        predict(&nodes, &options(SyncMode::None, (1..60).collect()), quell_analysis::NO_PROGRESS).unwrap();
    let slowdowns: Vec<f64> = prediction.points.iter().map(|point| point.slowdown_percent).collect();
    let falls = slowdowns.windows(2).filter(|pair| pair[1] < pair[0] * 0.99).count();
    assert_eq!(falls, 0, "{slowdowns:?}");
}

fn alone(period: u64, detours: &[(u64, u64)], quantum: u64) -> Result<Prediction, PredictError> {
    let mut options = options(SyncMode::None, vec![1, 64]);
    (options.quantum, options.phases, options.replicates) = (Nanos::from_nanos(quantum), 100, 20);
    predict(&noise(&[(period, vec![detours.to_vec()])]), &options, quell_analysis::NO_PROGRESS)
}

#[test]
fn edges_of_traces_are_predicted_and_named() {
    let silent = alone(1_000_000, &[], 1_000).unwrap();
    assert!(silent.points.iter().all(|point| point.slowdown_percent == 0.0 && point.ci95_percent.is_none()));
    assert!(
        silent.warnings.iter().any(|one| matches!(one, Warning::NoDetours { .. })),
        "{:?}",
        silent.warnings
    );

    let wrapped = alone(1_000, &[(500, 100)], 9_000).unwrap_err().to_string();
    assert!(wrapped.contains("spans 1us, less than one quantum of 9us"), "{wrapped}");

    let short = alone(10_000, &[(500, 100)], 1_000).unwrap();
    assert!(
        short.warnings.iter().any(|one| matches!(one, Warning::FewQuanta { .. })),
        "{:?}",
        short.warnings
    );

    let full = alone(1_000, &[(0, 1_000)], 10).unwrap_err().to_string();
    assert!(full.starts_with("plain: ") && full.contains("noise from end to end"), "{full}");

    // Some resampled traces of this one are only noise; they are left out and do not cause a failure.
    assert!(alone(1_000, &[(0, 990)], 10).unwrap().replicates <= 20);
}

#[test]
fn refuses_what_cannot_be_asked() {
    let nodes = noise(&[plain_node(&mut Dice(5), 1)]);
    let refuse = |change: &dyn Fn(&mut Options)| {
        let mut options = options(SyncMode::None, vec![4]);
        change(&mut options);
        predict(&nodes, &options, quell_analysis::NO_PROGRESS).unwrap_err().to_string()
    };
    assert!(refuse(&|o| o.ranks.clear()).contains("no number of ranks"));
    assert!(refuse(&|o| o.ranks.push(0)).contains("0 ranks"));
    assert!(refuse(&|o| o.ranks.push(1 << 40)).contains("between 1 and 16777216"));
    assert!(refuse(&|o| o.quantum = Nanos::ZERO).contains("quantum is zero"));
    assert!(refuse(&|o| o.phases = 0).contains("0 phases"));
    assert!(refuse(&|o| o.sync = start(0, f64::NAN)).contains("NaN ppm"));
    let nothing = predict(&[], &options(SyncMode::None, vec![4]), quell_analysis::NO_PROGRESS).unwrap_err();
    assert!(nothing.to_string().contains("no trace"));
}
