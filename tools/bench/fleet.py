"""fleet: are all ill nodes found among 2,000, no healthy ones, and at what cost?"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, NamedTuple

from child import BenchError, Child, run
from page import Limit, Result, figure

if TYPE_CHECKING:
    from pathlib import Path

    from run import Setting

NODES = 2000
ILL = 20
TIMEOUT_S = 900.0
MOST_WALL_S = 60.0
MOST_BYTES = 2**31
MOST_FALSE = 5
MIB = 2**20
THREE = "daemon,ticks-often,storm"
OTHERS = "ticks-long,hiccup,steal,one-cpu"

QUESTION = (
    f"`quell advise DIR` on {NODES:,} made-up nodes of 10 s each, of which {ILL} are ill: how many of those are named, "
    "how many healthy ones with them, and what does the reading cost? Healthy nodes differ by 10 % (one standard "
    "deviation) in the rate of each source and by 3 % in its durations; a rare task has Pareto durations of exponent "
    "1.5, another comes to one node in fifty. It has no peer to compare with. Wall time is with warm files."
)


class Case(NamedTuple):
    """A fleet to generate."""

    cpus: int
    hz: int
    sources: bool
    ways: str
    # Added to the given seed.
    seed: int


CASES = [
    Case(4, 250, sources=True, ways=THREE, seed=0),
    Case(4, 250, sources=True, ways=THREE, seed=1),
    Case(4, 250, sources=False, ways=THREE, seed=2),
    Case(4, 250, sources=True, ways=OTHERS, seed=3),
    Case(4, 250, sources=False, ways=OTHERS, seed=4),
    Case(8, 100, sources=True, ways=THREE, seed=5),
    Case(8, 100, sources=False, ways=OTHERS, seed=6),
    Case(2, 1000, sources=True, ways=THREE, seed=7),
    Case(2, 1000, sources=False, ways=OTHERS, seed=8),
]


class Found(NamedTuple):
    """The result of a case."""

    missed: list[str]
    wrong: list[str]
    child: Child


def measure(setting: Setting) -> Result:
    """Generates each fleet, analyses it, and removes it."""
    rows, found = [], []
    commands: list[str] = []
    for number, case in enumerate(CASES[: setting.rounds or len(CASES)]):
        one, made = examined(setting, case)
        found.append(one)
        kind = "known" if case.sources else "unknown"
        rows.append(
            [
                f"{case.cpus} CPUs, {case.hz} Hz, seed {setting.seed + case.seed}",
                kind,
                case.ways.replace(",", ", "),
                f"{ILL - len(one.missed)} of {ILL}",
                str(len(one.wrong)),
                *map(figure, (one.child.wall_s, one.child.cpu_s, one.child.peak_bytes / MIB)),
            ]
        )
        setting.say(f"{' '.join(rows[-1][:5])}: missed {one.missed or 'none'}, wrong {one.wrong or 'none'}")
        if number == 0:
            commands = [made.line(), one.child.line()]
    limits = [
        Limit("ill nodes that were not named, worst fleet", max(len(one.missed) for one in found), 0),
        Limit("healthy nodes that were named, worst fleet", max(len(one.wrong) for one in found), MOST_FALSE),
        Limit("wall time, highest", max(one.child.wall_s for one in found), MOST_WALL_S, " s"),
        Limit("peak memory, highest", max(one.child.peak_bytes for one in found) / MIB, MOST_BYTES / MIB, " MiB"),
    ]
    header = ["fleet", "sources", "ill by", "named", "wrong", "wall, s", "CPU, s", "peak, MiB"]
    return Result(QUESTION, header, rows, limits, commands)


def examined(setting: Setting, case: Case) -> tuple[Found, Child]:
    """Runs one fleet."""
    folder: Path = setting.scratch / "fleet"
    quell = str(setting.quell)
    make = [quell, "--quiet", "generate-fleet", "-o", str(folder), "--nodes", str(NODES), "--ill", str(ILL)]
    make += ["--ways", case.ways, "--cpus", str(case.cpus), "--tick-hz", str(case.hz)]
    make += ["--seed", str(setting.seed + case.seed)]
    make += [] if case.sources else ["--no-sources"]
    try:
        made = run(make, TIMEOUT_S).checked()
        ill = {one["node"] for one in json.loads(made.stdout)["ill"]}
        read = [quell, "--quiet", "advise", str(folder), "--ranks", "1Ki,8Ki,64Ki", "--json"]
        child = run(read, TIMEOUT_S).checked()
        named = {one["node"] for one in json.loads(child.stdout)["unlike"]}
    except (ValueError, KeyError) as error:
        raise BenchError(f"quell did not print what it should: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Found(sorted(ill - named), sorted(named - ill), child), made
