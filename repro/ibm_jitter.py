"""Repeats IBM's page on OS jitter (2013): its tables of tasks and of mitigations, vpsum, and CG bound and unbound.

Usage: ibm_jitter.py QUELL, where QUELL is the program to run. Writes ibm-jitter.md and ibm-jitter.svg next to this
script. vpsum and CG need an MPI; their figures are measured, and no two runs give the same. As root, the third kind of
runs of CG has this machine's mitigations applied; each run reverts them at its end.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import textwrap
from collections import Counter
from statistics import median

from report import (
    DIFFERS,
    FAILED,
    HERE,
    IN_SHAPE,
    NOT_HERE,
    REPRODUCED,
    Bench,
    Row,
    claim,
    effort,
    main,
    rounds,
    say,
    table,
    write_page,
)
from report.drawing import BLUE, GREEN, GREY, ORANGE, panels, save
from report.papers import IBM

# Iterations, and points along an edge of a rank's box: about a second on idle CPUs.
CG = ("2000", "48")
CG_RUNS, CG_S = 10, 60
CG_RANKS = 2
# Of a point in an iteration of kernels/cg.c: 7 in A p, and 2 each in two dot products and three updates of vectors.
CG_OPERATIONS = 7 + 2 * 2 + 3 * 2
UNBOUND, BOUND, ALL = "unbound", "bound", "bound, all mitigations"
# It leaves a CPU to the system, and both have a rank here.
NOT_WANTED = {"corespec-n-minus-1"}
VPSUM_ROUNDS, VPSUM_S = 2, 50
PAPER_CG = (
    "s, unbound: 7.1, 355.41, 109.38; affinity: 5.11, 5.15, 5.14; all: 5.14, 5.14, 5.15; Mop/s: 20176, 403, 1311; "
    "28067, 27814, 27901; 27909, 27908, 27847"
)
KERNEL_THREADS = ("kworker", "ksoftirqd", "rcu_", "kdamond", "migration", "kswapd", "khugepaged", "kcompactd", "jbd2")
# What a test harness does next to its run: it looks at the machine and writes what it saw.
HARNESS = """#!/bin/bash
(while :; do date; ps ax; sleep 0.05; done) >log 2>&1 &
disturber=$!
"$@"
code=$?
kill $disturber
exit $code
"""
SCRIPT = """#!/bin/bash
"$@"
exit $?
"""
VARIANTS = {
    "vpsum, not mitigated": ("harness", ["--no-bind"], "under a test harness, ranks not bound"),
    "vpsum, mitigated": ("harness", [], "under the harness, each rank bound to a CPU"),
    "vpsum, without harness": ("script", [], "from a shell script, bound"),
    "vpsum, without script": ("", [], "directly, bound"),
}

# The techniques of the page's four tables and of its text, in its order, as the catalogue calls them.
TABLES = [
    *("lpar-dedicated", "svc-postfix", "svc-nscd", "svc-cron", "cdrom-poll", "smt-snooze-delay", "irqbalance-off"),
    *("rt-throttle-off", "vm-stat-interval", "hung-task", "softlockup-off", "governor-performance"),
    *("smt-sibling-affinity", "irq-cpu0", "irq-thread0", "rhash-entries", "isolcpus", "compugard", "chrt-app"),
]
TEXT = ["rankfile-affinity", "launch-no-shell"]
# What counts as spikes that shrink.
SHRUNK = 0.8
# What counts as runs that vary more than others: how much larger the longest over the shortest is.
STEADIER = 1.1

INTRODUCTION = """\
What IBM's PowerLinux team showed in 2013 in *OS Jitter Mitigation Techniques*, of POWER6 nodes of 32 cores under SLES
11: a table of the tasks that ran, vpsum and psnap, their mitigations, and NAS's conjugate gradients with and without
them. Here: `quell show`, `quell bench fwq`, `quell tune audit`, and conjugate gradients of our own (`kernels/cg.c`)
on two CPUs. Written by `ibm_jitter.py`; do not edit.
"""

FORMULA = f"""\
{CG_OPERATIONS} operations x {CG[1]}^3 points x {CG_RANKS} ranks x {CG[0]} iterations / time.
The operations of a point in an iteration of `kernels/cg.c` are 7 in the product with the matrix (5 additions of
neighbours, a multiplication and a subtraction), and 2 each in two dot products and three updates of vectors.
"""

APPLIED = """\
All mitigations that were applied:
{}.
`quell tune apply --with` applies them before each such run and reverts them after it; then `quell tune status` has to
list none.
"""

NONE_APPLIED = "none, because only root may, where none are applied yet"

WHY = """\
## Why they differ

- **vpsum, mitigated** is affinity alone, which the page itself found to matter most. No kernel setting was changed for
  it; `quell tune try` measures the others, one at a time.
- **vpsum's graphs** print no numbers. The mean slow-down is the page's own figure for them: the slowest rank of each
  iteration, above the quantum.
- **CG.** 128 processes without affinity met on the same cores of 4 nodes, for minutes. 2 ranks on 2 CPUs do so now
  and then, where other programs push them about; a bound rank shares its CPU with those alone.
- **All mitigations** are those that can be changed while this machine runs: the page's own up to a medium risk, and all
  others of the catalogue that have a low one. What needs a boot, systemd or another machine is left out, and so is what
  leaves a CPU to the system, because both have a rank.
"""


def osjitter(bench: Bench) -> list[dict]:
    """Records a CPU without a probe; its tasks."""
    words = ["--method", "kernel", "--duration", f"{effort(10)}s"]
    bench.run(bench.quell, "-q", "record", "-o", "tasks.quell", *words)
    return bench.document("show", "tasks.quell", "--by", "task")["tasks"]


def name(task: dict) -> str:
    """A task's name, which anybody may choose, as code in a table."""
    return "`" + "".join(one if one.isalnum() or one in " .:_/-+()" else "?" for one in task["name"]) + "`"


def task_table(tasks: list[dict]) -> str:
    """The osjitter table: times in ms."""
    cells = []
    for task in tasks[:12]:
        times = [f"{task[key] / 1e6:,.3f}" for key in ("total_ns", "min_ns", "max_ns", "mean_ns")]
        period = f"{task['period_ns'] / 1e6:.3f}" if task["period_ns"] else ""
        cells.append([str(task["pid"]), name(task), str(task["count"]), *times, period])
    header = ["pid", "name", "count", "total (ms)", "min (ms)", "max (ms)", "avg (ms)", "period (ms)"]
    return table(header, cells, "rlr")


def formats(bench: Bench) -> tuple[list[list[int]], dict[int, int]]:
    """A run of 1 ms as vpsum prints it: iteration, us; and one of 100 us as psnap does: us, how often on rank 0."""
    bench.document("bench", "fwq", "-n", "2", "--duration", "2s", "-o", "vpsum")
    bench.run(bench.quell, "-q", "convert", recording(bench, "vpsum"), "out.vpsum", "--to", "vpsum")
    lines = (bench.folder / "out.vpsum" / "vpsum.0").read_text(encoding="utf-8").splitlines()
    iterations = [list(map(int, line.split())) for line in lines if line[:1].isdigit()]
    bench.document("bench", "fwq", "-n", "2", "--duration", "2s", "--quantum", "100us", "-o", "psnap")
    bench.run(bench.quell, "-q", "convert", recording(bench, "psnap"), "out.psnap", "--to", "psnap")
    lines = (bench.folder / "out.psnap").read_text(encoding="utf-8").splitlines()
    bins = [line.split() for line in lines if line.startswith("0 ")]
    return iterations, {int(one[1]): int(one[2]) for one in bins}


def recording(bench: Bench, folder: str) -> str:
    """The recording of this host in a run's folder."""
    return str(next((bench.folder / folder).glob("*.quell")))


def vpsum(bench: Bench) -> dict[str, list[float]]:
    """The mean slow-down of 10 ms quanta, each way, in rounds of random order."""
    for script, text in (("harness", HARNESS), ("script", SCRIPT)):
        path = bench.folder / script
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    found: dict[str, list[float]] = {one: [] for one in VARIANTS}
    for _ in rounds("vpsum", VPSUM_ROUNDS, VPSUM_S):
        for one in random.sample(list(VARIANTS), len(VARIANTS)):
            script, options, _ = VARIANTS[one]
            shutil.rmtree(bench.folder / "run", ignore_errors=True)
            words = ["-n", "2", "--quantum", "10ms", "--duration", f"{effort(4)}s", "-o", "run", *options]
            before = [str(bench.folder / script)] if script else []
            bench.run(*before, bench.quell, "-q", "bench", "fwq", *words)
            shown = bench.document("bench", "show", "run")
            found[one].append(shown["mean_slowdown_percent"])
            shutil.rmtree(bench.folder / one, ignore_errors=True)
            (bench.folder / "run").rename(bench.folder / one)
    return found


def quanta_ms(bench: Bench, one: str) -> list[float]:
    """Each quantum of rank 0 of the last run of a kind, in ms."""
    shutil.rmtree(bench.folder / "graph", ignore_errors=True)
    bench.run(bench.quell, "-q", "convert", recording(bench, one), "graph", "--to", "vpsum")
    lines = (bench.folder / "graph" / "vpsum.0").read_text(encoding="utf-8").splitlines()
    return [int(line.split()[1]) / 1000 for line in lines if line[:1].isdigit()]


def applicable(bench: Bench) -> list[str]:
    """The mitigations that can be applied now, as a plan in all.plan; none where others are, or without root."""
    if os.geteuid() or bench.document("tune", "status")["open"]:
        return []
    wanted = []
    for one in bench.document("tune", "audit")["mitigations"]:
        risks = {"low", "medium"} if one["id"] in TABLES else {"low"}
        if one["state"] != "not-applied" or one["risk"] not in risks or one["id"] in NOT_WANTED:
            continue
        plan = bench.document("tune", "plan", one["id"])
        if any(not write["staged"] for write in plan["writes"]):
            wanted.append(one["id"])
    if wanted:
        bench.run(bench.quell, "-q", "tune", "plan", *wanted, "-o", "all.plan")
    return wanted


def nothing_is_left(bench: Bench) -> None:
    """Reverts what is applied, and fails where that is not possible."""
    bench.run(bench.quell, "-q", "tune", "revert")
    left = bench.document("tune", "status")["open"]
    if left:
        raise RuntimeError(f"mitigations are still applied: {left}")


def gradients(bench: Bench, launch: list[str], kinds: list[str]) -> dict[str, list[float]]:
    """Seconds of each run of CG, of each kind, in random order."""
    launcher, _, _, *rest = launch
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in rounds("CG", CG_RUNS, CG_S, least=6):
        for kind in random.sample(kinds, len(kinds)):
            command = [launcher, "--bind-to", "none" if kind == UNBOUND else "core", *rest, *CG]
            if kind == ALL:
                apply = [bench.quell, "-q", "tune", "apply", "all.plan", "--yes", "--max-risk", "medium"]
                command = [*apply, "--with", "--", *command]
            try:
                printed = bench.run(*command).stdout.split()
            finally:
                if kind == ALL:
                    nothing_is_left(bench)
            found[kind].append(float(printed[0]) / 1e9)
    return found


def operations(seconds: float) -> float:
    """Mop/s of a run of CG: operations of a point x points of a rank x ranks x iterations / time."""
    return CG_OPERATIONS * int(CG[1]) ** 3 * CG_RANKS * int(CG[0]) / seconds / 1e6


def audit(bench: Bench) -> list[dict]:
    """The page's mitigations in quell's catalogue, and whether they are on here."""
    catalogue = {one["id"]: one for one in bench.document("tune", "audit")["mitigations"]}
    return [catalogue[one] for one in [*TABLES, *TEXT] if one in catalogue]


def draw(graphs: dict[str, list[float]], found: dict[str, list[float]]) -> None:
    """Vpsum's graphs, and CG."""
    figure, (spikes, runs) = panels(1, 2, (11, 4))
    for (one, values), colour in zip(graphs.items(), (ORANGE, BLUE)):
        changes = [10 * value - 100 for value in values]
        spikes.plot(changes, color=colour, linewidth=0.8, label=VARIANTS[one][2])
    spikes.set_xlabel("iteration of 10 ms")
    spikes.set_ylabel("above 10 ms, %")
    spikes.set_title("vpsum, rank 0", fontsize=10)
    spikes.legend(fontsize=8)
    for (how, values), colour in zip(found.items(), (ORANGE, BLUE, GREEN)):
        runs.plot(range(1, len(values) + 1), values, color=colour, marker="o", linestyle="none", label=how)
        runs.axhline(median(values), color=colour, linewidth=0.8)
    runs.axhline(0, color=GREY, linewidth=0.5)
    runs.set_xlabel("run")
    runs.set_ylabel("seconds")
    runs.set_title("conjugate gradients", fontsize=10)
    if found:
        runs.legend(fontsize=8)
    save(figure, "ibm-jitter")


def looked_at(tasks: list[dict], known: list[dict]) -> list[Row]:
    """The table of tasks, and the mitigations."""
    others = [task for task in tasks if task["name"] != "idle" and not task["own"]]
    kernel = [task for task in others if task["name"].startswith(KERNEL_THREADS)]
    most = "; ".join(f"{name(task)} {task['count']} times, {task['mean_ns'] / 1000:.0f} us" for task in kernel[:4])
    states = ", ".join(f"{count} {state}" for state, count in Counter(one["state"] for one in known).most_common())
    return [
        Row(
            IBM,
            "osjitter table",
            "vpsum's ranks, 8 ms at a time; in the mean qmgr and pickup 47 us, cron 48 us, irqbalance 148 us",
            f"{len(others)} tasks in {effort(10)} s; of the kernel's: {most or 'none'}",
            DIFFERS,
            "Another system without those daemons; who else worked on the machine is in the page's table.",
        ),
        Row(
            IBM,
            "mitigation tables",
            f"{len(TABLES)} techniques in its tables, {len(TEXT)} more in its text",
            f"{len(known)} of them in the catalogue; here: {states}",
            claim(REPRODUCED, holds=len(known) == len(TABLES) + len(TEXT)),
            "What a virtual x86 machine has not (SMT snooze, LPARs, compugard) is off, or cannot be seen from inside.",
        ),
    ]


def ran(
    iterations: list[list[int]], bins: dict[int, int], slow: dict[str, list[float]], found: dict[str, list[float]]
) -> list[Row]:
    """vpsum, psnap, the graphs and CG."""
    first = ", ".join(str(row[1]) for row in iterations[:13])
    whole, usual = sum(bins.values()), max(bins, key=lambda one: bins[one])
    near = 100 * sum(count for us, count in bins.items() if us <= usual + 2) / whole
    busy = "Two virtual CPUs that others use; the quantum is that of undisturbed work, not the shortest seen."
    rows = [
        Row(IBM, "vpsum output", "the first 13 iterations of 1 ms: 1000 to 1003 us", f"{first} us", DIFFERS, busy),
        Row(IBM, "psnap output", "100 us quanta: 99 % of the excerpt at 100 to 102 us, the rest to 109 us",
            f"{near:.1f} % up to {usual + 2} us; longest {max(bins):,} us", DIFFERS, busy),
    ]  # fmt: skip
    before = None
    for one, values in slow.items():
        now = median(values)
        # The first has nothing to shrink from.
        shrinks = before is None or now < SHRUNK * before
        rows.append(Row(IBM, one, "a graph, without numbers: spikes shrink from one to the next",
                        f"{VARIANTS[one][2]}: mean slow-down {now:.1f} %", IN_SHAPE if shrinks else FAILED,
                        busy if shrinks else "The difference may be chance. " + busy))  # fmt: skip
        before = now
    return [*rows, gradients_row(found)]


def gradients_row(found: dict[str, list[float]]) -> Row:
    """CG's three kinds of runs."""
    spread = {kind: max(values) / min(values) for kind, values in found.items()}
    ours = "; ".join(
        f"{kind}: {', '.join(f'{value:.2f}' for value in values[:3])} s "
        f"({', '.join(f'{operations(value):,.0f}' for value in values[:3])} Mop/s), "
        f"longest over shortest of {len(values)} {spread[kind]:.2f}, median {median(values):.2f} s"
        for kind, values in found.items()
    )
    steadier = all(spread[UNBOUND] > STEADIER * spread[kind] for kind in found if kind != UNBOUND)
    why = "2 ranks on 2 CPUs meet on one CPU only where other programs push them about, and never for minutes."
    if ALL not in found:
        why += f" Mitigations: {NONE_APPLIED}."
    verdict = IN_SHAPE if steadier and ALL in found else FAILED
    return Row(IBM, "CG table", PAPER_CG, ours, verdict, why)


def make(bench: Bench) -> list[Row]:
    """Measures everything and writes the page and the figure."""
    say("tasks")
    tasks, known = osjitter(bench), audit(bench)
    cells = [[one["ibm"], f"`{one['id']}`", one["state"]] for one in known]
    parts = [
        INTRODUCTION,
        "![vpsum's spikes, and runs of CG](ibm-jitter.svg)",
        "## Tasks on both CPUs (the osjitter table)",
        task_table(tasks),
        "## Mitigations of the page, on this machine",
        table(["the page", "quell", "state"], cells),
    ]
    launch = bench.mpi_program(HERE / "kernels/cg.c")
    if not launch:
        why = "Not measured: there is no MPI here."
        write_page("ibm-jitter", "IBM, OS jitter", [*parts, WHY])
        rest = ["vpsum output", "psnap output", *VARIANTS, "CG table"]
        return looked_at(tasks, known) + [Row(IBM, one, "", "", NOT_HERE, why) for one in rest]
    iterations, bins = formats(bench)
    slow = vpsum(bench)
    graphs = {one: quanta_ms(bench, one) for one in ("vpsum, not mitigated", "vpsum, without script")}
    mitigations = applicable(bench)
    found = gradients(bench, launch, [UNBOUND, BOUND, *([ALL] if mitigations else [])])
    draw(graphs, found)
    runs = [
        [VARIANTS[one][2], *(f"{value:.2f}" for value in (min(values), median(values), max(values)))]
        for one, values in slow.items()
    ]
    seconds = [[how, *(f"{value:.2f}" for value in [*values, median(values)])] for how, values in found.items()]
    rates = [
        [how, *(f"{operations(value):,.0f}" for value in [*values, median(values)])] for how, values in found.items()
    ]
    parts += [
        "## Mean slow-down of 10 ms quanta, %",
        table(["run", "least", "middle", "most"], runs, "lr"),
        "## Conjugate gradients, s",
        table(["ranks", *(f"run {at + 1}" for at in range(len(found[BOUND]))), "median"], seconds, "lr"),
        "## Conjugate gradients, Mop/s",
        FORMULA,
        table(["ranks", *(f"run {at + 1}" for at in range(len(found[BOUND]))), "median"], rates, "lr"),
        APPLIED.format(textwrap.fill(", ".join(f"`{one}`" for one in mitigations) or NONE_APPLIED, 118)),
    ]
    write_page("ibm-jitter", "IBM, OS jitter", [*parts, WHY])
    return looked_at(tasks, known) + ran(iterations, bins, slow, found)


if __name__ == "__main__":
    sys.exit(main("ibm-jitter", 150, __doc__, make))
