//! Converts a log's records to events.

use std::path::Path;

use super::definitions::Maps;
use super::layout::{SOURCES, kind};
use super::lines::Clock;
use super::records::{Extent, Record, Records, two};
use crate::mpi::{BLOCKING, Damage, Event, Operation, UNKNOWN, What};

/// Approximate number of events that are read at once.
const BATCH: usize = 4096;

/// The events of a log.
#[derive(Debug)]
pub(super) struct Events {
    records: Records,
}

impl Events {
    pub(super) fn open(path: &Path, extent: Extent) -> std::io::Result<Self> {
        Ok(Self { records: Records::open(path, extent)? })
    }

    /// Reads the next few thousand events; `false` after the last.
    pub(super) fn read(
        &mut self,
        maps: &Maps,
        clock: &Clock,
        events: &mut Vec<Event>,
    ) -> Result<bool, Damage> {
        let enough = events.len().saturating_add(BATCH);
        while events.len() < enough {
            let Some(record) = self.records.next()? else { return Ok(false) };
            let time_ns = clock.common(record.time_ns);
            happened(&record, maps, |what| events.push(Event { time_ns, what }))?;
        }
        Ok(true)
    }
}

/// Converts a record to what happened.
fn happened(record: &Record<'_>, maps: &Maps, mut tell: impl FnMut(What)) -> Result<(), Damage> {
    let (tag, comm) = (record.value, |number| maps.comm(number));
    let request = |at| record.word(at).unwrap_or(BLOCKING);
    match record.kind {
        kind::REGION | kind::COMM | kind::MEMBERS => {}
        // The noise struck before the call was entered or left.
        kind::ENTER | kind::LEAVE => {
            noise(record, maps, &mut tell)?;
            let region = maps.region(record.value)?;
            tell(if record.kind == kind::ENTER { What::Enter(region) } else { What::Leave(region) });
        }
        kind::SEND => {
            let (number, to) = two(record.need(0)?);
            let comm = comm(number)?;
            tell(What::Send { comm, to, tag, bytes: record.need(1)?, request: request(2) });
        }
        kind::SEND_DONE => tell(What::SendDone { request: record.need(0)? }),
        kind::POSTED => {
            let (number, from) = two(record.need(0)?);
            tell(What::RecvPosted { comm: comm(number)?, from, tag, request: record.need(1)? });
        }
        kind::RECV => {
            let (number, from) = two(record.need(0)?);
            let comm = comm(number)?;
            tell(What::Recv { comm, from, tag, bytes: record.need(1)?, request: request(2) });
        }
        kind::PROBED => {
            let (number, from) = two(record.need(0)?);
            tell(What::Probed { comm: comm(number)?, from, tag });
        }
        kind::PENDING => tell(What::Pending { request: record.need(0)? }),
        kind::CANCELLED => tell(What::Cancelled { request: record.need(0)? }),
        kind::COLLECTIVE_BEGIN => tell(What::CollectiveBegin),
        kind::COLLECTIVE_POSTED => {
            tell(What::CollectivePosted { comm: comm(record.value)?, request: record.need(0)? });
        }
        kind::COLLECTIVE => {
            let operation = Operation::ALL
                .get(usize::from(record.mask))
                .copied()
                .ok_or_else(|| Damage(format!("damaged: operation {} is none", record.mask)))?;
            let (_, root) = two(record.need(0)?);
            let (sent, received) = (record.need(1)?, record.need(2)?);
            let comm = comm(record.value)?;
            tell(What::Collective { operation, comm, root, sent, received, request: request(3) });
        }
        kind::FORK | kind::TEAM_BEGIN | kind::TEAM_END | kind::JOIN => {
            noise(record, maps, &mut tell)?;
            tell(match record.kind {
                kind::FORK => What::Fork { threads: record.value },
                kind::TEAM_BEGIN => What::TeamBegin,
                kind::TEAM_END => What::TeamEnd,
                _ => What::Join,
            });
        }
        other => return Err(Damage(format!("damaged: a record of kind {other}"))),
    }
    Ok(())
}

fn noise(record: &Record<'_>, maps: &Maps, tell: &mut impl FnMut(What)) -> Result<(), Damage> {
    let changed = (0..SOURCES).filter(|source| record.mask >> source & 1 != 0);
    for (at, number) in changed.enumerate() {
        let total_ns = record.need(at)?;
        let source = maps.source(number);
        if source != UNKNOWN {
            tell(What::Noise { source, total_ns });
        }
    }
    Ok(())
}
