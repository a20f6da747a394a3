//! The Rust face of `include/quell_otf2.h`, which says what the fields mean.

use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

/// Numbers from 0, with their names, which a test holds against the header.
macro_rules! kinds {
    ($($name:ident)*) => {
        kinds!(@ 0u32; $($name)*);
        #[cfg(test)]
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
    (@ $n:expr; $name:ident $($rest:ident)*) => {
        pub(crate) const $name: u32 = $n;
        kinds!(@ $n + 1; $($rest)*);
    };
    (@ $n:expr;) => {};
}

/// `enum quell_otf2_event_kind`.
pub(crate) mod event {
    kinds!(ENTER LEAVE VALUE SEND ISEND ISEND_COMPLETE IRECV_REQUEST RECV IRECV PROBED REQUEST_TEST REQUEST_CANCELLED
        COLLECTIVE_BEGIN COLLECTIVE_REQUEST COLLECTIVE_END COLLECTIVE_COMPLETE);
}

/// `enum quell_otf2_definition_kind`.
pub(crate) mod definition {
    kinds!(CLOCK STRING ATTRIBUTE NODE LOCATION_GROUP LOCATION REGION GROUP COMM INTER_COMM MEMBER CLASS INSTANCE);
}

/// OTF2's own numbers, as far as they are needed: its format fixes them.
pub(crate) mod otf2 {
    pub(crate) const UNDEFINED: u32 = u32::MAX;
    pub(crate) const PARADIGM_UNKNOWN: u32 = 0;
    pub(crate) const PARADIGM_USER: u32 = 1;
    pub(crate) const PARADIGM_MPI: u32 = 4;
    pub(crate) const GROUP_LOCATIONS: u32 = 1;
    pub(crate) const GROUP_COMM_LOCATIONS: u32 = 4;
    pub(crate) const GROUP_COMM_GROUP: u32 = 5;
    pub(crate) const GROUP_COMM_SELF: u32 = 6;
    pub(crate) const GROUP_OF_WORLD_RANKS: u64 = 1;
    pub(crate) const LOCATION_GROUP_PROCESS: u32 = 1;
    pub(crate) const LOCATION_CPU_THREAD: u32 = 1;
    pub(crate) const SCOPE_LOCATION: u32 = 0;
    pub(crate) const TYPE_UINT32: u32 = 3;
    pub(crate) const TYPE_UINT64: u32 = 4;
    pub(crate) const TYPE_INT64: u32 = 8;
    pub(crate) const TYPE_DOUBLE: u32 = 10;
    pub(crate) const TYPE_COMM: u32 = 17;
    pub(crate) const BASE_BINARY: u32 = 0;
    pub(crate) const BASE_DECIMAL: u32 = 1;
    pub(crate) const ACCUMULATED_START: u64 = 0;
    pub(crate) const ACCUMULATED_LAST: u64 = 2 << 4;
    pub(crate) const MODE_VALUE: u64 = 15;
    pub(crate) const MODE_RELATIVE: u64 = 2;
}

/// `struct quell_otf2_event`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawEvent {
    pub(crate) time: u64,
    pub(crate) request: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) kind: u32,
    pub(crate) of: u32,
    pub(crate) peer: u32,
    pub(crate) tag: u32,
}

const _: () = assert!(size_of::<RawEvent>() == 48 && offset_of!(RawEvent, kind) == 32);

/// `struct quell_otf2_definition`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawDefinition {
    pub(crate) own: u64,
    pub(crate) parent: u64,
    pub(crate) other: u64,
    pub(crate) number: u64,
    pub(crate) exponent: i64,
    pub(crate) string: *const c_char,
    pub(crate) members: *const u64,
    pub(crate) count: u64,
    pub(crate) kind: u32,
    pub(crate) name: u32,
    pub(crate) text: u32,
    pub(crate) file: u32,
    pub(crate) class: u32,
    pub(crate) paradigm: u32,
}

const _: () = assert!(size_of::<RawDefinition>() == 88 && offset_of!(RawDefinition, kind) == 64);

/// An archive that is read.
#[repr(C)]
pub(crate) struct Reader {
    _opaque: [u8; 0],
}

/// An archive that is written.
#[repr(C)]
pub(crate) struct RawWriter {
    _opaque: [u8; 0],
}

/// A location's events, in either direction.
#[repr(C)]
pub(crate) struct Stream {
    _opaque: [u8; 0],
}

pub(crate) type Take = extern "C" fn(*mut c_void, *const RawDefinition);

unsafe extern "C" {
    pub(crate) fn quell_otf2_problem() -> *const c_char;
    pub(crate) fn quell_otf2_open(anchor: *const c_char) -> *mut Reader;
    pub(crate) fn quell_otf2_close(reader: *mut Reader);
    pub(crate) fn quell_otf2_chunks(reader: *mut Reader, events: *mut u64, definitions: *mut u64);
    pub(crate) fn quell_otf2_has_property(reader: *mut Reader, name: *const c_char) -> c_int;
    pub(crate) fn quell_otf2_definitions(
        reader: *mut Reader,
        most: u64,
        take: Take,
        user: *mut c_void,
    ) -> c_int;
    pub(crate) fn quell_otf2_select(
        reader: *mut Reader,
        locations: *const u64,
        most: *const u64,
        count: u64,
        failed: *mut c_int,
    ) -> c_int;
    pub(crate) fn quell_otf2_attributes(reader: *mut Reader, comm: u32, source: u32, tag: u32);
    pub(crate) fn quell_otf2_stream(reader: *mut Reader, location: u64, position: u64) -> *mut Stream;
    pub(crate) fn quell_otf2_stream_close(reader: *mut Reader, stream: *mut Stream);
    pub(crate) fn quell_otf2_read(
        reader: *mut Reader,
        stream: *mut Stream,
        most: u64,
        events: *mut *const RawEvent,
        count: *mut u64,
        read: *mut u64,
    ) -> c_int;

    pub(crate) fn quell_otf2_create(folder: *const c_char, name: *const c_char) -> *mut RawWriter;
    pub(crate) fn quell_otf2_describe(
        writer: *mut RawWriter,
        creator: *const c_char,
        machine: *const c_char,
        description: *const c_char,
    ) -> c_int;
    pub(crate) fn quell_otf2_property(
        writer: *mut RawWriter,
        name: *const c_char,
        value: *const c_char,
    ) -> c_int;
    pub(crate) fn quell_otf2_write_to(writer: *mut RawWriter, location: u64) -> *mut Stream;
    pub(crate) fn quell_otf2_written(writer: *mut RawWriter, stream: *mut Stream) -> c_int;
    pub(crate) fn quell_otf2_write(
        writer: *mut RawWriter,
        stream: *mut Stream,
        event: *const RawEvent,
    ) -> c_int;
    pub(crate) fn quell_otf2_write_metric(
        stream: *mut Stream,
        time: u64,
        class: u32,
        values: *const u64,
        count: u8,
    ) -> c_int;
    pub(crate) fn quell_otf2_define_begin(writer: *mut RawWriter, mpi_name: u32) -> c_int;
    pub(crate) fn quell_otf2_define(writer: *mut RawWriter, definition: *const RawDefinition) -> c_int;
    pub(crate) fn quell_otf2_finish(writer: *mut RawWriter, locations: *const u64, count: u64) -> c_int;
}

#[cfg(test)]
mod tests {
    /// The names in the header's `enum NAME`, without their prefix.
    fn names(which: &str) -> Vec<String> {
        let header = include_str!("../include/quell_otf2.h");
        let body = header.split_once(&format!("enum {which} {{")).unwrap().1.split_once('}').unwrap().0;
        body.split(',')
            .filter_map(|name| name.trim().strip_prefix("QUELL_OTF2_"))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn kinds_are_those_of_the_header() {
        assert_eq!(super::event::NAMES, names("quell_otf2_event_kind"));
        assert_eq!(super::definition::NAMES, names("quell_otf2_definition_kind"));
    }
}
