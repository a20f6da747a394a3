#!/usr/bin/env python3
"""Benchmarks of quell against other tools: `./x bench [NAME...]`. Judge them by ratios, not by nanoseconds."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import advise_removed
import fleet
import machine
import metric_container
import predict_scale
import probe_loop
import record_million
import recorder_peers
import replay
import simulate
import sources_cost
import traced
import tracked
import try_verdicts
import under_mpi
from child import BenchError
from page import page

ROOT = Path(__file__).resolve().parent.parent.parent
BENCHMARKS = {
    "probe-loop": probe_loop,
    "predict-scale": predict_scale,
    "record-million": record_million,
    "metric-container": metric_container,
    "sources-cost": sources_cost,
    "recorder-peers": recorder_peers,
    "simulate": simulate,
    "mpi": under_mpi,
    "replay": replay,
    "trace": traced,
    "track": tracked,
    "fleet": fleet,
    "try-verdicts": try_verdicts,
    "advise-removed": advise_removed,
}
FAILED = 1
LIMIT_BROKEN = 3


class Setting(NamedTuple):
    """The settings that every benchmark gets."""

    quell: Path
    scratch: Path
    # Where a long benchmark keeps its results, so that it goes on after it was stopped.
    kept: Path
    cpu: int
    other_cpu: int | None
    seed: int
    rounds: int | None
    random: random.Random

    @staticmethod
    def say(text: str) -> None:
        """Prints a message to stderr."""
        print(f"bench: {text}", file=sys.stderr)


def main() -> int:
    """Runs the requested benchmarks: 0 done, 1 failed, 3 done but a limit does not hold."""
    options = parse()
    codes = [bench(name, options) for name in options.names or BENCHMARKS]
    return FAILED if FAILED in codes else max(codes)


def parse() -> argparse.Namespace:
    """The command line."""
    about = [f"  {name:<16} {module.__doc__.split(': ', 1)[1]}" for name, module in BENCHMARKS.items()]
    parser = argparse.ArgumentParser(
        prog="./x bench",
        description="Benchmarks next to their peers, each with a page of its own.",
        epilog="benchmarks (all, unless named):\n" + "\n".join(about),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark to run")
    parser.add_argument("--quell", type=Path, default=ROOT / "target/release/quell", help="the program")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/benchmarks", help="folder for the pages")
    parser.add_argument("--rounds", type=int, help="rounds of each contender, in place of a benchmark's own")
    parser.add_argument("--seed", type=int, default=1, help="for the order of rounds, and for quell (default: 1)")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def bench(name: str, options: argparse.Namespace) -> int:
    """Runs one benchmark and writes its page."""
    cpus = sorted(os.sched_getaffinity(0))
    other = cpus[0] if len(cpus) > 1 else None
    today = dt.datetime.now(tz=dt.timezone.utc).date()
    known = machine.facts(options.quell)
    order = random.Random(options.seed)  # noqa: S311 (an order to repeat, not a secret)
    built = ROOT / ".x"
    built.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=built) as scratch:
        kept = built / f"bench-{name}.jsonl"
        setting = Setting(options.quell, Path(scratch), kept, cpus[-1], other, options.seed, options.rounds, order)
        setting.say(f"{name}: measuring on CPU {setting.cpu}")
        try:
            result = BENCHMARKS[name].measure(setting)
        except BenchError as error:
            setting.say(f"error: {name}: {error}")
            return FAILED
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / f"{today.isoformat()}-{name}.md"
    result.commands = [line.replace(f"{ROOT}/", "") for line in result.commands]
    text = page(name, today, result, known)
    file.write_text(text, encoding="utf-8")
    kept.unlink(missing_ok=True)
    print(text)
    setting.say(f"{name}: written to {file}")
    broken = [limit for limit in result.limits if not limit.holds]
    for limit in broken:
        setting.say(f"{name}: the limit does not hold: {', '.join(limit.row()[:3])}")
    return LIMIT_BROKEN if broken else 0


if __name__ == "__main__":
    sys.exit(main())
