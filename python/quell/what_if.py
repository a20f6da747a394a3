"""A node's noise otherwise than it was recorded, beside how it is."""

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
    """Predicts twice, with the noise as it is and as it would be; both draw alike, so the difference is the change's.

    Args:
        recordings: As for `quell.predict`.
        leave: Leave the first so many CPUs of each node to the system.
        without: Without these sources: `"tick"`, or a kind and a regular expression, `"task:^kworker"`.
        only: Without all others.
        scaled: With so many times their time: `{"tick": 0.5}`.
        on_cpu: What they do on any CPU done on this one: `{"task:ksmd": 0}`.
        stagger: Spread evenly over the CPUs of a node.
        align: At the same time on all CPUs of a node.
        coschedule: At the same time on all nodes.
        **options: The other options of `quell.predict`.

    Returns:
        Both curves.

    Raises:
        QuellError: As the command says it.
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
