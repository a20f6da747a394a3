"""Plots to look into: one self-contained page each, for notebooks and browsers, that needs no network.

`quell.interactive.curve(prediction)` shows itself in a notebook; `.save("curve.html")` keeps it. Point at it for
figures, drag to zoom, and switch lines and sources.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quell._native import native
from quell.recording import bin_of, edge

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from quell.recording import Recording
    from quell.results import Prediction, Simulation, Tracked

_CSS = """
body { margin: 8px; font: 13px/1.4 system-ui, sans-serif; color: #111; background: #fff }
h1 { font-size: 14px; margin: 0 0 4px }
svg { width: 100%; max-width: 900px; font-size: 11px; touch-action: none }
svg text { fill: #333 }
.hint { color: #555; font-size: 11px; margin: 4px 0 }
.legend button { background: none; border: 0; margin: 0 10px 4px 0; cursor: pointer; font: inherit }
button[aria-pressed=false] { opacity: .4 }
fieldset { border: 1px solid #ccc; max-width: 870px }
fieldset label { margin-right: 14px; white-space: nowrap }
#tip { position: absolute; background: #fff; border: 1px solid #555; padding: 2px 6px; pointer-events: none;
  max-width: 340px; box-shadow: 0 1px 4px #0003 }
"""

# Points that a browser draws at ease.
_MOST_POINTS = 5000


class Page:
    """A plot as a page of its own.

    Attributes:
        html: The whole page.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        """Of what is to be drawn."""
        # No name in it can end the script.
        data = json.dumps(spec).replace("<", "\\u003c")
        script = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
        self.html = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(spec["title"])}</title>'
            f'<style>{_CSS}</style></head><body><div id="chart"></div><div id="tip" hidden></div>'
            f'<script id="spec" type="application/json">{data}</script><script>{script}</script></body></html>\n'
        )
        self._height = 130 + 24 * len(spec["bars"]) if "bars" in spec else 520

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        # A frame of its own: its script sees nothing of the notebook, and the notebook's style nothing of it.
        frame = f'width="100%" height="{self._height}" style="border:0;max-width:940px" sandbox="allow-scripts"'
        return f'<iframe srcdoc="{html.escape(self.html)}" {frame}></iframe>'


Axis = tuple[str, str, str]


def _xy(title: str, series: list[dict[str, Any]], x: Axis, y: Axis, **more: object) -> Page:
    """Lines or points; of each axis the label, the scale, and how its values are shown."""
    names = {"xlabel": x[0], "xscale": x[1], "xshown": x[2], "ylabel": y[0], "yscale": y[1], "yshown": y[2]}
    return Page({"title": title, "series": series, **names, **more})


def curve(*predictions: Prediction) -> Page:
    """The slowdown by number of ranks, with its interval of 95 %.

    Args:
        *predictions: What `quell.predict` gave.

    Returns:
        The page.
    """
    series: list[dict[str, Any]] = []
    for number, one in enumerate(predictions):
        ends = [point.get("ci95_percent") or (None, None) for point in one.points]
        changed = "; ".join(one.document.get("what_if") or [])
        name = ", ".join(source["name"] for source in one.document["noise"]) + (f", {changed}" if changed else "")
        taken = any(name == other["name"] for other in series)
        series.append(
            {
                "name": f"{name} ({number + 1})" if taken else name,
                "x": one.ranks,
                "y": one.slowdown_percent,
                "low": [low for low, _ in ends],
                "high": [high for _, high in ends],
                "supported": [point["supported"] for point in one.points],
            }
        )
    return _xy("Slowdown", series, ("ranks", "log2", "count"), ("slowdown", "linear", "percent"), zero=True)


def what_if(document: Mapping[str, Any]) -> Page:
    """The slowdown with any of the costliest sources gone, at a switch.

    Args:
        document: What `quell advise --json` printed, read.

    Returns:
        The page.
    """
    of = document["what_if"]
    series = [
        {"name": "as it is", "x": of["ranks"], "y": of["slowdown_percent"][0]},
        {"name": "without what is ticked", "x": of["ranks"], "y": of["slowdown_percent"][0]},
    ]
    axes = ("ranks", "log2", "count"), ("slowdown", "linear", "percent")
    return _xy("What if", series, *axes, zero=True, switches=of, height=330)


def density(*recordings: Recording) -> Page:
    """How often detours of each length come, a line for each recording.

    Args:
        *recordings: Of the method `detour`.

    Returns:
        The page.
    """
    series: list[dict[str, Any]] = []
    for one in recordings:
        seconds = sum(facts["end_ns"] - facts["start_ns"] for facts in one.manifest["cpus"]) / 1e9 or 1.0
        counts: dict[int, int] = {}
        for duration, own in zip(one.detours.column("duration_ns"), one.detours.column("own")):
            if duration and not own:
                counts[bin_of(duration)] = counts.get(bin_of(duration), 0) + 1
        places = range(min(counts, default=0), max(counts, default=0) + 1)
        rates = [counts[place] / seconds if place in counts else None for place in places]
        series.append({"name": one.name, "x": [edge(place) for place in places], "y": rates})
    return _xy("Detours by length", series, ("duration", "log", "time"), ("per second and CPU", "log", "number"))


def timeline(recording: Recording) -> Page:
    """When detours came and how long they were.

    Of very many the longest of each CPU are drawn, and the longest of each run of as many in a row.

    Args:
        recording: Of the method `detour`.

    Returns:
        The page.
    """
    table = recording.detours
    of_cpu: dict[int, list[tuple[float, int]]] = {cpu: [] for cpu in recording.cpus}
    for cpu, start, duration in zip(table.column("cpu"), table.column("start_ns"), table.column("duration_ns")):
        of_cpu[cpu].append((start / 1e9, duration))
    room = _MOST_POINTS // max(len(of_cpu), 1)
    series: list[dict[str, Any]] = []
    for cpu, found in of_cpu.items():
        drawn = [found[place] for place in native().downsample([duration for _, duration in found], room)]
        series.append({"name": f"CPU {cpu}", "x": [x for x, _ in drawn], "y": [y for _, y in drawn], "dots": True})
    shown = sum(len(one["x"]) for one in series)
    left_out = f", {shown:,} of {len(table):,}" if shown < len(table) else ""
    title = f"Detours of {recording.name}{left_out}"
    return _xy(title, series, ("at", "linear", "seconds"), ("duration", "log", "time"))


def sources(recording: Recording) -> Page:
    """Who took the CPUs, a bar a source.

    Args:
        recording: One whose sources are known.

    Returns:
        The page.
    """
    found: list[Any] = [*recording.show(by="source").sources]
    bars = [
        {"name": row["source"], "kind": row["class"], "value": row["total_ns"], "said": f"{row['count']:,} times"}
        for row in sorted(found, key=lambda row: -row["total_ns"])
    ]
    return Page({"title": f"Sources of {recording.name}", "bars": bars, "xlabel": "time taken", "xshown": "time"})


def advice(document: Mapping[str, Any], *, scale: int = -1) -> Page:
    """What each source costs at scale.

    Args:
        document: What `quell advise --json` printed, read.
        scale: Which of its scales; the last, if not given.

    Returns:
        The page.
    """
    bars = []
    for row in document["sources"]:
        cost = row["costs"][scale]
        low, high = cost.get("gain_ci95_percent") or (None, None)
        said = f"without it {cost['gain_percent']:.3g} points less"
        bars.append({"name": row["source"], "value": cost["part_percent"], "low": low, "high": high, "said": said})
    ranks = document["scales"][scale]["ranks"]
    title = f"What sources cost at {ranks:,} ranks, and 95 % of what their end would gain"
    return Page({"title": title, "bars": bars, "xlabel": "percentage points of slowdown", "xshown": "number"})


def culprits(simulation: Simulation) -> Page:
    """Which noise made a program late, a bar a source.

    Args:
        simulation: What `quell.simulate(..., culprits=True)` gave.

    Returns:
        The page.

    Raises:
        ValueError: If its culprits were not asked for.
    """
    facts = simulation.culprits
    if facts is None:
        raise ValueError("its culprits are not known: simulate with culprits=True")
    bars = [{"name": row["source"], "value": row["delay_ns"]} for row in facts["sources"]]
    title = f"Who made {simulation.document['program']} late"
    return Page({"title": title, "bars": bars, "xlabel": "delay of the last rank", "xshown": "time"})


def tracked(result: Tracked) -> Page:
    """What noise did to each rank.

    Args:
        result: What `quell.track` gave.

    Returns:
        The page.
    """
    ranks = [row["rank"] for row in result.ranks]
    series: list[dict[str, Any]] = [
        {"name": "local", "x": ranks, "y": [row["local_ns"] for row in result.ranks]},
        {"name": "accumulated", "x": ranks, "y": [row["accumulated_ns"] for row in result.ranks]},
        {"name": "amplified", "x": ranks, "y": [row["amplified_ns"] for row in result.ranks]},
        {"name": "absorbed", "x": ranks, "y": [row["absorbed_ns"] for row in result.ranks]},
    ]
    return _xy("Noise by rank", series, ("rank", "linear", "number"), ("noise", "linear", "time"), zero=True)
