//! What quell writes, it reads back.

use crate::support::{self, events};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use quell_otf2::{Archive, Facts, Writer, write};
use quell_recording::mpi::{
    BLOCKING, Comm, Damage, Definitions, Event, Location, Operation, Region, Run, UNKNOWN, What,
};

fn regions() -> impl Strategy<Value = Vec<Region>> {
    let name = prop_oneof![
        "(MPI_|PMPI_)[A-Z][a-z_]{0,8}".prop_map(|name| (name, true)),
        "[a-hß ]{0,6}|omp (parallel|barrier|implicit barrier)".prop_map(|name| (name, false))
    ];
    vec((name, option::of("[a-z.:0-9]{1,8}")), 1..6)
        .prop_map(|all| all.into_iter().map(|((name, mpi), site)| Region { name, site, mpi }).collect())
}

fn comms(ranks: u32) -> impl Strategy<Value = Vec<Comm>> {
    let members = move || {
        proptest::sample::subsequence((0..ranks).collect::<Vec<_>>(), 1..=ranks as usize).prop_shuffle()
    };
    let plain =
        ("[a-z ]{0,6}", members()).prop_map(|(name, members)| vec![Comm { name, members, remote: None }]);
    let selves = Just(
        (0..ranks)
            .map(|rank| Comm { name: "MPI_COMM_SELF".into(), members: vec![rank], remote: None })
            .collect(),
    );
    let remote = ("[a-z]{0,3}", members(), members());
    let remote = remote.prop_map(|(name, members, remote)| Comm { name, members, remote: Some(remote) });
    (vec(prop_oneof![4 => plain, 1 => selves], 1..5), vec(remote, 0..3)).prop_map(|(comms, remotes)| {
        let mut comms = comms.concat();
        comms.extend(remotes);
        comms
    })
}

fn definitions() -> impl Strategy<Value = Definitions> {
    (1u32..5).prop_flat_map(|ranks| {
        let threads = vec((1u32..3, "[a-z]{0,3}"), ranks as usize);
        (regions(), comms(ranks), threads, proptest::collection::btree_set("[a-z:]{1,5}", 0..5), any::<u64>())
            .prop_map(|(regions, comms, threads, sources, span)| {
                let mut locations = Vec::new();
                for (rank, (threads, host)) in (0..).zip(threads) {
                    locations.extend((0..threads).map(|thread| Location {
                        id: u64::from(thread) << 32 | u64::from(rank),
                        name: format!("{thread}"),
                        rank,
                        thread,
                        host: if host.is_empty() { "machine".into() } else { host.clone() },
                    }));
                }
                let sources = sources.into_iter().collect();
                Definitions { regions, comms, locations, sources, span_ns: [0, span >> 1] }
            })
    })
}

/// An event of any kind except noise.
fn what(all: &Definitions) -> impl Strategy<Value = Vec<What>> + use<> {
    let sizes: Vec<u32> = all.comms.iter().map(|comm| comm.members.len() as u32).collect();
    let comm = move || {
        let sizes = sizes.clone();
        (0..sizes.len() as u32).prop_flat_map(move |comm| (Just(comm), 0..sizes[comm as usize]))
    };
    let request = || prop_oneof![Just(BLOCKING), any::<u64>().prop_map(|request| request >> 1)];
    let open = || any::<u64>().prop_map(|request| request >> 1);
    let maybe = |number: u32, known: bool| if known { number } else { UNKNOWN };
    let one = |what: What| vec![what];
    let regions = all.regions.len() as u32;
    prop_oneof![
        (0..regions).prop_map(move |region| one(What::Enter(region))),
        (0..regions).prop_map(move |region| one(What::Leave(region))),
        (comm(), any::<u32>(), any::<u64>(), request()).prop_map(move |((comm, to), tag, bytes, request)| {
            one(What::Send { comm, to, tag, bytes, request })
        }),
        open().prop_map(move |request| one(What::SendDone { request })),
        (comm(), any::<[bool; 3]>(), any::<u32>(), open()).prop_map(
            move |((comm, from), known, tag, request)| one(What::RecvPosted {
                comm: maybe(comm, known[0]),
                from: maybe(from, known[1]),
                tag: maybe(tag, known[2]),
                request
            })
        ),
        (comm(), any::<u32>(), any::<u64>(), request()).prop_map(
            move |((comm, from), tag, bytes, request)| one(What::Recv { comm, from, tag, bytes, request })
        ),
        (comm(), any::<u32>(), 0..regions).prop_map(move |((comm, from), tag, region)| vec![
            What::Probed { comm, from, tag },
            What::Leave(region)
        ]),
        open().prop_map(move |request| one(What::Pending { request })),
        open().prop_map(move |request| one(What::Cancelled { request })),
        Just(one(What::CollectiveBegin)),
        any::<u32>().prop_map(move |threads| one(What::Fork { threads })),
        proptest::sample::select(vec![What::TeamBegin, What::TeamEnd, What::Join]).prop_map(one),
        (comm(), any::<bool>(), open()).prop_map(move |((comm, _), known, request)| one(
            What::CollectivePosted { comm: maybe(comm, known), request }
        )),
        (proptest::sample::select(&Operation::ALL[..]), comm(), any::<bool>(), any::<[u64; 2]>(), request())
            .prop_map(move |(operation, (comm, root), known, [sent, received], request)| {
                one(What::Collective { operation, comm, root: maybe(root, known), sent, received, request })
            }),
    ]
}

/// A location's events: each step has noise of some sources, then one event.
fn stream(all: &Definitions) -> impl Strategy<Value = Vec<Event>> + use<> {
    let sources = all.sources.len();
    let step = (
        prop_oneof![Just(0u64), 0u64..1_000_000],
        vec(option::weighted(0.3, 1u64..1 << 55), sources),
        what(all),
    );
    vec(step, 0..60).prop_map(move |steps| {
        let (mut time_ns, mut totals, mut events) = (0, vec![0; sources], Vec::new());
        for (passed, noise, what) in steps {
            time_ns += passed;
            for (source, more) in noise.into_iter().enumerate() {
                if let Some(more) = more {
                    totals[source] += more;
                    let noise = What::Noise { source: source as u32, total_ns: totals[source] };
                    events.push(Event { time_ns, what: noise });
                }
            }
            events.extend(what.into_iter().map(|what| Event { time_ns, what }));
        }
        events
    })
}

/// Of the communicators with itself, a rank uses only its own.
fn own_self(all: &Definitions, rank: u32, what: &mut What) {
    let (What::Send { comm, .. }
    | What::RecvPosted { comm, .. }
    | What::Recv { comm, .. }
    | What::Probed { comm, .. }
    | What::CollectivePosted { comm, .. }
    | What::Collective { comm, .. }) = what
    else {
        return;
    };
    if let Some(own) = all.comms.get(*comm as usize).filter(|comm| comm.name == "MPI_COMM_SELF") {
        *comm = *comm - own.members[0] + rank;
    }
}

fn runs() -> impl Strategy<Value = (Definitions, Vec<Vec<Event>>)> {
    definitions()
        .prop_flat_map(|all| {
            let streams: Vec<_> = all.locations.iter().map(|_| stream(&all)).collect();
            (Just(all), streams)
        })
        .prop_map(|(mut all, mut streams)| {
            let last = streams.iter().flatten().map(|event| event.time_ns).max();
            all.span_ns[1] = all.span_ns[1].max(last.unwrap_or(0));
            for (location, stream) in all.locations.iter().zip(&mut streams) {
                stream.iter_mut().for_each(|event| own_self(&all, location.rank, &mut event.what));
            }
            (all, streams)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_run_is_read_as_it_was_written((all, streams) in runs(), zero_clock_ns in any::<u32>(), realtime in option::of(any::<u32>())) {
        let folder = tempfile::tempdir().unwrap();
        let facts = Facts { zero_clock_ns: zero_clock_ns.into(), realtime_ns: realtime.map(u64::from), ..Facts::default() };
        let path = folder.path().join("first");
        support::write(&path, &all, facts, &streams);
        let mut archive = Archive::open(&path).unwrap();
        prop_assert_eq!(archive.definitions(), &all);
        prop_assert_eq!(events(&mut archive), streams.clone());
        // And a second time, from archive to archive.
        let (mut archive, again) = (Archive::open(&path).unwrap(), folder.path().join("second"));
        let written = write(&mut archive, &again, Facts::default()).unwrap();
        prop_assert!(written.damaged.is_empty());
        prop_assert_eq!(events(&mut Archive::open(&again.join("traces.otf2")).unwrap()), streams);
    }
}

#[test]
fn many_chunks_are_written_and_read_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let all = support::definitions(3);
    let send = |i: u64| What::Send { comm: 0, to: (i % 3) as u32, tag: i as u32, bytes: i << 40, request: i };
    let stream: Vec<Event> = (0..200_000).map(|i| Event { time_ns: i * 1000, what: send(i) }).collect();
    support::write(folder.path(), &all, Facts::default(), &[stream.clone(), stream.clone(), stream.clone()]);
    let mut archive = Archive::open(folder.path()).unwrap();
    archive.hold_open(2); // one less than there are, so that streams are closed and opened again all the time
    let mut found = vec![Vec::new(); 3];
    let mut more = true;
    while more {
        more = false;
        for (location, events) in found.iter_mut().enumerate() {
            let before = events.len();
            more |= archive.read(location, events).unwrap();
            assert!(events.len() - before < 10_000, "a location is read in pieces");
        }
    }
    for events in found {
        let rest: Vec<Event> =
            events.into_iter().filter(|event| !matches!(event.what, What::Noise { .. })).collect();
        assert!(rest == stream);
    }
}

/// A program that was killed has no end.
#[test]
fn no_event_is_later_than_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let all = Definitions { span_ns: [0, 10], ..support::definitions(2) };
    let facts = Facts { zero_clock_ns: 1_000, ..Facts::default() };
    let event = |time_ns| vec![Event { time_ns, what: What::Enter(0) }];
    support::write(folder.path(), &all, facts, &[event(70), event(5)]);
    assert_eq!(Archive::open(folder.path()).unwrap().definitions().span_ns, [0, 70]);
}

#[test]
fn a_probe_that_never_ended_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let event = |time_ns, what| Event { time_ns, what };
    let probed = What::Probed { comm: 0, from: 1, tag: 3 };
    let killed = vec![event(5, What::Enter(0)), event(6, probed)];
    let noisy =
        vec![event(5, What::Enter(0)), event(6, probed), event(6, What::Noise { source: 1, total_ns: 7 })];
    support::write(folder.path(), &support::definitions(2), Facts::default(), &[killed, noisy]);
    let found = support::events(&mut Archive::open(folder.path()).unwrap());
    for events in found {
        let calls: Vec<Event> =
            events.into_iter().filter(|event| !matches!(event.what, What::Noise { .. })).collect();
        assert_eq!(calls, [event(5, What::Enter(0))]);
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let all = support::definitions(2);
    let mut writer = Writer::create(folder.path(), &all).unwrap();
    let mut refused =
        |location, what| writer.event(location, Event { time_ns: 9, what }).unwrap_err().to_string();
    assert!(refused(2, What::Enter(0)).contains("location that is not defined"));
    assert!(refused(0, What::Enter(4)).contains("region that is not defined"));
    assert!(refused(0, What::Noise { source: 2, total_ns: 1 }).contains("source that is not defined"));
    assert!(
        refused(0, What::CollectivePosted { comm: 1, request: 1 })
            .contains("communicator that is not defined")
    );
    writer.event(1, Event { time_ns: 9, what: What::Probed { comm: 0, from: 0, tag: 0 } }).unwrap();
    let after = writer.event(1, Event { time_ns: 9, what: What::Enter(0) }).unwrap_err();
    assert!(after.to_string().contains("between a probed message"));
    writer.finish().unwrap();
    assert!(Writer::create(folder.path(), &all).unwrap_err().to_string().contains("archive already"));
    let left = folder.path().join("left");
    let mut writer = Writer::create(&left, &all).unwrap();
    writer.event(0, Event { time_ns: 9, what: What::CollectiveBegin }).unwrap();
    drop(writer);
    assert!(Archive::open(&left).is_err(), "an archive that was not finished says so");
    let mut swapped = all.clone();
    swapped.locations.swap(0, 1);
    assert!(
        Writer::create(&folder.path().join("other"), &swapped)
            .unwrap_err()
            .to_string()
            .contains("order of rank")
    );
}

/// A run in memory.
struct Kept(Definitions, Vec<Vec<Event>>);

impl Run for Kept {
    fn definitions(&self) -> &Definitions {
        &self.0
    }

    fn read(&mut self, location: usize, events: &mut Vec<Event>) -> Result<bool, Damage> {
        events.append(&mut self.1[location]);
        Err(Damage("the rest is lost".into()))
    }
}

#[test]
fn clocks_may_go_back_and_runs_may_be_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let times =
        |times: [u64; 4]| times.map(|time_ns| Event { time_ns, what: What::CollectiveBegin }).to_vec();
    let mut run = Kept(support::definitions(1), vec![times([9, 4, 6, 12])]);
    let written = write(&mut run, folder.path(), Facts::default()).unwrap();
    assert_eq!((written.raised, written.damaged), (2, vec![(0, Damage("the rest is lost".into()))]));
    assert_eq!(events(&mut Archive::open(folder.path()).unwrap()), [times([9, 9, 9, 12])]);
}
