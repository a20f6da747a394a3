"""Results of the verbs: the documents that the command prints, with the most important fields as attributes."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from quell._native import sentences
from quell.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quell import documents

D = TypeVar("D")


class Document(Generic[D]):
    """A document, bit for bit as the command prints it with `--json`.

    Attributes:
        json: Its text.
        document: The parsed text: a dict, with the types of its schema.
    """

    def __init__(self, text: str) -> None:
        """A document with the text that the command would print."""
        self.json = text
        self.document: D = json.loads(text)

    @property
    def _fields(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.document)

    @property
    def schema(self) -> str:
        """The name and version of its schema, such as `quell.predict/2`."""
        return cast("str", self._fields["schema"])

    @property
    def warnings(self) -> list[str]:
        """Its limitations, as sentences; the document's own `warnings` are codes with facts."""
        return sentences(self._fields.get("warnings", []))

    @property
    def rows(self) -> Sequence[Any]:
        """The records from which its table is made."""
        return [self._fields]

    @property
    def table(self) -> Table:
        """Its rows as a table for Arrow; fields with lists or records are only in the document."""
        return Table.of_rows([_flat(row) for row in self.rows])

    @property
    def _title(self) -> str:
        return self.schema

    def __repr__(self) -> str:
        """Its kind, and its number of rows."""
        return f"<quell.{type(self).__name__}: {self._title}; {len(self.rows):,} rows>"

    def _repr_html_(self) -> str:
        limits = "".join(f"<li>{html.escape(one)}</li>" for one in self.warnings)
        notes = f"<ul>{limits}</ul>" if limits else ""
        return f"<p><b>{html.escape(self._title)}</b></p>{self.table._repr_html_()}{notes}"


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A record without nested records; an interval with two ends becomes two columns."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "ci95_percent":
            flat["ci95_low_percent"], flat["ci95_high_percent"] = value or (None, None)
        elif not isinstance(value, (list, dict)):
            flat[name] = value
    return flat


class Prediction(Document["documents.Prediction"]):
    """A curve: what the noise costs at each scale."""

    @property
    def points(self) -> list[documents.Point]:
        """The curve, by increasing number of ranks."""
        return self.document["points"]

    @property
    def ranks(self) -> list[int]:
        """The scales."""
        return [point["ranks"] for point in self.points]

    @property
    def slowdown_percent(self) -> list[float]:
        """The slowdown at each scale, in percent."""
        return [point["slowdown_percent"] for point in self.points]

    @property
    def supported_ranks(self) -> int:
        """Up to how many ranks the recording supports the prediction; larger scales are extrapolated."""
        return self.document["supported_ranks"]

    @property
    def rows(self) -> list[documents.Point]:
        """The points."""
        return self.points

    @property
    def _title(self) -> str:
        names = ", ".join(source["name"] for source in self.document["noise"])
        changed = "".join(f"; {words}" for words in self.document.get("what_if") or [])
        return f"{names}: {self.document['op']} every {self.document['quantum_ns'] / 1e6:g} ms{changed}"


class WhatIf:
    """A curve, and what it would be with changed noise; both use the same random draws.

    Attributes:
        before: The prediction with the noise as recorded.
        after: The prediction with the changed noise.
    """

    def __init__(self, before: Prediction, after: Prediction) -> None:
        """Combines two predictions with the same scales and seed."""
        self.before = before
        self.after = after

    @property
    def changes(self) -> list[str]:
        """The changes, as text."""
        return list(self.after.document.get("what_if") or [])

    @property
    def table(self) -> Table:
        """For each scale: both slowdowns in percent, and the gain in percentage points."""
        pairs = zip(self.before.points, self.after.points)
        return Table.of_rows(
            [
                {
                    "ranks": a["ranks"],
                    "slowdown_percent": a["slowdown_percent"],
                    "otherwise_percent": b["slowdown_percent"],
                    "gain_points": a["slowdown_percent"] - b["slowdown_percent"],
                }
                for a, b in pairs
            ]
        )

    def __repr__(self) -> str:
        """The changes."""
        return f"<quell.WhatIf: {'; '.join(self.changes)}>"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape('; '.join(self.changes))}</b></p>{self.table._repr_html_()}"


class Simulation(Document["documents.Simulation"]):
    """A simulated program: when each rank is done."""

    @property
    def max_ns(self) -> int | None:
        """When the last rank is done, in nanoseconds."""
        return self.document["max_ns"]

    @property
    def finish_times_ns(self) -> list[int] | None:
        """When each rank is done, rank 0 first; None above 4,096 ranks unless `all_times` is given."""
        return self.document["finish_times_ns"]

    @property
    def slowdown_percent(self) -> float | None:
        """The cost of the noise, with `baseline`."""
        baseline = self.document["baseline"]
        return None if baseline is None else baseline["slowdown_percent"]

    @property
    def culprits(self) -> documents.CulpritFacts | None:
        """The noise that delayed it, with `culprits`."""
        return self.document["culprits"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per rank; a single row for the whole program if the ranks' times are not kept."""
        times = self.finish_times_ns
        if times is None:
            return [self._fields]
        facts = self.document["noise"]
        struck_ns = facts["injected_noise_ns"] if facts else None
        noise: Sequence[int | None] = struck_ns or [None] * len(times)
        return [
            {"rank": rank, "finish_ns": end, "noise_ns": struck} for rank, (end, struck) in enumerate(zip(times, noise))
        ]

    @property
    def _title(self) -> str:
        return f"{self.document['program']} on {self.document['ranks']:,} ranks: {(self.max_ns or 0) / 1e6:.6g} ms"


class Comparison(Document["documents.Comparison"]):
    """A comparison of two recordings."""

    @property
    def changes(self) -> dict[str, Any]:
        """Each figure of all CPUs together, with its change and whether that is significant."""
        return cast("dict[str, Any]", self.document["changes"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per figure."""
        return [{"figure": name, **change} for name, change in self.changes.items() if isinstance(change, dict)]

    @property
    def _title(self) -> str:
        return f"{self.document['a']['name']} and {self.document['b']['name']}"


class Shown(Document["documents.Show"]):
    """A summary of a recording."""

    def __init__(self, text: str, by: str = "cpu") -> None:
        """A document with the text that the command would print for `--by`."""
        super().__init__(text)
        self._by = by

    @property
    def cpus(self) -> list[documents.CpuOverview]:
        """One record per CPU."""
        return self.document["cpus"]

    @property
    def sources(self) -> list[documents.SourceRow]:
        """One record per source, the one that took most time first; empty if sources are not known."""
        return self.document.get("sources") or []

    @property
    def rows(self) -> Sequence[Any]:
        """Classes, tasks, sources or CPUs, whichever was requested; without CPUs what the recording holds."""
        asked = {"source": "sources", "task": "tasks", "class": "classes"}.get(self._by, "cpus")
        for name in (asked, "cpus", "quanta", "memory", "histograms", "sources"):
            if self._fields.get(name):
                return cast("list[Any]", self._fields[name])
        return []

    @property
    def _title(self) -> str:
        return f"{self.document['name']} ({self.document.get('host') or 'unknown host'})"


class Hosts(Document["documents.Hosts"]):
    """The recordings of many hosts."""

    @property
    def rows(self) -> list[documents.HostRow]:
        """One row per host."""
        return self.document["hosts"]

    @property
    def fleet(self) -> documents.Fleet | None:
        """The nodes that are unlike the rest; None if there are too few nodes."""
        return self.document.get("fleet")

    @property
    def _title(self) -> str:
        return self.document["folder"]


class Tracked(Document["documents.Tracked"]):
    """The effect of noise on an MPI run."""

    @property
    def ranks(self) -> list[documents.TrackedRank]:
        """One record per rank."""
        return self.document["ranks"]

    @property
    def threads(self) -> list[documents.TrackedThread]:
        """One record per thread other than each rank's first."""
        return self.document.get("threads", [])

    @property
    def rows(self) -> list[documents.TrackedRank]:
        """The ranks."""
        return self.ranks

    @property
    def runtime_ns(self) -> int:
        """The run time, in nanoseconds."""
        return self.document["runtime_ns"]

    @property
    def compensated_runtime_ns(self) -> int:
        """The run time without noise, in nanoseconds."""
        return self.document["compensated_runtime_ns"]

    @property
    def warnings(self) -> list[str]:
        """The problems of the archive, as sentences."""
        return sentences(self.document["findings"]["warnings"])

    @property
    def _title(self) -> str:
        quiet = self.compensated_runtime_ns / 1e9
        return f"{len(self.ranks):,} ranks, {self.runtime_ns / 1e9:.6g} s, without noise {quiet:.6g} s"


def shown(text: str, by: str = "cpu") -> Shown | Hosts:
    """The result of `show`: for one recording, or for many hosts."""
    return Hosts(text) if '"quell.show-hosts/' in text[:200] else Shown(text, by)
