//! Times without noise, compared with closed forms that follow from LogGOPS alone.
//!
//! A message of s bytes has b = s − 1 further ones (0 for none). From the start of its send, the sender's CPU is busy for
//! o + b·O and its interface for g + b·G; the message arrives after o + L, and then the receiver's CPU is busy for
//! o + b·max(O, G) and its interface for g + b·G. So a message takes a hop of 2o + L + b·max(O, G) from the start of its send to
//! the end of its receive; sends of a rank start S = max(o + b·O, g + b·G) apart, and arrivals that wait are received
//! R = max(o + b·max(O, G), g + b·G) apart. The forms hold if g ≤ 2o + L and b·O ≤ L, so that a rank that
//! answers a message finds its interface free, and has sent its own message when its partner's arrives.

use proptest::prelude::*;

use super::*;
use crate::loggops::{Network, Noise, PerByte, Rules, Run, run};

/// A network, and the number of bytes of a message on it.
#[derive(Clone, Copy, Debug)]
struct Costs {
    net: Network,
    bytes: u64,
}

impl Costs {
    fn further(self, per_byte: PerByte, bytes: u64) -> u64 {
        per_byte.time(bytes.saturating_sub(1))
    }

    /// o + b·O.
    fn sending(self, bytes: u64) -> u64 {
        self.net.overhead + self.further(self.net.overhead_per_byte, bytes)
    }

    /// o + b·max(O, G).
    fn receiving(self, bytes: u64) -> u64 {
        let Network { overhead, gap_per_byte, overhead_per_byte, .. } = self.net;
        overhead + self.further(gap_per_byte.max(overhead_per_byte), bytes)
    }

    /// Time from the start of a send to the end of its receive.
    fn hop(self, bytes: u64) -> u64 {
        self.net.overhead + self.net.latency + self.receiving(bytes)
    }

    fn on_the_wire(self) -> u64 {
        self.net.gap + self.further(self.net.gap_per_byte, self.bytes)
    }

    /// S: time from one send to the next.
    fn between_sends(self) -> u64 {
        self.sending(self.bytes).max(self.on_the_wire())
    }

    /// R: time from one waiting arrival to the next.
    fn between_receives(self) -> u64 {
        self.receiving(self.bytes).max(self.on_the_wire())
    }

    /// When each rank finishes, under the given rules.
    fn finish_under(self, rules: Rules, name: &str, params: Params) -> Vec<u64> {
        let steps = by_name(name, &Params { bytes: self.bytes, ..params }).unwrap();
        let run_of = Run {
            net: self.net,
            ranges: &[],
            levels: &[],
            rules,
            noise: &Noise::None,
            threads: 1,
            progress: crate::loggops::NO_PROGRESS,
        };
        let outcome = run(&steps, &run_of).unwrap();
        assert_eq!(outcome.stuck, None);
        outcome.finish
    }

    /// When each rank finishes, which must be equal under both rules.
    fn finish(self, name: &str, params: Params) -> Vec<u64> {
        let times = self.finish_under(Rules::Physical, name, params.clone());
        assert_eq!(times, self.finish_under(Rules::Compatible, name, params));
        times
    }

    /// When all ranks finish, which must be the same time for all.
    fn finish_together(self, name: &str, params: Params) -> u64 {
        let finish = self.finish(name, params);
        assert!(finish.iter().all(|&at| at == finish[0]), "{finish:?}");
        finish[0]
    }
}

fn params(ranks: u32) -> Params {
    Params { ranks, ..Params::default() }
}

/// Networks with b·O ≤ L and g ≤ 2o + L, and eager messages on them.
fn costs() -> impl Strategy<Value = Costs> {
    let times = (1000u64..5000, 1u64..3000, 0u64..3000, 0u64..8, 0u64..3, 1u64..300);
    times.prop_map(|(latency, overhead, gap, per_byte, work_per_byte, bytes)| {
        let (gap_per_byte, overhead_per_byte) =
            (PerByte::from_nanos(per_byte), PerByte::from_nanos(work_per_byte));
        let gap = gap.min(2 * overhead + latency);
        let net = Network { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_limit: 1 << 20 };
        Costs { net, bytes }
    })
}

/// LogGOPSim's own parameters: o = 1500, L = 2500, g = 1000, G = 6, so that a hop of 8 bytes is 5542 ns.
fn loggopsim(bytes: u64) -> Costs {
    Costs { net: Network::default(), bytes }
}

#[test]
fn a_dissemination_of_1024_ranks_takes_what_loggopsim_says() {
    assert_eq!(loggopsim(8).finish_together("dissemination", params(1024)), 55_420);
    assert_eq!(loggopsim(1).finish_together("dissemination", params(1024)), 10 * (2 * 1500 + 2500));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// The i-th rank after the root gets its block i − 1 sends after the first: (i − 1)·S + hop. The root's CPU is
    /// busy until (P − 2)·S + o + b·O.
    #[test]
    fn linear_scatter(costs in costs(), ranks in 2u32..200) {
        let finish = costs.finish("linear-scatter", params(ranks));
        let sends = costs.between_sends();
        prop_assert_eq!(finish[0], u64::from(ranks - 2) * sends + costs.sending(costs.bytes));
        for (before, &at) in (0..).zip(&finish[1..]) {
            prop_assert_eq!(at, before * sends + costs.hop(costs.bytes));
        }
    }

    /// All messages arrive together, and the root receives them R apart: (P − 2)·R + hop. The others finish at o + b·O.
    #[test]
    fn linear_gather(costs in costs(), ranks in 2u32..200) {
        let finish = costs.finish("linear-gather", params(ranks));
        prop_assert_eq!(finish[0], u64::from(ranks - 2) * costs.between_receives() + costs.hop(costs.bytes));
        prop_assert!(finish[1..].iter().all(|&at| at == costs.sending(costs.bytes)));
    }

    /// A rank with children on m levels that is done at t sends to the child on level l from t + (m − 1 − l)·S on, which takes one
    /// hop. The bits of a rank from the highest on give its time; its own last send starts (m − 1)·S later.
    #[test]
    fn binomial_bcast_of_powers_of_two(costs in costs(), levels in 1u32..9) {
        let finish = costs.finish("binomial-bcast", params(1 << levels));
        let sends = costs.between_sends();
        for (rank, &at) in (0u32..).zip(&finish) {
            let (mut time, mut below) = (0, levels);
            for level in (0..levels).rev().filter(|level| rank >> level & 1 == 1) {
                time += u64::from(below - 1 - level) * sends + costs.hop(costs.bytes);
                below = level;
            }
            let sending = if below > 0 { u64::from(below - 1) * sends + costs.sending(costs.bytes) } else { 0 };
            prop_assert_eq!(at, time + sending);
        }
    }

    /// A rank has all blocks of its m lower levels after one hop for each, of 2ˡ blocks on level l, because a subtree is ready
    /// when the one before it was received: Σ hop(2ˡ·s), at the root m(2o + L) + max(O, G)·((2ᵐ − 1)s − m). Then it sends
    /// its own 2ᵐ blocks.
    #[test]
    fn binomial_gather_of_powers_of_two(costs in costs(), levels in 1u32..9) {
        let finish = costs.finish("binomial-gather", params(1 << levels));
        let gathered = |levels: u32| (0..levels).map(|level| costs.hop(costs.bytes << level)).sum::<u64>();
        let Network { overhead, latency, gap_per_byte, overhead_per_byte, .. } = costs.net;
        let bytes = ((1 << levels) - 1) * costs.bytes - u64::from(levels);
        let most = gap_per_byte.max(overhead_per_byte);
        prop_assert_eq!(gathered(levels), u64::from(levels) * (2 * overhead + latency) + most.time(bytes));
        prop_assert_eq!(finish[0], gathered(levels));
        for (rank, &at) in (0u32..).zip(&finish).skip(1) {
            let level = rank.trailing_zeros();
            prop_assert_eq!(at, gathered(level) + costs.sending(costs.bytes << level));
        }
    }

    /// Each round is one hop, on any number of ranks: ⌈log₂ P⌉ hops.
    #[test]
    fn dissemination(costs in costs(), ranks in 2u32..300, iterations in 1u32..4) {
        let rounds = u64::from((ranks - 1).ilog2() + 1) * u64::from(iterations);
        let finish = costs.finish_together("dissemination", Params { iterations, ..params(ranks) });
        prop_assert_eq!(finish, rounds * costs.hop(costs.bytes));
    }

    /// n messages leave S apart, arrive S apart, and are received R apart, where R ≥ S: (n − 1)·R + hop for each round, if
    /// the last is sent before the first arrives: (n − 1)·S + b·O ≤ L.
    #[test]
    fn nway_dissemination_of_whole_rounds(costs in costs(), nway in 1u32..4, rounds in 1u32..4) {
        let sends = u64::from(nway - 1);
        prop_assume!(sends * costs.between_sends() + costs.sending(costs.bytes) <= costs.net.latency + costs.net.overhead);
        let params = Params { nway, ..params((nway + 1).pow(rounds)) };
        let round = sends * costs.between_receives() + costs.hop(costs.bytes);
        // The next round's first send must find its interface free.
        prop_assume!(sends * costs.between_sends() + costs.on_the_wire() <= round);
        prop_assert_eq!(costs.finish_together("nway-dissemination", params), u64::from(rounds) * round);
    }

    /// Each round is one hop and the work of combining: log₂ P·(hop + w).
    #[test]
    fn recursive_doubling_of_powers_of_two(costs in costs(), levels in 1u32..8, reduce in 0u64..4) {
        let params = Params { reduce_per_byte: PerByte::from_nanos(reduce), ..params(1 << levels) };
        let round = costs.hop(costs.bytes) + reduce * costs.bytes;
        let finish = costs.finish_together("allreduce-recursive-doubling", params);
        prop_assert_eq!(finish, u64::from(levels) * round);
    }

    /// In round k of the halving and of the doubling a message has s/2ᵏ⁺¹ bytes; the halving combines them.
    #[test]
    fn rabenseifner_of_powers_of_two(costs in costs(), levels in 1u32..8, reduce in 0u64..4) {
        let costs = Costs { bytes: costs.bytes << levels, ..costs };
        prop_assume!(costs.sending(costs.bytes / 2) <= costs.net.overhead + costs.net.latency);
        prop_assume!(costs.on_the_wire() <= costs.hop(1));
        let params = Params { reduce_per_byte: PerByte::from_nanos(reduce), ..params(1 << levels) };
        let round = |level: u32| 2 * costs.hop(costs.bytes >> (level + 1)) + reduce * (costs.bytes >> (level + 1));
        let finish = costs.finish_together("allreduce-rabenseifner", params);
        prop_assert_eq!(finish, (0..levels).map(round).sum::<u64>());
    }

    /// 2(P − 1) hops of s/P bytes, half of which combine.
    #[test]
    fn ring_allreduce(costs in costs(), ranks in 2u32..60, reduce in 0u64..4) {
        let chunk = costs.bytes;
        let costs = Costs { bytes: chunk * u64::from(ranks), ..costs };
        let params = Params { reduce_per_byte: PerByte::from_nanos(reduce), ..params(ranks) };
        let finish = costs.finish_together("allreduce-ring", params);
        prop_assert_eq!(finish, u64::from(ranks - 1) * (2 * costs.hop(chunk) + reduce * chunk));
    }

    /// P − 1 hops.
    #[test]
    fn alltoall_and_allgather(costs in costs(), ranks in 2u32..60) {
        for name in ["alltoall-pairwise", "allgather-ring"] {
            let finish = costs.finish_together(name, params(ranks));
            prop_assert_eq!(finish, u64::from(ranks - 1) * costs.hop(costs.bytes));
        }
    }

    /// Each superstep is the work and the collective.
    #[test]
    fn bulk_synchronous(costs in costs(), ranks in 2u32..100, work_ns in 1u64..100_000, iterations in 1u32..5) {
        let params = Params { work_ns, iterations, ..params(ranks) };
        let step = work_ns + u64::from((ranks - 1).ilog2() + 1) * costs.hop(costs.bytes);
        prop_assert_eq!(costs.finish_together("bsp", params), u64::from(iterations) * step);
    }
}

/// If each bucket is reduced while the next is computed, only the last one's allreduce is not hidden. LogGOPSim's rules
/// carry no time from one CPU to the other, so they cannot show this.
#[test]
fn a_training_step_hides_all_allreduces_but_the_last() {
    let costs = loggopsim(4 * 8 * 100);
    let params = Params { buckets: 4, work_ns: 3_000_000, optimizer_ns: 5_000, iterations: 3, ..params(8) };
    let last = 14 * costs.hop(100);
    assert!(last < 2_000_000 / 4);
    let finish = costs.finish_under(Rules::Physical, "training-step", params);
    assert_eq!(finish, vec![3 * (3_000_000 + last + 5_000); 8]);
}

/// If messages cost nothing, a sweep over X x Y ranks in B blocks of work w takes 8·B·w plus the waits in between: twice Y − 1
/// blocks until it reaches the next corner, and twice X + Y − 2 until it reaches the opposite one (Mudalige, Vernon & Jarvis
/// 2008: two of their diagonal and two of their full completions).
#[test]
fn a_sweep_fills_its_pipeline_twice_in_full_and_twice_to_the_next_corner() {
    let nothing = PerByte::default();
    let net = Network {
        latency: 0,
        overhead: 0,
        gap: 0,
        gap_per_byte: nothing,
        overhead_per_byte: nothing,
        ..Network::default()
    };
    for (x, y) in [(1, 1), (1, 6), (5, 1), (2, 2), (3, 7), (6, 4)] {
        for blocks in [1, 2, 9] {
            let params = Params { dims: vec![x, y], blocks, work_ns: 100, ..params(x * y) };
            let finish = Costs { net, bytes: 8 }.finish_under(Rules::Physical, "sweep", params);
            let in_blocks = 8 * blocks + 2 * (y - 1) + 2 * (x + y - 2);
            assert_eq!(
                finish.into_iter().max(),
                Some(100 * u64::from(in_blocks)),
                "{x}x{y} in {blocks} blocks"
            );
        }
    }
}
