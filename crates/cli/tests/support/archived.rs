//! Counts what an archive holds of each rank.

use std::collections::BTreeMap;
use std::path::Path;

use quell_otf2::Archive;
use quell_recording::mpi::{Operation, Run as _, What};

/// Counts of a rank's events.
#[derive(Clone, Debug, Default)]
pub struct Archived {
    pub host: String,
    pub allreduces: usize,
    pub sends: usize,
    pub recvs: usize,
    /// The last total of each source, by name; totals never decrease.
    noise: BTreeMap<String, u64>,
}

impl Archived {
    /// The total time of a source, or of all sources of a kind, such as `task`.
    pub fn noise(&self, source: &str) -> u64 {
        let is_of = |name: &str| {
            name.strip_prefix(source).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        self.noise.iter().filter(|(name, _)| is_of(name)).map(|(_, ns)| ns).sum()
    }
}

/// Reads the archive of a folder, rank by rank.
pub fn read(folder: &Path) -> Vec<Archived> {
    let mut archive = Archive::open(folder).unwrap();
    let definitions = archive.definitions().clone();
    let mut ranks = Vec::new();
    for (place, location) in definitions.locations.iter().enumerate() {
        let mut rank = Archived { host: location.host.clone(), ..Archived::default() };
        let mut events = Vec::new();
        while archive.read(place, &mut events).unwrap() {}
        for event in events {
            match event.what {
                What::Send { .. } => rank.sends += 1,
                What::Recv { .. } => rank.recvs += 1,
                What::Collective { operation: Operation::Allreduce, .. } => rank.allreduces += 1,
                What::Noise { source, total_ns } => {
                    let name = definitions.sources[source as usize].clone();
                    let before = rank.noise.insert(name, total_ns);
                    assert!(before <= Some(total_ns), "{before:?} fell to {total_ns}");
                }
                _ => {}
            }
        }
        ranks.push(rank);
    }
    ranks
}
