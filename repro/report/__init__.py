"""What every page shares: how commands are run, what machine ran them, and rows for the table of all papers."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).resolve().parent.parent
ROWS = HERE / "rows"
# Where several people share a machine, measurements take turns by the file that this variable names.
LOCK = "QUELL_REPRO_LOCK"
# How many times as long measurements last as they do by default, for steadier figures.
EFFORT = "QUELL_REPRO_EFFORT"
# All pages take some half an hour with it on two CPUs; at 1 they may take three quarters of one.
USUAL_EFFORT = 0.6
# Open MPI asks for both before it starts anything for root.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


# Verdicts.
REPRODUCED = "reproduced"
IN_SHAPE = "in shape"
DIFFERS = "differs"
FAILED = "failed"
NOT_HERE = "cannot be shown here"
DOES_NOT_HOLD = "claimed, and does not hold: "


def claim(verdict: str, *, holds: bool) -> str:
    """A verdict that the figures have to bear out; `./x repro` fails where they do not."""
    return verdict if holds else DOES_NOT_HOLD + verdict


def near(ours: float, papers: float, factor: float) -> bool:
    """Whether two figures differ by less than this factor."""
    return papers / factor < ours < papers * factor


@dataclass(frozen=True)
class Row:
    """One figure or table of a paper, next to what quell makes of it here."""

    paper: str
    figure: str
    papers_value: str
    ours: str
    verdict: str
    why: str


@dataclass(frozen=True)
class Bench:
    """Runs quell and other programs, in a folder of its own."""

    quell: str
    folder: Path

    def run(self, *words: str, codes: tuple[int, ...] = (0,), check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a command, in its turn; what it says goes along with an error."""
        with turn():
            ran = subprocess.run(
                words, capture_output=True, text=True, cwd=self.folder, env={**os.environ, **ENVIRONMENT}, check=False
            )
        if check and ran.returncode not in codes:
            raise RuntimeError(f"`{' '.join(words)}` ended with {ran.returncode}:\n{ran.stderr[-2000:]}")
        return ran

    def document(self, *words: str, codes: tuple[int, ...] = (0,)) -> dict:
        """What a verb of quell prints as JSON."""
        return json.loads(self.run(self.quell, "-q", *words, "--json", codes=codes).stdout)

    def without_tasks(self, recording: str) -> str:
        """The noise of a recording without what other tasks took, in percent of the CPU, in words."""
        shown = self.document("show", recording, "--by", "class")
        observed = sum(cpu["observed_ns"] for cpu in shown["cpus"])
        rest = [row["in_detours_ns"] for row in shown["classes"] if row["class"] != "type2"]
        if not rest or None in rest:
            return "sources are not known here"
        return f"{100 * sum(rest) / observed:.2f} % without other tasks"

    def compiled(self, source: Path, *options: str, compiler: str = "cc") -> str:
        """Compiles a C program; its path."""
        program = self.folder / source.stem
        self.run(compiler, "-O2", *options, "-o", str(program), str(source), "-lm")
        return str(program)

    def mpi_program(self, source: Path, bind: str = "none") -> list[str] | None:
        """Compiles an MPI program; what starts two ranks of it, bound to `bind`. Nothing where there is no MPI."""
        compiler = shutil.which("mpicc.openmpi") or shutil.which("mpicc")
        launcher = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
        if not compiler or not launcher:
            return None
        return [launcher, "--bind-to", bind, "-n", "2", self.compiled(source, compiler=compiler)]


def warned(warning: dict) -> str:
    """A warning of a document: its code, and its facts."""

    def fact(name: str, value: object) -> str:
        words = name.replace("_", " ")
        if isinstance(value, dict):
            return f"{words} {warned(value)}"
        return f"{words} {value:.4g}" if isinstance(value, float) else f"{words} {value}"

    facts = [fact(name, value) for name, value in warning.items() if name != "code"]
    return f"{warning['code']}" + (f" ({', '.join(facts)})" if facts else "")


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """Waits for the machine where others measure on it too."""
    name = os.environ.get(LOCK)
    if not name:
        yield
        return
    with Path(name).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def effort(usual: int) -> int:
    """How many of something are done: the usual number, or as many times that as the variable says."""
    return max(1, round(usual * factor()))


def factor() -> float:
    """What the variable says."""
    return float(os.environ.get(EFFORT) or USUAL_EFFORT)


def rounds(what: str, usual: int, seconds: float, least: int = 2) -> Iterator[int]:
    """Numbers of rounds: the usual many, or on a busy machine those that begin in time, but at least `least`."""
    began, wanted = time.monotonic(), max(least, effort(usual))
    for number in range(wanted):
        if number >= least and time.monotonic() - began > factor() * seconds:
            say(f"{what}: {number} of {wanted} rounds, as the machine is busy")
            return
        say(f"{what}: round {number + 1} of {wanted}")
        yield number


def processor() -> str:
    """Its own name."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def load() -> str:
    """Runnable tasks, over 1, 5 and 15 minutes."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg())


def today() -> str:
    """The date."""
    return dt.datetime.now(tz=dt.timezone.utc).date().isoformat()


def machine() -> str:
    """The machine in a sentence."""
    virtual = " (a virtual machine)" if " hypervisor " in Path("/proc/cpuinfo").read_text(encoding="utf-8") else ""
    return f"{processor()}, {os.cpu_count()} CPUs{virtual}, Linux {platform.release()}"


def say(words: str) -> None:
    """Reports the progress."""
    print(f"repro: {words}", file=sys.stderr, flush=True)


def table(header: list[str], rows: list[list[str]], align: str = "") -> str:
    """A table; `align` has a letter a column: `l` or `r`, the last one for all that follow."""
    letters = (align or "l").ljust(len(header), (align or "l")[-1])
    lines = [f"| {' | '.join(header)} |", "|" + "".join("--:|" if one == "r" else "---|" for one in letters)]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join(lines)


def write_page(name: str, title: str, parts: list[str]) -> None:
    """Writes NAME.md: its parts, and on which machine and when they were made."""
    foot = f"Made on {machine()}, on {today()}. Load at the end (1, 5, 15 minutes): {load()}."
    text = "\n\n".join([f"# {title}", *(part.strip() for part in parts), "## The machine", foot])
    (HERE / f"{name}.md").write_text(text + "\n", encoding="utf-8")


def main(name: str, budget_s: int, usage: str, make: Callable[[Bench], list[Row]]) -> int:
    """Runs the script of page NAME, and writes its rows; tells on stderr how long it took of its budget."""
    if len(sys.argv) != 2:  # noqa: PLR2004 (the script and the program)
        print(usage, file=sys.stderr)
        return 2
    before, began = load(), time.monotonic()
    say(f"{name}: begins; budget {budget_s} s, load {before}")
    with tempfile.TemporaryDirectory() as folder:
        rows = make(Bench(str(Path(sys.argv[1]).resolve()), Path(folder)))
    took = time.monotonic() - began
    document = {"page": f"{name}.md", "took_s": round(took), "budget_s": budget_s, "load_before": before}
    document |= {"date": today(), "effort": factor(), "rows": [asdict(row) for row in rows]}
    if rows:
        ROWS.mkdir(exist_ok=True)
        (ROWS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    say(f"{name}: took {took:.0f} s{'' if took <= budget_s else f', more than its budget of {budget_s} s'}")
    return 0
