//! The noise of the nodes, in the forms for placing ranks in it and for burning it.

use quell_analysis::predict::NodeNoise;
use quell_node::injector::phases::SHORTEST_BURN_NS;
use quell_replay::ProgressClockView;
use quell_sim::{Node, Place};

use crate::values::replay::{Percent, ScaleText};

/// The noise of the nodes.
pub struct Noise {
    /// The nodes in the simulator's form.
    pub nodes: Vec<Node>,
    /// The encoded track of each CPU of each node.
    words: Vec<(usize, Vec<u64>)>,
    /// The index of each node's first track.
    first: Vec<usize>,
    /// The durations of all detours, ascending.
    lengths: Vec<u64>,
}

impl Noise {
    /// Converts the noise of the given nodes.
    pub fn from_nodes(nodes: &[NodeNoise]) -> anyhow::Result<Self> {
        let mut noise = Self { nodes: Vec::new(), words: Vec::new(), first: Vec::new(), lengths: Vec::new() };
        for node in nodes {
            let place =
                Node::new(&node.traces).map_err(|reason| anyhow::anyhow!("{}: {reason}", node.name))?;
            noise.first.push(noise.words.len());
            for clock in place.clocks() {
                let (starts, useful) = (clock.starts(), clock.useful_starts());
                let lost = |i: usize| starts[i] - useful[i];
                noise.lengths.extend((0..clock.detours()).map(|i| lost(i + 1) - lost(i)));
                noise.words.push((clock.detours(), [starts, useful].concat()));
            }
            noise.nodes.push(place);
        }
        noise.lengths.sort_unstable();
        Ok(noise)
    }

    /// The track of each CPU.
    pub fn tracks(&self) -> anyhow::Result<Vec<ProgressClockView<'_>>> {
        let tracks: Result<_, _> = self
            .words
            .iter()
            .map(|(detours, words)| ProgressClockView::from_words(*detours, words))
            .collect();
        tracks.map_err(|flaw| anyhow::anyhow!("the noise cannot be replayed: {}", flaw.reason()))
    }

    /// The index of a rank's track.
    pub fn track_of(&self, place: &Place) -> usize {
        self.first[place.kind] + place.cpu
    }

    /// The delay of a rank's work from a place on, in ns, by the simulator's clock.
    pub fn delay(&self, place: &Place, work: u64) -> u64 {
        self.nodes[place.kind].clocks()[place.cpu].delay(place.at, work)
    }

    /// The length of the shortest trace, in ns.
    pub fn shortest_period(&self) -> u64 {
        let periods = self.nodes.iter().flat_map(Node::clocks).map(quell_sim::ProgressClock::period);
        periods.min().unwrap_or(0)
    }

    /// The percentage of detours that can be burned at a scale.
    pub fn coverage_percent(&self, scale: f64) -> f64 {
        let short = self.lengths.partition_point(|&ns| (ns as f64 * scale) < SHORTEST_BURN_NS as f64);
        match self.lengths.len() {
            0 => 100.0,
            all => 100.0 * (all - short) as f64 / all as f64,
        }
    }

    /// The requested factor; for `auto`, the smallest whole factor that reaches the coverage.
    pub fn factor(&self, scale: ScaleText, coverage: Percent) -> f64 {
        if let ScaleText::By(factor) = scale {
            return factor;
        }
        let left_out = ((100.0 - coverage.0) / 100.0 * self.lengths.len() as f64) as usize;
        let shortest = self.lengths.get(left_out).copied().unwrap_or(SHORTEST_BURN_NS);
        SHORTEST_BURN_NS.div_ceil(shortest.max(1)) as f64
    }
}
