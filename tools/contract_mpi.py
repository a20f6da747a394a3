"""The parts of generated files about the files of programs under MPI, and about MPI's calls."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from contract_text import STDINT, C, camel, rust_doc, rust_numbers, rust_struct, shout

from contract import kernel, mpi_calls, trace_log
from contract.rows import Number

if TYPE_CHECKING:
    from collections.abc import Iterable

SPDX = "/* SPDX-License-Identifier: MIT OR Apache-2.0 */"
LOGS = C({**STDINT, "char": "char"})
UNUSED = '#![allow(dead_code, reason = "the tables name more than is of use here")]'


def trace_log_in_c() -> list[str]:
    """The layout of a tracer's log."""
    kinds, log = len(kernel.KINDS), trace_log
    operations = (Number(one.name, note=one.doc) for one in log.OPERATIONS)
    return [
        f'#define QUELL_TRACE_MAGIC "{log.MAGIC}"',
        f"#define QUELL_TRACE_VERSION {log.VERSION}",
        f"#define QUELL_TRACE_HEAD {log.HEAD_BYTES}",
        f"#define QUELL_TRACE_STAGE {log.STAGE_BYTES}",
        "",
        "/* Variables: the logs' folder, how many bytes each may have, the program that records a host's kernel. */",
        f'#define QUELL_TRACE_FOLDER_VARIABLE "{log.FOLDER}"',
        f'#define QUELL_TRACE_LIMIT_VARIABLE "{log.LIMIT}"',
        f'#define QUELL_TRACE_NODE_VARIABLE "{log.NODE}"',
        "",
        *LOGS.enumeration("quell_trace_state", "QUELL_TRACE_", log.STATES),
        "",
        f"/* Noise sources: 0 to {kinds - 1} are the kinds of quell_metrics.h, this is what an injector burned. */",
        f"#define QUELL_TRACE_INJECTED {kinds}",
        f"#define QUELL_TRACE_SOURCES {kinds + 1}",
        "",
        *LOGS.struct(log.CLOCK),
        "",
        *LOGS.struct(log.HEAD),
        "",
        *LOGS.enumeration("quell_trace_kind", "QUELL_TRACE_", log.RECORDS, log.RECORDS_DOC),
        "",
        *LOGS.enumeration("quell_trace_operation", "QUELL_", operations),
        "",
        f"#define QUELL_TRACE_UNKNOWN {log.UNKNOWN:#x}u",
        "/* MPI_COMM_WORLD and MPI_COMM_SELF have these numbers and need no definition. */",
        f"#define QUELL_TRACE_WORLD {log.WORLD}",
        f"#define QUELL_TRACE_SELF {log.SELF}",
        "/* Tags of messages within neighbour collectives begin here; users' are below. */",
        f"#define QUELL_TRACE_NEIGHBOR_TAG {log.NEIGHBOR_TAG:#x}u",
        "",
        *LOGS.struct(log.RECORD),
        "",
        *(line for struct in (log.CLOCK, log.HEAD, log.RECORD) for line in LOGS.checks(struct)),
    ]


def operations_in_rust() -> list[str]:
    """`Operation`."""
    names = [camel(one.name) for one in trace_log.OPERATIONS]
    each = zip(names, trace_log.OPERATIONS)
    return [
        "//! Collective operations.",
        "",
        "/// A collective operation.",
        "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]",
        '#[allow(missing_docs, reason = "MPI\'s own names")]',
        "pub enum Operation {",
        *(line for name, one in each for line in [*rust_doc(one.doc, "    "), f"    {name},"]),
        "}",
        "",
        "impl Operation {",
        "    /// All of them, by their numbers in the tracer's logs.",
        f"    pub const ALL: [Self; {len(names)}] = [{', '.join(f'Self::{name}' for name in names)}];",
        "}",
    ]


def trace_log_in_rust() -> list[str]:
    """The layout of a tracer's log."""
    log = trace_log
    fields = [
        f"    pub(crate) const {shout(name)}: Field = Field {{ at: {at}, bytes: {size} }};"
        for name, (at, size) in log.HEAD.places().items()
    ]
    return [
        "//! The layout of `mpi/trace_log.h`.",
        "",
        UNUSED,
        "",
        "use std::mem::{offset_of, size_of};",
        "",
        f'pub(crate) const MAGIC: &[u8; {len(log.MAGIC)}] = b"{log.MAGIC}";',
        f"pub(crate) const VERSION: u32 = {log.VERSION};",
        "/// Bytes of the head.",
        f"pub(crate) const HEAD: usize = {log.HEAD_BYTES};",
        "/// Bytes of the stage behind the head, where records wait until they are appended to the file.",
        f"pub(crate) const STAGE: usize = {log.STAGE_BYTES};",
        "/// Bytes of a record before its words.",
        f"pub(crate) const RECORD: usize = {log.RECORD.size()};",
        "/// Bytes of a measurement of clocks.",
        f"pub(crate) const CLOCK: usize = {log.CLOCK.size()};",
        "/// The source that comes after the kernel's kinds.",
        f"pub(crate) const INJECTED: usize = {len(kernel.KINDS)};",
        f"pub(crate) const SOURCES: usize = {len(kernel.KINDS) + 1};",
        f"pub(crate) const WORLD: u32 = {log.WORLD};",
        f"pub(crate) const SELF: u32 = {log.SELF};",
        "",
        "/// Variables of the traced program.",
        "pub mod variable {",
        "    /// The folder of the logs.",
        f'    pub const FOLDER: &str = "{log.FOLDER}";',
        "    /// How many bytes each may have.",
        f'    pub const LIMIT: &str = "{log.LIMIT}";',
        "    /// The program that records a host's kernel.",
        f'    pub const NODE: &str = "{log.NODE}";',
        "}",
        "",
        "/// Whether a log is whole.",
        "pub(crate) mod state {",
        *rust_numbers(log.STATES, "u32"),
        "}",
        "",
        "/// The kinds of records.",
        "pub(crate) mod kind {",
        *rust_numbers(log.RECORDS, "u8"),
        "}",
        "",
        "/// Where in the head a field is, and how long it is.",
        "#[derive(Clone, Copy, Debug)]",
        "pub(crate) struct Field {",
        "    pub(crate) at: usize,",
        "    pub(crate) bytes: usize,",
        "}",
        "",
        "/// The fields of the head.",
        "pub(crate) mod field {",
        "    use super::Field;",
        "",
        *fields,
        "}",
        "",
        *rust_struct(log.CLOCK, "Clock", derive="Clone, Copy, Debug"),
        "",
        *rust_struct(log.HEAD, "Head"),
        "",
        *rust_struct(log.RECORD, "Record"),
        "const _: () = assert!(size_of::<Head>() <= HEAD);",
    ]


def rank_file_in_c() -> list[str]:
    """Blocks of a rank's file, and the columns of phases."""
    log = trace_log
    return [
        f"#define QUELL_RANK_FILE_VERSION {log.RANK_FILE_VERSION}",
        f'#define QUELL_RANK_FILE_FIRST "{log.RANK_FILE_FIRST}"',
        f'#define QUELL_BLOCK_FACT "{log.BLOCK_FACT}"',
        f'#define QUELL_BLOCK_ROWS "{log.BLOCK_ROWS}"',
        "",
        *LOGS.struct(log.BLOCK),
        "",
        *LOGS.checks(log.BLOCK),
        "",
        "/* The columns of a benchmark's phases, and their places in a row. */",
        f'#define QUELL_PHASE_COLUMNS "{" ".join(log.PHASE_COLUMNS)}"',
        *LOGS.enumeration("quell_phase_column", "QUELL_PHASE_", map(Number, log.PHASE_COLUMNS)),
    ]


def rank_file_in_rust() -> list[str]:
    """The same in Rust."""
    log = trace_log
    return [
        "//! The layout of `mpi/rank_file.h`.",
        "",
        "use std::mem::{offset_of, size_of};",
        "",
        "/// What a file starts with: the kind of its first block, and the version's line.",
        f'pub(crate) const FIRST: &str = "{log.RANK_FILE_FIRST}";',
        f"pub(crate) const VERSION: u32 = {log.RANK_FILE_VERSION};",
        f'pub(crate) const FACT: &[u8; 4] = b"{log.BLOCK_FACT}";',
        f'pub(crate) const ROWS: &[u8; 4] = b"{log.BLOCK_ROWS}";',
        "",
        "/// The columns of a benchmark's phases.",
        "pub mod phase {",
        *(
            line
            for name in log.PHASE_COLUMNS
            for line in (f"    /// `{name}`.", f'    pub const {shout(name)}: &str = "{name}";')
        ),
        "}",
        "",
        *rust_struct(log.BLOCK, "Block"),
    ]


def traced_calls() -> list[str]:
    """The calls that the tracer sees, as macros that are expanded wherever code is generated for each."""
    lines: list[str] = []
    traced = [one for one in mpi_calls.CALLS if one.traced]
    for since in sorted({one.since for one in traced}):
        rows = [one for one in traced if one.since == since]
        made = [line for one in rows for line in macros("LARGE" if one.large else "CALL", one.names)]
        lines += ["", f"#if MPI_VERSION >= {since}", *made, "#endif"] if since else made
    return [
        SPDX,
        "/* CALL: an MPI call that is traced. LARGE: MPI 4 has it once more, for large counts. HELPER: one that the",
        " * tracer itself needs. Included wherever something is made of each. */",
        "",
        "#if MPI_VERSION >= 4",
        "#define LARGE(name) CALL(name) CALL(name##_c)",
        "#else",
        "#define LARGE(name) CALL(name)",
        "#endif",
        "",
        *lines,
        "",
        *macros("HELPER", mpi_calls.HELPERS),
        "",
        "#undef LARGE",
    ]


def macros(macro: str, names: str) -> Iterable[str]:
    """`MACRO(NAME)` for each name."""
    return textwrap.wrap(" ".join(f"{macro}({name})" for name in names.split()), 120, break_on_hyphens=False)


def burned_calls() -> list[str]:
    """The calls at which noise is burned, for the build of `replay`."""
    letters = {"": "-", "barrier": "b", "collective": "c", "pcontrol": "p"}
    return [
        "# MPI calls at which a rank's noise is burned: those that exchange messages, wait, or belong to all.",
        "# A letter before the name: b barrier, c a blocking collective that no rank leaves before all have entered,",
        "# p MPI_Pcontrol, - any other. _c behind the name: since MPI 4 there is one more of that name and _c, for",
        "# large counts, with as many arguments.",
        *(
            f"{letters[one.ends]} {name}{' _c' if one.large else ''}"
            for one in mpi_calls.CALLS
            if one.burned
            for name in one.names.split()
        ),
    ]
