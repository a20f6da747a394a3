//! Draws the noise of all nodes of a job again.

use quell_recording::Nanos;
use quell_sim::{BspError, Draws, Node};
use rayon::prelude::*;

use super::repeats::Repeats;
use super::resample::Resampler;
use super::{JobNoise, NodeNoise, stream};

/// The noise of a job's nodes, ready to be drawn again.
pub(crate) struct Redraw {
    nodes: Vec<Resampler>,
    /// The nodes of which there are several recordings.
    repeats: Vec<Repeats>,
    /// The noise that all nodes have at the same time.
    common: Option<Resampler>,
}

impl Redraw {
    pub(crate) fn new(noise: JobNoise<'_>, quantum: Nanos) -> Result<Self, BspError> {
        let of = |(source, node): (usize, &NodeNoise)| {
            Resampler::new(node, noise.recorded.get(source).unwrap_or(node), quantum)
        };
        let nodes = noise.nodes.par_iter().enumerate().map(of).collect::<Result<_, _>>()?;
        // The common noise was part of the first node, so it uses the same blocks, and the node keeps its place.
        let common = noise.common.map(|common| of((0, common))).transpose()?;
        let repeats = if common.is_some() { Vec::new() } else { Repeats::find(noise.recorded) };
        Ok(Self { nodes, repeats, common })
    }

    /// The nodes of the replicate with this number, and their common noise; `None` if the draw left no useful time at all.
    pub(crate) fn draw(&self, seed: u64, number: u64) -> Option<(Vec<Node>, Option<Node>)> {
        let anew = |(place, resampler): (usize, &Resampler)| {
            Node::new(&resampler.draw(&Draws::new(seed, &[stream::BLOCKS, number, place as u64]))).ok()
        };
        let common = match &self.common {
            Some(common) => Some(anew((0, common))?),
            None => None,
        };
        let sources = self.sources(seed, number);
        let places =
            sources.into_par_iter().enumerate().map(|(place, source)| anew((place, &self.nodes[source])));
        Some((places.collect::<Option<_>>()?, common))
    }

    /// For each node the one that takes its place.
    fn sources(&self, seed: u64, number: u64) -> Vec<usize> {
        let mut sources: Vec<usize> = (0..self.nodes.len()).collect();
        for (group, repeats) in self.repeats.iter().enumerate() {
            let draws = Draws::new(seed, &[stream::RECORDINGS, number, group as u64]);
            repeats.draw(&draws).for_each(|(place, source)| sources[place] = source);
        }
        sources
    }
}
