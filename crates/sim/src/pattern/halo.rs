//! Halo exchange between neighbours in a grid.

use std::ops::RangeInclusive;

use super::grid::Grid;
use super::{Params, Pattern, PatternError, StepOps};
use crate::loggops::Shape;

/// A halo exchange in one to four dimensions: each rank sends to and receives from both neighbours in every
/// dimension, all at once. Without periodic boundaries, ranks at an end have fewer neighbours; a dimension of one place has
/// none. Each direction has its own tag, because in a periodic dimension of two places both neighbours are the same rank.
#[derive(Clone, Debug)]
pub(super) struct Halo {
    grid: Grid,
    periodic: bool,
    /// The send and the receive of each direction.
    shapes: Vec<Shape>,
}

impl Halo {
    /// Faces of `bytes`, on the given grid, or on a balanced one of `usual` dimensions.
    pub(super) fn new(
        params: &Params,
        pattern: &'static str,
        dimensions: RangeInclusive<usize>,
        usual: usize,
    ) -> Result<Self, PatternError> {
        let dims = params.grid(pattern, dimensions, usual)?;
        let directions = 0..2 * dims.len() as u32;
        let pair = |tag| [Shape::send(params.bytes, tag), Shape::recv(params.bytes, tag)];
        let shapes = directions.flat_map(pair).collect();
        Ok(Self { grid: Grid::new(&dims), periodic: params.periodic, shapes })
    }
}

impl Pattern for Halo {
    fn ranks(&self) -> u32 {
        self.grid.places()
    }

    fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    #[inline]
    fn steps(&self, _: u32, _: u32) -> u32 {
        1
    }

    fn step(&self, rank: u32, _: u32, _: u32, ops: &mut StepOps<'_>) {
        let around = self.grid.around(rank, self.periodic);
        let directions = || around.iter().flatten().enumerate();
        for (direction, &neighbour) in directions() {
            if let Some(to) = neighbour {
                ops.send(to, 2 * direction as u32);
            }
        }
        for (direction, &neighbour) in directions() {
            if let Some(from) = neighbour {
                // The message from the neighbour below was sent upwards.
                ops.recv(from, 2 * (direction as u32 ^ 1) + 1);
            }
        }
    }

    fn totals(&self) -> Option<(u64, u64)> {
        let places = u64::from(self.grid.places());
        let along = |dim: u64| match (dim, self.periodic) {
            (1, _) => 0,
            (_, true) => 2 * places,
            (_, false) => 2 * (places - places / dim),
        };
        let sends = self.grid.dims().iter().map(|&dim| along(u64::from(dim))).sum::<u64>();
        Some((2 * sends, sends))
    }
}
