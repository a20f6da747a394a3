"""metric-container: what does a thread pay to read its noise counters?"""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, NamedTuple

from child import BenchError, run
from page import Limit, Result

if TYPE_CHECKING:
    from run import Setting

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = Path(__file__).resolve().with_suffix(".c")
INCLUDE = ROOT / "crates/kernel/include"
SCHEMA = "quell.bench-metric-container/1"
ROUNDS = 3001
TIMEOUT_S = 300.0
MOST = 0.35

BASE = "gettimeofday"
FENCE = "fence alone"
JUDGED = "container, 8 metrics"
# Cycles per call on a 2.6 GHz Clovertown: Nataraj et al. 2007, Table 1.
PAPER_BASE = 238
PAPER: dict[str, tuple[int, ...]] = {
    "container, 1 metric": (192,),
    "container, 2 metrics": (272,),
    "container, 4 metrics": (288,),
    "container, 8 metrics": (400,),
    BASE: (PAPER_BASE,),
    "no-op read of /proc": (1150,),
    "perf read() of task-clock": (248, 304),
}

QUESTION = (
    "Table 1 of Nataraj et al. 2007 by today's means: the cost of reading 1, 2, 4 and 8 metrics from the container,"
    " compared with other ways to learn of time and noise. One process under `quell record`, one run, batches of "
    "100 reads in random order, each after a batch that is not counted; medians with the 10 % and 90 % quantiles, "
    "in ticks of the processor's time stamp counter."
)
NOTES = [
    "Throughput: the reads of a batch follow each other without a pause and may overlap.",
    "Serialised: a fence before each read lets it begin only when the one before is done; its ratio is net of them.",
    "A program calls gettimeofday, and has the read of the container in its own code.",
    "Ticks of the time stamp counter are not the paper's core cycles: compare the ratios, not the figures.",
    "1, 2 and 4 metrics: task; and tick; and irq and softirq. Each of these reads checks all four levels.",
    "The paper's figures other than perf's are PAPI's, for 1 and for 2 counters.",
]


class Read(NamedTuple):
    """One kind of read: ticks of one read, batch by batch."""

    name: str
    throughput: list[float]
    serialised: list[float]


def measure(setting: Setting) -> Result:
    """Builds the program, runs it under quell, and reads what it wrote."""
    program = build(setting.scratch)
    file = setting.scratch / "reads.json"
    recording = setting.scratch / "run.quell"
    command = [str(setting.quell), "record", "--method", "kernel", "-o", str(recording), "--", str(program)]
    command += [str(file), str(setting.cpu), str(setting.seed), str(setting.rounds or ROUNDS)]
    child = run(command, TIMEOUT_S).checked()
    if not file.exists():
        raise BenchError(f"`{child.line()}` left no figures:\n  {child.stderr.strip()[-500:]}")
    reads, skipped = read_document(file.read_text(encoding="utf-8"))
    return judged(reads, skipped, child.line().replace(str(setting.scratch), "."))


def build(folder: Path) -> Path:
    """Compiles the program, as a user's program would be compiled."""
    program = folder / "metric_container"
    run(["cc", "-std=gnu11", "-O2", "-I", str(INCLUDE), str(SOURCE), "-o", str(program)], TIMEOUT_S).checked()
    return program


def judged(reads: list[Read], skipped: list[str], command: str) -> Result:
    """The table, and whether the limits hold."""
    by_name = {read.name: read for read in reads}
    missing = [name for name in (FENCE, BASE, JUDGED) if name not in by_name]
    if missing:
        raise BenchError(f"the program measured no {' and no '.join(missing)}")
    fence_ticks = median(by_name[FENCE].serialised)
    base = by_name[BASE]
    base_ticks = (median(base.throughput), median(base.serialised) - fence_ticks)

    def ratios(read: Read) -> tuple[float, float]:
        return median(read.throughput) / base_ticks[0], (median(read.serialised) - fence_ticks) / base_ticks[1]

    if base_ticks[1] <= 0:
        raise BenchError(f"{BASE} took no longer than a fence: the figures mean nothing")
    rows = [row(read, ratios(read)) for read in reads]
    limits = [
        Limit(f"{JUDGED}, to {BASE}, {mode}", ratio, MOST)
        for mode, ratio in zip(("throughput", "serialised"), ratios(by_name[JUDGED]))
    ]
    header = [
        "read",
        "throughput, ticks",
        f"to {BASE}",
        "serialised, ticks",
        f"to {BASE}, net",
        "paper, cycles",
        "ratio",
    ]
    return Result(QUESTION, header, rows, limits, [command], NOTES + skipped)


def row(read: Read, ratios: tuple[float, float]) -> list[str]:
    """One read's row, with the paper's figures if it has any."""
    paper = PAPER.get(read.name, ())
    theirs = [" to ".join(map(str, paper)), " to ".join(f"{cycles / PAPER_BASE:.2f}" for cycles in paper)]
    if read.name == FENCE:
        return [read.name, spread(read.throughput), "", spread(read.serialised), "", *theirs]
    throughput, serialised = (f"{ratio:.3f}" for ratio in ratios)
    return [read.name, spread(read.throughput), throughput, spread(read.serialised), serialised, *theirs]


def spread(values: list[float]) -> str:
    """Median, with the 10 % and 90 % quantiles."""
    deciles = quantiles(values, n=10, method="inclusive") if len(values) > 1 else values * 9
    return f"{median(values):.1f} ({deciles[0]:.1f} to {deciles[-1]:.1f})"


def read_document(text: str) -> tuple[list[Read], list[str]]:
    """What the program measured, what it skipped, and why."""
    reads, skipped = [], []
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise BenchError(f"the program speaks {document['schema']!r}, not {SCHEMA}")
        for entry in document["reads"]:
            if "skipped" in entry:
                skipped.append(f"{entry['name']} was skipped: {entry['skipped']}.")
                continue
            series = ([float(value) for value in entry[mode]] for mode in ("throughput", "serialised"))
            reads.append(Read(str(entry["name"]), *series))
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"the program did not print what {SCHEMA} promises: {error!r}") from error
    for name, *both in reads:
        if not all(both) or not all(math.isfinite(value) and value > 0 for series in both for value in series):
            raise BenchError(f"the program gave no figures, or none that can be, for: {name}")
    return reads, skipped
