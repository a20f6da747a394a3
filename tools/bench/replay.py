"""replay: does injected noise have the requested length, and what does injection cost, against an interval timer?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import replay_calls
import replay_phases
import replay_strikes
from child import BenchError
from page import Result
from under_mpi import OPEN_MPI

if TYPE_CHECKING:
    from collections.abc import Callable

    from run import Setting

ROUNDS = 5

QUESTION = (
    "Noise that `quell replay` puts into programs, seen from outside. At MPI calls: what a call costs more when "
    "nothing is due, by a loop of MPI_Iprobe with and without what quell loads; and what came in, of noise of three "
    "kinds over 10,000 calls, against the schedule. By timer, and from a process next to: what quell's probe sees of "
    "detours of known length, one a millisecond, next to the plain way of De et al. 2008 and Beckman et al. 2006, an "
    "interval timer whose signal handler burns what was asked for. Then phases of a real program under noise against "
    "the same without, next to what is predicted. All in random order within each round."
)
NOTES = [
    "The interval timer's victim reports the turns of its own loop in which the handler ran once.",
    "The probe's detours are those in which noise was burned, by the times of both; those at scale 10 are scaled back.",
    "Each round gives the median of some 3,000 of them, at scale 10 of 600.",
    "Phases: the mean MaxQT with noise over that without (De et al. 2008, eq. 3), a pair in each round.",
    "The machine's own rare, long detours move a mean; the median qt of all ranks hardly feels them.",
    "Where the mean without noise strays by more than the noise costs (last row there), a pair says little.",
]


def measure(setting: Setting) -> Result:
    """Runs the benchmark."""
    os.environ.update(OPEN_MPI)
    mpis = replay_calls.here()
    if "openmpi" not in mpis:
        raise BenchError("Open MPI is not installed (Debian: openmpi-bin and libopenmpi-dev)")
    series: replay_calls.Series = {}
    runs: replay_phases.Runs = {}
    programs = {mpi: replay_calls.build(setting.scratch, mpi) for mpi in mpis}
    peer = replay_strikes.build(setting.scratch)
    rounds = setting.rounds or ROUNDS
    for turn in range(rounds):
        calls = [task for mpi in mpis for task in replay_calls.tasks(setting, mpi, programs[mpi], series)]
        parts = {
            "calls": calls,
            "strikes": replay_strikes.tasks(setting, peer, series),
            "phases": replay_phases.tasks(setting, runs),
        }
        for name, tasks in parts.items():
            setting.say(f"{name}, round {turn + 1} of {rounds}")
            shuffled(setting, tasks)
    expected = {length_us: replay_phases.predicted(setting, length_us) for length_us in replay_phases.LENGTHS_US}
    notes = [*NOTES]
    notes += [f"{mpi} is not installed, and was skipped." for mpi in replay_calls.LAUNCHERS if mpi not in mpis]
    if not set(replay_strikes.PROCESS) & set(replay_strikes.ways(setting)):
        notes.append("From a process next to it takes root and a second CPU, and was skipped.")
    return judged(mpis, series, runs, expected, notes)


def shuffled(setting: Setting, tasks: list[Callable[[], None]]) -> None:
    """Runs tasks in random order."""
    for task in setting.random.sample(tasks, len(tasks)):
        task()


def judged(
    mpis: list[str],
    series: replay_calls.Series,
    runs: replay_phases.Runs,
    expected: dict[int, replay_phases.Predicted],
    notes: list[str],
) -> Result:
    """Builds the page."""
    of_calls = [replay_calls.judged(mpi, series) for mpi in mpis]
    strikes, strike_limits = replay_strikes.judged(series)
    phases, phase_limits = replay_phases.judged(runs, expected)
    header = ["at MPI calls", "median", "lowest", "highest", "rounds"]
    rows = [row for rows, _ in of_calls for row in rows]
    limits = [limit for _, limits in of_calls for limit in limits]
    commands = [*replay_calls.COMMANDS, *replay_strikes.COMMANDS, *replay_phases.COMMANDS]
    of_strikes = ["by", "asked, ns", "seen, ns (median of medians)", "lowest", "highest", "rounds", "off, ns"]
    of_phases = ["noise", "slowdown, % (median)", "lowest", "highest", "of the median qt, %", "predicted, %", "pairs"]
    tables = [("Detours as a probe sees them", of_strikes, strikes), ("Two ranks in phases of 1 ms", of_phases, phases)]
    return Result(QUESTION, header, rows, [*limits, *strike_limits, *phase_limits], commands, notes, tables)
