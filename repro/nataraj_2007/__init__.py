"""What `quell track` says of a run, as the pages on Nataraj et al. (SC 2007) show it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

# The paper's three, and what quell has in their place; the rest of what was seen is `other`.
SOURCES = ["tick", "irq", "softirq", "task", "other"]


@dataclass(frozen=True)
class Tracked:
    """What one run's analysis says, in ms."""

    local: list[dict[str, float]]
    accumulated: list[dict[str, float]]
    whole_local: list[float]
    whole: list[float]
    orthogonal: float

    @property
    def ratios(self) -> list[float]:
        """Each rank's amplification ratio, sorted."""
        return sorted(all_ / local for all_, local in zip(self.whole, self.whole_local) if local)


def by_source(rank: dict, key: str) -> dict[str, float]:
    """A rank's figure by source, in ms."""
    found = dict.fromkeys(SOURCES, 0.0)
    for source, figures in rank["by_source"].items():
        found[source if source in found else "other"] += figures[key] / 1e6
    return found


def tracked(document: dict) -> Tracked:
    """What `quell track` says."""
    ranks = document["ranks"]
    return Tracked(
        [by_source(rank, "local_ns") for rank in ranks],
        [by_source(rank, "accumulated_ns") for rank in ranks],
        [rank["local_ns"] / 1e6 for rank in ranks],
        [rank["accumulated_ns"] / 1e6 for rank in ranks],
        document["orthogonal_sum_ratio"] or 0.0,
    )


def percent(values: dict[str, float], whole: float) -> str:
    """Each source's share of what all accumulated."""
    return ", ".join(f"{name} {100 * value / whole:.0f} %" for name, value in values.items() if value > 0.01 * whole)


def middle(runs: list[Tracked], key: str) -> dict[str, float]:
    """The median over runs of the mean over ranks, by source."""
    means = [
        [sum(rank[source] for rank in ranks) / len(ranks) for ranks in (getattr(run, key) for run in runs)]
        for source in SOURCES
    ]
    return {source: median(values) for source, values in zip(SOURCES, means)}
