"""The style of plots: for papers, for colour-blind readers, and for printers without colours."""

from __future__ import annotations

import io
from typing import Any

try:
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Plain
    from matplotlib.ticker import Locator, MaxNLocator
except ModuleNotFoundError as missing:
    from quell.errors import QuellError

    raise QuellError("plots need matplotlib: pip install 'quell[plots]'") from missing

# Okabe & Ito, "Color Universal Design", 2008; black first, without yellow, which is too light on paper.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (7, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++", "ooo")
# For unimportant or remaining parts.
GREY = "#999999"

RC: dict[str, Any] = {
    "figure.constrained_layout.use": True,
    "figure.dpi": 120,
    "savefig.dpi": 300,
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}

# The width of a column, and a suitable height, in inches.
COLUMN = (3.5, 2.4)


class Figure(Plain):
    """A figure that notebooks display without pyplot."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        with rc_context(RC):
            self.savefig(content, format="png", dpi=144)
        return content.getvalue()


def whole_ticks() -> Locator:
    """Ticks at whole numbers."""
    return MaxNLocator(integer=True)


def time(nanos: float) -> str:
    """A time in ns, formatted for readers."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(nanos) >= size:
            return f"{nanos / size:.3g} {'µs' if unit == 'us' else unit}"
    return f"{nanos:.3g} ns"


def count(number: float) -> str:
    """A number of ranks, formatted for readers: powers of two with their prefixes."""
    for unit, size in (("Mi", 1 << 20), ("Ki", 1 << 10)):
        if number >= size and number % size == 0:
            return f"{number / size:g}{unit}"
    return f"{number:g}"


__all__ = [
    "COLOURS",
    "COLUMN",
    "GREY",
    "HATCHES",
    "LINES",
    "MARKERS",
    "RC",
    "Figure",
    "count",
    "rc_context",
    "time",
    "whole_ticks",
]
