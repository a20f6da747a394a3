//! How many ranks recordings support.

use quell_recording::Nanos;
use quell_sim::SyncMode;

use super::{NodeNoise, WINDOWS_PER_RANK};

/// The number of ranks that the traces support.
///
/// Ranks fill node after node, one for each CPU, and the nodes take the recordings in turn. So each recording has to support its share of the
/// ranks, and a long one does not make up for a short one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Support {
    /// Number of independent windows, if each CPU has as many as the one with the fewest; and the length of the widest.
    pub windows: u64,
    pub window: Nanos,
    /// The most ranks for which all recordings have enough windows.
    pub ranks: u64,
    /// Whether they suffice for any number of ranks: synchronised nodes draw one quantum for each CPU.
    any: bool,
}

impl Support {
    /// For a job whose quanta have this length.
    pub fn from_nodes(nodes: &[NodeNoise], quantum: Nanos, sync: SyncMode) -> Self {
        let cpus: u64 = nodes.iter().map(|node| node.traces.len() as u64).sum();
        let widest = nodes.iter().map(|node| node.window(quantum)).max().unwrap_or(quantum);
        let mut support =
            Self { windows: u64::MAX, window: widest, ranks: u64::MAX, any: sync == SyncMode::Phase };
        let mut first = 0;
        for node in nodes {
            let (windows, own) = (node.windows(node.window(quantum)), (node.traces.len() as u64).max(1));
            let most = windows / WINDOWS_PER_RANK;
            // The next rank on such a node would be the first without windows.
            let ranks = (most / own).saturating_mul(cpus).saturating_add(first + most % own);
            support.windows = support.windows.min((windows / own).saturating_mul(cpus));
            support.ranks = support.ranks.min(ranks);
            support.any &= own <= most;
            first += own;
        }
        if nodes.is_empty() { Self { windows: 0, ranks: 0, any: false, ..support } } else { support }
    }

    /// Whether the traces support this number of ranks.
    pub fn holds(&self, ranks: u64) -> bool {
        self.any || ranks <= self.ranks
    }
}

#[cfg(test)]
mod tests {
    use quell_recording::{Cpu, Span, Trace};

    use super::*;

    const QUANTUM: Nanos = Nanos::from_nanos(100);

    /// A node without noise, so a window is a quantum.
    fn node(cpus: u32, length_ns: u64) -> NodeNoise {
        let span = Span { start: Nanos::ZERO, end: Nanos::from_nanos(length_ns) };
        let trace = |cpu| Trace { cpu: Cpu(cpu), span, detours: Vec::new() };
        NodeNoise {
            name: "n".into(),
            origin: None,
            traces: (0..cpus).map(trace).collect(),
            limits: Vec::new(),
        }
    }

    fn support(nodes: &[NodeNoise], quantum: u64, sync: SyncMode) -> Support {
        Support::from_nodes(nodes, Nanos::from_nanos(quantum), sync)
    }

    #[test]
    fn ranks_are_supported_by_ten_windows_each() {
        let nodes = [node(1, 1_000), node(2, 1_000)];
        let found = support(&nodes, 100, SyncMode::None);
        assert_eq!((found.windows, found.window, found.ranks), (30, QUANTUM, 3));
        assert!(found.holds(3) && !found.holds(4));
        assert!(support(&nodes, 100, SyncMode::Phase).holds(1_000), "three CPUs draw for all");
        assert!(!support(&nodes, 101, SyncMode::Phase).holds(1_000), "nine windows each");
        assert!(!support(&[], 100, SyncMode::Phase).holds(1));
    }

    /// Of two recordings of one CPU each, every second rank is on either.
    #[test]
    fn a_long_recording_does_not_make_up_for_a_short_one() {
        let [short, long] = [node(1, 2_000), node(1, 1_000_000)];
        for (nodes, ranks) in [([short.clone(), long.clone()], 4), ([long.clone(), short.clone()], 5)] {
            let found = support(&nodes, 100, SyncMode::None);
            assert_eq!((found.ranks, found.windows), (ranks, 40));
        }
        assert_eq!(support(std::slice::from_ref(&long), 100, SyncMode::None).ranks, 1_000);
        let too_short = [node(1, 900), long];
        assert!(!support(&too_short, 100, SyncMode::Phase).holds(1), "its own CPU has nine windows");
    }

    /// Counted one rank after another.
    #[test]
    fn the_number_of_ranks_is_that_of_a_count() {
        for (cpus, lengths) in [([1, 3], [4_000, 7_000]), ([2, 5], [9_000, 3_000]), ([4, 1], [1_500, 12_000])]
        {
            let nodes = [node(cpus[0], lengths[0]), node(cpus[1], lengths[1])];
            let mut left = [0, 1].map(|i| nodes[i].windows(QUANTUM) / WINDOWS_PER_RANK);
            let places = [0, 1].map(|i| vec![i; cpus[i] as usize]).concat();
            let has_windows = |place: &usize| {
                let has = left[*place] > 0;
                left[*place] = left[*place].saturating_sub(1);
                has
            };
            let counted = places.into_iter().cycle().take_while(has_windows).count() as u64;
            assert_eq!(support(&nodes, 100, SyncMode::None).ranks, counted);
        }
    }
}
