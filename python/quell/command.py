"""The `quell` command of the same installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from quell.errors import QuellError, UsageError

_USAGE = 2
_LIMIT = 3


def command() -> str:
    """The path of the command: the one in QUELL, that of the same wheel, or the one in PATH.

    Raises:
        QuellError: If there is none.
    """
    named = os.environ.get("QUELL")
    sibling = Path(sysconfig.get_path("scripts"), "quell")
    found = named or (str(sibling) if os.access(sibling, os.X_OK) else shutil.which("quell"))
    if not found:
        text = (
            "the `quell` command is not there: install the wheel, or name the program in the environment variable QUELL"
        )
        raise QuellError(text)
    return found


def run(*words: str | os.PathLike[str]) -> str:
    """Runs `quell WORDS...` and returns its output. On a terminal it shows progress.

    Args:
        *words: The arguments: `quell.run("record", "-o", "a.quell", "--cpus", "1", "--duration", "2s")`.

    Returns:
        Its output on stdout. A stated limit that does not hold (exit code 3) is not an error.

    Raises:
        QuellError: With the command's error message, if it fails.
    """
    typed = [command(), *(os.fspath(word) for word in words)]
    draws = sys.stderr.isatty()
    # On a terminal the command inherits stderr for its progress, and prints its error message there.
    done = subprocess.run(
        typed, stdout=subprocess.PIPE, stderr=None if draws else subprocess.PIPE, text=True, check=False
    )
    stderr = "" if draws else done.stderr
    sys.stderr.writelines(line for line in stderr.splitlines(keepends=True) if not line.startswith("error: "))
    if done.returncode in {0, _LIMIT}:
        return done.stdout
    errors = [text.removeprefix("error: ") for text in stderr.splitlines() if text.startswith("error: ")]
    reason = errors[-1] if errors else f"`quell {' '.join(typed)}` ended with exit code {done.returncode}"
    raise (UsageError if done.returncode == _USAGE else QuellError)(reason)
