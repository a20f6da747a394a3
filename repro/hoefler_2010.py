"""Repeats the slides of Hoefler et al. (SC 2010): the noise of a machine, and how their simulator was verified.

Usage: hoefler_2010.py QUELL, where QUELL is the program to run. Writes hoefler-2010.md and hoefler-2010.svg next to
this script. Noise, network and speed are measured, and no two runs give the same; the rest is exact.
"""

from __future__ import annotations

import json
import sys
import time
from statistics import median

from report import DIFFERS, HERE, NOT_HERE, REPRODUCED, Bench, Row, claim, effort, main, say, table, write_page
from report.drawing import BLUE, GREEN, ORANGE, PINK, panels, save
from report.papers import HOEFLER

GOLDEN = HERE.parent / "crates/sim/tests/golden/loggops"
# Resolution in ns and noise in percent, as the slides print them.
SYSTEMS = {"CHiC": (3.74, 0.21), "Altix": (25.1, 0.05), "BG/P": (29.1, 0.08), "XT-4": (32.9, 0.02)}
NAMES = {
    "CHiC": "CHiC, Opteron, Linux 2.6.18",
    "Altix": "SGI Altix 4700, Itanium II, Linux 2.6.16",
    "BG/P": "BlueGene/P, PPC 450, ZeptoOS 2.6.19.2",
    "XT-4": "Cray XT-4, Opteron, Linux 2.6.16 CNL",
}
LATENCY, OVERHEAD, GAP = 2500, 1500, 1000  # LogGOPSim's defaults, in ns
RANKS = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
PATTERNS = {"linear scatter": "linear-scatter", "gather": "linear-gather"}
PATTERNS |= {"binomial tree": "binomial-bcast", "dissemination": "dissemination"}
COLOURS = dict(zip(PATTERNS, (BLUE, ORANGE, GREEN, PINK)))
SPEED_RANKS = 65536

INTRODUCTION = """\
After the slides of Hoefler, Schneider & Lumsdaine, *Characterizing the Influence of System Noise on Large-Scale
Applications by Simulation*, SC 2010: the noise of one core by the detour loop, here of this machine by `quell
record`, and the verification of their simulator, here of `quell simulate`, against the closed formulas of LogGP,
against LogGOPSim's own results, and against this machine's network. Collectives at scale have [a page of their
own](effects.md). Written by `hoefler_2010.py`; do not edit.
"""

HOW = """\
One byte from or to each rank, L = 2.5 us, o = 1.5 us, g = 1 us. With o above g, the last rank of a linear scatter or
gather is done after L + 2o + (P - 2) o, that of a binomial tree or a dissemination after (L + 2o) log2 P.
"""

WHY = """\
## Why they differ

- **Noise.** The slides' systems were clusters on their own metal, with kernels of their time. Here a virtual
  machine's exits add short detours, and other programs long ones. The resolution is the shortest gap that the loop
  can tell from its own turn.
- **Verification.** The slides draw curves without numbers; that simulation and formula agree is what they show.
- **Network.** Odin and Big Red were clusters with InfiniBand and Myrinet. Here two ranks share memory, where the time
  of a message is not linear in its size: quell measures parameters for ranges of sizes.
"""


def noise(bench: Bench) -> dict:
    """Records a CPU, writes it as netgauge does, reads that again; what `show` says, and how many detours were read."""
    bench.run(bench.quell, "-q", "record", "-o", "node.quell", "--cpus", "1", "--duration", f"{effort(15)}s")
    bench.run(bench.quell, "-q", "convert", "node.quell", "node.txt", "--to", "netgauge", "--cpu", "1")
    bench.run(bench.quell, "-q", "convert", "node.txt", "again.quell")
    cpu = bench.document("show", "node.quell")["cpus"][0]
    again = bench.document("show", "again.quell")["cpus"][0]["detours"]
    return {**cpu, "read_again": again, "without_tasks": bench.without_tasks("node.quell")}


def formula_ns(pattern: str, ranks: int) -> int:
    """When the last rank is done."""
    rounds = (ranks - 1).bit_length()
    message = LATENCY + 2 * OVERHEAD
    return message + (ranks - 2) * OVERHEAD if pattern in ("linear scatter", "gather") else rounds * message


def verification(bench: Bench, *options: str) -> dict[str, list[int]]:
    """When the last rank is done by simulation, for each pattern and number of ranks."""
    net = ["--net", f"L={LATENCY},o={OVERHEAD},g={GAP},G=6", "--bytes", "1", *options]
    return {
        name: [bench.document("simulate", "--pattern", one, "--ranks", str(ranks), *net)["max_ns"] for ranks in RANKS]
        for name, one in PATTERNS.items()
    }


def golden(bench: Bench) -> tuple[int, int]:
    """How many of LogGOPSim's results quell gives to the nanosecond, and of how many."""
    same = 0
    folders = sorted(path for path in GOLDEN.iterdir() if path.is_dir())
    for folder in folders:
        given = json.loads((folder / "params.json").read_text(encoding="utf-8"))
        expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        net = ",".join(f"{letter}={given['loggops'][letter]}" for letter in "LogGOS")
        words = [str(folder / "schedule.goal"), "--compat", "--net", net, "--all-times"]
        if "noise" in given:
            places = bench.folder / "places"
            places.write_text("\n".join(map(str, given["noise"]["start_offset_ns"])) + "\n", encoding="utf-8")
            words += ["--noise", str(folder / given["noise"]["file"]), "--offsets", str(places)]
        found = bench.document("simulate", *words, codes=(0, 1))
        if expected["finished"]:
            same += found["finish_times_ns"] == expected["finish_times_ns"] and found["events"] == expected["events"]
        else:
            same += not found["finished"]
    return same, len(folders)


def speed(bench: Bench) -> tuple[int, float]:
    """Events of a dissemination among many ranks, and seconds for them on one thread: the shortest of three runs."""
    words = ["--pattern", "dissemination", "--ranks", str(SPEED_RANKS), "--bytes", "8", "--threads", "1"]
    took, events = [], 0
    for _ in range(3):
        began = time.monotonic()
        events = bench.document("simulate", *words)["events"]
        took.append(time.monotonic() - began)
    return events, min(took)


def network(bench: Bench) -> list[dict] | None:
    """How far simulated messages are from measured ones, by size. Nothing where there is no MPI."""
    ran = bench.run(bench.quell, "-q", "bench", "loggp", "--rounds", str(effort(5)), "-o", "net", "--json", check=False)
    return json.loads(ran.stdout)["kinds"][0]["checks"] if ran.returncode == 0 else None


def deviation(checks: list[dict], size: int) -> float:
    """The mean of both patterns' errors, in percent."""
    one = min(checks, key=lambda check: abs(check["bytes"] - size))
    return (abs(one["pingpong"]["deviation_percent"]) + abs(one["scatter"]["deviation_percent"])) / 2


def noise_table(cpu: dict) -> str:
    """The slides' four systems, and this one."""
    cells = [[NAMES[key], f"{ns}", f"{percent}"] for key, (ns, percent) in SYSTEMS.items()]
    here = f"{cpu['overhead_percent']:.2f} ({cpu['without_tasks']})"
    cells.append(["**this machine**", f"{cpu['resolution_ns']:.1f}", here])
    return table(["system", "resolution, ns", "noise, %"], cells, "lr")


def draw(found: dict[str, list[int]]) -> None:
    """Simulated times as marks on the formulas' lines."""
    figure, (axes,) = panels(1, 1, (6.5, 4.2))
    for name, values in found.items():
        lines = [formula_ns(name, ranks) / 1000 for ranks in RANKS]
        axes.plot(RANKS, lines, color=COLOURS[name], linewidth=1)
        marker = "o" if name in ("linear scatter", "binomial tree") else "x"
        axes.plot(
            RANKS, [value / 1000 for value in values], color=COLOURS[name], marker=marker, linestyle="none", label=name
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(RANKS, [f"{ranks:,}" for ranks in RANKS])
    axes.set_xlabel("ranks")
    axes.set_ylabel("last rank done, us")
    axes.set_title("Simulated (marks) and by the formula (lines)", fontsize=10)
    axes.legend(fontsize=8)
    save(figure, "hoefler-2010")


def verification_rows(
    found: dict[str, list[int]], compatible: dict[str, list[int]], same: int, cases: int
) -> list[Row]:
    """The four patterns."""
    rows = []
    for name, values in found.items():
        exact = [formula_ns(name, ranks) for ranks in RANKS]
        off = max(abs(value / one - 1) for value, one in zip(values, exact))
        both = "both rules" if compatible[name] == values else "the physical rules (LogGOPSim's own differ)"
        ours = f"2 to 1,024 ranks by {both}: {'equal to the ns' if off == 0 else f'off by up to {100 * off:.2g} %'}"
        ours += f"; LogGOPSim's own results on {cases} programs: {same} to the ns"
        verdict = claim(REPRODUCED, holds=off == 0 and same == cases)
        rows.append(Row(HOEFLER, f"verification: {name}", "simulation on the formula's curve; no number", ours, verdict,
                        "They do not differ." if off == 0 and same == cases else "See the page."))  # fmt: skip
    return rows


def table_rows(cpu: dict, checks: list[dict] | None, events: int, seconds: float) -> list[Row]:
    """Noise, network and speed."""
    ours = f"this machine: {cpu['resolution_ns']:.1f} ns, {cpu['overhead_percent']:.2f} % ({cpu['without_tasks']})"
    why = "One virtual machine that others use; its kernel and host in place of a cluster's."
    rows = [
        Row(HOEFLER, f"noise: {key}", f"resolution {ns} ns, noise {percent} %", ours, DIFFERS, why)
        for key, (ns, percent) in SYSTEMS.items()
    ]
    paper = "under 1 % off in the mean at 1 B, under 16 % at 128 KiB (congestion)"
    if checks:
        every = [abs(one[kind]["deviation_percent"]) for one in checks for kind in ("pingpong", "scatter")]
        large = max(one["bytes"] for one in checks)
        ours = f"ping-pong and scatter off by {deviation(checks, 1):.1f} % at 1 B, {deviation(checks, large):.1f} % at "
        ours += f"{large // 1024} KiB, {median(every):.1f} % in the middle of all sizes"
        rows.append(
            Row(
                HOEFLER,
                "verification: Odin, Big Red",
                paper,
                ours,
                DIFFERS,
                "Shared memory, no cluster.",
            )
        )
    else:
        rows.append(Row(HOEFLER, "verification: Odin, Big Red", paper, "", NOT_HERE, "There is no MPI here."))
    ours = f"{events / seconds / 1e6:.1f} million a second on one thread, the program's start included"
    paper = "more than 1,000,000 events a second"
    why = f"Another processor; a dissemination among {SPEED_RANKS:,} ranks."
    rows.append(Row(HOEFLER, "speed", paper, ours, claim(REPRODUCED, holds=events > 1e6 * seconds), why))
    return rows


def make(bench: Bench) -> list[Row]:
    """Measures everything and writes the page and the figure."""
    say("noise")
    cpu = noise(bench)
    say("verification")
    found, compatible = verification(bench), verification(bench, "--compat")
    same, cases = golden(bench)
    say("speed")
    events, seconds = speed(bench)
    say("network")
    checks = network(bench)
    draw(found)
    cells = []
    for name, values in found.items():
        exact = [formula_ns(name, ranks) for ranks in RANKS]
        off = [value - one for value, one in zip(values, exact)]
        cells.append(
            [
                name,
                f"{exact[-1] / 1000:,.1f}",
                f"{values[-1] / 1000:,.1f}",
                f"{compatible[name][-1] / 1000:,.1f}",
                str(max(map(abs, off))),
            ]
        )
    header = ["pattern, 1,024 ranks", "formula, us", "simulated", "by LogGOPSim's rules", "most off at any size, ns"]
    parts = [
        INTRODUCTION,
        "## Noise",
        noise_table(cpu),
        f"{cpu['detours']:,} detours were recorded, written in netgauge's form, and {cpu['read_again']:,} read again.",
        "## Verification",
        "![Simulated times and formulas](hoefler-2010.svg)",
        HOW,
        table(header, cells, "lr"),
        f"Of {cases} programs with LogGOPSim's own results, {same} come out equal to the nanosecond, noise included.",
        f"{events:,} events took {seconds:.2f} s on one thread.",
    ]
    if checks:
        sizes = [
            [
                f"{one['bytes']:,}",
                *(
                    f"{one[kind][key]:,.0f}"
                    for kind in ("pingpong", "scatter")
                    for key in ("measured_ns", "simulated_ns")
                ),
            ]
            for one in checks
        ]
        header = ["bytes", "ping-pong, ns", "simulated", "scatter, ns", "simulated"]
        parts += ["## Messages between two ranks", table(header, sizes, "r")]
    write_page("hoefler-2010", "Hoefler 2010", [*parts, WHY])
    return table_rows(cpu, checks, events, seconds) + verification_rows(found, compatible, same, cases)


if __name__ == "__main__":
    sys.exit(main("hoefler-2010", 90, __doc__, make))
