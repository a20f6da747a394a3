"""A test case with the package laid out, and samples."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import unittest
from typing import ClassVar

from package import laid_out
from samples import Samples


@functools.cache
def _package() -> None:
    """Lays out the package until this process ends, because modules imported from it need it until then."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    stack.enter_context(laid_out())


class PackageCase(unittest.TestCase):
    """Runs in the samples' folder."""

    samples: ClassVar[Samples]

    @classmethod
    def setUpClass(cls) -> None:
        _package()
        cls.samples = Samples()
        cls.addClassCleanup(cls.samples.close)
        cls.addClassCleanup(os.chdir, os.getcwd())  # noqa: PTH109 (to come back)
        os.chdir(cls.samples.folder)
