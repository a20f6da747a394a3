//! Draws the noise of all nodes of a job again.

use quell_recording::Nanos;
use quell_sim::{BspError, Draws, Node};
use rayon::prelude::*;

use super::resample::Resampler;
use super::{JobNoise, NodeNoise, stream};

/// The noise of a job's nodes, ready to be drawn again.
pub(crate) struct Redraw {
    nodes: Vec<Resampler>,
    /// The noise that all nodes have at the same time.
    common: Option<Resampler>,
}

impl Redraw {
    pub(crate) fn new(noise: JobNoise<'_>, quantum: Nanos) -> Result<Self, BspError> {
        let of = |(source, node): (usize, &NodeNoise)| {
            Resampler::new(node, noise.recorded.get(source).unwrap_or(node), quantum)
        };
        let nodes = noise.nodes.par_iter().enumerate().map(of).collect::<Result<_, _>>()?;
        // The common noise was part of the first node, so it uses the same blocks.
        Ok(Self { nodes, common: noise.common.map(|common| of((0, common))).transpose()? })
    }

    /// The nodes of the replicate with this number, and their common noise; `None` if the draw left no useful time at all.
    pub(crate) fn draw(&self, seed: u64, number: u64) -> Option<(Vec<Node>, Option<Node>)> {
        let anew = |(source, resampler): (usize, &Resampler)| {
            Node::new(&resampler.draw(&Draws::new(seed, &[stream::BLOCKS, number, source as u64]))).ok()
        };
        let common = match &self.common {
            Some(common) => Some(anew((0, common))?),
            None => None,
        };
        Some((self.nodes.par_iter().enumerate().map(anew).collect::<Option<_>>()?, common))
    }
}
