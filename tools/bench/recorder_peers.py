"""recorder-peers: what do other tools that watch the scheduler and interrupts take from the machine?"""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import sources_cost
from child import BenchError, run
from page import Limit, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from run import Setting

ROUNDS = 5
SECONDS = 2
STORM_RATE = 310_000
# From a tool's start to the load: bpftrace compiles its program in it, and quell loads its own.
LEAD_S = 3.0
TIMEOUT_S = 300.0
# What is at least this long on a quiet CPU is a tick or an interrupt, whatever the hypervisor does.
TICK_NS = 2_500
# Those of quell's programs.
TRACEPOINTS = [
    *("sched:sched_switch", "sched:sched_waking", "irq:irq_handler_*", "irq:softirq_entry", "irq:softirq_exit"),
    *("timer:hrtimer_expire_entry", "timer:timer_expire_entry", "workqueue:workqueue_execute_start"),
    *("irq_vectors:local_timer_*", "irq_vectors:reschedule_*", "irq_vectors:call_function_*"),
    *("csd:csd_queue_cpu", "csd:csd_function_entry", "ipi:ipi_send_cpu", "nmi:nmi_handler"),
]
# Pages of perf's ring, for each CPU: 64 MiB, four times what quell has.
PERF_PAGES = 16384
BPFTRACE = """
tracepoint:sched:sched_switch {
  if (@since[cpu]) { @runs[args->prev_comm] = hist(nsecs - @since[cpu]); }
  @since[cpu] = nsecs;
}
tracepoint:irq:softirq_entry { @in[cpu] = nsecs; }
tracepoint:irq:softirq_exit /@in[cpu]/ { @softirqs[args->vec] = hist(nsecs - @in[cpu]); @in[cpu] = 0; }
tracepoint:irq_vectors:local_timer_entry { @tick[cpu] = nsecs; }
tracepoint:irq_vectors:local_timer_exit /@tick[cpu]/ { @ticks = hist(nsecs - @tick[cpu]); @tick[cpu] = 0; }
END { clear(@since); clear(@in); clear(@tick); }
"""

QUESTION = (
    "The tools that people use to see what takes a CPU, next to quell's kernel recorder, one at a time in random order "
    "under the same loads. *A switch*: how much longer a switch takes while the tool watches, where two threads of one "
    "CPU yield to each other. *A tick*: how much longer the median detour of 2.5 us or more gets on a CPU with nothing "
    "but quell's probe. *Consumer*: CPU time of all the tool's processes while threads switch 310,000 times a second, "
    "of one CPU. *Seen*: the load's switches that are in the tool's result, of the kernel's count."
)
NOTES = [
    "Equal information: quell, perf with the same tracepoints, and perf sched keep each event that they do not lose.",
    "The others keep sums or histograms, and cannot say which event fell into a detour; offcputime takes stacks too.",
    "perf sched has no interrupts or softirqs.",
    "rtla needs tracers (osnoise, timerlat) that this kernel may lack; bcc's Python tools need the kernel's headers.",
]


@dataclass(frozen=True)
class Tool:
    """A contender: its command, the package that brings it, and how often the load's switches are in its result."""

    name: str
    package: str
    keeps: str
    command: Callable[[Setting, Path], list[str]]
    seen: Callable[[Setting, Path], int] | None


def quell(setting: Setting, out: Path) -> list[str]:
    """The kernel recorder alone, on one CPU."""
    command = [str(setting.quell), "record", "-q", "-o", str(out), "--cpus", str(setting.cpu), "--sources", "on"]
    return [*command, "--method", "kernel", "--effect", "0", "--duration", "600s"]


def quell_seen(setting: Setting, out: Path) -> int:
    """The load's runs in the recording."""
    shown = run([str(setting.quell), "show", str(out), "--by", "source", "--json"], TIMEOUT_S).checked()
    return sources_cost.read_show(shown.stdout)[2]


def perf(setting: Setting, *words: str, out: Path) -> list[str]:
    """A recording of perf's, of one CPU."""
    return ["perf", *words, "-q", "-m", str(PERF_PAGES), "-C", str(setting.cpu), "-o", str(out)]


def perf_record(setting: Setting, out: Path) -> list[str]:
    """The tracepoints that quell's programs use, by perf's rings."""
    return [*perf(setting, "record", out=out), "-e", ",".join(TRACEPOINTS)]


def perf_sched(setting: Setting, out: Path) -> list[str]:
    """The scheduler's tracepoints, as perf chooses them."""
    return perf(setting, "sched", "record", out=out)


def trace_cmd(setting: Setting, out: Path) -> list[str]:
    """The same events by ftrace's own rings."""
    events = [word for event in TRACEPOINTS for word in ("-e", event)]
    return ["trace-cmd", "record", "-M", f"{1 << setting.cpu:x}", "-o", str(out), *events]


def perf_seen(_: Setting, out: Path) -> int:
    """The switches away from the load's threads in perf's file."""
    shown = run(["perf", "script", "-i", str(out), "-F", "comm,event"], TIMEOUT_S).checked()
    return len(re.findall(r"event_load\s+sched:sched_switch", shown.stdout))


def bpftrace(_: Setting, out: Path) -> list[str]:
    """A script as one writes it for this."""
    script = out.with_suffix(".bt")
    script.write_text(BPFTRACE, encoding="utf-8")
    return ["bpftrace", str(script)]


def bpftrace_seen(_: Setting, out: Path) -> int:
    """The runs in the load's histogram."""
    text = out.with_suffix(".txt").read_text(encoding="utf-8", errors="replace")
    found = re.search(r"@runs\[event_load\]:\s*\n((?:[\[(].*\n)+)", text)
    return sum(int(count) for count in re.findall(r"\)\s+(\d+) \|", found[1])) if found else 0


TOOLS = [
    Tool("quell", "", "each interval, with cause", quell, quell_seen),
    Tool("perf record, the same tracepoints", "linux-perf", "each event", perf_record, perf_seen),
    Tool("perf sched record", "linux-perf", "each event of the scheduler", perf_sched, perf_seen),
    Tool("trace-cmd", "trace-cmd", "each event", trace_cmd, None),
    Tool("bpftrace", "bpftrace", "histograms", bpftrace, bpftrace_seen),
    Tool("runqlat (libbpf-tools)", "libbpf-tools", "one histogram", lambda *_: ["runqlat", "600", "1"], None),
    Tool("offcputime (libbpf-tools)", "libbpf-tools", "sums by stack", lambda *_: ["offcputime", "600"], None),
]


@dataclass(frozen=True)
class Seen:
    """What one run of the loads found, with a tool or without."""

    switch_ns: float
    tick_ns: float
    consumer_percent: float
    switches: int


def measure(setting: Setting) -> Result:
    """Runs the loads under each tool in turn."""
    if setting.other_cpu is None:
        raise BenchError("it needs a second CPU for what the tools run as processes")
    program = sources_cost.build(setting.scratch)
    result = Result(QUESTION, ["tool", "keeps", "a switch", "a tick", "consumer", "seen"], [], [], [], list(NOTES))
    tools = [tool for tool in TOOLS if can_run(setting, tool, result)]
    alone: list[Seen] = []
    under: dict[str, list[Seen]] = {tool.name: [] for tool in tools}
    shares: dict[str, list[float]] = {tool.name: [] for tool in tools}
    for number in range(setting.rounds or ROUNDS):
        for tool in setting.random.sample([None, *tools], len(tools) + 1):
            if tool is None:
                alone.append(loads(setting, program, None))
                continue
            out = setting.scratch / f"{number}-{TOOLS.index(tool)}"
            with watching(setting, tool, out) as process:
                seen = loads(setting, program, process.pid)
            under[tool.name].append(seen)
            if tool.seen:
                shares[tool.name].append(100 * tool.seen(setting, out) / seen.switches)
            if number == 0:
                result.commands.append(" ".join(process.args).replace(str(setting.scratch), "."))
    added = {name: compare(seen, alone) for name, seen in under.items()}
    for tool in tools:
        switch, tick, consumer = added[tool.name]
        share = f"{median(shares[tool.name]):.2f} %" if tool.seen else ""
        cells = [f"{switch:+.0f} ns", f"{tick:+.0f} ns", f"{consumer:.1f} %", share]
        result.rows.append([tool.name, tool.keeps, *cells])
    what = [f"{median(getattr(one, name) for one in alone):,.0f} ns" for name in ("switch_ns", "tick_ns")]
    result.rows.append(["nothing", "", *(f"{cell} in all" for cell in what), "", ""])
    equal = [added[name][0] for name in ("perf record, the same tracepoints", "perf sched record") if name in added]
    if equal and "quell" in added:
        limit = "a switch under quell, to the cheapest tool with equal information"
        result.limits.append(Limit(limit, added["quell"][0] / min(equal), 1.0))
    return result


def compare(seen: list[Seen], alone: list[Seen]) -> tuple[float, float, float]:
    """What a tool adds to a switch and to a tick, and its consumer's share of a CPU: medians over the rounds."""
    switch = median(one.switch_ns - other.switch_ns for one, other in zip(seen, alone))
    tick = median(one.tick_ns - other.tick_ns for one, other in zip(seen, alone))
    return switch, tick, median(one.consumer_percent for one in seen)


def can_run(setting: Setting, tool: Tool, result: Result) -> bool:
    """Whether a tool is here and starts; says why not."""
    out = setting.scratch / f"try-{TOOLS.index(tool)}"
    program = tool.command(setting, out)[0]
    reason = f"it is not installed (Debian: {tool.package})" if not shutil.which(program) else ""
    if not reason:
        try:
            with watching(setting, tool, out):
                pass
        except BenchError as error:
            reason = str(error)
    if reason:
        setting.say(f"skipping {tool.name}: {reason}")
        result.notes.append(f"{tool.name} was skipped: {reason}.")
    return not reason


@contextlib.contextmanager
def watching(setting: Setting, tool: Tool, out: Path) -> Iterator[subprocess.Popen]:
    """A tool while it watches."""
    with out.with_suffix(".txt").open("w+", encoding="utf-8", errors="replace") as text:
        command = tool.command(setting, out)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=text, stderr=text, cwd=setting.scratch)
        try:
            time.sleep(LEAD_S)
            if process.poll() is not None:
                text.seek(0)
                words = text.read().strip().splitlines()[-2:]
                raise BenchError(f"`{command[0]}` ended at once: {'; '.join(words) or '(no message)'}")
            yield process
            if process.poll() is not None:
                raise BenchError(f"`{command[0]}` ended while the loads ran")
            process.send_signal(signal.SIGINT)
            process.wait(TIMEOUT_S)
        finally:
            process.kill()
            process.wait()


def loads(setting: Setting, program: Path, tool: int | None) -> Seen:
    """Runs the loads one after the other."""
    folder = setting.scratch / "ticks.quell"
    shutil.rmtree(folder, ignore_errors=True)
    probe = [str(setting.quell), "record", "-q", "-o", str(folder), "--cpus", str(setting.cpu), "--sources", "off"]
    run([*probe, "--duration", f"{SECONDS}s"], TIMEOUT_S).checked()
    load = [str(program), str(setting.cpu), str(SECONDS)]
    yields = sources_cost.read_load(run([*load, "yield"], TIMEOUT_S).checked().stdout)
    before = cpu_ns(tool)
    switches = sources_cost.read_load(run([*load, "switch", str(STORM_RATE)], TIMEOUT_S).checked().stdout)
    percent = 100 * (cpu_ns(tool) - before) / (switches.took_s * 1e9)
    both = yields.switches + switches.switches
    return Seen(yields.took_s * 1e9 / yields.switches, tick_ns(setting, folder), percent, both)


def tick_ns(setting: Setting, folder: Path) -> float:
    """The median of the detours that are long enough to be ticks."""
    rows = setting.scratch / "ticks.csv"
    rows.unlink(missing_ok=True)
    run([str(setting.quell), "convert", str(folder), str(rows)], TIMEOUT_S).checked()
    lines = rows.read_text(encoding="utf-8").splitlines()
    column = lines[0].split(",").index("duration_ns")
    long = [int(ns) for ns in (line.split(",")[column] for line in lines[1:]) if int(ns) >= TICK_NS]
    if not long:
        raise BenchError(f"no detour on CPU {setting.cpu} is as long as a tick: is it isolated?")
    return median(long)


def cpu_ns(tool: int | None) -> int:
    """CPU time of a process, its threads and its children."""
    if tool is None:
        return 0
    own = {tool}
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    while more := {pid for pid, parent in parents.items() if parent in own} - own:
        own |= more
    total = 0
    for thread in (one for pid in own for one in Path(f"/proc/{pid}/task").glob("*/schedstat")):
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(thread.read_text().split()[0])
    return total
