#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod programs;
mod task_names;

use std::process::Command;

use fs_err as fs;
use proptest::prelude::*;

use super::layout::{self, field, kind, state};
use super::*;
use crate::SourceKind;
use crate::mpi::{BLOCKING, Operation, What};

/// A head as the tracer writes it.
fn head(rank: u32, ranks: u32, bytes: usize) -> Vec<u8> {
    let mut head = vec![0; layout::HEAD];
    let mut put = |field: layout::Field, bytes: &[u8]| {
        head[field.at..field.at + bytes.len()].copy_from_slice(bytes);
    };
    put(field::MAGIC, layout::MAGIC);
    put(field::VERSION, &layout::VERSION.to_le_bytes());
    put(field::STATE, &state::FINALIZED.to_le_bytes());
    put(field::BYTES, &(bytes as u64).to_le_bytes());
    put(field::RANK, &rank.to_le_bytes());
    put(field::RANKS, &ranks.to_le_bytes());
    put(field::PID, &(100 + rank).to_le_bytes());
    put(field::SOURCES, &0xffu32.to_le_bytes());
    put(field::BEGIN_NS, &1_000u64.to_le_bytes());
    put(field::END_NS, &9_000u64.to_le_bytes());
    put(field::CALLS, &1u64.to_le_bytes());
    put(field::CLOCK_ZERO, &1u32.to_le_bytes());
    put(field::HOST, b"here");
    put(field::BOOT, b"boot");
    head
}

fn record(kind: u8, mask: u16, value: u32, time_ns: u64, words: &[u64]) -> Vec<u8> {
    let mut bytes = vec![kind, words.len() as u8];
    bytes.extend(mask.to_le_bytes());
    bytes.extend(value.to_le_bytes());
    bytes.extend(time_ns.to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

/// Text as words, each part zero-terminated.
fn words(text: &str) -> Vec<u64> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() / 8 + 1) * 8, 0);
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The records of a rank that sent a message, and took part in a barrier on a communicator of its own.
fn records() -> Vec<u8> {
    [
        record(kind::REGION, 1, 1, 2_000, &words("MPI_Send\0main (a)\0")),
        record(kind::ENTER, 0b10_0000, 1, 2_000, &[77]),
        record(kind::SEND, 0, 7, 2_000, &[1 << 32, 8]),
        record(kind::LEAVE, 0, 1, 3_000, &[]),
        record(kind::COMM, 0, 2, 3_000, &[[11, 1, 0].as_slice(), &words("MPI_Comm_dup\0")].concat()),
        record(kind::MEMBERS, 0, 2, 3_000, &[11, 1 << 32, 0]),
        record(kind::COLLECTIVE_BEGIN, 0, 0, 4_000, &[]),
        record(kind::COLLECTIVE, 0, 2, 5_000, &[u64::from(u32::MAX) << 32, 0, 0]),
    ]
    .concat()
}

fn folder_with(logs: &[Vec<u8>]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (number, log) in logs.iter().enumerate() {
        fs::write(dir.path().join(format!("here.{number}.{number}.log")), log).unwrap();
    }
    dir
}

fn log(rank: u32, ranks: u32, records: &[u8]) -> Vec<u8> {
    [&head(rank, ranks, records.len()), records].concat()
}

/// All events of a location, and the damage that ended them.
fn all(run: &mut LogRun, location: usize) -> (Vec<Event>, Option<Damage>) {
    let mut events = Vec::new();
    loop {
        match run.read(location, &mut events) {
            Ok(true) => {}
            Ok(false) => return (events, None),
            Err(damage) => return (events, Some(damage)),
        }
    }
}

/// Records are appended behind the stage, and what is in the stage comes after them, wherever the two meet.
#[test]
fn appended_records_come_before_those_in_the_stage() {
    let all_records = records();
    let whole = all(&mut LogRun::open(folder_with(&[log(0, 1, &all_records)]).path()).unwrap(), 0);
    for appended in [16 + 24, all_records.len()] {
        let mut bytes = head(0, 1, all_records.len());
        bytes[field::APPENDED.at..][..8].copy_from_slice(&(appended as u64).to_le_bytes());
        bytes.extend(&all_records[appended..]);
        // The rest of the stage holds older records.
        bytes.resize(layout::HEAD + layout::STAGE, 0xee);
        bytes.extend(&all_records[..appended]);
        let dir = folder_with(&[bytes]);
        let mut run = LogRun::open(dir.path()).unwrap();
        assert_eq!(run.definitions().regions[0].name, "MPI_Send");
        assert_eq!(all(&mut run, 0), whole, "{appended}");
    }
}

#[test]
fn a_claim_of_millions_of_ranks_is_refused() {
    let dir = folder_with(&[log(0, 4_000_000, &records())]);
    let reason = LogRun::open(dir.path()).unwrap_err().to_string();
    assert!(reason.contains("the logs of 1 of 4000000 ranks are here"), "{reason}");
}

#[test]
fn ranks_without_a_log_stand_in_order_among_the_others() {
    let dir = folder_with(&[log(2, 5, &records()), log(4, 5, &records())]);
    let run = LogRun::open(dir.path()).unwrap();
    let locations = &run.definitions().locations;
    let places: Vec<_> = locations.iter().map(|location| (location.id, location.rank)).collect();
    assert_eq!(places, [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);
    assert_eq!(run.summary().missing, [0, 1, 3]);
}

#[test]
fn what_a_rank_wrote_is_what_is_read() {
    let dir = folder_with(&[log(0, 3, &records())]);
    let mut run = LogRun::open(dir.path()).unwrap();
    let definitions = run.definitions().clone();
    assert_eq!(definitions.regions[0].name, "MPI_Send");
    assert_eq!(definitions.regions[0].site.as_deref(), Some("main (a)"));
    assert_eq!(definitions.comms[0].members, [0, 1, 2]);
    assert_eq!(definitions.comms[1].members, [0]);
    assert_eq!(definitions.span_ns, [1_000, 9_000]);
    assert_eq!(definitions.sources.len(), SourceKind::ALL.len());
    assert_eq!(run.summary().missing, [1, 2]);
    let (events, damage) = all(&mut run, 0);
    assert_eq!(damage, None);
    let what: Vec<What> = events.iter().map(|event| event.what).collect();
    let barrier = What::Collective {
        operation: Operation::Barrier,
        comm: 1,
        root: u32::MAX,
        sent: 0,
        received: 0,
        request: BLOCKING,
    };
    let expected = [
        What::Noise { source: 5, total_ns: 77 },
        What::Enter(0),
        What::Send { comm: 0, to: 1, tag: 7, bytes: 8, request: BLOCKING },
        What::Leave(0),
        What::CollectiveBegin,
        barrier,
    ];
    assert_eq!(what, expected);
    assert_eq!(run.read(0, &mut Vec::new()), Ok(false));
    assert_eq!(run.read(1, &mut Vec::new()), Ok(false));
}

/// Every kind of record that `contract/trace_log.py` describes and the test above has not; what is expected is written there.
#[test]
fn every_kind_of_record_is_read_as_the_contract_describes_it() {
    let peer = |rank: u64| rank << 32;
    let unknown = u64::from(u32::MAX);
    let written: [(Vec<u8>, What); 14] = [
        (
            record(kind::SEND, 0, 7, 2_000, &[peer(1), 64, 5]),
            What::Send { comm: 0, to: 1, tag: 7, bytes: 64, request: 5 },
        ),
        (record(kind::SEND_DONE, 0, 0, 2_001, &[5]), What::SendDone { request: 5 }),
        (
            record(kind::POSTED, 0, 9, 2_002, &[peer(unknown), 6]),
            What::RecvPosted { comm: 0, from: u32::MAX, tag: 9, request: 6 },
        ),
        (
            record(kind::RECV, 0, 9, 2_003, &[peer(2), 128, 6]),
            What::Recv { comm: 0, from: 2, tag: 9, bytes: 128, request: 6 },
        ),
        (
            record(kind::RECV, 0, 10, 2_004, &[peer(1), 32]),
            What::Recv { comm: 0, from: 1, tag: 10, bytes: 32, request: BLOCKING },
        ),
        (record(kind::PROBED, 0, 3, 2_005, &[peer(2)]), What::Probed { comm: 0, from: 2, tag: 3 }),
        (record(kind::PENDING, 0, 0, 2_006, &[6]), What::Pending { request: 6 }),
        (record(kind::CANCELLED, 0, 0, 2_007, &[8]), What::Cancelled { request: 8 }),
        (
            record(kind::COLLECTIVE_POSTED, 0, 0, 2_008, &[10]),
            What::CollectivePosted { comm: 0, request: 10 },
        ),
        (
            record(kind::COLLECTIVE, 12, 0, 2_009, &[peer(2), 8, 16, 10]),
            What::Collective {
                operation: Operation::Reduce,
                comm: 0,
                root: 2,
                sent: 8,
                received: 16,
                request: 10,
            },
        ),
        (record(kind::FORK, 0, 4, 2_010, &[]), What::Fork { threads: 4 }),
        (record(kind::TEAM_BEGIN, 0, 0, 2_011, &[]), What::TeamBegin),
        (record(kind::TEAM_END, 0, 0, 2_012, &[]), What::TeamEnd),
        (record(kind::JOIN, 0, 0, 2_013, &[]), What::Join),
    ];
    let bytes: Vec<u8> = written.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
    let dir = folder_with(&[log(0, 3, &bytes)]);
    let (events, damage) = all(&mut LogRun::open(dir.path()).unwrap(), 0);
    assert_eq!(damage, None);
    let expected: Vec<What> = written.into_iter().map(|(_, what)| what).collect();
    assert_eq!(events.iter().map(|event| event.what).collect::<Vec<_>>(), expected);
    assert_eq!(
        events.iter().map(|event| event.time_ns).collect::<Vec<_>>(),
        (2_000..2_014).collect::<Vec<_>>()
    );
}

/// What a team's records count is the noise before them.
#[test]
fn noise_comes_before_the_event_of_a_team_with_which_it_was_written() {
    let bytes = [record(kind::TEAM_BEGIN, 1, 0, 2_000, &[5]), record(kind::TEAM_END, 1, 0, 3_000, &[9])];
    let dir = folder_with(&[log(0, 1, &bytes.concat())]);
    let (events, damage) = all(&mut LogRun::open(dir.path()).unwrap(), 0);
    assert_eq!(damage, None);
    let noise = |total_ns| What::Noise { source: 0, total_ns };
    let expected = [noise(5), What::TeamBegin, noise(9), What::TeamEnd];
    assert_eq!(events.iter().map(|event| event.what).collect::<Vec<_>>(), expected);
}

#[test]
fn times_go_to_the_clock_of_rank_0_by_the_line_between_two_measurements() {
    let mut other = log(1, 2, &record(kind::COLLECTIVE_BEGIN, 0, 0, 5_000_000, &[]));
    let mut put = |at: usize, value: u64| other[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(field::CLOCKS.at, 2);
    for (at, word) in [4_000_000u64, 1_000, 0, 6_000_000, 3_000, 0].into_iter().enumerate() {
        put(field::CLOCK.at + at * 8, word);
    }
    other[field::BOOT.at] = b'x';
    let mut follower = other.clone();
    follower[field::CLOCKS.at] = 0;
    follower[field::THREAD.at] = 1;
    let dir = folder_with(&[log(0, 2, &[]), other, follower]);
    let mut run = LogRun::open(dir.path()).unwrap();
    assert!(run.summary().unaligned.is_empty());
    for location in [1, 2] {
        assert_eq!(all(&mut run, location).0[0].time_ns, 5_002_000);
    }
}

#[test]
fn what_is_no_log_is_refused_with_a_reason() {
    let mut newer = log(0, 1, &[]);
    newer[field::VERSION.at] = 9;
    for (bytes, reason) in [
        (vec![], "not whole"),
        (vec![b'x'; 5_000], "starts otherwise"),
        (newer, "version 9"),
        (log(3, 2, &[]), "rank 3 of 2"),
    ] {
        let why = LogRun::open(folder_with(&[bytes]).path()).unwrap_err().to_string();
        assert!(why.contains(reason), "{why}");
    }
    let why = LogRun::open(folder_with(&[]).path()).unwrap_err().to_string();
    assert!(why.contains("no logs"), "{why}");
}

#[test]
fn damage_ends_a_location_and_no_more() {
    for (bytes, reason) in [
        (record(99, 0, 0, 0, &[]), "kind 99"),
        (record(kind::ENTER, 0, 5, 0, &[]), "region 5"),
        (record(kind::SEND, 0, 5, 0, &[9, 9]), "communicator 9"),
        (record(kind::SEND, 0, 5, 0, &[0]), "too short"),
        (record(kind::TEAM_BEGIN, 1, 0, 0, &[]), "too short"),
        (record(kind::COLLECTIVE, 77, 0, 0, &[0, 0, 0]), "operation 77"),
        (vec![4, 255, 0], "cannot be read"),
    ] {
        let whole = [records(), bytes].concat();
        let dir = folder_with(&[log(0, 1, &whole)]);
        let mut run = LogRun::open(dir.path()).unwrap();
        let (events, damage) = all(&mut run, 0);
        assert_eq!(events.len(), 6);
        let damage = damage.unwrap().to_string();
        assert!(damage.contains(reason), "{damage}");
        assert_eq!(run.read(0, &mut Vec::new()), Ok(false));
    }
}

/// Both headers check their own sizes and offsets, as the Rust code does.
#[test]
fn a_c_compiler_lays_the_headers_out_alike() {
    for header in ["trace_log.h", "rank_file.h"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mpi").join(header);
        let compiler =
            Command::new("cc").args(["-std=gnu11", "-fsyntax-only", "-x", "c"]).arg(path).output().unwrap();
        assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
    }
}

/// A record of any kind, with few and small words.
fn any_record() -> impl Strategy<Value = Vec<u8>> {
    (0u8..21, 0u16..600, 0u32..4, any::<u64>(), prop::collection::vec(0u64..4, 0..5))
        .prop_map(|(kind, mask, value, time, words)| record(kind, mask, value, time, &words))
}

proptest! {
    #[test]
    fn any_records_end_in_events_or_damage(
        parts in prop::collection::vec(any_record(), 0..30),
        tail in prop::collection::vec(any::<u8>(), 0..40),
        clocks in prop::collection::vec(any::<u8>(), 56),
    ) {
        let mut bytes = log(0, 2, &[records(), parts.concat(), tail].concat());
        bytes[field::CLOCKS.at..field::CLOCKS.at + 56].copy_from_slice(&clocks);
        let dir = folder_with(&[bytes]);
        let mut run = LogRun::open(dir.path()).unwrap();
        let (events, _) = all(&mut run, 0);
        prop_assert!(events.len() >= 6);
    }

    #[test]
    fn a_cut_log_keeps_its_whole_records(cut in 0.0..1.0) {
        let whole = log(0, 1, &records());
        let cut = layout::HEAD + ((whole.len() - layout::HEAD) as f64 * cut) as usize;
        let dir = folder_with(&[whole[..cut].to_vec()]);
        let mut run = LogRun::open(dir.path()).unwrap();
        let (events, damage) = all(&mut run, 0);
        prop_assert!(events.len() < 6 || damage.is_none());
    }

    #[test]
    fn any_bytes_are_no_run_or_one(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut head = head(0, 1, 0);
        let end = bytes.len().min(head.len());
        head[8..8 + end.min(200)].copy_from_slice(&bytes[..end.min(200)]);
        let _ = LogRun::open(folder_with(&[head]).path());
    }
}

fn put(log: &mut [u8], field: layout::Field, value: u64) {
    log[field.at..field.at + field.bytes].copy_from_slice(&value.to_le_bytes()[..field.bytes]);
}

#[test]
fn only_counters_that_some_log_has_are_sources() {
    let injected = 1u64 << layout::INJECTED;
    let mut kernel: Vec<&str> = SourceKind::ALL.iter().map(|kind| kind.name()).collect();
    let noise = record(kind::ENTER, (1 << layout::INJECTED) | 1, 1, 2_500, &[3, 4]);
    let bytes = [records(), noise].concat();
    let sources = |masks: u64| {
        let mut one = log(0, 1, &bytes);
        put(&mut one, field::SOURCES, masks);
        let mut run = LogRun::open(folder_with(&[one.clone()]).path()).unwrap();
        let sources = run.definitions().sources.clone();
        let dir = folder_with(&[one]);
        run = LogRun::open(dir.path()).unwrap();
        let noise = all(&mut run, 0).0.into_iter().filter_map(|event| match event.what {
            What::Noise { source, total_ns } => Some((source, total_ns)),
            _ => None,
        });
        (sources, noise.collect::<Vec<_>>())
    };
    assert_eq!(sources(0), (vec![], vec![]));
    assert_eq!(sources(1), (kernel.iter().map(|name| (*name).to_owned()).collect(), vec![(5, 77), (0, 3)]));
    assert_eq!(sources(injected), (vec![INJECTED.to_owned()], vec![(0, 4)]));
    kernel.push(INJECTED);
    let (names, noise) = sources(injected | 2);
    assert_eq!(names, kernel);
    assert_eq!(noise, [(5, 77), (0, 3), (layout::INJECTED as u32, 4)]);
}

/// Two groups of one rank each: both sides are one communicator in events.
#[test]
fn both_sides_of_a_communicator_between_groups_are_one() {
    let side = |own: u64| {
        [
            record(
                kind::COMM,
                1,
                2,
                2_000,
                &[[11, 1, own << 32].as_slice(), &words("MPI_Intercomm_create\0")].concat(),
            ),
            record(kind::MEMBERS, 0, 2, 2_000, &[11, 1 << 32, own]),
            record(kind::SEND, 0, 7, 2_001, &[2, 8]),
        ]
        .concat()
    };
    let dir = folder_with(&[log(0, 2, &side(0)), log(1, 2, &side(1))]);
    let mut run = LogRun::open(dir.path()).unwrap();
    let comms = run.definitions().comms.clone();
    let used: Vec<u32> = [0, 1]
        .map(|rank| match all(&mut run, rank).0[0].what {
            What::Send { comm, .. } => comm,
            other => panic!("{other:?}"),
        })
        .into();
    assert_eq!(used[0], used[1]);
    let comm = &comms[used[0] as usize];
    assert_eq!((comm.peers(0), comm.peers(1)), ([1].as_slice(), [0].as_slice()));
    assert!(run.summary().unknown_members.is_empty());
    // Without the other side, its members are not known.
    let run = LogRun::open(folder_with(&[log(0, 2, &side(0))]).path()).unwrap();
    assert_eq!(run.summary().unknown_members.len(), 1);
}

/// A communicator without its list of members, and one that is not between groups.
#[test]
fn communicators_without_members_are_named() {
    let made = |identity: u64, number| {
        record(
            kind::COMM,
            0,
            number,
            2_000,
            &[[identity, 1, 0].as_slice(), &words("MPI_Comm_dup\0")].concat(),
        )
    };
    let bytes = [made(11, 2), record(kind::SEND, 0, 7, 2_001, &[2, 8])].concat();
    let run = LogRun::open(folder_with(&[log(0, 1, &bytes)]).path()).unwrap();
    assert_eq!(run.summary().unknown_members, ["MPI_Comm_dup 1"]);
    let run = LogRun::open(folder_with(&[log(0, 1, &records())]).path()).unwrap();
    assert_eq!(run.summary().unknown_members, Vec::<String>::new());
    assert_eq!(run.definitions().comms[1].remote, None);
}

#[test]
fn each_rank_has_a_communicator_of_itself() {
    let word = u64::from(layout::SELF);
    for bytes in [
        record(kind::SEND, 0, 7, 2_000, &[word, 8]),
        record(kind::POSTED, 0, 7, 2_000, &[word, 1]),
        record(kind::RECV, 0, 7, 2_000, &[word, 8]),
        record(kind::PROBED, 0, 7, 2_000, &[word]),
        record(kind::COLLECTIVE, 0, layout::SELF, 2_000, &[u64::from(u32::MAX) << 32, 0, 0]),
        record(kind::COLLECTIVE_POSTED, 0, layout::SELF, 2_000, &[10]),
    ] {
        let dir = folder_with(&[log(0, 2, &[]), log(1, 2, &bytes)]);
        let mut run = LogRun::open(dir.path()).unwrap();
        let comm = run.definitions().comms[1].clone();
        assert_eq!((comm.name.as_str(), comm.members), ("MPI_COMM_SELF of rank 1", vec![1]));
        assert_eq!(all(&mut run, 1).1, None);
    }
}

#[test]
fn regions_belong_to_mpi_or_to_the_program() {
    let region = |mask, number, text: &str| record(kind::REGION, mask, number, 2_000, &words(text));
    let bytes = [region(1, 1, "MPI_Send\0"), region(0, 2, "phase\0"), region(2, 3, "other\0")].concat();
    let run = LogRun::open(folder_with(&[log(0, 1, &bytes)]).path()).unwrap();
    let mpi: Vec<bool> = run.definitions().regions.iter().map(|region| region.mpi).collect();
    assert_eq!(mpi, [true, false, false]);
}

#[test]
fn a_rank_has_finished_once_all_of_its_threads_have() {
    let thread = |rank: u32, thread: u64, state: u32| {
        let mut one = log(rank, 4, &[]);
        put(&mut one, field::THREAD, thread);
        put(&mut one, field::STATE, state.into());
        one
    };
    let logs = [
        thread(0, 0, state::FINALIZED),
        thread(0, 1, state::RUNNING),
        thread(1, 0, state::RUNNING),
        thread(1, 1, state::FINALIZED),
        thread(2, 0, state::FINALIZED),
    ];
    let run = LogRun::open(folder_with(&logs).path()).unwrap();
    assert_eq!(
        (&run.summary().unfinished[..], &run.summary().missing[..]),
        ([0, 1].as_slice(), [3].as_slice())
    );
    let absent = run.definitions().locations.last().unwrap();
    assert_eq!((absent.name.as_str(), absent.rank, absent.id), ("rank 3", 3, 5));
}
