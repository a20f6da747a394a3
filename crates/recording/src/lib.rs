//! The data types of quell and their files.
//!
//! A [`Recording`] is a folder `NAME.quell/` with a [`Manifest`] and one Parquet table per kind of row. While it
//! is being made, each table is an Arrow IPC stream that stays readable after a crash ([`Writer`]); at the end it
//! becomes Parquet. Other tools' files are read and written by [`formats`]. This crate imports no other crate
//! of quell.

// The derive refers to this crate by name, also within it.
extern crate self as quell_recording;

mod atomic_write;
mod batches;
pub mod columns;
mod cpu;
mod display_text;
mod error;
pub mod formats;
mod histogram;
mod interval;
pub mod kernel_names;
mod manifest;
mod memory_level;
pub mod mpi;
pub mod mpi_log;
mod nanos;
mod parquet_file;
mod phase;
mod phase_rows;
pub mod rank_file;
mod read;
pub mod results;
mod source;
mod source_pattern;
mod table;
mod trace;
pub mod warning;
pub mod whole_file;
mod write;

pub use atomic_write::{AtomicFile, atomic_write, drafted, os_error, remove_drafts, write_output};
pub use batches::{Batches, Kind as TableKind};
pub use cpu::{Cpu, format_cpu_list, parse_cpu_list};
pub use display_text::{cut, json_for_terminals, lines, one_line};
pub use error::Error;
pub use histogram::{Bucket, Histogram, HistogramKind};
pub use interval::{Interval, Intervals, Taken, Thread};
pub use manifest::{
    ClockFacts, CpuFacts, FORMAT_VERSION, LoopFacts, Manifest, Method, PROBE_THREAD, ProgramCost,
    RecorderEffect, SourcesFacts, State, Throttling,
};
pub use memory_level::{MemoryLevel, MemoryName};
pub use nanos::{Nanos, NanosError, format_ns};
pub use phase::{MpiFacts, Phase, RankFacts};
pub use phase_rows::{add_phases, read_phases};
pub use read::{Recording, is_lack_of_memory, silence_decoders};
pub use source::{Level as SourceLevel, Source, SourceKind};
pub use source_pattern::SourcePattern;
pub use trace::{Detour, Quanta, Quantum, Span, Trace};
pub use warning::Warning;
pub use write::{Progress, Writer, check_folder_of, check_new, create_folder};
