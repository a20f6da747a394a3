#!/usr/bin/env python3
"""The benchmarks' own reading and judging, against figures that are known."""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

import child
import metric_container
import page
import probe_loop
import record_million


class Loops(unittest.TestCase):
    def document(self, **changes: object) -> str:
        right = {"schema": probe_loop.SCHEMA, "bare_mean_ns": [20, 20.5], "probe_mean_ns": [22, 21.0]}
        return json.dumps({**right, **changes})

    def test_a_right_document(self) -> None:
        self.assertEqual(probe_loop.read_loops(self.document()), ([20.0, 20.5], [22.0, 21.0]))

    def test_any_other_is_refused(self) -> None:
        for text in (
            "",
            "[]",
            self.document(schema="quell.bench-loop/2"),
            self.document(bare_mean_ns=[]),
            self.document(bare_mean_ns=[20]),
            self.document(bare_mean_ns=[0, 1]),
            self.document(probe_mean_ns=None),
            self.document(probe_mean_ns=["a", 1]),
            self.document(probe_mean_ns=[float("nan"), 1]),
        ):
            with self.assertRaises(child.BenchError, msg=text):
                probe_loop.read_loops(text)


class Files(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def oslat(self, thread: object) -> float:
        file = self.folder / "oslat.json"
        file.write_text(json.dumps({"thread": {"0": thread}}))
        return probe_loop.read_oslat(file)

    def test_oslat_leaves_its_long_turns_out(self) -> None:
        # 1,000 turns of 20 ns, one of 5 us, and one of 75 us that lies past the last bucket.
        thread = {"avg": 1080 / 1002, "duration": 100e-6, "histogram": {"1": 1000, "5": 1, "32": 1}}
        self.assertAlmostEqual(self.oslat(thread), 20.0, places=6)

    def test_a_file_that_oslat_did_not_write(self) -> None:
        for thread in ({}, [], {"avg": 1, "duration": 1, "histogram": {"1": 0}}):
            with self.assertRaises(child.BenchError):
                self.oslat(thread)

    def test_lost_rows_are_summed(self) -> None:
        cpus = [{"lost": 1, "start_ns": 0, "end_ns": 5}, {"lost": 2, "start_ns": 1, "end_ns": 2_000_000_001}]
        (self.folder / "manifest.json").write_text(json.dumps({"cpus": cpus}))
        self.assertEqual(record_million.read_manifest(self.folder), (3, 2.0))
        (self.folder / "manifest.json").write_text('{"cpus": []}')
        with self.assertRaises(child.BenchError):
            record_million.read_manifest(self.folder)

    def test_kept_rows_are_summed(self) -> None:
        self.assertEqual(record_million.read_kept('{"cpus": [{"detours": 2}, {"detours": 3}]}'), 5)
        for text in ("", "[]", '{"cpus": [{}]}', '{"cpus": [{"detours": []}]}'):
            with self.assertRaises(child.BenchError, msg=text):
                record_million.read_kept(text)


class Container(unittest.TestCase):
    def reads(self, **ticks: float) -> str:
        """A document with a fence of 10 ticks and a gettimeofday of 50 and 60."""
        names = {metric_container.FENCE: (1, 10), metric_container.BASE: (50, 60)}
        names[metric_container.JUDGED] = (ticks.get("throughput", 10), ticks.get("serialised", 20))
        entries = [{"name": name, "throughput": [a] * 3, "serialised": [b] * 3} for name, (a, b) in names.items()]
        entries.append({"name": "perf", "skipped": "Permission denied"})
        return json.dumps({"schema": metric_container.SCHEMA, "reads": entries})

    def judged(self, **ticks: float) -> page.Result:
        return metric_container.judged(*metric_container.read_document(self.reads(**ticks)), "quell x")

    def test_ratios_are_net_of_the_fence(self) -> None:
        result = self.judged()
        self.assertEqual([limit.measured for limit in result.limits], [0.2, 0.2])
        self.assertEqual(result.rows[2][1:5], ["10.0 (10.0 to 10.0)", "0.200", "20.0 (20.0 to 20.0)", "0.200"])
        self.assertEqual(result.rows[2][5:], ["400", "1.68"])
        self.assertIn("perf was skipped: Permission denied.", result.notes)

    def test_each_mode_has_its_limit(self) -> None:
        self.assertEqual([limit.holds for limit in self.judged(throughput=18).limits], [False, True])
        self.assertEqual([limit.holds for limit in self.judged(serialised=28).limits], [True, False])

    def test_any_other_document_is_refused(self) -> None:
        for text in ("", "[]", self.reads(throughput=0), self.reads(serialised=float("nan")), '{"schema": "x"}'):
            with self.assertRaises(child.BenchError, msg=text):
                metric_container.read_document(text)
        with self.assertRaises(child.BenchError):
            metric_container.judged([], [], "quell x")

    def test_the_program_runs_under_a_container(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = Path(folder.name) / "reads.json"
        program = metric_container.build(Path(folder.name))
        cpu = str(min(os.sched_getaffinity(0)))
        stand_in = metric_container.ROOT / "python/tests/fake_container.py"
        command = [sys.executable, str(stand_in), "--", str(program), str(file), cpu, "1", "5"]
        child.run(command, 60).checked()
        reads, _ = metric_container.read_document(file.read_text())
        self.assertLessEqual({*metric_container.PAPER} - {"perf read() of task-clock"}, {read.name for read in reads})
        alone = child.run([str(program), str(file), cpu, "1", "5"], 60)
        self.assertEqual(alone.code, 1)
        self.assertIn("quell record -- PROGRAM", alone.stderr)


class Children(unittest.TestCase):
    def test_cost_is_the_childs_own(self) -> None:
        code = "bytearray(b'1') * 200_000_000; print('done')"
        ended = child.run([sys.executable, "-c", code], 60).checked()
        self.assertEqual(ended.stdout, "done\n")
        self.assertGreater(ended.peak_bytes, 200_000_000)
        self.assertGreater(ended.cpu_s, 0)

    def test_failure_tells_the_last_words(self) -> None:
        ended = child.run([sys.executable, "-c", "import sys; sys.exit('no such thing')"], 60)
        with self.assertRaisesRegex(child.BenchError, "code 1:\n  no such thing"):
            ended.checked()

    def test_a_timeout_interrupts(self) -> None:
        ended = child.run([sys.executable, "-c", "import time; time.sleep(60)"], 0.5)
        self.assertLess(ended.wall_s, 30)
        self.assertNotEqual(ended.code, 0)

    def test_a_missing_program_is_named(self) -> None:
        with self.assertRaisesRegex(child.BenchError, "no-such-program"):
            child.run(["./no-such-program"], 1)


class Pages(unittest.TestCase):
    def test_a_broken_limit_shows(self) -> None:
        self.assertFalse(page.Limit("ratio", 1.2, 1.15).holds)
        self.assertFalse(page.Limit("ratio", float("nan"), 1.15).holds)
        limits = [page.Limit("ratio", 1.2, 1.15), page.Limit("memory", 1, 2, " MiB")]
        result = page.Result("Why?", ["", "ns"], [["a|b", "1"]], limits, ["quell x"], ["A note."])
        text = page.page("probe-loop", dt.date(2026, 1, 2), result, [["kernel", "Linux"]])
        for line in (
            "# probe-loop, 2026-01-02",
            "| a\\|b | 1 |",
            "| ratio | 1.2 | 1.15 | **no** |",
            "| memory | 1 MiB | 2 MiB | yes |",
            "- A note.",
            "| kernel | Linux |",
        ):
            self.assertIn(line + "\n", text)


if __name__ == "__main__":
    unittest.main()
