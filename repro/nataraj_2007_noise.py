"""Repeats Figures 4 to 9 of Nataraj et al. (SC 2007): noise profiles, what accumulates, amplification and composition.

Usage: nataraj_2007_noise.py QUELL, where QUELL is the program to run. Writes nataraj-2007-noise.md and
nataraj-2007-noise.svg next to this script. The real ranks need an MPI and eBPF; their figures are measured, and no two
runs give the same.
"""

from __future__ import annotations

import random
import shutil
import sys
from dataclasses import dataclass
from statistics import median

from nataraj_2007 import SOURCES, Tracked, middle, percent, tracked
from nataraj_2007.wavefronts import (
    COMPOSED,
    EXTRAPOLATED,
    FIVE,
    PATTERNS,
    RANKS,
    SIX,
    composed_table,
    schedules,
    swept,
    swept_rows,
    swept_table,
)
from report import DIFFERS, FAILED, HERE, IN_SHAPE, NOT_HERE, Bench, Row, effort, main, rounds, say, table, write_page
from report.drawing import BLUE, GREEN, GREY, ORANGE, PINK, panels, save
from report.papers import NATARAJ

PHASES = 200
# As long as Sweep3D's and the processors' times allow to tell: strong scaling, so a phase of 128 ranks is a fourth.
TOTAL_NS = 64_000_000
COLOURS = dict(zip(SOURCES, (BLUE, GREEN, PINK, ORANGE, GREY)))
# Iterations, blocks, doubles, turns: some 0.5 s on an idle CPU.
PROGRAMS = {"sweep": ("wavefront", ("25", "8", "5000", "5")), "LU": ("wavefront", ("10", "40", "2500", "5"))}
PROGRAMS["CG"] = ("cg", ("60", "48"))
SCALES = [1, 2, 4, 8]
SCALED = ("10", "sweep3d", "10", "500", 960)
SCALE_ROUNDS, SCALE_S = 5, 90
ROUNDS = 5
ROUNDS_S = 75
SETS = {"base": [], "pinned": ["--bind-to", "core"]}

INTRODUCTION = """\
Noise profiles of LU and CG, and what accumulates, is amplified and absorbed in Sweep3D, after Nataraj, Morris,
Malony, Sottile & Beckman, *The Ghost in the Machine*, SC 2007, sections 4.2 and 4.3. The paper had 32 and 128 cores
of a cluster. Here programs of the same kind (a wavefront as Sweep3D and LU have it, conjugate gradients; `kernels/`)
run on two real ranks by `quell trace`, unbound and bound to a CPU each, and `quell track` analyses them. For 32 and 128
ranks, traces of nine ranks of a program with Sweep3D's and LU's wavefronts (`kernels/sweep.c`) are extrapolated and
simulated under this machine's noise, and the paper's bulk-synchronous program under each of its sources. Written by
`nataraj_2007_noise.py`; do not edit.
"""

HOW = """\
*Local* noise struck the rank, *accumulated* is by how much it ended later than without noise, and their quotient is
the *amplification ratio*: below 1 the program absorbs noise, above it others' noise is added. *Composition* is what
each source alone accumulated, of what all of them did; the sum of all is the *orthogonal sum*: above 1, sources hide
one another.
"""

OVER_SCALES = """\
One problem, shared out to more ranks of `kernels/sweep.c`, unbound and bound; *accumulated* is that of the rank that
has most. Medians of rounds in random order. Above two ranks they share two CPUs, and a rank that waits gives its CPU
away. That is no noise to the counters, and what strikes the CPU in the meantime is none of the rank's either.
"""

WHY = """\
## Why they differ

- The paper's `timer_interrupt` came to one core of a node, `smp_apic_timer_interrupt` to every core; on this kernel
  there is only the latter, `tick`. `schedule` is `task`. Device interrupts and softirqs are watched too.
- Two ranks on two CPUs of one virtual machine can pass noise only to one another: ratios stay near 1, where 32 and
  128 ranks spread around it. Open MPI's ranks poll while they wait, so what strikes a waiting rank is absorbed.
- On a machine that others use, `task` is their work. Pinning helps against migration then, not against them.
- The extrapolated wavefronts run under a recording of one CPU, from which each rank goes through a part of its own.
- The bulk-synchronous program has one source at a time, at its measured period and mean, and a collective at the end
  of each phase. So nothing is absorbed but in the wait for the last rank.
"""


EIGHT = "pinned, no irq balancing: noise shrinks fourfold from 32 to 128 ranks, as the run time does"


def real(bench: Bench) -> dict[tuple[str, str], list[Tracked]]:
    """Every program, unbound and bound, in rounds of random order. Nothing where there is no MPI or no counter."""
    launches = {}
    for name, (kernel, words) in PROGRAMS.items():
        launch = bench.mpi_program(HERE / f"kernels/{kernel}.c")
        if not launch:
            return {}
        launches[name] = [launch, words]
    found: dict[tuple[str, str], list[Tracked]] = {(name, how): [] for name in PROGRAMS for how in SETS}
    for _ in rounds("traced programs", ROUNDS, ROUNDS_S):
        for name, how in random.sample(list(found), len(found)):
            shutil.rmtree(bench.folder / "run", ignore_errors=True)
            (launcher, _, _, *rest), words = launches[name]
            launch = [launcher, *(SETS[how] or ["--bind-to", "none"]), *rest, *words]
            bench.run(bench.quell, "-q", "trace", "-o", "run", "--sources", "on", "--", *launch)
            found[name, how].append(tracked(bench.document("track", "run")))
    return found


def sources_here(bench: Bench) -> dict[str, tuple[float, float]]:
    """Period and mean of each kind of source on CPU 1, in ns."""
    bench.run(bench.quell, "-q", "record", "-o", "node.quell", "--cpus", "1", "--duration", f"{effort(30)}s")
    shown = bench.document("show", "node.quell", "--by", "source")
    span = float(shown["cpus"][0]["observed_ns"])
    found = {}
    for kind in PATTERNS:
        rows = [row for row in shown["sources"] if row["source"].split(":")[0] == kind and not row["own"]]
        count, total = sum(row["count"] for row in rows), sum(row["total_ns"] for row in rows)
        if count:
            found[kind] = (span / count, min(total / count, 0.9 * span / count))
    return found


def simulated(bench: Bench, ranks: int, period_ns: float, detour_ns: float) -> Tracked:
    """The bulk-synchronous program under one source."""
    shutil.rmtree(bench.folder / "simulated", ignore_errors=True)
    words = ["--ranks", str(ranks), "--phases", str(PHASES), "--quantum", f"{TOTAL_NS // ranks}ns"]
    words += ["--period", f"{period_ns:.0f}ns", "--detour", f"{detour_ns:.0f}ns", "-o", "simulated"]
    bench.run(bench.quell, "-q", "generate-run", *words)
    return tracked(bench.document("track", "simulated"))


@dataclass(frozen=True)
class Scaled:
    """Runs of a number of ranks: run time and accumulated noise, in ms."""

    took: list[float]
    accumulated: list[float]

    @property
    def share(self) -> float:
        """The median of noise over run time, in percent."""
        return median(100 * noise / took for noise, took in zip(self.accumulated, self.took))


def scales(bench: Bench) -> dict[tuple[int, str], Scaled]:
    """One problem shared out to 1 to 8 ranks, unbound and bound, in rounds of random order."""
    launch = bench.mpi_program(HERE / "kernels/sweep.c")
    if not launch:
        return {}
    launcher, program = launch[0], launch[-1]
    iterations, shape, blocks, size, turns = SCALED
    found = {(ranks, how): Scaled([], []) for how in SETS for ranks in SCALES}
    for _ in rounds("1 to 8 ranks", SCALE_ROUNDS, SCALE_S, least=3):
        for ranks, how in random.sample(list(found), len(found)):
            shutil.rmtree(bench.folder / "run", ignore_errors=True)
            bind = ["--bind-to", "core:overload-allowed"] if SETS[how] else ["--bind-to", "none"]
            start = [launcher, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", *bind, "-n", str(ranks), program]
            command = [*start, iterations, shape, blocks, size, str(turns // ranks)]
            ran = bench.run(bench.quell, "-q", "trace", "-o", "run", "--sources", "on", "--", *command)
            found[ranks, how].took.append(float(ran.stdout.split()[0]) / 1e6)
            found[ranks, how].accumulated.append(max(tracked(bench.document("track", "run")).whole))
    return found


def scales_table(found: dict[tuple[int, str], Scaled]) -> str:
    """Figure 8, over the scales that there are."""
    cells = [
        [how, str(ranks), f"{median(one.took):,.0f}", f"{median(one.accumulated):,.1f}", f"{one.share:.1f}"]
        for (ranks, how), one in found.items()
    ]
    return table(["ranks", "number", "took, ms", "accumulated noise, ms", "of the run time, %"], cells, "lr")


def real_table(found: dict[tuple[str, str], list[Tracked]]) -> str:
    """Figures 4, 5 to 9, on two ranks."""
    cells = []
    for (name, how), runs in found.items():
        local, accumulated = middle(runs, "local"), middle(runs, "accumulated")
        ratio = median(ratio for run in runs for ratio in run.ratios)
        whole = max(1e-9, median(max(run.whole) for run in runs))
        orthogonal = median(run.orthogonal for run in runs)
        figures = [f"{local[source]:.2f} / {accumulated[source]:.2f}" for source in SOURCES]
        cells.append([name, how, *figures, f"{whole:.2f}", f"{ratio:.2f}", f"{orthogonal:.2f}"])
    header = [
        "program",
        "ranks",
        *(f"{source}, ms" for source in SOURCES),
        "all, ms",
        "amplification",
        "orthogonal sum",
    ]
    return table(header, cells, "llr")


def simulated_table(found: dict[tuple[int, str], Tracked]) -> str:
    """Figures 5 and 6 at the paper's sizes."""
    cells = []
    for (ranks, source), run in found.items():
        low, high = run.ratios[0], run.ratios[-1]
        cells.append(
            [str(ranks), source, f"{median(run.whole_local):.3f}", f"{max(run.whole):.3f}", f"{low:.2f} to {high:.2f}"]
        )
    return table(
        ["ranks", "source", "local, ms (median)", "accumulated, ms (most)", "amplification ratio"], cells, "rlr"
    )


def draw(found: dict[tuple[str, str], list[Tracked]], made: dict[tuple[int, str], Tracked]) -> None:
    """Local noise of each program by source; ratios sorted, at 32 and 128 ranks; composition."""
    figure, (profile, ratios, composition) = panels(1, 3, (13, 4.2))
    names = [f"{name}\n{how}" for name, how in found]
    bottom = [0.0] * len(names)
    for at, source in enumerate(SOURCES):
        local = [middle(runs, "local")[source] for runs in found.values()]
        places = [name + (at - 2) * 0.16 for name in range(len(names))]
        profile.bar(places, local, width=0.16, color=COLOURS[source], label=source)
        accumulated = [middle(runs, "accumulated") for runs in found.values()]
        heights = [one[source] / (sum(one.values()) or 1) for one in accumulated]
        composition.bar(range(len(names)), heights, bottom=bottom, color=COLOURS[source], label=source)
        bottom = [low + height for low, height in zip(bottom, heights)]
    profile.set_yscale("log")
    profile.set_ylabel("noise of a rank, ms")
    profile.set_title("Figure 4: local noise, two real ranks", fontsize=10)
    composition.set_ylabel("share of what accumulated")
    composition.set_title("Figures 7 and 9: composition, two real ranks", fontsize=10)
    for axes in (profile, composition):
        axes.set_xticks(range(len(names)), names, fontsize=7)
        if found:
            axes.legend(fontsize=7)
    for (ranks, source), run in made.items():
        places = [(at + 1) / len(run.ratios) for at in range(len(run.ratios))]
        line = "-" if ranks == RANKS[0] else "--"
        ratios.plot(places, run.ratios, color=COLOURS[source], linestyle=line, label=f"{source}, {ranks} ranks")
    ratios.axhline(1, color="black", linewidth=0.8)
    ratios.set_yscale("log")
    ratios.set_xlabel("ranks, sorted")
    ratios.set_ylabel("accumulated over local")
    ratios.set_title("Figure 6: amplification, simulated", fontsize=10)
    ratios.legend(fontsize=7)
    save(figure, "nataraj-2007-noise")


def at_scale(made: dict[tuple[int, str], Tracked], ranks: int) -> tuple[str, str]:
    """What accumulates, and the ratios, at a size."""
    runs = {source: run for (size, source), run in made.items() if size == ranks}
    accumulated = ", ".join(f"{source} {max(run.whole):.1f} ms" for source, run in runs.items())
    ratios = ", ".join(f"{source} {median(run.ratios):.1f}" for source, run in runs.items() if run.ratios)
    return accumulated, ratios


def scale_rows(made: dict[tuple[int, str], Tracked]) -> list[Row]:
    """Figures 5 and 6 at the paper's sizes, of the bulk-synchronous program."""
    accumulated, ratios = zip(*(at_scale(made, ranks) for ranks in RANKS))
    alone = "One source at a time, at this machine's period and mean, under a bulk-synchronous program."
    return [
        Row(NATARAJ, "Fig. 5", FIVE, f"simulated, 32, 128 ranks: {accumulated[0]}; {accumulated[1]}", DIFFERS, alone),
        Row(NATARAJ, "Fig. 6", SIX, f"simulated, medians: 32 ranks {ratios[0]}; 128 ranks {ratios[1]}", DIFFERS, alone),
    ]


def scales_row(found: dict[tuple[int, str], Scaled]) -> Row:
    """Figure 8: noise over run time, base next to pinned, as ranks grow."""
    if not found:
        return Row(NATARAJ, "Fig. 8", EIGHT, "", NOT_HERE, "There is no MPI here.")
    said = "; ".join(f"{how}: {', '.join(f'{found[ranks, how].share:.1f}' for ranks in SCALES)}" for how in SETS)
    less = [ranks for ranks in SCALES if found[ranks, "pinned"].share < found[ranks, "base"].share]
    return Row(
        NATARAJ,
        "Fig. 8",
        EIGHT,
        f"noise over run time, %, at {', '.join(map(str, SCALES))} ranks of a sweep: {said}",
        IN_SHAPE if less == SCALES else FAILED,
        f"Pinned ranks have less at {len(less)} of {len(SCALES)} scales. Above two they share two CPUs: the run time "
        "does not shrink, and what strikes a CPU that a rank gave away is not that rank's noise.",
    )


def real_rows(found: dict[tuple[str, str], list[Tracked]]) -> list[Row]:
    """Figures 4 and 6 to 9 of two ranks."""
    if not found:
        why = "Real ranks could not be traced with counters here: no MPI, or no eBPF (`quell doctor`)."
        return [Row(NATARAJ, f"Fig. {number}", "", "", NOT_HERE, why) for number in (4, 8, 9)]
    local = {key: middle(runs, "local") for key, runs in found.items()}
    sweep = {how: found["sweep", how] for how in SETS}
    whole = {how: median(sum(run.whole) / len(run.whole) for run in runs) for how, runs in sweep.items()}
    shares = {how: percent(middle(runs, "accumulated"), whole[how]) for how, runs in sweep.items()}
    ratio = median(one for run in sweep["base"] for one in run.ratios)
    sums = {how: median(run.orthogonal for run in runs) for how, runs in sweep.items()}
    two = "Two ranks on one virtual machine: `task` is what else runs there, and a partner absorbs little."
    profiles = "; ".join(
        f"{name} {how}: tick {local[name, how]['tick']:.2f}, task {local[name, how]['task']:.1f} ms"
        for name in ("LU", "CG")
        for how in SETS
    )
    four = "local ticks even over ranks, timer_interrupt and schedule not; pinned: one rank in four has more"
    seven = "orthogonal sum 1.35 at 32 ranks, over half overlaid at 128"
    nine = "pinned: schedule no longer dominates, no source does"
    bound = f"two real ranks, bound over unbound: {whole['pinned'] / max(1e-9, whole['base']):.2f} times the noise"
    return [
        Row(NATARAJ, "Fig. 4", four, profiles, NOT_HERE, "Two ranks, so no pattern of four; one kind of tick here."),
        Row(
            NATARAJ,
            "Fig. 6",
            "overall ratio below 1 for most of 32 ranks",
            f"two real ranks: {ratio:.2f}",
            NOT_HERE,
            two,
        ),
        Row(NATARAJ, "Fig. 7", seven, f"two real ranks: {shares['base']}; sum {sums['base']:.2f}", NOT_HERE, two),
        Row(NATARAJ, "Fig. 8", EIGHT, bound, NOT_HERE, two),
        Row(
            NATARAJ,
            "Fig. 9",
            nine,
            f"two ranks, bound: {shares['pinned']}; sum {sums['pinned']:.2f}",
            NOT_HERE,
            two,
        ),
    ]


def make(bench: Bench) -> list[Row]:
    """Measures and simulates everything, and writes the page and the figure."""
    found = real(bench)
    say("sources of this machine")
    kinds = sources_here(bench)
    say("at scale")
    made = {(ranks, kind): simulated(bench, ranks, *kinds[kind]) for ranks in RANKS for kind in kinds}
    kept = [kind for kind in PATTERNS if kind in kinds]
    sweeps = {key: swept(bench, schedule, key[1], kept) for key, schedule in schedules(bench).items()}
    scaled = scales(bench)
    draw(found, made)
    parts = [INTRODUCTION, "![Noise by source, amplification, composition](nataraj-2007-noise.svg)", HOW]
    if found:
        parts += ["## Two real ranks: local / accumulated noise of a rank, medians of runs", real_table(found)]
    if sweeps:
        parts += ["## Wavefronts of 32 and 128 ranks, from traces of nine (Figures 5 and 6)", EXTRAPOLATED]
        parts += [
            swept_table(sweeps),
            "## Each source alone, and without it (Figure 7)",
            COMPOSED,
            composed_table(sweeps),
        ]
    if scaled:
        parts += ["## Base and pinned over scales (Figure 8)", OVER_SCALES, scales_table(scaled)]
    parts += ["## A simulated bulk-synchronous program, one source at a time", simulated_table(made), WHY]
    write_page("nataraj-2007-noise", "Nataraj 2007, Figures 4 to 9", parts)
    return [*scale_rows(made), *swept_rows(sweeps), scales_row(scaled), *real_rows(found)]


if __name__ == "__main__":
    sys.exit(main("nataraj-2007-noise", 300, __doc__, make))
