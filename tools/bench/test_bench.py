#!/usr/bin/env python3
"""The benchmarks' parsing and judging, checked against known figures."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import sys
import tempfile
import unittest
from array import array
from pathlib import Path

import advise_removed
import child
import kept
import metric_container
import page
import probe_loop
import record_million
import replay_calls
import replay_phases
import replay_strikes
import simulate
import sources_cost


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


class KeptResults(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "kept.jsonl"

    def kept(self, about: str = "ten pairs", trials: tuple[str, ...] = ("a", "b", "c")) -> kept.Kept:
        return kept.Kept(self.file, about, list(trials), ["helps", "hurts"])

    def test_a_run_goes_on_where_it_was_stopped(self) -> None:
        first = self.kept()
        self.assertEqual(first.results, [])
        first.add("a", "helps")
        first.add("b", "hurts")
        again = self.kept()
        self.assertEqual(again.results, ["helps", "hurts"])
        again.add("c", "helps")
        self.assertEqual(self.kept().results, ["helps", "hurts", "helps"])

    def test_other_settings_are_refused_and_lose_nothing(self) -> None:
        self.kept().add("a", "helps")
        before = self.file.read_text()
        for changes in ({"about": "nine pairs"}, {"trials": ("b", "a", "c")}):
            with self.assertRaisesRegex(child.BenchError, "other settings", msg=str(changes)):
                self.kept(**changes)
        self.assertEqual(self.file.read_text(), before)

    def test_a_damaged_file_is_refused(self) -> None:
        self.kept().add("a", "helps")
        whole = self.file.read_text()
        for text in ("", whole[:-4], whole.replace("helps", "works"), "7\n", whole + "[]\n"):
            self.file.write_text(text)
            with self.assertRaisesRegex(child.BenchError, "remove it", msg=text):
                self.kept()


class Removals(unittest.TestCase):
    def test_agreement_is_in_units_of_both_intervals(self) -> None:
        left = advise_removed.Left(10, 7, 13)
        self.assertEqual(left.apart(advise_removed.Left(15, 11, 19)), 1)
        self.assertEqual(advise_removed.Left(15, 11, 19).apart(left), 1)
        # Only the sides that face each other count.
        self.assertEqual(left.apart(advise_removed.Left(15, 11, 99)), 1)
        unknown = advise_removed.Left.read(10, None)
        self.assertFalse(unknown.has_interval())
        self.assertEqual(unknown.apart(left), 0)
        self.assertEqual(left.apart(advise_removed.Left.read(99, None)), 0)
        exact = advise_removed.Left(10, 10, 10)
        self.assertEqual(exact.apart(exact), 0)
        self.assertEqual(exact.apart(advise_removed.Left(11, 11, 11)), math.inf)

    def test_an_order_counts_where_it_is_measured(self) -> None:
        def both(expected: float, real: float) -> dict:
            return {16: tuple(advise_removed.Left(value, value - 1, value + 1) for value in (expected, real))}

        one = {"a": both(1, 2), "b": both(9, 10), "c": both(8, 10.5)}
        self.assertEqual(advise_removed.orders(one, 16), (2, 2))
        self.assertEqual(advise_removed.orders({**one, "c": both(0, 20)}, 16), (1, 3))

    def test_another_document_is_refused(self) -> None:
        for text in ("", "{}", '{"sources": []}', '{"sources": [{"source": "task:sampler", "costs": [{}]}]}'):
            with self.assertRaises(child.BenchError, msg=text):
                advise_removed.predicted_left(text, "sampler")


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
        # 1,000 turns of 20 ns, one of 5 us, and one of 75 us beyond the last bucket.
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


class Sources(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_the_load_makes_what_it_says(self) -> None:
        program = sources_cost.build(self.folder)
        cpu = str(max(os.sched_getaffinity(0)))
        for mode, most in ((["switch", "2000"], 8000), (["timer", "500"], 2000), (["storm"], 10**9)):
            ended = child.run([str(program), cpu, "1", *mode], 60).checked()
            load = sources_cost.read_load(ended.stdout)
            self.assertGreaterEqual(load.took_s, 1)
            # On a busy machine a thread also yields the CPU to other processes, and several timers expire as one.
            self.assertTrue(20 < load.switches < most * load.took_s, ended.stdout)
        for wrong in ([], ["99999", "1", "storm"], [cpu, "0", "storm"], [cpu, "1", "switch"], [cpu, "1", "storm", "5"]):
            self.assertEqual(child.run([str(program), *wrong], 60).code, 2, wrong)

    def test_any_other_load_is_refused(self) -> None:
        right = {"schema": sources_cost.SCHEMA, "took_ns": 2_000_000_000, "threads": [{"switches": 3}, {"switches": 4}]}
        self.assertEqual(sources_cost.read_load(json.dumps(right)), (2.0, 7))
        for changes in ({"schema": "x"}, {"took_ns": 0}, {"threads": []}, {"threads": [{}]}, {"took_ns": None}):
            with self.assertRaises(child.BenchError, msg=str(changes)):
                sources_cost.read_load(json.dumps({**right, **changes}))

    def test_intervals_are_summed(self) -> None:
        rows = [{"source": sources_cost.LOAD, "count": 5}, {"source": "tick", "count": 2}]
        self.assertEqual(sources_cost.read_show(json.dumps({"sources": rows}))[1:], (7, 5))
        self.assertEqual(sources_cost.read_show('{"sources": []}')[1:], (0, 0))
        for text in ("", "[]", '{"sources": null}', '{"sources": [{"source": "tick"}]}'):
            with self.assertRaises(child.BenchError, msg=text):
                sources_cost.read_show(text)

    def test_costs_are_read(self) -> None:
        cost = {"program": "tick_in", "runs": 2, "ns": 300}
        self.assertEqual(sources_cost.read_costs({"recorder_cost": [cost]}), [("tick_in", 2, 300)])
        for document in ({}, {"recorder_cost": []}, {"recorder_cost": [{**cost, "runs": 0}]}):
            with self.assertRaises(child.BenchError, msg=str(document)):
                sources_cost.read_costs(document)

    def test_lost_intervals_are_read(self) -> None:
        manifest = self.folder / "manifest.json"
        manifest.write_text('{"sources": {"lost": 3}}')
        self.assertEqual(sources_cost.read_lost(self.folder), 3)
        for text in ("", "{}", '{"sources": null}'):
            manifest.write_text(text)
            with self.assertRaises(child.BenchError, msg=text):
                sources_cost.read_lost(self.folder)

    def test_the_effect_is_the_recordings_own_account(self) -> None:
        manifest = self.folder / "manifest.json"
        right = {"pairs": 7, "block_ns": 1, "below_ns": 1e5, "without_ns_per_s": 2e6}
        right |= {"percent": 1.5, "low_percent": -1.0, "high_percent": 4.0}
        manifest.write_text(json.dumps({"sources": {"effect": right}}))
        self.assertEqual(sources_cost.read_effect(self.folder), (7, 1e5, 2e6, 1.5, -1.0, 4.0))
        for text in ("", "{}", '{"sources": {}}', '{"sources": {"effect": {"pairs": 7}}}'):
            manifest.write_text(text)
            with self.assertRaises(child.BenchError, msg=text):
                sources_cost.read_effect(self.folder)

    def test_nothing_may_be_unaccounted(self) -> None:
        for recorded, lost, share in ((100, 0, 0), (90, 10, 0), (95, 50, 0), (80, 10, 10), (101, 0, 1)):
            self.assertEqual(sources_cost.unaccounted(recorded, lost, 100), share)


class Simulations(unittest.TestCase):
    def test_quells_result_is_read(self) -> None:
        document = {"finished": True, "events": 7, "max_ns": 23776}
        self.assertEqual(simulate.read_quell(json.dumps(document)), (7, 23776))
        for changes in ({"finished": False, "max_ns": None}, {"max_ns": None}, {"events": "x"}):
            with self.assertRaises(child.BenchError, msg=str(changes)):
                simulate.read_quell(json.dumps({**document, **changes}))
        for text in ("", "[]", "{}"):
            with self.assertRaises(child.BenchError, msg=text):
                simulate.read_quell(text)

    def test_loggopsims_result_is_read(self) -> None:
        head = "LogGP network backend; size: 2 (1 CPUs, 1 NICs)\nPERFORMANCE: Processes: 2 \t Events: 7 \t Time: 0 s\n"
        self.assertEqual(simulate.read_peer(head + "Maximum finishing time at host 0: 23776 (0.00002 s)\n"), (7, 23776))
        self.assertEqual(simulate.read_peer(head + "Times: \nHost 0: 23776\nHost 1: 13138\n"), (7, 23776))
        for text in ("", head, head + "receive queue on host 0 contains 1 elements!\n src: 3, tag: -1\n"):
            with self.assertRaises(child.BenchError, msg=text):
                simulate.read_peer(text)

    def test_results_must_agree(self) -> None:
        silent, noisy = simulate.SCHEDULES[:2]
        right = {name: simulate.Found(7, 5) for name in ("memory", "file", "memory, --compat", "LogGOPSim")}
        simulate.agree(silent, right)
        later = {**right, "LogGOPSim": simulate.Found(7, 6)}
        simulate.agree(noisy, later)
        for schedule, wrong in (
            (silent, later),
            (silent, {**right, "file": simulate.Found(7, 6)}),
            (noisy, {**right, "LogGOPSim": simulate.Found(8, 5)}),
        ):
            with self.assertRaises(child.BenchError, msg=str(wrong)):
                simulate.agree(schedule, wrong)

    def test_the_noise_is_in_order(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)

        class Setting:
            seed = 1
            scratch = Path(folder.name)

        lines = simulate.write_noise(Setting).read_text().splitlines()
        detours = [tuple(map(float, line.split("\t"))) for line in lines if not line.startswith("#")]
        self.assertEqual((len(detours), detours[0][0]), (simulate.DETOURS, 0))
        self.assertTrue(all(a[0] + a[1] < b[0] for a, b in zip(detours, detours[1:])))


class Replays(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_calls_are_read_from_their_log(self) -> None:
        log = self.folder / "log"
        log.write_bytes(array("Q", [0, 100, 150, 150, 260, 300]).tobytes())
        self.assertEqual(replay_calls.read_log(log), [50, 40])
        self.assertFalse(log.exists(), "the next run writes its own")
        for wrong in (b"", bytes(16), bytes(7)):
            log.write_bytes(wrong)
            with self.assertRaises(child.BenchError, msg=wrong):
                replay_calls.read_log(log)
        with self.assertRaises(child.BenchError):
            replay_calls.read_log(self.folder / "none")

    def test_late_calls_are_distinguished_from_the_others(self) -> None:
        self.assertEqual(replay_calls.late([100] * 90 + [590, 600, 610] + [100_000, 120], 500), 500)
        with self.assertRaises(child.BenchError):
            replay_calls.late([100] * 5, 500)

    def test_what_came_in_is_held_against_the_trace(self) -> None:
        ranks = [
            {"asked_ns": 900, "absorbed_ns": 98, "trace_ns": 1000},
            {"asked_ns": 5, "absorbed_ns": 5, "trace_ns": 8},
        ]
        found = replay_calls.off_percent(json.dumps({"processes": ranks}), 2)
        self.assertEqual([round(value, 9) for value in found], [0.2, 25])
        self.assertEqual(replay_calls.burned('{"processes": [{"asked_ns": 5000, "took_ns": 5100}]}'), 510)
        for text in ("{}", '{"processes": []}', '{"processes": [{"asked_ns": 0, "took_ns": 0}]}'):
            with self.assertRaises(child.BenchError, msg=text):
                replay_calls.burned(text)
        for changes in ([], ranks[:1], [{}, {}], [{**ranks[0], "trace_ns": 0}] * 2):
            with self.assertRaises(child.BenchError, msg=str(changes)):
                replay_calls.off_percent(json.dumps({"processes": changes}), 2)

    def test_a_beat_is_a_model(self) -> None:
        path = replay_calls.Beat("1ms", "50us").write(self.folder)
        self.assertIn('periodic = { period = "1ms" }\nduration = { constant = "50us" }\n', path.read_text())

    def test_what_the_probe_saw_is_read(self) -> None:
        side = {"detours": {"p50_ns": 25_100, "count": 3000}}
        document = {"overhead_ns": 20_000, "comparison": {"b": side}}
        self.assertEqual(replay_strikes.read_seen(json.dumps(document)), (20_000, 25_100, 3000))
        for changes in ({"detours": {"p50_ns": 0, "count": 0}}, {}, {"detours": None}):
            with self.assertRaises(child.BenchError, msg=str(changes)):
                replay_strikes.read_seen(json.dumps({**document, "comparison": {"b": changes}}))

    def test_the_interval_timer_burns_at_least_the_requested_time(self) -> None:
        program = replay_strikes.build(self.folder)
        cpu = str(max(os.sched_getaffinity(0)))
        ended = child.run([str(program), cpu, "1", "1000000", "30000"], 60).checked()
        seen = replay_strikes.read_peer(ended.stdout)
        self.assertTrue(20 < len(seen) < 1000, len(seen))
        self.assertGreaterEqual(sorted(seen)[len(seen) // 20], 30_000)
        for wrong in ([], ["99999", "1", "1000000", "1"], [cpu, "0", "1000000", "1"], [cpu, "1", "5", "1"]):
            self.assertEqual(child.run([str(program), *wrong], 60).code, 2, wrong)
        for text in (
            "",
            "{}",
            '{"schema": "x", "gaps_ns": [5]}',
            f'{{"schema": "{replay_strikes.SCHEMA}", "gaps_ns": []}}',
        ):
            with self.assertRaises(child.BenchError, msg=text):
                replay_strikes.read_peer(text)

    def test_strikes_are_judged(self) -> None:
        ways = [*replay_strikes.TIMER, *replay_strikes.SCALED, *replay_strikes.PEER]
        series = {way.key: [way.asked_ns + 150.0] * 3 for way in ways}
        series[replay_strikes.SHORTEST.key] = [23_000.0]
        series[replay_strikes.CALIBRATED] = [20_000.0]
        rows, limits = replay_strikes.judged(series)
        self.assertEqual(len(rows), len(ways) + 2)
        self.assertEqual([limit.holds for limit in limits], [True] * 6 + [False], "quell's own, and the calibration")
        series[replay_strikes.SCALED[0].key] = [2_800.0]
        self.assertFalse(replay_strikes.judged(series)[1][3].holds)

    def test_calls_are_judged_by_pairs(self) -> None:
        series = {("x", "alone"): [100, 200, 300], ("x", "loaded"): [180, 290, 400], ("x", "outside"): [520]}
        series["x", "by itself"] = [510]
        rows, limits = replay_calls.judged("x", {**series, ("x", "total"): [0.1, 0.6, 0.7]})
        self.assertEqual([limit.measured for limit in limits], [90, 20, 0.6])
        self.assertEqual([limit.holds for limit in limits], [True, True, False])
        self.assertEqual(rows[2][1:], ["90", "80", "100", "3"])

    def test_phases_are_read(self) -> None:
        document = {"compute_slowdown": {"mean_max_ns": 1.1e6}, "compute": {"p50_ns": 1_050_000}}
        self.assertEqual(replay_phases.read_phases(json.dumps(document)), (1.1e6, 1.05e6))
        for wrong in ({}, {**document, "compute_slowdown": None}, {**document, "compute": {"p50_ns": 0}}):
            with self.assertRaises(child.BenchError, msg=str(wrong)):
                replay_phases.read_phases(json.dumps(wrong))
        point = {"slowdown_percent": 5, "ci95_percent": [4, 6]}
        self.assertEqual(replay_phases.read_prediction(json.dumps({"points": [point]})), (5, 4, 6))
        for wrong in ([], [{**point, "ci95_percent": None}]):
            with self.assertRaises(child.BenchError, msg=str(wrong)):
                replay_phases.read_prediction(json.dumps({"points": wrong}))

    def test_phases_are_judged_within_the_interval_or_a_tenth(self) -> None:
        expected = replay_phases.Predicted(5, 4.9, 5.1)
        self.assertEqual(replay_phases.off_percent(5.05, expected), 0)
        self.assertAlmostEqual(replay_phases.off_percent(5.4, expected), 8)
        self.assertEqual(replay_phases.off_percent(1, replay_phases.Predicted(0, 0, 0)), float("inf"))
        runs = {us: [replay_phases.Phases(1e6 * (1 + us / 1000), 1e6)] * 2 for us in (0, 10, 50, 100)}
        at = {us: replay_phases.Predicted(us / 10, us / 10, us / 10) for us in (10, 50)}
        rows, limits = replay_phases.judged(runs, {**at, 100: replay_phases.Predicted(12, 11, 13)})
        self.assertEqual([limit.holds for limit in limits], [True, True, False])
        self.assertEqual(rows[1][:2], ["5 % (50 us at 1 kHz)", "5.000"])


class Children(unittest.TestCase):
    def test_cost_is_that_of_the_child(self) -> None:
        code = "bytearray(b'1') * 200_000_000; print('done')"
        ended = child.run([sys.executable, "-c", code], 60).checked()
        self.assertEqual(ended.stdout, "done\n")
        self.assertGreater(ended.peak_bytes, 200_000_000)
        self.assertGreater(ended.cpu_s, 0)

    def test_failure_reports_the_last_output(self) -> None:
        ended = child.run([sys.executable, "-c", "import sys; sys.exit('no such thing')"], 60)
        with self.assertRaisesRegex(child.BenchError, "code 1:\n  no such thing"):
            ended.checked()

    def test_a_timeout_interrupts(self) -> None:
        ended = child.run([sys.executable, "-c", "import time; time.sleep(60)"], 0.5)
        self.assertLess(ended.wall_s, 30)
        self.assertNotEqual(ended.code, 0)

    def test_something_may_run_at_the_same_time(self) -> None:
        seen: list[int] = []
        child.run([sys.executable, "-c", "pass"], 60, seen.append).checked()
        self.assertEqual(len(seen), 1)
        with self.assertRaises(ZeroDivisionError):
            child.run([sys.executable, "-c", "import time; time.sleep(60)"], 60, lambda pid: 1 // (pid - pid))

    def test_a_missing_program_is_named(self) -> None:
        with self.assertRaisesRegex(child.BenchError, "no-such-program"):
            child.run(["./no-such-program"], 1)


class Pages(unittest.TestCase):
    def test_a_broken_limit_shows(self) -> None:
        self.assertFalse(page.Limit("ratio", 1.2, 1.15).holds)
        self.assertFalse(page.Limit("ratio", float("nan"), 1.15).holds)
        limits = [page.Limit("ratio", 1.2, 1.15), page.Limit("memory", 1, 2, " MiB")]
        tables = [("More", ["x"], [["y"]])]
        result = page.Result("Why?", ["", "ns"], [["a|b", "1"]], limits, ["quell x"], ["A note."], tables)
        text = page.page("probe-loop", dt.date(2026, 1, 2), result, [["kernel", "Linux"]])
        for line in (
            "# probe-loop, 2026-01-02",
            "| a\\|b | 1 |",
            "| ratio | 1.2 | 1.15 | **no** |",
            "| memory | 1 MiB | 2 MiB | yes |",
            "- A note.",
            "## More\n\n| x |\n| --- |\n| y |",
            "| kernel | Linux |",
        ):
            self.assertIn(line + "\n", text)


if __name__ == "__main__":
    unittest.main()
