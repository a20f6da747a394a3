//! The noise of a point, opened once for all points that use it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use quell_analysis::predict::NodeNoise;
use quell_analysis::whatif::SourceSelector;
use quell_sim::Node;

use super::{Failure, Recent};
use quell_request::noise::{self, ModelScale};

/// The noise of a file, without the sources that a point leaves out.
///
/// # Errors
/// If the file holds no noise.
pub fn noise_without(
    path: &Path,
    without: &[SourceSelector],
    scale: ModelScale,
) -> anyhow::Result<NodeNoise> {
    if without.is_empty() {
        return noise::open(path, scale);
    }
    Ok(noise::attributed(path, scale)?.without(without))
}

/// The nodes of one machine.
#[derive(Debug)]
pub struct Noise {
    /// The noise of each node.
    pub nodes: Vec<NodeNoise>,
    clocks: OnceLock<Result<Vec<Node>, String>>,
}

impl Noise {
    /// The progress clocks of the nodes, built on first use.
    ///
    /// # Errors
    /// If a trace cannot be converted to a clock.
    pub fn clocks(&self) -> Result<&[Node], String> {
        let per_node = |noise: &NodeNoise| {
            Node::new(&noise.traces).map_err(|reason| format!("{}: {reason}", noise.name))
        };
        let clocks = self.clocks.get_or_init(|| self.nodes.iter().map(per_node).collect());
        clocks.as_deref().map_err(Clone::clone)
    }
}

/// A cache of opened noise.
#[derive(Debug)]
pub struct Opened(Recent<(Vec<PathBuf>, Vec<String>), Noise>);

/// Maximum number of recordings in memory; noise rarely changes from one point to the next.
const MOST_OPEN: usize = 8;

impl Opened {
    /// An empty cache.
    pub fn new() -> Self {
        Self(Recent::new(MOST_OPEN))
    }

    /// The noise of these files without these sources. The noise of a model depends on the point, and is not cached.
    ///
    /// # Errors
    /// As for [`noise_without`].
    pub fn get(
        &self,
        paths: &[PathBuf],
        without: &[String],
        scale: ModelScale,
    ) -> Result<Arc<Noise>, Failure> {
        let open = || {
            let patterns = without.iter().map(|text| text.parse().map_err(anyhow::Error::msg));
            let patterns = patterns.collect::<anyhow::Result<Vec<SourceSelector>>>()?;
            let nodes = paths.iter().map(|path| {
                noise_without(path, &patterns, scale).with_context(|| path.display().to_string())
            });
            Ok(Noise { nodes: nodes.collect::<anyhow::Result<_>>()?, clocks: OnceLock::new() })
        };
        let model = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
        if paths.iter().any(model) {
            return Ok(Arc::new(open()?));
        }
        self.0.get(&(paths.to_vec(), without.to_vec()), open)
    }
}
