"""sources-cost: what does the kernel recorder take from the machine, and does it keep up with a storm?"""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from child import BenchError, Child, run
from page import Limit, Result, figure

if TYPE_CHECKING:
    from run import Setting

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "event_load.c"
SCHEMA = "quell.bench-event-load/1"
LEAST = HERE / "least_recorder.c"
LEAST_PROGRAMS = HERE / "least_recorder.bpf.c"
LEAST_SCHEMA = "quell.bench-least-recorder/1"
# What the programs of the least recorder do.
LEAST_KINDS = ["do nothing", "read the clock, write a line"]
LOAD = "task:event_load"
TIMEOUT_S = 120.0
MIB = 2**20

PROGRAM_NS_UNDISTURBED = 180
PROGRAM_NS_UNDER_LOAD = 120
CONSUMER_PERCENT = 1.0
CONSUMER_EVENTS = 20_000
# Slightly more is requested, so that the actual rate is at least the intended one.
CONSUMER_RATE = 21_000
STORM_EVENTS = 300_000
STORM_RATE = 310_000
# Runs of programs a second when two CPUs switch as fast as they can.
STORM_RUNS = 1_000_000
UNACCOUNTED_PERCENT = 0.1
OBSERVER_PERCENT = 2.0
OBSERVER_HIGH_PERCENT = 5.0
PAIRS = 1000
LOAD_S = 6
LEAST_ROUNDS = 5
CONSUMER_ROUNDS = 5
LEAST_HOOKS = 20
LEAST_S = 6
# Time from the recording's first file to the load, and from the load's end to the last sample of the consumer.
LEAD_S = 0.5
TAIL_S = 1.0

QUESTION = (
    "What the kernel recorder costs. Its programs: time and runs by the kernel's own account (bpf_stats), both "
    "CPUs' runs together, next to a probe; and of programs on the same hooks that do the least. Its consumer, the "
    "thread that empties the rings and writes: CPU time while a known load makes events. The observer effect: the "
    "length of detours with its programs attached against detached, in pairs of blocks whose order turns round "
    "each time. A storm: what is recorded and what is counted as lost, against the kernel's own count of how "
    "often the load's threads left the CPU; on one CPU, and on two."
)
NOTES = [
    "An event is one run of a program. An interval takes two or more: its begin, its end, and often its reason.",
    "In turn: several times each in random order, the median and the range. A rare event finds the caches cold.",
    "The kernel's own taking of time, some 20 ns a run, is within the programs' figures, and only there.",
    "The consumer turns its rows into Parquet when the recording has ended; that comes on top, and disturbs no one.",
    "The observer's figures are those that the recording states of itself (`record --effect`).",
    "Lost intervals may be of any source, so the load's are known only within them: the limit is on what lies outside.",
]


class Load(NamedTuple):
    """What the load did, by its own count and by the kernel's. Several loads side by side are one."""

    took_s: float
    switches: int


class Taken(NamedTuple):
    """One recording, and the load during it."""

    child: Child
    folder: Path
    show: dict
    # Number of all intervals except quell's own, of those of the load, and of lost ones.
    intervals: int
    of_load: int
    lost: int
    load: Load | None
    consumer_s: float


class Effect(NamedTuple):
    """What a recording states of its recorder's effect."""

    pairs: int
    below_ns: float
    without_ns_per_s: float
    percent: float
    low_percent: float
    high_percent: float


def measure(setting: Setting) -> Result:
    """Runs all four parts, one after the other."""
    if setting.other_cpu is None:
        raise BenchError("it needs a second CPU for the recorder's consumer")
    program = build(setting.scratch)
    result = Result(QUESTION, ["", "measured"], [], [], [], list(NOTES))
    programs(setting, program, result)
    least(setting, result)
    consumer(setting, program, result)
    storm(setting, program, result)
    observer(setting, result)
    return result


def build(folder: Path) -> Path:
    """Compiles the load."""
    program = folder / "event_load"
    run(["cc", "-std=gnu11", "-O2", "-pthread", str(SOURCE), "-o", str(program)], TIMEOUT_S).checked()
    return program


def programs(setting: Setting, program: Path, result: Result) -> None:
    """What a run of the eBPF programs costs, for three kinds of events."""
    table: dict[str, list[str]] = {}
    loads = {"undisturbed": [], "5,000 timers/s": ["timer", "5000"], "20,000 switches/s": ["switch", "20000"]}
    for name, load in loads.items():
        taken = record(setting, result, program, {setting.cpu: load} if load else {}, ["--cost"])
        costs = read_costs(taken.show)
        runs, ns = sum(runs for _, runs, _ in costs), sum(ns for _, _, ns in costs)
        most = PROGRAM_NS_UNDER_LOAD if load else PROGRAM_NS_UNDISTURBED
        result.limits.append(Limit(f"programs, {name}: mean time an event", ns / runs, most, " ns"))
        result.rows.append([f"programs, {name}: runs", f"{runs:,}"])
        result.rows.append([f"programs, {name}: ns an interval", figure(ns / max(taken.intervals, 1))])
        for cost, cost_runs, cost_ns in costs:
            cells = table.setdefault(cost, [""] * len(loads))
            cells[list(loads).index(name)] = f"{cost_ns / cost_runs:.0f} ({cost_runs:,})"
    rows = [[name, *cells] for name, cells in sorted(table.items())]
    result.tables.append(("Programs, ns a run (runs)", ["program", *loads], rows))


def least(setting: Setting, result: Result) -> None:
    """What any recorder's programs cost at least on these hooks, next to a probe, in turn with quell's."""
    missing = [name for name in ("clang", "cc") if not shutil.which(name)]
    if not missing and run(["cc", "-fsyntax-only", "-include", "bpf/libbpf.h", "-x", "c", "/dev/null"], TIMEOUT_S).code:
        missing = ["libbpf-dev"]
    if missing:
        result.notes.append(f"The least recorder was skipped: {missing[0]} is not installed.")
        setting.say(result.notes[-1])
        return
    loader = setting.scratch / "least_recorder"
    run(["cc", "-std=gnu11", "-O2", str(LEAST), "-o", str(loader), "-lbpf"], TIMEOUT_S).checked()
    objects = {what: setting.scratch / f"least-{at}.o" for at, what in enumerate(LEAST_KINDS)}
    headers = f"-I/usr/include/{platform.machine()}-linux-gnu"
    for what, path in objects.items():
        watched = [] if what == LEAST_KINDS[0] else [f"-DWATCHED={setting.cpu}"]
        compile_it = ["clang", "-target", "bpf", "-g", "-O2", headers, *watched]
        run([*compile_it, "-c", str(LEAST_PROGRAMS), "-o", str(path)], TIMEOUT_S).checked()
    found: dict[str, list[float]] = {what: [] for what in [*objects, "quell's"]}
    for _ in range(min(setting.rounds or LEAST_ROUNDS, LEAST_ROUNDS)):
        for what in setting.random.sample(list(found), len(found)):
            if what in objects:
                found[what].append(run_least(setting, loader, objects[what]))
                continue
            # Of five equal recordings the page needs no command.
            with tempfile.TemporaryDirectory(dir=setting.scratch) as folder:
                own = setting._replace(scratch=Path(folder))
                costs = read_costs(record(own, Result("", [], [], [], []), None, {}, ["--cost"]).show)
            found[what].append(sum(ns for _, _, ns in costs) / sum(runs for _, runs, _ in costs))
    name = "programs, undisturbed, in turn: {}: ns an event"
    result.rows += [
        [name.format(what), f"{median(ns):.1f} ({min(ns):.1f} to {max(ns):.1f})"] for what, ns in found.items()
    ]


def run_least(setting: Setting, loader: Path, programs: Path) -> float:
    """Mean ns of a run of the least recorder's programs, next to a probe."""
    folder = setting.scratch / "least.quell"
    probe = [str(setting.quell), "record", "-q", "-o", str(folder), "--cpus", str(setting.cpu), "--sources", "off"]
    found: list[Child] = []

    def alongside(pid: int) -> None:
        await_start(folder, pid)
        found.append(run([str(loader), str(programs), str(LEAST_S)], TIMEOUT_S).checked())

    run([*probe, "--duration", f"{LEAST_S + 2}s"], TIMEOUT_S, alongside).checked()
    shutil.rmtree(folder)
    try:
        document = json.loads(found[0].stdout)
        if document["schema"] != LEAST_SCHEMA:
            raise BenchError(f"least_recorder speaks {document['schema']!r}, not {LEAST_SCHEMA}")
        if int(document["attached"]) < LEAST_HOOKS:
            setting.say(f"the least recorder has {document['attached']} of {LEAST_HOOKS} hooks on this kernel")
        return int(document["ns"]) / int(document["runs"])
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise BenchError(f"least_recorder did not print what {LEAST_SCHEMA} promises: {error!r}") from error


def consumer(setting: Setting, program: Path, result: Result) -> None:
    """What the thread costs that empties the rings: the median of several recordings, since its caches are cold."""
    rounds = range(min(setting.rounds or CONSUMER_ROUNDS, CONSUMER_ROUNDS))
    load = {setting.cpu: ["switch", str(CONSUMER_RATE)]}
    taken = [record(setting, result, program, load, []) for _ in rounds]
    rate = min(one.of_load / one.load.took_s for one in taken)
    if rate < CONSUMER_EVENTS:
        raise BenchError(f"the load came to {rate:,.0f} intervals a second, not {CONSUMER_EVENTS:,}: is the CPU free?")
    percent = median(100 * one.consumer_s / one.load.took_s for one in taken)
    result.limits.append(Limit(f"consumer at {rate:,.0f} events/s, of one CPU", percent, CONSUMER_PERCENT, " %"))
    us = sorted(one.consumer_s * 1e6 / one.of_load for one in taken)
    result.rows.append(["consumer: us an interval", f"{median(us):.3f} ({us[0]:.3f} to {us[-1]:.3f})"])
    peak = max(one.child.peak_bytes for one in taken)
    result.rows.append(["consumer: peak memory of quell, MiB", figure(peak / MIB)])


def storm(setting: Setting, program: Path, result: Result) -> None:
    """Whether everything is recorded, or counted as lost, at 300,000 events per second and at the maximum rate."""
    for name, load in (("300,000 events/s", ["switch", str(STORM_RATE)]), ("as fast as they come", ["storm"])):
        taken = record(setting, result, program, {setting.cpu: load}, ["--method", "kernel"])
        rate = taken.load.switches / taken.load.took_s
        if rate < STORM_EVENTS:
            raise BenchError(f"the storm came to {rate:,.0f} events a second, not {STORM_EVENTS:,}: is the CPU free?")
        report_storm(name, taken, result)
    both = {setting.cpu: ["yield"], setting.other_cpu: ["storm"]}
    taken = record(setting, result, program, both, ["--method", "kernel", "--cost"])
    runs = sum(runs for _, runs, _ in read_costs(taken.show)) / taken.load.took_s
    if runs < STORM_RUNS:
        raise BenchError(f"both CPUs came to {runs:,.0f} events a second, not {STORM_RUNS:,}: are they free?")
    result.rows.append(["storm, two CPUs: events a second", f"{runs:,.0f}"])
    report_storm("two CPUs", taken, result)


def report_storm(name: str, taken: Taken, result: Result) -> None:
    """The rows and the limit of a storm."""
    share = unaccounted(taken.of_load, taken.lost, taken.load.switches)
    result.limits.append(Limit(f"storm, {name}: neither recorded nor lost", share, UNACCOUNTED_PERCENT, " %"))
    result.rows += [
        [f"storm, {name}: load's switches a second", f"{taken.load.switches / taken.load.took_s:,.0f}"],
        [f"storm, {name}: the kernel's own count", f"{taken.load.switches:,}"],
        [f"storm, {name}: recorded", f"{taken.of_load:,}"],
        [f"storm, {name}: lost, and counted", f"{taken.lost:,}"],
        [f"storm, {name}: consumer, % of one CPU", figure(100 * taken.consumer_s / taken.load.took_s)],
        [f"storm, {name}: peak memory, MiB", figure(taken.child.peak_bytes / MIB)],
    ]


def observer(setting: Setting, result: Result) -> None:
    """What the recorder adds to detours, by the recording's own account."""
    folder = setting.scratch / "observer.quell"
    command = [str(setting.quell), "record", "-q", "-o", str(folder), "--cpus", str(setting.cpu), "--sources", "on"]
    pairs = setting.rounds or PAIRS
    child = run([*command, "--duration", "1s", "--effect", str(pairs)], TIMEOUT_S + pairs).checked()
    result.commands.append(child.line().replace(str(setting.scratch), "."))
    effect = read_effect(folder)
    below = f"detours below {effect.below_ns / 1e3:.0f} us"
    text = f"{effect.percent:+.2f} % ({effect.low_percent:+.2f} to {effect.high_percent:+.2f})"
    result.rows.append([f"observer, {below}: change of their length, {effect.pairs:,} pairs", text])
    result.rows.append([f"observer, {below}: ms/s without the recorder", figure(effect.without_ns_per_s / 1e6)])
    result.limits.append(Limit(f"observer, {below}: change of their length", effect.percent, OBSERVER_PERCENT, " %"))
    result.limits.append(
        Limit("observer: upper end of the change's 95 % interval", effect.high_percent, OBSERVER_HIGH_PERCENT, " %")
    )


def read_effect(folder: Path) -> Effect:
    """The effect of the recorder, as a recording states it."""
    try:
        found = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["sources"]["effect"]
        return Effect(*(float(found[name]) if name != "pairs" else int(found[name]) for name in Effect._fields))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{folder.name} holds no manifest with the recorder's effect: {error!r}") from error


def unaccounted(recorded: int, lost: int, counted: int) -> float:
    """Percentage by which recorded and lost together miss the kernel's count, or by which recorded exceeds it."""
    return 100 * max(counted - recorded - lost, recorded - counted, 0) / counted


def record(
    setting: Setting,
    result: Result,
    program: Path | None,
    loads: dict[int, list[str]],
    options: list[str],
) -> Taken:
    """Records the CPUs of the loads, which run for part of the time, or the setting's CPU without any."""
    folder = setting.scratch / f"{len(result.commands)}.quell"
    cpus = ",".join(str(cpu) for cpu in sorted(loads or {setting.cpu}))
    command = [str(setting.quell), "record", "-q", "-o", str(folder), "--cpus", cpus, "--sources", "on"]
    command += [*options, "--effect", "0", "--duration", f"{LOAD_S + 3}s"]
    did: list[Load] = []
    looks: list[float] = []

    def run_load(cpu: int) -> Load:
        loading = run([str(program), str(cpu), str(LOAD_S), *loads[cpu]], TIMEOUT_S).checked()
        result.commands.append(loading.line().replace(str(setting.scratch), "."))
        return read_load(loading.stdout)

    def alongside(pid: int) -> None:
        await_start(folder, pid)
        looks.append(thread_cpu_s(pid))
        with ThreadPoolExecutor(len(loads)) as pool:
            did.extend(pool.map(run_load, loads))
        time.sleep(TAIL_S)
        looks.append(thread_cpu_s(pid))

    child = run(command, TIMEOUT_S, alongside if loads else None).checked()
    result.commands.append(child.line().replace(str(setting.scratch), "."))
    shown = run([str(setting.quell), "show", str(folder), "--by", "source", "--json"], TIMEOUT_S).checked()
    show, intervals, of_load = read_show(shown.stdout)
    together = Load(max(one.took_s for one in did), sum(one.switches for one in did)) if did else None
    consumer_s = looks[1] - looks[0] if looks else 0.0
    return Taken(child, folder, show, intervals, of_load, read_lost(folder), together, consumer_s)


def await_start(folder: Path, pid: int) -> None:
    """Waits until a recording has begun."""
    deadline = time.monotonic() + TIMEOUT_S
    while not (folder / "progress.jsonl").exists():
        if time.monotonic() > deadline or not Path(f"/proc/{pid}/task/{pid}/schedstat").exists():
            raise BenchError(f"{folder.name} did not begin, or this kernel reports no CPU time of threads (schedstat)")
        time.sleep(0.01)
    time.sleep(LEAD_S)


def thread_cpu_s(pid: int) -> float:
    """CPU time of a process's first thread."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="ascii")
        return int(text.split()[0]) / 1e9
    except (OSError, ValueError, IndexError) as error:
        raise BenchError(f"the CPU time of quell's writer is unknown: {error}") from error


def read_load(text: str) -> Load:
    """The load's output."""
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise BenchError(f"event_load speaks {document['schema']!r}, not {SCHEMA}")
        switches = sum(int(thread["switches"]) for thread in document["threads"])
        took_s = int(document["took_ns"]) / 1e9
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"event_load did not print what {SCHEMA} promises: {error!r}") from error
    if took_s <= 0 or switches <= 0:
        raise BenchError("event_load did nothing")
    return Load(took_s, switches)


def read_show(text: str) -> tuple[dict, int, int]:
    """The output of `quell show --by source --json`: the document, number of all intervals, and of the load's."""
    try:
        document = json.loads(text)
        counts = {row["source"]: int(row["count"]) for row in document["sources"]}
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`quell show --by source --json` reports no `count` for each source: {error!r}") from error
    return document, sum(counts.values()), counts.get(LOAD, 0)


def read_costs(document: dict) -> list[tuple[str, int, int]]:
    """Name, runs and ns of each program that ran."""
    try:
        costs = [(str(row["program"]), int(row["runs"]), int(row["ns"])) for row in document["recorder_cost"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`quell show --json` reports no cost of the recorder's programs: {error!r}") from error
    if not costs or min(runs for _, runs, _ in costs) < 1:
        raise BenchError("no program ran, or one is listed that did not")
    return costs


def read_lost(folder: Path) -> int:
    """Number of intervals that a recording lost."""
    try:
        return int(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["sources"]["lost"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{folder.name} holds no manifest with a lost count of intervals: {error!r}") from error
