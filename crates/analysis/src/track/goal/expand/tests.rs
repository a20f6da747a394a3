use quell_recording::mpi::Operation;

use super::{Expansions, What, algorithm};

fn what(operation: Operation, bytes: u64) -> What {
    What { operation, bytes, root: 0 }
}

#[test]
fn each_operation_has_the_algorithm_that_the_page_states() {
    use Operation::*;
    for operation in Operation::ALL {
        let expected = match operation {
            Barrier | Create => Some("dissemination"),
            Bcast => Some("binomial-bcast"),
            Reduce => Some("binomial-reduce"),
            Scatter | Scatterv => Some("binomial-scatter"),
            Gather | Gatherv => Some("binomial-gather"),
            Allgather | Allgatherv => Some("allgather-bruck"),
            Alltoall | Alltoallv | Alltoallw => Some("alltoall-pairwise"),
            Allreduce => Some("allreduce-recursive-doubling"),
            ReduceScatter | ReduceScatterBlock => Some("reduce-scatter"),
            Scan | Exscan => Some("scan"),
            Destroy => None,
        };
        assert_eq!(algorithm(&what(operation, 8)), expected, "{operation:?}");
    }
}

#[test]
fn allreduces_above_64_kib_take_the_algorithm_for_long_ones() {
    let of = |bytes| algorithm(&what(Operation::Allreduce, bytes));
    assert_eq!(of(65_536), Some("allreduce-recursive-doubling"));
    assert_eq!(of(65_537), Some("allreduce-rabenseifner"));
}

#[test]
fn one_rank_alone_has_nothing_to_do_and_no_one_waits_for_the_end_of_a_communicator() {
    let mut expansions = Expansions::default();
    let mut is_made =
        |operation, ranks| expansions.get(&what(operation, 8), ranks).is_ok_and(|made| made.is_some());
    assert!(!is_made(Operation::Barrier, 1));
    assert!(is_made(Operation::Barrier, 2) && is_made(Operation::Barrier, 2));
    assert!(!is_made(Operation::Destroy, 4));
}

#[test]
fn a_root_that_does_not_exist_is_an_error() {
    let what = What { root: 2, ..what(Operation::Bcast, 8) };
    assert!(Expansions::default().get(&what, 2).is_err());
    assert!(Expansions::default().get(&what, 3).is_ok());
}
