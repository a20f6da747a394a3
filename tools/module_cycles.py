"""Which modules of a crate import each other in a circle, from the paths in its source."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Module = tuple[str, ...]
# `crate::a::b`, `super::a`, and `crate::{a, b::c}` up to the end of its `use`.
PATH = re.compile(r"\b((?:crate|super|self)(?:::\w+)*)(?:::\{([^;]*)\}(?=;))?")
NOT_SHIPPED = ("tests", "fixture")


def modules(source: Path) -> dict[Module, str]:
    """The text of each module below a crate's `src`, without tests and comments."""
    found = {}
    for file in source.rglob("*.rs"):
        *folders, name = file.relative_to(source).with_suffix("").parts
        module = tuple(folders) if name in {"mod", "lib", "main"} else (*folders, name)
        if not set(module) & set(NOT_SHIPPED):
            text, _, _ = file.read_text(encoding="utf-8").partition("#[cfg(test)]\nmod tests")
            found[module] = re.sub(r"//.*", "", text)
    return found


def within_braces(text: str) -> Iterator[list[str]]:
    """The first names of each path of `a, b::c, d::{e, f}`."""
    depth, start = 0, 0
    for at, letter in enumerate(f"{text},"):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield [name for name in re.split(r"::", text[start:at].partition("{")[0].strip()) if name]
            start = at + 1


def targets(module: Module, text: str) -> Iterator[Module]:
    """The paths that a module's text names, from the crate's root."""
    for match in PATH.finditer(text):
        first, *names = match[1].split("::")
        base = {"crate": (), "super": module[:-1], "self": module}[first]
        while names and names[0] == "super":
            base, names = base[:-1], names[1:]
        for more in within_braces(match[2]) if match[2] else [[]]:
            yield (*base, *names, *more)


def imports(found: dict[Module, str]) -> dict[Module, dict[str, dict[str, str]]]:
    """For each parent module: which of its children imports which other, and one place that does."""
    known = {module[:end] for module in found for end in range(len(module) + 1)}
    between: dict[Module, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for module, text in found.items():
        for path in targets(module, text):
            target = next(path[:end] for end in range(len(path), -1, -1) if path[:end] in known)
            shared = 0
            while shared < min(len(module), len(target)) and module[shared] == target[shared]:
                shared += 1
            if shared < len(module) and shared < len(target):
                place = f"{'::'.join(module)} imports {'::'.join(target)}"
                between[module[:shared]][module[shared]].setdefault(target[shared], place)
    return between


def circle(graph: dict[str, dict[str, str]], start: str) -> list[str]:
    """A shortest path from a child back to itself, as places; empty if there is none."""
    ways = {start: []}
    queue = [start]
    for child in queue:
        for target, place in sorted(graph.get(child, {}).items()):
            if target == start:
                return [*ways[child], place]
            if target not in ways:
                ways[target] = [*ways[child], place]
                queue.append(target)
    return []


def cycles(source: Path) -> list[list[str]]:
    """A shortest circle through each child that is in one, without repetition."""
    found = []
    for _, graph in sorted(imports(modules(source)).items()):
        seen: set[str] = set()
        for child in sorted(graph):
            places = circle(graph, child)
            if places and not seen & set(places):
                found.append(places)
                seen |= set(places)
    return found
