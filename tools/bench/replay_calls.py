"""Noise at MPI calls: the cost of the hook, the amount of noise, and what a program sees of half a microsecond."""

from __future__ import annotations

import json
import shutil
from array import array
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from child import BenchError, run
from page import Limit, figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from run import Setting

Series = dict[tuple[str, ...], list[float]]

SOURCE = Path(__file__).resolve().parent.parent.parent / "crates/cli/tests/support/calls.c"
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n"],
    "mpich": ["mpiexec.mpich", "-n"],
}
TIMEOUT_S = 120.0

HOOK_NS = 150
TOTAL_PERCENT = 0.5
OUTSIDE_OFF_NS = 100
HOOK_CALLS = 200_000
CALLS = 10_000
RANKS = 2
SHORT_NS = 500
# A call that takes this much longer than the median was disturbed by something else.
OTHER_NS = 2_000

COMMANDS = [
    "quell replay silent.toml -- mpirun.openmpi -n 1 calls 200000 0 probe LOG",
    "quell replay short.toml -- mpirun.openmpi -n 1 calls 10000 20000 probe LOG",
    "quell replay 20us-500ns.toml 310us-11us.toml 1ms-100us.toml --json -- mpirun -n 2 calls 10000 50000 sendrecv",
]


class Beat(NamedTuple):
    """Noise of one CPU: a detour of the same length in each period."""

    period: str
    length: str
    span: str = "1s"

    def write(self, folder: Path) -> Path:
        """Writes its model file."""
        path = folder / f"{self.period}-{self.length}-{self.span}.toml"
        path.write_text(
            f'name = "{self.length} each {self.period}"\nspan = "{self.span}"\n[[component]]\nname = "beat"\n'
            f'periodic = {{ period = "{self.period}" }}\nduration = {{ constant = "{self.length}" }}\n',
            encoding="utf-8",
        )
        return path


SILENT = Beat("3600s", "1us", "7200s")
SHORT = Beat("173us", f"{SHORT_NS}ns")
MIXED = [Beat("20us", "500ns"), Beat("310us", "11us"), Beat("1ms", "100us")]


def here() -> list[str]:
    """The MPIs that are installed here."""
    return [name for name, words in LAUNCHERS.items() if shutil.which(words[0]) and shutil.which(f"mpicc.{name}")]


def build(folder: Path, mpi: str) -> list[str]:
    """Compiles the program that makes calls; returns its command line, without the number of ranks."""
    program = folder / f"calls-{mpi}"
    run([f"mpicc.{mpi}", "-O2", "-o", str(program), str(SOURCE)], TIMEOUT_S).checked()
    return [str(program)]


def tasks(setting: Setting, mpi: str, program: list[str], series: Series) -> list[Callable[[], None]]:
    """The measurements of a round, in any order."""
    log = setting.scratch / f"log-{mpi}"

    def calls(ranks: int, count: int, work_ns: int, kind: str) -> list[str]:
        return [*LAUNCHERS[mpi], str(ranks), *program, str(count), str(work_ns), kind, str(log)]

    def replay(*beats: Beat) -> list[str]:
        files = [str(beat.write(setting.scratch)) for beat in beats]
        return [str(setting.quell), "-q", "replay", *files, "--seed", str(setting.random.randrange(1 << 32))]

    def add(what: str, value: float) -> None:
        series.setdefault((mpi, what), []).append(value)

    def alone() -> None:
        run(calls(1, HOOK_CALLS, 0, "probe"), TIMEOUT_S).checked()
        add("alone", median(read_log(log)))

    def loaded() -> None:
        run([*replay(SILENT), "--", *calls(1, HOOK_CALLS, 0, "probe")], TIMEOUT_S).checked()
        add("loaded", median(read_log(log)))

    def outside() -> None:
        document = run([*replay(SHORT), "--json", "--", *calls(1, CALLS, 20_000, "probe")], TIMEOUT_S).checked().stdout
        add("outside", late(read_log(log), SHORT_NS))
        add("by itself", burned(document))

    def total() -> None:
        words = calls(RANKS, CALLS, 50_000, "sendrecv")[:-1]
        document = run([*replay(*MIXED), "--json", "--", *words], TIMEOUT_S).checked().stdout
        add("total", max(off_percent(document, RANKS)))

    return [alone, loaded, outside, total]


def read_log(path: Path) -> list[int]:
    """The duration of each call, in ns, from a log that calls.c wrote."""
    words = array("Q")
    try:
        words.frombytes(path.read_bytes())
        path.unlink()
    except (OSError, ValueError) as error:
        raise BenchError(f"{path.name} is no log of calls: {error}") from error
    if not words or len(words) % 3:
        raise BenchError(f"{path.name} is no log of calls: {len(words)} words")
    return [end - at for at, end in zip(words[1::3], words[2::3])]


def late(took_ns: list[int], due_ns: int) -> float:
    """How much longer calls with a due detour take than the median call, in the median."""
    quiet = median(took_ns)
    noisy = [took - quiet for took in took_ns if due_ns / 2 < took - quiet < due_ns + OTHER_NS]
    if not noisy:
        raise BenchError(f"no call was late by about {due_ns} ns")
    return median(noisy)


def burned(document: str) -> float:
    """How long the burns of one process took, by its own report, per `SHORT_NS` requested."""
    try:
        (process,) = json.loads(document)["processes"]
        return SHORT_NS * process["took_ns"] / process["asked_ns"]
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise BenchError(f"`quell replay` did not say what was burned: {error!r}") from error


def off_percent(document: str, ranks: int) -> list[float]:
    """By how much each rank's injected and absorbed noise together differ from its trace."""
    try:
        processes = json.loads(document)["processes"]
        off = [
            100 * abs(process["asked_ns"] + process["absorbed_ns"] - process["trace_ns"]) / process["trace_ns"]
            for process in processes
        ]
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise BenchError(f"`quell replay` did not say what came in: {error!r}") from error
    if len(off) != ranks:
        raise BenchError(f"{len(off)} of {ranks} ranks reported their noise")
    return off


def judged(mpi: str, series: Series) -> tuple[list[list[str]], list[Limit]]:
    """The rows of one MPI, and its limits."""
    alone, loaded, outside, total = (series[mpi, what] for what in ("alone", "loaded", "outside", "total"))
    hook = [with_ - without for with_, without in zip(loaded, alone)]
    rows = [
        [f"{mpi}: MPI_Iprobe alone, ns", *spread(alone)],
        [f"{mpi}: with the hook and nothing due, ns", *spread(loaded)],
        [f"{mpi}: the hook's own cost a call, ns", *spread(hook)],
        [f"{mpi}: a detour of {SHORT_NS} ns as the program sees it, ns", *spread(outside)],
        [f"{mpi}: the same by quell's own account, in the mean, ns", *spread(series[mpi, "by itself"])],
        [f"{mpi}: what came into the worse of {RANKS} ranks off the schedule, %", *spread(total)],
    ]
    limits = [
        Limit(f"{mpi}: the hook's own cost a call", median(hook), HOOK_NS, " ns"),
        Limit(
            f"{mpi}: {SHORT_NS} ns seen from outside, off by", abs(median(outside) - SHORT_NS), OUTSIDE_OFF_NS, " ns"
        ),
        Limit(f"{mpi}: what came in off the schedule", median(total), TOTAL_PERCENT, " %"),
    ]
    return rows, limits


def spread(values: list[float]) -> list[str]:
    """Median, lowest, highest and number of values."""
    return [*(figure(value) for value in (median(values), min(values), max(values))), str(len(values))]
