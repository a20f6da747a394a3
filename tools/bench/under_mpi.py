"""mpi: benchmarks under MPI: their cost, how well a run is predicted, and the network compared with netgauge."""

from __future__ import annotations

import json
import os
import re
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from child import BenchError, run
from page import Limit, Result, figure

if TYPE_CHECKING:
    from pathlib import Path

    from run import Setting

ROUNDS = 5
TIMEOUT_S = 600.0
PEER = "QUELL_NETGAUGE"
SIZES = (1, 1024, 65536)
# Open MPI refuses root unless both variables are set.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
NETGAUGE = re.compile(r"L=(\S+)\s+s=\d+\s+o_s=(\S+)\s+o_r=(\S+)\s+g=(\S+)\s+G=(\S+)")
PINGPONG = (
    "num_ranks 2\nrank 0 {{\na: send {0}b to 1 tag 1\nb: recv {0}b from 1 tag 2\nb requires a\n}}\n"
    "rank 1 {{\na: recv {0}b from 0 tag 1\nb: send {0}b to 0 tag 2\nb requires a\n}}\n"
)

QUESTION = (
    "What taking the time adds to a phase, whether the work is as long as was asked for when nothing disturbs it, and "
    "how far a run's mean phase is from the one that is predicted from the node's noise before and after it. Then the "
    "network: how far its parameters stray from run to run, and how far a ping-pong simulated with them is from "
    "the measured one, next to netgauge's `-x loggp`, in turn and in random order."
)
NOTES = [
    "netgauge is built outside the checkout by the same mpicc, started by the same mpirun; QUELL_NETGAUGE names it.",
    "Its line at the largest size is taken, in ns; o is the mean of its o_s and o_r.",
    "Its L is half a round trip with the overheads of both ends, as its authors say: simulated, they count twice.",
    "quell's ping-pong takes the parameters of the range of its size (`--net FILE.toml@SIZE`).",
    "A spread is the largest figure of all rounds less the smallest, over the smallest.",
]


class Network(NamedTuple):
    """Parameters in ns, and the error of a simulated half ping-pong with them, for each size."""

    values: dict[str, float]
    off_percent: dict[int, float]
    wall_s: float


def measure(setting: Setting) -> Result:
    """Runs the benchmark."""
    os.environ.update(OPEN_MPI)
    rounds = setting.rounds or ROUNDS
    rows, limits, commands = phases(setting, rounds)
    peer = os.environ.get(PEER)
    found: dict[str, list[Network]] = {"quell": [], "netgauge": []}
    for turn in range(rounds):
        names = ["quell", "netgauge"] if peer else ["quell"]
        setting.random.shuffle(names)
        for name in names:
            setting.say(f"network, round {turn + 1} of {rounds}: {name}")
            measured = found["quell"][-1] if found["quell"] else None
            one = of_quell(setting, turn) if name == "quell" else of_netgauge(setting, str(peer), turn, measured)
            found[name].append(one)
    notes = [*NOTES] if peer else [*NOTES, f"netgauge was not there: {PEER} names no program."]
    header = ["network", *(f"{name}" for name in found if found[name])]
    table = network_table({name: all_ for name, all_ in found.items() if all_})
    limits += network_limits(found["quell"])
    commands.append("quell bench loggp -n 2 --rounds 10 -o net")
    return Result(
        QUESTION, ["phases", "median", "worst"], rows, limits, commands, notes, [("The network", header, table)]
    )


def phases(setting: Setting, rounds: int) -> tuple[list[list[str]], list[Limit], list[str]]:
    """The bulk-synchronous benchmark and its prediction."""
    timing, quiet, off, inside = [], [], [], 0
    # In points of slowdown: in percent of the phase, an error of all of a small slowdown seems to be small.
    for turn in range(rounds):
        setting.say(f"phases, round {turn + 1} of {rounds}")
        folder = setting.scratch / f"bsp-{turn}"
        words = ["bench", "bsp", "-n", "2", "--duration", "8s", "--predict", "-o", str(folder), "--json"]
        document = json.loads(run([str(setting.quell), *words], TIMEOUT_S).checked().stdout)
        timing.append(document["timing_ns"])
        quantum = document["run"]["quantum_ns"]
        quiet += [abs(100 * (row["compute"]["quiet_ns"] / quantum - 1)) for row in document["by_rank"]]
        predicted = document["predicted"]
        off.append(abs(predicted["difference_percent"] * (1 + predicted["slowdown_percent"] / 100)))
        inside += bool(predicted["inside"])
    rows = [
        ["taking the time adds, ns", figure(median(timing)), figure(max(timing))],
        ["quiet tenth off the quantum, %", figure(median(quiet)), figure(max(quiet))],
        ["measured slowdown off the predicted, points", figure(median(off)), figure(max(off))],
        [f"inside the prediction's interval, of {rounds}", str(inside), ""],
    ]
    limits = [
        Limit("taking the time adds to a phase", max(timing), 100, " ns"),
        Limit("quiet tenth off the quantum, median", median(quiet), 1, " %"),
        Limit("runs that were predicted wrongly", rounds - inside, rounds / 5),
    ]
    return rows, limits, ["quell bench bsp -n 2 --duration 8s --predict"]


def of_quell(setting: Setting, turn: int) -> Network:
    """One measurement with quell."""
    folder = setting.scratch / f"net-{turn}"
    words = ["bench", "loggp", "-n", "2", "--rounds", "10", "-o", str(folder), "--json"]
    child = run([str(setting.quell), *words], TIMEOUT_S).checked()
    kind = json.loads(child.stdout)["kinds"][0]
    names = {"L": "latency_ns", "o": "overhead_ns", "g": "gap_ns", "G": "gap_per_byte_ns"}
    values = {name: kind["parameters"][key]["value"] for name, key in names.items()}
    measured = {check["bytes"]: check["pingpong"]["measured_ns"] for check in kind["checks"]}
    off = {}
    for size in SIZES:
        simulated = half_pingpong(setting, size, f"{folder / 'intra.toml'}@{size}")
        off[size] = 100 * (simulated / measured[size] - 1)
    return Network({**values, **{f"measured {size}": measured[size] for size in SIZES}}, off, child.wall_s)


def of_netgauge(setting: Setting, peer: str, turn: int, measured: Network | None) -> Network:
    """One measurement with netgauge; the simulation with it is compared with quell's last measurement."""
    output = setting.scratch / f"netgauge-{turn}.out"
    command = ["mpirun", "-n", "2", "--bind-to", "none", peer, "-m", "mpi", "-x", "loggp", "-s", "1-65536"]
    child = run([*command, "-o", str(output)], TIMEOUT_S).checked()
    lines = NETGAUGE.findall(child.stdout)
    if not lines:
        raise BenchError(f"`{child.line()}` prints no parameters")
    latency, send, receive, gap, per_byte = (float(text) * 1000 for text in lines[-1])
    values = {"L": latency, "o": (send + receive) / 2, "g": gap, "G": per_byte}
    net = ",".join(f"{name}={max(value, 0):.{6 if name == 'G' else 0}f}" for name, value in values.items())
    off = {}
    for size in SIZES if measured else ():
        simulated = half_pingpong(setting, size, f"{net},S=1000000")
        off[size] = 100 * (simulated / measured.values[f"measured {size}"] - 1)
    return Network(values, off, child.wall_s)


def half_pingpong(setting: Setting, size: int, net: str) -> float:
    """Half of a simulated ping-pong, in ns."""
    schedule: Path = setting.scratch / "pingpong.goal"
    schedule.write_text(PINGPONG.format(size), encoding="utf-8")
    child = run([str(setting.quell), "simulate", str(schedule), "--net", net, "--json"], TIMEOUT_S).checked()
    return json.loads(child.stdout)["max_ns"] / 2


def spread(values: list[float]) -> float:
    """The spread of figures, in percent."""
    return 100 * (max(values) - min(values)) / max(min(values), 1e-12)


def network_table(found: dict[str, list[Network]]) -> list[list[str]]:
    """One row per figure, one column per tool."""
    rows = []
    for name in ("L", "o", "g", "G"):
        each = [[one.values[name] for one in all_] for all_ in found.values()]
        unit = "ns a byte" if name == "G" else "ns"
        rows.append([f"{name}, {unit} (spread)", *(f"{figure(median(v))} ({spread(v):.1f} %)" for v in each)])
    for size in SIZES:
        each = [[abs(one.off_percent[size]) for one in all_ if size in one.off_percent] for all_ in found.values()]
        words = f"simulated ping-pong of {size} B off the measured, %"
        rows.append([words, *(figure(median(v)) if v else "" for v in each)])
    rows.append(["time to measure, s", *(figure(median(one.wall_s for one in all_)) for all_ in found.values())])
    return rows


def network_limits(all_: list[Network]) -> list[Limit]:
    """Limits: parameters are repeatable, and simulations with them agree with the measurement."""
    repeat = [Limit(f"{name} strays", spread([one.values[name] for one in all_]), 15, " %") for name in "LogG"]
    off = [max(abs(one.off_percent[size]) for one in all_) for size in SIZES]
    return [*repeat, *(Limit(f"simulated {size} B off", worst, 15, " %") for size, worst in zip(SIZES, off))]
