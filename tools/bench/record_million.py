"""record-million: does the recorder keep a million detours, how fast, in how much memory?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from child import BenchError, Child, run
from page import Limit, Result, figure

if TYPE_CHECKING:
    from pathlib import Path

    from run import Setting

COUNT = 1_000_000
# So low that the loop itself produces rows. Each is tried for a second; the first one that is fast enough is used.
THRESHOLDS = ("25ns", "20ns", "15ns", "10ns", "5ns", "1ns")
TIMEOUT_S = 120.0
WANTED_PER_S = COUNT / 30
MIB = 2**20

QUESTION = (
    "One CPU records a million rows, which come far faster than noise does: the threshold is so low that "
    "most of them are the loop's own turns. The figures speak of the recorder, not of this machine's noise."
)


def measure(setting: Setting) -> Result:
    """Finds a threshold that produces rows fast enough, then records a million."""
    notes = []
    for threshold in THRESHOLDS:
        trial, folder = record(setting, threshold, "trial", ["--duration", "1s"])
        rate = kept(setting, trial.checked(), folder)
        notes.append(f"A second at {threshold} gave {rate:,} rows.")
        setting.say(f"{rate:,} rows a second at {threshold}")
        if rate < WANTED_PER_S:
            continue
        child, folder = record(setting, threshold, "million", ["--count", str(COUNT)])
        if child.wall_s < TIMEOUT_S:
            return result(setting, threshold, child.checked(), folder, notes)
        notes.append(f"The rate did not last: no million at {threshold} within {TIMEOUT_S:.0f} s.")
    raise BenchError(f"no threshold down to {THRESHOLDS[-1]} gives {COUNT:,} rows within {TIMEOUT_S:.0f} s")


def record(setting: Setting, threshold: str, name: str, until: list[str]) -> tuple[Child, Path]:
    """Makes one recording, in a folder of its own."""
    folder = setting.scratch / f"{name}-{threshold}.quell"
    command = [str(setting.quell), "record", "-o", str(folder), "--cpus", str(setting.cpu)]
    return run([*command, "--threshold", threshold, *until], TIMEOUT_S), folder


def kept(setting: Setting, child: Child, folder: Path) -> int:
    """Number of rows of a recording, as `quell show` counts them."""
    try:
        shown = run([str(setting.quell), "show", str(folder), "--json"], TIMEOUT_S).checked()
    except BenchError as error:
        raise BenchError(f"what `{child.line()}` wrote cannot be read: {error}") from error
    return read_kept(shown.stdout)


def result(setting: Setting, threshold: str, child: Child, folder: Path, notes: list[str]) -> Result:
    """The figures of a recording."""
    lost, span_s = read_manifest(folder)
    rows_kept = kept(setting, child, folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    rows = [
        ["threshold", threshold],
        ["time under the probe, s", figure(span_s)],
        ["wall time with start and writing, s", figure(child.wall_s)],
        ["peak memory, MiB", figure(child.peak_bytes / MIB)],
        ["kept", f"{rows_kept:,}"],
        ["lost", f"{lost:,}"],
        ["recording on disk, MiB", figure(size / MIB)],
        ["bytes a row on disk", figure(size / max(rows_kept, 1))],
    ]
    command = child.line().replace(str(setting.scratch), ".")
    limits = [Limit("lost", lost, 0), Limit("short of a million", max(COUNT - rows_kept, 0), 0)]
    return Result(QUESTION, ["", "measured"], rows, limits, [command], notes)


def read_manifest(folder: Path) -> tuple[int, float]:
    """Lost rows over all CPUs, and the longest observed span in seconds."""
    try:
        cpus = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["cpus"]
        lost = sum(int(cpu["lost"]) for cpu in cpus)
        span_ns = max(int(cpu["end_ns"]) - int(cpu["start_ns"]) for cpu in cpus)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{folder.name} holds no manifest with a lost count and a span: {error!r}") from error
    return lost, span_ns / 1e9


def read_kept(text: str) -> int:
    """Number of detours of a recording, over all CPUs, as `quell show --json` counts them."""
    try:
        return sum(int(cpu["detours"]) for cpu in json.loads(text)["cpus"])
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`quell show --json` reports no `detours` for each of its `cpus`: {error!r}") from error
