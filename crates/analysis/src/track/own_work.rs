//! Takes out of a run what the kernel counts and is no noise.
//!
//! A page fault is the program's own work: it touches memory that it has not touched before. So is the time that its own threads take from
//! one another. Nataraj et al. 2007, §3, count interrupts and involuntary switches.

use std::collections::BTreeMap;

use quell_recording::SourceKind;
use quell_recording::mpi::{Damage, Definitions, Event, Run, What};
use quell_recording::mpi_log::OWN_THREADS;

/// Whether a counter of the kernel counts what a program does itself.
fn is_own_work(name: &str) -> bool {
    name == SourceKind::Fault.name() || name == OWN_THREADS
}

/// A run without the counters of the program's own work.
#[derive(Debug)]
pub struct NoiseOnly<R> {
    run: R,
    definitions: Definitions,
    sources: Vec<Source>,
    /// The last value of each counter that was taken out, by its source and location.
    last: BTreeMap<(u32, usize), u64>,
}

/// What becomes of a source of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// It is noise; its new index.
    Noise(u32),
    /// It is the program's own work; its name.
    OwnWork(String),
}

impl<R: Run> NoiseOnly<R> {
    /// The run without its program's own work; with `own_work` it stays as it is.
    pub fn new(run: R, own_work: bool) -> Self {
        let mut definitions = run.definitions().clone();
        let is_own = |name: &str| !own_work && is_own_work(name);
        let mut kept = 0..;
        let sort = |name: &String| match is_own(name) {
            true => Source::OwnWork(name.clone()),
            false => Source::Noise(kept.next().unwrap_or_default()),
        };
        let sources = definitions.sources.iter().map(sort).collect();
        definitions.sources.retain(|name| !is_own(name));
        Self { run, definitions, sources, last: BTreeMap::new() }
    }

    /// An event as it is without own work; `None` for a counter of that.
    fn sorted(&mut self, location: usize, event: Event) -> Option<Event> {
        let What::Noise { source, total_ns } = event.what else { return Some(event) };
        match self.sources.get(source as usize) {
            Some(Source::OwnWork(_)) => {
                self.last.insert((source, location), total_ns);
                None
            }
            Some(&Source::Noise(source)) => Some(Event { what: What::Noise { source, total_ns }, ..event }),
            // Undefined in the run, and so here: an index that no source has.
            None => Some(event),
        }
    }
}

impl<R: Run> Run for NoiseOnly<R> {
    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn read(&mut self, location: usize, events: &mut Vec<Event>) -> Result<bool, Damage> {
        let before = events.len();
        let more = self.run.read(location, events);
        let mut kept = before;
        for at in before..events.len() {
            if let Some(event) = self.sorted(location, events[at]) {
                events[kept] = event;
                kept += 1;
            }
        }
        events.truncate(kept);
        more
    }

    fn own_work_ns(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (&(source, _), total_ns) in &self.last {
            if let Some(Source::OwnWork(name)) = self.sources.get(source as usize) {
                let sum: &mut u64 = all.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*total_ns);
            }
        }
        all
    }
}
