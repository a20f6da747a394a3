//! Tables that translate an archive's events, made from its definitions.

use std::collections::HashMap;

use quell_recording::mpi::{Definitions, Region, UNKNOWN};

use crate::clock::Clock;
use crate::collected::{Collected, Plain};
use crate::ffi::{definition, otf2};
use crate::metrics::{Member, Metric};
use crate::ranks::{Comms, Places};
use crate::{COMM_ATTRIBUTE, NOISE_METRIC, SOURCE_ATTRIBUTE, TAG_ATTRIBUTE};

/// The tables that translate an archive's events.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) definitions: Definitions,
    pub(crate) clock: Clock,
    pub(crate) regions: Places,
    pub(crate) comms: Comms,
    pub(crate) metrics: HashMap<u32, Metric>,
    /// Number of events that the archive states for each location.
    pub(crate) declared: Vec<u64>,
    /// Number of locations that belong to no rank.
    pub(crate) skipped_locations: usize,
    /// The attributes for a communicator, a source, a tag.
    pub(crate) attributes: [u32; 3],
    /// Whether metrics come before the event at which they were read.
    pub(crate) metrics_first: bool,
}

impl Tables {
    /// Builds the tables, or says what is wrong with the definitions.
    pub(crate) fn new(collected: &Collected, metrics_first: bool) -> Result<Self, String> {
        let [properties] = collected.records_of_kind(definition::CLOCK) else {
            return Err("its definitions do not say, or say twice, how fast its clock runs".into());
        };
        if properties.own == 0 {
            return Err("its clock makes 0 ticks a second".into());
        }
        let clock = Clock { resolution: properties.own, offset: properties.parent };
        let (locations, declared, skipped_locations) = crate::ranks::locations(collected)?;
        let (comms, comm_places) = crate::ranks::comms(collected, &locations)?;
        let (sources, metrics) = metrics(collected)?;
        let attribute = |name| {
            let found = collected
                .records_of_kind(definition::ATTRIBUTE)
                .iter()
                .find(|plain| collected.text(plain.name) == name);
            found.map_or(UNKNOWN, |plain| plain.own as u32) // references are 32 bits wide
        };
        Ok(Self {
            clock,
            regions: Places::new(
                collected.records_of_kind(definition::REGION).iter().map(|plain| plain.own as u32),
            ),
            comms: comm_places,
            metrics,
            declared,
            skipped_locations,
            attributes: [COMM_ATTRIBUTE, SOURCE_ATTRIBUTE, TAG_ATTRIBUTE].map(attribute),
            metrics_first,
            definitions: Definitions {
                regions: collected
                    .records_of_kind(definition::REGION)
                    .iter()
                    .map(|plain| region(collected, plain))
                    .collect(),
                comms,
                locations,
                sources,
                span_ns: [0, clock.ns_long(properties.other)],
            },
        })
    }
}

fn region(collected: &Collected, plain: &Plain) -> Region {
    let name = collected.text(plain.name).to_owned();
    let mpi = plain.paradigm == otf2::PARADIGM_MPI
        || ["MPI_", "PMPI_", "mpi_"].iter().any(|begin| name.starts_with(begin));
    let (described, file) = (collected.text(plain.text), collected.text(plain.file));
    let site = match (described, file, plain.other) {
        ("", "", _) => None,
        ("", file, 0 | 0xffff_ffff) => Some(file.to_owned()),
        ("", file, line) => Some(format!("{file}:{line}")),
        (described, ..) => Some(described.to_owned()),
    };
    Region { name, site, mpi }
}

/// The noise sources, and the metrics that carry their noise.
fn metrics(collected: &Collected) -> Result<(Vec<String>, HashMap<u32, Metric>), String> {
    let mut sources: Vec<String> = Vec::new();
    let mut places = HashMap::new();
    let mut members = HashMap::new();
    for plain in collected.records_of_kind(definition::MEMBER) {
        let name = collected.text(plain.name);
        let Some(source) = name.strip_prefix(NOISE_METRIC) else { continue };
        let place = *places.entry(source).or_insert_with(|| {
            sources.push(source.to_owned());
            sources.len() as u32 - 1 // references are 32 bits wide
        });
        let member =
            Member::new(place, plain.other, plain.paradigm, plain.exponent, collected.text(plain.text));
        members.insert(
            plain.own,
            member.map_err(|reason| format!("the metric {name:?} cannot be read as noise: {reason}"))?,
        );
    }
    let mut metrics = HashMap::new();
    for plain in collected.records_of_kind(definition::CLASS) {
        let members: Vec<_> = plain.members.iter().map(|member| members.get(member).copied()).collect();
        if members.iter().any(Option::is_some) {
            metrics.insert(plain.own as u32, Metric { members, location: None });
        }
    }
    for plain in collected.records_of_kind(definition::INSTANCE) {
        // Noise of a whole process or host is not the noise of one of its threads.
        let Some(class) = metrics.get(&(plain.parent as u32)).filter(|_| plain.class == otf2::SCOPE_LOCATION)
        else {
            continue;
        };
        let metric = Metric { members: class.members.clone(), location: Some(plain.other) };
        metrics.insert(plain.own as u32, metric);
    }
    Ok((sources, metrics))
}
