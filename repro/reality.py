"""Holds predictions against reality: the slowdown of MPI programs under injected noise, measured, predicted, simulated.

Usage: reality.py QUELL, where QUELL is the program to run. Writes reality.md and reality.svg next to this script.

QUELL_REPRO_ONLY=TEXT measures only the programs whose names contain the text, such as `HPCC`, and keeps the figures of
the others, which each have the date and the machine that they were measured on.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt
from report import Bench, Row, effort, factor, main, processor, say, table, today, write_page
from slowdowns import AGAIN_TITLE, FIGURES, WHERE, Cell, Interval, mean, read_cells, tables
from slowdowns.programs import MELT, PROGRAMS, Program

HERE = Path(__file__).resolve().parent
LEVELS = (1, 5, 10)
PERIOD_NS = 10_000_000
QUANTUM_NS = 2_000_000
BLOCK_NS = 40_000_000
# How long a program runs under noise, in s, and in its trace.
RUN_S, TRACE_S = 8, 2
SEEDS = range(1, 6)
# Runs of one program under a regular noise of 1 kHz, each with places of its own.
REPEATS = 10

INTRODUCTION = """\
Noise of a known kind is injected into two ranks of real MPI programs on this machine, and the slowdown is measured
within one run: blocks of phases with noise and without take turns in random order (`quell replay --interleave`). Next
to it stands what `quell predict` says from the noise and the length of a phase alone, and what `quell simulate` says
from a trace of the program without noise (`quell trace`, `quell track --goal`) with the network that `quell bench
loggp` measured. No figure is fitted to another. Written by `reality.py`; do not edit.
"""

AGAIN_HEAD = ["noise", "measured, % (all runs)", "95 % intervals", "predicted, %", "off", "within the intervals"]
AGAIN = """\
The loop with an all-reduce under 10, 50 and 100 us a thousand times a second (Nataraj et al.), each run with places
of its own, held against the prediction for the length of the phase in that run.
"""

READING = """\
- **measured** is the slowdown in percent with its 95 % interval. A core whose speed strays is as fast in both blocks of
  a pair.
- **predicted** and **simulated** are the means of {seeds} seeds, with the intervals of the means. At two ranks, what a
  periodic noise costs depends on where the two ranks are in it, which each block and each seed draws anew.
- **off** is measured less predicted (or simulated), in points of slowdown; **units** is the same in half-widths of both
  95 % intervals together: up to 1 is agreement.
- `predict` knows programs that wait for all ranks after each phase. The wavefront does not, so it has no prediction.
- All predictions have `predict`'s default end of a phase, `max`: all wait for the slowest rank, at no further cost. The
  rows of *bsp, barrier* hold it against reality by itself, for a barrier of two ranks in one memory takes less than a
  thousandth of the phase. In the other rows it stands for an all-reduce, or for a program's own mixture.
- *HPCC* is the whole suite, whose PTRANS has a long list of matrix sizes and block sizes. A phase ends at a barrier,
  and nearly all barriers are PTRANS's: one for each of the transposes, five for each pair of sizes. HPL cannot be cut
  into blocks: it only sends and receives. However many systems it solves, it makes no call that all ranks make
  together, so nothing tells the ranks to switch at the same place. HPL and the other parts are in the run and in the
  trace once each.
"""


def run_s() -> float:
    """How long a program runs under noise, in s."""
    return max(4.0, RUN_S * factor())


@dataclass
class Machine:
    """The machine with its programs, noises and network."""

    bench: Bench
    launch: list[str]
    programs: dict[str, list[str]] = field(default_factory=dict)
    iterations_a_second: dict[str, float] = field(default_factory=dict)
    phases_an_iteration: dict[str, float] = field(default_factory=dict)

    @cached_property
    def turns(self) -> int:
        """Turns of the loop that take a quantum."""
        program = self.bench.compiled(HERE / "kernels/loop.c", compiler="mpicc")
        found = self.replay([*self.launch, program, "500", "1000000", "barrier", "8"], self.silent)
        took = max(rank["span_ns"] for rank in found["processes"])
        return round(1_000_000 * QUANTUM_NS * 500 / took)

    @cached_property
    def silent(self) -> str:
        """A noise that is next to none."""
        return self.model("silent", 'periodic = { period = "5s" }', 'constant = "1us"')

    def replay(self, command: list[str], *words: str) -> dict:
        """A command under noise."""
        return json.loads(self.bench.run(self.bench.quell, "-q", "replay", "--json", *words, "--", *command).stdout)

    def model(self, name: str, arrivals: str, duration: str) -> str:
        """Writes a noise model; its path."""
        text = f'name = "{name}"\nspan = "60s"\n[[component]]\n{arrivals}\nduration = {{ {duration} }}\n'
        path = self.bench.folder / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def noises(self) -> dict[tuple[str, int], str]:
        """Every kind of noise at every level."""
        found = {}
        for level in LEVELS:
            length = f'"{PERIOD_NS * level // 100}ns"'
            found["periodic", level] = self.model(
                f"periodic-{level}", 'periodic = { period = "10ms", phase = "random" }', f"constant = {length}"
            )
            found["Poisson", level] = self.model(
                f"poisson-{level}", 'poisson = { rate = "100/s" }', f"exponential = {{ mean = {length} }}"
            )
            found["recorded", level] = self.recorded(level)
        return found

    def recorded(self, level: int) -> str:
        """A recording of CPU 1 next to a task that takes about this share of it."""
        busy = f"""import os, random, time
os.sched_setaffinity(0, [1])
while True:
    time.sleep(random.expovariate(1 / 0.01))
    until = time.perf_counter() + {level} * 1e-4
    while time.perf_counter() < until:
        pass
"""
        path = str(self.bench.folder / f"recorded-{level}.quell")
        disturber = subprocess.Popen([sys.executable, "-c", busy])
        words = ["--cpus", "1", "--duration", f"{max(5, effort(20))}s", "--sources", "off", "-o", path]
        try:
            self.bench.run(self.bench.quell, "-q", "record", *words)
        finally:
            disturber.kill()
            disturber.wait()
        return path

    def prepare(self, program: Program) -> bool:
        """Builds a program and finds out how long its iterations are; whether it is there."""
        if program.source.endswith(".c"):
            path = self.bench.compiled(HERE / "kernels" / program.source, compiler="mpicc")
        else:
            path = shutil.which(program.source) or ""
        if not path:
            return False
        self.programs[program.name] = [path]
        wanted = 4
        first = self.size(program, wanted)
        while True:
            wanted *= 4
            last = self.size(program, wanted)
            # What comes before and after the iterations is in both.
            iterations, span_s, phases = (high - low for high, low in zip(last, first))
            if span_s > 1:
                break
        self.iterations_a_second[program.name] = iterations / span_s
        self.phases_an_iteration[program.name] = phases / iterations
        return True

    def size(self, program: Program, wanted: int) -> tuple[int, float, int]:
        """How many iterations, seconds and phases a run of about as many iterations has."""
        iterations, command = self.command(program, wanted)
        found = self.replay(command, self.silent, *self.options(program))
        span_ns = max(rank["span_ns"] for rank in found["processes"])
        return iterations, span_ns / 1e9, found["processes"][0]["phases"]

    def options(self, program: Program) -> list[str]:
        """What says where its phases end; phases are only counted there."""
        return ["--sync", "phase", *(["--phase-at", program.phase_at] if program.phase_at else [])]

    def command(self, program: Program, iterations: int) -> tuple[int, list[str]]:
        """What starts two ranks of it, for about this number of iterations; and how many they are."""
        start = [*self.launch, *self.programs[program.name], *program.before]
        if program.input:
            return program.input(self.bench.folder, iterations), start
        after = [str(self.turns) if word == "TURNS" else word for word in program.after]
        return iterations, [*start, str(iterations), *after]

    def measured(self, program: Program, noise: str, seed: int) -> dict:
        """Its slowdown under a noise, by blocks of one run."""
        rate = self.iterations_a_second[program.name]
        # Blocks of whole iterations, for an iteration may have unlike phases.
        each = max(1, round(rate * BLOCK_NS / 1e9)) * max(1, round(self.phases_an_iteration[program.name]))
        words = [noise, f"--interleave={each}", "--seed", str(seed)]
        words += ["--phase-at", program.phase_at] if program.phase_at else []
        iterations = max(1, round(rate * run_s()))
        found = self.replay(self.command(program, iterations)[1], *words)
        return found["interleaved"]

    def predicted(self, noise: str, phase_ns: float) -> Interval:
        """What `predict` says of two ranks, each with this noise."""
        words = [noise, "--ranks", "2", "--quantum", f"{phase_ns:.0f}ns"]
        runs = [self.bench.document("predict", *words, "--seed", str(seed)) for seed in SEEDS]
        return mean([run["points"][0]["slowdown_percent"] for run in runs])

    def schedule(self, program: Program) -> str:
        """The program's schedule, from a trace without noise."""
        folder = f"trace-{program.name.split(',')[0].split(' ')[0]}-{len(list(self.bench.folder.glob('*.bin')))}"
        # What comes but once in a program counts for as much in a trace as in the run that it is held against.
        lasts = run_s() if program.input else TRACE_S
        iterations = max(2, round(self.iterations_a_second[program.name] * lasts))
        _, command = self.command(program, iterations)
        self.bench.run(self.bench.quell, "-q", "trace", "-o", folder, "--", *command)
        self.bench.run(self.bench.quell, "-q", "track", folder, "--goal", f"{folder}.bin")
        return f"{folder}.bin"

    def simulated(self, schedule: str, network: str, noise: str) -> Interval:
        """What `simulate` says of a schedule under a noise."""
        found = []
        for seed in SEEDS:
            words = [schedule, "--noise", noise, "--net", network, "--seed", str(seed), "--baseline"]
            run = self.bench.document("simulate", *words)
            found.append(100 * (run["max_ns"] / run["baseline"]["max_ns"] - 1))
        return mean(found)


def cells(machine: Machine, wanted: list[Program]) -> list[Cell]:
    """Every program under every noise, in random order."""
    bench = machine.bench
    bench.run(bench.quell, "-q", "bench", "loggp", "-n", "2", "-o", "net")
    network = str(bench.folder / "net" / "intra.toml")
    noises = machine.noises()
    programs = [program for program in wanted if machine.prepare(program)]
    schedules = {program.name: machine.schedule(program) for program in programs}
    jobs = [(program, kind, level) for program in programs for kind, level in noises]
    found = {}
    for number, (program, kind, level) in enumerate(random.sample(jobs, len(jobs))):
        say(f"{number + 1} of {len(jobs)}: {program.name} under {level} % of {kind} noise")
        noise = noises[kind, level]
        run = machine.measured(program, noise, seed=number + 1)
        predicted = machine.predicted(noise, run["phase_ns"]) if program.bulk else None
        simulated = machine.simulated(schedules[program.name], network, noise)
        half = (run["high_percent"] - run["low_percent"]) / 2
        measured = Interval(run["slowdown_percent"], half)
        pairs = len(run["pairs_percent"])
        found[program.name, kind, level] = Cell(
            program.name, kind, level, run["noise_percent"], run["phase_ns"], pairs, measured, predicted, simulated
        )
    return [found[program.name, kind, level] for program, kind, level in jobs]


def repeats(machine: Machine) -> list[Cell]:
    """One program under noise of 1 kHz, so that even short runs hold much of it, again and again."""
    program, found = PROGRAMS[1], []
    for number in range(max(3, effort(REPEATS))):
        for level in random.sample(LEVELS, len(LEVELS)):
            say(f"run {number + 1} of {program.name} under {level} % of noise at 1 kHz")
            noise = str(HERE / "models" / f"nataraj-2007-{10 * level}us.toml")
            run = machine.measured(program, noise, seed=number + 1)
            predicted = machine.predicted(noise, run["phase_ns"])
            half = (run["high_percent"] - run["low_percent"]) / 2
            measured = Interval(run["slowdown_percent"], half)
            pairs = len(run["pairs_percent"])
            found.append(
                Cell(
                    program.name,
                    "1 kHz",
                    level,
                    run["noise_percent"],
                    run["phase_ns"],
                    pairs,
                    measured,
                    predicted,
                    None,
                )
            )
    return found


def repeats_rows(found: list[Cell]) -> list[list[str]]:
    """A row for each level."""
    rows = []
    for level in LEVELS:
        cells = [cell for cell in found if cell.level == level]
        off = [cell.off(cell.predicted) for cell in cells if cell.predicted]
        halves = [cell.measured.half for cell in cells]
        measured = [cell.measured.value for cell in cells]
        rows.append(
            [
                f"{level} %",
                f"{statistics.median(measured):.2f} ({min(measured):.2f} to {max(measured):.2f})",
                f"± {statistics.median(halves):.2f}, at most {max(halves):.2f}",
                f"{statistics.median(cell.predicted.value for cell in cells if cell.predicted):.2f}",
                f"{statistics.median(points for points, _ in off):+.2f}",
                f"{sum(units <= 1 for _, units in off)} of {len(off)}",
            ]
        )
    return rows


def cell_table(found: list[Cell]) -> str:
    """A row for each program and noise."""
    rows = []
    for cell in found:
        if cell.line:
            rows.append(cell.line)
            continue
        others: list[str] = []
        for other in (cell.predicted, cell.simulated):
            if other is None:
                others += ["", "", ""]
                continue
            points, units = cell.off(other)
            others += [str(other), f"{points:+.2f}", f"{units:.1f}"]
        first = [cell.program, f"{cell.noise} {cell.level} %", f"{cell.injected:.2f}", f"{cell.phase_ns / 1000:,.0f}"]
        rows.append([*first, f"{cell.pairs}", str(cell.measured), *others])
    header = ["program", "noise", "injected, %", "phase, us", "pairs", "measured, %"]
    header += ["predicted, %", "off", "units", "simulated, %", "off", "units"]
    return table(header, rows, "llr")


def summary(found: list[Cell]) -> str:
    """How many figures agree, and the middle of how far they are off."""
    lines = []
    for what, others in (
        ("predicted", [(cell, cell.predicted) for cell in found if cell.predicted]),
        ("simulated", [(cell, cell.simulated) for cell in found if cell.simulated]),
    ):
        off = [cell.off(other) for cell, other in others if other]
        within = sum(units <= 1 for _, units in off)
        middle = statistics.median(abs(points) for points, _ in off)
        worst = max(abs(points) for points, _ in off)
        lines.append(
            f"- **{what}**: {within} of {len(off)} within the intervals; off by {middle:.2f} points in the middle and "
            f"{worst:.2f} at most."
        )
    half = statistics.median(cell.measured.half for cell in found)
    lines.append(f"- The measured interval is ± {half:.2f} points in the middle.")
    return "\n".join(lines)


def draw(found: list[Cell], path: Path) -> None:
    """Predicted and simulated over measured."""
    mpl.rcParams.update({"svg.hashsalt": "quell", "svg.fonttype": "none", "font.family": "sans-serif"})
    figure, both = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained", sharex=True, sharey=True)
    names = list(dict.fromkeys(cell.program for cell in found))
    for axes, what in zip(both, ("predicted", "simulated")):
        for number, name in enumerate(names):
            all_ = [(cell.measured, getattr(cell, what)) for cell in found if cell.program == name]
            points = [(measured, other) for measured, other in all_ if other]
            axes.errorbar(
                [measured.value for measured, _ in points],
                [other.value for _, other in points],
                xerr=[measured.half for measured, _ in points],
                yerr=[other.half for _, other in points],
                fmt="o",
                markersize=4,
                color=f"C{number}",
                label=name,
            )
        most = 1.1 * max(cell.measured.value for cell in found)
        axes.plot([0, most], [0, most], color="black", linewidth=0.8)
        axes.set_xlabel("measured slowdown, %")
        axes.set_ylabel(f"{what} slowdown, %")
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})


def make(bench: Bench) -> list[Row]:
    """Runs everything, or what is asked for, and writes the page."""
    launcher = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if not launcher or not shutil.which("mpicc"):
        write_page("reality", "Predictions against reality", [INTRODUCTION, "Not measured: there is no MPI here."])
        return []
    (bench.folder / "in.melt").write_text(MELT, encoding="utf-8")
    machine = Machine(bench, [launcher, "--bind-to", "core", "-n", "2"])
    only = os.environ.get("QUELL_REPRO_ONLY", "")
    new = cells(machine, [program for program in PROGRAMS if only in program.name])
    done = {cell.program for cell in new}
    lacking = [program.name for program in PROGRAMS if only in program.name and program.name not in done]
    old = [cell for cell in read_cells() if cell.program not in done] if only else []
    order = [program.name for program in PROGRAMS]
    found = sorted(old + new, key=lambda cell: order.index(cell.program))
    measured = {row[0]: row for row in tables(WHERE)} if only else {}
    measured |= {name: [name, today(), f"{processor()}, {os.cpu_count()} CPUs"] for name in done}
    again = tables(AGAIN_TITLE) if only else repeats_rows(repeats(machine))
    draw(found, HERE / "reality.svg")
    parts = [
        INTRODUCTION,
        summary(found),
        "![Predicted and simulated slowdown over the measured](reality.svg)",
        f"## {AGAIN_TITLE}",
        AGAIN,
        table(AGAIN_HEAD, again, "lr"),
        f"## {FIGURES}",
        READING.format(seeds=len(SEEDS)),
        cell_table(found),
        *([f"Not installed here, so not measured: {'; '.join(lacking)}."] if lacking else []),
        f"## {WHERE}",
        table(["program", "on", "machine"], [measured[name] for name in order if name in measured]),
    ]
    write_page("reality", "Predictions against reality", parts)
    return []


if __name__ == "__main__":
    sys.exit(main("reality", 960, __doc__, make))
