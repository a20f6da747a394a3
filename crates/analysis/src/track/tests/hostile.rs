//! Runs that no program produces.

use proptest::prelude::*;
use quell_recording::mpi::{BLOCKING, Comm, Operation, UNKNOWN, What};

use super::archives::Made;

fn times() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..1000, 1 => Just(u64::MAX), 1 => Just(1 << 62), 1 => any::<u64>()]
}

fn small() -> impl Strategy<Value = u32> {
    prop_oneof![9 => 0u32..4, 1 => Just(UNKNOWN), 1 => any::<u32>()]
}

fn requests() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..4, Just(BLOCKING)]
}

fn whats() -> impl Strategy<Value = What> {
    let message = || (small(), small(), small(), requests());
    prop_oneof![
        4 => small().prop_map(What::Enter),
        4 => small().prop_map(What::Leave),
        3 => (small(), times()).prop_map(|(source, total_ns)| What::Noise { source, total_ns }),
        3 => (message(), prop_oneof![Just(8u64), Just(1 << 20)])
            .prop_map(|((comm, to, tag, request), bytes)| What::Send { comm, to, tag, bytes, request }),
        3 => message().prop_map(|(comm, from, tag, request)| What::Recv { comm, from, tag, bytes: 8, request }),
        1 => message().prop_map(|(comm, from, tag, request)| What::RecvPosted { comm, from, tag, request }),
        1 => message().prop_map(|(comm, from, tag, _)| What::Probed { comm, from, tag }),
        1 => requests().prop_map(|request| What::SendDone { request }),
        1 => requests().prop_map(|request| What::Pending { request }),
        1 => requests().prop_map(|request| What::Cancelled { request }),
        1 => Just(What::CollectiveBegin),
        1 => small().prop_map(|threads| What::Fork { threads }),
        3 => prop::sample::select(vec![What::TeamBegin, What::TeamEnd, What::Join]),
        1 => (small(), requests()).prop_map(|(comm, request)| What::CollectivePosted { comm, request }),
        3 => (0usize..Operation::ALL.len(), small(), small(), requests(), 0u64..2).prop_map(|(at, comm, root, request, bytes)| {
            What::Collective { operation: Operation::ALL[at], comm, root, sent: bytes, received: bytes, request }
        }),
    ]
}

proptest! {
    #[test]
    fn whatever_an_archive_holds_the_analysis_ends_and_adds_up(
        streams in prop::collection::vec(prop::collection::vec((times(), whats()), 0..60), 1..5),
        threads in 1u32..3,
    ) {
        let mut made = Made::new(streams.len() as u32, &["tick", "task"]);
        made.definitions.regions[0].name = "omp barrier".into();
        for location in &mut made.definitions.locations {
            (location.rank, location.thread) = (location.rank / threads, location.rank % threads);
        }
        made.definitions.comms.push(Comm { name: "some".into(), members: vec![2, 0], remote: None });
        made.definitions.comms.push(Comm { name: "two".into(), members: vec![1], remote: Some(vec![0, 9]) });
        for (rank, stream) in streams.iter().enumerate() {
            for (time, what) in stream {
                made.at(rank as u32, *time, *what);
            }
        }
        let tracked = made.track();
        let of_program = |(_, what): &&(u64, What)| !matches!(what, What::Noise { .. });
        prop_assert_eq!(tracked.events, streams.iter().flatten().filter(of_program).count() as u64);
        for rank in &tracked.ranks {
            prop_assert!(rank.accumulated_ns >= 0);
            prop_assert!(rank.compensated_ns <= rank.runtime_ns);
        }
    }
}
