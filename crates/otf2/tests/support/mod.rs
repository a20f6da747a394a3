//! What the tests share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "not every test takes all, and a test fails by panicking"
)]

use std::path::Path;

use quell_otf2::{Archive, Facts, Writer};
use quell_recording::mpi::{Comm, Damage, Definitions, Event, Location, Region, Run};

/// This many ranks with one thread each, two hosts, a world, and calls.
pub fn definitions(ranks: u32) -> Definitions {
    let region = |name: &str, site: Option<&str>| Region {
        name: name.into(),
        site: site.map(str::to_owned),
        mpi: name.starts_with("MPI_"),
    };
    Definitions {
        regions: vec![
            region("MPI_Send", Some("a.c:7")),
            region("MPI_Recv", None),
            region("MPI_Allreduce", None),
            region("phase 1", None),
        ],
        comms: vec![Comm { name: "MPI_COMM_WORLD".into(), members: (0..ranks).collect(), remote: None }],
        locations: (0..ranks)
            .map(|rank| Location {
                id: rank.into(),
                name: format!("thread {rank}"),
                rank,
                thread: 0,
                host: format!("n{}", rank % 2),
            })
            .collect(),
        sources: vec!["tick".into(), "irq:eth0".into()],
        span_ns: [0, 1 << 60],
    }
}

/// Writes an archive of these events.
pub fn write(folder: &Path, definitions: &Definitions, facts: Facts, events: &[Vec<Event>]) {
    let mut writer = Writer::with_facts(folder, definitions, facts).unwrap();
    for (location, events) in events.iter().enumerate() {
        for &event in events {
            writer.event(location, event).unwrap();
        }
    }
    writer.finish().unwrap();
}

/// All events of all locations.
pub fn events(archive: &mut Archive) -> Vec<Vec<Event>> {
    (0..archive.definitions().locations.len())
        .map(|location| {
            let (events, end) = events_of(archive, location);
            end.unwrap();
            events
        })
        .collect()
}

/// A location's events, and how reading them ended.
pub fn events_of(archive: &mut Archive, location: usize) -> (Vec<Event>, Result<(), Damage>) {
    let mut events = Vec::new();
    loop {
        match archive.read(location, &mut events) {
            Ok(true) => {}
            Ok(false) => return (events, Ok(())),
            Err(damage) => return (events, Err(damage)),
        }
    }
}
