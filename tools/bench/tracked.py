"""track: how fast an archive is analysed, and what memory a large one takes."""

from __future__ import annotations

import json
import os
import shutil
from statistics import median
from typing import TYPE_CHECKING

from child import run
from page import Limit, Result, figure

if TYPE_CHECKING:
    from pathlib import Path

    from run import Setting

ROUNDS = 5
TIMEOUT_S = 3600.0
GIB = 1 << 30
LEAST_PER_S = 2e6
# Ranks, phases per rank: seven events and three definitions per phase take about 44 bytes.
SIZES = [("2 ranks", 2, 1_000_000), ("64 ranks", 64, 40_000), ("2,048 ranks", 2048, 1000)]
LARGE_RANKS, LARGE_BYTES = 16, 10 * GIB
QUESTION = (
    "Events that `quell track` goes through in a second of CPU time on one core, for all noise together and for its "
    "source alone, in archives of a bulk-synchronous program (`quell generate-run`). And the most memory that it "
    "takes, also for an archive of 10 GiB (set QUELL_BENCH_LARGE=0 to leave that out). No other program says what "
    "noise did to a run."
)


def measure(setting: Setting) -> Result:
    """Runs the benchmark."""
    rows, limits, commands = [], [], []
    for name, ranks, phases in SIZES:
        archive, size = generate(setting, ranks, phases)
        ran = [tracked(setting, archive) for _ in range(setting.rounds or ROUNDS)]
        events = json.loads(ran[0].stdout)["events"]
        per_s = median(events / child.cpu_s for child in ran)
        peak = max(child.peak_bytes for child in ran)
        rows.append([name, f"{events:,}", figure(size / GIB), figure(per_s / 1e6), figure(peak / GIB)])
        limits.append(Limit(f"{name}: ns for an event", 1e9 / per_s, 1e9 / LEAST_PER_S, " ns"))
        commands.append(ran[0].line())
        shutil.rmtree(archive)
    if os.environ.get("QUELL_BENCH_LARGE") != "0":
        archive, size = generate(setting, LARGE_RANKS, 1000)
        archive, size = generate(setting, LARGE_RANKS, round(1000 * 1.02 * LARGE_BYTES / size))
        child = tracked(setting, archive)
        events = json.loads(child.stdout)["events"]
        per_s = figure(events / child.cpu_s / 1e6)
        rows.append(
            [f"large, {LARGE_RANKS} ranks", f"{events:,}", figure(size / GIB), per_s, figure(child.peak_bytes / GIB)]
        )
        limits.append(Limit("large: memory", child.peak_bytes / GIB, 2, " GiB"))
        shutil.rmtree(archive)
    return Result(QUESTION, ["archive", "events", "GiB", "M events/s", "memory, GiB"], rows, limits, commands)


def generate(setting: Setting, ranks: int, phases: int) -> tuple[Path, int]:
    """Makes an archive, and returns its size."""
    archive = setting.scratch / "archive"
    shutil.rmtree(archive, ignore_errors=True)
    size = ["--ranks", str(ranks), "--phases", str(phases), "--quantum", "1ms", "--detour", "10us"]
    run([str(setting.quell), "-q", "generate-run", *size, "-o", str(archive)], TIMEOUT_S).checked()
    return archive, sum(file.stat().st_size for file in archive.rglob("*") if file.is_file())


def tracked(setting: Setting, archive: Path):  # noqa: ANN201 (a child)
    """One analysis, on one core."""
    command = ["taskset", "-c", str(setting.cpu), str(setting.quell), "-q", "track", str(archive), "--json"]
    return run(command, TIMEOUT_S).checked()
