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
RECORDED = "60s"
MOST_WALL_S = 60.0
NETWORK = "L=1500,o=300,g=100,G=0.04,S=16Ki"
MIB = 2**20

QUESTION = (
    "What two predictions cost. *Ideal*: 1,048,576 ranks, 1,000 phases of 1 ms, noise from a model of a timer tick and "
    "one daemon. *Allreduce*: from 16 to 1,048,576 ranks, phases that an allreduce ends, with intervals, noise from a "
    "recording of 60 s. They have no peer to compare with."
)


def measure(setting: Setting) -> Result:
    """Predicts several times; the limits apply to the worst run."""
    recording = setting.scratch / "node.quell"
    run([str(setting.quell), "record", "-q", "--duration", RECORDED, "-o", str(recording)], TIMEOUT_S).checked()
    predict, seed = [str(setting.quell), "predict"], ["--seed", str(setting.seed), "--json"]
    of_model = ["--noise", str(MODEL), "--ranks", "1048576", "--quantum", "1ms", "--phases", "1000"]
    of_messages = [str(recording), "--ranks", "16..1Mi", "--op", "allreduce", "--net", NETWORK]
    ideal = predictions(setting, [*predict, *of_model, *seed])
    messages = predictions(setting, [*predict, *of_messages, *seed])
    limits = [
        Limit("ideal: CPU time, highest", max(child.cpu_s for child in ideal), MOST_CPU_S, " s"),
        Limit("ideal: peak memory, highest", highest_mib(ideal), MOST_BYTES / MIB, " MiB"),
        Limit("allreduce: wall time, highest", max(child.wall_s for child in messages), MOST_WALL_S, " s"),
    ]
    rows = [*figures("ideal", ideal), *figures("allreduce", messages)]
    commands = [ran[0].line().replace(str(setting.scratch), ".") for ran in (ideal, messages)]
    return Result(QUESTION, ["", "median", "lowest", "highest", "rounds"], rows, limits, commands)


def predictions(setting: Setting, command: list[str]) -> list[Child]:
    """Runs of one command, which must agree."""
    children = [predicted(run(command, TIMEOUT_S).checked()) for _ in range(setting.rounds or ROUNDS)]
    if len({child.stdout for child in children}) != 1:
        raise BenchError("equal inputs and seed gave different predictions")
    return children


def highest_mib(children: list[Child]) -> float:
    """The highest peak memory."""
    return max(child.peak_bytes for child in children) / MIB


def figures(name: str, children: list[Child]) -> list[list[str]]:
    """Rows of times and memory."""
    columns = {
        "CPU time, s": [child.cpu_s for child in children],
        "wall time, s": [child.wall_s for child in children],
        "peak memory, MiB": [child.peak_bytes / MIB for child in children],
    }
    return [
        [f"{name}: {what}", *map(figure, (median(values), min(values), max(values))), str(len(values))]
        for what, values in columns.items()
    ]


def predicted(child: Child) -> Child:
    """Returns the run if it printed a document."""
    try:
        json.loads(child.stdout)
    except ValueError as error:
        raise BenchError(f"`{child.line()}` did not print JSON: {error}") from error
    return child
