"""Keeps the results of a long benchmark in a file, so that a run that was stopped goes on where it ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from child import BenchError

if TYPE_CHECKING:
    from pathlib import Path


class Kept:
    """One line for each result, in the order of the trials; the first line names the benchmark and its settings."""

    def __init__(self, path: Path, about: str, trials: list[str], allowed: list[str]) -> None:
        self.path = path
        self.results = self._read(about, trials, allowed)
        if not self.path.exists():
            self.path.write_text(json.dumps({"about": about}) + "\n", encoding="utf-8")

    def add(self, trial: str, result: str) -> None:
        """Keeps the result of the next trial."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"trial": trial, "result": result}) + "\n")
        self.results.append(result)

    def _read(self, about: str, trials: list[str], allowed: list[str]) -> list[str]:
        """The results of an earlier run."""
        if not self.path.exists():
            return []
        try:
            first, *lines = [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]
            if first["about"] != about or [line["trial"] for line in lines] != trials[: len(lines)]:
                raise BenchError(f"`{self.path}` has the results of a run with other settings; finish it, or remove it")
            results = [line["result"] for line in lines]
        except (ValueError, KeyError, TypeError) as error:
            raise BenchError(f"`{self.path}` is not what a benchmark keeps: {error}; remove it") from error
        if not set(results) <= set(allowed):
            raise BenchError(f"`{self.path}` has a result that is none of {', '.join(allowed)}; remove it")
        return results
