"""How the pages' figures look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt

from . import HERE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, distinguished with any colour vision.
BLUE, ORANGE, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#555555"


def panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """A figure with this number of plots, row by row."""
    mpl.rcParams.update({"svg.hashsalt": "quell", "svg.fonttype": "none", "font.family": "sans-serif"})
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for one in axes.flat:
        one.grid(color="#dddddd", linewidth=0.6)
        one.set_axisbelow(True)
    return figure, list(axes.flat)


def save(figure: Figure, name: str) -> None:
    """Writes NAME.svg."""
    figure.savefig(HERE / f"{name}.svg", format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
