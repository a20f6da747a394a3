#!/usr/bin/env python3
"""Plots: each is drawn, its lines are distinct without colour, and it uses no foreign markup and no network."""

from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

from case import PackageCase

A, B = "fleet/node00000.quell", "fleet/node00001.quell"


class Plots(PackageCase):
    advice: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.advice = json.loads(cls.samples.quell("advise", A, "--ranks", "16,256", "--phases", "50", "--json"))

    def given(self) -> dict[str, tuple[Any, ...]]:
        import quell

        one, two = quell.open(A), quell.open(B)
        curves = [quell.predict(A, ranks="16..1Mi", phases=50, sync=sync) for sync in ("none", "phase")]
        run = quell.simulate("allreduce", ranks=16, noise=A, culprits=True)
        return {
            "density": (one, two),
            "timeline": (one,),
            "sources": (one,),
            "curve": tuple(curves),
            "advice": (self.advice,),
            "culprits": (run,),
            "tracked": (quell.track("run"),),
        }

    def test_each_is_drawn(self) -> None:
        from quell import interactive, plot

        for name, given in self.given().items():
            with self.subTest(plot=name):
                figure = getattr(plot, name)(*given)
                figure.savefig(f"{name}.pdf")
                self.assertGreater(Path(f"{name}.pdf").stat().st_size, 2000)
                self.assertTrue(figure._repr_png_().startswith(b"\x89PNG"))
                self.assertTrue(figure.axes[0].get_xlabel() or figure.axes[-1].get_xlabel())
                page = getattr(interactive, name)(*given)
                page.save(f"{name}.html")
                self.assertIn("<iframe", page._repr_html_())

    def test_of_many_detours_the_longest_are_drawn(self) -> None:
        import quell
        from quell import plot

        recording = quell.open(A)
        with mock.patch.object(plot, "_MOST_POINTS", 8):
            axes = plot.timeline(recording, cpus=recording.cpus[:1]).axes[0]
        self.assertLessEqual(len(axes.lines[0].get_xdata()), 8)
        self.assertRegex(axes.get_title(loc="left"), r"detours \(\d drawn\)")

    @staticmethod
    def data(page: Any) -> dict[str, Any]:  # noqa: ANN401 (an interactive page)
        text = page.html.split('<script type="application/json" id="data">')[1].split("</script>")[0]
        return json.loads(text)  # type: ignore[no-any-return]

    def test_pages_draw_what_they_were_given(self) -> None:
        import quell
        from quell import interactive

        one, two = quell.open(A), quell.open(B)
        drawn = self.data(interactive.timeline(one))
        durations = [duration for line in drawn["timeline"] for duration in line["duration_ns"]]
        self.assertIn(max(one.detours.column("duration_ns")), durations)
        self.assertEqual(sum(line["total"] for line in drawn["timeline"]), len(one.detours))
        self.assertEqual(drawn["only"], ["detours"])
        self.assertIn("tick", drawn["timeline_sources"])
        curves = self.data(interactive.density(one, two))["density"]
        self.assertEqual([curve["name"] for curve in curves], [one.name, two.name])
        prediction = quell.predict(A, ranks="16,256", phases=50)
        shown = self.data(interactive.curve(prediction))["predict"]
        self.assertEqual(shown[0]["points"], prediction.points)
        self.assertEqual(shown[0]["sentences"], prediction.warnings)

    def test_a_page_refuses_what_is_no_document(self) -> None:
        from quell import interactive

        with self.assertRaisesRegex(ValueError, "cannot be drawn"):
            interactive.Page("x", [], [("predict", "[")])
        with self.assertRaisesRegex(ValueError, "no part `nothing`"):
            interactive.Page("x", [], [("nothing", "{}")])

    def test_lines_differ_without_colour(self) -> None:
        from quell import plot

        curve = plot.curve(*self.given()["curve"])
        legend = {text.get_text(): line for text, line in zip(*self.legend(curve))}
        self.assertLessEqual({"sync none", "sync phase", "beyond the trace"}, set(legend))
        first, second = legend["sync none"], legend["sync phase"]
        self.assertNotEqual(first.get_linestyle(), second.get_linestyle())
        self.assertNotEqual(first.get_marker(), second.get_marker())

    @staticmethod
    def legend(figure: Any) -> tuple[Any, Any]:  # noqa: ANN401 (matplotlib's)
        legend = figure.axes[0].get_legend()
        return legend.get_texts(), legend.legend_handles

    def test_pages_need_no_network_and_trust_no_name(self) -> None:
        from quell import interactive

        hostile = json.loads(json.dumps(self.advice))
        hostile["sources"][0]["source"] = "</script><script>alert(1)</script>"
        for page in (interactive.advice(hostile), interactive.what_if(self.advice)):
            self.assertNotIn("alert(1)</script>", page.html)
            self.assertEqual(page.html.count("</script>"), 3)
            self.assertIn("default-src 'none'", page.html)
            for address in ('src="', 'href="http', "@import", "url(h"):
                self.assertNotIn(address, page.html)

    def test_culprits_are_asked_for(self) -> None:
        import quell

        with self.assertRaisesRegex(ValueError, "culprits=True"):
            quell.plot.culprits(quell.simulate("allreduce", ranks=16, noise=A))

    def test_durations_fall_into_their_bins(self) -> None:
        from quell.recording import bin_of, edge

        for duration in (1, 9, 10, 99, 100, 101, 150, 999, 1000, 123_456_789, 2**63):
            number = bin_of(duration)
            self.assertLessEqual(edge(number), duration)
            self.assertGreater(edge(number + 1), duration)


if __name__ == "__main__":
    unittest.main()
