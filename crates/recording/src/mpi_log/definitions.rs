//! The definitions of the numbers in logs, merged over all ranks: first those of each log, then those that all logs share.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::SystemTime;

use fs_err as fs;

use super::head::{Head, text};
use super::layout::{INJECTED, SELF, WORLD, kind};
use super::records::{Record, Records, two};
use super::sites::{Objects, readable};
use super::{INJECTED as INJECTED_NAME, Summary};
use crate::mpi::{Comm, Damage, Definitions, Location, Region, UNKNOWN};
use crate::{Error, SourceKind};

/// Maps a log's numbers to indices in [`Definitions`].
#[derive(Debug, Default)]
pub(super) struct Maps {
    regions: Vec<u32>,
    comms: HashMap<u32, u32>,
    /// Whether the kernel's sources, and the injector's, are defined.
    pub(super) kernel: bool,
    pub(super) injected: bool,
}

impl Maps {
    /// The index of a counter among the sources, if it is defined.
    pub(super) fn source(&self, number: usize) -> u32 {
        match number {
            INJECTED if self.injected => {
                if self.kernel {
                    number as u32
                } else {
                    0
                }
            }
            _ if number < INJECTED && self.kernel => number as u32,
            _ => UNKNOWN,
        }
    }

    pub(super) fn region(&self, number: u32) -> Result<u32, Damage> {
        let place = (number as usize).checked_sub(1).and_then(|at| self.regions.get(at)).copied();
        place.ok_or_else(|| Damage(format!("damaged: region {number} is not defined")))
    }

    pub(super) fn comm(&self, number: u32) -> Result<u32, Damage> {
        if number == UNKNOWN {
            return Ok(UNKNOWN);
        }
        let place = self.comms.get(&number).copied();
        place.ok_or_else(|| Damage(format!("damaged: communicator {number} is not defined")))
    }
}

/// A communicator as all of its ranks know it. If it joins two groups, each side has its own, identified by its first rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Known {
    World,
    Self_(u32),
    Made { identity: u64, side: Option<u32> },
}

#[derive(Default)]
struct Merged {
    objects: Objects,
    regions: HashMap<Region, u32>,
    comms: BTreeMap<Known, u32>,
    /// Members by the index of the communicator.
    members: HashMap<u32, Vec<u32>>,
}

/// Merges the definitions of all logs; returns the mapping of each log.
pub(super) fn define(
    heads: &[(PathBuf, Head)],
    summary: &mut Summary,
) -> Result<(Definitions, Vec<Maps>), Error> {
    let mut definitions = Definitions { sources: sources(heads), ..Definitions::default() };
    let mut merged = Merged::default();
    merged.comm(Known::World, &mut definitions, || "MPI_COMM_WORLD".into());
    let mut maps = Vec::new();
    // Numbers of communicators are valid within a process.
    let mut processes: HashMap<(u32, u32), HashMap<u32, u32>> = HashMap::new();
    for (path, head) in heads {
        let process = processes.entry((head.rank, head.pid)).or_default();
        let mut records = Records::open(path, head.extent)?;
        let written = fs::metadata(path).and_then(|facts| facts.modified()).ok();
        let mut regions = Vec::new();
        // Damage is reported when the events are read.
        while let Ok(Some(record)) = records.next() {
            merged.add(&record, (head, written), &mut regions, process, &mut definitions);
        }
        let (kernel, injected) = counted(heads);
        maps.push(Maps { regions, kernel, injected, comms: HashMap::new() });
    }
    let other_sides = merged.other_sides();
    for ((_, head), map) in heads.iter().zip(&mut maps) {
        map.comms = processes.get(&(head.rank, head.pid)).cloned().unwrap_or_default();
        map.comms.insert(WORLD, 0);
        for place in map.comms.values_mut() {
            *place = other_sides.get(place).copied().unwrap_or(*place);
        }
    }
    merged.define_members(summary, &mut definitions);
    definitions.locations =
        heads.iter().enumerate().map(|(place, (_, head))| location(place, head)).collect();
    Ok((definitions, maps))
}

/// Whether any log has counters of the kernel, and of an injector. A counter that was not recorded is not a source, so that it does not look like no noise.
fn counted(heads: &[(PathBuf, Head)]) -> (bool, bool) {
    let all = heads.iter().fold(0, |all, (_, head)| all | head.sources);
    (all & ((1 << INJECTED) - 1) != 0, all >> INJECTED & 1 != 0)
}

fn sources(heads: &[(PathBuf, Head)]) -> Vec<String> {
    let (kernel, injected) = counted(heads);
    let kinds = SourceKind::ALL.iter().filter(|_| kernel).map(|kind| kind.name().to_owned());
    kinds.chain(injected.then(|| INJECTED_NAME.to_owned())).collect()
}

fn location(place: usize, head: &Head) -> Location {
    let name = match head.thread {
        0 => format!("rank {}", head.rank),
        thread => format!("rank {} thread {thread}", head.rank),
    };
    Location { id: place as u64, name, rank: head.rank, thread: head.thread, host: head.host.clone() }
}

impl Merged {
    fn comm(&mut self, known: Known, definitions: &mut Definitions, name: impl FnOnce() -> String) -> u32 {
        *self.comms.entry(known).or_insert_with(|| {
            definitions.comms.push(Comm { name: name(), ..Comm::default() });
            definitions.comms.len() as u32 - 1
        })
    }

    fn add(
        &mut self,
        record: &Record<'_>,
        (head, written): (&Head, Option<SystemTime>),
        regions: &mut Vec<u32>,
        comms: &mut HashMap<u32, u32>,
        definitions: &mut Definitions,
    ) {
        match record.kind {
            // Numbers increase by one.
            kind::REGION if record.value as usize == regions.len() + 1 => {
                let mut parts = record.words.split(|byte| *byte == 0).map(text);
                let name = parts.next().unwrap_or_default();
                let symbol = parts.next().filter(|site| !site.is_empty()).map(|site| readable(&site));
                let line = parts.next().and_then(|place| self.objects.site(&place, written?));
                let site = line.or(symbol);
                let region = Region { name, site, mpi: record.mask & 1 != 0 };
                let next = definitions.regions.len() as u32;
                let place = *self.regions.entry(region).or_insert_with_key(|region| {
                    definitions.regions.push(region.clone());
                    next
                });
                regions.push(place);
            }
            kind::COMM => {
                let (Some(identity), Some(groups)) = (record.word(0), record.word(2)) else { return };
                let side = (record.mask & 1 != 0).then_some(two(groups).1);
                let maker = text(record.words.get(24..).unwrap_or_default());
                let number = definitions.comms.len();
                let known = Known::Made { identity, side };
                comms.insert(record.value, self.comm(known, definitions, || format!("{maker} {number}")));
            }
            kind::MEMBERS => self.add_members(record, comms),
            _ if uses_self(record) => {
                let known = Known::Self_(head.rank);
                let name = || format!("MPI_COMM_SELF of rank {}", head.rank);
                comms.insert(SELF, self.comm(known, definitions, name));
            }
            _ => {}
        }
    }

    /// For communicators between two groups, maps the index of one side to that of the other, so that all events use the same one.
    fn other_sides(&self) -> HashMap<u32, u32> {
        let sides = self.comms.iter().filter_map(|(known, place)| match known {
            Known::Made { identity, side: Some(_) } => Some((identity, *place)),
            _ => None,
        });
        let mut first = HashMap::new();
        let seen = sides.filter_map(|(identity, place)| {
            let one = *first.entry(*identity).or_insert(place);
            (one != place).then_some((place, one))
        });
        seen.collect()
    }

    /// Adds a part of the list of members, if it continues where the last one ended.
    fn add_members(&mut self, record: &Record<'_>, comms: &HashMap<u32, u32>) {
        let (Some(place), Some(part)) = (comms.get(&record.value), record.word(1)) else { return };
        let (from, count) = two(part);
        let list = self.members.entry(*place).or_default();
        if list.len() != from as usize {
            return;
        }
        let words = (2..).map_while(|at| record.word(at)).map(two);
        list.extend(words.flat_map(|(a, b)| [a, b]).take(count as usize));
    }

    /// Sets the members of each communicator, and of the other side if there is one.
    fn define_members(&mut self, summary: &mut Summary, definitions: &mut Definitions) {
        for (known, place) in &self.comms {
            let members = match *known {
                Known::World => Some((0..summary.ranks).collect()),
                Known::Self_(rank) => Some(vec![rank]),
                Known::Made { .. } => self.members.get(place).cloned(),
            };
            let Some(comm) = definitions.comms.get_mut(*place as usize) else { continue };
            if let Known::Made { identity, side: Some(side) } = *known {
                let same =
                    Known::Made { identity, side: None }..=Known::Made { identity, side: Some(UNKNOWN) };
                let other = self.comms.range(same).find(
                    |(other, _)| matches!(other, Known::Made { side: Some(theirs), .. } if *theirs != side),
                );
                let remote = other.and_then(|(_, other)| self.members.get(other));
                comm.remote = Some(remote.cloned().unwrap_or_default());
            }
            if members.is_none() || comm.remote.as_ref().is_some_and(Vec::is_empty) {
                summary.unknown_members.push(comm.name.clone());
            }
            comm.members = members.unwrap_or_default();
        }
    }
}

/// Whether a record refers to `MPI_COMM_SELF`, which no log defines.
fn uses_self(record: &Record<'_>) -> bool {
    match record.kind {
        kind::SEND | kind::POSTED | kind::RECV | kind::PROBED => {
            record.word(0).is_some_and(|word| two(word).0 == SELF)
        }
        kind::COLLECTIVE | kind::COLLECTIVE_POSTED => record.value == SELF,
        _ => false,
    }
}
