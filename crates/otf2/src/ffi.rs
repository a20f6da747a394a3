//! The Rust declarations of `include/quell_otf2.h`, which documents the fields.

mod layout;

use std::ffi::{c_char, c_int, c_void};

pub(crate) use layout::{OPERATIONS, RawDefinition, RawEvent, definition, event, otf2};

/// An archive that is being read.
#[repr(C)]
pub(crate) struct Reader {
    _opaque: [u8; 0],
}

/// An archive that is being written.
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
    pub(crate) fn quell_otf2_define_begin(writer: *mut RawWriter) -> c_int;
    pub(crate) fn quell_otf2_define_paradigms(
        writer: *mut RawWriter,
        mpi_name: u32,
        openmp_name: u32,
    ) -> c_int;
    pub(crate) fn quell_otf2_define(writer: *mut RawWriter, definition: *const RawDefinition) -> c_int;
    pub(crate) fn quell_otf2_finish(writer: *mut RawWriter, locations: *const u64, count: u64) -> c_int;
}
