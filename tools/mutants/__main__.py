"""Counts how many small changes of the code the tests notice: python tools/mutants FOLDER [options].

Needs cargo-mutants, cargo-nextest, and the modules tree-sitter and tree-sitter-rust. Makes a copy of the last commit in
FOLDER, builds all mutants into it (instrument.py), notes which test reaches which, and runs each mutant against the
tests that reach it, the quickest first, until one fails. A mutant that no test reaches, or that all let pass, survived;
FOLDER/survivors.txt lists these. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from instrument import Mutant, instrument

# What the project computes with, reads and predicts; the tests of these packages and of those that use them.
FILES = [
    "crates/sim/src/**",
    "crates/recording/src/**",
    *(f"crates/analysis/src/{part}" for part in ("predict.rs", "predict/**", "track/**", "trial.rs", "compare/**")),
]
MUTATED = ["quell-sim", "quell-recording", "quell-analysis"]
TESTED = [*MUTATED, "quell-otf2", "quell-request", "quell-page", "quell-cli"]
# These need the machine for themselves.
LEFT_OUT = re.compile(r"(^|::)(measured|on_this_machine)::")
ENVIRONMENT = {
    "CI": "true",
    "INSTA_UPDATE": "no",
    "PROPTEST_CASES": "64",
    "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
    "QUELL_TEST_SCHEDULES": "60",
    "RUST_BACKTRACE": "0",
}
# Tests that take longer, in seconds, are not run; a mutant is left alone after as long in tests.
LONGEST, ENOUGH = 20.0, 20.0
GIGABYTE = 1 << 30
NOTICED = {"caught", "timeout"}


class Test(NamedTuple):
    """A test that can be run by itself."""

    name: str
    binary: str
    folder: str

    def run(self, variables: dict[str, str], seconds: float) -> tuple[str, float]:
        """How it ended (`passed`, `failed`, `timeout`), and after how many seconds."""
        begun = time.monotonic()
        environment = {**os.environ, **ENVIRONMENT, "CARGO_MANIFEST_DIR": self.folder, **variables}
        words = [self.binary, "--exact", self.name.split(" ")[1], "--test-threads", "1"]
        child = subprocess.Popen(
            words,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=bounded,  # noqa: PLW1509 (it calls nothing that takes a lock)
        )
        try:
            ended = "failed" if child.wait(seconds) else "passed"
        except subprocess.TimeoutExpired:
            ended = "timeout"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return ended, time.monotonic() - begun


def bounded() -> None:
    """A mutant may ask for any amount of memory, or write without end."""
    resource.setrlimit(resource.RLIMIT_AS, (12 * GIGABYTE, 12 * GIGABYTE))
    resource.setrlimit(resource.RLIMIT_FSIZE, (GIGABYTE, GIGABYTE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Run:
    """A folder with the copy, and what is known so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tree = folder, folder / "tree"
        folder.mkdir(parents=True, exist_ok=True)
        os.environ["TMPDIR"] = str(folder / "tmp")
        (folder / "tmp").mkdir(exist_ok=True)

    def once(self, name: str, make: Any) -> Any:  # noqa: ANN401 (any JSON)
        """What the file holds, made the first time."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            self.write(name, make())
        return json.loads(path.read_text(encoding="utf-8"))

    def write(self, name: str, what: Any) -> None:  # noqa: ANN401 (any JSON)
        """Replaces the file."""
        part = self.folder / f"{name}.part"
        part.write_text(json.dumps(what), encoding="utf-8")
        part.replace(self.folder / f"{name}.json")

    def mutants(self) -> list[Mutant]:
        """All that compile, with their numbers."""
        root = Path(__file__).resolve().parents[2]
        if not self.tree.exists():
            subprocess.run(["git", "clone", "--quiet", str(root), str(self.tree)], check=True)
        words = ["cargo", "mutants", "--list", "--json", *(f"--package={one}" for one in MUTATED)]
        listed = json.loads(self.output([*words, *(f"--file={one}" for one in FILES)]))
        numbered = [{**one, "number": number, "diff": None} for number, one in enumerate(listed, 1)]
        used = instrument(self.tree, numbered)
        return [one for one in numbered if one["number"] in used]

    def output(self, words: list[str]) -> str:
        """What a command in the copy prints."""
        ran = subprocess.run(words, cwd=self.tree, check=False, capture_output=True, text=True)
        if ran.returncode:
            # Not the warnings of the changed code, which are many.
            errors = [line for line in ran.stderr.splitlines() if line.startswith("error")]
            raise SystemExit("\n".join([f"{' '.join(words)} failed", *(errors or ran.stderr.splitlines()[-20:])]))
        return ran.stdout

    def tests(self) -> list[Test]:
        """Builds the tests, and lists those that need nothing of the machine."""
        words = ["cargo", "nextest", "list", "--lib", "--bins", "--tests", "--message-format=json"]
        suites = json.loads(self.output([*words, *(f"--package={one}" for one in TESTED)]))["rust-suites"].values()
        return [
            Test(f"{suite['binary-id']} {name}", suite["binary-path"], suite["cwd"])
            for suite in suites
            if suite["binary-name"] != "machine"
            for name, case in suite["testcases"].items()
            if not case["ignored"] and not LEFT_OUT.search(name)
        ]

    def reach(self, test: Test) -> dict[str, Any]:
        """Which mutants a test reaches, and how long it takes."""
        path = self.folder / "tmp" / re.sub(r"\W+", "_", test.name)
        path.unlink(missing_ok=True)
        ended, seconds = test.run({"MUTANT_REACH": str(path)}, 4 * LONGEST)
        numbers = struct.iter_unpack("<I", path.read_bytes() if path.exists() else b"")
        return {"test": test, "ended": ended, "seconds": seconds, "reached": sorted({one for (one,) in numbers})}

    def judge(self, number: int, reaching: list[dict[str, Any]]) -> str:
        """Whether any test notices a mutant."""
        spent = 0.0
        for reach in reaching:
            if spent > ENOUGH:
                return "not run by all tests"
            ended, seconds = Test(*reach["test"]).run({"MUTANT": str(number)}, 8 * reach["seconds"] + 6)
            spent += seconds
            if ended != "passed":
                return "timeout" if ended == "timeout" else "caught"
        return "missed" if reaching else "not reached"


def main() -> None:
    """Runs what was not run yet, and prints the score."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument(
        "--share", type=float, default=1.0, help="only this part of them, a random one that is always the same"
    )
    arguments.add_argument(
        "--only", type=re.compile, default=re.compile(""), help="only those whose name this expression finds"
    )
    given = arguments.parse_args()
    run = Run(given.folder.absolute())
    mutants: list[Mutant] = run.once("mutants", run.mutants)
    tests = [Test(*one) for one in run.once("tests", run.tests)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reaches = run.once("reach", lambda: list(pool.map(run.reach, tests)))
    reaching = defaultdict(list)
    for reach in sorted(reaches, key=lambda one: one["seconds"] * (1_000 + len(one["reached"]))):
        for number in reach["reached"] if reach["ended"] == "passed" and reach["seconds"] < LONGEST else []:
            reaching[number].append(reach)
    ended: dict[str, str] = run.once("ended", dict)
    random.Random(1).shuffle(mutants)  # noqa: S311 (nothing here is secret)
    mutants = [one for one in mutants[: round(given.share * len(mutants))] if given.only.search(one["name"])]
    todo = [one["number"] for one in mutants if str(one["number"]) not in ended]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for at, (number, how) in enumerate(zip(todo, pool.map(lambda one: run.judge(one, reaching[one]), todo)), 1):
            ended[str(number)] = how
            if at % 100 == 0 or at == len(todo):
                run.write("ended", ended)
                print(f"{at} of {len(todo)}: {dict(Counter(ended.values()))}", file=sys.stderr, flush=True)
    report(run.folder, mutants, ended)


def report(folder: Path, mutants: list[Mutant], ended: dict[str, str]) -> None:
    """Prints the share that was noticed, and writes the survivors."""
    score = defaultdict(Counter)
    for one in mutants:
        score[one["package"]][ended[str(one["number"])]] += 1
        score["all"][ended[str(one["number"])]] += 1
    for package, counts in score.items():
        noticed = sum(counts[how] for how in NOTICED)
        print(
            f"{package}: {noticed} of {counts.total()} noticed, {100 * noticed / counts.total():.1f} %: {dict(counts)}"
        )
    left = sorted(
        f"{one['name']} ({ended[str(one['number'])]})" for one in mutants if ended[str(one["number"])] not in NOTICED
    )
    (folder / "survivors.txt").write_text("\n".join([*left, ""]), encoding="utf-8")


main()
