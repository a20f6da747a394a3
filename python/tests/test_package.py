#!/usr/bin/env python3
"""The package by itself: recordings, tables, long calls, and what works without the native module."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

from case import PackageCase
from package import ROOT

A = "fleet/node00000.quell"
# Takes minutes on any machine.
LONG = ["--ranks=1Mi", "--op=allreduce", "--bytes=8", "--phases=2000", "--", A]


class Recordings(PackageCase):
    def test_they_tell_what_they_are(self) -> None:
        import quell

        recording = quell.open(A)
        self.assertIsInstance(recording, quell.Recording)
        self.assertEqual((recording.host, recording.method, recording.cpus), ("node00000", "detour", [0, 1]))
        self.assertEqual(recording.manifest["cpus"][0]["cpu"], 0)
        self.assertIsInstance(quell.open("run"), quell.Archive)
        self.assertEqual(quell.read("selfish.txt").manifest["state"], "imported")

    def test_tables_have_the_files_columns(self) -> None:
        import quell

        recording = quell.open(A)
        self.assertEqual(list(recording.detours.columns), ["cpu", "start_ns", "duration_ns", "own"])
        self.assertEqual(recording.intervals.columns["source"], "Utf8")
        for name in ("quanta", "phases", "threads"):
            self.assertEqual(len(getattr(recording, name)), 0)
        with self.assertRaisesRegex(KeyError, "duration_ns"):
            recording.detours.column("nothing")

    def test_columns_are_plain_without_arrow(self) -> None:
        import quell

        text = "cpu,start_ns,duration_ns,own\n0,10,5,false\n0,20,18446744073709551,true\n"
        Path("a.csv").write_text(text)
        detours = quell.read("a.csv").detours
        self.assertEqual(list(detours.column("duration_ns")), [5, 18446744073709551])
        self.assertEqual(detours.column("own"), [False, True])
        self.assertEqual(detours.rows()[0], {"cpu": 0, "start_ns": 10, "duration_ns": 5, "own": False})

    def test_histograms_hold_each_detour_once(self) -> None:
        import quell

        recording = quell.open(A)
        mine = sum(not own for own in recording.detours.column("own"))
        self.assertEqual(sum(recording.histograms.column("count")), mine)
        for row in recording.histograms.rows():
            self.assertLess(row["from_ns"], row["to_ns"])

    def test_tables_of_records_keep_gaps(self) -> None:
        import quell

        table = quell.Table.of_rows([{"a": 1, "b": None, "c": "x"}, {"a": -2, "b": 0.5, "c": None, "d": [1]}])
        self.assertEqual(table.columns, {"a": "Int64", "b": "Float64", "c": "Utf8"})
        self.assertEqual(table.column("b"), [None, 0.5])

    def test_properties_are_what_the_json_says(self) -> None:
        import quell

        prediction = quell.predict(A, ranks=[2, 4], phases=50)
        document = json.loads(prediction.json)
        self.assertEqual(prediction.ranks, [2, 4])
        self.assertEqual(prediction.slowdown_percent, [point["slowdown_percent"] for point in document["points"]])
        self.assertEqual(prediction.supported_ranks, document["supported_ranks"])

    def test_a_summary_has_the_rows_that_were_requested(self) -> None:
        from quell.results import Shown

        held = {"cpus": [{"cpu": 0}], "quanta": [], "histograms": [], "sources": [{"source": "tick"}]}
        self.assertEqual(Shown(json.dumps(held), "source").rows, held["sources"])
        self.assertEqual(Shown(json.dumps(held)).rows, held["cpus"])
        held |= {"cpus": [], "sources": None, "histograms": [{"cpu": 1}]}
        self.assertEqual(Shown(json.dumps(held)).rows, held["histograms"])

    def test_what_if_pairs_both_curves(self) -> None:
        import quell

        both = quell.open(A).what_if(ranks=[16, 64], phases=100, without="tick")
        self.assertEqual(both.changes, ["without tick"])
        self.assertEqual(both.table.column("ranks"), both.before.table.column("ranks"))
        self.assertEqual(both.before.json, quell.predict(A, ranks=[16, 64], phases=100).json)

    def test_notebooks_show_no_foreign_markup(self) -> None:
        import quell

        table = quell.Table.of_rows([{"<b>": "<script>"}])
        self.assertNotIn("<script>", table._repr_html_())
        self.assertIn("&lt;b&gt;", table._repr_html_())

    def test_damage_is_reported(self) -> None:
        import quell

        self.samples.quell("generate-fleet", "-o", "hurt", "--nodes", "1", "--cpus", "1", "--duration", "1s")
        table = Path("hurt/node00000.quell/detours.parquet")
        table.write_bytes(table.read_bytes()[:-100])
        with self.assertRaisesRegex(quell.QuellError, "detours.parquet"):
            quell.open("hurt/node00000.quell")
        Path("odd.bin").write_bytes(bytes(range(256)))
        with self.assertRaisesRegex(quell.QuellError, r"odd\.bin"):
            quell.open("odd.bin")


class Arrow(PackageCase):
    def test_nothing_is_copied(self) -> None:
        import pyarrow as pa
        import quell

        detours = quell.open(A).detours
        one, two = pa.table(detours), pa.table(detours)
        self.assertEqual(one.num_rows, len(detours))
        for column in range(one.num_columns):
            for ours, theirs in zip(one.column(column).chunks, two.column(column).chunks):
                self.assertEqual(ours.buffers()[-1].address, theirs.buffers()[-1].address)

    def test_rows_outlive_their_recording(self) -> None:
        import pyarrow as pa
        import quell
        from pyarrow import parquet

        table = pa.table(quell.open(A).detours)
        again = parquet.read_table(f"{A}/detours.parquet")
        self.assertEqual(table.to_pydict(), again.to_pydict())

    def test_schemas_and_documents_go_too(self) -> None:
        import pyarrow as pa
        import quell

        self.assertEqual(pa.schema(quell.open(A).intervals).names[:3], ["cpu", "start_ns", "duration_ns"])
        points = pa.table(quell.predict(A, ranks=[2, 4], phases=50).table)
        self.assertEqual(points.column("ranks").to_pylist(), [2, 4])


class LongCalls(PackageCase):
    def native(self) -> object:
        from quell._native import native

        return native()

    def left(self) -> None:
        """Waits until no thread of a cancelled call is left."""
        limit = time.monotonic() + 60
        while any(self.name(task) == "quell\n" for task in Path("/proc/self/task").iterdir()):
            self.assertLess(time.monotonic(), limit, "it works on")
            time.sleep(0.01)

    @staticmethod
    def name(task: Path) -> str | None:
        try:
            return task.joinpath("comm").read_text()
        except OSError:  # It ended after it was listed.
            return None

    def test_ctrl_c_ends_them(self) -> None:
        # Background jobs of a shell inherit an ignored SIGINT, for which Python raises no exception.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        reported = []

        def interrupt(done: int, _whole: int) -> None:
            if not reported:
                os.kill(os.getpid(), signal.SIGINT)
            reported.append(done)

        with self.assertRaises(KeyboardInterrupt):
            self.native().predict(LONG, interrupt)
        self.left()

    def test_what_progress_raises_ends_them(self) -> None:
        def enough(_done: int, _whole: int) -> None:
            raise LookupError("enough")

        simulated = ["--pattern=allreduce", "--ranks=64Ki", "--iterations=10000"]
        for verb, typed in [("predict", LONG), ("simulate", simulated)]:
            with self.subTest(verb=verb), self.assertRaisesRegex(LookupError, "enough"):
                getattr(self.native(), verb)(typed, enough)
            self.left()

    def test_other_threads_go_on(self) -> None:
        counted, seen, end = [0], [], threading.Event()

        def count() -> None:
            while not end.is_set():
                counted[0] += 1

        def look(_done: int, _whole: int) -> None:
            seen.append(counted[0])
            if len(seen) > 3:
                raise StopIteration

        # A thread that does not release the interpreter keeps it at most this long.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1e-6)
        other = threading.Thread(target=count)
        other.start()
        try:
            with self.assertRaises(StopIteration):
                self.native().predict(LONG, look)
        finally:
            end.set()
            other.join()
        # Between the two samples only the other thread runs Python.
        self.assertGreater(seen[-1] - seen[0], 20_000)
        self.left()

    def test_nothing_is_drawn_into_a_pipe(self) -> None:
        code = f"import quell; quell.predict({A!r}, ranks=[16, 1024, 65536], phases=500)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_bar_is_drawn_where_it_is_asked_for(self) -> None:
        code = (
            "import sys; sys.modules['tqdm'] = None; import quell; quell._progress._SHOW_AFTER = 0; "
            f"quell.predict({A!r}, ranks='16..1Ki', op='allreduce', phases=200, progress=True)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("predict", done.stderr)
        self.assertTrue(done.stderr.endswith("\x1b[K"), "and taken away")


class WithoutTheNativeModule(unittest.TestCase):
    def test_sources_alone_say_what_is_missing(self) -> None:
        code = "import quell, quell.metrics\ntry: quell.predict('a')\nexcept quell.QuellError as e: print(e)"
        with mock.patch.dict(os.environ, {"PYTHONPATH": str(ROOT / "python")}):
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertIn("native module is missing", done.stdout)


if __name__ == "__main__":
    unittest.main()
