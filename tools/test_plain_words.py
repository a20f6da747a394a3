#!/usr/bin/env python3
"""The check of plain words finds each refused phrase in a sample, and ignores code and quotations."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import plain_words

SAMPLE = """# A page
A deadlock is told with its ranks, beside the operations.
So many ranks wait, and nobody knows why; meanwhile the rest goes on for good.
It is said to end, lest it goes in vain, and therein lies the reason.
"""


class PlainWords(unittest.TestCase):
    def found(self, text: str, file: str = "docs/index.md") -> list[tuple[int, str]]:
        return [(line, phrase.lower()) for line, phrase, _ in plain_words.findings(file, text)]

    def test_each_phrase_is_found_in_the_sample(self) -> None:
        found = plain_words.findings("README.md", SAMPLE)
        self.assertEqual({instead for _, _, instead in found}, {one.instead for one in plain_words.REFUSED})

    def test_the_line_is_that_of_the_phrase(self) -> None:
        self.assertEqual(self.found("a\nb\nit stands beside\n"), [(3, "beside")])

    def test_code_output_and_quotations_may_say_what_they_like(self) -> None:
        for text in ("`told`", "```console\n$ told\n```\n", "“told”", "<!-- beside -->", "untold, toldness"):
            self.assertEqual(self.found(text), [], text)

    def test_pages_of_the_past_and_generated_ones_are_left_alone(self) -> None:
        for file in ("docs/decisions/2026-11-23-a.md", "docs/reference/mitigations.md", "crates/sim/src/lib.rs"):
            self.assertEqual(self.found("told", file), [], file)
        self.assertEqual(len(self.found("told", "docs/tasks/limits.md")), 1)


if __name__ == "__main__":
    unittest.main()
