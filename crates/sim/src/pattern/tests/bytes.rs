//! Number of bytes that each rank sends and receives, compared with what the algorithms must move.

use super::play::play;
use super::*;
use crate::loggops::{Kind, Program};

/// For each rank, bytes sent and bytes received.
fn moved(name: &str, params: &Params) -> Vec<(u64, u64)> {
    let steps = by_name(name, params).unwrap();
    let by_kind = |freed: &[(u64, u32, u32)], kind| {
        let shapes = freed.iter().map(|&(_, shape, _)| steps.shapes()[shape as usize]);
        shapes.filter(|shape| shape.kind == kind).map(|shape| shape.size).sum()
    };
    let ranks = play(&steps, 0).freed;
    ranks.iter().map(|freed| (by_kind(freed, Kind::Send), by_kind(freed, Kind::Recv))).collect()
}

fn sizes() -> impl Iterator<Item = Params> {
    let bytes = [0, 1, 13, 1000, 4097];
    let of_ranks =
        move |ranks| bytes.map(|bytes| Params { ranks, bytes, root: ranks / 2, ..Params::default() });
    (1..=40).chain([64, 100]).flat_map(of_ranks)
}

/// Number of bytes of a chunk of a vector.
fn chunk(bytes: u64, chunks: u32, number: u32) -> u64 {
    let (each, larger) = (bytes / u64::from(chunks), bytes % u64::from(chunks));
    each + u64::from(u64::from(number) < larger)
}

#[test]
fn scatter_leaves_each_rank_its_block_and_gather_takes_it() {
    for params in sizes() {
        for (rank, (sent, received)) in (0..).zip(moved("binomial-scatter", &params)) {
            let all = if rank == params.root { params.bytes * u64::from(params.ranks) } else { received };
            assert_eq!(all - sent, params.bytes, "{params:?}");
        }
        for (rank, (sent, received)) in (0..).zip(moved("binomial-gather", &params)) {
            let all = if rank == params.root { params.bytes * u64::from(params.ranks) } else { sent };
            assert_eq!(all - received, params.bytes, "{params:?}");
        }
    }
}

#[test]
fn allgather_and_pairwise_alltoall_move_the_blocks_of_all_others() {
    for name in ["allgather-ring", "allgather-bruck", "alltoall-pairwise"] {
        for params in sizes() {
            let others = params.bytes * u64::from(params.ranks - 1);
            assert!(moved(name, &params).iter().all(|&both| both == (others, others)), "{name} {params:?}");
        }
    }
}

#[test]
fn alltoall_of_bruck_moves_a_block_once_for_each_bit_of_its_distance() {
    for params in sizes() {
        let hops: u64 = (0..params.ranks).map(|distance| u64::from(distance.count_ones())).sum();
        let bytes = hops * params.bytes;
        assert!(moved("alltoall-bruck", &params).iter().all(|&both| both == (bytes, bytes)), "{params:?}");
    }
}

#[test]
fn rings_move_all_chunks_but_one_in_each_phase() {
    for params in sizes() {
        let Params { ranks, bytes, .. } = params;
        let of = |rank: u32| chunk(bytes, ranks, rank % ranks);
        let alone = u64::from(ranks > 1);
        for (rank, (sent, received)) in (0..).zip(moved("reduce-scatter", &params)) {
            let expected = (bytes - of(rank), bytes - of(rank + ranks - 1));
            assert_eq!((sent, received), (expected.0 * alone, expected.1 * alone), "{params:?}");
        }
        for (rank, (sent, received)) in (0..).zip(moved("allreduce-ring", &params)) {
            let sends = 2 * bytes - of(rank) - of(rank + 1);
            let receives = 2 * bytes - of(rank + ranks - 1) - of(rank);
            assert_eq!((sent, received), (sends * alone, receives * alone), "{params:?}");
        }
    }
}

#[test]
fn halving_and_doubling_move_all_chunks_but_ones_own() {
    for params in sizes().filter(|params| params.ranks.is_power_of_two()) {
        let Params { ranks, bytes, .. } = params;
        let bits = ranks.ilog2();
        let moved = moved("allreduce-rabenseifner", &params);
        for (rank, &both) in (0u32..).zip(&moved) {
            let own = (0..bits).fold(0, |own, bit| own | ((rank >> bit & 1) << (bits - 1 - bit)));
            let half = |bit: u32| {
                let first = own >> bit << bit;
                (first..first + (1 << bit)).map(|number| chunk(bytes, ranks, number)).sum::<u64>()
            };
            // All chunks but its own go one way in halves; the halves that it keeps go the other way.
            let one_way = bytes - chunk(bytes, ranks, own) + (0..bits).map(half).sum::<u64>();
            assert_eq!(both, (one_way, one_way), "rank {rank} of {params:?}");
        }
        let both = moved.iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        assert_eq!(both, (2 * bytes * u64::from(ranks - 1), 2 * bytes * u64::from(ranks - 1)));
    }
}
