#!/usr/bin/env python3
"""The runner reports results as they were: failures, skips, and inconclusive tests."""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import run_tests as runner
from left_behind import Machine

HERE = Path(__file__).resolve().parent
JUNIT = """<testsuites><testsuite name="quell-cli::it">
<testcase name="a::b" time="1.5"/><testcase name="c" time="0.2"><failure/></testcase>
</testsuite></testsuites>"""
LIBTEST = """     Running tests/it/main.rs (target/debug/deps/it-0a1b2c)
test a::b ... ok
test crates/a.rs - c (line 3) ... FAILED
test d ... ignored, what a child does
"""


def reported(**outcomes: list[str]) -> dict:
    """Tests by outcome, each with a reason."""
    lines = [
        {"test": test, "outcome": outcome, "why": f"for {test}"}
        for outcome, tests in outcomes.items()
        for test in tests
    ]
    return runner.outcomes(lines)


def ended(*tests: tuple[str, bool]) -> runner.Run:
    """A run with these tests."""
    run = runner.Run()
    run.tests = [runner.Test(name, failed, 1.0) for name, failed in tests]
    return run


class Reports(unittest.TestCase):
    def test_nextest_and_libtest_are_read_alike(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "junit.xml"
            path.write_text(JUNIT)
            found = list(runner.read_junit(path))
        names = [("quell-cli::it a::b", False, 1.5), ("quell-cli::it c", True, 0.2)]
        self.assertEqual([tuple(test) for test in found], names)
        found = list(runner.read_libtest(LIBTEST))
        self.assertEqual(
            [tuple(test) for test in found], [("it a::b", False, None), ("it crates/a.rs - c (line 3)", True, None)]
        )


class Ends(unittest.TestCase):
    def test_who_ends_the_runner_ends_what_it_runs(self) -> None:
        script = (
            "import signal, run_tests as runner\n"
            "signal.signal(signal.SIGTERM, runner.stop)\n"
            "runner.call(['sh', '-c', 'trap \"echo ended; exit\" TERM; echo begun; while :; do sleep 0.1; done'])\n"
        )
        words = [sys.executable, "-c", script]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(words, cwd=HERE, **pipes) as child:
            self.assertEqual(child.stdout.readline(), "begun\n")
            child.terminate()
            self.assertEqual(child.stdout.read(), "ended\n")
        self.assertEqual(child.returncode, 128 + 15)

    def test_what_quell_leaves_in_the_tests_folder_is_seen(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("quell-replay-1-x", "quell-mpi-0", ".tmp1"):
                (Path(folder) / name).mkdir()
            self.assertEqual(runner.of_quell(Path(folder)), ["quell-replay-1-x"])
        self.assertEqual(runner.of_quell(None), [])


class Verdicts(unittest.TestCase):
    def test_a_failure_fails_and_no_test_does_too(self) -> None:
        self.assertEqual(runner.judge(ended(("a", False)), reported(), ci=True), [])
        self.assertEqual(runner.judge(ended(("a", True)), reported(), ci=False), ["failed: a"])
        self.assertEqual(runner.judge(ended(), reported(), ci=False), ["no test ran"])

    def test_more_than_half_inconclusive_fails_in_ci_alone(self) -> None:
        run = ended(("a", False))
        measured = [str(number) for number in range(4)]
        self.assertEqual(runner.judge(run, reported(measured=measured, inconclusive=["0", "1"]), ci=True), [])
        (problem,) = runner.judge(run, reported(measured=measured, inconclusive=["0", "1", "2"]), ci=True)
        self.assertIn("3 of 4", problem)
        self.assertEqual(runner.judge(run, reported(measured=measured, inconclusive=["0", "1", "2"]), ci=False), [])

    def test_neither_skipped_nor_inconclusive_is_a_pass(self) -> None:
        run = ended(("a", False), ("b", False), ("c", False), ("d", True))
        text = runner.summary(run, reported(skipped=["a"], inconclusive=["b"]), 9.0)
        self.assertTrue(text.endswith("1 passed, 1 failed, 1 skipped"), text)
        self.assertIn("4 in 9 s, 1 of them inconclusive", text)
        self.assertIn("a: for a", text)


class Unittests(unittest.TestCase):
    TESTS = (
        "import unittest\nclass T(unittest.TestCase):\n  def test_a(self): pass\n"
        "  def test_b(self): self.skipTest('no tool')\n  def test_c(self): self.fail()\n"
    )

    def run_file(self, ci: str) -> tuple[int, dict]:
        with tempfile.TemporaryDirectory(dir=HERE.parent / "target") as folder:
            file, report = Path(folder) / "test_x.py", Path(folder) / "report"
            file.write_text(self.TESTS)
            words = [sys.executable, str(HERE / "run_unittests.py"), str(file), str(report)]
            done = subprocess.run(words, capture_output=True, check=False, env={"CI": ci})
            lines = list(runner.read_lines(report))
        return done.returncode, {line["name"].rsplit(".", 1)[1]: line["failed"] for line in lines}

    def test_a_skip_is_a_failure_in_ci(self) -> None:
        self.assertEqual(self.run_file("false"), (1, {"test_a": False, "test_b": False, "test_c": True}))
        self.assertEqual(self.run_file("true"), (1, {"test_a": False, "test_b": True, "test_c": True}))


class LeftBehind(unittest.TestCase):
    def test_what_is_otherwise_is_named(self) -> None:
        before = Machine()
        # A copy, because other tests start and end processes in the meantime.
        now = copy.deepcopy(before)
        self.assertEqual(before.changes(now), [])
        now.cpus, now.files = "0", {*before.files, "/tmp/quell-x"}  # noqa: S108
        before.cpus = "0-1"
        name = next(iter(before.settings))
        now.settings[name] = "other"
        changes = before.changes(now)
        self.assertEqual(len(changes), 3, changes)
        self.assertTrue(any(name in change for change in changes))


if __name__ == "__main__":
    unittest.main()
