//! Finds nodes that are outliers, and the sources responsible. Reasons: docs/decisions/2026-11-22-which-nodes-are-unlike-the-rest.md.

mod describe;
pub(super) mod score;

use std::collections::BTreeSet;

use super::document::{Figure, OutlierCause, TypicalSource};
use super::summary::ALL;
use super::sums::Sums;
use super::{NodeSummary, duration_bands};
use crate::Warning;
use crate::stats::poisson_at_least;
use describe::describe;
use score::{Ordered, anscombe, chance_of_maximum};

/// Minimum number of nodes for a typical value.
pub const FEWEST_NODES: usize = 8;
/// A value this number of standard deviations above the typical one is not chance.
const HIGHEST_SCORE: f64 = 4.5;
/// Expected number of findings by chance that is accepted, over all comparisons together.
const BY_CHANCE: f64 = 0.5;
/// Minimum number of events on the median node for comparing rates and times; rarer sources are compared by how often they are seen.
const FEWEST_EVENTS: f64 = 3.0;
/// A source is rare if at least this share of the nodes does not have it.
const RARE: f64 = 0.05;
/// If more than this share of the nodes has it, they are another kind of node and not outliers.
const MOST_ILL: f64 = 0.1;
/// Minimum ratio of a value to the typical one.
const LEAST_TIMES: f64 = 1.25;
/// Excess noise below this share of the typical noise is ignored.
const MATERIAL: f64 = 0.05;
/// Excess noise on one CPU below this share of the typical noise of a node's worst CPU is ignored.
const MATERIAL_ON_CPU: f64 = 0.25;
/// Events matter however rare they are if their mean is at least this share of the longest event of the median node: at scale
/// some node always has one.
const MATERIAL_LENGTH: f64 = 0.5;
/// Minimum number of nodes for comparing maxima.
const FEWEST_MAXIMA: usize = 100;
/// The worst CPU is reported instead of the node if its ratio to the typical value is this number of times higher …
const FAR_ABOVE: f64 = 1.5;
/// … or, for a rare source, if it has this share of all events.
const ON_ONE_CPU: f64 = 0.8;
/// Maximum number of causes that are reported per node.
const MOST_CAUSES: usize = 5;

/// Findings on nodes that were recorded in the same way.
pub(super) struct Found {
    /// For each node, why it is an outlier; empty for most.
    pub whys: Vec<Vec<OutlierCause>>,
    pub typical: Vec<TypicalSource>,
    pub warnings: Vec<Warning>,
}

/// Compares nodes that were recorded in the same way.
pub(super) fn outliers(nodes: &[&NodeSummary]) -> Found {
    let names: BTreeSet<&str> = nodes.iter().flat_map(|node| node.sums.keys().map(String::as_str)).collect();
    let usual = Usual::from_nodes(nodes, names.len());
    let mut found = Found { whys: vec![Vec::new(); nodes.len()], typical: Vec::new(), warnings: Vec::new() };
    for name in names {
        let column = Column::from_nodes(nodes, name);
        found.typical.push(column.typical());
        if nodes.len() < FEWEST_NODES {
            continue;
        }
        let odd = column.odd(&usual);
        // A single node is not a kind.
        if odd.len() > 1 && odd.len() as f64 > MOST_ILL * nodes.len() as f64 {
            let (odd, of) = (odd.len() as u64, nodes.len() as u64);
            found.warnings.push(Warning::OtherKind { source: name.to_owned(), nodes: odd, of });
            continue;
        }
        for (at, why) in odd {
            found.whys[at].push(why);
        }
    }
    found.typical.sort_by(|a, b| b.ns_per_s.total_cmp(&a.ns_per_s).then_with(|| a.source.cmp(&b.source)));
    found.whys.iter_mut().for_each(keep_first_mention);
    found
}

/// Keeps the causes with most time: the sum of all noise only if there is no other cause, and of bands that share detours only one.
fn keep_first_mention(whys: &mut Vec<OutlierCause>) {
    whys.sort_by(|a, b| {
        let all = |why: &OutlierCause| why.source == ALL;
        all(a)
            .cmp(&all(b))
            .then(b.excess_ns_per_s.total_cmp(&a.excess_ns_per_s))
            .then_with(|| a.source.cmp(&b.source))
    });
    let mut reported: Vec<OutlierCause> = Vec::new();
    for why in whys.drain(..) {
        let near = |other: &OutlierCause| match (
            duration_bands::place(&other.source),
            duration_bands::place(&why.source),
        ) {
            (Some(a), Some(b)) => a.abs_diff(b) <= 1,
            _ => false,
        };
        if reported.len() < MOST_CAUSES
            && (why.source != ALL || reported.is_empty())
            && !reported.iter().any(near)
        {
            reported.push(why);
        }
    }
    *whys = reported;
}

/// The typical values of all noise.
struct Usual {
    ns_per_s: f64,
    worst_ns_per_s: f64,
    longest_ns: f64,
    /// A lower probability is not chance.
    least_chance: f64,
}

impl Usual {
    fn from_nodes(nodes: &[&NodeSummary], names: usize) -> Self {
        let all = Column::from_nodes(nodes, ALL);
        Self {
            ns_per_s: all.median(|one| one.per_s(one.sums.total_ns)),
            worst_ns_per_s: all.median(|one| one.sums.worst_share),
            longest_ns: all.median(|one| one.sums.max_ns as f64),
            least_chance: BY_CHANCE / (nodes.len() * names).max(1) as f64,
        }
    }
}

/// One source on one node.
#[derive(Clone, Copy)]
struct Cell<'a> {
    node: &'a NodeSummary,
    sums: Sums,
}

impl Cell<'_> {
    fn per_s(&self, sum: f64) -> f64 {
        self.node.per_s(sum)
    }

    /// The figure of a rare source: that of one CPU if nearly all of its events are on one of several.
    fn where_it_is(&self) -> Figure {
        let all = self.per_s(self.sums.count) * self.node.cpus as f64;
        if self.node.cpus > 1 && self.sums.worst_rate >= ON_ONE_CPU * all {
            Figure::WorstCpuRate
        } else {
            Figure::Rate
        }
    }

    /// Seconds for which one of its CPUs was observed.
    fn cpu_s(&self) -> f64 {
        self.node.watched_s / self.node.cpus.max(1) as f64
    }
}

/// One source on all nodes.
struct Column<'a> {
    name: &'a str,
    cells: Vec<Cell<'a>>,
    /// Observation time of the median node, in CPU seconds.
    watched_s: f64,
}

/// A figure of each node, on the scale used for the comparison.
struct Compared {
    figure: Figure,
    /// Number of standard deviations above the typical value, for each node.
    scores: Vec<f64>,
    typical: f64,
}

impl<'a> Column<'a> {
    fn from_nodes(nodes: &[&'a NodeSummary], name: &'a str) -> Self {
        let cell =
            |node: &&'a NodeSummary| Cell { node, sums: node.sums.get(name).copied().unwrap_or_default() };
        let cells: Vec<Cell> = nodes.iter().map(cell).collect();
        let watched_s = Ordered::new(cells.iter().map(|cell| cell.node.watched_s)).median();
        Self { name, cells, watched_s }
    }

    fn median(&self, of: impl Fn(&Cell) -> f64) -> f64 {
        Ordered::new(self.cells.iter().map(of)).median()
    }

    fn seen_on(&self) -> usize {
        self.cells.iter().filter(|cell| cell.sums.total_ns > 0.0).count()
    }

    fn typical(&self) -> TypicalSource {
        TypicalSource {
            source: self.name.to_owned(),
            nodes: self.seen_on() as u64,
            per_s: self.median(|one| one.per_s(one.sums.count)),
            ns_per_s: self.median(|one| one.per_s(one.sums.total_ns)),
            longest_ns: self.median(|one| one.sums.max_ns as f64) as u64,
        }
    }

    /// The nodes that have more of it than chance and the typical spread among nodes explain, and enough more to matter.
    fn odd(&self, usual: &Usual) -> Vec<(usize, OutlierCause)> {
        let compared = self.compared();
        let rare = self.rare(usual.least_chance);
        let maxima = self.maxima(usual.least_chance);
        let typical = self.typical();
        let mut odd = Vec::new();
        for (at, cell) in self.cells.iter().enumerate() {
            let excess = cell.per_s(cell.sums.total_ns) - typical.ns_per_s;
            let on_cpu = cell.sums.worst_share - self.median_worst();
            let mean = cell.sums.total_ns / cell.sums.count.max(1.0);
            let long = cell.sums.count > 0.0 && mean >= MATERIAL_LENGTH * usual.longest_ns;
            let matters = excess > 0.0 && (excess >= MATERIAL * usual.ns_per_s || long);
            let matters_on_cpu = on_cpu > 0.0 && on_cpu >= MATERIAL_ON_CPU * usual.worst_ns_per_s;
            let high = |one: &&Compared| {
                let value = value(cell, one.figure);
                let worst = matches!(one.figure, Figure::WorstCpuRate | Figure::WorstCpuTime);
                one.scores[at] > HIGHEST_SCORE
                    && value >= LEAST_TIMES * one.typical
                    && (if worst { matters_on_cpu } else { matters })
            };
            let by_score = distinctive(cell, compared.iter().filter(high));
            let by_rarity = (rare[at] && matters).then(|| {
                let figure = cell.where_it_is();
                (figure, self.median(|one| value(one, figure)))
            });
            let by_maximum = (maxima[at] && matters).then_some((Figure::Longest, typical.longest_ns as f64));
            if let Some((figure, typical)) = by_score.or(by_rarity).or(by_maximum) {
                odd.push((at, self.why(cell, figure, typical, excess)));
            }
        }
        odd
    }

    fn median_worst(&self) -> f64 {
        self.median(|one| one.sums.worst_share)
    }

    fn why(&self, cell: &Cell, figure: Figure, typical: f64, excess_ns_per_s: f64) -> OutlierCause {
        let value = value(cell, figure);
        let mut why = OutlierCause {
            source: self.name.to_owned(),
            figure,
            value,
            typical,
            times_typical: (typical > 0.0).then(|| value / typical),
            seen_on: self.seen_on() as u64,
            excess_ns_per_s,
            says: String::new(),
        };
        why.says = describe(&why, cell.sums.total_ns / cell.sums.count.max(1.0), self.cells.len());
        why
    }

    /// Compares rates and times if the median node has enough events.
    fn compared(&self) -> Vec<Compared> {
        let mut all = Vec::new();
        if self.median(|one| one.sums.count) >= FEWEST_EVENTS {
            all.push(self.counts(Figure::Rate, |one| one.node.watched_s));
            all.push(self.times(Figure::Time));
        }
        if self.median(|one| one.sums.worst_rate * one.cpu_s()) >= FEWEST_EVENTS {
            all.push(self.counts(Figure::WorstCpuRate, |one| one.cpu_s()));
        }
        if self.median_worst() > 0.0 {
            all.push(self.times(Figure::WorstCpuTime));
        }
        all
    }

    /// Compares counts on Anscombe's scale, on which chance alone has a standard deviation of one.
    fn counts(&self, figure: Figure, watched_s: impl Fn(&Cell) -> f64) -> Compared {
        let typical = self.median(|one| value(one, figure));
        let distance =
            |one: &Cell| anscombe(value(one, figure) * watched_s(one)) - anscombe(typical * watched_s(one));
        let spread = Ordered::new(self.cells.iter().map(distance)).spread().max(1.0);
        Compared { figure, scores: self.cells.iter().map(|one| distance(one) / spread).collect(), typical }
    }

    /// Compares times by their square root, without each node's two longest events. Nodes observed for less time vary more.
    fn times(&self, figure: Figure) -> Compared {
        let settled = |one: &Cell| match figure {
            Figure::Time => one.per_s(one.sums.settled_ns),
            _ => one.sums.worst_share,
        };
        let root = Ordered::new(self.cells.iter().map(|one| settled(one).sqrt()));
        let (middle, spread) = (root.median(), root.spread());
        // Nodes that agree to within a few percent must not make the spread too small.
        let spread = spread.max(0.02 * middle).max(f64::MIN_POSITIVE);
        let score = |one: &Cell| {
            let briefly = (self.watched_s / one.node.watched_s.max(f64::MIN_POSITIVE)).max(1.0).sqrt();
            (settled(one).sqrt() - middle) / (spread * briefly)
        };
        let typical = self.median(|one| value(one, figure));
        Compared { figure, scores: self.cells.iter().map(score).collect(), typical }
    }

    /// Whether a node sees a rare source too often for chance. The expected frequency comes from the share of nodes without the source,
    /// in which each other node counts as one, whether it has much or little of it.
    fn rare(&self, least_chance: f64) -> Vec<bool> {
        let count = self.cells.len() as f64;
        let without = self.cells.iter().filter(|cell| cell.sums.active == 0).count() as f64;
        if without < RARE * count {
            return vec![false; self.cells.len()];
        }
        let mean = -(without / count).ln();
        let odd = |cell: &Cell| {
            let expected = mean * (cell.node.watched_s / self.watched_s.max(f64::MIN_POSITIVE)).max(0.0);
            poisson_at_least(cell.sums.active, expected) < least_chance
        };
        self.cells.iter().map(odd).collect()
    }

    /// Whether a node's longest event is longer than expected from those of all nodes.
    fn maxima(&self, least_chance: f64) -> Vec<bool> {
        let maxima = Ordered::new(self.cells.iter().map(|cell| cell.sums.max_ns as f64));
        let many = self.cells.len() >= FEWEST_MAXIMA && maxima.median() > 0.0;
        self.cells
            .iter()
            .map(|cell| many && chance_of_maximum(cell.sums.max_ns as f64, &maxima) < least_chance)
            .collect()
    }
}

/// The most informative figure: that of one CPU only if it is far above the figure of the whole node.
fn distinctive<'a>(cell: &Cell, high: impl Iterator<Item = &'a Compared>) -> Option<(Figure, f64)> {
    let times = |one: &Compared| {
        let worst = matches!(one.figure, Figure::WorstCpuRate | Figure::WorstCpuTime);
        value(cell, one.figure) / one.typical * if worst { 1.0 } else { FAR_ABOVE }
    };
    high.max_by(|a, b| times(a).total_cmp(&times(b))).map(|one| (one.figure, one.typical))
}

/// A node's value of a figure, as reported.
fn value(cell: &Cell, figure: Figure) -> f64 {
    match figure {
        Figure::Rate => cell.per_s(cell.sums.count),
        Figure::Time => cell.per_s(cell.sums.total_ns),
        Figure::WorstCpuRate => cell.sums.worst_rate,
        Figure::WorstCpuTime => cell.sums.worst_share,
        Figure::Longest => cell.sums.max_ns as f64,
    }
}
