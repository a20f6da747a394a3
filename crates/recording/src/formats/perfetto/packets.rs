//! Writes packets one at a time: however long the recording is, only one packet is in memory.

use std::io::{self, Write};

use prost::Message as _;

use super::event::Event;
use super::schema::{
    BY_RANK, Clock, ClockSnapshot, CounterDescriptor, DebugAnnotation, IN_NS, MONOTONIC, NEVER_MERGED,
    REALTIME, SEQUENCE_STARTS, SLICE_BEGIN, SLICE_END, TracePacket, TrackDescriptor, TrackEvent,
};
use crate::Nanos;

/// Field 1 of `Trace`, length-delimited.
const PACKET_KEY: u8 = 1 << 3 | 2;
/// All packets have the same writer.
const SEQUENCE: u32 = 1;

/// A track whose descriptor was written.
#[derive(Clone, Copy, Debug)]
pub struct Track(pub(super) u64);

/// Writes packets.
pub(super) struct Packets<'w> {
    out: &'w mut dyn Write,
    buffer: Vec<u8>,
    /// CLOCK_MONOTONIC at the recording's zero.
    zero: u64,
    tracks: u64,
}

impl<'w> Packets<'w> {
    /// Starts a trace on CLOCK_MONOTONIC; its time `zero` is `unix` on the wall clock.
    pub(super) fn start(out: &'w mut dyn Write, zero: u64, unix: Option<u64>) -> io::Result<Self> {
        let mut packets = Self { out, buffer: Vec::new(), zero, tracks: 0 };
        let clock = |id, ns| Clock { clock_id: Some(id), timestamp: Some(ns) };
        let mut clocks = vec![clock(MONOTONIC, packets.at(Nanos::ZERO))];
        clocks.extend(unix.map(|ns| clock(REALTIME, ns)));
        let snapshot = ClockSnapshot { clocks, primary_trace_clock: Some(MONOTONIC) };
        let stamped = packets.stamped(Nanos::ZERO);
        let flags = Some(SEQUENCE_STARTS);
        packets.put(&TracePacket { clock_snapshot: Some(snapshot), sequence_flags: flags, ..stamped })?;
        Ok(packets)
    }

    /// Describes a track below `parent`, at position `rank` there.
    pub(super) fn track(
        &mut self,
        parent: Option<Track>,
        rank: usize,
        name: &str,
        description: Option<String>,
    ) -> io::Result<Track> {
        self.described(parent, rank, name, TrackDescriptor { description, ..TrackDescriptor::default() })
    }

    /// Describes a track of values in ns.
    pub(super) fn counter(&mut self, parent: Option<Track>, rank: usize, name: &str) -> io::Result<Track> {
        let counter = Some(CounterDescriptor { unit: Some(IN_NS) });
        self.described(parent, rank, name, TrackDescriptor { counter, ..TrackDescriptor::default() })
    }

    fn described(
        &mut self,
        parent: Option<Track>,
        rank: usize,
        name: &str,
        kind: TrackDescriptor,
    ) -> io::Result<Track> {
        self.tracks += 1;
        let descriptor = TrackDescriptor {
            uuid: Some(self.tracks),
            name: Some(name.to_owned()),
            parent_uuid: parent.map(|track| track.0),
            child_ordering: Some(BY_RANK),
            sibling_order_rank: Some(i32::try_from(rank).unwrap_or(i32::MAX)),
            sibling_merge_behavior: Some(NEVER_MERGED),
            ..kind
        };
        let trusted_packet_sequence_id = Some(SEQUENCE);
        let track_descriptor = Some(descriptor);
        self.put(&TracePacket { trusted_packet_sequence_id, track_descriptor, ..TracePacket::default() })?;
        Ok(Track(self.tracks))
    }

    /// Opens a slice that will end at `end`, which is before the event's own end only if another event cuts it off.
    pub(super) fn begin(&mut self, track: Track, event: &Event<'_>, end: Nanos) -> io::Result<()> {
        let mut debug_annotations = event.annotations();
        if end < event.end() {
            debug_annotations.push(DebugAnnotation::number("cut_off_ns", (event.end() - end).as_nanos()));
        }
        self.event(
            event.start(),
            TrackEvent {
                debug_annotations,
                r#type: Some(SLICE_BEGIN),
                track_uuid: Some(track.0),
                categories: vec![event.category().to_owned()],
                name: Some(event.name()),
                ..TrackEvent::default()
            },
        )
    }

    /// Closes the innermost open slice of a track.
    pub(super) fn end(&mut self, track: Track, at: Nanos) -> io::Result<()> {
        let event =
            TrackEvent { r#type: Some(SLICE_END), track_uuid: Some(track.0), ..TrackEvent::default() };
        self.event(at, event)
    }

    /// Writes an event of a track.
    pub(super) fn event(&mut self, at: Nanos, event: TrackEvent) -> io::Result<()> {
        let stamped = self.stamped(at);
        self.put(&TracePacket { track_event: Some(event), ..stamped })
    }

    fn stamped(&self, at: Nanos) -> TracePacket {
        TracePacket {
            timestamp: Some(self.at(at)),
            timestamp_clock_id: Some(MONOTONIC),
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..TracePacket::default()
        }
    }

    /// A time on the trace's clock. Perfetto's time is signed, so later times are limited to its maximum.
    fn at(&self, at: Nanos) -> u64 {
        self.zero.saturating_add(at.as_nanos()).min(i64::MAX as u64)
    }

    fn put(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.push(PACKET_KEY);
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        self.out.write_all(&self.buffer)
    }
}
