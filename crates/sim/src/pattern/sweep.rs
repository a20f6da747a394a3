//! Wavefront sweeps.

use super::grid::{Around, Grid};
use super::{Params, Pattern, PatternError, StepOps};
use crate::loggops::Shape;

const SEND: u32 = 0;
const RECV: u32 = 1;
const WORK: u32 = 2;

/// The corners at which pairs of octants start, as the end of each of the two dimensions. In this order, two of the four
/// changes of corner wait until the sweep reaches a neighbouring corner, and two until it reaches the opposite one.
const CORNERS: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];
const OCTANTS: u32 = 8;
/// Steps of a block: receive, work, send.
const STEPS: u32 = 3;

/// Sweeps over a two-dimensional grid of ranks from its corners, as in Sweep3D (Hoisie, Lubeck & Wasserman, "Performance
/// and scalability analysis of teraflop-scale parallel architectures using multidimensional wavefront applications", 2000;
/// order of the octants as in Mudalige, Vernon & Jarvis, "A plug-and-play model for evaluating wavefront computations",
/// 2008). For each of eight octants and each of the blocks along the third dimension a rank receives from its one
/// or two neighbours upstream, works, and sends to those downstream.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    grid: Grid,
    blocks: u32,
    work: bool,
    shapes: [Shape; 3],
}

impl Sweep {
    /// Faces of `bytes`, and `work_ns` of work for each of `blocks`.
    pub(super) fn new(params: &Params) -> Result<Self, PatternError> {
        let grid = Grid::new(&params.grid("sweep", 2..=2, 2)?);
        let shapes =
            [Shape::send(params.bytes, 0), Shape::recv(params.bytes, 0), Shape::calc(params.work_ns)];
        Ok(Self { grid, blocks: params.blocks, work: params.work_ns > 0, shapes })
    }

    /// In each dimension, the neighbour upstream, or downstream if not `upstream`.
    #[inline]
    fn neighbours(&self, around: &Around, octant: u32, upstream: bool) -> [Option<u32>; 2] {
        let backwards = CORNERS[(octant / 2) as usize];
        [0, 1].map(|dimension| around[dimension][usize::from(backwards[dimension] == upstream)])
    }
}

impl Pattern for Sweep {
    fn ranks(&self) -> u32 {
        self.grid.places()
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        OCTANTS * self.blocks * STEPS
    }

    #[inline]
    fn step(&self, rank: u32, _: u32, step: u32, ops: &mut StepOps<'_>) {
        let octant = step / STEPS / self.blocks;
        let neighbours = |upstream| {
            self.neighbours(&self.grid.around(rank, false), octant, upstream).into_iter().flatten()
        };
        match step % STEPS {
            0 => neighbours(true).for_each(|from| ops.recv(from, RECV)),
            1 if self.work => ops.calc(WORK),
            1 => {}
            _ => neighbours(false).for_each(|to| ops.send(to, SEND)),
        }
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let units = u64::from(OCTANTS) * u64::from(self.blocks);
        let ranks = u64::from(self.ranks());
        let faces: u64 = self.grid.dims().iter().map(|&dim| ranks - ranks / u64::from(dim)).sum();
        let (sends, works) = (units.checked_mul(faces)?, units.checked_mul(ranks)?);
        Some((sends.checked_mul(2)?.checked_add(works * u64::from(self.work))?, sends))
    }
}
