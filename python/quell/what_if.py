"""Predictions with changed noise, compared with the noise as recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quell import verbs
from quell.results import WhatIf

if TYPE_CHECKING:
    from quell._words import Names, Noises, Values


def what_if(  # noqa: PLR0913 (one for each change)
    recordings: Noises,
    *,
    leave: int | None = None,
    without: Names = (),
    only: Names = (),
    scaled: Values = (),
    on_cpu: Values = (),
    stagger: Names = (),
    align: Names = (),
    coschedule: Names = (),
    **options: Any,  # noqa: ANN401 (those of `quell.predict`)
) -> WhatIf:
    """Predicts with the noise as recorded and with changed noise, from the same random draws.

    The difference of the two predictions is therefore the effect of the change.

    Args:
        recordings: As for `quell.predict`.
        leave: Leave this many CPUs of each node, the first ones, to the system.
        without: Remove these sources: `"tick"`, or a kind and a regular expression, `"task:^kworker"`.
        only: Remove all other sources.
        scaled: Scale the durations of these sources: `{"tick": 0.5}`.
        on_cpu: Move these sources from all CPUs to one: `{"task:ksmd": 0}`.
        stagger: Distribute these sources evenly over the CPUs of a node.
        align: Run these sources at the same time on all CPUs of a node.
        coschedule: Run these sources at the same time on all nodes.
        **options: The other options of `quell.predict`.

    Returns:
        Both curves.

    Raises:
        QuellError: With the command's error message.
    """
    before = verbs.predict(recordings, **options)
    after = verbs.predict(
        recordings,
        leave=leave,
        without=without,
        only=only,
        scaled=scaled,
        on_cpu=on_cpu,
        stagger=stagger,
        align=align,
        coschedule=coschedule,
        **options,
    )
    return WhatIf(before, after)
