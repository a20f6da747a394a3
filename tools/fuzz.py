"""Fuzzes the readers: each target for some minutes of CPU time, as many side by side as there are CPUs.

What a target finds stays in .x/fuzz/TARGET, where the next run begins; an input that fails stays in .x/fuzz/failed.
Each slice of a run is a line of .x/fuzz/slices.jsonl, from which --page writes a table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

HERE = Path(__file__).resolve().parent.parent
KEPT = HERE / ".x" / "fuzz"
SLICES = KEPT / "slices.jsonl"
# Maximum length of a slice in seconds, so that all targets advance alike.
SLICE = 240
# Files of the checkout that are inputs of a target as they are.
SAMPLES = {
    "formats": ["crates/recording/tests/samples", "crates/recording/tests/data"],
    "mitigation": ["crates/tune/catalogue"],
    "trace_dat": ["crates/recording/tests/samples"],
}
# An input that takes longer fails, in seconds of wall time: many times what the slowest seed takes, as CPUs are shared.
TIMEOUT = 20
# The OTF2 library does not free what it has of an archive that it cannot open, and bears that it gets no memory.
SANITIZER = {"otf2": ":detect_leaks=0:allocator_may_return_null=1"}
# It also asks for as much memory as a file claims to need, up to 8 GB, and touches as much as the file holds.
LIBFUZZER = {"otf2": ["-malloc_limit_mb=65536"]}


@dataclass
class Slice:
    """One run of a target."""

    target: str
    cpu_s: float
    ended: int
    executions: int
    coverage_first: int
    coverage_last: int


def command(target: str, binary: Path, seconds: int, timeout: int) -> list[str]:
    """The command of a slice."""
    found, failed = KEPT / target, KEPT / "failed"
    seeds, dictionary = HERE / "fuzz" / "corpus" / target, HERE / "fuzz" / "dictionaries" / f"{target}.dict"
    for folder in (found, failed):
        folder.mkdir(parents=True, exist_ok=True)
    inputs = [str(found), *([str(seeds)] if seeds.exists() else [])]
    inputs += [str(HERE / sample) for sample in SAMPLES.get(target, [])]
    options = [f"-max_total_time={seconds}", f"-timeout={timeout}", "-rss_limit_mb=4096", "-print_final_stats=1"]
    options += [f"-artifact_prefix={failed}/{target}-"]
    options += LIBFUZZER.get(target, [])
    options += [f"-dict={dictionary}"] if dictionary.exists() else []
    return [str(binary), *inputs, *options]


def environment(target: str) -> dict[str, str]:
    """The environment of a target."""
    # Each input is a short life: a large quarantine only costs time.
    sanitizer = "detect_odr_violation=0:quarantine_size_mb=16" + SANITIZER.get(target, "")
    # Targets that read files make them in memory.
    return dict(os.environ, TMPDIR="/dev/shm", ASAN_OPTIONS=sanitizer)  # noqa: S108


def minimise(target: str, binary: Path) -> str:
    """Keeps the inputs of a target that reach what no smaller one does; returns how many there were and are."""
    found, kept = KEPT / target, KEPT / f"{target}.least"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    command = [str(binary), "-merge=1", f"-artifact_prefix={KEPT / 'failed'}/{target}-", str(kept), str(found)]
    with (KEPT / f"{target}.log").open("wb") as output:
        subprocess.run(command, check=True, stdout=output, stderr=output, env=environment(target))
    before, after = list(found.iterdir()), list(kept.iterdir())
    shutil.rmtree(found)
    kept.rename(found)
    size = sum(file.stat().st_size for file in found.iterdir())
    return f"{target}: {len(before):,} inputs, {len(after):,} kept, {size / 1024:,.0f} KiB"


def run(target: str, binary: Path, seconds: int, timeout: int) -> Slice:
    """Runs a slice; its output stays in .x/fuzz/TARGET.log."""
    log = KEPT / f"{target}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(target, binary, seconds, timeout), stdout=output, stderr=output, env=environment(target)
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(errors="replace")
    coverage = [int(found) for found in re.findall(r"cov: (\d+)", text)] or [0]
    executions = re.search(r"number_of_executed_units:\s*(\d+)", text)
    cpu_s = usage.ru_utime + usage.ru_stime
    done = int(executions[1]) if executions else 0
    return Slice(target, round(cpu_s, 1), process.returncode, done, coverage[0], coverage[-1])


class Fuzzing:
    """The slices of some targets, the one that has run least first."""

    def __init__(self, binaries: dict[str, Path], goal_s: float, timeout: int) -> None:
        """Nothing has run."""
        self.binaries, self.goal_s, self.timeout = binaries, goal_s, timeout
        self.spent = dict.fromkeys(binaries, 0.0)
        self.busy: set[str] = set()
        self.failed: set[str] = set()
        self.lock = Lock()

    def next(self) -> str | None:
        """A target that has time left, which becomes busy."""
        with self.lock:
            left = [one for one, spent in self.spent.items() if spent < self.goal_s]
            left = [one for one in left if one not in self.busy | self.failed]
            target = min(left, key=lambda one: self.spent[one], default=None)
            if target is not None:
                self.busy.add(target)
            return target

    def work(self) -> None:
        """Runs slices as long as there are any."""
        while (target := self.next()) is not None:
            left_s = max(1, round(self.goal_s - self.spent[target]))
            made = run(target, self.binaries[target], min(SLICE, left_s), self.timeout)
            with self.lock:
                self.spent[target] += max(made.cpu_s, 1.0)
                self.busy.discard(target)
                with SLICES.open("a") as lines:
                    lines.write(json.dumps(asdict(made)) + "\n")
                if made.ended != 0:
                    self.failed.add(target)
            print(
                f"{target}: {self.spent[target] / 60:.0f} of {self.goal_s / 60:.0f} min, "
                f"{made.executions:,} executions, coverage {made.coverage_last:,}",
                flush=True,
            )


def table() -> str:
    """All slices by target."""
    slices = [Slice(**json.loads(line)) for line in SLICES.read_text().splitlines()]
    rows = [
        "| target | CPU minutes | executions | a second | coverage of the seeds | now |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for target in sorted({one.target for one in slices}):
        own = [one for one in slices if one.target == target]
        seconds, executions = sum(one.cpu_s for one in own), sum(one.executions for one in own)
        most = max(one.coverage_last for one in own)
        cells = [f"{seconds / 60:.0f}", f"{executions:,}", f"{executions / max(seconds, 1):,.0f}"]
        rows.append(f"| `{target}` | {' | '.join(cells)} | {own[0].coverage_first:,} | {most:,} |")
    hours = sum(one.cpu_s for one in slices) / 3600
    return "\n".join([*rows, "", f"Together {hours:.1f} CPU hours.", ""])


def main() -> int:
    """Fuzzes, or writes the table."""
    parser = argparse.ArgumentParser(description="Fuzzes the readers, or writes what has been fuzzed.")
    parser.add_argument("--page", type=Path, help="write a table of all slices to this file, and do no more")
    parser.add_argument("--built", type=Path, default=Path(), help="the folder of the built targets")
    parser.add_argument("--minutes", type=float, default=1, help="CPU time of each target")
    parser.add_argument("--timeout", type=int, default=TIMEOUT, help="seconds for one input; more at idle priority")
    parser.add_argument(
        "--minimise", action="store_true", help="drop inputs that reach nothing of their own, and do no more"
    )
    parser.add_argument("targets", nargs="*")
    given = parser.parse_args()
    if given.page:
        given.page.write_text(table())
        return 0
    KEPT.mkdir(parents=True, exist_ok=True)
    if given.minimise:
        for target in given.targets:
            print(minimise(target, given.built / target), flush=True)
        return 0
    fuzzing = Fuzzing({one: given.built / one for one in given.targets}, 60 * given.minutes, given.timeout)
    side_by_side = os.cpu_count() or 1
    with ThreadPoolExecutor(side_by_side) as pool:
        for worker in [pool.submit(fuzzing.work) for _ in range(side_by_side)]:
            worker.result()
    for target in sorted(fuzzing.failed):
        print(f"{target} failed: see {KEPT / target}.log, and the input in {KEPT / 'failed'}", file=sys.stderr)
    return 1 if fuzzing.failed else 0


if __name__ == "__main__":
    sys.exit(main())
