//! Translates the library's events to [`Event`]s.

use quell_recording::mpi::{BLOCKING, Damage, Event, UNKNOWN, What};

use crate::definitions::Tables;
use crate::ffi::{OPERATIONS, RawEvent, event};
use crate::metrics::Counter;

/// Values from here on are not a root: in a collective of an inter-communicator they say that the root is in the own group.
const NO_ROOT: u32 = UNKNOWN - 2;

/// The state of a location between its events.
#[derive(Debug, Default)]
pub(crate) struct Track {
    /// Its rank in the world.
    pub(crate) rank: u32,
    /// Its reference in the archive.
    pub(crate) id: u64,
    counters: Vec<Counter>,
    /// The last Enter or Leave, held back until the metrics with the same time have come.
    held: Option<RawEvent>,
    /// The time of the noise, if that was the last event.
    declared: Option<u64>,
}

impl Track {
    pub(crate) fn new(rank: u32, id: u64, sources: usize) -> Self {
        Self { rank, id, counters: vec![Counter::default(); sources], ..Self::default() }
    }

    /// Appends the translated events to `out`. After an error, `out` has the events before the faulty one.
    pub(crate) fn translate(
        &mut self,
        tables: &Tables,
        raw: &[RawEvent],
        out: &mut Vec<Event>,
    ) -> Result<(), Damage> {
        out.reserve(raw.len());
        for raw in raw {
            match raw.kind {
                event::VALUE => self.value(tables, raw, out)?,
                event::ENTER | event::LEAVE | event::PROBED => {
                    self.end(tables, out)?;
                    // Counters with this time that came before it belong to it, so later ones do not.
                    if tables.metrics_first || self.counters.is_empty() || self.declared == Some(raw.time) {
                        put(tables, self.rank, raw, out)?;
                    } else {
                        self.held = Some(*raw);
                    }
                    self.declared = None;
                }
                _ => {
                    self.end(tables, out)?;
                    self.declared = None;
                    put(tables, self.rank, raw, out)?;
                }
            }
        }
        Ok(())
    }

    /// Appends the event that is held back.
    pub(crate) fn end(&mut self, tables: &Tables, out: &mut Vec<Event>) -> Result<(), Damage> {
        self.held.take().map_or(Ok(()), |held| put(tables, self.rank, &held, out))
    }

    fn value(&mut self, tables: &Tables, raw: &RawEvent, out: &mut Vec<Event>) -> Result<(), Damage> {
        let Some(metric) = tables.metrics.get(&raw.of) else { return Ok(()) };
        let Some(Some(member)) = metric.members.get(raw.peer as usize) else { return Ok(()) };
        if metric.location.is_some_and(|location| location != self.id) {
            return Ok(());
        }
        if self.held.is_some_and(|held| held.time != raw.time) {
            self.end(tables, out)?;
        }
        self.declared = Some(raw.time);
        if let Some(total_ns) = self.counters[member.source as usize].take(member, raw.tag, raw.request) {
            let what = What::Noise { source: member.source, total_ns };
            out.push(Event { time_ns: tables.clock.ns(raw.time), what });
        }
        Ok(())
    }
}

/// Appends any event except a metric.
fn put(tables: &Tables, rank: u32, raw: &RawEvent, out: &mut Vec<Event>) -> Result<(), Damage> {
    let time_ns = tables.clock.ns(raw.time);
    let (request, tag) = (raw.request, raw.tag);
    let comm = || tables.comms.place(raw.of, rank);
    let damage = |what: String| Damage(format!("at {time_ns} ns: {what}"));
    let region = || match tables.regions.get(raw.of) {
        UNKNOWN => Err(damage(format!("a region is called {}, which is not defined", raw.of))),
        place => Ok(place),
    };
    let peer = |of: u32| match raw.peer {
        UNKNOWN => Ok(UNKNOWN),
        peer => tables.comms.peer(of, peer).ok_or_else(|| {
            damage(format!("rank {peer} is named, which the communicator {of} does not have"))
        }),
    };
    let collective = |request: u64| {
        let operation = OPERATIONS.get(tag as usize).copied();
        let operation =
            operation.ok_or_else(|| damage(format!("a collective operation has the number {tag}")))?;
        let root = if raw.peer >= NO_ROOT { UNKNOWN } else { peer(raw.of)? };
        Ok(What::Collective {
            operation,
            comm: comm(),
            root,
            sent: raw.sent,
            received: raw.received,
            request,
        })
    };
    let what = match raw.kind {
        event::ENTER => What::Enter(region()?),
        event::LEAVE => What::Leave(region()?),
        event::PROBED => {
            let region = region()?;
            let of = request as u32; // a communicator's reference
            let comm = tables.comms.place(of, rank);
            out.push(Event { time_ns, what: What::Probed { comm, from: peer(of)?, tag } });
            What::Leave(region)
        }
        event::SEND => {
            What::Send { comm: comm(), to: peer(raw.of)?, tag, bytes: raw.sent, request: BLOCKING }
        }
        event::ISEND => What::Send { comm: comm(), to: peer(raw.of)?, tag, bytes: raw.sent, request },
        event::ISEND_COMPLETE => What::SendDone { request },
        event::IRECV_REQUEST => What::RecvPosted { comm: comm(), from: peer(raw.of)?, tag, request },
        event::RECV => {
            What::Recv { comm: comm(), from: peer(raw.of)?, tag, bytes: raw.received, request: BLOCKING }
        }
        event::IRECV => What::Recv { comm: comm(), from: peer(raw.of)?, tag, bytes: raw.received, request },
        event::REQUEST_TEST => What::Pending { request },
        event::REQUEST_CANCELLED => What::Cancelled { request },
        event::COLLECTIVE_BEGIN => What::CollectiveBegin,
        event::COLLECTIVE_REQUEST => What::CollectivePosted { comm: comm(), request },
        event::COLLECTIVE_END => collective(BLOCKING)?,
        event::COLLECTIVE_COMPLETE => collective(request)?,
        event::FORK => What::Fork { threads: raw.of },
        event::TEAM_BEGIN => What::TeamBegin,
        event::TEAM_END => What::TeamEnd,
        event::JOIN => What::Join,
        other => return Err(damage(format!("an event is of kind {other}"))),
    };
    out.push(Event { time_ns, what });
    Ok(())
}
