#!/usr/bin/env python3
"""Endurance: `record`, `watch`, `serve-metrics` and sweeps at once, for an hour, while processes come and go.

Usage: .x/venv/bin/python tools/endurance.py QUELL [MINUTES]. Prints the figures as a table; exits with 1 if one of them
does not hold.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SAMPLE_S = 10.0
PORT = 9464
# Memory may grow by this much between the sixth part of the run that follows the start, and the last one.
GROWTH_MIB = 4.0
# The recorder and /proc/interrupts are not read at the same instant.
TICKS_DIFFER = 0.01
CLOCK_NS = 1000
# A longer detour may have begun with something else.
SHORT_NS = 20_000
# Short-lived processes, files and threads: some hundred a second.
CHURN = """
import os, subprocess, tempfile, threading, time
while True:
    subprocess.run(["/bin/true"])
    threading.Thread(target=time.sleep, args=(0.01,)).start()
    with tempfile.TemporaryFile() as file:
        file.write(os.urandom(1 << 16))
    time.sleep(0.003)
"""
PLAN = """
name = 'endurance'
noise = ['small.quell']
quantum = '1ms'
sync = 'phase'
phases = 50
replicates = 1
ranks = [4, 64, 1024]
seed = '1..20'
"""


def main() -> int:
    """Runs everything, and judges it."""
    program, *rest = sys.argv[1:]
    quell, minutes = Path(program).resolve(), float(rest[0]) if rest else 60.0
    with tempfile.TemporaryDirectory() as scratch:
        return run(quell, Path(scratch), minutes * 60)


def run(quell: Path, folder: Path, seconds: float) -> int:
    """Starts all, samples their memory until the recorder ends, and prints what holds."""
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    checked(folder, [quell, "record", "-o", "small.quell", "--duration", "2s", "--sources", "off"])
    recorder: list[str | Path] = [
        quell,
        "record",
        "-o",
        "long.quell",
        "--duration",
        f"{seconds}s",
        "--threshold",
        "2us",
    ]
    verbs = {
        "record": start(folder, recorder, "record"),
        "watch": start(folder, [quell, "watch", "--plain", "--interval", "1s"], "watch"),
        "serve-metrics": start(folder, [quell, "serve-metrics", "--listen", f"127.0.0.1:{PORT}"], "serve"),
    }
    churn = start(folder, [sys.executable, "-c", CHURN], "churn")
    memory: dict[str, list[float]] = defaultdict(list)
    sweeps = scrapes = 0
    readings = []
    try:
        while verbs["record"].poll() is None:
            next_at = time.monotonic() + SAMPLE_S
            for name, child in verbs.items():
                if child.poll() is None:
                    memory[name].append(resident_mib(child.pid))
                elif name != "record":
                    raise SystemExit(f"{name} ended with {child.returncode}")
            readings.append((time.monotonic_ns(), interrupts()))
            sweep(quell, folder, sweeps)
            sweeps += 1
            scrapes += scraped()
            while verbs["record"].poll() is None and time.monotonic() < next_at:
                time.sleep(0.05)
    finally:
        for child in (*verbs.values(), churn):
            child.terminate()
            child.wait()
    print(f"{seconds / 60:g} minutes, {sweeps} sweeps, {scrapes} scrapes\n")
    if verbs["record"].returncode:
        raise SystemExit(f"record ended with {verbs['record'].returncode}: see {folder}/record.txt")
    rows = [grown(name, samples) for name, samples in memory.items()]
    rows += [*losses(folder, readings), clocks(folder / "long.quell", seconds)]
    print("| figure | measured | limit | holds |\n|---|--:|--:|---|")
    for figure, measured, limit, holds in rows:
        print(f"| {figure} | {measured} | {limit} | {'yes' if holds else '**no**'} |")
    return 0 if all(holds for *_, holds in rows) else 1


Row = tuple[str, str, str, bool]


def start(folder: Path, command: list[str | Path], name: str) -> subprocess.Popen[bytes]:
    """Starts a command whose output goes to a file."""
    with (folder / f"{name}.txt").open("wb") as output:
        return subprocess.Popen([str(word) for word in command], cwd=folder, stdout=output, stderr=output)


def checked(folder: Path, command: list[str | Path]) -> str:
    """The output of a command that must succeed."""
    words = [str(word) for word in command]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {ended.returncode}: {ended.stderr}")
    return ended.stdout


def sweep(quell: Path, folder: Path, number: int) -> None:
    """Computes a sweep; every tenth begins from nothing."""
    output = f"sweep-{number // 10}"
    checked(folder, [quell, "predict", "--sweep", "plan.toml", "--output", output, "--json"])


def scraped() -> int:
    """1 if the metrics could be read."""
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=30) as answer:
        return int(b"# EOF" in answer.read())


def resident_mib(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next((line for line in status.splitlines() if line.startswith("VmRSS:")), "VmRSS: 0 kB")
    return int(line.split()[1]) / 1024


def interrupts() -> int:
    """Local timer interrupts of all CPUs since boot."""
    lines = Path("/proc/interrupts").read_text(encoding="utf-8").splitlines()
    row = next(line.split() for line in lines if line.strip().startswith("LOC:"))
    return sum(int(word) for word in row[1:] if word.isdigit())


def grown(name: str, samples: list[float]) -> Row:
    """How much the memory of a verb grew after its first sixth."""
    part = max(len(samples) // 6, 1)
    early, late = statistics.median(samples[part : 2 * part] or samples), statistics.median(samples[-part:])
    measured = f"{late - early:+.1f} MiB, from {early:.1f}"
    return (
        f"memory of `{name}`, its last sixth against its second",
        measured,
        f"+{GROWTH_MIB:g} MiB",
        (late - early <= GROWTH_MIB),
    )


def losses(folder: Path, readings: list[tuple[int, int]]) -> list[Row]:
    """What was lost, and whether what is kept and what is lost make up what the kernel counted between two readings."""
    manifest = json.loads((folder / "long.quell/manifest.json").read_text(encoding="utf-8"))
    lost_rows = sum(cpu["lost"] for cpu in manifest["cpus"])
    lost_events = manifest["sources"]["lost"]
    begun = manifest["zero_monotonic_ns"] + max(cpu["start_ns"] for cpu in manifest["cpus"])
    (begin, before), *_, (end, after) = (reading for reading in readings if reading[0] > begun)
    starts = ticks_of(folder / "long.quell")["start_ns"]
    zero = manifest["zero_monotonic_ns"]
    between = pc.and_(pc.greater_equal(starts, begin - zero), pc.less(starts, end - zero))
    kept, counted = pc.sum(between).as_py(), after - before
    return [
        ("detours lost, and counted as lost", f"{lost_rows:,}", "", True),
        ("events of the kernel lost, and counted as lost", f"{lost_events:,}", "", True),
        (
            "timer interrupts recorded, and of those in /proc/interrupts",
            f"{kept:,} of {counted:,}",
            f"{TICKS_DIFFER:.0%}, or as many as were lost",
            kept <= counted * (1 + TICKS_DIFFER) and kept + lost_events >= counted * (1 - TICKS_DIFFER),
        ),
    ]


def ticks_of(recording: Path) -> pa.Table:
    """The timer interrupts of a recording."""
    rows = pq.read_table(recording / "intervals.parquet", columns=["cpu", "start_ns", "source"])
    return rows.filter(pc.equal(rows["source"].cast("string"), "tick"))


def clocks(recording: Path, seconds: float) -> Row:
    """How much further from the kernel's clock the probe's is at the end than at the beginning."""
    detours = pq.read_table(recording / "detours.parquet", columns=["cpu", "start_ns", "duration_ns"])
    ticks = ticks_of(recording)
    window = int(min(seconds / 4, 120) * 1e9)
    last = pc.max(detours["start_ns"]).as_py()
    first, end = (offset_ns(detours, ticks, start, start + window) for start in (0, last - window))
    apart = end - first
    return (
        "probe's clock against the kernel's, the last two minutes against the first",
        f"{apart:+.0f} ns",
        f"± {CLOCK_NS} ns",
        abs(apart) <= CLOCK_NS,
    )


def offset_ns(detours: pa.Table, ticks: pa.Table, begin: int, end: int) -> float:
    """Median time from the start of a short detour to that of the timer interrupt in it."""
    offsets = []
    for cpu in pc.unique(detours["cpu"]).to_pylist():
        starts = sorted(of_cpu(ticks, cpu, begin, end, ["start_ns"]))
        place = 0
        for start, duration in sorted(of_cpu(detours, cpu, begin, end, ["start_ns", "duration_ns"])):
            if duration > SHORT_NS:
                continue
            while place < len(starts) and starts[place][0] < start - CLOCK_NS:
                place += 1
            if place < len(starts) and starts[place][0] < start + duration:
                offsets.append(starts[place][0] - start)
    return statistics.median(offsets)


def of_cpu(table: pa.Table, cpu: int, begin: int, end: int, columns: list[str]) -> list[tuple[int, ...]]:
    """Rows of one CPU in a window of time."""
    mask = pc.and_(
        pc.equal(table["cpu"], cpu),
        pc.and_(pc.greater_equal(table["start_ns"], begin), pc.less(table["start_ns"], end)),
    )
    rows = table.filter(mask)
    return list(zip(*(rows[column].to_pylist() for column in columns), strict=True))


if __name__ == "__main__":
    sys.exit(main())
