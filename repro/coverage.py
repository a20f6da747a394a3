"""Counts how often the 95 % intervals of predictions hold the truth, for traces drawn from six kinds of noise.

Usage: coverage.py QUELL, where QUELL is the program to run. Writes coverage.md next to this script.

QUELL_REPRO_EFFORT=4 draws 400 traces of each kind for the usual job, and fewer for the others. QUELL_REPRO_ONLY=TEXT
does only the lines whose job and noise, such as `allreduce periodic`, contain the text, and keeps the others.
QUELL_REPRO_RECORDING=PATH takes this recording, by its absolute path, in place of a new one.
"""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from report import HERE, Bench, Row, effort, main, say, table, write_page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECOND = 10**9
# A draw, and a run that counts as the truth.
SHORT, LONG = 60, 600
TRUTHS = 32
RANKS = [16, 256, 4096]
# What counts as the nominal 95 %, before what chance does to a count of draws.
GOAL = (0.93, 0.97)

MODELS = {
    "periodic": ("periodic = { period = '4ms', jitter = '100us' }", "uniform = { min = '2us', max = '20us' }"),
    "Poisson, exponential": ("poisson = { rate = '200/s' }", "exponential = { mean = '30us' }"),
    "Pareto 1.5": ("poisson = { rate = '200/s' }", "pareto = { scale = '5us', shape = 1.5, max = '20ms' }"),
    "rare 10 ms": ("poisson = { rate = '0.2/s' }", "constant = '10ms'"),
}


NAMES = [*MODELS, "two states", "recorded"]


@dataclass(frozen=True)
class Way:
    """How a job is predicted, at some scales."""

    words: str
    options: tuple[str, ...] = ()
    ranks: tuple[int, ...] = tuple(RANKS)
    # Which part of the draws it is done with: messages cost most.
    part: float = 1


WAYS = [
    Way("max, `--sync none`"),
    Way("max, `--sync start`", ("--sync", "start"), part=0.25),
    Way("max, `--sync phase`", ("--sync", "phase"), part=0.25),
    Way("allreduce", ("--op", "allreduce", "--bytes", "8", "--net", "loggopsim"), (16, 256), 0.125),
]


@dataclass
class Kind:
    """A kind of noise, which draws traces."""

    name: str
    draw: Callable[[int, int], Path]
    truths: dict[tuple[str, int], tuple[float, float]] = field(default_factory=dict)


def model(folder: Path, name: str) -> Callable[[int, int], Path]:
    """A kind that quell draws itself, from the seed of the prediction."""
    when, duration = MODELS[name]

    def draw(seconds: int, _: int) -> Path:
        path = folder / f"{name.replace(' ', '-')}-{seconds}.toml"
        if not path.exists():
            path.write_text(
                f"span = '{seconds}s'\n[[component]]\nname = 'noise'\n{when}\nduration = {{ {duration} }}\n",
                encoding="utf-8",
            )
        return path

    return draw


def write_csv(path: Path, seconds: int, detours: list[tuple[int, int]]) -> Path:
    """Writes a trace whose last detour, of a nanosecond, ends it."""
    lines = [f"0,{start},{duration},false" for start, duration in detours]
    ends = [f"0,{seconds * SECOND - 1},1,false"] if not detours or sum(detours[-1]) < seconds * SECOND - 1 else []
    path.write_text("\n".join(["cpu,start_ns,duration_ns,own", *lines, *ends]) + "\n", encoding="utf-8")
    return path


def dice_of(seed: int) -> random.Random:
    """Draws that a seed repeats."""
    return random.Random(seed)  # noqa: S311 (nothing here is secret)


def two_states(folder: Path) -> Callable[[int, int], Path]:
    """Quiet and busy times of 200 ms in the mean, with 20 and 500 detours a second of 50 us in the mean."""

    def draw(seconds: int, seed: int) -> Path:
        dice, now, busy, detours = dice_of(seed), 0.0, False, []
        ends = dice.expovariate(1 / 0.2)
        while now < seconds:
            now += dice.expovariate(500 if busy else 20)
            if now >= ends:
                now, busy = ends, not busy
                ends += dice.expovariate(1 / 0.2)
                continue
            start = max(int(now * SECOND), sum(detours[-1]) if detours else 0)
            duration = max(1, int(dice.expovariate(1 / 50_000)))
            if start + duration < seconds * SECOND:
                detours.append((start, duration))
        return write_csv(folder / f"two-{seconds}-{seed}.csv", seconds, detours)

    return draw


def recorded(bench: Bench) -> Callable[[int, int], Path]:
    """A recording of this machine, cut into blocks of a second, which are drawn with replacement."""
    recording = os.environ.get("QUELL_REPRO_RECORDING", "own.quell")
    if "QUELL_REPRO_RECORDING" not in os.environ:
        options = "--duration 120s --cpus 0 --sources off --threshold 2us"
        bench.run(bench.quell, "-q", "record", "-o", recording, *options.split())
    bench.run(bench.quell, "-q", "convert", recording, "own.csv")
    blocks: dict[int, list[tuple[int, int]]] = {}
    for line in (bench.folder / "own.csv").read_text(encoding="utf-8").splitlines()[1:]:
        _, start, duration, own = line.split(",")
        if own == "false":
            block, within = divmod(int(start), SECOND)
            blocks.setdefault(block, []).append((within, int(duration)))
    whole = [blocks.get(block, []) for block in range(1, 119)]

    def draw(seconds: int, seed: int) -> Path:
        dice, detours = dice_of(seed), []
        for second in range(seconds):
            for within, duration in dice.choice(whole):
                start = max(second * SECOND + within, sum(detours[-1]) if detours else 0)
                if start + duration < seconds * SECOND:
                    detours.append((start, duration))
        return write_csv(bench.folder / f"own-{seconds}-{seed}.csv", seconds, detours)

    return draw


def predict(quell: str, kind: Kind, way: Way, seconds: int, seed: int) -> list[dict]:
    """The points of one prediction."""
    path = kind.draw(seconds, seed)
    where = ["--noise", str(path)] if path.suffix == ".toml" else [str(path)]
    command = [quell, "-q", "predict", *where, "--ranks", ",".join(map(str, way.ranks)), "--seed", str(seed)]
    ran = subprocess.run([*command, "--threads", "1", "--json", *way.options], check=True, stdout=subprocess.PIPE)
    if path.suffix == ".csv":
        path.unlink()
    return json.loads(ran.stdout)["points"]


def cells(quell: str, kind: Kind, way: Way, draws: int, pool: ThreadPoolExecutor) -> list[list[str]]:
    """A line of the table for each scale."""
    long = list(pool.map(lambda seed: predict(quell, kind, way, LONG, 10_000 + seed), range(TRUTHS)))
    found = list(pool.map(lambda seed: predict(quell, kind, way, SHORT, seed), range(1, draws + 1)))
    lines = []
    for at, ranks in enumerate(way.ranks):
        values = [points[at]["slowdown_percent"] for points in long]
        truth, error = statistics.mean(values), statistics.stdev(values) / math.sqrt(TRUTHS)
        points = [points[at] for points in found]
        sure = [point for point in points if point["supported"] and point["ci95_percent"]]
        held = sum(point["ci95_percent"][0] <= truth <= point["ci95_percent"][1] for point in sure)
        below = sum(point["ci95_percent"][1] < truth for point in sure)
        widths = [high - low for low, high in (point["ci95_percent"] for point in sure)]
        width = statistics.median(widths) if sure else math.nan
        share = held / len(sure) if sure else math.nan
        lines.append(
            [
                kind.name,
                way.words,
                f"{ranks:,}",
                f"{truth:.4g} ± {error:.2g}",
                f"{draws}",
                f"{100 * len(sure) / draws:.0f} %",
                f"{100 * share:.1f} %" if sure else "",
                f"{100 * below / len(sure):.1f} %" if sure else "",
                f"{100 * (len(sure) - held) / draws:.1f} %",
                f"{width:.3g}" if sure else "",
            ]
        )
        say(" | ".join(lines[-1]))
    return lines


def before() -> list[list[str]]:
    """The lines of the page as it is."""
    page = (HERE / "coverage.md").read_text(encoding="utf-8").splitlines()
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in page if line.startswith("|")]
    return [line for line in lines if line[0] not in {HEAD[0], "---"} and len(line) == len(HEAD)]


def merged(old: list[list[str]], new: list[list[str]]) -> list[list[str]]:
    """The old lines, with the new ones in the place of those of the same noise, job and ranks, or after them."""
    done = {tuple(line[:3]): line for line in new}
    kept = [done.pop(tuple(line[:3]), line) for line in old]
    return kept + list(done.values())


def kind(bench: Bench, name: str) -> Kind:
    """The kind of noise of this name."""
    if name == "recorded":
        return Kind(name, recorded(bench))
    return Kind(name, two_states(bench.folder) if name == "two states" else model(bench.folder, name))


def make(bench: Bench) -> list[Row]:
    """Draws all traces, and writes the page."""
    only = os.environ.get("QUELL_REPRO_ONLY", "")
    asked = [(way, name) for way in WAYS for name in NAMES if only in f"{way.words} {name}"]
    # The recording comes first, while nothing else runs.
    kinds = {name: kind(bench, name) for name in NAMES[::-1] if any(name == other for _, other in asked)}
    lines, draws = [], effort(100)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for way, name in asked:
            lines += cells(bench.quell, kinds[name], way, max(20, round(draws * way.part)), pool)
    if only:
        lines = merged(before(), lines)
    write_page("coverage", "Do 95 % intervals hold the truth?", [INTRODUCTION, table(HEAD, lines, "llrrrrrrrr")])
    return []


HEAD = [
    *("noise", "job", "ranks", "slowdown of a long run, %", "traces", "resolved", "held", "too low", "wrong of all"),
    "median width, points",
]

INTRODUCTION = f"""
A 95 % interval has to hold the truth in 95 of 100 cases. Here the truth is known: it is the mean of {TRUTHS}
predictions, each from a trace of {LONG} s. The cases are traces of {SHORT} s from the same noise, each with its own
prediction for a quantum of 1 ms, and its interval. With 400 traces, a share of 95 % strays by 2.1 points; with 100,
by 4.3; with 50, by 6.

- **resolved** is the share of traces that support the scale and give an interval. quell answers *not resolved* or
  *extrapolated* for the others.
- **held** is the share of the resolved ones whose interval holds the truth. Where only some traces are resolved, they
  are not a random choice: those that happen to hold more rare detours resolve them less often. So judge the lines of
  which most traces are resolved.
- **too low** is the share of the resolved ones whose interval ends below the truth. The rest of those that do not hold
  it begin above it.
- **wrong of all** is the share of all traces for which quell gives an interval that does not hold the truth. The aim is
  at most 5 %, whatever share is resolved.

The noise: *periodic* 2 to 20 us about every 4 ms; *Poisson, exponential* 200 a second of 30 us in the mean; *Pareto
1.5* 200 a second from 5 us to 20 ms; *rare 10 ms* one in 5 s; *two states* 20 or 500 a second for 200 ms in the mean,
of 50 us in the mean; *recorded* a recording of this machine of two minutes, whose seconds are drawn with replacement.

Not even a perfect method holds the truth of *recorded* in 95 of 100 cases. A stall that happened once in these two
minutes is in 40 of 100 of the traces of a minute. At many ranks it decides the truth, and the other 60 traces do not
know of it.

Lines that are not done again stay, so those of *recorded* may be of different recordings: the slowdowns show it.

[The method, and its papers](../docs/decisions/2026-11-24-intervals-that-hold-the-truth.md).
"""

if __name__ == "__main__":
    sys.exit(main("coverage", 900, __doc__, make))
