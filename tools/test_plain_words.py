#!/usr/bin/env python3
"""The check of plain words finds each refused phrase and name in samples, and ignores quotations."""

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
SOURCE = """//! Rows, beside the tables.
impl Rows {
    pub fn of(one: &Trace) -> Self { one }
    fn told_once(&self) -> Result<(), String> { Err("nobody waits".into()) }
}
struct LostBeside;
const MOST_STRETCHES: u32 = 1;
let somebody = sight(habit) + pacer.mail;
"""


class PlainWords(unittest.TestCase):
    def found(self, text: str, file: str = "docs/index.md") -> list[tuple[int, str]]:
        return [(line, phrase.lower()) for line, phrase, _ in plain_words.findings(file, text)]

    def test_each_phrase_is_found_in_the_sample(self) -> None:
        found = plain_words.findings("README.md", SAMPLE)
        self.assertEqual({instead for _, _, instead in found}, {one.instead for one in plain_words.REFUSED})

    def test_each_name_is_found_in_the_sample(self) -> None:
        found = list(plain_words.findings("crates/sim/src/rows.rs", SOURCE))
        alternatives = {instead for _, _, instead in found}
        self.assertLessEqual({one.instead for one in plain_words.NAMES}, alternatives)
        self.assertIn((3, "fn of", "`new`, `from_x` or `build_x`"), found)
        self.assertLessEqual({(1, "beside"), (4, "nobody")}, {(line, word) for line, word, _ in found}, "text")

    def test_the_line_is_that_of_the_phrase(self) -> None:
        self.assertEqual(self.found("a\nb\nit stands beside\n"), [(3, "beside")])
        self.assertEqual(self.found("a = 1\n\ntold_here = a\n", "tools/a.py"), [(3, "told_here")])

    def test_code_output_and_quotations_may_say_what_they_like(self) -> None:
        for text in ("`told`", "```console\n$ told\n```\n", "“told”", "<!-- beside -->", "untold, toldness"):
            self.assertEqual(self.found(text), [], text)

    def test_names_of_others_may_be_quoted_in_source(self) -> None:
        for text in ("// The user `nobody`.", "setuid(NOBODY)", 'open("mail.txt")', "// the mail server", "retold()"):
            self.assertEqual(self.found(text, "mpi/trace/a.c"), [], text)

    def test_results_and_generated_pages_are_left_alone(self) -> None:
        for file in ("docs/benchmarks/2026-11-23/a.md", "docs/reference/mitigations.md", "Cargo.lock", "docs/a.svg"):
            self.assertEqual(self.found("told", file), [], file)
        for file in ("docs/tasks/limits.md", "docs/decisions/2026-11-23-a.md", "crates/sim/src/lib.rs", "x"):
            self.assertEqual(self.found("it is told", file)[:1], [(1, "told")], file)


if __name__ == "__main__":
    unittest.main()
