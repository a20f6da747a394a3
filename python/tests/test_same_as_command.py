#!/usr/bin/env python3
"""The package returns what the command prints: the same documents, options of the same names, the same error texts."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from case import PackageCase
from package import QUELL

FEW = ["--ranks", "16,256", "--phases", "100"]
FEW_HERE: dict[str, Any] = {"ranks": [16, 256], "phases": 100}
A, B = "fleet/node00000.quell", "fleet/node00001.quell"

# Options for a terminal, or for files that the command writes in addition to its document.
ONLY_TYPED = {"help", "quiet", "json"}
ONLY_TYPED_OF = {
    "predict": {"sweep", "output", "shard", "dry-run"},
    "simulate": {"sweep", "output", "shard", "dry-run", "timeline"},
    "compare": {"fail-above", "html"},
    "show": {"all"},
    "track": {"html", "timeline", "goal", "extrapolate", "scaling", "dims", "seed"},
}
ONLY_HERE = {"progress"}
# What `progress` is on the command line has another name here, because `progress` is the progress bar.
RENAMED = {"mpi-progress": "progress"}


class Documents(PackageCase):
    def same(self, verb: str, given: tuple[Any, ...], named: dict[str, Any], typed: list[str]) -> None:
        import quell

        with self.subTest(verb=verb, typed=typed):
            self.assertEqual(
                getattr(quell, verb)(*given, **named).json + "\n", self.samples.quell(verb, *typed, "--json")
            )

    def test_predictions(self) -> None:
        for named, typed in [
            ({}, []),
            ({"quantum": 500_000, "seed": 7}, ["--quantum", "500us", "--seed", "7"]),
            ({"quantum": timedelta(milliseconds=2), "threads": 1}, ["--quantum", "2ms", "--threads", "1"]),
            ({"sync": "start", "skew": "1ms", "drift": 20.5}, ["--sync", "start", "--skew", "1ms", "--drift", "20.5"]),
            (
                {"op": "allreduce", "bytes": "4Ki", "net": "atlahs"},
                ["--op", "allreduce", "--bytes", "4Ki", "--net", "atlahs"],
            ),
            (
                {"op": "barrier", "latency": 900, "gap_per_byte": 0.04, "eager_limit": 1024},
                ["--op", "barrier", "--latency", "900", "--gap-per-byte", "0.04", "--eager-limit", "1024"],
            ),
            ({"without": ["tick", "irq:eth"]}, ["--without", "tick", "--without", "irq:eth"]),
            ({"only": "tick", "sync": "phase"}, ["--only", "tick", "--sync", "phase"]),
            ({"scaled": {"tick": 0.5, "task:^kworker": 2}}, ["--scaled", "tick=0.5", "--scaled", "task:^kworker=2"]),
            ({"on_cpu": ["task:^kworker=1"], "leave": 1}, ["--on-cpu", "task:^kworker=1", "--leave", "1"]),
            ({"stagger": "tick", "align": "irq:eth"}, ["--stagger", "tick", "--align", "irq:eth"]),
            ({"coschedule": "tick"}, ["--coschedule", "tick"]),
        ]:
            self.same("predict", (A,), {**FEW_HERE, **named}, [A, *FEW, *typed])
        self.same("predict", ([A, Path(B)],), FEW_HERE, [A, B, *FEW])
        self.same("predict", (), {**FEW_HERE, "noise": "model.toml"}, ["--noise", "model.toml", *FEW])
        self.same(
            "predict",
            ("selfish.txt",),
            {"ranks": "2..8", "phases": 50},
            ["selfish.txt", "--ranks", "2..8", "--phases", "50"],
        )

    def test_recordings_stand_for_their_files(self) -> None:
        import quell

        given = quell.open(A).predict(**FEW_HERE)
        self.assertEqual(given.json + "\n", self.samples.quell("predict", A, *FEW, "--json"))

    def test_simulations(self) -> None:
        noisy = {"noise": A, "baseline": True}
        for given, named, typed in [
            (("allreduce",), {"ranks": 64}, ["--pattern", "allreduce", "--ranks", "64"]),
            (
                ("halo3d",),
                {**noisy, "dims": (2, 2, 4), "bytes": "64Ki", "iterations": 5, "periodic": True, "culprits": True},
                [
                    "--pattern",
                    "halo3d",
                    "--noise",
                    A,
                    "--baseline",
                    "--dims",
                    "2x2x4",
                    "--bytes",
                    "64Ki",
                    "--iterations",
                    "5",
                ]
                + ["--periodic", "--culprits"],
            ),
            (
                (),
                {
                    **noisy,
                    "pattern": "bsp",
                    "ranks": 16,
                    "work": "1ms",
                    "inner": "barrier",
                    "without": "tick",
                    "cosched": True,
                },
                ["--pattern", "bsp", "--noise", A, "--baseline", "--ranks", "16", "--work", "1ms", "--inner", "barrier"]
                + ["--without", "tick", "--cosched"],
            ),
            (("app.goal",), {**noisy, "seed": 3}, ["app.goal", "--noise", A, "--baseline", "--seed", "3"]),
            (
                (),
                {"pattern": "barrier", "ranks": 8, "mpi_progress": "async"},
                ["--pattern", "barrier", "--ranks", "8", "--progress", "async"],
            ),
            (
                (Path("app.goal"),),
                {"compat": True, "noise": "selfish.txt", "net": "L=2500,o=1500"},
                ["app.goal", "--compat", "--noise", "selfish.txt", "--net", "L=2500,o=1500"],
            ),
            (
                ("alltoall",),
                {"ranks": "16", "all_times": True, "skew": 0, "noise": B},
                ["--pattern", "alltoall", "--ranks", "16"] + ["--all-times", "--skew", "0ns", "--noise", B],
            ),
        ]:
            self.same("simulate", given, named, typed)

    def test_comparisons(self) -> None:
        self.same("compare", (A, B), {}, [A, B])
        self.same("compare", (A, "selfish.txt"), {"seed": 9}, [A, "selfish.txt", "--seed", "9"])

    def test_what_is_shown(self) -> None:
        for by in ("cpu", "source", "task", "class"):
            self.same("show", (A,), {"by": by}, [A, "--by", by])
        for by in ("cpu", "source"):
            self.same("show", ("fleet",), {"by": by}, ["fleet", "--by", by])

    def test_what_is_tracked(self) -> None:
        self.same("track", ("run",), {}, ["run"])
        self.same("track", ("run/traces.otf2",), {"net": "L=1000,o=100"}, ["run/traces.otf2", "--net", "L=1000,o=100"])


class Options(PackageCase):
    def test_keywords_are_the_long_options(self) -> None:
        import quell

        for verb, only_typed in ONLY_TYPED_OF.items():
            text = subprocess.run([QUELL, verb, "--help"], capture_output=True, text=True, check=True).stdout
            typed = set(re.findall(r"^ +(?:-\w, +)?--([a-z][a-z-]*)", text, re.MULTILINE))
            unknown = (ONLY_TYPED | only_typed) - typed
            self.assertEqual(unknown, set(), f"`quell {verb}` has no such option any more")
            parameters = inspect.signature(getattr(quell, verb)).parameters.values()
            named = {one.name.replace("_", "-") for one in parameters if one.kind == one.KEYWORD_ONLY}
            named = {RENAMED.get(name, name) for name in named - ONLY_HERE}
            self.assertEqual(named, typed - ONLY_TYPED - only_typed, verb)


class Errors(PackageCase):
    def test_words_are_those_of_the_command(self) -> None:
        import quell

        Path("stuck.goal").write_text("num_ranks 2\nrank 0 {\nl1: recv 8b from 1 tag 0\n}\nrank 1 {\nl1: calc 5\n}\n")
        for verb, given, named, typed in [
            ("predict", (A,), {"ranks": "none"}, [A, "--ranks", "none"]),
            ("predict", (), {}, []),
            ("predict", ("nowhere.quell",), {}, ["nowhere.quell"]),
            ("predict", (A,), {"without": "irq:nowhere"}, [A, "--without", "irq:nowhere"]),
            ("predict", (A,), {"skew": "1ms"}, [A, "--skew", "1ms"]),
            ("predict", (A,), {"quantum": 0}, [A, "--quantum", "0ns"]),
            ("predict", (A,), {"net": "atlahs"}, [A, "--net", "atlahs"]),
            ("predict", (A,), {"scaled": {"tick": -1}}, [A, "--scaled", "tick=-1"]),
            ("simulate", (), {}, []),
            ("simulate", ("nopattern",), {}, ["--pattern", "nopattern"]),
            ("simulate", ("allreduce",), {"baseline": True}, ["--pattern", "allreduce", "--baseline"]),
            ("simulate", ("stuck.goal",), {}, ["stuck.goal"]),
            ("compare", (A, "nowhere.quell"), {}, [A, "nowhere.quell"]),
            ("show", ("nowhere.quell",), {}, ["nowhere.quell"]),
            ("show", ("fleet",), {"by": "task"}, ["fleet", "--by", "task"]),
            ("track", ("fleet",), {}, ["fleet"]),
        ]:
            with self.subTest(verb=verb, typed=typed):
                done = self.samples.run(verb, *typed)
                self.assertIn(done.returncode, {1, 2})
                printed = done.stderr.split("error: ", 1)[1].split("\n\nUsage")[0].split("\n\nFor more")[0].strip()
                kind = quell.UsageError if done.returncode == 2 else quell.QuellError
                with self.assertRaises(kind) as raised:
                    getattr(quell, verb)(*given, **named)
                self.assertEqual(str(raised.exception), printed)

    def test_a_program_that_does_not_end_leaves_its_document(self) -> None:
        import quell

        Path("stuck.goal").write_text("num_ranks 2\nrank 0 {\nl1: recv 8b from 1 tag 0\n}\nrank 1 {\nl1: calc 5\n}\n")
        with self.assertRaises(quell.QuellError) as raised:
            quell.simulate("stuck.goal")
        assert raised.exception.document is not None  # noqa: S101 (for the type)
        self.assertFalse(raised.exception.document["finished"])

    def test_warnings_are_codes_in_documents_and_the_terminals_sentences(self) -> None:
        import quell

        curve = quell.predict(A, ranks=65536, phases=20)
        text = quell.run("predict", A, "--ranks", "65536", "--phases", "20")
        printed = [line[len("warning: ") :] for line in text.splitlines() if line.startswith("warning: ")]
        self.assertEqual(curve.warnings, printed)
        self.assertIn("extrapolated", [one["code"] for one in curve.document["warnings"]])

    def test_the_command_says_why_it_failed(self) -> None:
        import quell

        with self.assertRaisesRegex(quell.UsageError, "--skew and --drift need --sync start"):
            quell.run("predict", A, "--skew", "1ms")
        self.assertIn("quell.show/2", quell.run("show", A, "--json"))


if __name__ == "__main__":
    unittest.main()
