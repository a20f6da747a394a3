"""A test with the package laid out and samples beside it."""

from __future__ import annotations

import contextlib
import os
import unittest
from typing import ClassVar

from package import laid_out
from samples import Samples


class PackageCase(unittest.TestCase):
    """Runs from the samples' folder."""

    samples: ClassVar[Samples]

    @classmethod
    def setUpClass(cls) -> None:
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        stack.enter_context(laid_out())
        cls.samples = Samples()
        stack.callback(cls.samples.close)
        stack.callback(os.chdir, os.getcwd())  # noqa: PTH109 (to come back)
        os.chdir(cls.samples.folder)
