"""The parts of generated files about OTF2."""

from __future__ import annotations

from contract_text import STDINT, C, camel, rust_numbers, rust_struct

from contract import otf2, trace_log

OTF2 = C({**STDINT, "text*": "const char *", "u64*": "const uint64_t *"}, indent=" " * 4)


def otf2_in_c() -> list[str]:
    """Events and definitions."""
    return [
        *OTF2.enumeration("quell_otf2_event_kind", "QUELL_OTF2_", otf2.EVENTS),
        "",
        *OTF2.struct(otf2.EVENT),
        "",
        *OTF2.checks(otf2.EVENT),
        "",
        *OTF2.enumeration("quell_otf2_definition_kind", "QUELL_OTF2_", otf2.DEFINITIONS),
        "",
        *OTF2.struct(otf2.DEFINITION),
        "",
        *OTF2.checks(otf2.DEFINITION),
    ]


def otf2_operations() -> list[tuple[str, int, str]]:
    """OTF2's name and number of each operation, and ours; by number."""
    each = ((name, number, one.name) for one in trace_log.OPERATIONS for name, number in one.otf2.items())
    return sorted(each, key=lambda row: row[1])


def otf2_in_rust() -> list[str]:
    """Events and definitions, and OTF2's own numbers."""
    operations = [camel(name) for _, _, name in otf2_operations()]
    return [
        "//! What is shared with C, and the numbers that OTF2's format fixes.",
        "",
        "use std::ffi::c_char;",
        "use std::mem::{offset_of, size_of};",
        "",
        "use quell_recording::mpi::Operation;",
        "",
        "/// `enum quell_otf2_event_kind`.",
        "pub(crate) mod event {",
        *rust_numbers(otf2.EVENTS, "u32"),
        "}",
        "",
        "/// `enum quell_otf2_definition_kind`.",
        "pub(crate) mod definition {",
        *rust_numbers(otf2.DEFINITIONS, "u32"),
        "}",
        "",
        "/// OTF2's own numbers, as far as they are needed.",
        "pub(crate) mod otf2 {",
        *(
            f"    pub(crate) const {name}: {kind} = {'u32::MAX' if number == trace_log.UNKNOWN else number};"
            for name, _, number, kind in otf2.NUMBERS
        ),
        "}",
        "",
        "/// OTF2's numbers of operations, from 0.",
        f"pub(crate) const OPERATIONS: [Operation; {len(operations)}] = [",
        *(f"    Operation::{name}," for name in operations),
        "];",
        "",
        *rust_struct(otf2.EVENT, "RawEvent", derive="Clone, Copy, Debug, Default"),
        "",
        *rust_struct(otf2.DEFINITION, "RawDefinition", derive="Clone, Copy, Debug"),
    ]


def otf2_numbers() -> list[str]:
    """Checks that OTF2's headers have the same numbers as Rust."""
    wrong = '"contract/ has another number"'
    checks = [f"_Static_assert(OTF2_{name} == {number:#x}, {wrong});" for _, name, number, _ in otf2.NUMBERS]
    checks += [
        f"_Static_assert(OTF2_COLLECTIVE_OP_{name} == {number}, {wrong});" for name, number, _ in otf2_operations()
    ]
    return [
        "/* OTF2's own numbers, which the Rust side has to know: its headers have the last word. */",
        "#ifndef QUELL_NUMBERS_H",
        "#define QUELL_NUMBERS_H",
        "",
        "#include <otf2/otf2.h>",
        "",
        *checks,
        "",
        "#endif",
    ]
