#!/usr/bin/env python3
"""Runs the unittests of one file, and writes the result of each: run_unittests.py FILE REPORT.

Called by tools/run_tests.py.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import unittest
from pathlib import Path


class ReportingResult(unittest.TextTestResult):
    """A result that also writes a line for each test, and lists skipped ones."""

    report = Path()
    file = Path()

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Starts to measure the time."""
        super().startTest(test)
        self.failed = False
        self.begin = time.monotonic()

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Writes the line."""
        super().stopTest(test)
        line = {"name": self.full_name(test), "failed": self.failed, "seconds": time.monotonic() - self.begin}
        append(self.report, line)

    def addError(self, test, error) -> None:  # noqa: N802, ANN001
        """A failure."""
        super().addError(test, error)
        self.failed = True
        if not isinstance(test, unittest.TestCase):  # of a whole class or module
            append(self.report, {"name": self.full_name(test), "failed": True, "seconds": 0.0})

    def addFailure(self, test, error) -> None:  # noqa: N802, ANN001
        """A failure."""
        super().addFailure(test, error)
        self.failed = True

    def addSubTest(self, test, subtest, error) -> None:  # noqa: N802, ANN001
        """A failed subtest."""
        super().addSubTest(test, subtest, error)
        self.failed = self.failed or error is not None

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        """Lists the skip at the end; under CI=true it is a failure, because everything that tests need is present."""
        super().addSkip(test, reason)
        self.failed = os.environ.get("CI") == "true"
        path = os.environ.get("QUELL_TEST_OUTCOMES")
        if path:
            append(Path(path), {"test": self.full_name(test), "outcome": "skipped", "why": reason})

    def full_name(self, test: unittest.TestCase) -> str:
        """The test's name after the file's."""
        return f"{self.file} {test.id().removeprefix('tests_of_file.')}"


def append(path: Path, line: dict) -> None:
    """Appends one line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def main() -> int:
    """Returns 1 if a test failed."""
    file, report = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    ReportingResult.report, ReportingResult.file = report, file.relative_to(Path(__file__).resolve().parent.parent)
    sys.path.insert(0, str(file.parent))
    sys.argv = [str(file)]
    spec = importlib.util.spec_from_file_location("tests_of_file", file)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules["tests_of_file"] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    tests = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(resultclass=ReportingResult, verbosity=0).run(tests)
    return 0 if result.wasSuccessful() and not (os.environ.get("CI") == "true" and result.skipped) else 1


if __name__ == "__main__":
    sys.exit(main())
