"""Errors, with the messages of the `quell` command."""

from __future__ import annotations

from typing import Any


class QuellError(Exception):
    """The work failed.

    Attributes:
        document: The partial result, such as the remaining operations of a program that does not end; or None.
    """

    def __init__(self, message: str, document: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.document = document


class UsageError(QuellError, ValueError):
    """The request is not valid; the command ends with exit code 2."""


class QuellWarning(UserWarning):
    """A limitation of a result."""
