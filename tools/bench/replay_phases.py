"""Phases of a real MPI program under replayed noise, compared with the prediction for the same noise."""

from __future__ import annotations

import json
import shutil
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from child import BenchError, run
from page import Limit, figure
from replay_calls import Beat

if TYPE_CHECKING:
    from collections.abc import Callable

    from run import Setting

TIMEOUT_S = 120.0
OFF_PERCENT = 10.0
RANKS = 2
# 1 %, 5 % and 10 % of the time.
LENGTHS_US = (10, 50, 100)
QUIET = 0

COMMANDS = [
    "quell replay 1ms-50us.toml -- quell bench bsp -n 2 --mpi openmpi --duration 4s --sources off --json",
    "quell bench bsp -n 2 --mpi openmpi --duration 4s --sources off --json",
    "quell predict --noise 1ms-50us.toml --ranks 2 --quantum 1ms --json",
]


class Phases(NamedTuple):
    """How long a run's phases took, in ns."""

    # Eq. 3 of De et al.: the mean over phases of the longest of all ranks.
    mean_max: float
    # The median of all ranks, which occasional noise of the machine does not affect.
    middle: float


class Predicted(NamedTuple):
    """The cost of the noise according to the simulation, in percent."""

    percent: float
    low: float
    high: float


Runs = dict[int, list[Phases]]


def beat(length_us: int) -> Beat:
    """The noise: one detour each millisecond."""
    return Beat("1ms", f"{length_us}us", "10s")


def tasks(setting: Setting, runs: Runs) -> list[Callable[[], None]]:
    """The measurements of a round, in any order: without noise, and with each noise."""

    def phases(length_us: int) -> None:
        folder = setting.scratch / "bsp"
        shutil.rmtree(folder, ignore_errors=True)
        command = [str(setting.quell), "bench", "bsp", "-n", str(RANKS), "--mpi", "openmpi", "--duration", "4s"]
        command += ["--sources", "off", "-o", str(folder), "--json"]
        if length_us != QUIET:
            seed = str(setting.random.randrange(1 << 32))
            model = str(beat(length_us).write(setting.scratch))
            command = [str(setting.quell), "-q", "replay", model, "--seed", seed, "--", *command]
        runs.setdefault(length_us, []).append(read_phases(run(command, TIMEOUT_S).checked().stdout))

    def bound(length_us: int) -> Callable[[], None]:
        return lambda: phases(length_us)

    return [bound(length_us) for length_us in (QUIET, *LENGTHS_US)]


def predicted(setting: Setting, length_us: int) -> Predicted:
    """The prediction of `quell predict` for the same noise."""
    model = str(beat(length_us).write(setting.scratch))
    command = [str(setting.quell), "predict", "--noise", model, "--ranks", str(RANKS), "--quantum", "1ms", "--json"]
    return read_prediction(run(command, TIMEOUT_S).checked().stdout)


def read_phases(text: str) -> Phases:
    """The figures of `quell bench bsp --json`."""
    try:
        document = json.loads(text)
        found = Phases(float(document["compute_slowdown"]["mean_max_ns"]), float(document["compute"]["p50_ns"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`quell bench bsp` did not say what phases took: {error!r}") from error
    if min(found) <= 0:
        raise BenchError("`quell bench bsp` says that phases took no time")
    return found


def read_prediction(text: str) -> Predicted:
    """The figures of `quell predict --json`."""
    try:
        point = json.loads(text)["points"][-1]
        return Predicted(float(point["slowdown_percent"]), *map(float, point["ci95_percent"]))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise BenchError(f"`quell predict` did not say what noise costs: {error!r}") from error


def off_percent(measured: float, expected: Predicted) -> float:
    """By how much a slowdown differs from the predicted one, in percent of that; 0 within its interval."""
    if expected.low <= measured <= expected.high:
        return 0.0
    return 100 * abs(measured / expected.percent - 1) if expected.percent else float("inf")


def judged(runs: Runs, expected: dict[int, Predicted]) -> tuple[list[list[str]], list[Limit]]:
    """A row for each noise, and the limits."""
    rows, limits = [], []
    for length_us in LENGTHS_US:
        pairs = list(zip(runs[length_us], runs[QUIET]))
        mean, middle = (
            [100 * (with_[field] / without[field] - 1) for with_, without in pairs]
            for field in range(len(Phases._fields))
        )
        prediction = expected[length_us]
        rows.append(
            [
                f"{length_us / 10:g} % ({length_us} us at 1 kHz)",
                *(f"{value:.3f}" for value in (median(mean), min(mean), max(mean), median(middle))),
                f"{prediction.percent:.3f} ({prediction.low:.3f} to {prediction.high:.3f})",
                str(len(pairs)),
            ]
        )
        off = off_percent(median(mean), prediction)
        limits.append(Limit(f"{length_us} us at 1 kHz: slowdown off the predicted", off, OFF_PERCENT, " %"))
    quiet = [one.mean_max for one in runs[QUIET]]
    rows.append(
        ["mean MaxQT without noise, ns", *(figure(f(quiet)) for f in (median, min, max)), "", "", str(len(quiet))]
    )
    return rows, limits
