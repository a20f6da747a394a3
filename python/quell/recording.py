"""Recordings, and archives of MPI runs."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quell import verbs
from quell._native import native
from quell._words import HasPath
from quell.table import Table
from quell.what_if import what_if

if TYPE_CHECKING:
    from quell import results
    from quell._words import Noise


class Recording:
    """A recording of one node, or another tool's file read as one.

    Tables are read on first access; their columns are those of the Parquet files.

    Attributes:
        path: Its path.
        manifest: Everything except rows: host, kernel, method, CPUs with their spans, what was lost.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Reads the file or folder at `path`.

        Raises:
            QuellError: If it cannot be read, with the file and the reason.
        """
        self._inner = native().Recording(os.fspath(path))
        self.path = Path(path)
        self.manifest: dict[str, Any] = json.loads(self._inner.manifest)

    @property
    def name(self) -> str:
        """Its name for display."""
        return self.path.stem

    @property
    def host(self) -> str | None:
        """The host that it was recorded on, if that is known."""
        return self.manifest.get("host")

    @property
    def method(self) -> str:
        """The measuring method: `detour`, `fwq`, `ftq`, `memory`, `kernel` or `phases`."""
        method: str = self.manifest["method"]
        return method

    @property
    def cpus(self) -> list[int]:
        """The CPUs that were recorded."""
        return [facts["cpu"] for facts in self.manifest["cpus"]]

    def _table(self, name: str) -> Table:
        return Table(self._inner.table(name))

    @functools.cached_property
    def detours(self) -> Table:
        """Detours that the probe saw: `cpu`, `start_ns`, `duration_ns`, `own` (caused by quell itself)."""
        return self._table("detours")

    @functools.cached_property
    def intervals(self) -> Table:
        """Intervals of the kernel: `cpu`, `start_ns`, `duration_ns`, `net_ns`, `source`, and the cause."""
        return self._table("intervals")

    @functools.cached_property
    def quanta(self) -> Table:
        """Quanta of FWQ, FTQ and loads from memory: `cpu`, `start_ns`, `duration_ns`, `work`."""
        return self._table("quanta")

    @functools.cached_property
    def phases(self) -> Table:
        """Phases of an MPI program, as `quanta` with `rank`, `phase`, `wait_ns`, `total_ns`."""
        return self._table("phases")

    @functools.cached_property
    def threads(self) -> Table:
        """Threads of a recorded command, with what each source took of them."""
        return self._table("threads")

    @property
    def histograms(self) -> Table:
        """Number of detours by CPU and duration, from `from_ns` up to and including `to_ns`, in tenths of a decade.

        A recording with the method `histogram` has its own bins, with `thread` and `kind` (`gap`, `latency` ...).
        """
        return self._table("histograms") if self.method == "histogram" else histograms(self.detours)

    def show(self, **options: Any) -> results.Shown:  # noqa: ANN401 (those of `quell.show`)
        """A summary; see `quell.show`."""
        shown: Any = verbs.show(self, **options)
        return shown  # type: ignore[no-any-return]

    def attribution(self) -> Table:
        """Which sources took the CPUs: one row per source, with its class, count and times."""
        return Table.of_rows(self.show(by="source").document.get("sources") or [])

    def predict(self, **options: Any) -> results.Prediction:  # noqa: ANN401 (those of `quell.predict`)
        """What its noise costs at scale; see `quell.predict`."""
        return verbs.predict(self, **options)

    def what_if(self, **options: Any) -> results.WhatIf:  # noqa: ANN401 (those of `quell.what_if`)
        """What changed noise would cost; see `quell.what_if`."""
        return what_if(self, **options)

    def compare(self, other: Noise, **options: Any) -> results.Comparison:  # noqa: ANN401 (those of `quell.compare`)
        """The differences from another recording; see `quell.compare`."""
        return verbs.compare(self, other, **options)

    def __repr__(self) -> str:
        """Its name, host and CPUs."""
        return (
            f"<quell.Recording: {self.name} of {self.host or 'an unknown host'}, {len(self.cpus)} CPUs, {self.method}>"
        )

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


class Archive:
    """An OTF2 archive of an MPI run: a folder that `quell trace` or another tool made.

    Attributes:
        path: Its path.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Refers to the archive, which `track` reads."""
        self.path = Path(path)

    @property
    def recordings(self) -> list[Recording]:
        """Recordings of the kernel during the run, one per host."""
        folder = self.path if self.path.is_dir() else self.path.parent
        return [Recording(found) for found in sorted(folder.glob("*.quell"))]

    def track(self, **options: Any) -> results.Tracked:  # noqa: ANN401 (those of `quell.track`)
        """The effect of noise on the run; see `quell.track`."""
        return verbs.track(self.path, **options)

    def __repr__(self) -> str:
        """Its path."""
        return f"<quell.Archive: {self.path}>"


def open(path: str | os.PathLike[str]) -> Recording | Archive:  # noqa: A001 (as quell.open)
    """Opens a recording, another tool's file (of a format that `quell convert` reads), or an archive of an MPI run.

    Raises:
        QuellError: If it cannot be read, with the file and the reason.
    """
    place = Path(path)
    if place.suffix == ".otf2" or (place / "traces.otf2").is_file():
        return Archive(place)
    return Recording(place)


def read(path: str | os.PathLike[str]) -> Recording:
    """Reads a recording, or another tool's file as one: netgauge, LLNL's fwq, Minnich's ftq, vpsum, PSNAP, CSV.

    Raises:
        QuellError: If it cannot be read, with the file and the reason.
    """
    return Recording(path)


import_ = read

_BINS_OF_DECADE = 10


def histograms(detours: Table) -> Table:
    """Number of detours by CPU and duration, without quell's own."""
    counts: dict[tuple[int, int], int] = {}
    for cpu, duration, own in zip(detours.column("cpu"), detours.column("duration_ns"), detours.column("own")):
        if not own and duration:
            place = (cpu, bin_of(duration))
            counts[place] = counts.get(place, 0) + 1
    rows = [
        {"cpu": cpu, "from_ns": edge(number), "to_ns": edge(number + 1) - 1, "count": count}
        for (cpu, number), count in sorted(counts.items())
    ]
    return Table.of_rows(rows, ("cpu", "from_ns", "to_ns", "count"))


def edge(number: int) -> int:
    """The lower bound of a bin, in nanoseconds."""
    return round(10 ** (number / _BINS_OF_DECADE))


def bin_of(duration_ns: int) -> int:
    """The bin of a duration."""
    number = len(str(duration_ns)) * _BINS_OF_DECADE
    while edge(number) > duration_ns:
        number -= 1
    return number


__all__ = ["Archive", "HasPath", "Recording", "import_", "open", "read"]
