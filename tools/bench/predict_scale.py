"""predict-scale: what does a prediction for a million ranks cost?"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from child import BenchError, Child, run
from page import Limit, Result, figure

if TYPE_CHECKING:
    from run import Setting

MODEL = Path(__file__).resolve().parent / "noise.toml"
ROUNDS = 3
TIMEOUT_S = 600.0
MOST_CPU_S = 30.0
MOST_BYTES = 2**30
MIB = 2**20

QUESTION = (
    "CPU time and memory of one prediction: 1,048,576 ranks, 1,000 phases of 1 ms, noise from a model of a "
    "timer tick and one daemon. It has no peer to compare with."
)


def measure(setting: Setting) -> Result:
    """Predicts several times; the limits apply to the worst run."""
    command = [str(setting.quell), "predict", "--noise", str(MODEL), "--ranks", "1048576"]
    command += ["--quantum", "1ms", "--phases", "1000", "--seed", str(setting.seed), "--json"]
    children = [predicted(run(command, TIMEOUT_S).checked()) for _ in range(setting.rounds or ROUNDS)]
    if len({child.stdout for child in children}) != 1:
        raise BenchError("equal inputs and seed gave different predictions")
    cpu = [child.cpu_s for child in children]
    wall = [child.wall_s for child in children]
    peak = [child.peak_bytes / MIB for child in children]
    rows = [
        [name, *map(figure, (median(values), min(values), max(values))), str(len(values))]
        for name, values in (("CPU time, s", cpu), ("wall time, s", wall), ("peak memory, MiB", peak))
    ]
    limits = [
        Limit("CPU time, highest", max(cpu), MOST_CPU_S, " s"),
        Limit("peak memory, highest", max(peak), MOST_BYTES / MIB, " MiB"),
    ]
    return Result(QUESTION, ["", "median", "lowest", "highest", "rounds"], rows, limits, [children[0].line()])


def predicted(child: Child) -> Child:
    """Returns the run if it printed a document."""
    try:
        json.loads(child.stdout)
    except ValueError as error:
        raise BenchError(f"`{child.line()}` did not print JSON: {error}") from error
    return child
