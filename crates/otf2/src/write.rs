//! Writes an archive of any run.

use std::path::Path;

use quell_recording::mpi::{Damage, Run, What};

use crate::define::Facts;
use crate::error::Error;
use crate::writer::Writer;

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of the program's events in the archive, without metrics.
    pub events: u64,
    /// Locations whose events could not be read to their end, with the reason.
    pub damaged: Vec<(usize, Damage)>,
    /// Events whose clock went backwards, which OTF2 does not allow: they got the time of the event before them.
    pub raised: u64,
}

/// Writes a whole run into a folder, as the archive `traces.otf2`. Memory: one location's buffer and some thousand events.
///
/// # Errors
/// As [`Writer`]. Unreadable events of a location are not an error: see [`Written::damaged`].
pub fn write(run: &mut dyn Run, folder: &Path, facts: Facts) -> Result<Written, Error> {
    let mut writer = Writer::with_facts(folder, run.definitions(), facts)?;
    let mut written = Written::default();
    let mut events = Vec::new();
    for location in 0..run.definitions().locations.len() {
        let (mut more, mut last_ns) = (true, 0);
        while more {
            more = run.read(location, &mut events).unwrap_or_else(|damage| {
                written.damaged.push((location, damage));
                false
            });
            for mut event in events.drain(..) {
                written.raised += u64::from(event.time_ns < last_ns);
                last_ns = last_ns.max(event.time_ns);
                event.time_ns = last_ns;
                written.events += u64::from(!matches!(event.what, What::Noise { .. }));
                writer.event(location, event)?;
            }
        }
        writer.close(location)?;
    }
    writer.finish()?;
    Ok(written)
}
