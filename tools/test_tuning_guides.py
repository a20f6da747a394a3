#!/usr/bin/env python3
"""Tests of the table of tuning guides: blank rows, unknown ids and missing settings are found."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import tuning_guides
from tuning_guides import Row


class Guides(unittest.TestCase):
    """Rows of a guide against a catalogue of two entries."""

    def faults(self, *rows: Row) -> list[str]:
        found = tuning_guides.faults(list(rows), {"thp", "ksm"})
        return [fault for fault in found if not fault.endswith(": no row")]

    def test_a_row_has_entries_or_a_reason(self) -> None:
        for covered, refused, good in (
            ("thp", "", True),
            ("thp ksm", "", True),
            ("", "It removes no noise.", True),
            ("", "", False),
            ("  ", "", False),
            ("thp", "It removes no noise.", False),
            ("thp", " ", False),
            ("", "no noise", False),
            ("thp numa", "", False),
        ):
            faults = self.faults(Row("llnl", "vm", "x", "1", covered, refused))
            self.assertEqual(faults == [], good, (covered, refused, faults))

    def test_rows_are_settings_of_known_guides_and_there_once(self) -> None:
        row = Row("llnl", "vm", "x", "1", "thp", "")
        self.assertEqual(len(self.faults(row, row._replace(value="2"))), 1)
        self.assertEqual(len(self.faults(row._replace(guide="nowhere"))), 1)
        self.assertEqual(len(self.faults(row._replace(setting=""))), 1)
        found = list(tuning_guides.faults([row], {"thp"}))
        self.assertIn("lumi: no row", found)

    def test_settings_of_tuned_need_rows(self) -> None:
        text = "[main]\nsummary=x\n[cpu]\ngovernor=performance\n[bootloader]\ncmdline_x=+a=1 ${b} nohz\n"
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            profile = folder / "profiles/realtime"
            profile.mkdir(parents=True)
            (profile / "tuned.conf").write_text(text, encoding="utf-8")
            rows = [Row("tuned-realtime", "bootloader", "a, c", "1", "thp", "")]
            found = [one for one in tuning_guides.missing(rows, folder) if one.startswith("tuned-realtime")]
        wanted = ["[bootloader] nohz", "[cpu] governor"]
        self.assertEqual(found, [f"tuned-realtime: {one} has no row" for one in wanted])

    def test_a_page_has_every_row(self) -> None:
        rows = tuning_guides.read(tuning_guides.ROWS)
        text = tuning_guides.page(rows)
        self.assertEqual(text.count("\n| "), len(rows) + len(tuning_guides.GUIDES))


if __name__ == "__main__":
    unittest.main()
