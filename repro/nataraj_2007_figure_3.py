"""Draws Figure 3 of Nataraj et al. (SC 2007) anew: runs with noise, what is left of them without it, and quiet runs.

Usage: nataraj_2007_figure_3.py QUELL, where QUELL is the program to run. Writes nataraj-2007-figure-3.md and
nataraj-2007-figure-3.svg next to this script. The simulated part needs a minute; the part on real ranks needs an MPI
and some minutes more, and no two of its runs give the same figures. Eight ranks run on hosts of their own, which only
root makes.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt
from report import FAILED, NOT_HERE, REPRODUCED, Row, factor, main, say, table, write_page
from report import Bench as Scratch
from report.hosts import HEAD, hosts, lacking
from report.papers import NATARAJ

HERE = Path(__file__).resolve().parent
LEVELS = {"1 %": "10us", "5 %": "50us", "10 %": "100us"}
COLOURS = {"1 %": "#0072B2", "5 %": "#D55E00", "10 %": "#009E73"}
RANKS = [32, 64, 128, 256, 512, 1024, 2048]
TOTAL_NS = 64_000_000
PHASES = 300
REAL_QUANTUM_NS = 1_000_000
# Of each level.
REAL_S = 40
BLOCK_PHASES = 20
# Eight ranks: the paper's noise, and its phases at 32 ranks, this many times as slow.
SLOWER, CLOCK_QUANTUM_NS = 1000, 2_000_000_000
EIGHT_S, EIGHT_LEAST_S = 150, 56
TURNS_S = 20
PAPER_RE = 1.06
PAPER = f"worst %RE {PAPER_RE}, at 1 % of noise, 32 to 2,048 processors; %NE steady over scales"
# What the intervals of %RE have to exclude.
LIMIT = 2

INTRODUCTION = """\
A bulk-synchronous program, phases of work and an all-reduce, under noise of a thousand detours a second. What the
analysis of its trace says that the noise cost is taken off its run time; what is left is held against the run
without noise. After Nataraj, Morris, Malony, Sottile & Beckman, *The Ghost in the Machine*, SC 2007, section 4.1.
The paper's words: %RE is (run time without noise - compensated) / without noise, %NE is (what noise added -
accumulated noise) / what it added. The paper's worst %RE is 1.06, at 1 % of noise. Written by
`nataraj_2007_figure_3.py`; do not edit.
"""

SIMULATED = """\
Strong scaling as in the paper: 64 ms of work a phase, shared by the ranks; 300 phases, not 10,000; the all-reduce
takes 5 us after the last rank has come. Noise strikes ranks while they work, wait, and leave, each rank at its own
place in the millisecond. `quell generate-run` makes the run and knows what it takes without noise.
"""

REAL = """\
Two ranks of the program in `nataraj_2007/bsp.c`, each bound to a CPU, phases of {quantum:g} ms, `quell trace` around
`quell replay --interleave`, on this machine. The noise is in one of each two blocks of {block} phases, in random
order, within one run; the blocks without are the paper's noise-free run, with the injector and the tracer in it as
well. *Added* is what the blocks with noise took more, *accumulated* what the tracked trace says the noise cost the
rank that it cost most; behind each figure stands its 95 % interval, which comes from the pairs of blocks.
"""


EIGHT = """\
A rank on each of eight hosts with networks of their own (namespaces on this machine), which talk TCP and share its
{cpus} CPUs. What eight ranks do at once on two CPUs cannot take CPU time. So *eight, by the clock* work until the clock
has gone on by {quantum:g} s, and give their CPU away in the meantime; the noise burns by the clock, too. Noise and
phases are {slower:,} times as slow as the paper's at 32 ranks, with two detours in a phase, because a CPU that ranks
burn on goes from one to the next at ticks only, which makes a burst some milliseconds longer. *Eight, in turns* have
work that takes CPU time. Then a rank's noise delays those that share its CPU: up to {sharing} times as much is added.
The analysis, like the paper's, knows of ranks with a CPU each and accumulates it once.
"""

POWER = """\
Half of the 95 % interval of %RE shrinks with the square root of the pairs. From what the pairs above strayed: how many
pairs, and how many minutes of this run, it takes until the interval excludes ±{limit}. Where %RE itself is beyond that,
no length does it.
"""


@dataclass(frozen=True)
class Job:
    """Ranks of the program, and how they are started."""

    name: str
    launch: list[str]
    # What comes after the number of phases.
    work: list[str]
    phase_ns: float
    seconds: float
    block: int
    # What comes before a command, to run it on a host.
    before: list[str] = field(default_factory=list)
    slower: int = 1


@dataclass
class Interleaved:
    """What one run with blocks of noise gave, in percent of its time without."""

    pairs: int
    injected: float
    added: float
    low: float
    high: float
    accumulated: float
    pair_s: float

    @property
    def half(self) -> float:
        """Half of the interval of %RE."""
        return (self.high - self.low) / 2

    def pairs_to_exclude(self, limit: float) -> float | None:
        """How many pairs it takes until the interval of %RE excludes this; nothing where no number does."""
        room = limit - abs(self.runtime[0])
        return self.pairs * (self.half / room) ** 2 if room > 0 else None

    @property
    def runtime(self) -> tuple[float, float, float]:
        """%RE, and its interval."""
        return self.accumulated - self.added, self.accumulated - self.high, self.accumulated - self.low

    @property
    def noise(self) -> tuple[float, float, float]:
        """%NE, and its interval, which has no end where nothing may have been added."""

        def error(added: float) -> float:
            return 100 * (1 - self.accumulated / added) if self.low > 0 else -math.inf

        return 100 * (1 - self.accumulated / self.added), error(self.low), error(self.high)


@dataclass
class Errors:
    """What came of a run with noise next to one without."""

    quiet_ns: float
    noisy_ns: float
    compensated_ns: float

    @property
    def runtime(self) -> float:
        """%RE."""
        return 100 * (self.quiet_ns - self.compensated_ns) / self.quiet_ns

    @property
    def noise(self) -> float:
        """%NE."""
        added = self.noisy_ns - self.quiet_ns
        return 100 * (added - (self.noisy_ns - self.compensated_ns)) / added if added else float("nan")


@dataclass(frozen=True)
class Bench(Scratch):
    """Makes runs, simulated and real."""

    launch: list[str] = field(default_factory=list)

    def simulated(self, ranks: int, detour: str) -> Errors:
        """A simulated run, tracked."""
        archive = self.folder / "simulated"
        shutil.rmtree(archive, ignore_errors=True)
        size = ["--ranks", str(ranks), "--phases", str(PHASES), "--quantum", f"{TOTAL_NS // ranks}ns"]
        words = ["generate-run", *size, "--detour", detour, "-o", str(archive)]
        made = json.loads(self.run(self.quell, "-q", *words).stdout)
        tracked = self.document("track", str(archive))
        return Errors(made["quiet_runtime_ns"], made["runtime_ns"], tracked["compensated_runtime_ns"])

    def turns(self) -> int:
        """How many turns the quantum of the program has."""
        turns, phases = 1_000_000, 500
        printed = self.run(*self.launch, str(phases), str(turns)).stdout
        took = next(float(line) for line in printed.split() if line.isdigit())
        return round(turns * REAL_QUANTUM_NS / (took / phases))

    def real(self, job: Job, detour: str) -> Interleaved:
        """A traced run with noise in one of each two blocks."""
        archive, replayed = self.folder / "real", self.folder / "replayed"
        shutil.rmtree(archive, ignore_errors=True)
        shutil.rmtree(replayed, ignore_errors=True)
        model = HERE / "models" / f"nataraj-2007-{detour}.toml"
        phases = round(job.seconds * 1e9 / job.phase_ns)
        noise = [self.quell, "-q", "replay", str(model), f"--interleave={job.block}", "--scale", str(job.slower)]
        words = [*noise, "-o", str(replayed), "--", *job.launch, str(phases), *job.work]
        self.run(*job.before, self.quell, "-q", "trace", "-o", str(archive), "--sources", "off", "--", *words)
        found = json.loads((replayed / "replay.json").read_text(encoding="utf-8"))["interleaved"]
        pairs = len(found["pairs_percent"])
        accumulated_ns = max(rank["accumulated_ns"] for rank in self.document("track", str(archive))["ranks"])
        block_ns = job.block * found["phase_ns"]
        added, low, high = (found[f"{which}_percent"] for which in ("slowdown", "low", "high"))
        pair_s = block_ns * (2 + added / 100) / 1e9
        accumulated = 100 * accumulated_ns / (pairs * block_ns)
        return Interleaved(pairs, found["noise_percent"], added, low, high, accumulated, pair_s)


def simulated_table(found: dict[tuple[int, str], Errors]) -> str:
    """All simulated runs."""
    lines = [
        "| ranks | work, us | noise | with noise, s | compensated, s | without, s | %RE | %NE |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for (ranks, level), errors in found.items():
        lines.append(
            f"| {ranks:,} | {TOTAL_NS / ranks / 1000:g} | {level} | {errors.noisy_ns / 1e9:.4f} "
            f"| {errors.compensated_ns / 1e9:.4f} | {errors.quiet_ns / 1e9:.4f} "
            f"| {errors.runtime:.3f} | {errors.noise:.3f} |"
        )
    return "\n".join(lines)


def ranged(figures: tuple[float, float, float]) -> str:
    """A figure, and its interval behind it."""
    middle, low, high = figures
    if math.isinf(low):
        return f"{middle:.2f} (no interval)"
    return f"{middle:.2f} ({min(low, high):.2f} to {max(low, high):.2f})"


def real_table(found: dict[tuple[str, str], Interleaved]) -> str:
    """A row for each job and level."""
    header = ["ranks", "noise", "pairs of blocks", "injected, %", "added, %", "accumulated, %", "%RE", "%NE"]
    rows = []
    for (name, level), run in found.items():
        added = ranged((run.added, run.low, run.high))
        figures = [f"{run.pairs}", f"{run.injected:.2f}", added, f"{run.accumulated:.2f}"]
        rows.append([name, level, *figures, ranged(run.runtime), ranged(run.noise)])
    return table(header, rows, "lr")


def power_table(found: dict[tuple[str, str], Interleaved]) -> str:
    """How long it takes until the intervals are narrow enough."""
    header = ["ranks", "noise", "half of the interval", "pairs", "minutes", "pairs it takes", "minutes it takes"]
    rows = []
    for (name, level), run in found.items():
        needed = run.pairs_to_exclude(LIMIT)
        takes = ["none does", ""] if needed is None else [f"{needed:,.1f}", f"{needed * run.pair_s / 60:,.2f}"]
        ran = [f"{run.half:.2f}", str(run.pairs), f"{run.pairs * run.pair_s / 60:.2f}"]
        rows.append([name, level, *ran, *takes])
    return table(header, rows, "lr")


def draw(found: dict[tuple[int, str], Errors], path: Path) -> None:
    """The paper's three plots."""
    mpl.rcParams.update({"svg.hashsalt": "quell", "svg.fonttype": "none", "font.family": "sans-serif"})
    figure, (times, runtime, noise) = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for level, colour in COLOURS.items():
        of = [found[ranks, level] for ranks in RANKS]
        times.plot(RANKS, [one.noisy_ns / 1e9 for one in of], color=colour, marker="o", label=f"with {level}")
        times.plot(
            RANKS, [one.compensated_ns / 1e9 for one in of], color=colour, linestyle="--", label=f"{level} compensated"
        )
        runtime.plot(RANKS, [one.runtime for one in of], color=colour, marker="o", label=level)
        noise.plot(RANKS, [one.noise for one in of], color=colour, marker="o", label=level)
    times.plot(
        RANKS, [found[ranks, "1 %"].quiet_ns / 1e9 for ranks in RANKS], color="black", linewidth=1, label="no noise"
    )
    runtime.axhspan(-PAPER_RE, PAPER_RE, color="#eeeeee", label="the paper's worst")
    for axes, name in ((times, "run time, s"), (runtime, "%RE"), (noise, "%NE")):
        axes.set_xscale("log", base=2)
        axes.set_xticks(RANKS, [str(ranks) for ranks in RANKS], rotation=45)
        axes.set_xlabel("ranks")
        axes.set_title(name, fontsize=10)
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.legend(fontsize=7)
    times.set_yscale("log")
    noise.set_ylim(-5, 5)
    figure.savefig(path, metadata={"Date": None})


TWO, BY_CLOCK, IN_TURNS = "two", "eight, by the clock", "eight, in turns"


def real_row(name: str, found: dict[tuple[str, str], Interleaved]) -> Row:
    """The errors of real ranks next to the paper's."""
    runs = {level: run for (job, level), run in found.items() if job == name}
    errors = ", ".join(ranged(run.runtime) for run in runs.values())
    noise = ", ".join(ranged(run.noise) for run in runs.values())
    ours = f"real ranks, {name}, {', '.join(runs)}: %RE {errors}; %NE {noise}"
    # A claim has to hold at the end of the interval that is against it.
    worst = max(abs(run.runtime[0]) for run in runs.values())
    end = max(abs(end) for run in runs.values() for end in run.runtime)
    verdict = REPRODUCED if worst <= PAPER_RE and end < LIMIT else FAILED
    if name == TWO:
        why = "Two ranks, not 32 and more. Blocks with noise and without within one run, for two runs stray by more."
    elif name == BY_CLOCK:
        why = f"Eight ranks on eight hosts of one machine; work and noise by the clock, both {SLOWER:,} times as slow. "
        needed = [run.pairs_to_exclude(LIMIT) for run in runs.values()]
        minutes = [pairs * run.pair_s / 60 for pairs, run in zip(needed, runs.values()) if pairs is not None]
        if end < LIMIT:
            why += f"All intervals exclude ±{LIMIT}."
        elif None in needed:
            why += f"No length of the run makes all intervals exclude ±{LIMIT}, because %RE is beyond it."
        else:
            why += f"It takes {max(minutes):,.1f} minutes a level until all intervals exclude ±{LIMIT}."
    else:
        verdict = NOT_HERE
        why = (
            f"Eight ranks whose work takes CPU time share {os.cpu_count()} CPUs, so a rank's noise delays the others "
            "on its CPU. The analysis takes ranks to have a CPU each, as the paper's had."
        )
    return Row(NATARAJ, "Fig. 3", PAPER, ours, verdict, why)


def table_rows(worst: float, real: dict[tuple[str, str], Interleaved], missing: str) -> list[Row]:
    """The errors next to the paper's."""
    why = "Circular: the same rules put the noise into simulated runs and take it out. It shows that they are inverse."
    rows = [Row(NATARAJ, "Fig. 3", PAPER, f"simulated ranks: worst %RE {worst:.3f}", NOT_HERE, why)]
    rows += [real_row(name, real) for name in dict.fromkeys(name for name, _ in real)]
    return rows + ([Row(NATARAJ, "Fig. 3", PAPER, "", NOT_HERE, missing)] if missing else [])


def eight(bench: Bench, program: str, turns: int) -> dict[tuple[str, str], Interleaved]:
    """Eight ranks on hosts of their own, both ways."""
    found = {}
    with hosts(bench.folder, 8) as made:
        before, launch = made.on(HEAD), [*made.launch(), program]
        sharing = 8 // (os.cpu_count() or 1)
        seconds = max(EIGHT_LEAST_S, EIGHT_S * factor())
        clock = [str(CLOCK_QUANTUM_NS), "clock"]
        jobs = [
            Job(BY_CLOCK, launch, clock, CLOCK_QUANTUM_NS, seconds, 1, before, SLOWER),
            Job(IN_TURNS, launch, [str(turns)], sharing * REAL_QUANTUM_NS, TURNS_S * factor(), BLOCK_PHASES, before),
        ]
        for job in jobs:
            for level, detour in LEVELS.items():
                say(f"{job.name}, {level}")
                found[job.name, level] = bench.real(job, detour)
    return found


def make(scratch: Scratch) -> list[Row]:
    """Runs everything and writes the page."""
    launch = scratch.mpi_program(HERE / "nataraj_2007" / "bsp.c", "core")
    bench = Bench(scratch.quell, scratch.folder, launch or [])
    simulated = {(ranks, level): bench.simulated(ranks, detour) for ranks in RANKS for level, detour in LEVELS.items()}
    real: dict[tuple[str, str], Interleaved] = {}
    missing = "" if launch else "There is no MPI here."
    if launch:
        turns = bench.turns()
        job = Job(TWO, launch, [str(turns)], REAL_QUANTUM_NS, REAL_S * factor(), BLOCK_PHASES)
        for level, detour in LEVELS.items():
            say(f"{job.name} real ranks, {level}")
            real[job.name, level] = bench.real(job, detour)
        missing = f"Eight ranks on hosts of their own: {lacking()}." if lacking() else ""
        if not missing:
            real |= eight(bench, launch[-1], turns)
    draw(simulated, HERE / "nataraj-2007-figure-3.svg")
    worst = max(abs(errors.runtime) for errors in simulated.values())
    real_words = REAL.format(quantum=REAL_QUANTUM_NS / 1e6, block=BLOCK_PHASES)
    cpus = os.cpu_count() or 1
    eight_words = EIGHT.format(cpus=cpus, quantum=CLOCK_QUANTUM_NS / 1e9, slower=SLOWER, sharing=8 // cpus)
    parts = [
        INTRODUCTION,
        "![Run times and errors over ranks](nataraj-2007-figure-3.svg)",
        "## Simulated ranks",
        SIMULATED,
        f"The worst %RE is {worst:.3f}; the paper's {PAPER_RE}.",
        simulated_table(simulated),
        "## Real ranks",
        real_words if real else missing,
    ]
    if real:
        parts += [missing or eight_words, real_table(real), POWER.format(limit=LIMIT), power_table(real)]
    write_page("nataraj-2007-figure-3", "Nataraj 2007, Figure 3", parts)
    return table_rows(worst, real, missing)


if __name__ == "__main__":
    sys.exit(main("nataraj-2007-figure-3", 780, __doc__, make))
