"""What the verbs give: documents as the command prints them, with the fields that one reaches for as attributes."""

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
    """A document, bit for bit what the command prints with `--json`.

    Attributes:
        json: Its text.
        document: The same, read: a dict, typed as its schema says.
    """

    def __init__(self, text: str) -> None:
        """Of the text that the command would print."""
        self.json = text
        self.document: D = json.loads(text)

    @property
    def _fields(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.document)

    @property
    def schema(self) -> str:
        """The name and version of its form, such as `quell.predict/2`."""
        return cast("str", self._fields["schema"])

    @property
    def warnings(self) -> list[str]:
        """What limits it, in sentences; the document's own `warnings` are codes with facts."""
        return sentences(self._fields.get("warnings", []))

    @property
    def rows(self) -> Sequence[Any]:
        """The records that its table is made of."""
        return [self._fields]

    @property
    def table(self) -> Table:
        """Its rows as a table for Arrow; fields that hold lists or records stay in the document."""
        return Table.of_rows([_flat(row) for row in self.rows])

    @property
    def _title(self) -> str:
        return self.schema

    def __repr__(self) -> str:
        """What it is, and of how many rows."""
        return f"<quell.{type(self).__name__}: {self._title}; {len(self.rows):,} rows>"

    def _repr_html_(self) -> str:
        limits = "".join(f"<li>{html.escape(one)}</li>" for one in self.warnings)
        said = f"<ul>{limits}</ul>" if limits else ""
        return f"<p><b>{html.escape(self._title)}</b></p>{self.table._repr_html_()}{said}"


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A record without records in it; an interval of two ends becomes two columns."""
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
        """The curve, by rising number of ranks."""
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
        """Up to so many ranks the trace can speak; what lies beyond is extrapolated."""
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
    """A curve, and what it would be with the noise otherwise; both draw alike.

    Attributes:
        before: The noise as it is.
        after: As it would be.
    """

    def __init__(self, before: Prediction, after: Prediction) -> None:
        """Of two predictions of the same scales and seed."""
        self.before = before
        self.after = after

    @property
    def changes(self) -> list[str]:
        """What is otherwise, in words."""
        return list(self.after.document.get("what_if") or [])

    @property
    def table(self) -> Table:
        """Scale by scale: both slowdowns in percent, and how many percentage points are gained."""
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
        """What is otherwise."""
        return f"<quell.WhatIf: {'; '.join(self.changes)}>"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape('; '.join(self.changes))}</b></p>{self.table._repr_html_()}"


class Simulation(Document["documents.Simulation"]):
    """A played program: when each rank is done."""

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
        """What the noise costs, with `baseline`."""
        baseline = self.document["baseline"]
        return None if baseline is None else baseline["slowdown_percent"]

    @property
    def culprits(self) -> documents.CulpritFacts | None:
        """Which noise made it late, with `culprits`."""
        return self.document["culprits"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row a rank; the whole in one row where times of ranks are not kept."""
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
    """Two recordings side by side."""

    @property
    def changes(self) -> dict[str, Any]:
        """Each figure of all CPUs together, with its change and whether that is more than chance."""
        return cast("dict[str, Any]", self.document["changes"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row a figure."""
        return [{"figure": name, **change} for name, change in self.changes.items() if isinstance(change, dict)]

    @property
    def _title(self) -> str:
        return f"{self.document['a']['name']} and {self.document['b']['name']}"


class Shown(Document["documents.Show"]):
    """A recording at a glance."""

    @property
    def cpus(self) -> list[documents.CpuOverview]:
        """A record a CPU."""
        return self.document["cpus"]

    @property
    def sources(self) -> list[documents.SourceRow]:
        """A record a source, that which took most first; empty where sources are not known."""
        return self.document.get("sources") or []

    @property
    def rows(self) -> Sequence[Any]:
        """Classes, tasks, sources or CPUs, whichever of them was asked for."""
        for name in ("classes", "tasks"):
            if self._fields.get(name):
                return cast("list[Any]", self._fields[name])
        return self.cpus or self.document["quanta"]

    @property
    def _title(self) -> str:
        return f"{self.document['name']} ({self.document.get('host') or 'unknown host'})"


class Hosts(Document["documents.Hosts"]):
    """The recordings of many hosts."""

    @property
    def rows(self) -> list[documents.HostRow]:
        """A row a host."""
        return self.document["hosts"]

    @property
    def fleet(self) -> documents.Fleet | None:
        """Which nodes are unlike the rest; None of too few."""
        return self.document.get("fleet")

    @property
    def _title(self) -> str:
        return self.document["folder"]


class Tracked(Document["documents.Tracked"]):
    """What noise did to an MPI run."""

    @property
    def ranks(self) -> list[documents.TrackedRank]:
        """A record a rank."""
        return self.document["ranks"]

    @property
    def rows(self) -> list[documents.TrackedRank]:
        """The ranks."""
        return self.ranks

    @property
    def runtime_ns(self) -> int:
        """How long the run took, in nanoseconds."""
        return self.document["runtime_ns"]

    @property
    def compensated_runtime_ns(self) -> int:
        """How long it would have taken without noise."""
        return self.document["compensated_runtime_ns"]

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the archive, in sentences."""
        return sentences(self.document["findings"]["warnings"])

    @property
    def _title(self) -> str:
        quiet = self.compensated_runtime_ns / 1e9
        return f"{len(self.ranks):,} ranks, {self.runtime_ns / 1e9:.6g} s, without noise {quiet:.6g} s"


def shown(text: str) -> Shown | Hosts:
    """What `show` gave: a recording, or many hosts."""
    return Hosts(text) if '"quell.show-hosts/' in text[:200] else Shown(text)
