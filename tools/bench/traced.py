"""trace: what tracing costs an MPI program, LAMMPS with and without in turn, and a single call."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

from child import BenchError, run
from page import Limit, Result, figure

if TYPE_CHECKING:
    from run import Setting

PAIRS = 12
STEPS = 3300
CALLS = 100_000
TIMEOUT_S = 300.0
PAPER_PERCENT = 0.97
MOST_PERCENT = 1.0
MOST_NS = 300.0
HERE = Path(__file__).resolve().parent
# Open MPI refuses root unless both variables are set; threads would only compete with ranks.
AROUND = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
LAUNCH = ["mpirun.openmpi", "--bind-to", "none", "-n", "2"]
LOOP = re.compile(r"^Loop time of (\S+)", re.MULTILINE)
EVENTS = re.compile(r"(\d+) events")
MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 20 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 100
run ${steps}
"""
QUESTION = (
    "What `quell trace` (kernel recorder, container, tracer) adds to LAMMPS's own loop time on two ranks: a "
    "Lennard-Jones melt of 32,000 atoms for some 20 s, with and without in ABBA order, the median over pairs of "
    "their ratios. And what an enter or a leave of a traced call costs: MPI_Test on a receive that never comes "
    "writes two such records and a third. The paper next to it: Nataraj et al. 2007, Table 2, found 0.97 % for LU on "
    "16 nodes (minima of five runs); TAU and Score-P are in no package here."
)


def measure(setting: Setting) -> Result:
    """Runs the benchmark."""
    os.environ.update(AROUND)
    for program in ("mpirun.openmpi", "mpicc.openmpi", "lmp"):
        if not shutil.which(program):
            raise BenchError(f"there is no {program}; Debian has it in openmpi-bin, libopenmpi-dev or lammps")
    (setting.scratch / "melt.in").write_text(MELT, encoding="utf-8")
    melt = ["lmp", "-in", str(setting.scratch / "melt.in"), "-var", "steps", str(STEPS), "-log", "none"]
    pairs = setting.rounds or PAIRS
    seconds: dict[bool, list[float]] = {False: [], True: []}
    events = 0
    for pair in range(pairs):
        for traced in (False, True) if pair % 2 == 0 else (True, False):
            child = run(command(setting, [*LAUNCH, *melt], traced=traced), TIMEOUT_S).checked()
            loop = LOOP.search(child.stdout)
            if not loop:
                raise BenchError(f"`{child.line()}` printed no loop time")
            seconds[traced].append(float(loop.group(1)))
            events = max(events, *(int(count) for count in EVENTS.findall(child.stderr)), 0) if traced else events
        setting.say(f"trace: pair {pair + 1} of {pairs}: {seconds[False][-1]:.2f} s, traced {seconds[True][-1]:.2f} s")
    percents = [100 * (traced / bare - 1) for bare, traced in zip(seconds[False], seconds[True])]
    calls = {traced: call(setting, traced=traced) for traced in (False, True)}
    record = (calls[True] - calls[False]) / 2
    low, middle, high = quantiles(percents, n=4) if pairs > 1 else (percents[0],) * 3
    rows = [
        [
            "without, s",
            *(figure(value) for value in (min(seconds[False]), median(seconds[False]), max(seconds[False]))),
        ],
        ["traced, s", *(figure(value) for value in (min(seconds[True]), median(seconds[True]), max(seconds[True])))],
        ["added, % (quartiles of pairs)", *(f"{value:.2f}" for value in (low, middle, high))],
        ["MPI_Test, ns", "", figure(calls[False]), ""],
        ["MPI_Test traced, ns", "", figure(calls[True]), ""],
    ]
    limits = [
        Limit("LAMMPS, median of pairs", middle, MOST_PERCENT, " %"),
        Limit("an enter or a leave with 8 counters", record, MOST_NS, " ns"),
    ]
    notes = [
        f"{pairs} pairs; {events:,} events in a run; the paper's figure is {PAPER_PERCENT} %.",
        f"Minima: {100 * (min(seconds[True]) / min(seconds[False]) - 1):.2f} % added.",
    ]
    shown = [setting.quell, "trace", "-o", "RUN", "--", *LAUNCH, "lmp", "-in", "melt.in", "-var", "steps", STEPS]
    return Result(QUESTION, ["", "least", "middle", "most"], rows, limits, [" ".join(map(str, shown))], notes)


def command(setting: Setting, words: list[str], *, traced: bool) -> list[str]:
    """Runs a command, traced or not."""
    folder = setting.scratch / "run"
    shutil.rmtree(folder, ignore_errors=True)
    return [str(setting.quell), "trace", "-o", str(folder), "--", *words] if traced else words


def call(setting: Setting, *, traced: bool) -> float:
    """The cost of a call, in ns: the median of its rounds."""
    program = setting.scratch / "test_call"
    run(["mpicc.openmpi", "-O2", "-o", str(program), str(HERE / "test_call.c")], TIMEOUT_S).checked()
    child = run(command(setting, [*LAUNCH, str(program), str(CALLS), "9"], traced=traced), TIMEOUT_S).checked()
    return median(float(line) for line in child.stdout.split())
