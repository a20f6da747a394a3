"""Repeats what Jones et al. (LLNL) measured: allreduce and halo on full nodes, and the kernel's share.

Usage: jones_llnl.py QUELL, where QUELL is the program to run. Writes jones-llnl.md and jones-llnl.svg next to this
script. Needs an MPI; its figures are measured, and no two runs give the same.
"""

from __future__ import annotations

import math
import sys

from report import (
    DIFFERS,
    IN_SHAPE,
    NOT_HERE,
    REPRODUCED,
    Bench,
    Row,
    claim,
    effort,
    main,
    say,
    table,
    write_page,
)
from report.drawing import BLUE, GREEN, GREY, ORANGE, panels, save
from report.papers import JONES

RANKS = [16, 64, 256, 1024, 4096]
# An allreduce of 4,096 tasks in 12 rounds takes the 710 us that the paper expects. It does not say how much of a round
# is work of the CPU, which a tick delays, and how much latency, in which it is absorbed: both ends are tried.
NETS = {"latency": "L=53000,o=3000,g=1000,G=6", "overhead": "L=20000,o=19500,g=1000,G=6"}
THEIRS = """name = "AIX's tick, as the paper has it"
span = "10s"
[[component]]
periodic = { period = "10ms" }
duration = { uniform = { min = "15us", max = "25us" } }
"""
EXPECTED_US, OBSERVED_US = 710, 2600

# Their machine: nodes of 16 CPUs, each CPU with that tick at its own time. Their sum of section 4.4.2 describes the
# daemons: in 4,096 allreduces of 2,600 us on 256 nodes 100 take 78.125 ms instead of 710 us.
THEIR_NODE = """name = "a node of LLNL's SP, {cpus} of 16 CPUs"
span = "{span_s}s"
cpus = {cpus}
[[component]]
periodic = {{ period = "10ms", phase = "random" }}
duration = {{ uniform = {{ min = "15us", max = "25us" }} }}
"""
THEIR_DAEMON = """[[component]]
poisson = {{ rate = "{rate:.6f}/s" }}
duration = {{ exponential = {{ mean = "77415us" }} }}
"""
THEIR_SPAN_S = 2000
THEIR_RANKS = [64, 512, 4096, 8192]
# The share of one CPU of a node: daemons of a node run on any of its 16.
DAEMON_RATE = 100 / (4096 * OBSERVED_US * 1e-6) / 256 / 16
LONG_NS = 100_000

# How far a sum may be from the paper's rounded one.
SMALL = 0.05

INTRODUCTION = """\
After Jones, Brenner & Fier's study of 2003 at Lawrence Livermore on IBM SPs of up to 8,192 CPUs: an allreduce of 8
bytes and a halo exchange, on full nodes and on such with a CPU left to the system, and the kernel's trace next to
them. Here two ranks on this machine's CPUs, by `quell bench`, with quell's kernel recorder next to them; what takes
thousands of CPUs is simulated, under noise of this machine and under the paper's own tick. Written by
`jones_llnl.py`; do not edit.
"""

LIMITS = """\
## Limits

- Two ranks share the memory of one node: an operation takes less than a microsecond, where the paper's took hundreds.
  So each has 50 us of work before it, or the run would be over before any noise came.
- One rank of two is not fifteen of sixteen: it exchanges with itself. What the comparison still shows is whether a
  free CPU takes the daemons away.
- Where the machine is not idle, other programs count as Type 2, as they should: they are what the ranks must wait
  for.
- The tick of this machine comes every 4 ms (250 Hz), staggered or not as the table says; AIX had one every 10 ms.
- The models of this node hold the means of its classes, not their tails, so the simulated curve is on the low side.
"""


def us(nanos: float) -> str:
    """A time in us, with three figures."""
    return f"{nanos / 1000:,.3g}" if nanos < 1e5 else f"{nanos / 1000:,.0f}"  # noqa: PLR2004 (100 us)


def halo_table(found: dict) -> str:
    """Table 2, the paper's four rows and ours."""
    header = ["node, ranks on it", "min, us", "average", "maximum", "standard deviation", "means of runs"]
    rows = [
        ["paper: Silver, 3 of 4", "341", "656", "1,890", "24.5", ""],
        ["paper: Silver, 4 of 4", "419", "1,773", "67,470", "2,155", ""],
        ["paper: NightHawk-2, 14 of 16", "221", "394", "972", "40.2", ""],
        ["paper: NightHawk-2, 16 of 16", "245", "582", "14,657", "188", ""],
    ]
    for layout in found["layouts"]:
        times, ranks = layout["times"], layout["run"]["ranks"]
        cells = [us(times[key]) for key in ("min_ns", "mean_ns", "max_ns", "sigma_ns")]
        rows.append([f"here, {ranks} of 2", *cells, " ".join(us(mean) for mean in layout["means_ns"])])
    return table(header, rows, "lr")


def classes(bench: Bench) -> tuple[dict[str, dict], float]:
    """What each class of source took of a CPU, and of how long a time, in ns."""
    bench.run(bench.quell, "-q", "record", "-o", "node.quell", "--cpus", "1", "--duration", f"{effort(15)}s")
    shown = bench.document("show", "node.quell", "--by", "class")
    return {row["class"]: row for row in shown["classes"]}, float(shown["cpus"][0]["observed_ns"])


def model(bench: Bench, name: str, kinds: list[dict], watched_ns: float) -> str:
    """A noise model of some classes: as many, and as long in the mean."""
    parts = [f'name = "{name}"', 'span = "60s"']
    for kind in kinds:
        rate = kind["count"] / watched_ns * 1e9
        mean = max(1, round(kind["mean_ns"]))
        duration = f'constant = "{mean}ns"' if kind["class"] == "type1" else f'exponential = {{ mean = "{mean}ns" }}'
        parts += ["[[component]]", f'poisson = {{ rate = "{rate:.3f}/s" }}', f"duration = {{ {duration} }}"]
    path = bench.folder / f"{name}.toml"
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return str(path)


def simulated_us(bench: Bench, ranks: int, noise: str | None, net: str = NETS["overhead"]) -> float:
    """The mean allreduce of a loop of them."""
    turns = 100 if ranks > 1000 else 400  # noqa: PLR2004 (each takes that much longer)
    words = ["--pattern", "allreduce", "--ranks", str(ranks), "--bytes", "8", "--iterations", str(turns), "--net", net]
    made = bench.document("simulate", *words, *(["--noise", noise] if noise else []))
    return made["max_ns"] / turns / 1000


def draw(histogram: dict, curves: dict[str, list[float]]) -> None:
    """Figures 3 and 4."""
    figure, (scaling, bins) = panels(1, 2, (10, 4))
    looks = {"without noise": (GREY, ":"), "Type 1 alone": (BLUE, "--"), "all classes": (ORANGE, "-")}
    looks["the paper's tick"] = (GREEN, "-.")
    for name, values in curves.items():
        colour, line = looks[name]
        scaling.plot(RANKS, values, color=colour, linestyle=line, marker="o", markersize=4, label=name)
    scaling.set_xscale("log", base=2)
    scaling.set_xticks(RANKS, [f"{ranks:,}" for ranks in RANKS])
    scaling.set_yscale("log")
    scaling.set_xlabel("tasks")
    scaling.set_ylabel("mean allreduce, us")
    scaling.set_title("Figure 3, simulated", fontsize=10)
    scaling.legend(fontsize=8)
    edges = [edge / 1000 for edge in histogram["edges_ns"]]
    bins.stairs(histogram["counts"], edges, fill=True, color=BLUE)
    bins.set_xscale("log")
    bins.set_yscale("log")
    bins.set_ylim(bottom=0.7)
    bins.set_xlabel("longest of two ranks, us")
    bins.set_ylabel("allreduces")
    bins.set_title("Figure 4, measured", fontsize=10)
    save(figure, "jones-llnl")


def allreduce_rows(run: dict) -> list[Row]:
    """Figure 4, Table 3 and section 4.4."""
    longest, estimates = run["longest"], run["estimates"]
    bins = zip(run["histogram"]["edges_ns"], run["histogram"]["counts"])
    above = sum(count for edge, count in bins if edge >= LONG_NS)
    share = 100 * above / run["operations"]
    rows = [
        Row(
            JONES,
            "Fig. 4",
            "a bell at the expected value, and a few long-lived outliers; no number",
            f"{run['operations']:,} allreduces: median {us(longest['p50_ns'])} us, mean {us(longest['mean_ns'])}, "
            f"longest {us(longest['max_ns'])}; {share:.2g} % over 100 us",
            claim(IN_SHAPE, holds=longest["max_ns"] > 100 * longest["p50_ns"]),
            "Two ranks in one memory: the usual operation is a thousand times shorter, the outliers are not.",
        )
    ]
    if not estimates:
        why = "The kernel could not be watched here (no eBPF, or no privilege); `quell doctor` says why."
        return rows + [Row(JONES, one, "", "", NOT_HERE, why) for one in ("Table 3", "section 4.4", "section 4.4.1")]
    share, tick = estimates["os_percent"], estimates["tick_ns"] / 1000
    period = max((row["period_ns"] for row in estimates["ticks"]), default=0) / 1e6
    stagger = ", ".join(f"{row['stagger_ns'] / 1000:.0f}" for row in estimates["ticks"])
    rows += [
        Row(
            JONES,
            "Table 3",
            "the tasks had 98.88 (1,024 CPUs) to 99.77 % (16 CPUs) of the CPUs, the system 0.22 to 1.12 %",
            f"the ranks had {100 - share:.2f} % of 2 CPUs, the system and other tasks {share:.2f} %",
            DIFFERS,
            "Not a dedicated node: other programs ran, as the load below shows.",
        ),
        Row(
            JONES,
            "section 4.4",
            "0.5 % of system time that never overlaps bounds the speed-up at 200",
            f"at {share:.2f} %: {estimates['bound_without_overlap'] or 0:.3g} without overlap, "
            f"{estimates['bound_with_overlap'] or 0:.3g} with the overlap measured ({estimates['overlap'] or 0:.2f})",
            claim(REPRODUCED, holds=abs((estimates["bound_without_overlap"] or 0) * share / 100 - 1) < SMALL),
            "The same arithmetic; of two CPUs the overlap could be measured as well.",
        ),
        Row(
            JONES,
            "section 4.4.1",
            "a tick of 15 to 30 us, 20 in the mean, every 10 ms, staggered evenly; 95 of them in the mean allreduce",
            f"a tick of {tick:.1f} us every {period:.1f} ms, staggered by {stagger} us; "
            f"{estimates['ticks_in_mean'] or 0:.2g} of them would make the mean allreduce",
            DIFFERS,
            "Linux at 250 Hz, not AIX at 100; two CPUs hold back one allreduce far less often than 4,096 do.",
        ),
    ]
    return rows


def halo_rows(found: dict) -> list[Row]:
    """Figures 1 and 2, and Table 2."""
    full, left = (layout["times"] for layout in found["layouts"][:2])
    means = [f"{us(min(one['means_ns']))} to {us(max(one['means_ns']))} us" for one in found["layouts"][:2]]
    why = (
        "With 1 of 2 CPUs left, the one rank exchanges with itself: halo exchange and free CPU are "
        "confounded. It takes 3 of 4 CPUs."
    )
    return [
        Row(
            JONES,
            "Fig. 1",
            "3 ranks on 4 CPUs: wall-clock times close together",
            f"1 rank on 2 CPUs: means of runs {means[1]}, standard deviation {us(left['sigma_ns'])} us",
            NOT_HERE,
            why,
        ),
        Row(
            JONES,
            "Fig. 2",
            "4 ranks on 4 CPUs: variability more than 10 times as large",
            f"2 ranks on 2 CPUs: means of runs {means[0]}, standard deviation {us(full['sigma_ns'])} us",
            NOT_HERE,
            why,
        ),
        Row(
            JONES,
            "Table 2",
            "full over one left: maximum 36 and 15 times, standard deviation 88 and 4.7 times",
            f"full over one left: maximum {full['max_ns'] / left['max_ns']:.0f} times, standard deviation "
            f"{full['sigma_ns'] / left['sigma_ns']:.0f} times",
            NOT_HERE,
            why,
        ),
    ]


def scale_rows(of: dict[str, dict], watched: float, curves: dict[str, list[float]], theirs: list[float]) -> list[Row]:
    """Figure 3, and sections 4.4.2 and 4.5."""
    silent = curves["without noise"]
    times = {name: [one / none for one, none in zip(values, silent)] for name, values in curves.items()}
    shares = {name: 100 * of[name]["total_ns"] / watched if name in of else 0.0 for name in ("type1", "type2")}
    daemon = of.get("type2", {"count": 0, "mean_ns": 0, "max_ns": 0})
    need_ms = (OBSERVED_US - EXPECTED_US) * 4096 / 100 / 1000
    first, everything = times["Type 1 alone"], times["all classes"]
    more, less = everything[-1] - first[-1], first[-1] - 1
    return [
        Row(
            JONES,
            "Fig. 3",
            "logarithmic at few tasks, then more; expected 710 us, observed 2,600 (3.7 times)",
            f"simulated, 16 to 4,096 tasks under this node's noise: {everything[0]:.2f} to {everything[-1]:.2f} times "
            f"the logarithmic time; its Type 1 alone: {first[0]:.2f} to {first[-1]:.2f}",
            claim(IN_SHAPE, holds=everything[-1] > max(everything[0], 1.05)),
            "Means of this node's classes, other people's work in them, on a network of 710 us at 4,096 tasks.",
        ),
        Row(
            JONES,
            "section 4.4.2",
            "100 of 4,096 allreduces that take 78.125 ms each would make the mean 2,600 us",
            f"they would have to take {need_ms:.1f} ms more than 710 us; daemons and other tasks here: "
            f"{daemon['count'] / watched * 1e9:.0f}/s, {us(daemon['mean_ns'])} us in the mean, longest "
            f"{us(daemon['max_ns'])} us",
            claim(REPRODUCED, holds=abs(need_ms + EXPECTED_US / 1000 - 78.125) < SMALL),
            "The sum is the paper's; the tasks are this node's own.",
        ),
        Row(
            JONES,
            "section 4.5",
            "Type 2 costs much more than Type 1; a free CPU takes Type 2 away",
            f"Type 1 {shares['type1']:.2f} %, Type 2 {shares['type2']:.2f} % of a CPU; simulated, 4,096 tasks: Type 1 "
            f"alone {first[-1]:.2f} times as long as without noise, with Type 2 {everything[-1]:.2f} times",
            IN_SHAPE if more > less else DIFFERS,
            "Type 1 alone is all noise but Type 2. "
            + ("The same order." if more > less else "The contrary order: few daemons run here, and many interrupts."),
        ),
        Row(
            JONES,
            "section 4.5",
            "2,600 us were observed where 710 were expected",
            f"simulated under the paper's tick alone: {theirs[0]:.0f} us (rounds mostly latency) to {theirs[1]:.0f} us "
            "(mostly overhead)",
            DIFFERS,
            "Ticks alone do not make 2,600 us, which is the paper's point; its daemons are not described so that they "
            "could be simulated.",
        ),
    ]


THEIR_WORDS = """\
Nodes of 16 CPUs with the paper's tick of 20 us at 100 Hz, each CPU at its own time, and the daemons of its own sum: 100
of 4,096 allreduces on 256 nodes take 78.125 ms instead of 710 us. An allreduce is 710 us that all CPUs must finish.
"""


def their_curves(bench: Bench) -> dict[str, list[tuple[float, float, float]]]:
    """Mean time of their allreduce in us: under ticks, with daemons, and with a CPU of each node left to these."""
    found = {}
    for name, cpus, daemon in (
        ("full nodes, ticks alone", 16, False),
        ("full nodes, ticks and daemons", 16, True),
        ("15 of 16 CPUs, daemons on the free one", 15, False),
    ):
        text = THEIR_NODE.format(cpus=cpus, span_s=THEIR_SPAN_S)
        text += THEIR_DAEMON.format(rate=DAEMON_RATE) if daemon else ""
        path = bench.folder / "their-node.toml"
        path.write_text(text, encoding="utf-8")
        ranks = [str(count // 16 * cpus) for count in THEIR_RANKS]
        words = ["--quantum", f"{EXPECTED_US}us", "--phases", "3000", "--ranks", ",".join(ranks)]
        points = bench.document("predict", str(path), *words)["points"]
        found[name] = [
            (point["mean_phase_ns"] / 1000, *(EXPECTED_US * (1 + end / 100) for end in point["ci95_percent"] or ()))
            for point in points
        ]
    return found


def range_row() -> Row:
    """Section 4.4.1: how many ticks an interval of 2,600 us holds."""
    apart_us = 10_000 / 16
    # An interval that begins this long before a tick, over all places.
    counts = {math.floor((OBSERVED_US - first) / apart_us) + 1 for first in range(int(apart_us))}
    least, most = min(counts), max(counts)
    return Row(
        JONES,
        "section 4.4.1, range",
        "2,600 us hold 4 or 5 ticks of a node of 16 CPUs, 4 to 1,280 on 256 nodes",
        f"{least} or {most}, {least} to {most * 256:,}",
        claim(REPRODUCED, holds=(least, most * 256) == (4, 1280)),
        "The same arithmetic.",
    )


def their_row(curves: dict[str, list[tuple[float, float, float]]]) -> Row:
    """Sections 4.4.2 and 4.5 on their nodes, simulated."""
    at = THEIR_RANKS.index(4096)
    ticks, daemons, left = (values[at] for values in curves.values())
    words = [f"{name} {values[at][0]:,.0f} us" for name, values in curves.items()]
    low, high = daemons[1:]
    more, free = daemons[0] - ticks[0] > 5 * (ticks[0] - EXPECTED_US), left[0] < 1.02 * ticks[0]
    holds = more and free and low <= OBSERVED_US <= high
    return Row(
        JONES,
        "section 4.5",
        "Type 2 costs much more than Type 1; a free CPU takes Type 2 away; 2,600 us at 4,096 CPUs",
        f"their nodes, predicted at 4,096: {'; '.join(words)} (with daemons {low:,.0f} to {high:,.0f} in 95 %)",
        claim(IN_SHAPE, holds=holds),
        "The daemons are those of the paper's own sum (100 of 4,096 allreduces take 78.125 ms), not of its trace, "
        "and an allreduce is 710 us of work that waits for all. Tested are the curve, the ticks and the free CPU.",
    )


def make(bench: Bench) -> list[Row]:
    """Measures and simulates everything, and writes the page and the figure."""
    say("the network")
    net = bench.document("bench", "loggp", "--rounds", "3", "-o", "net")["kinds"][0]
    say("allreduce")
    words = ["-n", "2", "--count", "64Ki", "--duration", f"{effort(15)}s", "-o", "allreduce"]
    run = bench.document("bench", "allreduce", *words)["runs"][0]
    say("halo")
    halo = bench.document("bench", "halo", "--leave", "1", "--count", "16Ki", "--rounds", str(effort(4)), "-o", "halo")
    say("classes of noise")
    of, watched = classes(bench)
    ours = [of[name] for name in ("type1", "type2", "interrupt") if of.get(name, {}).get("count")]
    models = {
        "Type 1 alone": model(bench, "type1", [one for one in ours if one["class"] != "type2"], watched),
        "all classes": model(bench, "all", ours, watched),
    }
    their_tick = bench.folder / "theirs.toml"
    their_tick.write_text(THEIRS, encoding="utf-8")
    models["the paper's tick"] = str(their_tick)
    say("at scale")
    curves = {"without noise": [simulated_us(bench, ranks, None) for ranks in RANKS]}
    curves |= {name: [simulated_us(bench, ranks, noise) for ranks in RANKS] for name, noise in models.items()}
    theirs = [simulated_us(bench, RANKS[-1], str(their_tick), net) for net in NETS.values()]
    say("their nodes")
    own = their_curves(bench)
    draw(run["histogram"], curves)
    cells = [[name, *(f"{value:,.1f}" for value in values)] for name, values in curves.items()]
    kinds = [
        [name, str(row["count"]), us(row["mean_ns"]), us(row["max_ns"]), f"{100 * row['total_ns'] / watched:.3f}"]
        for name, row in of.items()
    ]
    parts = [
        INTRODUCTION,
        "![Allreduce over tasks, and how long allreduces took](jones-llnl.svg)",
        "## Halo exchange on full nodes and with a CPU left (Table 2)",
        halo_table(halo),
        "## Mean allreduce in us, simulated (Figure 3)",
        table(["noise", *(f"{ranks:,}" for ranks in RANKS)], cells, "lr"),
        "## Mean allreduce in us on their own nodes, predicted (sections 4.4 and 4.5)",
        THEIR_WORDS,
        table(
            ["nodes", *(f"{ranks:,} CPUs" for ranks in THEIR_RANKS)],
            [
                [name, *(f"{value:,.0f} ({low:,.0f} to {high:,.0f})" for value, low, high in values)]
                for name, values in own.items()
            ],
            "lr",
        ),
        "## Classes of noise on CPU 1 (sections 4.2, 4.3)",
        table(["class", "times", "mean, us", "longest, us", "% of the CPU"], kinds, "lr"),
        LIMITS,
    ]
    write_page("jones-llnl", "Jones et al., LLNL", parts)
    why = "One node with shared memory, no switch, no 8,192 CPUs."
    value = "16 CPUs a node, 8,192 in all; one-way latency 20 us, 1 GB/s a node (SP Switch2)"
    small, large = net["sizes"][0], net["sizes"][-1]
    found = (
        f"2 CPUs; half a round trip {us(small['half_round_trip_ns'])} us, "
        f"{large['bytes'] / large['half_round_trip_ns']:.1f} GB/s at {large['bytes'] // 1024} KiB"
    )
    rows = [Row(JONES, "Table 1", value, found, DIFFERS, why)]
    return (
        rows
        + halo_rows(halo)
        + allreduce_rows(run)
        + [range_row(), *scale_rows(of, watched, curves, theirs), their_row(own)]
    )


if __name__ == "__main__":
    sys.exit(main("jones-llnl", 240, __doc__, make))
