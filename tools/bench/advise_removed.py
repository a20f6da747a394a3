"""advise-removed: is what `advise` expects of a source's removal what its real removal brings?"""

from __future__ import annotations

import contextlib
import json
import math
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from child import BenchError, run
from page import Limit, Result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from run import Setting

ROUNDS = 10
RANKS = [16, 256, 4096]
# A round's recordings alternate, so that the host's own noise meets all of them.
BLOCKS = 8
DURATION_S = 3
TIMEOUT_S = 300.0
# The process names of three daemons: each works for the first time and sleeps for the second, in microseconds, about.
DAEMONS = {"sampler": (1_000, 40_000), "poller": (200, 4_000), "collector": (3_000, 1_000_000)}
DAEMON = """
import random, sys, time
work, rest = (int(word) / 1e6 for word in sys.argv[1:])
while True:
    end = time.perf_counter() + work
    while time.perf_counter() < end:
        pass
    time.sleep(rest * random.uniform(0.8, 1.2))
"""

QUESTION = (
    "Three daemons disturb one CPU. `quell advise` states the slowdown that would be left without each of them. Then "
    "each is really stopped, and `quell predict` states the slowdown of what is recorded without it. A round has "
    f"{BLOCKS} recordings of {DURATION_S} s with all daemons and as many without each, in random order."
)
NOTES = [
    "Agreed: expected and measured differ by no more than both 95 % intervals together (root of the sum of squares).",
    "What has no interval, since the recordings do not show how rare its noise is, is not compared.",
    "Order: of two daemons whose measured slowdowns left differ by more than both intervals, both say the same first.",
]


@dataclass(frozen=True)
class Left:
    """The slowdown that is left without a daemon, in percent, with its interval."""

    percent: float
    low: float
    high: float

    @staticmethod
    def read(percent: float, interval: list[float] | None) -> Left:
        """From a document, where an interval that says nothing is missing."""
        return Left(percent, *(interval or (-math.inf, math.inf)))

    def has_interval(self) -> bool:
        """Whether the recordings show how large it is."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def apart(self, other: Left) -> float:
        """The difference in units of both intervals together: at most 1 where they agree."""
        toward, back = (self.low, other.high) if self.percent > other.percent else (self.high, other.low)
        both = math.hypot(self.percent - toward, other.percent - back)
        apart = abs(self.percent - other.percent)
        if apart == 0:
            return 0
        return apart / both if both else math.inf


def measure(setting: Setting) -> Result:
    """Predicts and removes, round by round."""
    rounds, commands = [], []
    for number in range(1, (setting.rounds or ROUNDS) + 1):
        rounds.append(one_round(setting, setting.scratch / str(number), commands))
        setting.say(f"round {number}: {summary(rounds[-1])}")
    return result(rounds, commands)


Round = dict[str, dict[int, tuple[Left, Left]]]


def one_round(setting: Setting, folder: Path, commands: list[str]) -> Round:
    """For each daemon and number of ranks what is left without it, predicted and measured."""
    folder.mkdir()
    recorded: dict[str | None, list[str]] = {name: [] for name in (None, *DAEMONS)}
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(daemon(setting, name)) for name in DAEMONS}
        for block in range(BLOCKS):
            order = list(recorded)
            setting.random.shuffle(order)
            for removed in order:
                file = folder / f"{removed or 'all'}-{block}.quell"
                with stopped(running.get(removed)):
                    words = ["record", "-q", "--sources", "on", "--effect", "0", "--cpus", str(setting.cpu)]
                    words += ["--duration", f"{DURATION_S}s", "-o", str(file)]
                    tool(setting, words, commands)
                recorded[removed].append(str(file))
    common = ["--ranks", ",".join(map(str, RANKS)), "--seed", str(setting.random.randrange(1 << 30)), "--json"]
    advised = tool(setting, ["advise", *recorded[None], "--sources", "30", *common], commands)
    made: Round = {}
    for name in DAEMONS:
        measured = tool(setting, ["predict", *recorded[name], *common], commands)
        pairs = zip(predicted_left(advised, name), measured_left(measured))
        made[name] = dict(zip(RANKS, pairs))
    return made


def tool(setting: Setting, words: list[str], commands: list[str]) -> str:
    """Runs quell and returns its output."""
    ended = run([str(setting.quell), *words], TIMEOUT_S).checked()
    commands.append(ended.line().replace(str(setting.scratch), "."))
    return ended.stdout


@contextlib.contextmanager
def daemon(setting: Setting, name: str) -> Iterator[subprocess.Popen]:
    """A daemon on the measured CPU, until the end of the block."""
    link = setting.scratch / name
    if not link.exists():
        link.symlink_to(sys.executable)
    words = [str(link), "-c", DAEMON, *map(str, DAEMONS[name])]
    process = subprocess.Popen(["taskset", "-c", str(setting.cpu), *words], stdin=subprocess.DEVNULL)
    try:
        # `taskset` becomes the command; only then it has its name.
        while Path(f"/proc/{process.pid}/comm").read_text().strip() != name:
            time.sleep(0.01)
        yield process
        if process.poll() is not None:
            raise BenchError(f"the daemon `{name}` ended while it was to disturb")
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def stopped(process: subprocess.Popen | None) -> Iterator[None]:
    """A process stands still within the block."""
    if process is None:
        yield
        return
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def predicted_left(text: str, name: str) -> list[Left]:
    """What `advise` expects to be left without a daemon, for each number of ranks."""
    try:
        (source,) = [one for one in json.loads(text)["sources"] if one["source"] == f"task:{name}"]
        return [Left.read(cost["without_percent"], cost["without_ci95_percent"]) for cost in source["costs"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`advise --json` is not as expected for `task:{name}`: {error}") from error


def measured_left(text: str) -> list[Left]:
    """The slowdown of a recording for each number of ranks."""
    try:
        points = json.loads(text)["points"]
        return [Left.read(point["slowdown_percent"], point["ci95_percent"]) for point in points]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`predict --json` is not as expected: {error}") from error


def orders(one: Round, ranks: int) -> tuple[int, int]:
    """Of the pairs of daemons whose order is measured: how many are in the same order as predicted, and all."""
    names = list(one)
    right = resolved = 0
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            (expected_first, real_first), (expected_second, real_second) = one[first][ranks], one[second][ranks]
            if real_first.apart(real_second) <= 1:
                continue
            resolved += 1
            right += (real_first.percent < real_second.percent) == (expected_first.percent < expected_second.percent)
    return right, resolved


def is_resolved(pair: tuple[Left, Left]) -> bool:
    """Whether both the expected and the measured slowdown have an interval."""
    return all(left.has_interval() for left in pair)


def summary(one: Round) -> str:
    """A round in one line."""
    pairs = [pair for scales in one.values() for pair in scales.values() if is_resolved(pair)]
    agreed = sum(left.apart(real) <= 1 for left, real in pairs)
    right, resolved = (sum(values) for values in zip(*(orders(one, ranks) for ranks in RANKS)))
    return f"{agreed} of {len(pairs)} agree, {right} of {resolved} orders are right"


def result(rounds: list[Round], commands: list[str]) -> Result:
    """The table, and the limits."""
    header = ["without", "ranks", "expected", "measured", "half an interval", "agreed"]
    made = Result(QUESTION, header, [], [], commands[:2] + commands[-len(DAEMONS) - 1 :], list(NOTES))
    apart = compared = 0
    for name in DAEMONS:
        for ranks in RANKS:
            pairs = [one[name][ranks] for one in rounds if is_resolved(one[name][ranks])]
            compared += len(pairs)
            if not pairs:
                made.rows.append([name, f"{ranks:,}", "not resolved", "", "", "0 of 0"])
                continue
            disagree = sum(left.apart(real) > 1 for left, real in pairs)
            apart += disagree
            expected, measured = zip(*((left.percent, real.percent) for left, real in pairs))
            halves = [math.hypot(*((left.high - left.low) / 2 for left in pair)) for pair in pairs]
            cells = [f"{statistics.median(values):.1f} %" for values in (expected, measured, halves)]
            made.rows.append([name, f"{ranks:,}", *cells, f"{len(pairs) - disagree} of {len(pairs)}"])
    found = [orders(one, ranks) for one in rounds for ranks in RANKS]
    right, resolved = (sum(values) for values in zip(*found))
    differ = 100 * apart / max(1, compared)
    made.limits = [
        Limit("expected and measured slowdowns that differ", differ, 10, " %"),
        Limit(f"orders of two daemons that are wrong, of {resolved}", resolved - right, 0),
    ]
    return made
