//! Maps locations to ranks and threads, and communicators to their ranks.

use std::collections::HashMap;

use quell_recording::mpi::{Comm, Location, UNKNOWN};

use crate::collected::{Collected, Plain};
use crate::ffi::{definition, otf2};

/// Maximum number of single-rank communicators that are distinguished.
const MOST_SELVES: usize = 1 << 22;

/// Maps an archive's references to indices.
#[derive(Debug, Default)]
pub(crate) struct Places {
    dense: Vec<u32>,
    sparse: HashMap<u32, u32>,
}

impl Places {
    /// Maps the references to the indices 0, 1, … in this order.
    pub(crate) fn new(references: impl ExactSizeIterator<Item = u32>) -> Self {
        // References are usually small numbers, for which a list is faster than a map.
        let small = 4 * references.len() + 1024;
        let mut places = Self::default();
        for (place, reference) in (0..).zip(references) {
            let at = reference as usize;
            if at < small {
                places.dense.resize(places.dense.len().max(at + 1), UNKNOWN);
                places.dense[at] = place;
            } else {
                places.sparse.insert(reference, place);
            }
        }
        places
    }

    /// The index of a reference; [`UNKNOWN`] if it is not defined.
    pub(crate) fn get(&self, reference: u32) -> u32 {
        match self.dense.get(reference as usize) {
            Some(&place) => place,
            None if self.sparse.is_empty() => UNKNOWN,
            None => self.sparse.get(&reference).copied().unwrap_or(UNKNOWN),
        }
    }
}

/// The communicators, by reference.
#[derive(Debug, Default)]
pub(crate) struct Comms {
    places: Places,
    named: Vec<Named>,
}

#[derive(Debug)]
struct Named {
    place: u32,
    /// Whether it stands for one communicator per rank, in order of rank.
    of_each: bool,
    /// Number of ranks that can be peers.
    size: u32,
    /// If events name ranks of the world, the communicator's rank for each of those.
    of_world: Option<HashMap<u32, u32>>,
}

impl Comms {
    /// The communicator's index as a rank of the world sees it; [`UNKNOWN`] if it is not defined.
    pub(crate) fn place(&self, reference: u32, rank: u32) -> u32 {
        match self.named.get(self.places.get(reference) as usize) {
            Some(named) if named.of_each => named.place + rank,
            Some(named) => named.place,
            None => UNKNOWN,
        }
    }

    /// The communicator's rank for the number in an event; `None` if it has no such rank.
    pub(crate) fn peer(&self, reference: u32, peer: u32) -> Option<u32> {
        let Some(named) = self.named.get(self.places.get(reference) as usize) else { return Some(peer) };
        let peer = named.of_world.as_ref().map_or(Some(peer), |ranks| ranks.get(&peer).copied())?;
        (peer < named.size).then_some(peer)
    }
}

/// The location group of each rank, in order of rank.
fn ranks(collected: &Collected, group_of: &HashMap<u64, u64>) -> Vec<u64> {
    let groups = collected.records_of_kind(definition::GROUP);
    let world = groups
        .iter()
        .find(|group| group.class == otf2::GROUP_COMM_LOCATIONS && group.paradigm == otf2::PARADIGM_MPI);
    if let Some(world) = world {
        return world
            .members
            .iter()
            .map(|location| group_of.get(location).copied().unwrap_or(u64::MAX))
            .collect();
    }
    let with_threads: std::collections::HashSet<_> = group_of.values().collect();
    let processes = collected
        .records_of_kind(definition::LOCATION_GROUP)
        .iter()
        .filter(|group| group.class == otf2::LOCATION_GROUP_PROCESS && with_threads.contains(&group.own));
    processes.map(|group| group.own).collect()
}

/// The locations of ranks, the number of events stated for each, and the number of locations that belong to no rank.
pub(crate) fn locations(collected: &Collected) -> Result<(Vec<Location>, Vec<u64>, usize), String> {
    let all = collected.records_of_kind(definition::LOCATION);
    let threads = || all.iter().filter(|plain| plain.class == otf2::LOCATION_CPU_THREAD);
    let group_of: HashMap<u64, u64> = threads().map(|plain| (plain.own, plain.parent)).collect();
    let mut rank_of = HashMap::new();
    for (rank, group) in (0u32..).zip(ranks(collected, &group_of)) {
        if group != u64::MAX && rank_of.insert(group, rank).is_some() {
            return Err("two ranks of its MPI share a process".into());
        }
    }
    let hosts = hosts(collected);
    let mut found: Vec<(Location, u64)> = Vec::new();
    for plain in threads() {
        let Some(&rank) = rank_of.get(&plain.parent) else { continue };
        let name = collected.text(plain.name).to_owned();
        let host = hosts.get(&plain.parent).cloned().unwrap_or_default();
        found.push((Location { id: plain.own, name, rank, thread: 0, host }, plain.number));
    }
    found.sort_by_key(|(location, _)| (location.rank, location.id));
    if found.windows(2).any(|pair| pair[0].0.id == pair[1].0.id) {
        return Err("two of its locations have the same number".into());
    }
    for at in 1..found.len() {
        if found[at - 1].0.rank == found[at].0.rank {
            found[at].0.thread = found[at - 1].0.thread + 1;
        }
    }
    let skipped_locations = all.len() - found.len();
    let (locations, declared) = found.into_iter().unzip();
    Ok((locations, declared, skipped_locations))
}

/// The host of each location group: the nearest node above it that is one host, or else the one directly above it.
fn hosts(collected: &Collected) -> HashMap<u64, String> {
    const DEEPEST: usize = 64;
    let nodes: HashMap<u64, &Plain> =
        collected.records_of_kind(definition::NODE).iter().map(|plain| (plain.own, plain)).collect();
    let host = |group: &Plain| {
        let first = nodes.get(&group.parent)?;
        let above = |plain: &&Plain| nodes.get(&plain.parent).copied();
        let mut chain = std::iter::successors(Some(*first), above).take(DEEPEST);
        let host = chain.find(|plain| ["node", "host"].contains(&collected.text(plain.text)));
        Some(collected.text(host.unwrap_or(first).name).to_owned())
    };
    let groups = collected.records_of_kind(definition::LOCATION_GROUP);
    groups.iter().filter_map(|group| Some((group.own, host(group)?))).collect()
}

/// The communicators, and their indices by reference.
pub(crate) fn comms(collected: &Collected, locations: &[Location]) -> Result<(Vec<Comm>, Comms), String> {
    let groups: HashMap<u64, &Plain> =
        collected.records_of_kind(definition::GROUP).iter().map(|plain| (plain.own, plain)).collect();
    let rank_of: HashMap<u64, u32> = locations.iter().map(|location| (location.id, location.rank)).collect();
    let ranks = locations.last().map_or(0, |last| last.rank as usize + 1);
    let members = |reference: u64| {
        let group = groups.get(&reference).filter(|group| is_mpi(group.paradigm))?;
        let rank = |&member: &u64| match group.class {
            otf2::GROUP_LOCATIONS | otf2::GROUP_COMM_LOCATIONS => rank_of.get(&member).copied(),
            otf2::GROUP_COMM_GROUP => u32::try_from(member).ok().filter(|&rank| (rank as usize) < ranks),
            _ => None,
        };
        group.members.iter().map(rank).collect::<Option<Vec<u32>>>()
    };
    let (mut comms, mut named, mut references): (Vec<Comm>, Vec<Named>, Vec<u32>) = Default::default();
    for plain in collected.records_of_kind(definition::COMM) {
        let Some(group) = groups.get(&plain.parent).filter(|group| is_mpi(group.paradigm)) else { continue };
        let name = collected.text(plain.name).to_owned();
        let place = comms.len() as u32; // references are 32 bits wide
        if group.class == otf2::GROUP_COMM_SELF {
            if comms.len() + ranks > MOST_SELVES {
                return Err(format!("it has more than {MOST_SELVES} communicators of single ranks"));
            }
            comms.extend((0..ranks as u32).map(|rank| Comm {
                name: name.clone(),
                members: vec![rank],
                remote: None,
            }));
            named.push(Named { place, of_each: true, size: 1, of_world: None });
        } else {
            // Ranks without a location cannot be identified; the communicator is then unknown.
            let Some(members) = members(plain.parent) else { continue };
            let world =
                group.class == otf2::GROUP_COMM_GROUP && group.other & otf2::GROUP_OF_WORLD_RANKS != 0;
            let of_world = world.then(|| members.iter().copied().zip(0..).collect());
            named.push(Named { place, of_each: false, size: members.len() as u32, of_world });
            comms.push(Comm { name, members, remote: None });
        }
        references.push(plain.own as u32);
    }
    for plain in collected.records_of_kind(definition::INTER_COMM) {
        let (Some(own), Some(remote)) = (members(plain.parent), members(plain.other)) else { continue };
        let size = own.len().max(remote.len()) as u32;
        named.push(Named { place: comms.len() as u32, of_each: false, size, of_world: None });
        comms.push(Comm { name: collected.text(plain.name).to_owned(), members: own, remote: Some(remote) });
        references.push(plain.own as u32);
    }
    Ok((comms, Comms { places: Places::new(references.into_iter()), named }))
}

fn is_mpi(paradigm: u32) -> bool {
    [otf2::PARADIGM_MPI, otf2::PARADIGM_UNKNOWN, otf2::PARADIGM_USER].contains(&paradigm)
}
