"""Sweep3D's and LU's wavefronts at the paper's sizes: traces of nine ranks, extrapolated, and simulated under noise."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from report import DIFFERS, HERE, IN_SHAPE, NOT_HERE, Bench, Row, effort, say, table
from report.papers import NATARAJ

if TYPE_CHECKING:
    from collections.abc import Callable

RANKS = [32, 128]
# What is traced and extrapolated: wavefronts of kernels/sweep.c, by iterations, blocks of an octant or a solve, and for
# each size the doubles of a block's edge and the passes over them. The work is shared out, so 128 ranks have a fourth
# of it each, with edges half as long.
WAVEFRONTS = {
    "Sweep3D": ("15", "sweep3d", "10", {32: ("1000", "240"), 128: ("500", "120")}),
    "LU": ("30", "lu", "40", {32: ("250", "240"), 128: ("125", "120")}),
}
# A rank in the middle of a grid does all that any rank does, so nine ranks are traced.
TRACED = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "--bind-to", "none", "-n", "9"]
SEEDS = 10
# Student's t for a 95 % interval, by degrees of freedom.
STUDENT = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
# Sources as `simulate --only` and `--without` take them; what is none of these is `other`.
PATTERNS = {"tick": "tick", "irq": "irq:.*", "softirq": "softirq:.*", "task": "task:.*"}

EXTRAPOLATED = """\
Nine ranks on a grid of three by three are traced, the work of a rank is what the counters leave of its time, and `quell
track --extrapolate` makes the schedule of 4 x 8 and 8 x 16 ranks of it, with the work of each step drawn from the nine.
The problem is shared out: 128 ranks have a fourth of the work each. *All add* is the end under this machine's noise
less the end without, *amplification* that over what struck a rank in the mean. Means over seeds, each with other places
in the recording, and their 95 % intervals.
"""

COMPOSED = """\
Of what all sources add: what a source adds alone, and by how much less is added without it. A seed has the same places
in the recording each time. *Other* is all else: on a virtual machine the hypervisor's, and what no source explains.
"""

FIVE = "32 ranks would be 1.6 s faster without noise; the local tick is most of it"
SIX = "32 ranks: below 1 for most; 128: up to 4; the rare timer_interrupt is amplified most"
SEVEN = (
    "32 ranks: the tick is 60 %, schedule 50 % of the noise; 128: without schedule 85 % less; orthogonal sum 1.35 at "
    "32 ranks, over half overlaid at 128"
)
BELOW = (
    "The paper holds that the sum cannot be below 1. It can, where waiting hides each of two sources, but not both. "
)


@dataclass(frozen=True)
class Mean:
    """The mean of seeds, with half the width of its 95 % interval."""

    value: float
    half: float

    def __str__(self) -> str:
        """As a cell."""
        digits = 1 if abs(self.value) >= 100 else 2  # noqa: PLR2004 (a look)
        return f"{self.value:,.{digits}f} ± {self.half:,.{digits}f}"


def mean(values: list[float]) -> Mean:
    """The mean of seeds, with the interval of a mean."""
    return Mean(fmean(values), STUDENT[len(values) - 1] * stdev(values) / math.sqrt(len(values)))


@dataclass(frozen=True)
class Swept:
    """A program's wavefronts under this machine's noise: times in ms, shares of what all sources together add."""

    silent: float
    added: Mean
    struck: Mean
    amplified: Mean
    alone_ms: dict[str, Mean]
    alone_amplified: dict[str, Mean]
    alone: dict[str, Mean]
    removed: dict[str, Mean]
    orthogonal: Mean


def schedules(bench: Bench) -> dict[tuple[str, int], str]:
    """The schedules of 32 and 128 ranks, each from a trace of nine; nothing where there is no MPI."""
    launch = bench.mpi_program(HERE / "kernels/sweep.c")
    if not launch:
        return {}
    launcher, program = launch[0], launch[-1]
    found = {}
    for name, (iterations, shape, blocks, sizes) in WAVEFRONTS.items():
        for ranks in RANKS:
            say(f"{name} of {ranks} ranks, from nine")
            shutil.rmtree(bench.folder / "nine", ignore_errors=True)
            command = [launcher, *TRACED, program, iterations, shape, blocks, *sizes[ranks]]
            # The time in which ranks wait for a CPU is noise to the counters, and so no work of the schedule's.
            bench.run(bench.quell, "-q", "trace", "-o", "nine", "--sources", "on", "--", *command)
            schedule = f"{name}-{ranks}.bin"
            bench.run(bench.quell, "-q", "track", "nine", "--goal", schedule, "--extrapolate", str(ranks))
            found[name, ranks] = schedule
    return found


def swept(bench: Bench, schedule: str, ranks: int, kinds: list[str]) -> Swept:
    """A schedule under all of node.quell's sources, each alone, and all but each; a seed has the same places in all."""

    def run(seed: int, *words: str) -> tuple[float, float]:
        """By how much longer it takes, and what struck a rank, in ms."""
        noise = ["--noise", "node.quell", "--culprits", "--baseline", "--seed", str(seed)]
        found = bench.document("simulate", schedule, *noise, *words)
        silents.append(found["baseline"]["max_ns"] / 1e6)
        return found["max_ns"] / 1e6 - silents[-1], found["culprits"]["struck_ns"] / ranks / 1e6

    silents: list[float] = []
    seeds = range(1, max(3, min(SEEDS, effort(SEEDS))) + 1)
    everything = [run(seed) for seed in seeds]
    added = [max(1e-6, one[0]) for one in everything]
    every = list(PATTERNS.values())
    keep = {kind: ["--only", PATTERNS[kind]] for kind in kinds}
    keep["other"] = [word for pattern in every for word in ("--without", pattern)]
    drop = {kind: ["--without", PATTERNS[kind]] for kind in kinds}
    drop["other"] = [word for pattern in every for word in ("--only", pattern)]
    only = {kind: [run(seed, *words) for seed in seeds] for kind, words in keep.items()}
    less = {kind: [run(seed, *words)[0] for seed in seeds] for kind, words in drop.items()}
    shares = {kind: [one[0] / all_ for one, all_ in zip(runs, added)] for kind, runs in only.items()}
    return Swept(
        silents[0],
        mean(added),
        mean([struck for _, struck in everything]),
        mean([one / max(1e-9, struck) for one, (_, struck) in zip(added, everything)]),
        {kind: mean([one for one, _ in runs]) for kind, runs in only.items()},
        {kind: mean([one / max(1e-9, struck) for one, struck in runs]) for kind, runs in only.items()},
        {kind: mean([100 * share for share in values]) for kind, values in shares.items()},
        {kind: mean([100 * (1 - one / all_) for one, all_ in zip(runs, added)]) for kind, runs in less.items()},
        mean([sum(values) for values in zip(*shares.values())]),
    )


def swept_table(found: dict[tuple[str, int], Swept]) -> str:
    """Figures 5 and 6, of extrapolated schedules."""
    kinds = list(next(iter(found.values())).alone)
    cells = []
    for (name, ranks), one in found.items():
        alone = [f"{one.alone_ms[kind]} / {one.alone_amplified[kind]}" for kind in kinds]
        cells.append(
            [name, str(ranks), f"{one.silent:,.1f}", *map(str, (one.added, one.struck, one.amplified)), *alone]
        )
    header = ["program", "ranks", "without noise, ms", "all add, ms", "struck a rank, ms", "amplification"]
    return table([*header, *(f"{kind} alone, ms / amplification" for kind in kinds)], cells, "lr")


def composed_table(found: dict[tuple[str, int], Swept]) -> str:
    """Figure 7, of extrapolated schedules."""
    kinds = list(next(iter(found.values())).alone)
    cells = []
    for (name, ranks), one in found.items():
        cells.append([name, str(ranks), "alone", *(str(one.alone[kind]) for kind in kinds), str(one.orthogonal)])
        cells.append([name, str(ranks), "removed", *(str(one.removed[kind]) for kind in kinds), ""])
    return table(["program", "ranks", "source is", *(f"{kind}, %" for kind in kinds), "orthogonal sum"], cells, "lrlr")


def swept_rows(found: dict[tuple[str, int], Swept]) -> list[Row]:
    """Figures 5 to 7 at the paper's sizes, of traced and extrapolated schedules."""
    if not found:
        why = "Nothing could be traced with counters here: no MPI, or no eBPF (`quell doctor`)."
        return [Row(NATARAJ, "Fig. 7", SEVEN, "", NOT_HERE, why)]
    together = (
        "Nine ranks traced, extrapolated, on LogGOPSim's network, under a recording of one CPU of this machine: its "
        "sources and shares are others than the paper's."
    )

    def said(what: Callable[[Swept], str]) -> str:
        return "; ".join(f"{name} {ranks}: {what(one)}" for (name, ranks), one in found.items())

    def by_kind(values: dict[str, Mean]) -> str:
        return ", ".join(f"{kind} {value}" for kind, value in values.items())

    grows = all(found[name, RANKS[1]].amplified.value > found[name, RANKS[0]].amplified.value for name in WAVEFRONTS)
    above = all(one.orthogonal.value + one.orthogonal.half > 1 for one in found.values())
    return [
        Row(
            NATARAJ,
            "Fig. 5",
            FIVE,
            f"extrapolated, ms: {said(lambda one: f'{one.added} of {one.silent:,.0f} ({by_kind(one.alone_ms)})')}",
            DIFFERS,
            together,
        ),
        Row(
            NATARAJ,
            "Fig. 6",
            SIX,
            f"extrapolated, added over struck: {said(lambda one: f'{one.amplified} ({by_kind(one.alone_amplified)})')}",
            IN_SHAPE if grows else DIFFERS,
            "Amplified more at 128 ranks than at 32, as there. " * grows + together,
        ),
        Row(
            NATARAJ,
            "Fig. 7",
            SEVEN,
            f"extrapolated, less noise without each source, %: {said(lambda one: by_kind(one.removed))}; "
            f"orthogonal sum {said(lambda one: str(one.orthogonal))}",
            DIFFERS,
            ("" if above else BELOW) + together,
        ),
    ]
