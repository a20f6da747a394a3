//! Which nodes of a job carry which kind of noise.

/// The nodes of one kind in a job: every `stride`-th node from the `first`, and perhaps a last node that is not
/// full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    first: u64,
    stride: u64,
    full: u64,
    /// Number of the job's last node and its CPUs in use, when it is of this kind and not full.
    pub(super) partial: Option<(u64, usize)>,
}

impl Layout {
    /// Distributes `ranks` over nodes that take the kinds, of `sizes` CPUs each, round-robin; one layout per kind.
    pub(super) fn per_node(ranks: u64, sizes: &[usize]) -> Vec<Self> {
        let stride = sizes.len() as u64;
        let round: u64 = sizes.iter().map(|&size| size as u64).sum();
        let mut rest = ranks % round;
        let lay = |(kind, &size): (usize, &usize)| {
            let (first, rounds) = (kind as u64, ranks / round);
            let here = rest.min(size as u64);
            rest -= here;
            let fills = here == size as u64;
            let partial = (here > 0 && !fills).then_some((rounds * stride + first, here as usize));
            Self { first, stride, full: rounds + u64::from(fills), partial }
        };
        sizes.iter().enumerate().map(lay).collect()
    }

    /// The numbers of the full nodes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u64> {
        (0..self.full).map(|turn| turn * self.stride + self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_every_rank_once_and_in_order(ranks in 1u64..200, sizes in proptest::collection::vec(1usize..6, 1..4)) {
            let mut expected = vec![Vec::new(); sizes.len()];
            let mut left = ranks as usize;
            for node in 0.. {
                let kind = node % sizes.len();
                if left == 0 {
                    break;
                }
                let here = left.min(sizes[kind]);
                expected[kind].push((node as u64, here));
                left -= here;
            }
            for (kind, layout) in Layout::per_node(ranks, &sizes).iter().enumerate() {
                let nodes: Vec<_> = layout.nodes().map(|node| (node, sizes[kind])).chain(layout.partial).collect();
                prop_assert_eq!(&nodes, &expected[kind]);
            }
        }
    }
}
