"""Emulates Figures 5 and 6 of De, Kothari & Mann (IEEE Cluster 2008), as their section VI does, on this machine.

Usage: de_2008_emulation.py QUELL, where QUELL is the program to run. Writes de-2008-emulation.md and
de-2008-emulation.svg next to this script. It takes some two minutes on two idle CPUs, and its figures are measured:
no two runs give the same.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("svg")
from de_2008 import COLOURS, CURVES, HERE, LINES, MARKERS, RANKS, SYNC_WORDS, Curve, listed
from matplotlib import pyplot as plt
from report import DIFFERS, IN_SHAPE, Bench, Row, claim, effort, main, near, say, turn, warned
from report.papers import DE

if TYPE_CHECKING:
    from pathlib import Path

SOME_RANKS = [16, 128, 512, 2048]
FEW_RANKS = [16, 2048]
# With fewer there is no interval.
FEWEST = 16


@dataclass(frozen=True)
class Effort:
    """How a curve is emulated."""

    phases: int
    scale: float
    ranks: list[int]


# The smaller the slowdown, the longer the quantum has to be to measure it in. To nodes in step, ranks add little.
EFFORTS = {
    ("off-the-shelf Linux", "none"): Effort(60, 0.1, SOME_RANKS),
    ("off-the-shelf Linux", "start"): Effort(80, 0.1, FEW_RANKS),
    ("off-the-shelf Linux", "phase"): Effort(16, 0.4, FEW_RANKS),
    ("BlueGene/L I/O node", "none"): Effort(60, 0.1, SOME_RANKS),
    ("BlueGene/L I/O node", "start"): Effort(40, 0.2, FEW_RANKS),
    ("BlueGene/L I/O node", "phase"): Effort(16, 1.0, FEW_RANKS),
}

INTRODUCTION = """\
Slowdown of a 1 ms compute phase by operating-system noise, after De, Kothari & Mann, *A Trace-driven Emulation
Framework to Predict Scalability of Large Clusters in Presence of OS Jitter*, IEEE Cluster 2008. The paper ran up to
2,048 tasks on as many processors of a Blue Gene/L, which is all but free of noise. Here quell runs the same number of
virtual ranks in turn: the work really runs, and every detour of 1 us or more is really burned; shorter ones are
added up. Written by `de_2008_emulation.py`; do
not edit.
"""

READING = """\
*Simulation, same phases* is what `quell predict` gives for the phases that were emulated, with the same places in the
trace; the difference to it is what emulation and simulation make of the same noise. *Simulation, long* is the mean
over as many phases as [the page on the simulation](de-2008-figure-5.md) has: few phases see few of the long detours,
and no longer emulation is needed to know that.

Where the two differ by more than a percent or so, it is because they went different ways. Each phase begins where the
one before ended, and a measured phase is some ten or hundred nanoseconds off; so a long detour may strike a rank in the
one and just miss it in the other, and from there on they go through other parts of the trace until the next independent
run begins. A run of 60 phases at 2,048 ranks under the I/O node's noise that was followed gave 18.99 %, where the
progress clock says 18.99 % for the very places at which its ranks stood (`in place` in quell's own table), and a
simulation that goes its own way 18.11 %.
"""

MACHINE = """\
{}, {} CPUs, clock `{}`. A run with more of the machine's own noise than the limit, or at another speed of the core than
the work was counted for, was done again; own noise that was left, and small changes of the speed, were taken out of its
time, and are counted here. The spread is that of quanta without noise, 99.9 % above the median: a maximum over ranks is
off by no more for what measuring does.
"""

WHY = """\
## Why they differ

Emulation and simulation here draw from models that were rebuilt from the figures which the paper prints, not from its
traces, which were never published. So they agree with one another, and with the paper as far as the models do.

- **Off-the-shelf Linux, not synchronised: 99 %.** The mean of the long detours is chosen so that simulation comes
  near it.
- **BlueGene/L I/O node, not synchronised: 20 %.** The same.
- **Off-the-shelf Linux, at the start: 13 %.** Nodes that start up to 5.3 ms apart and keep that distance do not lose
  as much. Noise that is really burned costs them no more than simulated noise; but emulation and simulation share
  model, draws and skew, so that they agree rules out only the simulator's arithmetic. Bursts in the real trace, which
  the model does not have, ranks that came apart in another way, and what the paper's timers cost are left.
- **BlueGene/L I/O node, at the start: 6 %.** The same, with 3.82 ms.
- **Off-the-shelf Linux, in each phase: 0.7 %.** All nodes are as good as one; the printed figures give about this
  value.
- **BlueGene/L I/O node, in each phase: 0.9 %.** 1.04 detours per millisecond, of which 99.5 % are under 5 us, cannot
  lose that much, however they are run. The paper burned them by a timer that costs 14 us, and stretched everything by
  up to 9 to hide that; here a detour is burned where it strikes, to within some nanoseconds.
"""


def emulate(quell: str, curve: Curve) -> dict:
    """Runs `quell replay --emulate` and returns its document."""
    how = EFFORTS[curve.system, curve.sync]
    ranks, phases, scale = listed(how.ranks), str(max(FEWEST, effort(how.phases))), str(how.scale)
    options = ["--emulate", "--ranks", ranks, "--phases", phases, "--scale", scale]
    say(f"emulating, {curve.words}")
    with turn():
        return curve.run(quell, "replay", curve.noise, *options)


Found = tuple[Curve, dict, dict]
SAME, LONG = "simulation, same phases, %", "simulation, long, %"


def header(*numbers: str, words: tuple[str, ...] = ()) -> list[str]:
    """Begins a table: what was emulated, then columns of numbers and of words."""
    columns = ["noise of", "synchronised", *words, *numbers]
    return [f"| {' | '.join(columns)} |", "|---|---|" + "---|" * len(words) + "--:|" * len(numbers)]


def table(rows: list[Found]) -> str:
    """Writes the paper's value, the emulation's and the simulation's, at the largest scale."""
    lines = header("paper, %", "emulation, %", SAME, "difference, % of it", LONG, "phases")
    for curve, emulation, prediction in rows:
        point = emulation["points"][-1]
        lines.append(
            f"| {curve.system} | {SYNC_WORDS[curve.sync]} | {curve.paper_percent:g} | {point['slowdown_percent']:.2f} "
            f"| {point['predicted_percent']:.2f} | {point['difference_percent']:+.1f} "
            f"| {prediction['points'][-1]['slowdown_percent']:.2f} | {point['phases']:,} |"
        )
    return "\n".join(lines)


def all_scales(rows: list[Found]) -> str:
    """Writes emulation and simulation of the same phases at every scale that ran."""
    lines = header("ranks", "emulation, %", SAME, "difference, % of it", words=("95 % interval",))
    for curve, emulation, _ in rows:
        for point in emulation["points"]:
            interval = "{:.2f} to {:.2f}".format(*point["ci95_percent"]) if point["ci95_percent"] else "too few phases"
            lines.append(
                f"| {curve.system} | {SYNC_WORDS[curve.sync]} | {interval} | {point['ranks']:,} "
                f"| {point['slowdown_percent']:.3f} | {point['predicted_percent'] or 0:.3f} "
                f"| {point['difference_percent'] or 0:+.2f} |"
            )
    return "\n".join(lines)


def machine(rows: list[Found]) -> str:
    """Says what ran it, and what its own noise did."""
    facts = rows[0][1]["machine"]
    text = MACHINE.format(facts["processor"] or "Unknown processor", len(facts["cpus"]), facts["clock"])
    numbers = ["scale", "limit, ns", "runs", "done again, %", "disturbed each time", "own noise taken out, us"]
    lines = [text, *header(*numbers, "speed correction, ns", "spread, % of the quantum")]
    for curve, emulation, _ in rows:
        own = [point["own"] for point in emulation["points"]]
        runs, again, disturbed, taken = (
            sum(one[key] for one in own) for key in ("runs", "runs_again", "disturbed", "own_ns")
        )
        speed = sum(one["mean_speed_correction_ns"] * one["runs"] for one in own) / runs
        spread = max(point["reference_spread_ns"] for point in emulation["points"])
        lines.append(
            f"| {curve.system} | {SYNC_WORDS[curve.sync]} | {emulation['scale']:g} "
            f"| {emulation['machine']['limit_ns']} "
            f"| {runs:,} | {100 * again / runs:.1f} | {disturbed:,} | {taken / 1e3:,.0f} | {speed:,.0f} "
            f"| {100 * spread / emulation['quantum_ns']:.4f} |"
        )
    return "\n".join(lines)


def page(rows: list[Found]) -> str:
    """Puts the page together."""
    warnings = sorted({warned(warning) for _, emulation, _ in rows for warning in emulation["warnings"]})
    parts = [
        "# De 2008, Figures 5 and 6, emulated",
        INTRODUCTION.rstrip(),
        "![Slowdown over ranks](de-2008-emulation.svg)",
        "## At 2,048 ranks",
        table(rows),
        READING.rstrip(),
        "## At every scale that ran",
        all_scales(rows),
        "## The machine",
        machine(rows),
        WHY.rstrip(),
    ]
    if warnings:
        parts += ["## What quell warned of", "\n".join(f"- {warning}" for warning in warnings)]
    return "\n\n".join(parts) + "\n"


def draw(rows: list[Found], path: Path) -> None:
    """Draws simulation as lines, emulation as filled marks on them, the paper's values as hollow ones."""
    mpl.rcParams.update({"svg.hashsalt": "quell", "svg.fonttype": "none", "font.family": "sans-serif"})
    figure, axes = plt.subplots(figsize=(8, 5.2), layout="constrained")
    for curve, emulation, _ in rows:
        points = emulation["points"]
        ranks = [point["ranks"] for point in points]
        colour, marker = COLOURS[curve.system], MARKERS[curve.sync]
        predicted = [point["predicted_percent"] for point in points]
        axes.plot(ranks, predicted, linestyle=LINES[curve.sync], color=colour, linewidth=1)
        slowdowns = [point["slowdown_percent"] for point in points]
        axes.plot(ranks, slowdowns, linestyle="none", color=colour, marker=marker, markersize=5, label=curve.words)
        hollow = {"color": colour, "marker": marker, "markersize": 9, "fillstyle": "none"}
        axes.plot([RANKS[-1]], [curve.paper_percent], linestyle="none", **hollow)
    axes.plot([], [], color="#555555", linewidth=1, label="simulation of the same phases")
    hollow = {"color": "#555555", "marker": "o", "markersize": 9, "fillstyle": "none", "linestyle": "none"}
    axes.plot([], [], label="the paper, at 2,048 (same shapes)", **hollow)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(RANKS, [f"{ranks:,}" for ranks in RANKS])
    axes.set_yticks([0.3, 1, 3, 10, 30, 100], ["0.3", "1", "3", "10", "30", "100"])
    axes.minorticks_off()
    axes.set_xlabel("ranks")
    axes.set_ylabel("slowdown of a 1 ms phase, %")
    axes.set_title("What burned noise costs (marks), next to simulation and the paper")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(fontsize=8, loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


WHY_ROW = (
    "Emulation and simulation share clock and draws. That they agree shows that schedule, burning and pacing are "
    "right, and says nothing of the model, whose long detours are fitted to 99 and 20 %. Detours under 1 us are added "
    "up, not burned. The paper's Fig. 5 has barriers (eq. 2), this has none (eq. 3)."
)


def table_rows(rows: list[Found]) -> list[Row]:
    """What was emulated, at the largest scale: Figure 5 and Figure 6."""
    found = []
    for figure, syncs in (("Fig. 5", ("none", "start")), ("Fig. 6", ("start", "phase"))):
        for sync in syncs:
            of = [(curve, emulation["points"][-1]) for curve, emulation, _ in rows if curve.sync == sync]
            paper = "; ".join(f"{curve.system} {curve.paper_percent:g} %" for curve, _ in of)
            ours = "; ".join(
                f"{point['slowdown_percent']:.2f} % (simulated alike: {point['predicted_percent']:.2f} %)"
                for _, point in of
            )
            words = f"slowdown at 2,048, {SYNC_WORDS[sync]}"
            holds = all(near(point["slowdown_percent"], curve.paper_percent, 1.5) for curve, point in of)
            verdict = claim(IN_SHAPE, holds=holds) if sync == "none" else DIFFERS
            found.append(Row(DE, figure, f"{words}: {paper}", f"emulated, noise burned: {ours}", verdict, WHY_ROW))
    return found


def make(bench: Bench) -> list[Row]:
    """Runs every curve and writes the page and the figure."""
    rows = [(curve, emulate(bench.quell, curve), curve.predict(bench.quell, RANKS[-1:])) for curve in CURVES]
    (HERE / "de-2008-emulation.md").write_text(page(rows), encoding="utf-8")
    draw(rows, HERE / "de-2008-emulation.svg")
    return table_rows(rows)


if __name__ == "__main__":
    sys.exit(main("de-2008-emulation", 240, __doc__, make))
