"""What can go wrong, in the words of the `quell` command."""

from __future__ import annotations

from typing import Any


class QuellError(Exception):
    """The work failed.

    Attributes:
        document: What there is nevertheless, such as what was left over of a program that does not end; or None.
    """

    def __init__(self, message: str, document: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.document = document


class UsageError(QuellError, ValueError):
    """What was asked for makes no sense; the command ends with exit code 2."""


class QuellWarning(UserWarning):
    """What limits a result."""
