//! Grids in which ranks communicate at constant offsets, and grids of the same kind for other numbers of ranks.

use quell_sim::pattern::balanced;

/// Maximum number of dimensions that are tried.
const MOST_DIMENSIONS: usize = 4;
/// Maximum number of grids that are tried.
const MOST_GRIDS: usize = 4096;

/// Ranks in a grid, the last dimension the fastest, as MPI numbers them; some dimensions may be periodic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub dims: Vec<u32>,
    pub periodic: Vec<bool>,
}

/// Distance to another rank in each dimension.
pub(super) type Offset = Vec<i64>;

impl Grid {
    /// All grids of this number of ranks, those with fewer dimensions first.
    pub fn all(ranks: u32) -> Vec<Self> {
        let mut grids = Vec::new();
        for dimensions in 1..=MOST_DIMENSIONS {
            let mut shapes = Vec::new();
            split(ranks, dimensions, &mut Vec::new(), &mut shapes);
            for dims in shapes {
                for ends in 0..1u32 << dimensions {
                    let periodic = (0..dimensions).map(|dimension| ends >> dimension & 1 == 0).collect();
                    grids.push(Self { dims: dims.clone(), periodic });
                }
            }
        }
        grids.truncate(MOST_GRIDS);
        grids
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.dims.iter().product()
    }

    /// Whether it has two dimensions that are equal.
    pub fn is_square(&self) -> bool {
        matches!(self.dims[..], [rows, columns] if rows == columns)
    }

    /// The rank with the coordinates of another in reverse.
    pub fn transposed(&self, rank: u32) -> u32 {
        let columns = self.dims.last().copied().unwrap_or(1);
        rank % columns * (self.ranks() / columns) + rank / columns
    }

    /// The coordinates of a rank.
    pub fn place(&self, rank: u32) -> Vec<i64> {
        let mut left = rank;
        let mut place: Vec<i64> = self
            .dims
            .iter()
            .rev()
            .map(|dim| {
                let at = left % dim;
                left /= dim;
                i64::from(at)
            })
            .collect();
        place.reverse();
        place
    }

    /// The offset from one rank to another, in the shorter direction of a periodic dimension; if both are equally long, `up` or down.
    pub fn offset(&self, from: u32, to: u32, up: bool) -> Offset {
        let places = self.place(from).into_iter().zip(self.place(to));
        let ways = places.zip(self.dims.iter().zip(&self.periodic)).map(|((from, to), (dim, periodic))| {
            let (way, dim) = (to - from, i64::from(*dim));
            if !periodic {
                return way;
            }
            let way = way.rem_euclid(dim);
            let back = 2 * way > dim || (2 * way == dim && !up);
            if back { way - dim } else { way }
        });
        ways.collect()
    }

    /// Whether the offset is equally long in both directions of a dimension, so that the intended one is unknown.
    pub fn is_ambiguous(&self, offset: &Offset) -> bool {
        let ways = offset.iter().zip(self.dims.iter().zip(&self.periodic));
        ways.into_iter()
            .any(|(way, (dim, periodic))| *periodic && *way != 0 && 2 * way.abs() == i64::from(*dim))
    }

    /// The rank at an offset; `None` beyond an end.
    pub fn at(&self, from: u32, offset: &Offset) -> Option<u32> {
        let (mut rank, mut stride, mut left) = (0, 1, from);
        for ((way, dim), periodic) in offset.iter().zip(&self.dims).zip(&self.periodic).rev() {
            let at = i64::from(left % dim) + way;
            left /= dim;
            let dim = i64::from(*dim);
            let there = if *periodic { at.rem_euclid(dim) } else { at };
            if !(0..dim).contains(&there) {
                return None;
            }
            rank += there * stride;
            stride *= dim;
        }
        u32::try_from(rank).ok()
    }

    /// A grid of the same kind for this number of ranks: with these dimensions, or as balanced as possible, with the larger dimensions where this
    /// one has them. `None` if these dimensions are others in number or product.
    pub fn resized(&self, ranks: u32, dims: Option<&[u32]>) -> Option<Self> {
        let dims = match dims {
            Some(dims) => {
                let product = dims.iter().try_fold(1u32, |product, dim| product.checked_mul(*dim));
                (dims.len() == self.dims.len() && product == Some(ranks)).then(|| dims.to_vec())?
            }
            None => {
                let mut places: Vec<usize> = (0..self.dims.len()).collect();
                places.sort_by_key(|place| std::cmp::Reverse(self.dims[*place]));
                let mut dims = vec![1; self.dims.len()];
                for (place, dim) in places.into_iter().zip(balanced(ranks, self.dims.len())) {
                    dims[place] = dim;
                }
                dims
            }
        };
        Some(Self { dims, periodic: self.periodic.clone() })
    }

    /// In words, as in `4x4 periodic`.
    pub fn words(&self) -> String {
        let dims: Vec<String> = self.dims.iter().map(u32::to_string).collect();
        let ends = match (self.periodic.iter().all(|ends| *ends), self.periodic.contains(&true)) {
            (true, _) => "whose ends are neighbours",
            (_, false) => "whose ends are no neighbours",
            _ => "whose ends are neighbours in some dimensions",
        };
        format!("{} grid {ends}", dims.join("x"))
    }
}

/// All ways to write a number as a product of this many factors, each above 1 unless it is the only one.
fn split(ranks: u32, dimensions: usize, so_far: &mut Vec<u32>, all: &mut Vec<Vec<u32>>) {
    if all.len() >= MOST_GRIDS {
        return;
    }
    if dimensions == 1 {
        if ranks > 1 || so_far.is_empty() {
            all.push(so_far.iter().copied().chain([ranks]).collect());
        }
        return;
    }
    for dim in (2..=ranks / 2).filter(|dim| ranks.is_multiple_of(*dim)) {
        so_far.push(dim);
        split(ranks / dim, dimensions - 1, so_far, all);
        so_far.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_leads_back_to_where_it_was_measured() {
        for grid in Grid::all(24) {
            for (from, to) in (0..24).flat_map(|from| (0..24).map(move |to| (from, to))) {
                for up in [true, false] {
                    assert_eq!(grid.at(from, &grid.offset(from, to, up)), Some(to), "{grid:?}");
                }
            }
        }
    }

    #[test]
    fn larger_dimensions_stay_where_they_are() {
        let grid = Grid { dims: vec![2, 6], periodic: vec![false, true] };
        let dims = |ranks, dims| grid.resized(ranks, dims).map(|grid| grid.dims);
        assert_eq!(dims(128, None), Some(vec![8, 16]));
        assert_eq!(dims(128, Some(&[64, 2][..])), Some(vec![64, 2]));
        assert_eq!(dims(128, Some(&[64, 4][..])), None);
        assert_eq!(dims(128, Some(&[128][..])), None);
        assert_eq!(dims(7, None), Some(vec![1, 7]));
    }

    fn shapes(ranks: u32) -> Vec<Vec<u32>> {
        let mut shapes: Vec<Vec<u32>> = Grid::all(ranks).into_iter().map(|grid| grid.dims).collect();
        shapes.dedup();
        shapes
    }

    #[test]
    fn grids_are_all_products_of_up_to_four_factors() {
        assert_eq!(shapes(1), [[1]]);
        assert_eq!(shapes(7), [[7]]);
        assert_eq!(shapes(8), [vec![8], vec![2, 4], vec![4, 2], vec![2, 2, 2]]);
        assert_eq!(shapes(32).iter().filter(|dims| dims.len() == 4).count(), 4, "where the 4 is");
        let periodic: Vec<Vec<bool>> = Grid::all(4).into_iter().map(|grid| grid.periodic).collect();
        let (yes, no) = (true, false);
        let expected = [vec![yes], vec![no], vec![yes, yes], vec![no, yes], vec![yes, no], vec![no, no]];
        assert_eq!(periodic, expected);
        // This number has more grids than are tried.
        assert_eq!(Grid::all(83_160).len(), MOST_GRIDS);
    }

    #[test]
    fn an_offset_takes_the_shorter_way() {
        let ring = |dim| Grid { dims: vec![dim], periodic: vec![true] };
        let ways = |grid: Grid, up| (0..grid.dims[0]).map(|to| grid.offset(0, to, up)[0]).collect::<Vec<_>>();
        assert_eq!(ways(ring(5), true), [0, 1, 2, -2, -1]);
        assert_eq!(ways(ring(5), false), [0, 1, 2, -2, -1]);
        assert_eq!(ways(ring(4), true), [0, 1, 2, -1]);
        assert_eq!(ways(ring(4), false), [0, 1, -2, -1]);
        let line = Grid { dims: vec![5], periodic: vec![false] };
        assert_eq!((line.offset(4, 0, true), line.offset(1, 4, true)), (vec![-4], vec![3]));
        // The last dimension is the fastest: 4 is in row 1, 11 is in row 3.
        let plane = Grid { dims: vec![4, 3], periodic: vec![false, true] };
        assert_eq!(plane.offset(4, 11, true), [2, 1]);
        assert_eq!(plane.offset(3, 11, true), [2, -1]);
    }

    #[test]
    fn half_of_a_periodic_dimension_is_ambiguous() {
        let is = |dim: u32, periodic: bool, way: i64| {
            Grid { dims: vec![dim], periodic: vec![periodic] }.is_ambiguous(&vec![way])
        };
        assert!(is(4, true, 2) && is(4, true, -2) && is(2, true, 1));
        assert!(!is(4, true, 1) && !is(4, true, 0) && !is(4, false, 2) && !is(5, true, 2));
        let plane = Grid { dims: vec![4, 6], periodic: vec![true, true] };
        assert!(plane.is_ambiguous(&vec![0, 3]) && !plane.is_ambiguous(&vec![0, 2]));
    }

    #[test]
    fn beyond_an_end_there_is_no_rank() {
        let grid = Grid { dims: vec![2, 3], periodic: vec![false, true] };
        assert_eq!(grid.at(1, &vec![1, 0]), Some(4));
        assert_eq!(grid.at(1, &vec![-1, 0]), None);
        assert_eq!(grid.at(4, &vec![1, 0]), None);
        assert_eq!(grid.at(5, &vec![0, 1]), Some(3));
        assert_eq!(grid.at(3, &vec![-1, -1]), Some(2));
    }

    #[test]
    fn coordinates_in_reverse_are_those_of_the_transposed_rank() {
        let square = Grid { dims: vec![3, 3], periodic: vec![true; 2] };
        assert_eq!(
            (0..9).map(|rank| square.transposed(rank)).collect::<Vec<_>>(),
            [0, 3, 6, 1, 4, 7, 2, 5, 8]
        );
        assert!(square.is_square() && square.ranks() == 9);
        assert!(Grid::all(8).iter().all(|grid| !grid.is_square() && grid.ranks() == 8));
    }

    #[test]
    fn the_words_of_a_grid_tell_whether_its_ends_are_neighbours() {
        let words = |periodic: [bool; 2]| Grid { dims: vec![4, 3], periodic: periodic.to_vec() }.words();
        assert_eq!(words([true, true]), "4x3 grid whose ends are neighbours");
        assert_eq!(words([false, false]), "4x3 grid whose ends are no neighbours");
        assert_eq!(words([false, true]), "4x3 grid whose ends are neighbours in some dimensions");
    }
}
