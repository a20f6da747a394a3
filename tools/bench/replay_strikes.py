"""Noise at the times of the trace: known detours as a probe sees them, against those of an interval timer."""

from __future__ import annotations

import json
import os
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
# The shortest possible one: almost nothing of it is burned.
SHORTEST_NS = 100
SECONDS = 3
SCALED_SECONDS = 6

COMMANDS = [
    "quell replay 1ms-50us.toml --validate --json --context timer --cpus CPU --duration 3s",
    "quell replay 1ms-5us.toml --validate --json --context timer --scale 10 --cpus CPU --duration 6s",
    "quell replay 1ms-100ns.toml --validate --json --context timer --overhead 1ns --cpus CPU --duration 3s",
    "quell replay 1ms-50us.toml --validate --json --context process --cpus CPU --duration 3s",
    "interval_timer CPU 3 950000 50000",
]


class Way(NamedTuple):
    """A way to inject detours of one length."""

    name: str
    asked_ns: int
    context: str = "timer"
    scale: int = 1
    overhead: str | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """The key under which its figures are stored."""
        return (self.name, str(self.asked_ns))

    @property
    def seconds(self) -> int:
        """How long it is observed."""
        return SECONDS if self.scale == 1 else SCALED_SECONDS


class Seen(NamedTuple):
    """What quell's probe saw of detours that quell injected, divided by the scale."""

    overhead_ns: int
    median_ns: int
    count: int


TIMER = [Way("timer", us * 1000) for us in (25, 50, 100)]
SCALED = [Way("timer, scaled", ns, scale=SCALE) for ns in (2_500, 5_000, 10_000)]
SHORTEST = Way("timer, shortest", SHORTEST_NS, overhead="1ns")
PROCESS = [Way("process", us * 1000, context="process") for us in (50, 100)]
PEER = [Way("interval timer", us * 1000) for us in (25, 50, 100)]
CALIBRATED = ("calibrated",)


def ways(setting: Setting) -> list[Way]:
    """Those that can be measured on this machine."""
    process = PROCESS if os.geteuid() == 0 and setting.other_cpu is not None else []
    return [*TIMER, *SCALED, SHORTEST, *process]


def build(folder: Path) -> Path:
    """Compiles the peer."""
    program = folder / "interval_timer"
    run(["cc", "-std=gnu11", "-O2", str(SOURCE), "-o", str(program)], TIMEOUT_S).checked()
    return program


def tasks(setting: Setting, peer: Path, series: Series) -> list[Callable[[], None]]:
    """The measurements of a round, in any order."""

    def of_quell(way: Way) -> None:
        seen = probed(setting, way)
        series.setdefault(way.key, []).append(seen.median_ns)
        if way in TIMER:
            series.setdefault(CALIBRATED, []).append(seen.overhead_ns)

    def of_peer(way: Way) -> None:
        gap_ns = PERIOD_NS - way.asked_ns
        words = [str(peer), str(setting.cpu), str(SECONDS), str(gap_ns), str(way.asked_ns)]
        seen = read_peer(run(words, TIMEOUT_S).checked().stdout)
        series.setdefault(way.key, []).append(median(seen))

    def bound(what: Callable[[Way], None], way: Way) -> Callable[[], None]:
        return lambda: what(way)

    return [*(bound(of_quell, way) for way in ways(setting)), *(bound(of_peer, way) for way in PEER)]


def probed(setting: Setting, way: Way) -> Seen:
    """What quell calibrated, and what its probe saw afterwards."""
    model = Beat("1ms", f"{way.asked_ns}ns").write(setting.scratch)
    command = [str(setting.quell), "-q", "replay", str(model), "--validate", "--json", "--context", way.context]
    command += ["--scale", str(way.scale), "--cpus", str(setting.cpu), "--duration", f"{way.seconds}s"]
    if way.overhead:
        command += ["--overhead", way.overhead]
    return read_seen(run(command, TIMEOUT_S).checked().stdout)


def read_seen(text: str) -> Seen:
    """The figures of `quell replay --validate --json`."""
    try:
        document = json.loads(text)
        detours = document["comparison"]["b"]["detours"]
        seen = Seen(int(document["overhead_ns"]), int(detours["p50_ns"]), int(detours["count"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`quell replay --validate` did not say what the probe saw: {error!r}") from error
    if seen.count == 0:
        raise BenchError("the probe saw none of the detours that were injected")
    return seen


def read_peer(text: str) -> list[int]:
    """The gaps that the program under the interval timer saw."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise BenchError(f"interval_timer speaks {document['schema']!r}, not {SCHEMA}")
        gaps = [int(gap) for gap in document["gaps_ns"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"interval_timer did not print what {SCHEMA} promises: {error!r}") from error
    if not gaps:
        raise BenchError("the interval timer never struck")
    return gaps


def judged(series: Series) -> tuple[list[list[str]], list[Limit]]:
    """A row for each length, and the limits."""
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
