"""Writes enumerations, structs and compile-time checks of them in C and Rust."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contract.rows import Field, Number, Struct

STDINT = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "i64": "int64_t"}
RUST = {"char": "u8", "text*": "*const c_char", "u64*": "*const u64"}
WIDTH = 120


class C(NamedTuple):
    """The style of a C file: its names for types, its indent, its form of assertions."""

    types: dict[str, str]
    indent: str = "\t"
    check: str = '_Static_assert({}, "contract/ has another layout")'

    def comment(self, text: str) -> list[str]:
        """A comment, unless the text is empty."""
        if not text:
            return []
        return ("/* " + text.replace("\n", "\n * ") + " */").split("\n")

    def enumeration(
        self, tag: str, prefix: str, members: Iterable[Number], doc: str = "", count: str = ""
    ) -> list[str]:
        """An `enum`; if `count` is given, with a last member of that name for the number of members."""
        lines = [*self.comment(doc), f"enum {tag} {{"]
        numbered = list(values(members))
        lines += [
            f"{self.indent}{prefix}{shout(name)} = {value},{f' /* {note} */' if note else ''}"
            for name, value, note in numbered
        ]
        if count:
            lines.append(f"{self.indent}{count} = {len(numbered)},")
        return [*lines, "};"]

    def struct(self, struct: Struct) -> list[str]:
        """A `struct`."""
        lines = [*self.comment(struct.doc), f"struct {struct.name} {{"]
        for field in struct.fields:
            if field.head:
                lines.append(f"{self.indent}/* {field.head} */")
            kind = self.types.get(field.type) or f"struct {field.type}"
            array = f"[{field.symbol or field.length}]" if field.length > 1 else ""
            gap = "" if kind.endswith("*") else " "
            note = f" /* {field.note} */" if field.note else ""
            lines.append(f"{self.indent}{kind}{gap}{field.name}{array};{note}")
        return [*lines, f"}} __attribute__((aligned({struct.aligned})));" if struct.aligned else "};"]

    def checks(self, struct: Struct) -> list[str]:
        """Checks that a compiler lays out a struct as in the table."""
        whole = f"struct {struct.name}"
        facts = [f"sizeof({whole}) == {struct.size()}"]
        facts += [f"offsetof({whole}, {name}) == {at}" for name, (at, _) in struct.places().items()]
        return [f"{self.check.format(fact)};" for fact in facts]


def values(members: Iterable[Number]) -> Iterator[tuple[str, int, str]]:
    """Names with their numbers and notes; each is one more than the one before unless it has a number."""
    following = 0
    for name, value, note in members:
        number = following if value is None else value
        yield name, number, note
        following = number + 1


def shout(name: str) -> str:
    """`send_done` in the spelling of constants."""
    return name.upper()


def camel(name: str) -> str:
    """`reduce_scatter` in Rust's spelling of types and variants."""
    return "".join(part.capitalize() for part in name.split("_"))


def hexadecimal(number: int) -> str:
    """In groups of four digits, as Rust's lints require."""
    digits = f"{number:x}"
    head = len(digits) % 4
    groups = [digits[:head]] * bool(head) + [digits[at : at + 4] for at in range(head, len(digits), 4)]
    return "0x" + "_".join(groups)


def rust_doc(text: str, indent: str = "") -> list[str]:
    """A documentation comment."""
    return textwrap.wrap(text, WIDTH - 10, initial_indent=f"{indent}/// ", subsequent_indent=f"{indent}/// ")


def rust_numbers(members: Iterable[Number], kind: str) -> list[str]:
    """Constants, one for each member."""
    return [f"    pub(crate) const {shout(name)}: {kind} = {value};" for name, value, _ in values(members)]


def rust_type(field: Field) -> str:
    """The type of a field; for a struct, its C name in camel case without the common prefix."""
    plain = RUST.get(field.type) or (field.type if field.type[0] in "ui" and field.type[1:].isdigit() else "")
    one = plain or camel(field.type.removeprefix("quell_trace_"))
    return f"[{one}; {field.length}]" if field.length > 1 else one


def rust_struct(struct: Struct, name: str, *, derive: str = "") -> list[str]:
    """The same struct in Rust, and its checks."""
    lines = [f"/// `struct {struct.name}`.", "#[repr(C)]"]
    if derive:
        lines.append(f"#[derive({derive})]")
    lines.append(f"pub(crate) struct {name} {{")
    lines += [f"    pub(crate) {field.rust or field.name}: {rust_type(field)}," for field in struct.fields]
    return [*lines, "}", "", *rust_checks(struct, name)]


def rust_checks(struct: Struct, name: str) -> list[str]:
    """Checks that the compiler lays it out as in the table."""
    lines = ["const _: () = {", f"    assert!(size_of::<{name}>() == {struct.size()});"]
    places = struct.places()
    for field in struct.fields:
        at, _ = places[field.name]
        lines.append(f"    assert!(offset_of!({name}, {field.rust or field.name}) == {at});")
    return [*lines, "};"]
