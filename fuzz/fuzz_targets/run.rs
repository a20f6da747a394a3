//! The events of an MPI run, sound one by one and hostile together: they end in figures that add up, and in a schedule or a reason.
#![no_main]

use std::convert::Infallible;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use quell_analysis::track::{Given, goal, track};
use quell_recording::mpi::{
    BLOCKING, Comm, Damage, Definitions, Event, Location, Operation, Region, Run, UNKNOWN, What,
};
use quell_sim::loggops::{Network, PerByte};

const REGIONS: [(&str, bool); 8] = [
    ("main", false),
    ("MPI_Send", true),
    ("MPI_Recv", true),
    ("MPI_Wait", true),
    ("MPI_Allreduce", true),
    ("MPI_Isend", true),
    ("MPI_Init", true),
    ("MPI_Finalize", true),
];

#[derive(Clone)]
struct Made {
    definitions: Definitions,
    events: Vec<Vec<Event>>,
}

impl Run for Made {
    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn read(&mut self, location: usize, events: &mut Vec<Event>) -> std::result::Result<bool, Damage> {
        events.append(&mut self.events[location]);
        Ok(false)
    }
}

fn definitions(u: &mut Unstructured<'_>) -> Result<Definitions> {
    let ranks = u.int_in_range(1..=4)?;
    let locations = (0..ranks).chain(u.arbitrary::<bool>()?.then_some(0));
    let locations = locations.enumerate().map(|(id, rank)| Location {
        id: id as u64,
        name: "t".into(),
        rank,
        thread: u32::from(id as u32 >= ranks),
        host: "n".into(),
    });
    let mut locations: Vec<_> = locations.collect();
    locations.sort_by_key(|location| (location.rank, location.thread));
    let region = |&(name, mpi): &(&str, bool)| Region { name: name.into(), site: None, mpi };
    let comm = |members: Vec<u32>, remote| Comm { name: "c".into(), members, remote };
    let half = ranks / 2;
    Ok(Definitions {
        regions: REGIONS.iter().map(region).collect(),
        comms: vec![
            comm((0..ranks).collect(), None),
            comm((0..ranks).rev().collect(), None),
            comm((0..half).collect(), Some((half..ranks).collect())),
        ],
        locations,
        sources: vec!["tick".into(), "task:a".into(), "page-fault".into()],
        span_ns: [0, 1_000_000],
    })
}

/// An event that an archive's reader lets through: all its numbers are defined.
fn what(u: &mut Unstructured<'_>, ranks: u32) -> Result<What> {
    let comm = u.int_in_range(0..=2)?;
    let peer = if comm == 2 { ranks.div_ceil(2) } else { ranks };
    let rank = |u: &mut Unstructured<'_>| u.int_in_range(0..=peer.saturating_sub(1));
    let bytes = |u: &mut Unstructured<'_>| u.choose(&[0, 1, 8, 4096, 1 << 20, u64::MAX]).copied();
    let request = |u: &mut Unstructured<'_>| u.choose(&[BLOCKING, 1, 2, 3]).copied();
    let tag = u.int_in_range(0..=2)?;
    Ok(match u.int_in_range(0..=16)? {
        0 => What::Enter(u.int_in_range(0..=7)?),
        1 => What::Leave(u.int_in_range(0..=7)?),
        2 => What::Noise {
            source: u.int_in_range(0..=2)?,
            total_ns: *u.choose(&[0, 1, 500, 100_000, u64::MAX])?,
        },
        3 => What::Send { comm, to: rank(u)?, tag, bytes: bytes(u)?, request: request(u)? },
        4 => What::SendDone { request: request(u)? },
        5 => What::RecvPosted {
            comm,
            from: if u.arbitrary()? { UNKNOWN } else { rank(u)? },
            tag,
            request: request(u)?,
        },
        6 => What::Recv { comm, from: rank(u)?, tag, bytes: bytes(u)?, request: request(u)? },
        7 => What::Probed { comm, from: rank(u)?, tag },
        8 => What::Pending { request: request(u)? },
        9 => What::Cancelled { request: request(u)? },
        10 => What::CollectiveBegin,
        11 => What::CollectivePosted { comm, request: request(u)? },
        12 => What::Collective {
            operation: *u.choose(&Operation::ALL)?,
            comm,
            root: if u.arbitrary()? { UNKNOWN } else { rank(u)? },
            sent: bytes(u)?,
            received: bytes(u)?,
            request: request(u)?,
        },
        13 => What::Fork { threads: u.int_in_range(0..=3)? },
        14 => What::TeamBegin,
        15 => What::TeamEnd,
        _ => What::Join,
    })
}

fn made(u: &mut Unstructured<'_>) -> Result<Made> {
    let definitions = definitions(u)?;
    let ranks = definitions.locations.iter().map(|location| location.rank + 1).max().unwrap_or(1);
    let mut events = Vec::new();
    for _ in &definitions.locations {
        let mut time_ns = 0_u64;
        let mut own = Vec::new();
        for _ in 0..u.int_in_range(0..=40)? {
            time_ns = time_ns.saturating_add(*u.choose(&[0, 1, 10, 1000, 100_000, u64::MAX / 2])?);
            own.push(Event { time_ns, what: what(u, ranks)? });
        }
        events.push(own);
    }
    Ok(Made { definitions, events })
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(made) = made(&mut Unstructured::new(bytes)) else { return };
    let Ok(read) = track(|| Ok::<_, Infallible>(made.clone()), &Given::default(), &mut ());
    let network = Network {
        latency: 1_000,
        overhead: 200,
        gap: 100,
        gap_per_byte: PerByte::from_femtoseconds(100_000),
        overhead_per_byte: PerByte::from_femtoseconds(0),
        eager_limit: 4096,
    };
    let _ = goal(&mut made.clone(), None, &network.into(), &mut |_| ());
    for rank in &read.tracked.ranks {
        let sum = i128::from(rank.local_ns) + i128::from(rank.amplified_ns) - i128::from(rank.absorbed_ns);
        assert_eq!(i128::from(rank.accumulated_ns), sum - i128::from(rank.noise_without_time_ns));
    }
});
