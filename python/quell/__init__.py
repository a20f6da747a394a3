"""quell: operating-system noise, measured and named.

`quell.open` opens recordings and archives; their tables go to pyarrow, pandas, Polars and DuckDB without a copy. Each
verb of the command is a function of the same name, with the verb's options as keyword arguments; it returns the
document that the command prints with `--json`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from quell.command import run
from quell.errors import QuellError, QuellWarning, UsageError
from quell.recording import Archive, Recording, import_, open, read  # noqa: A004 (as quell.open)
from quell.results import Comparison, Document, Hosts, Prediction, Shown, Simulation, Tracked, WhatIf
from quell.table import Table
from quell.verbs import compare, predict, show, simulate, track
from quell.what_if import what_if

if TYPE_CHECKING:
    from types import ModuleType

    from quell import interactive, metrics, plot

__all__ = [
    "Archive",
    "Comparison",
    "Document",
    "Hosts",
    "Prediction",
    "QuellError",
    "QuellWarning",
    "Recording",
    "Shown",
    "Simulation",
    "Table",
    "Tracked",
    "UsageError",
    "WhatIf",
    "compare",
    "import_",
    "interactive",
    "metrics",
    "open",
    "plot",
    "predict",
    "read",
    "run",
    "show",
    "simulate",
    "track",
    "what_if",
]


def __getattr__(name: str) -> ModuleType:
    """Imports modules that need more than the standard library, or are rarely used, when they are first accessed."""
    if name in {"interactive", "metrics", "plot"}:
        return importlib.import_module(f"quell.{name}")
    raise AttributeError(f"module 'quell' has no attribute '{name}'")
