"""Progress on a terminal or in a notebook; nothing in a pipe."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Show = Callable[[int, int], None]

_WIDTH = 32
# Work that takes less time than this shows no progress.
_SHOW_AFTER = 0.3


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


def _wanted(asked: bool | None) -> bool:  # noqa: FBT001 (passed on as it is)
    if asked is not None:
        return asked
    return "QUELL_QUIET" not in os.environ and (sys.stderr.isatty() or _in_notebook())


class _Bar:
    """A progress line on stderr, where tqdm is not installed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._drawn = False

    def __call__(self, done: int, whole: int) -> None:
        if whole:
            filled = _WIDTH * min(done, whole) // whole
            line = f"{self._name:>10} {'█' * filled}{'░' * (_WIDTH - filled)} {100 * min(done, whole) // whole:>3}%"
        else:
            line = f"{self._name:>10} {done} events"
        sys.stderr.write(f"\r{line}")
        sys.stderr.flush()
        self._drawn = True

    def close(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class _Tqdm:
    """tqdm's bar, of the kind that suits a terminal or a notebook."""

    def __init__(self, name: str) -> None:
        self._bar: Any = importlib.import_module("tqdm.auto").tqdm(desc=name, leave=False, total=None)

    def __call__(self, done: int, whole: int) -> None:
        self._bar.total = whole or None
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def _bar(name: str) -> _Tqdm | _Bar:
    try:
        return _Tqdm(name)
    except ImportError:
        return _Bar(name)


@contextlib.contextmanager
def progress(name: str, asked: bool | None) -> Iterator[Show | None]:  # noqa: FBT001 (passed on as it is)
    """The function that receives the progress, or None if it is not shown."""
    if not _wanted(asked):
        yield None
        return
    begun = time.monotonic()
    bar: _Tqdm | _Bar | None = None

    def show(done: int, whole: int) -> None:
        nonlocal bar
        if bar is None and time.monotonic() - begun < _SHOW_AFTER:
            return
        bar = bar or _bar(name)
        bar(done, whole)

    try:
        yield show
    finally:
        if bar is not None:
            bar.close()
