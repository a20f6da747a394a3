//! Rules by which a rank of a grid finds its peer.

use super::grid::{Grid, Offset};

/// Where the peer of a rank is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Way {
    /// At a constant distance in each dimension.
    Offset(Offset),
    /// Where one bit of a coordinate differs: the peers of the rounds of a reduction by halves.
    Flip { dimension: usize, bit: u32 },
    /// In a square, where the coordinates are exchanged.
    Transposed,
}

impl Way {
    /// The rules by which one rank can find the other, those that need the least first. `up` if a message to the other is sent.
    pub fn between(grid: &Grid, from: u32, to: u32, up: bool) -> Vec<Self> {
        let offset = grid.offset(from, to, up);
        let flip = flip(grid, from, to);
        let transposed = (grid.is_square() && grid.transposed(from) == to).then_some(Self::Transposed);
        // Of two ranks, each is before and behind the other.
        let clear = grid.ranks() <= 2 || !grid.is_ambiguous(&offset);
        clear.then_some(Self::Offset(offset)).into_iter().chain(flip).chain(transposed).collect()
    }

    /// The peer of a rank; `None` beyond an end.
    pub fn at(&self, grid: &Grid, from: u32) -> Option<u32> {
        match self {
            Self::Offset(offset) => grid.at(from, offset),
            Self::Flip { dimension, bit } => {
                let mut offset = vec![0; grid.dims.len()];
                let at = grid.place(from)[*dimension];
                offset[*dimension] = (at ^ (1 << bit)) - at;
                grid.at(from, &offset)
            }
            Self::Transposed => Some(grid.transposed(from)),
        }
    }

    /// Whether the message's size depends on the extent of the ranks' parts in this dimension, in a problem that the grid divides.
    pub fn is_across(&self, dimension: usize) -> bool {
        match self {
            Self::Offset(offset) => offset[dimension] == 0,
            Self::Flip { dimension: along, .. } => *along != dimension,
            Self::Transposed => dimension == 0,
        }
    }

    /// The first rank that has a peer in this dimension of a grid, and the number of those that have.
    pub fn span(&self, grid: &Grid, dimension: usize) -> (u32, u32) {
        let dim = grid.dims[dimension];
        match self {
            Self::Offset(offset) if !grid.periodic[dimension] => {
                let way = offset[dimension];
                let missing = u32::try_from(way.unsigned_abs()).map_or(dim, |missing| missing.min(dim));
                (if way < 0 { missing } else { 0 }, dim - missing)
            }
            _ => (0, dim),
        }
    }

    /// Whether the rule leads to other ranks in this grid.
    pub fn fits(&self, grid: &Grid) -> bool {
        match self {
            Self::Offset(offset) => {
                offset.iter().zip(&grid.dims).all(|(way, dim)| way.abs() < i64::from(*dim).max(1))
            }
            Self::Flip { dimension, .. } => grid.dims[*dimension].is_power_of_two(),
            Self::Transposed => grid.is_square(),
        }
    }
}

/// The bit in which two ranks differ, if that is all, and there are others in which they could.
fn flip(grid: &Grid, from: u32, to: u32) -> Option<Way> {
    let places = grid.place(from).into_iter().zip(grid.place(to)).enumerate();
    let mut different = places.filter(|(_, (from, to))| from != to);
    let (dimension, (from, to)) = different.next()?;
    let bits = (from ^ to) as u64;
    let dim = grid.dims[dimension];
    let alone = different.next().is_none() && bits.is_power_of_two();
    (alone && dim.is_power_of_two() && dim > 2).then(|| Way::Flip { dimension, bit: bits.trailing_zeros() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(dims: &[u32], periodic: bool) -> Grid {
        Grid { dims: dims.to_vec(), periodic: vec![periodic; dims.len()] }
    }

    #[test]
    fn a_rule_leads_to_the_rank_from_which_it_was_found() {
        for grid in Grid::all(16) {
            for (from, to) in (0..16).flat_map(|from| (0..16).map(move |to| (from, to))) {
                for way in Way::between(&grid, from, to, true) {
                    assert_eq!(way.at(&grid, from), Some(to), "{way:?} {grid:?}");
                    assert!(way.fits(&grid), "{way:?} {grid:?}");
                }
            }
        }
    }

    #[test]
    fn peers_half_a_ring_away_differ_in_a_bit() {
        let square = grid(&[4, 4], true);
        assert_eq!(Way::between(&square, 0, 2, true), [Way::Flip { dimension: 1, bit: 1 }]);
        assert_eq!(Way::between(&square, 2, 8, true), [Way::Transposed]);
        let near = [Way::Offset(vec![0, 1]), Way::Flip { dimension: 1, bit: 0 }];
        assert_eq!(Way::between(&square, 0, 1, true), near);
        // Of two ranks in a dimension there is no telling.
        assert_eq!(Way::between(&grid(&[2, 3], true), 0, 3, true), []);
        assert_eq!(Way::between(&grid(&[2], true), 0, 1, false), [Way::Offset(vec![-1])]);
        assert_eq!(Way::between(&grid(&[6], true), 0, 3, true), []);
    }

    #[test]
    fn ranks_without_a_peer_are_not_in_the_span() {
        let line = grid(&[5], false);
        let span = |way| Way::Offset(vec![way]).span(&line, 0);
        assert_eq!([span(0), span(1), span(-2), span(9)], [(0, 5), (0, 4), (2, 3), (0, 0)]);
        assert_eq!(Way::Offset(vec![1]).span(&grid(&[5], true), 0), (0, 5));
        for way in [1, -2] {
            let (first, count) = Way::Offset(vec![way]).span(&line, 0);
            for rank in 0..5 {
                let has = Way::Offset(vec![way]).at(&line, rank).is_some();
                assert_eq!(has, (first..first + count).contains(&rank));
            }
        }
    }

    #[test]
    fn rules_need_a_grid_of_their_kind() {
        assert!(Way::Transposed.fits(&grid(&[8, 8], true)) && !Way::Transposed.fits(&grid(&[8, 4], true)));
        let flip = Way::Flip { dimension: 1, bit: 0 };
        assert!(flip.fits(&grid(&[3, 8], true)) && !flip.fits(&grid(&[8, 3], true)));
        assert!(!Way::Offset(vec![0, 3]).fits(&grid(&[8, 3], true)));
    }
}
