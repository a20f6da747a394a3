"""Repeats Tables 1 and 2 and Figure 2 of Nataraj et al. (SC 2007): what counters and tracing cost; four examples.

Usage: nataraj_2007_overhead.py QUELL, where QUELL is the program to run. Writes nataraj-2007-overhead.md next to this
script. Table 2 needs an MPI, Figure 2 python3-otf2. The costs are measured, and no two runs give the same.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

from report import (
    DIFFERS,
    HERE,
    IN_SHAPE,
    NOT_HERE,
    REPRODUCED,
    Bench,
    Row,
    claim,
    main,
    rounds,
    say,
    table,
    write_page,
)
from report.papers import NATARAJ

ROOT = HERE.parent
INCLUDE = ("-std=gnu11", "-I", str(ROOT / "crates/kernel/include"))
# With a first round that is not counted.
ROUNDS = 8
TABLE_2_S = 110
# Some 0.7 s on idle CPUs.
PROGRAM = ("400", "48")
GETTIMEOFDAY = "gettimeofday"
# Cycles, with 1, 2, 4 and 8 metrics; gettimeofday, and a system call that does nothing.
PAPER = {
    "container, 1 metric": 192,
    "container, 2 metrics": 272,
    "container, 4 metrics": 288,
    "container, 8 metrics": 400,
    GETTIMEOFDAY: 238,
    "no-op read of /proc": 1150,
}
PAPER_CONFIG = 18520 + 17408
PAPER_PAPI = 1830064
VARIANTS = {
    "base": "nothing next to it",
    "record": "`quell record --`: the kernel recorder with its counters for each thread, nothing in the program",
    "calls": "`quell trace --sources off`: its MPI calls, without counters",
    "counters": "`quell trace`: its MPI calls, with all counters on each",
}
PAPER_2 = "ktau-only 0.10, ktau-proc 0.36, ktau-tau 0.91, ktau-tau-metrics 0.97 % (minima of five, 475 s on 16 nodes)"
# What each example's ranks have accumulated in the paper, in ms, and absorbed where it says.
EXAMPLES = {
    "a": ([100, 100], None, "100 ms of the sender's reach the receiver"),
    "b": ([30, 30], [0, 70], "70 of 100 ms are absorbed in a wait"),
    "c": ([30, 33], [0, 67], "67 of 100 ms are absorbed without a wait"),
    "d": ([70, 70, 70], None, "a barrier is left its sync time after the last would have come"),
}

INTRODUCTION = """\
What it costs a program to read its own noise counters, and to be traced with them, after Nataraj, Morris, Malony,
Sottile & Beckman, *The Ghost in the Machine*, SC 2007, Tables 1 and 2; and the four examples of Figure 2, as archives
that the OTF2 library writes, through `quell track`. Written by `nataraj_2007_overhead.py`; do not edit.
"""

WHY = """\
## Why they differ

- **Table 1.** KTAU writes into the program's own memory, quell's BPF programs into a map that the program may only
  read; a read is a handful of loads either way. The figures here are of reads that stand back to back, in ticks of
  the time stamp counter: hold the ratios to gettimeofday against the paper's, not the ticks. 8 counters are one cache
  line and a half.
- **Table 2.** The paper's LU ran for 475 s on 16 nodes, the program here (`kernels/cg.c`) for less than a second on
  two virtual CPUs. Its run time strays by more than tracing adds, so the paired median says more than the minima. The
  paper's four instrumentation points were compiled into the kernel; here all interrupts, softirqs and switches are
  watched.
- **Figure 2(d)** prints no numbers in its text: the barrier is the one of quell's own tests, by the rule that the
  text gives.
"""


def container(bench: Bench) -> dict[str, float]:
    """Ticks of each kind of read, and of beginning with the container."""
    reads = bench.compiled(ROOT / "tools/bench/metric_container.c", *INCLUDE)
    record = [bench.quell, "-q", "record", "--method", "kernel"]
    bench.run(*record, "-o", "reads.quell", "--", reads, "reads.json", "1", "1", "1001")
    found = json.loads((bench.folder / "reads.json").read_text(encoding="utf-8"))["reads"]
    ticks = {one["name"]: median(one["throughput"]) for one in found if "skipped" not in one}
    begin = bench.compiled(HERE / "nataraj_2007/container.c", *INCLUDE)
    ran = bench.run(*record, "-o", "begin.quell", "--", begin)
    # The last word is the recording's name.
    pairs = [tuple(map(float, line.split())) for line in ran.stdout.splitlines() if line[0].isdigit()]
    ticks["opening it"], ticks["the first look for the slot"] = (median(values) for values in zip(*pairs))
    return ticks


def table_1(ticks: dict[str, float]) -> str:
    """Table 1."""
    cells = []
    for name, value in ticks.items():
        paper = PAPER.get(name)
        theirs = ["", ""] if paper is None else [f"{paper:,}", f"{paper / PAPER[GETTIMEOFDAY]:.2f}"]
        cells.append([name, f"{value:,.1f}", f"{value / ticks[GETTIMEOFDAY]:.3f}", *theirs])
    return table(["read", "ticks", "to gettimeofday", "paper, cycles", "to its gettimeofday"], cells, "lr")


def took_ns(bench: Bench, variant: str, launch: list[str]) -> float:
    """What a run says it took."""
    run = ["-o", "run"]
    before = {
        "base": [],
        "record": [bench.quell, "-q", "record", "--method", "kernel", "-o", "run.quell", "--"],
        "calls": [bench.quell, "-q", "trace", *run, "--sources", "off", "--"],
        "counters": [bench.quell, "-q", "trace", *run, "--"],
    }[variant]
    for left in ("run", "run.quell"):
        shutil.rmtree(bench.folder / left, ignore_errors=True)
    printed = bench.run(*before, *launch, *PROGRAM).stdout.split()
    return next(float(word) for word in printed if word.isdigit())


def applications(bench: Bench, launch: list[str]) -> dict[str, list[float]]:
    """Run times of each variant, in rounds of random order; the first round is not counted."""
    found: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for number in rounds("tracing", ROUNDS, TABLE_2_S, least=6):
        for variant in random.sample(list(VARIANTS), len(VARIANTS)):
            took = took_ns(bench, variant, launch)
            if number:
                found[variant].append(took)
    return found


def slowdowns(found: dict[str, list[float]], variant: str) -> tuple[float, float]:
    """By the minima, and by the median of the rounds, in percent."""
    base = found["base"]
    paired = median(one / none for one, none in zip(found[variant], base))
    return 100 * (min(found[variant]) / min(base) - 1), 100 * (paired - 1)


def table_2(found: dict[str, list[float]]) -> str:
    """Table 2."""
    cells = []
    for variant, about in VARIANTS.items():
        least, middle = slowdowns(found, variant)
        took = [f"{value / 1e6:,.1f}" for value in (min(found[variant]), median(found[variant]), max(found[variant]))]
        cells.append([about, *took, f"{least:+.2f}", f"{middle:+.2f}"])
    header = [
        "next to the program",
        "least, ms",
        "middle",
        "most",
        "slower by the minima, %",
        "by the median of rounds, %",
    ]
    return table(header, cells, "lr")


def examples(bench: Bench) -> dict[str, tuple[list[int], list[int]]] | None:
    """What `quell track` makes of the four examples, in ms. Nothing where they cannot be written."""
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else "python3"
    if subprocess.run([python, "-c", "import otf2"], capture_output=True, check=False).returncode:
        return None
    bench.run(python, str(HERE / "nataraj_2007/examples.py"), ".")
    found = {}
    for name in EXAMPLES:
        ranks = bench.document("track", name)["ranks"]
        found[name] = tuple([rank[key] // 1_000_000 for rank in ranks] for key in ("accumulated_ns", "absorbed_ns"))
    return found


def example_rows(found: dict[str, tuple[list[int], list[int]]] | None) -> list[Row]:
    """Figure 2."""
    if found is None:
        return [Row(NATARAJ, "Fig. 2", "four examples", "", NOT_HERE, "python3-otf2, which writes them, is not here.")]
    right = all(
        found[name][0] == ms and absorbed in (None, found[name][1]) for name, (ms, absorbed, _) in EXAMPLES.items()
    )
    ours = "; ".join(f"{name}: {', '.join(map(str, found[name][0]))} ms" for name in EXAMPLES)
    paper = "accumulated, a: 100, 100 ms; b: 30 at the receiver, 70 absorbed; c: 33, 67 absorbed; d: no number"
    why = "They do not differ; d is quell's own example of a barrier."
    return [Row(NATARAJ, "Fig. 2", paper, ours, claim(REPRODUCED, holds=right), why)]


def table_rows(ticks: dict[str, float], found: dict[str, list[float]] | None) -> list[Row]:
    """Figure 1, Tables 1 and 2."""
    ratios = [f"{ticks[name] / ticks[GETTIMEOFDAY]:.2f}" for name in list(PAPER)[:4]]
    proc = ticks["no-op read of /proc"] / ticks["container, 1 metric"]
    config = ticks["opening it"] + ticks["the first look for the slot"]
    mechanism = "Another mechanism with the same aim; ticks of a time stamp counter are not cycles of a core."
    made = [
        Row(
            NATARAJ,
            "Fig. 1",
            "a drawing: kernel counters mapped into the program instead of read through /proc; no number",
            f"a read of /proc costs {proc:.0f} times one of the container",
            claim(IN_SHAPE, holds=proc > 1),
            "Nothing to compare but that a mapped counter costs less.",
        ),
        Row(
            NATARAJ,
            "Table 1",
            "to read 1, 2, 4, 8 metrics: 192, 272, 288, 400 cycles; 0.81, 1.14, 1.21, 1.68 times gettimeofday",
            f"{', '.join(ratios)} times gettimeofday ({ticks['container, 1 metric']:.1f} to "
            f"{ticks['container, 8 metrics']:.1f} ticks)",
            DIFFERS,
            mechanism,
        ),
        Row(
            NATARAJ,
            "Table 1",
            f"to begin: {PAPER_CONFIG:,} cycles; PAPI {PAPER_PAPI:,}",
            f"{config:,.0f} ticks: {ticks['opening it']:,.0f} to open, the rest to find the thread's slot",
            DIFFERS,
            "Opening goes over a socket to the recorder, which hands out a descriptor. PAPI has no counter here.",
        ),
    ]
    if found is None:
        return [*made, Row(NATARAJ, "Table 2", PAPER_2, "", NOT_HERE, "There is no MPI here.")]
    base = found["base"]
    parts = [f"{name} {slowdowns(found, name)[1]:+.2f}" for name in list(VARIANTS)[1:]]
    return [
        *made,
        Row(
            NATARAJ,
            "Table 2",
            PAPER_2,
            f"{', '.join(parts)} % (medians of {len(base)} rounds, {min(base) / 1e9:.2f} s on 2 CPUs)",
            NOT_HERE,
            "Less than a second on two virtual CPUs, whose speed and load stray by more than what is to be measured.",
        ),
    ]


def make(bench: Bench) -> list[Row]:
    """Measures everything and writes the page."""
    say("reads of the container")
    ticks = container(bench)
    # Bound, for ranks that are pushed about stray more.
    launch = bench.mpi_program(HERE / "kernels/cg.c", "core")
    found = applications(bench, launch) if launch else None
    tracked = examples(bench)
    parts = [INTRODUCTION, "## Reading counters (Table 1)", table_1(ticks)]
    if found:
        parts += ["## Being traced (Table 2)", table_2(found), f"The paper: {PAPER_2}."]
    if tracked:
        cells = [
            [name, about, ", ".join(map(str, ms)), *(", ".join(map(str, values)) for values in tracked[name])]
            for name, (ms, _, about) in EXAMPLES.items()
        ]
        header = ["example", "what it shows", "the paper's accumulated, ms", "accumulated, ms", "absorbed, ms"]
        parts += ["## Worked examples (Figure 2)", table(header, cells, "llr")]
    write_page("nataraj-2007-overhead", "Nataraj 2007, Tables 1 and 2, Figure 2", [*parts, WHY])
    return table_rows(ticks, found) + example_rows(tracked)


if __name__ == "__main__":
    sys.exit(main("nataraj-2007-overhead", 150, __doc__, make))
