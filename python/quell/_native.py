"""The native module, loaded on first use: parts of the package that do not need it work without it."""

from __future__ import annotations

import importlib
import json
import warnings
from typing import TYPE_CHECKING, Any, cast

from quell._progress import progress
from quell._words import words
from quell.errors import QuellError, QuellWarning

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


def native() -> ModuleType:
    """Loads the module `quell._internal`.

    Raises:
        QuellError: If it is not installed.
    """
    try:
        return importlib.import_module("quell._internal")
    except ModuleNotFoundError as missing:
        text = "quell's native module is missing: install the wheel, `pip install quell`, not the sources alone"
        raise QuellError(text) from missing


def sentences(warnings: Sequence[Any]) -> list[str]:
    """The terminal's texts of a document's warnings, in the same order."""
    return cast("list[str]", native().sentences(json.dumps(warnings))) if warnings else []


def ask(
    verb: str,
    options: Sequence[tuple[str, str, Any]],
    positional: Sequence[Any],
    show_progress: bool | None,  # noqa: FBT001 (passed on as it is)
) -> str:
    """The document that a verb prints with `--json`.

    Raises:
        QuellError: With the command's error message.
    """
    from quell.documents import parse  # noqa: PLC0415 (they need each other)

    line = words(options, positional)
    with progress(verb, show_progress) as show:
        text, messages, failure = cast("tuple[str, list[str], str | None]", getattr(native(), verb)(line, show))
    for one in messages:
        warnings.warn(one, QuellWarning, stacklevel=4)
    if failure is not None:
        raise QuellError(failure, parse(text))
    return text
