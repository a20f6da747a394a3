"""Tests of the table of all papers: missing entries are detected."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from dataclasses import asdict
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "repro"))

import table
from report import DIFFERS, REPRODUCED, Row, claim


class Table(unittest.TestCase):
    """A table of one paper with two figures, from the rows of one script."""

    def written(self, *rows: dict) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as patches:
            folder = Path(name)
            (folder / "page.py").touch()
            document = {"page": "page.md", "took_s": 1, "budget_s": 2, "effort": 1.0, "load_before": "0", "date": "now"}
            (folder / "page.json").write_text(json.dumps({**document, "rows": list(rows)}), encoding="utf-8")
            figures = {"A paper": ["Fig. 1", "Fig. 2"]}
            for what, value in (("HERE", folder), ("ROWS", folder), ("FIGURES", figures)):
                patches.enter_context(mock.patch.object(table, what, value))
            patches.enter_context(mock.patch.object(sys, "argv", ["table.py"]))
            patches.enter_context(contextlib.redirect_stderr(io.StringIO()))
            code = table.main()
            return code, (folder / "table.md").read_text(encoding="utf-8")

    def row(self, figure: str, ours: str = "5 us", why: str = "", verdict: str = DIFFERS) -> dict:
        row = Row("A paper", figure, papers_value="4 us", ours=ours, verdict=verdict, why=why)
        return asdict(row)

    def test_a_value_or_a_reason_is_enough(self) -> None:
        code, text = self.written(self.row("Fig. 1"), self.row("Fig. 2", "", "There is no such machine."))
        self.assertEqual(code, 0, text)
        self.assertIn("| Fig. 2 | 4 us | not shown | differs | There is no such machine. |", text)

    def test_a_figure_without_a_row_fails(self) -> None:
        code, text = self.written(self.row("Fig. 1"))
        self.assertEqual(code, 1)
        self.assertIn("| Fig. 2 |  | **failed**", text)

    def test_a_claim_that_does_not_hold_fails(self) -> None:
        for holds, wanted in ((True, 0), (False, 1)):
            code, text = self.written(self.row("Fig. 1", verdict=claim(REPRODUCED, holds=holds)), self.row("Fig. 2"))
            self.assertEqual(code, wanted, text)
            self.assertEqual("does not hold" in text, not holds)

    def test_a_row_with_neither_fails(self) -> None:
        code, _ = self.written(self.row("Fig. 1"), self.row("Fig. 2", ""))
        self.assertEqual(code, 1)

    def test_a_row_of_an_unknown_figure_fails(self) -> None:
        code, _ = self.written(self.row("Fig. 1"), self.row("Fig. 2"), self.row("Fig. 3"))
        self.assertEqual(code, 1)

    def test_text_keeps_within_its_cell(self) -> None:
        self.assertEqual(table.cell("a | b\n c"), "a \\| b c")
        row = Row("A paper", "Fig. 1", "4", "5", DIFFERS, "|")
        self.assertEqual(len(table.lines("Fig. 1", [(row, "page.md")])[0]), 6)


if __name__ == "__main__":
    unittest.main()
