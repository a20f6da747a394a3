"""Interactive plots: sections of the page that `quell report` makes, for notebooks and browsers, without a network.

`quell.interactive.curve(prediction)` displays itself in a notebook; `.save("curve.html")` writes it to a file. Hover
over it for values, and drag to zoom.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from quell._native import native

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from quell.recording import Recording
    from quell.results import Prediction, Simulation, Tracked


class Page:
    """Some sections of quell's page.

    Attributes:
        html: The whole page.
    """

    def __init__(
        self,
        title: str,
        sections: Sequence[str],
        documents: Sequence[tuple[str, str]] = (),
        recordings: Sequence[Recording] = (),
        height: int = 560,
    ) -> None:
        """A page of documents, each under the name of its part of the page, and of recordings' detours."""
        detours = [(recording.name, recording._inner) for recording in recordings]  # noqa: SLF001 (its native half)
        self.html = cast("str", native().page(title, list(documents), detours, list(sections)))
        self._height = height

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        # In a frame of its own, so that page and notebook affect neither each other's scripts nor styles.
        frame = f'width="100%" height="{self._height}" style="border:0;max-width:1100px" sandbox="allow-scripts"'
        return f'<iframe srcdoc="{html.escape(self.html)}" {frame}></iframe>'


def curve(*predictions: Prediction) -> Page:
    """The slowdown by number of ranks, with its 95 % interval, as a plot and a table.

    Args:
        *predictions: Results of `quell.predict`.

    Returns:
        The page.
    """
    return Page("Slowdown", ["scale"], [("predict", one.json) for one in predictions], height=760)


def what_if(document: Mapping[str, Any]) -> Page:
    """The slowdown without any of the costliest sources, each of which can be switched off.

    Args:
        document: The parsed output of `quell advise --json`.

    Returns:
        The page.
    """
    return Page("What if", ["what-if"], [("advice", json.dumps(document))])


def density(*recordings: Recording) -> Page:
    """How long detours last: a curve for each CPU of a recording, or one for each of several recordings.

    Args:
        *recordings: Recordings made with the method `detour`.

    Returns:
        The page.
    """
    return Page("Detours by length", ["durations"], recordings=recordings)


def timeline(recording: Recording) -> Page:
    """When detours came and how long they were.

    If there are very many, the longest of each CPU are drawn, and the longest of each group of consecutive ones.

    Args:
        recording: A recording made with the method `detour`.

    Returns:
        The page.
    """
    return Page(f"Detours of {recording.name}", ["detours"], recordings=[recording])


def sources(recording: Recording) -> Page:
    """Which sources took the CPUs.

    Args:
        recording: A recording with known sources.

    Returns:
        The page.
    """
    shown = recording.show(by="source")
    return Page(f"Sources of {recording.name}", ["sources"], [("sources", shown.json)], height=760)


def advice(document: Mapping[str, Any]) -> Page:
    """What each source costs at each scale.

    Args:
        document: The parsed output of `quell advise --json`.

    Returns:
        The page.
    """
    return Page("What sources cost", ["advice", "costs"], [("advice", json.dumps(document))], height=900)


def culprits(simulation: Simulation) -> Page:
    """Which noise delayed a program.

    Args:
        simulation: A result of `quell.simulate(..., culprits=True)`.

    Returns:
        The page.

    Raises:
        ValueError: If it was simulated without culprits.
    """
    if simulation.culprits is None:
        raise ValueError("its culprits are not known: simulate with culprits=True")
    return Page(f"Who made {simulation.document['program']} late", ["culprits"], [("simulate", simulation.json)])


def tracked(result: Tracked) -> Page:
    """The effect of noise on each rank, by source.

    Args:
        result: A result of `quell.track`.

    Returns:
        The page.
    """
    return Page("Noise by rank", ["accumulated", "sources", "ranks"], [("track", result.json)], height=1100)
