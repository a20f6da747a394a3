"""A slowdown as it was measured and as it was predicted, and the page that holds all of them."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from report import HERE

# The titles of the page's tables.
FIGURES, WHERE, AGAIN_TITLE = "All figures", "Where it was measured", "One program, again and again"


@dataclass(frozen=True)
class Interval:
    """A figure in percent, with half the width of its 95 % interval."""

    value: float
    half: float

    def __str__(self) -> str:
        """As a cell."""
        return f"{self.value:.2f} ± {self.half:.2f}"


@dataclass(frozen=True)
class Cell:
    """A program under a noise."""

    program: str
    noise: str
    level: int
    injected: float
    phase_ns: float
    pairs: int
    measured: Interval
    predicted: Interval | None
    simulated: Interval | None
    # Its line of the page, where that is kept.
    line: list[str] | None = None

    def off(self, other: Interval) -> tuple[float, float]:
        """How far the measurement is from another figure, in points and in half-widths."""
        points = self.measured.value - other.value
        return points, abs(points) / math.hypot(self.measured.half, other.half)


def mean(values: list[float]) -> Interval:
    """The mean of seeds, with the interval of a mean."""
    # Student's t for 4 degrees of freedom.
    half = 2.776 * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(statistics.fmean(values), half)


def tables(title: str) -> list[list[str]]:
    """The lines of the tables under a title of the page as it is."""
    path = HERE / "reality.md"
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    part = page.partition(f"## {title}\n")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part if line.startswith("|")]
    return [row for row in rows[1:] if not row[0].startswith("---")]


def read_interval(cell: str) -> Interval | None:
    """A figure of the page as it is."""
    value, _, half = cell.partition(" ± ")
    return Interval(float(value), float(half)) if half else None


def read_cells() -> list[Cell]:
    """The figures of the page as it is."""
    found = []
    for line in tables(FIGURES):
        program, noise, injected, phase, pairs, measured, predicted, _, _, simulated, *_ = line
        kind, _, level = noise.removesuffix(" %").rpartition(" ")
        value = read_interval(measured)
        if value is None:
            raise ValueError(f"{program}, {noise}: {measured} is no figure with its interval")
        both = read_interval(predicted), read_interval(simulated)
        phase_ns = 1000 * float(phase.replace(",", ""))
        found.append(Cell(program, kind, int(level), float(injected), phase_ns, int(pairs), value, *both, line))
    return found
