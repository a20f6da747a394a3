use quell_recording::mpi::Operation;

use super::{Scaling, What, corresponding, redistributed};

#[test]
fn blocks_scale_as_the_volume_of_their_operation() {
    use Operation::*;
    let bytes = |operation, scaling: Scaling, bytes| {
        scaling.collective(&What { operation, bytes, root: 0 }, 4, 16).bytes
    };
    let both = |operation| [Scaling::Weak, Scaling::Strong].map(|scaling| bytes(operation, scaling, 1600));
    for operation in Operation::ALL {
        let expected = match operation {
            Alltoall | Alltoallv | Alltoallw => [400, 100],
            Allgather | Allgatherv | Gather | Gatherv | Scatter | Scatterv => [1600, 400],
            ReduceScatter | ReduceScatterBlock => [1600, 400],
            Bcast | Reduce | Allreduce | Scan | Exscan | Barrier | Create | Destroy => [1600, 1600],
        };
        assert_eq!(both(operation), expected, "{operation:?}");
        // A count of each rank.
        assert_eq!(bytes(operation, Scaling::Strong, 8), 8, "{operation:?}");
    }
    assert_eq!(bytes(Alltoall, Scaling::Strong, 9), 1);
    let huge =
        Scaling::Strong.collective(&What { operation: Alltoall, bytes: u64::MAX, root: 0 }, u32::MAX, 1);
    assert_eq!(huge.bytes, u64::MAX);
}

#[test]
fn work_is_divided_only_if_the_problem_is() {
    assert_eq!(Scaling::Weak.work(900, 3, 9), 900);
    assert_eq!(Scaling::Strong.work(900, 3, 9), 300);
    assert_eq!(Scaling::Strong.work(900, 9, 3), 2700);
}

#[test]
fn ends_are_like_ends_and_the_same_number_is_the_same() {
    let all = |from, to| (0..to).map(|at| corresponding(at, from, to)).collect::<Vec<_>>();
    assert_eq!(all(4, 4), [0, 1, 2, 3]);
    assert_eq!(all(3, 6), [0, 1, 1, 1, 1, 2]);
    assert_eq!(all(4, 8), [0, 1, 1, 1, 2, 2, 2, 3]);
    assert_eq!(all(6, 3), [0, 1, 5]);
    assert_eq!(all(2, 5), [0, 0, 0, 1, 1]);
    assert_eq!(all(1, 3), [0, 0, 0]);
    assert_eq!(all(7, 1), [0]);
    for (from, to) in (1..20).flat_map(|from| (1..20).map(move |to| (from, to))) {
        assert!(all(from, to).is_sorted() && all(from, to).iter().all(|at| *at < from), "{from} {to}");
    }
}

#[test]
fn a_sum_is_divided_in_its_units() {
    assert_eq!(redistributed(&[17 * 40, 16 * 40], 4), [9 * 40, 8 * 40, 8 * 40, 8 * 40]);
    assert_eq!(redistributed(&[16 * 40, 17 * 40], 4), [8 * 40, 8 * 40, 8 * 40, 9 * 40]);
    assert_eq!(redistributed(&[240, 240], 4), [120; 4]);
    assert_eq!(redistributed(&[24, 24], 5), [16, 8, 8, 8, 8]);
    assert_eq!(redistributed(&[9, 8, 8, 8], 2), [17, 16]);
    assert_eq!(redistributed(&[], 2), [0, 0]);
    assert_eq!(redistributed(&[u64::MAX, u64::MAX], 1).len(), 1);
}
