"""Noise that strikes when the trace says: known detours as a probe sees them, beside a plain interval timer's."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from child import BenchError, run
from page import Limit, figure
from replay_calls import Beat, Series, spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from run import Setting

SOURCE = Path(__file__).resolve().with_name("interval_timer.c")
SCHEMA = "quell.bench-interval-timer/1"
TIMEOUT_S = 120.0
PERIOD_NS = 1_000_000

OFF_NS = 2_000
SCALED_OFF_NS = 200
CALIBRATION_PERCENT = 10.0
SCALE = 10
# No shorter one is to be had: of this nearly nothing is burned.
SHORTEST_NS = 100
# A detour counts as injected if it is at least half as long as was asked for, and no longer by more than this.
BEYOND_NS = 60_000
SECONDS = 3
SCALED_SECONDS = 6

PROBE = "quell record --method detour --sources off"
COMMANDS = [
    f"quell replay 1ms-50us.toml --context timer --json -- {PROBE} --duration 3s",
    f"quell replay 1ms-5us.toml --context timer --scale 10 --json -- {PROBE} --duration 6s",
    f"quell replay 1ms-100ns.toml --context timer --overhead 1ns -- {PROBE} --duration 3s",
    f"quell replay 1ms-50us.toml --context process --cpus CPU -- {PROBE} --duration 3s",
    "interval_timer CPU 3 950000 50000",
]


class Way(NamedTuple):
    """A way by which detours of one length come in."""

    name: str
    asked_ns: int
    context: str = "timer"
    scale: int = 1
    overhead: str | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Where its figures are kept."""
        return (self.name, str(self.asked_ns))


TIMER = [Way("timer", us * 1000) for us in (25, 50, 100)]
SCALED = [Way("timer, scaled", ns, scale=SCALE) for ns in (2_500, 5_000, 10_000)]
SHORTEST = Way("timer, shortest", SHORTEST_NS, overhead="1ns")
PROCESS = [Way("process", us * 1000, context="process") for us in (50, 100)]
PEER = [Way("interval timer", us * 1000) for us in (25, 50, 100)]
CALIBRATED = ("calibrated",)


def ways(setting: Setting) -> list[Way]:
    """Those that can be measured here."""
    beside = PROCESS if os.geteuid() == 0 and setting.other_cpu is not None else []
    return [*TIMER, *SCALED, SHORTEST, *beside]


def build(folder: Path) -> Path:
    """Compiles the peer."""
    program = folder / "interval_timer"
    run(["cc", "-std=gnu11", "-O2", str(SOURCE), "-o", str(program)], TIMEOUT_S).checked()
    return program


def tasks(setting: Setting, peer: Path, series: Series) -> list[Callable[[], None]]:
    """What is measured in a round, in any order."""

    def of_quell(way: Way) -> None:
        overhead_ns, lengths = probed(setting, way)
        seen = near(lengths, way.asked_ns * way.scale, 0 if way is SHORTEST else 0.5)
        series.setdefault(way.key, []).append(median(seen) / way.scale)
        if way in TIMER:
            series.setdefault(CALIBRATED, []).append(overhead_ns)

    def of_peer(way: Way) -> None:
        gap_ns = PERIOD_NS - way.asked_ns
        words = [str(peer), str(setting.cpu), str(SECONDS), str(gap_ns), str(way.asked_ns)]
        seen = near(read_peer(run(words, TIMEOUT_S).checked().stdout), way.asked_ns, 0.5)
        series.setdefault(way.key, []).append(median(seen))

    def bound(what: Callable[[Way], None], way: Way) -> Callable[[], None]:
        return lambda: what(way)

    return [*(bound(of_quell, way) for way in ways(setting)), *(bound(of_peer, way) for way in PEER)]


def probed(setting: Setting, way: Way) -> tuple[int, list[int]]:
    """What quell calibrated, and all detours that its probe saw under the noise."""
    recording, table = setting.scratch / "strikes.quell", setting.scratch / "strikes.csv"
    shutil.rmtree(recording, ignore_errors=True)
    model = Beat("1ms", f"{way.asked_ns}ns").write(setting.scratch)
    command = [str(setting.quell), "-q", "replay", str(model), "--context", way.context, "--scale", str(way.scale)]
    if way.overhead:
        command += ["--overhead", way.overhead]
    if way.context == "process":
        command += ["--cpus", str(setting.cpu)]
    seconds = SECONDS if way.scale == 1 else SCALED_SECONDS
    probe = [str(setting.quell), "record", "-q", "--method", "detour", "--sources", "off", "--cpus", str(setting.cpu)]
    probe += ["--duration", f"{seconds}s", "-o", str(recording)]
    document = run([*command, "--json", "--", *probe], TIMEOUT_S).checked().stdout
    run([str(setting.quell), "-q", "convert", str(recording), str(table)], TIMEOUT_S).checked()
    text = table.read_text(encoding="utf-8")
    table.unlink()
    return read_overhead(document), read_detours(text)


def read_overhead(text: str) -> int:
    """What a detour costs beside the time that is burned, as it was calibrated."""
    try:
        document = json.loads(text)
        if not document["processes"]:
            raise BenchError("no noise came into the probe")
        return int(document["plan"]["overhead_ns"])
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`quell replay` did not say what a detour costs: {error!r}") from error


def read_detours(text: str) -> list[int]:
    """The lengths of detours in a CSV that `quell convert` wrote."""
    try:
        return [int(row["duration_ns"]) for row in csv.DictReader(text.splitlines()) if row["own"] == "false"]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`quell convert` wrote no `duration_ns` in each row: {error!r}") from error


def read_peer(text: str) -> list[int]:
    """The gaps that the victim of the interval timer saw."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise BenchError(f"interval_timer speaks {document['schema']!r}, not {SCHEMA}")
        return [int(gap) for gap in document["gaps_ns"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"interval_timer did not print what {SCHEMA} promises: {error!r}") from error


def near(lengths: list[int], asked_ns: int, least: float) -> list[int]:
    """Those that may be detours of the length that was asked for: the machine's own are mostly shorter or longer."""
    floor = max(least * asked_ns, 10_000)
    found = [length for length in lengths if floor <= length <= asked_ns + BEYOND_NS]
    if not found:
        raise BenchError(f"the probe saw no detour of about {asked_ns} ns")
    return found


def judged(series: Series) -> tuple[list[list[str]], list[Limit]]:
    """A row for each length, and what must hold."""
    rows, limits = [], []
    for way in (way for way in [*TIMER, *SCALED, *PROCESS, *PEER] if way.key in series):
        seen = series[way.key]
        off = median(seen) - way.asked_ns
        rows.append([way.name, figure(way.asked_ns), *spread(seen), f"{off:+,.0f}"])
        if way not in PEER:
            most = OFF_NS if way.scale == 1 else SCALED_OFF_NS
            limits.append(Limit(f"{way.name}: {way.asked_ns:,} ns, off by", abs(off), most, " ns"))
    shortest, calibrated = series[SHORTEST.key], median(series[CALIBRATED])
    rows.append(["timer, calibrated cost of a detour", "", *spread(series[CALIBRATED]), ""])
    rows.append([f"timer, a detour that burns nearly nothing ({SHORTEST_NS} ns)", "", *spread(shortest), ""])
    off = 100 * abs(median(shortest) / calibrated - 1)
    limits.append(Limit("timer: shortest detour off the calibrated cost", off, CALIBRATION_PERCENT, " %"))
    return rows, limits
