#!/usr/bin/env python3
"""Draws docs/pictures: the main noise signatures. `pictures.py QUELL [NAME...]`.

Each is a recording of a program on this machine while something disturbs it (as root, with eBPF), or a computed one
if the machine cannot show it in isolation; the caption says which. Needs the packages pinned in
tools/requirements-pictures.txt, and for `page` Chromium.
"""

from __future__ import annotations

import bisect
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Callable, NamedTuple

import matplotlib as mpl

mpl.use("svg")
import pyarrow.parquet as pq
from documented import MAKERS
from matplotlib import pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
TO = HERE.parent / "docs/pictures"
DISTURBERS = HERE / "disturb.py"
# Okabe and Ito's palette by kind of source; the strokes also differ in length, so grey print shows the difference too.
COLOURS = {
    "tick": "#0072B2", "task": "#D55E00", "irq": "#009E73", "softirq": "#E69F00", "ipi": "#CC79A7", "steal": "#56B4E9",
    "unattributed": "#777777", "fault": "#F0E442", "nmi": "#000000",
}  # fmt: skip
MS = 1e6
# Other processes run on busy machines too: this many of the longest strokes are labelled.
NAMED = 4


class Stroke(NamedTuple):
    """A detour, or an interval, with its source."""

    start: int
    duration: int
    source: str


def rows(recording: Path, table: str, columns: list[str]) -> list[tuple]:
    """A table's rows, ordered by start."""
    path = recording / f"{table}.parquet"
    if not path.exists():
        return []
    read = pq.read_table(path, columns=columns).to_pydict()
    return sorted(zip(*(read[name] for name in columns)), key=lambda row: row[1])


def strokes(recording: Path, cpu: int) -> list[Stroke]:
    """The detours of a CPU, each with the source that takes most of it; without detours, the kernel's intervals."""
    columns = ["cpu", "start_ns", "duration_ns"]
    detours = [row[1:] for row in rows(recording, "detours", columns) if row[0] == cpu]
    intervals = [row[1:] for row in rows(recording, "intervals", [*columns, "net_ns", "source"]) if row[0] == cpu]
    if not detours:
        return [Stroke(start, net, source) for start, _, net, source in intervals]
    kernel = [one for one in intervals if one[3] != "steal"]
    starts = [one[0] for one in kernel]
    found = []
    for start, duration in detours:
        within = kernel[bisect.bisect_left(starts, start - 2_000) : bisect.bisect_right(starts, start + duration)]
        blamed = max(within, key=lambda one: one[2], default=None)
        found.append(Stroke(start, duration, blamed[3] if blamed else "unattributed"))
    return with_steal(found, [one for one in intervals if one[3] == "steal"])


def with_steal(found: list[Stroke], windows: list[tuple]) -> list[Stroke]:
    """Assigns stolen time to the longest unexplained strokes in its window (docs/concepts/attribution.md)."""
    starts = [one.start for one in found]
    for start, length, net, _ in windows:
        within = range(bisect.bisect_left(starts, start), bisect.bisect_right(starts, start + length))
        left = [at for at in within if found[at].source == "unattributed"]
        longest = max(left, key=lambda at: found[at].duration, default=None)
        if longest is not None and 2 * net >= found[longest].duration:
            found[longest] = found[longest]._replace(source="steal")
    return found


def quietest(all_strokes: list[Stroke], length: float, wanted: Callable[[str], bool]) -> tuple[float, float]:
    """The window of this length that shows most of the wanted strokes, and little else."""
    end = max(stroke.start + stroke.duration for stroke in all_strokes)
    begins = [length * step / 4 for step in range(1, max(2, int(4 * (end - length) / length)))]

    def worth(begin: float) -> int:
        within = [one for one in all_strokes if begin <= one.start < begin + length]
        return sum(10 if wanted(one.source) else -1 for one in within)

    begin = max(begins, key=worth)
    return begin, begin + length


def timeline(all_strokes: list[Stroke], window: tuple[float, float], least: float = 1_000) -> Figure:
    """Detours over time as strokes as high as they are long, in the colours of their sources."""
    figure, axes = blank(2.1)
    begin, end = window
    shown = [one for one in all_strokes if begin <= one.start < end and one.duration >= least]
    sources: dict[str, float] = {}
    for one in shown:
        sources[one.source] = sources.get(one.source, 0) + one.duration
    colours = colours_of(sorted(sources, key=sources.__getitem__, reverse=True)[:NAMED])
    top = max((one.duration for one in shown), default=least)
    for source in sorted(sources, key=lambda name: name in colours):
        xs, ys = [], []
        for one in (one for one in shown if one.source == source):
            at = (one.start - begin) / MS
            xs += [at, at, None]
            ys += [least, one.duration, None]
        label = source if source in colours else None
        colour = colours.get(source, "#bbbbbb")
        axes.plot(xs, ys, color=colour, linewidth=1.5, label=label, solid_capstyle="butt")
    axes.set(yscale="log", ylim=(least, top * 1.8), xlim=(0, (end - begin) / MS), xlabel="time, ms", ylabel="length")
    axes.yaxis.set_major_formatter(FuncFormatter(duration))
    axes.yaxis.set_minor_formatter(NullFormatter())
    figure.legend(loc="outside upper left", ncols=NAMED, frameon=False, handlelength=0.8, fontsize=9)
    return figure


def colours_of(sources: list[str]) -> dict[str, str]:
    """Each source in its kind's colour; a second source of a kind gets a colour that no kind here has."""
    found: dict[str, str] = {}
    kinds = [source.partition(":")[0] for source in sources]
    spare = [colour for kind, colour in COLOURS.items() if kind not in kinds]
    for source, kind in zip(sources, kinds):
        found[source] = spare.pop() if COLOURS[kind] in found.values() else COLOURS[kind]
    return found


def duration(ns: float, _: object = None) -> str:
    """A time in quell's format."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:g} {unit}"
    return f"{ns:g} ns"


def blank(height: float) -> tuple[Figure, Axes]:
    """An empty plot in the style of the pictures."""
    mpl.rcParams.update({"svg.hashsalt": "quell", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10})
    figure, axes = plt.subplots(figsize=(7.2, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12)
    axes.grid(color="#e3e6ea", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


class Studio:
    """Makes the recordings, and draws them."""

    def __init__(self, quell: Path, folder: Path) -> None:
        """Uses this program and this folder."""
        self.quell, self.folder = quell, folder

    def run(self, *words: object) -> str:
        """Runs quell and returns its results."""
        command = [str(self.quell), *map(str, words)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout

    def recorded(self, length_ms: float, wanted: Callable[[str], bool], way: str) -> Figure:
        """The noise of a program on CPU 1 here, without other tasks that happen to run."""
        to = self.folder / "real.quell"
        shutil.rmtree(to, ignore_errors=True)
        self.run("record", "-o", to, "--", sys.executable, DISTURBERS, way, "4")
        found = [one for one in strokes(to, 1) if not one.source.startswith(("task", "fault", "steal"))]
        return timeline(found, quietest(found, length_ms * MS, wanted), least=300)

    def computed(self, length_ms: float, way: str, wanted: Callable[[str], bool], least: float = 1_000) -> Figure:
        """A computed node with an illness."""
        to = self.folder / "fleet"
        shutil.rmtree(to, ignore_errors=True)
        self.run(
            "generate-fleet", "-o", to, "--nodes", "1", "--ill", "1", "--ways", way, "--cpus", "1", "--duration", "10s"
        )
        found = [one for one in strokes(to / "node00000.quell", 0) if one.duration >= least]
        return timeline(found, quietest(found, length_ms * MS, wanted), least)

    def tick(self) -> Figure:
        """The scheduler's tick, and the softirqs that it raises."""
        return self.recorded(60, lambda source: source == "tick", "compute")

    def daemon(self) -> Figure:
        """Type 2: rare and long, in addition to ticks."""
        return self.computed(5_000, "daemon", lambda source: source == "task:crawld", least=20_000)

    def timer_storm(self) -> Figure:
        """An unneeded timer every 200 us."""
        return self.recorded(20, lambda source: source == "tick", "timer-storm")

    def tlb_shootdown(self) -> Figure:
        """One thread maps and unmaps, the other computes and is interrupted by it."""
        return self.recorded(20, lambda source: source.startswith("ipi:call"), "tlb")

    def interrupt_storm(self) -> Figure:
        """A device whose interrupt is bound to this CPU."""
        return self.computed(40, "storm", lambda source: source.startswith("irq"))

    def steal(self) -> Figure:
        """A hypervisor that runs another guest."""
        return self.computed(1_000, "steal", lambda source: source == "steal", least=4_000)

    def throttling(self) -> Figure:
        """The kernel takes 5 % of each second from real-time threads: computed, and read by quell as CSV."""
        table = self.folder / "throttled.csv"
        runs = 950_000_000  # of each second
        ticks = [(at, 2_600) for at in range(0, 3_000_000_000, 20_000_000) if at % 1_000_000_000 < runs]
        gaps = [(second * 1_000_000_000 + runs, 50_000_000) for second in range(3)]
        lines = [f"0,{start},{length}" for start, length in sorted(ticks + gaps)]
        table.write_text("\n".join(["cpu,start_ns,duration_ns", *lines, ""]), "utf-8")
        to = self.folder / "throttled.quell"
        shutil.rmtree(to, ignore_errors=True)
        self.run("convert", table, to)
        return timeline(strokes(to, 0), (0, 3e9))

    def curve(self) -> Figure:
        """The cost of a 0.1 % daemon at scale, and the cost without it."""
        to = self.folder / "fleet"
        shutil.rmtree(to, ignore_errors=True)
        words = ["--nodes", "1", "--ill", "1", "--ways", "daemon", "--duration", "10s"]
        self.run("generate-fleet", "-o", to, *words)
        figure, axes = blank(2.6)
        for changes, label, colour in (
            ([], "as recorded", COLOURS["task"]),
            (["--without", "task:crawld"], "without the daemon", COLOURS["tick"]),
        ):
            document = json.loads(
                self.run("predict", to / "node00000.quell", "--ranks", "16..64Ki", "--json", *changes)
            )
            points = document["points"]
            ranks = [point["ranks"] for point in points]
            # The band has a gap where the interval is not resolved.
            low, high = zip(*(point["ci95_percent"] or (math.nan, math.nan) for point in points))
            axes.fill_between(ranks, [max(value, 0.05) for value in low], high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(ranks, [point["slowdown_percent"] for point in points], color=colour, label=label, linewidth=1.8)
        limit = document["supported_ranks"]
        axes.axvspan(limit, 65_536, color="#777777", alpha=0.12, linewidth=0)
        axes.text(limit * 1.1, 0.16, "extrapolated", color="#444444")
        axes.set(xscale="log", yscale="log", xlim=(16, 65_536), ylim=(0.1, 4_000), xlabel="ranks", ylabel="slowdown, %")
        axes.set_xticks([16, 256, 4_096, 65_536], ["16", "256", "4Ki", "64Ki"])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_yticks([0.1, 1, 10, 100, 1_000], ["0.1", "1", "10", "100", "1000"])
        axes.legend(frameon=False, loc="upper left")
        return figure

    def progress_clock(self) -> Figure:
        """W(t) of the example on its page: detours at 50 for 30 and at 110 for 20, work of 100."""
        figure, axes = blank(2.6)
        axes.plot([0, 180], [0, 180], color="#bbbbbb", linewidth=1, linestyle=(0, (4, 3)))
        axes.plot([0, 50, 80, 110, 130, 180], [0, 50, 50, 80, 80, 130], color=COLOURS["tick"], linewidth=2)
        for begin, end in ((50, 80), (110, 130)):
            axes.axvspan(begin, end, color=COLOURS["task"], alpha=0.2, linewidth=0)
        axes.plot([0, 150, 150], [100, 100, 0], color="#222222", linewidth=1, linestyle=(0, (1, 2)))
        axes.text(3, 104, "work of 100 is done", color="#222222")
        axes.text(151.5, 6, "at 150", color="#222222")
        axes.text(62, 128, "no noise", color="#666666")
        axes.set(xlim=(0, 180), ylim=(0, 140), xlabel="time t, ns", ylabel="useful time W(t), ns")
        return figure

    PICTURES = (tick, daemon, timer_storm, tlb_shootdown, interrupt_storm, steal, throttling, curve, progress_clock)


def page(quell: Path, folder: Path) -> None:
    """The picture of a page: for a computed node with a daemon, by Debian's Chromium."""
    MAKERS["node.quell"](quell, folder / "node.quell")
    html = folder / "page.html"
    options = ("--ranks", "16..64Ki", "--html", str(html), "-q")
    subprocess.run([quell, "advise", str(folder / "node.quell"), *options], check=True, capture_output=True)
    shot = (f"--screenshot={TO / 'page.png'}", "--window-size=1100,1330", "--virtual-time-budget=4000")
    browser = ("chromium", "--headless", "--no-sandbox", "--hide-scrollbars", *shot, html.as_uri())
    subprocess.run(browser, check=True, capture_output=True, timeout=120)


def main() -> None:
    """Draws the named pictures, or all."""
    if not sys.argv[1:]:
        sys.exit("usage: pictures.py QUELL [NAME...]")
    quell, names = Path(sys.argv[1]).resolve(), sys.argv[2:]
    TO.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for picture in Studio.PICTURES:
            name = picture.__name__.replace("_", "-")
            if names and name not in names:
                continue
            figure = picture(Studio(quell, Path(folder)))
            to = TO / f"{name}.svg"
            figure.savefig(to, format="svg", facecolor="white", metadata={"Date": None, "Creator": None})
            plt.close(figure)
            print(f"{to}: {to.stat().st_size} bytes")
        if not names or "page" in names:
            page(quell, Path(folder))


if __name__ == "__main__":
    main()
