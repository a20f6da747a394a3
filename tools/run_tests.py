#!/usr/bin/env python3
"""Runs every test, Rust's and Python's, and reports the results: `./x test` calls it.

An inconclusive measurement, or a test skipped because a tool is missing, is not a pass: it is counted and named at the
end. Needs only Python 3.9 and `cargo`; with cargo-nextest tests also have times, and hermetic ones run in parallel to
those that need the machine for themselves.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

from left_behind import Machine, unmount_tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
PYTHON_TESTS = Path(__file__).resolve().parent / "run_unittests.py"
FOLDER = ROOT / "target" / "tests"
# The variable for this file is set for the tests, which append to it: crates/testing/src/outcome.rs, run_unittests.py.
OUTCOMES = FOLDER / "outcomes.jsonl"
SCOPE = ["--workspace", "--lib", "--bins", "--tests"]
ON_THIS_MACHINE = "binary(machine) | test(/(^|::)on_this_machine::/)"
MEASURED = "test(/(^|::)measured::/)"
# A binary in cargo's output, or a test in libtest's.
LIBTEST = re.compile(
    r"^ +Running .*/([^/]+)-[0-9a-f]+\)$|^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.MULTILINE
)
# If a larger share of the measuring tests is inconclusive, CI has not tested enough.
MOST_INCONCLUSIVE = 0.50


class Test(NamedTuple):
    """The result of one test."""

    name: str
    failed: bool
    seconds: float | None


# Examples in the documentation, which nextest does not run.
DOC = ["--workspace", "--doc"]
# For `cargo test`, if nextest is not installed.
HERMETIC = [
    "--workspace",
    "--lib",
    "--bins",
    "--test",
    "it",
    "--test",
    "goal_memory",
    "--",
    "--skip",
    "on_this_machine::",
]


class Background(threading.Thread):
    """Work in a thread while the block runs, which is joined at the end of the block."""

    def __init__(self, work: Callable[[], None]) -> None:
        """Prepares the work."""
        super().__init__(target=work)

    def __enter__(self) -> None:
        """Starts it."""
        self.start()

    def __exit__(self, *_: object) -> None:
        """Waits for it."""
        self.join()


@contextmanager
def scratch() -> Iterator[Path | None]:
    """Gives tests a folder in memory for their files, if there is one that is large and permits running programs.

    On a disk's file system, creating and removing small files takes a tenth of the tests' time.
    """
    memory = Path("/dev/shm")  # noqa: S108
    if not memory.is_dir() or not is_roomy(os.statvfs(memory)):
        yield None
        return
    folder = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="t", dir=memory)
    # The mode of /tmp, because some tests switch to another user.
    Path(folder).chmod(0o1777)
    try:
        yield Path(folder)
    finally:
        del os.environ["TMPDIR"]
        shutil.rmtree(folder, ignore_errors=True)


# Kept: what is built for an MPI, and the lock with which tests take turns.
KEPT = ("quell-mpi-", "quell-tests.")


def of_quell(folder: Path | None) -> list[str]:
    """Files that quell itself left in the tests' folder."""
    names = (path.name for path in folder.iterdir()) if folder else ()
    return sorted(name for name in names if "quell" in name and not name.startswith(KEPT))


def is_roomy(there: os.statvfs_result) -> bool:
    """Whether a file system has 4 GiB free, and permits running programs."""
    return there.f_bavail * there.f_frsize >= 4 << 30 and not there.f_flag & os.ST_NOEXEC


class Run:
    """The results so far."""

    def __init__(self) -> None:
        """Starts without results."""
        self.tests: list[Test] = []
        self.broken: list[str] = []

    def rust(self, what: str, *arguments: str, cargo_test: list[list[str]]) -> None:
        """Runs a part of Rust's tests with nextest, or with `cargo test` if that is not installed."""
        if has_nextest():
            junit = ROOT / "target" / "nextest" / "default" / "junit.xml"
            junit.unlink(missing_ok=True)
            # One more than there are CPUs, because tests of the machine wait more than they compute.
            threads = f"--test-threads={(os.cpu_count() or 1) + 1}"
            code = call(["cargo", "nextest", "run", *SCOPE, "--no-tests=pass", threads, *arguments])
            found = list(read_junit(junit)) if junit.exists() else []
            self.add(what, code, found)
        else:
            for words in cargo_test:
                self.cargo_test(what, words)

    def cargo_test(self, what: str, words: list[str]) -> None:
        """Runs tests with `cargo test`."""
        code, text = call_and_keep(["cargo", "test", "--no-fail-fast", *words])
        self.add(what, code, list(read_libtest(text)))

    def add(self, what: str, code: int, found: list[Test]) -> None:
        """Adds the results of a runner, and notes if it failed for another reason."""
        self.tests += found
        if code and not any(test.failed for test in found):
            self.broken.append(f"{what}: the runner ended with {code}")

    def python(self, interpreter: str, files: list[Path]) -> None:
        """Runs the tests of some files; shows the output of those that fail."""
        for file in files:
            report = FOLDER / f"{file.parent.name}-{file.stem}.jsonl"
            report.unlink(missing_ok=True)
            words = [interpreter, str(PYTHON_TESTS), str(file), str(report)]
            with started(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
                text, _ = child.communicate()
            found = [Test(**one) for one in read_lines(report)]
            self.add(str(file.relative_to(ROOT)), child.returncode, found)
            say(f"{file.relative_to(ROOT)}: {len(found)} tests, {sum(test.failed for test in found)} failed")
            if child.returncode:
                sys.stderr.write(text.decode(errors="replace"))


def say(text: str) -> None:
    """Prints a message in the style of ./x."""
    print(f"x: {text}" if text else "", file=sys.stderr, flush=True)


# The running commands, and the signal that ended this run.
CHILDREN: set[subprocess.Popen] = set()
STOPPED: list[int] = []


def stop(number: int, _: object) -> None:
    """Ends the running commands with a signal that lets them clean up; the run ends where they are waited for."""
    STOPPED.append(number)
    for child in list(CHILDREN):
        child.terminate()


@contextmanager
def started(words: list[str], **pipes: object) -> Iterator[subprocess.Popen]:
    """Runs a command, and waits for its end whatever happens here."""
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, cwd=ROOT, **pipes)
    CHILDREN.add(child)
    if STOPPED:
        # The signal arrived before this child was registered.
        child.terminate()
    try:
        yield child
    finally:
        child.wait()
        CHILDREN.discard(child)
    if STOPPED:
        raise SystemExit(128 + STOPPED[0])


def call(words: list[str]) -> int:
    """Prints a command, runs it, and returns its exit code."""
    say(" ".join(words).replace(f"{ROOT}/", ""))
    with started(words) as child:
        return child.wait()


def call_and_keep(words: list[str]) -> tuple[int, str]:
    """The same, and also shows and returns its output."""
    say(" ".join(words))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    kept = []
    with started(words, **pipes) as child:
        for line in child.stdout or ():
            sys.stdout.write(line)
            kept.append(line)
        code = child.wait()
    return code, "".join(kept)


def has_nextest() -> bool:
    """Whether `cargo nextest` is installed."""
    return shutil.which("cargo-nextest") is not None


def read_junit(path: Path) -> Iterator[Test]:
    """The tests in nextest's report."""
    for suite in ET.parse(path).getroot().iter("testsuite"):  # noqa: S314 (nextest wrote it)
        for case in suite.iter("testcase"):
            failed = case.find("failure") is not None or case.find("error") is not None
            yield Test(f"{suite.get('name')} {case.get('name')}", failed, float(case.get("time", "0")))


def read_libtest(text: str) -> Iterator[Test]:
    """The tests in the output of `cargo test`."""
    binary = ""
    for running, name, how in LIBTEST.findall(text):
        binary = running or binary
        if how in {"ok", "FAILED"}:
            yield Test(f"{binary} {name}", how == "FAILED", None)


def read_lines(path: Path) -> Iterator[dict]:
    """The objects of a file with one per line."""
    if path.exists():
        yield from (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def outcomes(lines: Iterable[dict]) -> dict[str, dict[str, list[str]]]:
    """The outcomes that tests reported: by outcome and test, the reasons."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if line["why"] not in found[line["outcome"]][line["test"]]:
            found[line["outcome"]][line["test"]].append(line["why"])
    return found


def judge(run: Run, reported: dict[str, dict[str, list[str]]], *, ci: bool) -> list[str]:
    """Why this run fails, if it does."""
    problems = [f"failed: {test.name}" for test in run.tests if test.failed] + run.broken
    if not run.tests:
        problems.append("no test ran")
    inconclusive, measured = set(reported["inconclusive"]), set(reported["measured"])
    all_measured = len(inconclusive | measured)
    if ci and len(inconclusive) > MOST_INCONCLUSIVE * all_measured:
        problems.append(
            f"{len(inconclusive)} of {all_measured} tests that measure are inconclusive, and half of them is the most "
            "under CI=true: the machine is too busy to test on"
        )
    return problems


def summary(run: Run, reported: dict[str, dict[str, list[str]]], seconds: float) -> str:
    """The summary, with the counts last."""
    lines = []
    timed = sorted(((test.seconds, test.name) for test in run.tests if test.seconds is not None), reverse=True)
    if timed:
        lines += ["", "the slowest tests:", *(f"  {seconds:6.1f} s  {name}" for seconds, name in timed[:10])]
    failed = {test.name for test in run.tests if test.failed}
    for outcome in ("skipped", "inconclusive"):
        if reported[outcome]:
            lines += ["", f"{outcome}:"]
        for name, reasons in sorted(reported[outcome].items()):
            lines += [f"  {name}: {shorten(reason)}" for reason in reasons]
    if failed:
        lines += ["", "failed:", *(f"  {name}" for name in sorted(failed))]
    inconclusive = set(reported["inconclusive"]) - failed
    skipped = set(reported["skipped"]) - failed - inconclusive
    passed = len(run.tests) - len(failed) - len(skipped) - len(inconclusive)
    lines += ["", f"tests: {len(run.tests)} in {seconds:.0f} s, {len(inconclusive)} of them inconclusive"]
    return "\n".join([*lines, f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped"])


def left_behind(before: Machine) -> list[str]:
    """What the tests did not restore; processes that were ended may take a moment to exit."""
    unmount_tracing(before)
    for _ in range(50):
        changes = before.changes(Machine())
        if not changes:
            break
        time.sleep(0.1)
    return changes


def shorten(reason: str, most: int = 300) -> str:
    """The beginning of a reason, on one line."""
    line = " ".join(reason.split())
    return line if len(line) <= most else f"{line[:most]} …"


def run_quick(run: Run) -> None:
    """Runs the tests that need only the compilers and Python."""
    with Background(lambda: run.python("python3", plain_python_tests())):
        run.rust("hermetic tests", "-E", f"not ({ON_THIS_MACHINE})", cargo_test=[HERMETIC])
        run.cargo_test("examples", DOC)


def run_all(run: Run, python: str) -> None:
    """Runs all tests; those that measure run last, by themselves."""

    def all_python() -> None:
        run.python("python3", plain_python_tests())
        run.python(python, package_tests())

    with Background(all_python):
        run.rust(
            "tests",
            "-E",
            f"not {MEASURED}",
            cargo_test=[
                HERMETIC,
                ["--workspace", "--lib", "--test", "it", "--", "on_this_machine::", "--test-threads=1"],
                ["--workspace", "--test", "machine", "--", "--test-threads=1", "--skip", "measured::"],
            ],
        )
        run.cargo_test("examples", DOC)
    run.rust(
        "measuring tests",
        "-E",
        MEASURED,
        cargo_test=[["--workspace", "--test", "machine", "--", "--test-threads=1", "measured::"]],
    )


def plain_python_tests() -> list[Path]:
    """Files whose tests need only the standard library."""
    files = [*ROOT.glob("tools/test_*.py"), *ROOT.glob("tools/bench/test_*.py"), ROOT / "python/tests/test_metrics.py"]
    return sorted(file for file in files if file.stem not in NEED_PACKAGES)


def package_tests() -> list[Path]:
    """Files whose tests need the packages of tools/requirements-*.txt."""
    own = {file for file in ROOT.glob("python/tests/test_*.py") if file.stem != "test_metrics"}
    return sorted(own | {file for file in ROOT.glob("tools/test_*.py") if file.stem in NEED_PACKAGES})


# Those in tools/ that build the documentation, run its commands, or look for barriers on pages.
NEED_PACKAGES = {"test_site", "test_docs", "test_pages"}


def main() -> int:
    """Runs the requested tests; 1 if something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="hermetic tests alone: no privilege, no MPI, no network")
    parser.add_argument("--python", default="python3", help="the interpreter that has the package's requirements")
    asked = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    OUTCOMES.unlink(missing_ok=True)
    os.environ["QUELL_TEST_OUTCOMES"] = str(OUTCOMES)
    if os.environ.get("CI") == "true":
        os.environ.setdefault("QUELL_TEST_SCHEDULES", "6000")
    start = time.monotonic()
    # Built once: Python's tests use the native module and the program from this build.
    if call(["cargo", "build", "--quiet", *SCOPE]):
        say("error: the tests do not compile")
        return 1
    built = time.monotonic()
    run, before = Run(), Machine()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)
    with scratch() as folder:
        if asked.quick:
            run_quick(run)
        else:
            run_all(run, asked.python)
        run.broken += [f"left behind: {name} in the tests' folder" for name in of_quell(folder)]
    reported = outcomes(read_lines(OUTCOMES))
    print(summary(run, reported, time.monotonic() - built), flush=True)
    times = (f"{test.seconds or 0:.2f}\t{test.name}\n" for test in run.tests)
    (FOLDER / "times.tsv").write_text("".join(times), encoding="utf-8")
    say(f"built in {built - start:.0f} s")
    run.broken += [f"left behind: {change}" for change in left_behind(before)]
    problems = judge(run, reported, ci=os.environ.get("CI") == "true")
    for problem in problems:
        say(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
