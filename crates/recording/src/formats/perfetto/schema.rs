//! The part of Perfetto's trace format that quell writes. Names, numbers and types are those of `protos/perfetto/trace/` in
//! Perfetto's source (<https://github.com/google/perfetto>); what is in a `oneof` there is an optional field here,
//! which is the same on the wire.

use prost::Message;

/// `BUILTIN_CLOCK_REALTIME`.
pub(super) const REALTIME: u32 = 1;
/// `BUILTIN_CLOCK_MONOTONIC`.
pub(super) const MONOTONIC: u32 = 3;
/// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing before this packet is needed to read what follows.
pub(super) const SEQUENCE_STARTS: u32 = 1;
/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`: by `sibling_order_rank`.
pub(super) const BY_RANK: i32 = 3;
/// `TrackDescriptor.SiblingMergeBehavior.SIBLING_MERGE_BEHAVIOR_NONE`: equal names do not make one track of two.
pub(super) const NEVER_MERGED: i32 = 2;
/// `TrackEvent.TYPE_SLICE_BEGIN`.
pub(super) const SLICE_BEGIN: i32 = 1;
/// `TrackEvent.TYPE_SLICE_END`.
pub(super) const SLICE_END: i32 = 2;
/// `TrackEvent.TYPE_COUNTER`.
pub(super) const COUNTER: i32 = 4;
/// `CounterDescriptor.UNIT_TIME_NS`.
pub(super) const IN_NS: i32 = 1;

/// A trace is a sequence of packets; a writer never has to hold more than one.
#[cfg(test)]
#[derive(Clone, PartialEq, Message)]
pub(super) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(super) packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "58")]
    pub(super) timestamp_clock_id: Option<u32>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(uint32, optional, tag = "13")]
    pub(super) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "6")]
    pub(super) clock_snapshot: Option<ClockSnapshot>,
    #[prost(message, optional, tag = "11")]
    pub(super) track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    pub(super) track_descriptor: Option<TrackDescriptor>,
}

/// The times of several clocks at one instant, and the clock of the trace.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(super) clocks: Vec<Clock>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) primary_trace_clock: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub(super) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(super) counter: Option<CounterDescriptor>,
    #[prost(int32, optional, tag = "11")]
    pub(super) child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub(super) sibling_order_rank: Option<i32>,
    #[prost(string, optional, tag = "14")]
    pub(super) description: Option<String>,
    #[prost(int32, optional, tag = "15")]
    pub(super) sibling_merge_behavior: Option<i32>,
}

/// A track of values instead of slices.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {
    #[prost(int32, optional, tag = "3")]
    pub(super) unit: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub(super) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    pub(super) categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub(super) counter_value: Option<i64>,
    /// Arrows that start here. Perfetto's format is proto2, where numbers are not packed.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub(super) flow_ids: Vec<u64>,
    /// Arrows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub(super) terminating_flow_ids: Vec<u64>,
}

/// A name and one value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    pub(super) uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub(super) string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(super) name: Option<String>,
}

impl DebugAnnotation {
    pub(super) fn number(name: &str, value: u64) -> Self {
        Self { name: Some(name.to_owned()), uint_value: Some(value), string_value: None }
    }

    pub(super) fn text(name: &str, value: String) -> Self {
        Self { name: Some(name.to_owned()), uint_value: None, string_value: Some(value) }
    }
}
