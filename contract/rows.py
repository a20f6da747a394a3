"""The types of this folder's tables, and where a C compiler puts the fields of a struct."""

from __future__ import annotations

from typing import NamedTuple

SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i64": 8, "char": 1, "text*": 8, "u64*": 8}


class Kind(NamedTuple):
    """A kind of noise source. Its number is its place in the table."""

    name: str
    """As in `irq:eth0`, without a dash: it is part of the names of columns."""
    level: str
    """The level at which it happens, and at which it is written into the metric container."""
    doc: str
    own: str = ""
    """The source's own name after the kind's: `irq:NAME`. Empty: it has none."""
    note: str = ""
    """The events that a slot of the metric container counts for it."""


class Hook(NamedTuple):
    """A place in the kernel that a program of the recorder is attached to."""

    name: str
    """The last part of the program's section."""
    missed: str
    """What is missing from the data if this kernel does not have it."""


class Ipi(NamedTuple):
    """A kind of interrupt from another CPU."""

    name: str
    tracepoint: str
    """Its pair `TRACEPOINT_entry` and `TRACEPOINT_exit` (arch/x86/include/asm/trace/irq_vectors.h)."""


class Number(NamedTuple):
    """A name for a number: a constant, or a member of an enumeration, whose values count up unless a value is given."""

    name: str
    value: int | None = None
    note: str = ""


class Operation(NamedTuple):
    """A collective operation of MPI. Its number in logs is its place in the table."""

    name: str
    """As in `MPI_Reduce_scatter`, without the prefix."""
    otf2: dict[str, int]
    """Its operations in OTF2 (OTF2_CollectiveOp), with OTF2's numbers. quell writes the lowest."""
    doc: str = ""


class Field(NamedTuple):
    """A field of a struct."""

    name: str
    type: str
    """A key of `SIZES`, or the name of another struct."""
    length: int = 1
    """More than 1: an array."""
    symbol: str = ""
    """The array's length as C has it, where it has a name."""
    note: str = ""
    head: str = ""
    """A line above it, for those that follow too."""
    rust: str = ""
    """Its name in Rust, where C's is a keyword there."""


class Struct(NamedTuple):
    """A struct, laid out as C does it: each field at the next multiple of its own alignment."""

    name: str
    fields: tuple[Field, ...]
    doc: str = ""
    aligned: int = 0
    """The whole struct's alignment, where it is more than its fields'."""
    parts: tuple[Struct, ...] = ()
    """The structs that its fields are of."""

    def part(self, name: str) -> Struct:
        """One of the structs that its fields are of."""
        return next(part for part in self.parts if part.name == name)

    def each(self, field: Field) -> tuple[int, int]:
        """Size and alignment of one element of a field."""
        if field.type in SIZES:
            return SIZES[field.type], SIZES[field.type]
        part = self.part(field.type)
        return part.size(), part.alignment()

    def alignment(self) -> int:
        """What its address is a multiple of."""
        return max(self.aligned, *(self.each(field)[1] for field in self.fields))

    def places(self) -> dict[str, tuple[int, int]]:
        """Offset and bytes of each field."""
        found, at = {}, 0
        for field in self.fields:
            size, alignment = self.each(field)
            at += -at % alignment
            found[field.name] = (at, size * field.length)
            at += size * field.length
        return found

    def size(self) -> int:
        """Bytes, with what fills its end up."""
        end = sum(list(self.places().values())[-1])
        return end + -end % self.alignment()
