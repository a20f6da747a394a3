"""probe-loop: does quell's probe read the clock as often as a loop that does nothing else?"""

from __future__ import annotations

import json
import math
import shutil
from statistics import median
from typing import TYPE_CHECKING

from child import BenchError, run
from page import Limit, Result

if TYPE_CHECKING:
    from pathlib import Path

    from run import Setting

SCHEMA = "quell.bench-loop/1"
MOST = 1.15
ROUNDS = 3
TIMEOUT_S = 120.0
Series = dict[str, list[float]]

QUESTION = (
    "The length of one turn of three loops on the same CPU: a bare fenced read of the time stamp counter, "
    "quell's probe, and oslat's loop. The first two alternate in random order within one process; oslat runs "
    "between."
)
OSLAT_NOTE = (
    "oslat counts turns by whole microseconds: its figure is the run's duration, less the time in turns of "
    "more than 1 us, over the other turns. It is not paired with the bare loop: its ratio is one of medians."
)


def measure(setting: Setting) -> Result:
    """Runs quell's loops, and oslat's as well if it is installed."""
    contenders = [quell_loops]
    notes = []
    reason = oslat_missing(setting)
    if reason:
        setting.say(f"skipping oslat: {reason}")
        notes.append(f"oslat was skipped: {reason}.")
    else:
        contenders.append(oslat_loop)
        notes.append(OSLAT_NOTE)
    series: Series = {}
    commands: list[str] = []
    for number in range(setting.rounds or ROUNDS):
        for contender in setting.random.sample(contenders, len(contenders)):
            contender(setting, number, series, commands)
    ratios = [probe / bare for probe, bare in zip(series["quell's probe"], series["bare loop"])]
    rows = [row(name, values, series["bare loop"], ratios) for name, values in sorted(series.items())]
    header = ["loop", "ns a turn (median)", "lowest", "highest", "rounds", "to the bare loop"]
    limit = Limit("quell's probe to the bare loop, median of the paired rounds", median(ratios), MOST)
    return Result(QUESTION, header, rows, [limit], commands, notes)


def row(name: str, values: list[float], bare: list[float], ratios: list[float]) -> list[str]:
    """One loop's row."""
    against = median(ratios) if name == "quell's probe" else median(values) / median(bare)
    figures = [f"{value:.2f}" for value in (median(values), min(values), max(values))]
    return [name, *figures, str(len(values)), f"{against:.3f}"]


def quell_loops(setting: Setting, number: int, series: Series, commands: list[str]) -> None:
    """Both loops in one process of quell, alternating."""
    command = [str(setting.quell), "bench-loop", "--cpu", str(setting.cpu), "--duration", "500ms"]
    command += ["--rounds", "9", "--seed", str(setting.seed + number), "--json"]
    child = run(command, TIMEOUT_S).checked()
    bare, probe = read_loops(child.stdout)
    series.setdefault("bare loop", []).extend(bare)
    series.setdefault("quell's probe", []).extend(probe)
    commands.append(child.line())


def read_loops(text: str) -> tuple[list[float], list[float]]:
    """The mean turn of each round, for the bare loop and for the probe."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise BenchError(f"`quell bench-loop` speaks {document['schema']!r}, not {SCHEMA}")
        bare, probe = ([float(value) for value in document[key]] for key in ("bare_mean_ns", "probe_mean_ns"))
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`quell bench-loop` did not print what {SCHEMA} promises: {error!r}") from error
    if not bare or len(bare) != len(probe):
        raise BenchError(f"`quell bench-loop` paired {len(bare)} rounds of the bare loop with {len(probe)}")
    if not all(math.isfinite(value) and value > 0 for value in bare + probe):
        raise BenchError("`quell bench-loop` printed a turn that takes no time, or no number")
    return bare, probe


def oslat_missing(setting: Setting) -> str | None:
    """The reason why oslat cannot run here, if there is one."""
    if not shutil.which("oslat"):
        return "it is not installed (Debian: rt-tests)"
    if setting.other_cpu is None:
        return "it needs a second CPU for its main thread"
    return None


def oslat_loop(setting: Setting, number: int, series: Series, commands: list[str]) -> None:
    """Oslat in the default scheduling class, never at a real-time priority."""
    file = setting.scratch / f"oslat-{number}.json"
    command = ["oslat", "-c", str(setting.cpu), "-C", str(setting.other_cpu), "-D", "2", "-z", "-q"]
    child = run([*command, f"--json={file}"], TIMEOUT_S).checked()
    series.setdefault("oslat", []).append(read_oslat(file))
    commands.append(child.line().replace(str(setting.scratch), "."))


def read_oslat(file: Path) -> float:
    """The duration of one of oslat's undisturbed turns, in ns.

    `avg` weights each turn by its bucket in us (rounded up), and turns beyond the last bucket by their true
    length. It therefore contains the time of all turns of more than 1 us, which are not turns of the loop itself.
    """
    try:
        (thread,) = json.loads(file.read_text(encoding="utf-8"))["thread"].values()
        turns = sum(int(count) for count in thread["histogram"].values())
        short = int(thread["histogram"]["1"])
        longer_us = float(thread["avg"]) * turns - short
        turn = (float(thread["duration"]) * 1e9 - longer_us * 1e3) / short
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise BenchError(f"{file.name} is not what oslat of rt-tests 2.4 writes: {error!r}") from error
    if not (math.isfinite(turn) and turn > 0):
        raise BenchError(f"{file.name} gives turns of {turn} ns")
    return turn
