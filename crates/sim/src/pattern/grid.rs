//! Grids of ranks: the most balanced one, and each rank's place in it.

/// The most balanced grid of `ranks` places with this number of dimensions, as `MPI_Dims_create`
/// defines it (MPI 4.1, §8.5.2): the largest dimension comes first and is as small as possible, then the next.
pub fn balanced(ranks: u32, dimensions: usize) -> Vec<u32> {
    let mut dims = Vec::new();
    let mut left = ranks.max(1);
    for after in (0..dimensions).rev() {
        let dim = smallest_largest(left, after, left);
        dims.push(dim);
        left /= dim;
    }
    dims
}

/// The smallest divisor of `places` whose quotient splits into `after` dimensions that are no larger.
fn smallest_largest(places: u32, after: usize, limit: u32) -> u32 {
    let fits = |&dim: &u32| splits(places / dim, after, dim);
    divisors(places).into_iter().filter(|&dim| dim <= limit).find(fits).unwrap_or(places)
}

/// Whether `places` splits into this number of dimensions, none above `most`.
fn splits(places: u32, dimensions: usize, most: u32) -> bool {
    match dimensions {
        0 => places == 1,
        1 => places <= most,
        _ => {
            let mut usable = divisors(places).into_iter().rev().filter(|&dim| dim <= most);
            usable.any(|dim| splits(places / dim, dimensions - 1, dim))
        }
    }
}

/// All divisors of a number, ascending.
fn divisors(number: u32) -> Vec<u32> {
    let small: Vec<u32> = (1..=number.isqrt()).filter(|dim| number.is_multiple_of(*dim)).collect();
    let large = small.iter().rev().map(|dim| number / dim);
    let large: Vec<u32> = large.filter(|dim| !small.contains(dim)).collect();
    [small, large].concat()
}

/// A grid in the usual notation: `8x8x16`.
pub(super) fn written(dims: &[u32]) -> String {
    dims.iter().map(u32::to_string).collect::<Vec<_>>().join("x")
}

/// Maximum number of dimensions of a grid.
pub(super) const MAX_DIMENSIONS: usize = 4;

/// A grid of ranks, numbered with the last dimension the fastest, as in MPI.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    dims: Vec<u32>,
    places: u32,
}

/// The neighbours below and above in each dimension.
pub(super) type Around = [[Option<u32>; 2]; MAX_DIMENSIONS];

impl Grid {
    /// A grid of up to four dimensions.
    pub(super) fn new(dims: &[u32]) -> Self {
        Self { dims: dims.to_vec(), places: dims.iter().product() }
    }

    pub(super) fn dims(&self) -> &[u32] {
        &self.dims
    }

    pub(super) fn places(&self) -> u32 {
        self.places
    }

    /// A rank's neighbours; with `periodic` a dimension wraps around, but a rank is never its own neighbour.
    #[inline]
    pub(super) fn around(&self, rank: u32, periodic: bool) -> Around {
        let mut around = Around::default();
        let (mut left, mut stride) = (rank, 1);
        for (neighbours, &dim) in around.iter_mut().zip(&self.dims).rev() {
            let place = left % dim;
            left /= dim;
            let round = (dim - 1) * stride;
            let wraps = periodic && dim > 1;
            let below = if place > 0 { Some(rank - stride) } else { wraps.then_some(rank + round) };
            let above = if place + 1 < dim { Some(rank + stride) } else { wraps.then(|| rank - round) };
            *neighbours = [below, above];
            stride *= dim;
        }
        around
    }
}
