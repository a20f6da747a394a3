//! The definitions of an archive to write.

use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;

use quell_recording::mpi::{Comm, Definitions, Region};

use crate::ffi::{RawDefinition, definition, otf2};
use crate::{COMM_ATTRIBUTE, NOISE_METRIC, SOURCE_ATTRIBUTE, TAG_ATTRIBUTE};

/// What an archive says about itself in addition to its definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The program that wrote it; `None` for this library.
    pub creator: Option<String>,
    /// A description of its contents.
    pub description: Option<String>,
    /// The machine's name.
    pub machine: Option<String>,
    /// The clock's value at the time 0 of the events, in ns: the archive's timestamps are values of the clock.
    pub zero_clock_ns: u64,
    /// The wall-clock time at that instant, in ns since 1970.
    pub realtime_ns: Option<u64>,
    /// Further properties, by name: `NAMESPACE::NAME`, of capital letters, digits and underscores.
    pub properties: Vec<(String, String)>,
}

/// Maximum number of sources, because a metric event has at most this many values.
pub(crate) const MOST_SOURCES: usize = u8::MAX as usize;

/// All definitions, in an order in which each refers only to earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Defining {
    strings: HashMap<String, u32>,
    texts: Vec<CString>,
    groups: HashMap<(u32, Vec<u64>), u32>,
    lists: Vec<Vec<u64>>,
    list: Vec<(RawDefinition, Option<usize>)>,
    next_group: u32,
    pub(crate) mpi: u32,
    pub(crate) openmp: u32,
}

impl Defining {
    /// `teams`: threads are in teams.
    pub(crate) fn new(
        definitions: &Definitions,
        comms: &[CommAs],
        facts: &Facts,
        events: &[u64],
        teams: bool,
    ) -> Self {
        let mut all = Self::default();
        all.text("");
        all.mpi = all.text("MPI");
        all.openmp = all.text("OpenMP");
        let length = definitions.span_ns[1];
        let clock = RawDefinition {
            own: 1_000_000_000,
            parent: facts.zero_clock_ns,
            other: length,
            number: facts.realtime_ns.unwrap_or(u64::MAX),
            ..RawDefinition::new(definition::CLOCK)
        };
        all.push(clock);
        for (own, (name, class)) in (0..).zip([
            (COMM_ATTRIBUTE, otf2::TYPE_COMM),
            (SOURCE_ATTRIBUTE, otf2::TYPE_UINT32),
            (TAG_ATTRIBUTE, otf2::TYPE_UINT32),
        ]) {
            let name = all.text(name);
            all.push(RawDefinition { own, name, class, ..RawDefinition::new(definition::ATTRIBUTE) });
        }
        all.places(definitions, facts, events);
        for (own, region) in (0..).zip(&definitions.regions) {
            all.region(own, region);
        }
        all.noise(&definitions.sources);
        all.comms(definitions, comms);
        if teams {
            all.teams(definitions, comms);
        }
        all
    }

    /// Calls `define` for each string. They come before all that names them: some readers need that.
    pub(crate) fn strings<E>(
        &self,
        mut define: impl FnMut(&RawDefinition) -> Result<(), E>,
    ) -> Result<(), E> {
        (0..).zip(&self.texts).try_for_each(|(own, text)| {
            define(&RawDefinition { own, string: text.as_ptr(), ..RawDefinition::new(definition::STRING) })
        })
    }

    /// Calls `define` for each definition that is not a string.
    pub(crate) fn others<E>(&self, mut define: impl FnMut(&RawDefinition) -> Result<(), E>) -> Result<(), E> {
        self.list.iter().try_for_each(|(raw, members)| match members.map(|at| &self.lists[at]) {
            Some(list) => define(&RawDefinition { members: list.as_ptr(), count: list.len() as u64, ..*raw }),
            None => define(raw),
        })
    }

    fn push(&mut self, raw: RawDefinition) {
        self.list.push((raw, None));
    }

    fn push_list(&mut self, raw: RawDefinition, members: Vec<u64>) {
        self.list.push((raw, Some(self.lists.len())));
        self.lists.push(members);
    }

    fn text(&mut self, text: &str) -> u32 {
        if let Some(&found) = self.strings.get(text) {
            return found;
        }
        let own = self.texts.len() as u32; // references are 32 bits wide
        // A NUL would end the string.
        self.texts.push(CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default());
        self.strings.insert(text.to_owned(), own);
        own
    }

    /// Defines the machine, its hosts, its processes, their threads.
    fn places(&mut self, definitions: &Definitions, facts: &Facts, events: &[u64]) {
        let (name, text) = (self.text(facts.machine.as_deref().unwrap_or("machine")), self.text("machine"));
        let root = u64::from(otf2::UNDEFINED);
        self.push(RawDefinition { own: 0, name, text, parent: root, ..RawDefinition::new(definition::NODE) });
        let (mut hosts, mut processes) = (HashMap::new(), HashMap::new());
        let class = self.text("node");
        for (location, &number) in definitions.locations.iter().zip(events) {
            let mut node = 0;
            if !location.host.is_empty() {
                let next = hosts.len() as u64 + 1;
                node = *hosts.entry(&location.host).or_insert(next);
                if node == next {
                    let name = self.text(&location.host);
                    self.push(RawDefinition {
                        own: node,
                        name,
                        text: class,
                        ..RawDefinition::new(definition::NODE)
                    });
                }
            }
            let next = processes.len() as u64;
            let process = *processes.entry(location.rank).or_insert(next);
            if process == next {
                let name = self.text(&format!("rank {}", location.rank));
                let (class, parent) = (otf2::LOCATION_GROUP_PROCESS, node);
                self.push(RawDefinition {
                    own: process,
                    name,
                    class,
                    parent,
                    ..RawDefinition::new(definition::LOCATION_GROUP)
                });
            }
            let name = self.text(&location.name);
            let class = otf2::LOCATION_CPU_THREAD;
            let raw = RawDefinition {
                own: location.id,
                name,
                class,
                number,
                parent: process,
                ..RawDefinition::new(definition::LOCATION)
            };
            self.push(raw);
        }
    }

    fn region(&mut self, own: u64, region: &Region) {
        let (name, text) = (self.text(&region.name), self.text(region.site.as_deref().unwrap_or("")));
        let (paradigm, class) = match region.mpi {
            true => (otf2::PARADIGM_MPI, role(&region.name)),
            false => openmp_role(&region.name)
                .map_or((otf2::PARADIGM_USER, otf2::ROLE_CODE), |role| (otf2::PARADIGM_OPENMP, role)),
        };
        let file = otf2::UNDEFINED;
        self.push(RawDefinition {
            own,
            name,
            text,
            class,
            paradigm,
            file,
            ..RawDefinition::new(definition::REGION)
        });
    }

    /// Defines a metric for each source, and one class with all of them.
    fn noise(&mut self, sources: &[String]) {
        let text = self.text("ns");
        for (own, source) in (0..).zip(sources) {
            let name = self.text(&format!("{NOISE_METRIC}{source}"));
            let (class, paradigm, other) = (otf2::TYPE_UINT64, otf2::BASE_DECIMAL, otf2::ACCUMULATED_START);
            self.push(RawDefinition {
                own,
                name,
                text,
                class,
                paradigm,
                other,
                ..RawDefinition::new(definition::MEMBER)
            });
        }
        if !sources.is_empty() {
            self.push_list(RawDefinition::new(definition::CLASS), (0..sources.len() as u64).collect());
        }
    }

    /// Defines a group, once for each distinct list of ranks or threads.
    fn group(&mut self, name: &str, (class, paradigm): (u32, u32), members: Vec<u64>) -> u64 {
        let key = (class == otf2::GROUP_COMM_GROUP).then(|| (paradigm, members.clone()));
        if let Some(&found) = key.as_ref().and_then(|key| self.groups.get(key)) {
            return found.into();
        }
        let own = self.next_group;
        self.next_group += 1;
        if let Some(key) = key {
            self.groups.insert(key, own);
        }
        let name = self.text(name);
        let raw =
            RawDefinition { own: own.into(), name, class, paradigm, ..RawDefinition::new(definition::GROUP) };
        self.push_list(raw, members);
        own.into()
    }

    fn comms(&mut self, definitions: &Definitions, comms: &[CommAs]) {
        let mut first = vec![];
        for location in &definitions.locations {
            if location.rank as usize == first.len() {
                first.push(location.id);
            }
        }
        self.group("MPI ranks", (otf2::GROUP_COMM_LOCATIONS, otf2::PARADIGM_MPI), first);
        let mut selves = None;
        for comm in comms {
            let name = self.text(&comm.comm.name);
            let own = u64::from(comm.own);
            if comm.of_each {
                let parent = *selves.get_or_insert_with(|| {
                    self.group("self", (otf2::GROUP_COMM_SELF, otf2::PARADIGM_MPI), vec![])
                });
                self.push(RawDefinition { own, name, parent, ..RawDefinition::new(definition::COMM) });
                continue;
            }
            let mut group = |ranks: &[u32]| {
                let members = ranks.iter().map(|&rank| rank.into()).collect();
                self.group(&comm.comm.name, (otf2::GROUP_COMM_GROUP, otf2::PARADIGM_MPI), members)
            };
            let parent = group(&comm.comm.members);
            let raw = match &comm.comm.remote {
                Some(remote) => {
                    RawDefinition { other: group(remote), ..RawDefinition::new(definition::INTER_COMM) }
                }
                None => RawDefinition::new(definition::COMM),
            };
            self.push(RawDefinition { own, name, parent, ..raw });
        }
    }

    /// Defines the team of each rank's threads.
    fn teams(&mut self, definitions: &Definitions, comms: &[CommAs]) {
        let locations = &definitions.locations;
        let ids = locations.iter().map(|location| location.id).collect();
        self.group("OpenMP threads", (otf2::GROUP_COMM_LOCATIONS, otf2::PARADIGM_OPENMP), ids);
        let mut first = 0;
        for threads in locations.chunk_by(|one, other| one.rank == other.rank) {
            let name = format!("threads of rank {}", threads[0].rank);
            let members = (first..first + threads.len() as u64).collect();
            first += threads.len() as u64;
            let parent = self.group(&name, (otf2::GROUP_COMM_GROUP, otf2::PARADIGM_OPENMP), members);
            let (own, name) = (team(comms, threads[0].rank).into(), self.text(&name));
            self.push(RawDefinition { own, name, parent, ..RawDefinition::new(definition::COMM) });
        }
    }
}

/// The reference of the team of a rank's threads.
pub(crate) fn team(comms: &[CommAs], rank: u32) -> u32 {
    comms.len() as u32 + rank // references are 32 bits wide
}

/// How a communicator is represented.
#[derive(Debug)]
pub(crate) struct CommAs {
    /// Its reference.
    own: u32,
    comm: Comm,
    /// Whether it stands for one communicator per rank.
    pub(crate) of_each: bool,
}

/// How communicators are represented, and the reference of each: one stands for all `MPI_COMM_SELF`, if each rank has its own.
pub(crate) fn comms(definitions: &Definitions) -> (Vec<CommAs>, Vec<u32>) {
    let ranks = definitions.locations.last().map_or(0, |last| last.rank as usize + 1);
    let (mut all, mut references) = (Vec::<CommAs>::new(), Vec::new());
    let mut rest = definitions.comms.as_slice();
    while let Some(comm) = rest.first() {
        let own = all.len() as u32; // references are 32 bits wide
        let of_each = comm.name.contains("SELF")
            && rest.get(..ranks).is_some_and(|selves| {
                (0..)
                    .zip(selves)
                    .all(|(rank, own)| own.name == comm.name && own.members == [rank] && own.remote.is_none())
            });
        let count = if of_each { ranks } else { 1 };
        all.push(CommAs { own, comm: comm.clone(), of_each });
        references.extend(std::iter::repeat_n(own, count));
        rest = &rest[count..];
    }
    (all, references)
}

/// The role of a region of OpenMP as the tracer names it, by OTF2's numbers.
fn openmp_role(name: &str) -> Option<u32> {
    match name {
        "omp parallel" => Some(otf2::ROLE_PARALLEL),
        "omp barrier" => Some(otf2::ROLE_BARRIER),
        "omp implicit barrier" => Some(otf2::ROLE_IMPLICIT_BARRIER),
        _ => None,
    }
}

/// The role of an MPI call, by OTF2's numbers.
fn role(name: &str) -> u32 {
    use otf2::{
        ROLE_ALL_TO_ALL, ROLE_ALL_TO_ONE, ROLE_BARRIER, ROLE_FILE, ROLE_FUNCTION, ROLE_ONE_SIDED,
        ROLE_ONE_TO_ALL, ROLE_OTHER_COLLECTIVE, ROLE_POINT_TO_POINT,
    };
    let Some(call) = name.strip_prefix("MPI_").or_else(|| name.strip_prefix("PMPI_")) else {
        return ROLE_FUNCTION;
    };
    let call = call.to_ascii_lowercase();
    let is = |names: &[&str]| {
        let blocking = call.strip_prefix('i').unwrap_or(&call);
        names.iter().any(|&name| name == call || name == blocking)
    };
    match call.as_str() {
        _ if call.starts_with("file_") => ROLE_FILE,
        _ if call.starts_with("win_")
            || is(&["put", "get", "accumulate", "get_accumulate", "rput", "rget", "fetch_and_op"]) =>
        {
            ROLE_ONE_SIDED
        }
        _ if is(&["barrier"]) => ROLE_BARRIER,
        _ if is(&["bcast", "scatter", "scatterv"]) => ROLE_ONE_TO_ALL,
        _ if is(&["gather", "gatherv", "reduce"]) => ROLE_ALL_TO_ONE,
        _ if is(&[
            "allreduce",
            "allgather",
            "allgatherv",
            "alltoall",
            "alltoallv",
            "alltoallw",
            "reduce_scatter",
            "reduce_scatter_block",
        ]) =>
        {
            ROLE_ALL_TO_ALL
        }
        _ if is(&["scan", "exscan"]) || call.starts_with("comm_dup") || call.starts_with("comm_split") => {
            ROLE_OTHER_COLLECTIVE
        }
        _ if ["send", "recv", "wait", "test", "probe", "start", "cancel", "request_"]
            .iter()
            .any(|part| call.contains(part)) =>
        {
            ROLE_POINT_TO_POINT
        }
        _ => ROLE_FUNCTION,
    }
}

impl RawDefinition {
    pub(crate) fn new(kind: u32) -> Self {
        Self {
            own: 0,
            parent: 0,
            other: 0,
            number: 0,
            exponent: 0,
            string: ptr::null(),
            members: ptr::null(),
            count: 0,
            kind,
            name: 0,
            text: 0,
            file: 0,
            class: 0,
            paradigm: 0,
        }
    }
}
