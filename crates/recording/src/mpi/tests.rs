use super::*;

#[test]
fn peers_are_in_the_other_group_if_there_is_one() {
    let one = Comm { members: vec![4, 5], ..Comm::default() };
    assert_eq!(one.peers(4), [4, 5]);
    let two = Comm { remote: Some(vec![7, 8, 9]), ..one };
    // A rank of the members has the others as peers, and they have the members.
    assert_eq!((two.peers(5), two.peers(8)), ([7, 8, 9].as_slice(), [4, 5].as_slice()));
    assert_eq!(two.all_world_ranks().collect::<Vec<_>>(), [4, 5, 7, 8, 9]);
}

/// MPI's own definition of who needs whose data.
#[test]
fn who_waits_for_whom_follows_from_where_the_data_go() {
    use Operation as Op;
    for operation in Op::ALL {
        let expected = match operation {
            Op::Bcast | Op::Scatter | Op::Scatterv => Waits::ForRoot,
            Op::Gather | Op::Gatherv | Op::Reduce => Waits::Root,
            Op::Scan | Op::Exscan => Waits::Prefix,
            Op::Destroy => Waits::NoOne,
            Op::Barrier
            | Op::Allgather
            | Op::Allgatherv
            | Op::Alltoall
            | Op::Alltoallv
            | Op::Alltoallw
            | Op::Allreduce
            | Op::ReduceScatter
            | Op::ReduceScatterBlock
            | Op::Create => Waits::All,
        };
        assert_eq!(operation.waits(), expected, "{operation:?}");
    }
}

struct Nothing(Definitions);

impl Run for Nothing {
    fn definitions(&self) -> &Definitions {
        &self.0
    }

    fn read(&mut self, _: usize, _: &mut Vec<Event>) -> Result<bool, Damage> {
        Ok(false)
    }
}

#[test]
fn a_run_has_no_work_of_its_own_unless_it_says_so() {
    assert!(Nothing(Definitions::default()).own_work_ns().is_empty());
    assert_eq!(Damage("cut off".into()).to_string(), "cut off");
}
