"""try-verdicts: does `tune try` find what helps, and does it stay silent about what does nothing?"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from child import BenchError, run
from kept import Kept
from page import Limit, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from run import Setting

ROUNDS = 2
PAIRS = 10
DURATION = "500ms"
SETTLE = "100ms"
TIMEOUT_S = 600.0
VERDICTS = ["helps", "inconclusive", "no-effect-larger-than", "hurts"]
# A thread of a daemon works for the first time and sleeps for the second, in microseconds, about.
DAEMONS = {
    "a daemon that works 1 ms in 100": (1_000, 100_000, 1),
    "a daemon that works 50 us in 2,000": (50, 2_000, 1),
    "a daemon that works 5 ms in 400": (5_000, 400_000, 1),
    "four threads, each 200 us in 20,000": (200, 20_000, 4),
}
# Its process has the name of the program's link.
NAME = "sampled"
DAEMON = """
import random, sys, threading, time
work, rest, threads = (int(word) for word in sys.argv[1:])
def go():
    while True:
        end = time.perf_counter() + work / 1e6
        while time.perf_counter() < end:
            pass
        time.sleep(rest / 1e6 * random.uniform(0.8, 1.2))
for _ in range(threads - 1):
    threading.Thread(target=go, daemon=True).start()
go()
"""
# A neighbour on the same CPU: bursts up to 20 ms, 100 ms apart on average.
NEIGHBOUR = """
import random, time
while True:
    end = time.perf_counter() + random.uniform(0, 0.02)
    while time.perf_counter() < end:
        pass
    time.sleep(random.expovariate(10))
"""
MERGEABLE = """
import mmap, time
memory = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(12)
for page in range(64 << 8):
    memory[page * 4096] = page % 251
print("ready", flush=True)
time.sleep(36000)
"""
SITE = f"""
id = "off-compute-cpus"
title = "Keep a site's own daemon off the CPUs that compute"
category = "placement"
what = "It binds the daemon to the other CPUs."
caveat = "None."
risk = "low"
kernel = "any"
provenance = ["a site"]
noise = ["task:^{NAME}$"]

[[knob]]
kind = "process"
what = "affinity"
want = "${{housekeeping}}"
"""
KSM = Path("/sys/kernel/mm/ksm")
KSM_WORK = {"pages_to_scan": "500", "sleep_millisecs": "20", "run": "1"}

QUESTION = (
    "Mitigations that remove a disturber, and mitigations that do nothing, each tried many times in random order with "
    f"`quell tune try --pairs {PAIRS} --duration {DURATION} --settle {SETTLE}`, on a quiet CPU and with a busy "
    "neighbour there. Those that do nothing are settings that this machine does not depend on, and the binding of a "
    "process that sleeps while another one of the same name disturbs."
)
NOTES = [
    "A true mitigation may be *inconclusive*, and must not be called *no effect*.",
    "What does nothing may be *inconclusive* or *no effect*; at 99 % confidence, one trial in a hundred may be wrong.",
]


@dataclass(frozen=True)
class Case:
    """A mitigation, what disturbs at that time, and whether it helps."""

    name: str
    # Starts the disturber, and yields the words that follow `tune try`.
    disturber: Callable[[Setting], contextlib.AbstractContextManager[list[str]]]
    helps: bool


@dataclass(frozen=True)
class Trial:
    """A mitigation that is tried once."""

    case: Case
    busy: bool
    seed: int

    def name(self) -> str:
        """The name under which its result is kept."""
        return f"{self.case.name}{', busy' if self.busy else ''}, seed {self.seed}"


def daemon(shape: tuple[int, int, int], *, moved: bool) -> Callable[[Setting], contextlib.AbstractContextManager]:
    """A daemon on the measured CPU. The mitigation moves it, or another process of its name that sleeps."""

    @contextlib.contextmanager
    def disturb(setting: Setting) -> Iterator[list[str]]:
        named = [str(link(setting)), "-c", DAEMON]
        with bound(setting, [*named, *map(str, shape)]) as one:
            if moved:
                yield ["off-compute-cpus", "--pid", str(one.pid)]
                return
            with bound(setting, [*named[:2], "import time; time.sleep(36000)"]) as other:
                yield ["off-compute-cpus", "--pid", str(other.pid)]

    return disturb


@contextlib.contextmanager
def ksm(setting: Setting, words: list[str]) -> Iterator[list[str]]:
    """The kernel's thread that merges pages, bound to the measured CPU and given work."""
    found = run(["pgrep", "-x", "ksmd"], TIMEOUT_S)
    if found.code != 0 or not KSM.exists():
        raise BenchError("this kernel has no thread that merges pages")
    pid = found.stdout.strip()
    before = {name: (KSM / name).read_text().strip() for name in KSM_WORK}
    cpus = affinity(pid)
    memory = subprocess.Popen(
        ["taskset", "-c", str(setting.other_cpu), sys.executable, "-c", MERGEABLE],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        (memory.stdout or sys.stdin).readline()
        run(["taskset", "-cp", str(setting.cpu), pid], TIMEOUT_S).checked()
        for name, value in KSM_WORK.items():
            (KSM / name).write_text(value)
        yield words
    finally:
        for name, value in before.items():
            (KSM / name).write_text(value)
        run(["taskset", "-cp", cpus, pid], TIMEOUT_S)
        memory.kill()
        memory.wait()


@contextlib.contextmanager
def nothing(_: Setting, words: list[str]) -> Iterator[list[str]]:
    """No disturber."""
    yield words


CASES = [
    *(Case(name, daemon(shape, moved=True), helps=True) for name, shape in DAEMONS.items()),
    Case("ksm, while ksmd merges on this CPU", lambda s: ksm(s, ["ksm"]), helps=True),
    Case("kthread-affinity, while ksmd merges here", lambda s: ksm(s, ["kthread-affinity"]), helps=True),
    *(
        Case(f"another process than {name}", daemon(DAEMONS[name], moved=False), helps=False)
        for name in list(DAEMONS)[:3]
    ),
    Case("swappiness", lambda s: nothing(s, ["swappiness", "--set", "swappiness=11"]), helps=False),
    Case("watermark-boost", lambda s: nothing(s, ["watermark-boost"]), helps=False),
    Case("dirty-expire", lambda s: nothing(s, ["dirty-expire"]), helps=False),
]


def link(setting: Setting) -> Path:
    """A link to this interpreter, so that a process has the daemon's name."""
    path = setting.scratch / NAME
    if not path.exists():
        path.symlink_to(sys.executable)
    return path


def affinity(pid: str) -> str:
    """The CPUs on which a process may run."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed_list"))


@contextlib.contextmanager
def bound(setting: Setting, command: list[str]) -> Iterator[subprocess.Popen]:
    """A process on the measured CPU, until the end of the block."""
    process = subprocess.Popen(["taskset", "-c", str(setting.cpu), *command], stdin=subprocess.DEVNULL)
    try:
        # `taskset` becomes the command; only then it has its name.
        while Path(f"/proc/{process.pid}/comm").read_text().strip() == "taskset":
            time.sleep(0.01)
        yield process
        if process.poll() is not None:
            raise BenchError(f"`{command[0]}` ended while it was to disturb")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def verdict(text: str) -> str:
    """The verdict of the one mitigation in a document of `tune try`."""
    try:
        (one,) = json.loads(text)["mitigations"]
        if one["verdict"] in VERDICTS:
            return one["verdict"]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"`tune try --json` is not as expected: {error}") from error
    raise BenchError(f"`tune try` has no such verdict: {one['verdict']}")


def trial(setting: Setting, one: Trial, commands: list[str]) -> str:
    """One trial of a mitigation."""
    site = setting.scratch / "site"
    site.mkdir(exist_ok=True)
    (site / "off-compute-cpus.toml").write_text(SITE, encoding="utf-8")
    common = ["--yes", "--json", "--max-risk", "high", "--allow-users", "--allow-owner", "--site", str(site)]
    common += ["--cpus", str(setting.cpu), "--ranks", "2", "--pairs", str(PAIRS)]
    common += ["--duration", DURATION, "--settle", SETTLE, "--seed", str(one.seed)]
    with contextlib.ExitStack() as stack:
        if one.busy:
            stack.enter_context(bound(setting, [sys.executable, "-c", NEIGHBOUR]))
        words = stack.enter_context(one.case.disturber(setting))
        tried = run([str(setting.quell), "tune", "try", *words, *common], TIMEOUT_S).checked()
    commands.append(tried.line().replace(str(setting.scratch), "."))
    return verdict(tried.stdout)


def measure(setting: Setting) -> Result:
    """Tries each mitigation several times, all in random order."""
    if setting.other_cpu is None:
        raise BenchError("it needs a second CPU, to which daemons are moved")
    rounds = setting.rounds or ROUNDS
    trials = [
        Trial(case, busy, setting.random.randrange(1 << 30))
        for case in CASES
        for busy in (False, True)
        for _ in range(rounds)
    ]
    setting.random.shuffle(trials)
    kept = Kept(setting.kept, f"try-verdicts {PAIRS} {DURATION} {SETTLE}", [one.name() for one in trials], VERDICTS)
    commands: list[str] = []
    for number, one in enumerate(trials[len(kept.results) :], len(kept.results) + 1):
        found = trial(setting, one, commands)
        kept.add(one.name(), found)
        setting.say(f"{number} of {len(trials)}: {one.case.name}{', busy' if one.busy else ''}: {found}")
    seen: dict[tuple[str, bool], Counter[str]] = {
        (case.name, busy): Counter() for case in CASES for busy in (False, True)
    }
    for one, found in zip(trials, kept.results):
        seen[one.case.name, one.busy][found] += 1
    return result(seen, commands)


def result(seen: dict[tuple[str, bool], Counter[str]], commands: list[str]) -> Result:
    """The table, and the limits."""
    made = Result(QUESTION, ["mitigation", "neighbour", *VERDICTS], [], [], commands[:1], list(NOTES))
    totals = {True: Counter[str](), False: Counter[str]()}
    for case in CASES:
        for busy in (False, True):
            counts = seen[case.name, busy]
            totals[case.helps] += counts
            cells = [str(counts[one]) for one in VERDICTS]
            made.rows.append([case.name, "busy" if busy else "", *cells])
    for helps, name in ((True, "all that help"), (False, "all that do nothing")):
        made.rows.append([f"**{name}**", "", *(str(totals[helps][one]) for one in VERDICTS)])
    true, null = totals[True], totals[False]
    made.limits = [
        Limit("mitigations that help, called no effect or harm", true["no-effect-larger-than"] + true["hurts"], 0),
        Limit("mitigations that do nothing, called an effect", share(null, "helps", "hurts"), 1, " %"),
    ]
    return made


def share(counts: Counter[str], *names: str) -> float:
    """The share of some verdicts, in percent."""
    return 100 * sum(counts[name] for name in names) / max(1, counts.total())
