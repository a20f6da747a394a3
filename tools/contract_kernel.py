"""The parts of generated files about the kernel's names and the metric container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_text import C, camel, hexadecimal, rust_checks, rust_doc, rust_struct, shout, values

from contract import container, kernel
from contract.rows import Number

if TYPE_CHECKING:
    from contract.rows import Struct

PUBLIC = C({"u32": "unsigned int", "u64": "unsigned long long", "char": "char"}, check="QUELL_ASSERT({})")
KINDS = [Number(kind.name, note=kind.note) for kind in kernel.KINDS]


def kinds_in_rust() -> list[str]:
    """`Source` and `SourceKind`."""
    words = ", ".join(f"`{kind.name}{':' + kind.own if kind.own else ''}`" for kind in kernel.KINDS)
    variants, kinds, named, new, own = [], [], [], [], []
    for kind in kernel.KINDS:
        name = camel(kind.name)
        variants += [*rust_doc(kind.doc, "    "), f"    {name}{'(Arc<str>)' if kind.own else ''},"]
        kinds += [f"    /// [`Source::{name}`].", f"    {name},"]
        named += [f"Self::{name}"] * bool(kind.own)
        value = "Some(name)) => Self::{}(name.into())" if kind.own else "None) => Self::{}"
        new.append(f"            (SourceKind::{name}, {value.format(name)},")
        own.append(f"            Self::{name}{'(_)' if kind.own else ''} => SourceKind::{name},")
    names = [camel(kind.name) for kind in kernel.KINDS]
    levels = [
        (level.name, ", ".join(f"`{kind.name}`" for kind in kernel.KINDS if kind.level == level.name))
        for level in kernel.LEVELS
    ]
    return [
        "//! The kinds of noise sources.",
        "",
        "use std::sync::Arc;",
        "",
        *rust_doc(
            f"What took a CPU from a program, as the kernel names it. As text: {words}. "
            "A name may hold any character: it comes from processes and drivers."
        ),
        "#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]",
        "pub enum Source {",
        *variants,
        "}",
        "",
        "/// The kinds of source, in the order in which one interrupts another: an NMI interrupts all that follow.",
        "#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]",
        "pub enum SourceKind {",
        *kinds,
        "}",
        "",
        "/// At which level a kind happens: each interrupts those that follow.",
        "#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]",
        "pub enum Level {",
        *(line for level, doc in levels for line in (f"    /// {doc}.", f"    {camel(level)},")),
        "}",
        "",
        "impl SourceKind {",
        "    /// All of them, in their order.",
        f"    pub const ALL: [Self; {len(names)}] = [{', '.join(f'Self::{name}' for name in names)}];",
        "",
        *rust_doc("The word for it: " + ", ".join(f"`{kind.name}`" for kind in kernel.KINDS) + ".", "    "),
        "    pub fn name(self) -> &'static str {",
        "        match self {",
        *(f'            Self::{camel(kind.name)} => "{kind.name}",' for kind in kernel.KINDS),
        "        }",
        "    }",
        "",
        "    /// At which level it happens. What a task's own work causes is at the task's.",
        "    pub fn level(self) -> Level {",
        "        match self {",
        *(
            f"            {' | '.join(f'Self::{camel(kind.name)}' for kind in kernel.KINDS if kind.level == level)} "
            f"=> Level::{camel(level)},"
            for level, _ in levels
        ),
        "        }",
        "    }",
        "",
        "    /// Whether a source of this kind has a name of its own.",
        "    pub fn has_names(self) -> bool {",
        f"        matches!(self, {' | '.join(named)})",
        "    }",
        "}",
        "",
        "impl Source {",
        "    /// The source of a kind; `None` where its own name is missing, or the kind has none.",
        "    pub fn new(kind: SourceKind, name: Option<&str>) -> Option<Self> {",
        "        Some(match (kind, name) {",
        *new,
        "            _ => return None,",
        "        })",
        "    }",
        "",
        "    /// Which kind it is.",
        "    pub fn kind(&self) -> SourceKind {",
        "        match self {",
        *own,
        "        }",
        "    }",
        "",
        "    /// Its own name, for the kinds that have one.",
        "    pub fn name(&self) -> Option<&str> {",
        "        match self {",
        f"            {' | '.join(f'{variant}(name)' for variant in named)} => Some(name),",
        "            _ => None,",
        "        }",
        "    }",
        "}",
    ]


def kernel_names() -> list[str]:
    """Names of IPIs and softirqs."""
    softirqs = ", ".join(f'"{name}"' for name in kernel.SOFTIRQS)
    return [
        "//! The kernel's names for softirqs, and ours for other CPUs' interrupts.",
        "",
        "/// The softirqs in the order of their vectors (include/linux/interrupt.h).",
        f"pub const SOFTIRQS: [&str; {len(kernel.SOFTIRQS)}] = [{softirqs}];",
        "",
        "/// A kind of interrupt from another CPU.",
        "#[derive(Clone, Copy, Debug, PartialEq, Eq)]",
        "pub struct Ipi {",
        "    /// The name of its [`Source::Ipi`](crate::Source::Ipi).",
        "    pub name: &'static str,",
        "    /// Its tracepoints without `_entry` and `_exit` (arch/x86/include/asm/trace/irq_vectors.h).",
        "    pub tracepoint: &'static str,",
        "}",
        "",
        "/// All kinds, by the numbers that the recorder's programs have for them.",
        f"pub const IPIS: [Ipi; {len(kernel.IPIS)}] = [",
        *(f'    Ipi {{ name: "{ipi.name}", tracepoint: "{ipi.tracepoint}" }},' for ipi in kernel.IPIS),
        "];",
    ]


def hooks_in_rust() -> list[str]:
    """What is missing from the data without a hook."""
    return [
        "//! What a reader must know of a hook that is not there.",
        "",
        "/// The hook's name, and what is missed without it.",
        f"pub(crate) const MISSED: [(&str, &str); {len(kernel.HOOKS)}] = [",
        *(f'    ("{hook.name}", "{hook.missed}"),' for hook in kernel.HOOKS),
        "];",
    ]


def names_for_bpf() -> list[str]:
    """Numbers of IPIs, and the recorder's records."""
    return [
        "/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */",
        "#ifndef QUELL_NAMES_H",
        "#define QUELL_NAMES_H",
        "",
        "/* A kind of record beyond those of quell_metrics.h. */",
        f"#define RECORD_THREAD_END {kernel.RECORD_THREAD_END}",
        "",
        *PUBLIC.enumeration("ipi", "IPI_", (Number(ipi.name) for ipi in kernel.IPIS)),
        "",
        "/* DO(tracepoint, number) for each. */",
        "#define EACH_IPI(DO) \\",
        " \\\n".join(f"\tDO({ipi.tracepoint}, IPI_{shout(ipi.name)})" for ipi in kernel.IPIS),
        "",
        "#endif",
    ]


def container_in_c() -> list[str]:
    """Kinds, levels, slot and header."""
    name = container.MAGIC.to_bytes(5, "little").decode()
    return [
        f'#define QUELL_METRICS_MAGIC {container.MAGIC:#x}ULL /* "{name}" */',
        f"#define QUELL_METRICS_VERSION {container.VERSION}",
        "",
        *PUBLIC.enumeration("quell_kind", "QUELL_", KINDS, kernel.KINDS_DOC, "QUELL_KINDS"),
        "",
        *PUBLIC.enumeration("quell_level", "QUELL_LEVEL_", kernel.LEVELS, kernel.LEVELS_DOC, "QUELL_LEVELS"),
        "",
        *PUBLIC.struct(container.SLOT),
        "",
        *PUBLIC.struct(container.HEADER),
    ]


def container_names() -> list[str]:
    """How the container is found, and which limits a valid one has."""
    return [
        "/* The variable with the name of quell's socket, and the name without it. */",
        f'#define QUELL_METRICS_VARIABLE "{container.VARIABLE}"',
        f'#define QUELL_METRICS_COMMON_NAME "{container.COMMON_NAME}"',
        "/* A container of more slots than this is taken for a broken one. */",
        f"#define QUELL_METRICS_MOST_SLOTS (1u << {container.MOST_SLOTS.bit_length() - 1})",
    ]


def container_checks() -> list[str]:
    """Checks that the reader's compiler has this layout."""
    counts = f"QUELL_KINDS == {len(kernel.KINDS)} && QUELL_LEVELS == {len(kernel.LEVELS)}"
    return [*PUBLIC.checks(container.SLOT), *PUBLIC.checks(container.HEADER), f"QUELL_ASSERT({counts});"]


def reads_of_kinds() -> list[str]:
    """A read for each kind, so that a constant mask compiles to only the kinds in it."""
    lines = []
    for kind in kernel.KINDS:
        name = f"QUELL_{shout(kind.name)}"
        lines += [f"if (mask & QUELL_ONLY({name}))", f"\t*out++ = QUELL_GET(slot->ns[{name}]);"]
    return lines


def container_in_rust() -> list[str]:
    """The header, and checks of the types that come from the programs' object."""
    return [
        "//! The metric container's numbers, and that the programs and this crate lay it out alike.",
        "",
        "use std::mem::{offset_of, size_of};",
        "",
        "use crate::bpf::types;",
        "",
        f"pub(crate) const MAGIC: u64 = {hexadecimal(container.MAGIC)};",
        f"pub(crate) const VERSION: u32 = {container.VERSION};",
        f"pub(crate) const LEVELS: usize = {len(kernel.LEVELS)};",
        f'pub(crate) const VARIABLE: &str = "{container.VARIABLE}";',
        f'pub(crate) const COMMON_NAME: &str = "{container.COMMON_NAME}";',
        "/// The kind of a record of a thread's end.",
        f"pub(crate) const RECORD_THREAD_END: u32 = {kernel.RECORD_THREAD_END};",
        "",
        *rust_struct(container.HEADER, "Header"),
        "",
        *rust_checks(container.SLOT, "types::quell_slot"),
    ]


def container_in_python() -> list[str]:
    """Numbers, and the `struct` formats of header and slot."""
    levels, *rest = groups(container.SLOT, until=container.NOTES)
    names = [field.name for field in container.SLOT.fields]
    first = len(kernel.LEVELS)
    ns = first + names.index("ns") - 1
    count, end = ns + len(kernel.KINDS), ns + 2 * len(kernel.KINDS)
    places = container.SLOT.places()
    return [
        f'MAGIC = 0x{container.MAGIC:X}  # "{container.MAGIC.to_bytes(5, "little").decode()}"',
        f"VERSION = {container.VERSION}",
        f"SLOT_SIZE = {container.SLOT.size()}",
        f"MOST_SLOTS = 1 << {container.MOST_SLOTS.bit_length() - 1}",
        f'VARIABLE = "{container.VARIABLE}"',
        f'DEFAULT_NAME = "{container.COMMON_NAME}"',
        "",
        f'_HEADER = struct.Struct("={"".join(groups(container.HEADER))}")',
        f'_LEVELS = struct.Struct("={levels}")',
        "# From the levels to the counts; what follows is the kernel side's own.",
        f'_SLOT = struct.Struct("={"".join([levels, *rest])}")',
        "# Where in what that unpacks the thread's own fields are, the times and the counts.",
        f"_THREAD, _NS, _COUNT = slice({first}, {ns}), slice({ns}, {count}), slice({count}, {end})",
        f"_TID_WORD = {places['tid'][0] // 4}",
    ]


def container_in_tests() -> list[str]:
    """For the stand-in of the container: its header, and offsets of a slot's fields."""
    places = container.SLOT.places()
    task = next(value for name, value, _ in values(kernel.LEVELS) if name == "task")
    return [
        f"MAGIC, VERSION = 0x{container.MAGIC:X}, {container.VERSION}",
        f'HEADER = struct.Struct("={"".join(groups(container.HEADER))}")',
        f"SLOT_SIZE = {container.SLOT.size()}",
        "TID, ON_CPU, NS, COUNT = " + ", ".join(str(places[name][0]) for name in ("tid", "on_cpu_ns", "ns", "count")),
        f"TASK_LEVEL = {task}",
    ]


def groups(struct: Struct, until: str = "") -> list[str]:
    """The format of a struct for Python's `struct`: fields of one type together, arrays apart, up to a field."""
    letters = {"u32": "I", "u64": "Q"}
    found: list[str] = []
    run, length = "", 0
    at = 0
    for field in struct.fields:
        if field.name == until:
            break
        if struct.places()[field.name][0] != at:
            raise ValueError(f"{struct.name}.{field.name} has a gap before it, which Python's `=` has not")
        at += struct.each(field)[0] * field.length
        letter = letters[field.type]
        if field.length > 1 or letter != run:
            found += [f"{length if length > 1 else ''}{run}"] * bool(length)
            run, length = letter, 0
        length += field.length
        if field.length > 1:
            found.append(f"{length}{run}")
            run, length = "", 0
    return found + [f"{length if length > 1 else ''}{run}"] * bool(length)


def kinds_in_python() -> list[str]:
    """The members of `Kind`."""
    return [f"{shout(name)} = {value}" for name, value, _ in values(KINDS)]
