"""Shows three known effects of noise on collective operations, after Beckman et al., Ferreira et al. and Hoefler et al.

Usage: effects.py QUELL, where QUELL is the program to run. Writes effects.md and effects.svg next to this script.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt
from report import IN_SHAPE, Bench, Row, claim, main
from report.papers import HOEFLER

HERE = Path(__file__).resolve().parent
SEEDS = [1, 2, 3]
# Ranks and phases: each rank's phases take turns with all others', so a large number of ranks needs few of them.
APART = {64: 400, 256: 400, 1024: 200, 4096: 60, 16384: 20, 65536: 6}
# The first phases begin in step, and the last ones hold up none behind them. Both are taken out with as many as this.
WARM = 4
# All ranks together are as one: only many phases see enough of the noise.
TOGETHER = {64: 400, 256: 400, 1024: 400}
# A broadcast delays no rank at once, so all scales run equally long.
BROADCAST = dict.fromkeys(APART, 100)
FINE = 16384


@dataclass(frozen=True)
class Noise:
    """2.5 % noise in one of its forms."""

    hertz: int
    micros: int

    @property
    def words(self) -> str:
        """As in 10 Hz x 2,500 us."""
        return f"{self.hertz:,} Hz x {self.micros:,} us"

    @property
    def path(self) -> str:
        """The model."""
        return str(HERE / "models" / f"ferreira-2008-{self.hertz}hz.toml")


RARE, MEDIUM, FREQUENT = NOISES = [Noise(10, 2500), Noise(100, 250), Noise(1000, 25)]


@dataclass(frozen=True)
class Loop:
    """Work and a collective, over and over."""

    inner: str
    ranks: int
    phases: int
    quantum: str = "1ms"
    warm: int = 0


@dataclass(frozen=True)
class Point:
    """What all seeds gave, in ns a phase."""

    silent: float
    noisy: list[float]

    @property
    def percents(self) -> list[float]:
        """The slowdown of each seed, in percent, sorted."""
        return sorted(100 * (noisy / self.silent - 1) for noisy in self.noisy)

    @property
    def median(self) -> float:
        """The slowdown in percent."""
        return statistics.median(self.percents)

    @property
    def factor(self) -> float:
        """How many times as long it takes."""
        return 1 + self.median / 100

    @property
    def words(self) -> str:
        """Median and range of the slowdown in percent."""
        low, *_, high = self.percents
        digits = 0 if self.median >= 100 else 1  # noqa: PLR2004 (three figures)
        return f"{self.median:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"


@cache
def last(quell: str, loop: Loop, phases: int, noise: tuple[str, ...]) -> int:
    """Runs the phases of a loop, and returns when its last rank is done."""
    command = [quell, "simulate", "--pattern", "bsp", "--inner", loop.inner, "--bytes", "8", "--work", loop.quantum]
    command += ["--net", "loggopsim", "--ranks", str(loop.ranks), "--iterations", str(phases), "--json", *noise]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(result.stdout)["max_ns"]


def phase(quell: str, loop: Loop, noise: tuple[str, ...]) -> float:
    """Returns the time of a phase: what a loop takes more than its first phases alone."""
    first = last(quell, loop, loop.warm, noise) if loop.warm else 0
    return (last(quell, loop, loop.warm + loop.phases, noise) - first) / loop.phases


def measure(quell: str, loop: Loop, noise: Noise, *, together: bool = False) -> Point:
    """Runs a loop with noise and without."""
    where = ["--noise", noise.path, *(["--cosched"] if together else [])]
    noisy = [phase(quell, loop, (*where, "--seed", str(seed))) for seed in SEEDS]
    return Point(phase(quell, loop, ()), noisy)


@dataclass(frozen=True, eq=False)
class Curve:
    """A line of the figure and a row of the table."""

    inner: str
    noise: Noise
    together: bool
    phases: dict[int, int]
    warm: int = 0

    @property
    def words(self) -> str:
        """Its name."""
        return f"{self.inner}, {self.noise.words}{', together' if self.together else ''}"

    def points(self, quell: str) -> dict[int, Point]:
        """The slowdown at each scale."""
        loops = [Loop(self.inner, ranks, phases, warm=self.warm) for ranks, phases in self.phases.items()]
        return {loop.ranks: measure(quell, loop, self.noise, together=self.together) for loop in loops}


CURVES = [
    *(Curve("allreduce", noise, together=False, phases=APART, warm=WARM) for noise in NOISES),
    *(Curve("allreduce", noise, together=True, phases=TOGETHER) for noise in NOISES),
    Curve("barrier", RARE, together=False, phases=APART, warm=WARM),
    Curve("bcast", RARE, together=False, phases=BROADCAST),
]
Rows = dict[Curve, dict[int, Point]]

# Okabe and Ito's palette, distinguished with any colour vision; shapes and lines say the same again.
COLOURS = {RARE: "#D55E00", MEDIUM: "#009E73", FREQUENT: "#0072B2"}
MARKERS = {"allreduce": "o", "barrier": "x", "bcast": "v"}

# Share of time that each form of noise takes.
NOISE_PERCENT = 2.5

INTRODUCTION = """\
2.5 % noise in three forms under a loop of 1 ms of work and a collective of 8 bytes: what is known of it, next to
what quell's message simulation gives under its physical rules. Written by `effects.py`; do not edit.

- Beckman, Iskra, Yoshii & Coghlan, *The Influence of Operating Systems on the Performance of Collective Operations
  at Extreme Scale*, IEEE Cluster 2006: injected noise on a massively parallel machine. Taken from its abstract.
- Ferreira, Bridges & Brightwell, *Characterizing Application Sensitivity to OS Interference Using Kernel-Level
  Noise Injection*, SC 2008: injected noise in the Catamount kernel. The three forms are its own; what it found is
  taken from its abstract.
- Hoefler, Schneider & Lumsdaine, *Characterizing the Influence of System Noise on Large-Scale Applications by
  Simulation*, SC 2010: taken from its slides.
"""

WHY = """\
## Why

- **Rare and long.** In 1 ms of work, one rank in 100 is struck by the rarest noise, all by the most frequent. With some
  hundred ranks a detour hits some rank in nearly every phase, and then the length of the detour is what counts. That
  it grows on with the ranks, past one detour a phase, has two reasons: there are more rounds, and in each of them
  ranks are struck that were not before.
- **Together.** What strikes all at once is lost once: 2.5 of 97.5 parts of the time, or 2.6 %.
- **A broadcast.** A rank waits only for those between it and the root, at most 16 at 65,536 ranks, and what strikes it
  while it is ahead of them costs nothing.
"""

LIMITS = """\
## Limits

- **No figure of the papers is rebuilt.** The abstracts print one number, Ferreira's factor of 20, of an application
  that is not this loop, on another network. What is compared is direction and order of size.
- **The network** is LogGOPSim's default (L = 2.5 us, o = 1.5 us, g = 1 us, G = 6 ns). The allreduce is recursive
  doubling, the barrier a dissemination, the broadcast a binomial tree. There is no barrier in hardware.
- **Loops are short at many ranks**: 6 phases of allreduce or barrier at 65,536, which is less than one period of the
  rarest noise. The ranks stand evenly in that period, so each phase meets about as much as the next. Of these loops the
  4 phases before are not counted: a loop of as many is taken off.
- **Together** stops at 1,024 ranks. All ranks then suffer the same detours, so scale adds nothing but rounds, and a
  loop of a few phases says only whether a detour fell into it. These loops meet 4 or 5 detours at 10 Hz.
- **A broadcast** delays only ranks that wait for it: ranks far up the tree run ahead, without a limit here,
  where real programs have finite buffers. Its 100 phases are about one period of the rarest noise, and the time is
  that of the last rank.
- **One trace serves all ranks**, each from a place of its own: all have the same period, and never drift.
"""


def known(rows: Rows, fine: dict[Noise, Point]) -> str:
    """Writes what the papers say next to what was measured."""
    most, apart = max(APART), {curve.noise: rows[curve] for curve in CURVES[:3]}
    together = {curve.noise: rows[curve] for curve in CURVES[3:6]}
    barrier, bcast = rows[CURVES[6]], rows[CURVES[7]]
    coarse = [apart[noise][FINE].factor for noise in (RARE, FREQUENT)]
    close = [fine[noise].factor for noise in (RARE, FREQUENT)]
    waits = {
        noise: (statistics.median(apart[noise][most].noisy) - apart[noise][most].silent) / 1e3 / noise.micros
        for noise in NOISES
    }
    spans = ", ".join(f"{waits[noise]:.1f} x {noise.micros:,} us" for noise in NOISES)
    same = ", ".join(f"{together[noise][1024].median:.1f}" for noise in NOISES)
    alone = ", ".join(f"{apart[noise][1024].median:,.1f}" for noise in NOISES)
    facts = [
        (
            "Ferreira: 2.5 % noise at 10,000 nodes can have no impact, or slow the same application more than 20 times",
            (
                f"allreduce at {FINE:,} ranks: {coarse[1]:.2f} to {coarse[0]:.1f} times as long with 1 ms of work, "
                f"{close[1]:.2f} to {close[0]:.1f} times with 100 us"
            ),
        ),
        (
            "Beckman: at extreme scale, performance goes with the largest interruption, however improbable it is",
            f"allreduce at {most:,} ranks: a phase is longer by {spans}",
        ),
        (
            "Beckman: noise that is synchronised does significantly less",
            f"allreduce at 1,024 ranks, the three forms: {alone} % apart, {same} % together",
        ),
        (
            "Hoefler: many collectives (broadcast, scan, reduce) do not synchronise; ranks leave as early as they can",
            (
                f"at {most:,} ranks under {RARE.words}: barrier {barrier[most].median:,.0f} %, "
                f"broadcast {bcast[most].median:.1f} %"
            ),
        ),
    ]
    lines = ["| the paper | quell |", "|---|---|", *(f"| {paper} | {ours} |" for paper, ours in facts)]
    return "\n".join(lines)


def scales(rows: Rows) -> str:
    """Writes the slowdown at every scale."""
    lines = [
        "| loop | noise | ranks' noise | " + " | ".join(f"{ranks:,}" for ranks in APART) + " |",
        "|---|---|---|" + "--:|" * len(APART),
    ]
    for curve, points in rows.items():
        cells = " | ".join(points[ranks].words if ranks in points else "" for ranks in APART)
        lines.append(f"| {curve.inner} | {curve.noise.words} | {'together' if curve.together else 'apart'} | {cells} |")
    return "\n".join(lines)


def page(rows: Rows, fine: dict[Noise, Point]) -> str:
    """Puts the page together."""
    parts = [
        "# Known effects of noise on collective operations",
        INTRODUCTION.rstrip(),
        "![Slowdown over ranks](effects.svg)",
        "## What is known, and what is simulated",
        known(rows, fine),
        "## Slowdown in percent: median and range of three seeds",
        scales(rows),
        f"With 100 us of work, allreduce at {FINE:,} ranks: "
        + "; ".join(f"{noise.words} {point.words}" for noise, point in fine.items())
        + ".",
        WHY.rstrip(),
        LIMITS.rstrip(),
    ]
    return "\n\n".join(parts) + "\n"


def draw(rows: Rows, path: Path) -> None:
    """Draws all curves: medians, and ranges as bands."""
    mpl.rcParams.update({"svg.hashsalt": "quell", "svg.fonttype": "none", "font.family": "sans-serif"})
    figure, axes = plt.subplots(figsize=(8, 5.2), layout="constrained")
    for curve, points in rows.items():
        look = {"color": COLOURS[curve.noise], "marker": MARKERS[curve.inner], "markersize": 5}
        ranks, medians = list(points), [point.median for point in points.values()]
        axes.plot(ranks, medians, linestyle=":" if curve.together else "-", label=curve.words, **look)
        low, high = zip(*((point.percents[0], point.percents[-1]) for point in points.values()))
        axes.fill_between(ranks, low, high, color=look["color"], alpha=0.15, linewidth=0)
    axes.set_xscale("log", base=4)
    axes.set_yscale("log")
    axes.set_xticks(list(APART), [f"{ranks:,}" for ranks in APART])
    axes.set_yticks([2.5, 10, 30, 100, 300, 1000], ["2.5", "10", "30", "100", "300", "1,000"])
    axes.minorticks_off()
    axes.set_xlabel("ranks")
    axes.set_ylabel("slowdown of 1 ms of work and a collective, %")
    axes.set_title("2.5 % noise, by its form, its synchronisation and the collective")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(fontsize=8, loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def table_rows(rows: Rows) -> list[Row]:
    """What the slides say of collectives, and the scale that they are about."""
    most = max(APART)
    barrier, bcast = rows[CURVES[6]][most].median, rows[CURVES[7]][most].median
    apart = ", ".join(f"{rows[curve][most].median:,.1f}" for curve in CURVES[:3])
    forms = ", ".join(noise.words for noise in NOISES)
    return [
        Row(
            HOEFLER,
            "collectives at scale",
            "many collectives do not synchronise, and ranks leave as early as they can; no number in the slides",
            f"simulated, {most:,} ranks, {RARE.words}: barrier {barrier:,.0f} %, broadcast {bcast:.1f} % slower",
            claim(IN_SHAPE, holds=barrier > 5 * bcast),
            "The slides print no figure of it: direction and order of size only.",
        ),
        Row(
            HOEFLER,
            "collectives at scale",
            "noise of at most 0.26 % on one core is no problem there, but at large scale; no number in the slides",
            f"simulated, allreduce, {most:,} ranks, 2.5 % noise ({forms}): {apart} % slower",
            claim(IN_SHAPE, holds=max(rows[curve][most].median for curve in CURVES[:3]) > 5 * NOISE_PERCENT),
            "Noise of Ferreira et al., SC 2008, on LogGOPSim's default network.",
        ),
    ]


def make(bench: Bench) -> list[Row]:
    """Runs every curve and writes the page and the figure."""
    quell = bench.quell
    rows = {curve: curve.points(quell) for curve in CURVES}
    fine = {noise: measure(quell, Loop("allreduce", FINE, APART[FINE], "100us", WARM), noise) for noise in NOISES}
    (HERE / "effects.md").write_text(page(rows, fine), encoding="utf-8")
    draw(rows, HERE / "effects.svg")
    return table_rows(rows)


if __name__ == "__main__":
    sys.exit(main("effects", 150, __doc__, make))
