"""Plots for papers: matplotlib figures one column wide, in colours for colour-blind readers, and readable in grey.

Each function returns a figure of its own: `quell.plot.curve(prediction).savefig("curve.pdf")`. It needs matplotlib,
which `quell[plots]` installs.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from quell._native import native
from quell._style import (
    COLOURS,
    COLUMN,
    GREY,
    HATCHES,
    LINES,
    MARKERS,
    RC,
    Figure,
    count,
    rc_context,
    time,
    whole_ticks,
)
from quell.recording import bin_of, edge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from quell.recording import Recording
    from quell.results import Prediction, Simulation, Tracked

F = TypeVar("F", bound=Callable[..., Figure])

# Maximum number of rows of bars and panels, so that they can be read at a glance.
_MOST_BARS = 12
_MOST_PANELS = 4
# Maximum number of detours of a CPU, so that a drawing program can edit the figure.
_MOST_POINTS = 4000
# Maximum number of ranks with a bar each.
_MOST_RANKS = 64


def _styled(draw: F) -> F:
    """Draws in this module's style, whatever the global one is."""

    @functools.wraps(draw)
    def styled(*given: Any, **named: Any) -> Figure:  # noqa: ANN401 (passed on as it is)
        with rc_context(RC):
            figure = draw(*given, **named)
            # Layout and ticks are computed now, because they keep their style afterwards.
            figure.draw_without_rendering()
            return figure

    return styled  # type: ignore[return-value]


def _time_axis(axis: Any) -> None:  # noqa: ANN401 (of either direction)
    axis.set_major_formatter(lambda nanos, _: time(nanos))


@_styled
def density(*recordings: Recording, labels: Sequence[str] | None = None) -> Figure:
    """How often detours of each length come: a step for each tenth of a decade, a line for each recording.

    Args:
        *recordings: Recordings made with the method `detour`.
        labels: Their names in the legend; their files' names by default.

    Returns:
        The figure.
    """
    figure = Figure(figsize=COLUMN)
    axes = figure.subplots()
    for number, recording in enumerate(recordings):
        rates = _rates(recording)
        if not rates:
            continue
        low, high = min(rates), max(rates)
        edges = [edge(place) for place in range(low, high + 2)]
        heights = [rates.get(place, 0.0) or float("nan") for place in range(low, high + 1)]
        colour, line = COLOURS[number % len(COLOURS)], LINES[number % len(LINES)]
        label = labels[number] if labels else recording.name
        axes.stairs(heights, edges, color=colour, linestyle=line, linewidth=1.2, label=label)
    axes.set(xscale="log", yscale="log", xlabel="duration of a detour", ylabel="detours per second and CPU")
    _time_axis(axes.xaxis)
    if len(recordings) > 1:
        axes.legend()
    return figure


def _rates(recording: Recording) -> dict[int, float]:
    """Detours per second and CPU in each bin, without quell's own."""
    seconds = sum(facts["end_ns"] - facts["start_ns"] for facts in recording.manifest["cpus"]) / 1e9
    counts: dict[int, int] = {}
    for duration, own in zip(recording.detours.column("duration_ns"), recording.detours.column("own")):
        if duration and not own:
            place = bin_of(duration)
            counts[place] = counts.get(place, 0) + 1
    return {place: number / seconds for place, number in counts.items()} if seconds else {}


@_styled
def timeline(
    recording: Recording,
    *,
    cpus: Sequence[int] | None = None,
    start: float = 0.0,
    end: float | None = None,
) -> Figure:
    """When detours came and how long they were, a panel for each CPU.

    If a CPU has more than 4,000 detours, the longest are drawn, and the longest of each group of consecutive ones.

    Args:
        recording: A recording made with the method `detour`.
        cpus: The CPUs to draw; by default the four that lost most time.
        start: Start of the drawn time, in seconds.
        end: End of the drawn time, in seconds; by default the end of the recording.

    Returns:
        The figure.
    """
    of_cpu: dict[int, list[tuple[float, int]]] = {cpu: [] for cpu in recording.cpus}
    table = recording.detours
    for cpu, at, duration in zip(table.column("cpu"), table.column("start_ns"), table.column("duration_ns")):
        if at / 1e9 >= start and (end is None or at / 1e9 <= end):
            of_cpu[cpu].append((at / 1e9, duration))
    lost = {cpu: sum(duration for _, duration in found) for cpu, found in of_cpu.items()}
    most = sorted(lost, key=lambda cpu: -lost[cpu])[:_MOST_PANELS]
    chosen = list(cpus) if cpus is not None else sorted(most)
    figure = Figure(figsize=(COLUMN[0], 0.7 + 0.85 * max(len(chosen), 1)))
    panels = figure.subplots(max(len(chosen), 1), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    durations = [duration for cpu in chosen for _, duration in of_cpu.get(cpu, []) if duration] or [100]
    # Whole decades, so that each panel has its ticks.
    floor, roof = 10 ** int(math.log10(min(durations))), 10 ** math.ceil(math.log10(max(durations) * 1.1))
    for panel, cpu in zip(panels, chosen):
        found = of_cpu.get(cpu, [])
        places = native().downsample([duration for _, duration in found], _MOST_POINTS)
        starts, lengths = _columns([found[place] for place in places])
        panel.vlines(starts, floor, lengths, GREY, linewidth=0.4)
        panel.plot(starts, lengths, ".", color=COLOURS[1], markersize=2)
        panel.set(yscale="log", ylim=(floor, roof))
        some = f" ({len(places):,} drawn)" if len(places) < len(found) else ""
        panel.set_title(f"CPU {cpu}: {len(found):,} detours{some}, {time(lost.get(cpu, 0))} lost", fontsize=7.5)
        _time_axis(panel.yaxis)
    panels[-1].set_xlabel("time in s")
    return figure


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


@_styled
def sources(recording: Recording) -> Figure:
    """Which sources took the CPUs: the share of their time that each source took, by class.

    Args:
        recording: A recording with known sources.

    Returns:
        The figure.
    """
    document = recording.show(by="source").document
    found: list[Any] = [*(document.get("sources") or [])]
    spans = sum(facts["end_ns"] - facts["start_ns"] for facts in recording.manifest["cpus"]) or 1
    rows = sorted(found, key=lambda row: -row["total_ns"])
    kinds = list(dict.fromkeys(row["class"] for row in rows))
    figure = Figure(figsize=(COLUMN[0], 0.8 + 0.19 * max(min(len(rows), _MOST_BARS), 2)))
    axes = figure.subplots()
    # Points, not bars: a logarithmic axis has no origin from which a length could be measured.
    for place, row in enumerate(rows[:_MOST_BARS]):
        kind = kinds.index(row["class"])
        style: dict[str, Any] = {"color": COLOURS[1:][kind % 6], "marker": MARKERS[kind], "linestyle": "none"}
        axes.plot([100 * row["total_ns"] / spans], [place], label=row["class"], **style)
    _bar_names(axes, [row["source"] for row in rows[:_MOST_BARS]])
    axes.grid(visible=True, axis="y")
    axes.set(xscale="log", xlabel="share of CPU time in %")
    if rows:
        _legend_once(axes)
    else:
        axes.set_title(document.get("sources_unknown_because") or "no source is known")
    return figure


def _bar(axes: Axes, place: float, width: float, kind: int, label: str) -> None:
    """A bar in the colour and hatch of its kind."""
    colour, hatch = COLOURS[1:][kind % (len(COLOURS) - 1)], HATCHES[kind % len(HATCHES)]
    axes.barh(place, width, 0.7, color=colour, hatch=hatch, edgecolor="white", linewidth=0, label=label)


def _bar_names(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")


def _short(name: str, most: int = 28) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _legend_once(axes: Axes) -> None:
    """A legend that names each kind once."""
    handles, names = axes.get_legend_handles_labels()
    once = {name: handle for handle, name in zip(handles, names)}
    axes.legend(list(once.values()), list(once))


@_styled
def curve(*predictions: Prediction, labels: Sequence[str] | None = None) -> Figure:
    """The slowdown by number of ranks, with its 95 % interval; hollow and faint where it is extrapolated.

    Args:
        *predictions: Results of `quell.predict`.
        labels: Their names in the legend; by default what they differ in.

    Returns:
        The figure.
    """
    figure = Figure(figsize=COLUMN)
    axes = figure.subplots()
    names = labels or _differences(predictions)
    for number, prediction in enumerate(predictions):
        _curve(axes, prediction, names[number], number)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda ranks, _: count(ranks))
    axes.set(xlabel="ranks", ylabel="slowdown in %")
    axes.set_ylim(bottom=0)
    if len(predictions) > 1 or any(not point["supported"] for one in predictions for point in one.points):
        axes.legend()
    return figure


def _curve(axes: Axes, prediction: Prediction, name: str, number: int) -> None:
    colour, line = COLOURS[number % len(COLOURS)], LINES[number % len(LINES)]
    marker = MARKERS[number % len(MARKERS)]
    points = prediction.points
    known = [point for point in points if point["supported"]]
    beyond = points[max(len(known) - 1, 0) :]
    for part, faint in ((known, False), (beyond, True)):
        axes.plot(
            [point["ranks"] for point in part],
            [point["slowdown_percent"] for point in part],
            color=colour,
            linestyle=":" if faint else line,
            alpha=0.7 if faint else 1.0,
            linewidth=1.0 if faint else 1.3,
        )
    for part, face in ((known, colour), ([point for point in points if not point["supported"]], "white")):
        label = name if face == colour else ("beyond the trace" if number == 0 else "_")
        ranks, slowdowns = [p["ranks"] for p in part], [p["slowdown_percent"] for p in part]
        if part:
            style = line if face == colour else "none"
            axes.plot([], [], color=colour, linestyle=style, marker=marker, markerfacecolor=face, label=label)
            axes.plot(ranks, slowdowns, color=colour, linestyle="none", marker=marker, markerfacecolor=face, zorder=3)
    if not known:
        axes.plot([], [], color=colour, linestyle=":", marker=marker, markerfacecolor="white", label=name)
    ends = [(point["ranks"], interval) for point in points if (interval := point.get("ci95_percent"))]
    low, high = [interval[0] for _, interval in ends], [interval[1] for _, interval in ends]
    axes.fill_between([ranks for ranks, _ in ends], low, high, color=colour, alpha=0.15, lw=0)


def _differences(predictions: Sequence[Prediction]) -> list[str]:
    """What predictions differ in, in a few words each."""
    fields: list[tuple[str, Callable[[Any], str]]] = [
        ("noise", lambda d: ", ".join(source["name"] for source in d["noise"])),
        ("op", lambda d: d["op"]),
        ("quantum", lambda d: time(d["quantum_ns"])),
        ("sync", lambda d: f"sync {d['sync']}"),
        ("what_if", lambda d: "; ".join(d.get("what_if") or []) or "as it is"),
    ]
    words = [[show(one.document) for _, show in fields] for one in predictions]
    telling = [place for place in range(len(fields)) if len({row[place] for row in words}) > 1] or [0]
    return [", ".join(row[place] for place in telling) for row in words]


@_styled
def advice(document: Mapping[str, Any], *, scale: int = -1) -> Figure:
    """What each source costs at scale, and what each mitigation would gain, with 95 % intervals.

    Args:
        document: The parsed output of `quell advise --json`.
        scale: Index of the scale to draw; the last by default.

    Returns:
        The figure.
    """
    costs = [(row["source"], row["costs"][scale]) for row in document["sources"]][:_MOST_BARS]
    effects = [(row["id"], row["effects"][scale]) for row in document["mitigations"] if row.get("effects")][:_MOST_BARS]
    heights = [max(len(costs), 1), max(len(effects), 1)] if effects else [max(len(costs), 1)]
    figure = Figure(figsize=(COLUMN[0], 0.9 * len(heights) + 0.2 * sum(heights)))
    panels = figure.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    ranks = document["scales"][scale]["ranks"]
    for place, (_, cost) in enumerate(costs):
        _bar(panels[0], place, cost["part_percent"], 0, "its part")
        _gain(panels[0], place, cost, "gain if it is gone")
    _bar_names(panels[0], [name for name, _ in costs])
    panels[0].set_title(f"What sources cost at {count(ranks)} ranks")
    panels[0].set_xlabel("percentage points of slowdown")
    if costs:
        _legend_once(panels[0])
    if effects:
        for place, (_, effect) in enumerate(effects):
            _bar(panels[1], place, effect["gain_percent"], 2, "gain")
            _gain(panels[1], place, effect, "")
        _bar_names(panels[1], [name for name, _ in effects])
        panels[1].set_title("What mitigations would gain")
        panels[1].set_xlabel("percentage points of slowdown")
    return figure


def _gain(axes: Axes, place: int, of: Mapping[str, Any], label: str) -> None:
    """A gain as a point with its interval."""
    low, high = of.get("gain_ci95_percent") or (of["gain_percent"], of["gain_percent"])
    axes.plot([low, high], [place, place], color="black", linewidth=1, solid_capstyle="butt", zorder=3)
    style: dict[str, Any] = {"markerfacecolor": "white", "markersize": 4, "linestyle": "none", "zorder": 4}
    axes.plot([of["gain_percent"]], [place], "o", color="black", label=label or "_", **style)


@_styled
def culprits(simulation: Simulation) -> Figure:
    """Which noise delayed a program: the delay on its critical path, by source.

    Args:
        simulation: A result of `quell.simulate(..., culprits=True)`.

    Returns:
        The figure.

    Raises:
        ValueError: If it was simulated without culprits.
    """
    facts = simulation.culprits
    if facts is None:
        raise ValueError("its culprits are not known: simulate with culprits=True")
    rows = sorted(facts["sources"], key=lambda row: -row["delay_ns"])[:_MOST_BARS]
    figure = Figure(figsize=(COLUMN[0], 0.9 + 0.2 * max(len(rows), 2)))
    axes = figure.subplots()
    for place, row in enumerate(rows):
        _bar(axes, place, row["delay_ns"], 0, "")
    _bar_names(axes, [row["source"] for row in rows])
    _time_axis(axes.xaxis)
    axes.set(xlabel="delay of the last rank", title=simulation.document["program"])
    return figure


@_styled
def tracked(result: Tracked) -> Figure:
    """The effect of noise on each rank: its own noise, what it waited for others' noise, and what waiting absorbed.

    Args:
        result: A result of `quell.track`.

    Returns:
        The figure.
    """
    rows = result.ranks
    parts = [("local", "local_ns", 1), ("amplified", "amplified_ns", 1), ("absorbed", "absorbed_ns", -1)]
    figure = Figure(figsize=COLUMN)
    axes = figure.subplots()
    places = [row["rank"] for row in rows]
    for number, (name, field, sign) in enumerate(parts):
        heights = [sign * row[field] for row in rows]  # type: ignore[literal-required]
        below = [row["local_ns"] if name == "amplified" and row["local_ns"] > 0 else 0 for row in rows]
        colour, hatch = COLOURS[1:][number], HATCHES[number]
        if len(rows) <= _MOST_RANKS:
            axes.bar(places, heights, 0.8, below, color=colour, hatch=hatch, edgecolor="white", lw=0, label=name)
        else:
            axes.plot(places, heights, color=colour, linestyle=LINES[number], linewidth=0.8, label=name)
    total = [row["accumulated_ns"] for row in rows]
    axes.plot(places, total, "_" if len(rows) <= _MOST_RANKS else "-", color="black", markersize=6, label="accumulated")
    axes.axhline(0, color="black", linewidth=0.6)
    axes.xaxis.set_major_locator(whole_ticks())
    axes.grid(visible=False, axis="x")
    _time_axis(axes.yaxis)
    axes.set(xlabel="rank", ylabel="noise")
    axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return figure


__all__ = ["advice", "culprits", "curve", "density", "sources", "timeline", "tracked"]
