"""Converts Python arguments to command-line arguments, which the command's own parser reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, Union, runtime_checkable

Path = Union[str, "os.PathLike[str]"]
Time = Union[str, int, timedelta]
"""A time: `"1ms"`, a number of nanoseconds, or a timedelta."""
Size = Union[int, str]
"""A number: `65536` or `"64Ki"`."""
Ranks = Union[int, str, Sequence[int]]
"""Numbers of ranks: `"16..64Ki"`, `1024` or `[16, 256]`."""
Names = Union[str, Sequence[str]]
"""Sources: `"tick"`, or several."""
Values = Union[str, Sequence[str], Mapping[str, Union[int, float, str]]]
"""A value for each of some sources: `{"tick": 0.5}` or `["tick=0.5"]`."""
Networks = Union[str, Sequence[str], Mapping[int, Path]]
"""Networks among near ranks: `{64: "node.toml"}` or `"64=node.toml"`."""
Dims = Union[str, Sequence[int]]
"""Sides of a grid: `"8x8x16"` or `(8, 8, 16)`."""


@runtime_checkable
class HasPath(Protocol):
    """An object that was read from a file, and stands for it."""

    @property
    def path(self) -> os.PathLike[str]:
        """Its path."""


Noise = Union[Path, HasPath]
"""A recording, another tool's file, or a model: its path, or what `quell.open` gave."""
Noises = Union[Noise, Sequence[Noise]]


def several(given: Any) -> list[Any]:  # noqa: ANN401 (whatever a caller gives)
    """Wraps a single value in a list."""
    if isinstance(given, (str, bytes, os.PathLike, HasPath)) or not isinstance(given, Iterable):
        return [given]
    return list(given)


def nanoseconds(time: timedelta) -> int:
    """Whole nanoseconds; a timedelta has a resolution of one microsecond."""
    return (time // timedelta(microseconds=1)) * 1000


def _word(kind: str, given: Any) -> str:  # noqa: ANN401 (whatever a caller gives)
    """A value as a command-line argument; `kind` is its name in the help."""
    word: Any = given
    if isinstance(given, HasPath) and not isinstance(given, (str, os.PathLike)):
        word = os.fspath(given.path)
    elif isinstance(given, os.PathLike):
        word = os.fspath(given)
    elif isinstance(given, timedelta):
        word = nanoseconds(given) if kind == "NS" else f"{nanoseconds(given)}ns"
    elif kind == "TIME" and isinstance(given, int):
        word = f"{given}ns"
    elif isinstance(given, float) and kind in {"NS", "SOURCE=FACTOR"}:
        # Not in the form 1e-05.
        word = f"{given:.15f}".rstrip("0").rstrip(".")
    elif kind in {"8x8x16", "LIST"} and not isinstance(given, (str, int)):
        word = ("x" if kind == "8x8x16" else ",").join(map(str, given))
    return str(word)


def words(options: Sequence[tuple[str, str, Any]], positional: Sequence[Any]) -> list[str]:
    """The command line: options with the help's names of their values, then positional arguments.

    Options that are None, False or empty are left out.
    """
    line: list[str] = []
    for name, kind, given in options:
        if given is None or given is False:
            continue
        if given is True:
            line.append(f"--{name}")
        elif isinstance(given, Mapping):
            line += [f"--{name}={source}={_word(kind, value)}" for source, value in given.items()]
        elif kind in {"LIST", "8x8x16"}:
            line.append(f"--{name}={_word(kind, given)}")
        else:
            line += [f"--{name}={_word(kind, one)}" for one in several(given)]
    return [*line, "--", *(_word("FILE", one) for one in positional)]


def named(program: Noise | None, pattern: str | None) -> tuple[Noise | None, str | None]:
    """A schedule's file, or the name of a pattern: an identifier that is not a file is a pattern."""
    if pattern is None and isinstance(program, str) and program.isidentifier() and not os.path.exists(program):  # noqa: PTH110 (a word)
        return None, program
    return program, pattern
