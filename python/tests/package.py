"""The package as a wheel would lay it out: its sources, the native module and the command that cargo built."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
QUELL = TARGET / "quell"
MODULE = TARGET / "libquell_python.so"


@contextlib.contextmanager
def laid_out() -> Iterator[Path]:
    """A folder from which `quell` is imported, first in the path of this process and of those that it starts."""
    for needed in (QUELL, MODULE):
        if not needed.exists():
            raise FileNotFoundError(f"{needed} is missing: `cargo build --workspace` makes it")
    with tempfile.TemporaryDirectory(prefix="quell-package-") as folder:
        package = Path(folder, "quell")
        package.mkdir()
        for source in (ROOT / "python/quell").iterdir():
            if source.suffix in {".py", ".pyi", ".js"} or source.name == "py.typed":
                (package / source.name).symlink_to(source)
        (package / "_internal.abi3.so").symlink_to(MODULE)
        before = dict(os.environ)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, before.get("PYTHONPATH")]))
        os.environ["QUELL"] = str(QUELL)
        sys.path.insert(0, folder)
        try:
            yield Path(folder)
        finally:
            sys.path.remove(folder)
            os.environ.clear()
            os.environ.update(before)
