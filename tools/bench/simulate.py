"""simulate: messages between ranks, compared with LogGOPSim."""

from __future__ import annotations

import filecmp
import json
import os
import random
import re
import shutil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from child import BenchError, Child, run
from page import Limit, Result, figure

if TYPE_CHECKING:
    from run import Setting

ROUNDS = 5
# Rounds of programs that take a minute and have no peer.
LONG_ROUNDS = 3
TIMEOUT_S = 900.0
MIB = 2**20
PEER, TEXT_TOOL, GENERATOR = "QUELL_LOGGOPSIM", "QUELL_TXT2BIN", "QUELL_SCHEDGEN"
LATENCY_O_G = ["-L", "2500", "-o", "1500", "-g", "1000", "-G", "6", "-O", "0", "-S", "65535"]
DETOURS, SPAN_NS = 10_000, 10_000_000_000

QUESTION = (
    "What a simulation costs. Compared with LogGOPSim: the same schedules, written by `quell goal make`, on one "
    "thread each; CPU time is user and system time of the whole process, loading included. quell plays a schedule "
    "from memory (`--pattern`) and from the binary file, by its own rules and by LogGOPSim's (`--compat`). The text "
    "of LogGOPSim's own generator, schedgen, goes through txt2bin for LogGOPSim, and directly into quell. Alone: "
    "programs at sizes that LogGOPSim does not reach."
)
NOTES = [
    "A limit on a ratio is quell's figure over LogGOPSim's: 1/30 is 0.03333. Limits are on quell's own rules.",
    "Noise is one trace of 10,000 detours in 10 s, of which each rank begins at a place of its own.",
    "From memory quell has no file to read, as its users have none to write; LogGOPSim always has one.",
    "quell's own runs handle messages in the call (`--progress call`); patterns from memory are then played in rounds.",
    "Without noise, by the same rules, all times of the last rank are equal; the benchmark fails where they are not.",
]


class Schedule(NamedTuple):
    """A program that both simulate, and how much faster and smaller quell must be."""

    name: str
    pattern: list[str]
    noise: bool
    # Maximum shares of LogGOPSim's CPU time, and of its memory where that is limited.
    cpu: dict[str, float]
    memory: dict[str, float]


class Alone(NamedTuple):
    """A program that only quell simulates, and its limits."""

    name: str
    options: list[str]
    rounds: int
    cpu_s: float
    peak_mib: float | None = None


DISSEMINATION = ["--pattern", "dissemination", "--ranks", "64Ki", "--bytes", "8"]
RING = ["--pattern", "allreduce-ring", "--ranks", "128", "--bytes", "1Mi", "--iterations", "16"]
HALO = ["--pattern", "halo3d", "--ranks", "4096", "--bytes", "8Ki", "--iterations", "20"]
EACH_PHASE = ["--pattern", "bsp", "--work", "1ms", "--inner", "allreduce", "--bytes", "8"]
PHASES = [*EACH_PHASE, "--ranks", "64Ki"]

IN_MEMORY, FROM_FILE, TEXT, PEER_NAME = "memory", "file", "text", "LogGOPSim"
COMPAT = ", --compat"
HUNDREDTH = {IN_MEMORY: 1 / 100}
FAST, SMALL = {IN_MEMORY: 1 / 500, FROM_FILE: 1 / 10}, {IN_MEMORY: 1 / 10, FROM_FILE: 0.4}
SCHEDULES = [
    Schedule("dissemination, 64Ki ranks", DISSEMINATION, noise=False, cpu=FAST, memory=SMALL),
    Schedule("the same with noise", DISSEMINATION, noise=True, cpu=FAST, memory=SMALL),
    Schedule("ring allreduce, 128 ranks, 16 times", RING, noise=False, cpu=HUNDREDTH, memory={}),
    Schedule("3-D halo, 4,096 ranks, 20 times", HALO, noise=False, cpu=HUNDREDTH, memory={}),
]
# What schedgen makes, and the maximum share of the CPU time of txt2bin and LogGOPSim together.
TEXTS = [
    ("schedgen's dissemination, 64Ki ranks", ["-p", "dissemination", "-s", "65536", "-d", "8"]),
    ("schedgen's linear all-to-all, 256 ranks", ["-p", "linear_alltoall", "-s", "256", "-d", "64"]),
]
TEXT_SHARE = 1 / 8
GATHER = ["--pattern", "linear-gather", "--ranks", "64Ki", "--bytes", "8"]
ALONE = [
    Alone("linear gather, 64Ki ranks", GATHER, ROUNDS, 2),
    Alone("linear gather, 64Ki ranks, --compat", [*GATHER, "--compat"], ROUNDS, 2),
    Alone(
        "dissemination, 1Mi ranks, noise",
        ["--pattern", "dissemination", "--ranks", "1Mi", "--bytes", "8", "--noise"],
        ROUNDS,
        0.2,
        500,
    ),
    Alone(
        "1,000 phases of 1 ms and an allreduce, 64Ki ranks, noise",
        [*PHASES, "--iterations", "1000", "--noise"],
        LONG_ROUNDS,
        4,
        100,
    ),
    Alone(
        "1,000 phases of 1 ms and an allreduce, 1Mi ranks, noise",
        [*EACH_PHASE, "--ranks", "1Mi", "--iterations", "1000", "--noise"],
        1,
        150,
        500,
    ),
    Alone(
        "10 phases of 1 ms and an allreduce, 64Ki ranks, noise, --progress async",
        [*PHASES, "--iterations", "10", "--progress", "async", "--noise"],
        LONG_ROUNDS,
        4,
    ),
]
# Per rank and round, of the bare array loop's time.
MOST_OF_LOOP = 3
LOOP_RANKS, LOOP_ITERATIONS = 1 << 16, 500
LOOPED = ["--pattern", "allreduce", "--ranks", str(LOOP_RANKS), "--iterations", str(LOOP_ITERATIONS), "--noise"]
THREADED = [*PHASES, "--iterations", "1000", "--noise"]
LEAST_SPEEDUP = 1.8


class Peer(NamedTuple):
    """LogGOPSim's programs."""

    simulator: Path
    txt2bin: Path | None
    schedgen: Path | None


def measure(setting: Setting) -> Result:
    """First what both can simulate, then what only quell can, then threads."""
    header = ["", "CPU s", "lowest to highest", "M events/s", "peak MiB", "rounds"]
    result = Result(QUESTION, header, [], [], [], list(NOTES))
    noise = write_noise(setting)
    peer = find_peer(setting, result)
    for schedule in SCHEDULES:
        compare_with_peer(setting, result, schedule, noise, peer)
    for name, options in TEXTS:
        compare_texts(setting, result, name, options, peer)
    for program in ALONE:
        alone(setting, result, program, noise)
    array_loop(setting, result, noise)
    threads(setting, result, noise)
    return result


def find_peer(setting: Setting, result: Result) -> Peer | None:
    """LogGOPSim, from the environment; prints a message if it is missing."""
    given = os.environ.get(PEER)
    if not given:
        words = f"LogGOPSim was left out: {PEER} does not name it."
        setting.say(words)
        result.notes.append(words)
        return None
    simulator = Path(given).resolve()
    if not os.access(simulator, os.X_OK):
        raise BenchError(f"{PEER} names {simulator}, which cannot be run")
    txt2bin = Path(os.environ.get(TEXT_TOOL) or simulator.with_name("txt2bin"))
    schedgen = Path(os.environ.get(GENERATOR) or simulator.parent.with_name("Schedgen") / "schedgen")
    return Peer(simulator, *(tool if os.access(tool, os.X_OK) else None for tool in (txt2bin, schedgen)))


def write_noise(setting: Setting) -> Path:
    """A trace in netgauge's format: a tick each millisecond, some of them much longer."""
    order = random.Random(setting.seed)  # noqa: S311 (noise to repeat, not a secret)
    lines = ["# Selfish Benchmark", "# Time [ns]\tselfish duration [ns]"]
    for number in range(DETOURS):
        start = number * (SPAN_NS // DETOURS) + order.randrange(500_000)
        long = order.randrange(50) == 0
        duration = order.randrange(50_000, 200_000) if long else order.randrange(1_500, 3_000)
        lines.append(f"{start if number else 0:.2f}\t{duration:.2f}")
    file = setting.scratch / "noise.txt"
    file.write_text("\n".join(lines) + "\n", encoding="ascii")
    return file


def compare_with_peer(setting: Setting, result: Result, schedule: Schedule, noise: Path, peer: Peer | None) -> None:
    """Simulates one schedule in all ways, in random order."""
    quell = [str(setting.quell), "simulate"]
    options = [*LATENCY_O_G, "--threads", "1", "--seed", str(setting.seed), "--json"]
    options += ["--noise", str(noise)] if schedule.noise else []
    file = make(setting, result, schedule.pattern, peer)
    commands = {}
    for name, what in ((IN_MEMORY, schedule.pattern), (FROM_FILE, [str(file)])):
        commands[name] = [*quell, *what, *options, "--progress", "call"]
        commands[name + COMPAT] = [*quell, *what, *options, "--compat"]
    if peer:
        of_noise = ["--noise-trace", str(noise)] if schedule.noise else []
        commands[PEER_NAME] = [str(peer.simulator), "-b", "-f", str(file), *LATENCY_O_G, *of_noise]
    children = rounds(setting, commands, setting.rounds or ROUNDS)
    file.unlink()
    readers = {name: read_peer if name == PEER_NAME else read_quell for name in commands}
    found = {name: readers[name](child[0].stdout) for name, child in children.items()}
    for name, ran in children.items():
        result.rows.append(row(f"{schedule.name}: {name}", ran, found[name].events))
        result.commands.append(shown(setting, ran[0]))
    agree(schedule, found)
    if peer:
        for name, share in schedule.cpu.items():
            ratio = cpu_s(children[name]) / max(cpu_s(children[PEER_NAME]), 1e-9)
            result.limits.append(Limit(f"{schedule.name}: {name}: CPU time over LogGOPSim's", ratio, share))
        for name, share in schedule.memory.items():
            ratio = peak(children[name]) / peak(children[PEER_NAME])
            result.limits.append(Limit(f"{schedule.name}: {name}: peak memory over LogGOPSim's", ratio, share))


def make(setting: Setting, result: Result, pattern: list[str], peer: Peer | None) -> Path:
    """The schedule as a binary file, identical to what txt2bin makes from its text."""
    binary, text, other = (setting.scratch / name for name in ("schedule.bin", "schedule.goal", "theirs.bin"))
    command = [str(setting.quell), "goal", "make", *pattern, "--force", "-o"]
    made = run([*command, str(binary)], TIMEOUT_S).checked()
    result.commands.append(shown(setting, made))
    if peer and peer.txt2bin and pattern is RING:
        run([*command, str(text)], TIMEOUT_S).checked()
        run([str(peer.txt2bin), "-i", str(text), "-o", str(other)], TIMEOUT_S).checked()
        # Compared in pieces, because a child's reported peak is never below this runner's memory.
        if not filecmp.cmp(binary, other, shallow=False):
            raise BenchError("txt2bin makes another file of the text than `quell goal make` of the pattern")
        result.notes.append("txt2bin's file of the ring's text is quell's own, byte for byte.")
        text.unlink()
        other.unlink()
    return binary


def compare_texts(setting: Setting, result: Result, name: str, options: list[str], peer: Peer | None) -> None:
    """Simulates what schedgen makes: LogGOPSim by way of txt2bin, quell from the text."""
    if not peer or not peer.schedgen or not peer.txt2bin:
        result.notes.append(f"{name} was left out: {GENERATOR} or {TEXT_TOOL} does not name its program.")
        return
    text, binary = setting.scratch / "schedgen.goal", setting.scratch / "schedgen.bin"
    result.commands.append(shown(setting, run([str(peer.schedgen), *options, "-o", str(text)], TIMEOUT_S).checked()))
    own = [str(setting.quell), "simulate", str(text), *LATENCY_O_G, "--threads", "1", "--json"]
    ways = {
        TEXT: [[*own, "--progress", "call"]],
        TEXT + COMPAT: [[*own, "--compat"]],
        PEER_NAME: [
            [str(peer.txt2bin), "-i", str(text), "-o", str(binary)],
            [str(peer.simulator), "-b", "-f", str(binary), *LATENCY_O_G],
        ],
    }
    children: dict[str, list[Child]] = {way: [] for way in ways}
    for _ in range(setting.rounds or ROUNDS):
        for way in setting.random.sample(list(ways), len(ways)):
            children[way].append(in_turn(ways[way]))
    text.unlink()
    binary.unlink()
    readers = {way: read_peer if way == PEER_NAME else read_quell for way in ways}
    found = {way: readers[way](ran[0].stdout) for way, ran in children.items()}
    if found[TEXT + COMPAT] != found[PEER_NAME] or found[TEXT].events != found[PEER_NAME].events:
        raise BenchError(f"{name}: quell and LogGOPSim find {found}")
    for way, ran in children.items():
        shown_way = f"txt2bin and {way}" if way == PEER_NAME else way
        result.rows.append(row(f"{name}: {shown_way}", ran, found[way].events))
        result.commands += [] if way == PEER_NAME else [shown(setting, ran[0])]
    ratio = cpu_s(children[TEXT]) / max(cpu_s(children[PEER_NAME]), 1e-9)
    result.limits.append(Limit(f"{name}: CPU time over that of txt2bin and LogGOPSim", ratio, TEXT_SHARE))


def in_turn(commands: list[list[str]]) -> Child:
    """Runs commands one after another: the last one's output, the times of all, the highest memory."""
    ran = [run(command, TIMEOUT_S).checked() for command in commands]
    return ran[-1]._replace(
        wall_s=sum(child.wall_s for child in ran),
        cpu_s=sum(child.cpu_s for child in ran),
        peak_bytes=max(child.peak_bytes for child in ran),
    )


class Found(NamedTuple):
    """The result of a simulation."""

    events: int
    # When the last rank was done.
    max_ns: int


def agree(schedule: Schedule, found: dict[str, Found]) -> None:
    """Rejects results that differ under the same rules; they may differ where each draws noise for itself."""
    same = [[IN_MEMORY, FROM_FILE], [IN_MEMORY + COMPAT, FROM_FILE + COMPAT]]
    if not schedule.noise:
        same[1].append(PEER_NAME)
    for names in same:
        different = {found[name] for name in names if name in found}
        if len(different) > 1:
            raise BenchError(f"{schedule.name}: {', '.join(names)} differ: {sorted(different)}")
    if len({one.events for one in found.values()}) > 1:
        raise BenchError(f"{schedule.name}: the numbers of events differ: {found}")


def alone(setting: Setting, result: Result, program: Alone, noise: Path) -> None:
    """A program that has no peer at its size."""
    ran = play(setting, program.options, noise, "1", setting.rounds or program.rounds)
    result.rows.append(row(program.name, ran, read_quell(ran[0].stdout).events))
    result.commands.append(shown(setting, ran[0]))
    result.limits.append(Limit(f"{program.name}: CPU time", cpu_s(ran), program.cpu_s, " s"))
    if program.peak_mib:
        result.limits.append(Limit(f"{program.name}: peak memory", peak(ran), program.peak_mib, " MiB"))


def array_loop(setting: Setting, result: Result, noise: Path) -> None:
    """Rounds with noise, compared with a loop over arrays that does no more than add and compare."""
    compiler = shutil.which("cc")
    if not compiler:
        result.notes.append("The bare array loop was left out: there is no `cc`.")
        return
    loop = setting.scratch / "array_loop"
    source = Path(__file__).with_name("array_loop.c")
    run([compiler, "-O3", "-march=native", "-o", str(loop), str(source)], TIMEOUT_S).checked()
    commands = {
        "loop": [str(loop), str(LOOP_RANKS), str(LOOP_ITERATIONS)],
        "rounds": played(setting, LOOPED, noise, "1"),
    }
    children = rounds(setting, commands, setting.rounds or ROUNDS)
    events = read_quell(children["rounds"][0].stdout).events
    name = f"{LOOP_ITERATIONS} allreduces, 64Ki ranks"
    for kind, of_kind in (("loop", "bare array loop"), ("rounds", "noise")):
        result.rows.append(row(f"{name}: {of_kind}", children[kind], events))
        result.commands.append(shown(setting, children[kind][0]))
    ratio = cpu_s(children["rounds"]) / max(cpu_s(children["loop"]), 1e-9)
    result.limits.append(Limit("rounds with noise: CPU time over the bare array loop's", ratio, MOST_OF_LOOP))


def threads(setting: Setting, result: Result, noise: Path) -> None:
    """Wall time on one thread and on two."""
    if setting.other_cpu is None:
        result.notes.append("Two threads were left out: there is one CPU.")
        return
    commands = {count: played(setting, THREADED, noise, count) for count in ("1", "2")}
    children = rounds(setting, commands, setting.rounds or ROUNDS)
    if len({ran[0].stdout for ran in children.values()}) != 1:
        raise BenchError("one thread and two gave different results")
    walls = {count: median(child.wall_s for child in ran) for count, ran in children.items()}
    events = read_quell(children["1"][0].stdout).events
    for count, ran in children.items():
        result.rows.append(row(f"1,000 phases, {count} thread(s), {figure(walls[count])} s wall", ran, events))
        result.commands.append(shown(setting, ran[0]))
    result.limits.append(Limit("wall time of two threads over one's", walls["2"] / walls["1"], 1 / LEAST_SPEEDUP))


def played(setting: Setting, options: list[str], noise: Path, count: str) -> list[str]:
    """A command; `--noise` at its end gets the noise."""
    given = [*options, str(noise)] if options[-1] == "--noise" else options
    rest = ["--threads", count, "--seed", str(setting.seed), "--json"]
    return [str(setting.quell), "simulate", *given, *LATENCY_O_G, *rest]


def play(setting: Setting, options: list[str], noise: Path, count: str, times: int) -> list[Child]:
    """One command several times."""
    return rounds(setting, {"": played(setting, options, noise, count)}, times)[""]


def rounds(setting: Setting, commands: dict[str, list[str]], times: int) -> dict[str, list[Child]]:
    """Runs each command this many times, in a new order each round."""
    children: dict[str, list[Child]] = {name: [] for name in commands}
    for _ in range(times):
        for name in setting.random.sample(list(commands), len(commands)):
            children[name].append(run(commands[name], TIMEOUT_S).checked())
    for name, ran in children.items():
        # LogGOPSim seeds its noise with the time of day.
        if name != PEER_NAME and len({child.stdout for child in ran}) != 1:
            raise BenchError(f"`{ran[0].line()}` gave different results")
    return children


def cpu_s(ran: list[Child]) -> float:
    """The median CPU time."""
    return median(child.cpu_s for child in ran)


def peak(ran: list[Child]) -> float:
    """The median of the peak memory, in MiB."""
    return median(child.peak_bytes for child in ran) / MIB


def row(name: str, ran: list[Child], events: int) -> list[str]:
    """A row of the page's table."""
    times = [child.cpu_s for child in ran]
    rate = events / max(cpu_s(ran), 1e-9) / 1e6
    between = f"{figure(min(times))} to {figure(max(times))}"
    return [name, figure(cpu_s(ran)), between, figure(rate), figure(peak(ran)), str(len(ran))]


def shown(setting: Setting, child: Child) -> str:
    """A command without this machine's paths."""
    return child.line().replace(str(setting.scratch), ".")


def read_quell(text: str) -> Found:
    """The parsed output of `quell simulate --json`."""
    try:
        document = json.loads(text)
        if document["finished"] is not True:
            raise BenchError("quell's simulation did not finish")
        return Found(int(document["events"]), int(document["max_ns"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`quell simulate` printed no result: {error!r}") from error


def read_peer(text: str) -> Found:
    """LogGOPSim's output; if it stopped early it printed no time, and exited with code 0."""
    events = re.search(r"Events: (\d+)", text)
    last = re.search(r"Maximum finishing time at host \d+: (\d+)", text)
    hosts = [int(time) for time in re.findall(r"^Host \d+: (\d+)", text, re.MULTILINE)]
    if not events or not (last or hosts):
        tail = text.strip().splitlines()[-1:] or ["(nothing)"]
        raise BenchError(f"LogGOPSim did not finish: {tail[0]}")
    return Found(int(events.group(1)), int(last.group(1)) if last else max(hosts))
