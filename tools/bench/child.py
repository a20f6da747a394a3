"""Runs one command and measures what it used."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

GRACE_S = 10.0
SHOWN_LINES = 5


class BenchError(Exception):
    """A benchmark gave no figures, for this reason."""


class Child(NamedTuple):
    """A command that has exited."""

    command: list[str]
    code: int
    stdout: str
    stderr: str
    wall_s: float
    # User and system time together.
    cpu_s: float
    # As reported by the kernel, and never below the memory of this runner when it started the command.
    peak_bytes: int

    def line(self) -> str:
        """The command as one would type it."""
        return shlex.join(self.command)

    def checked(self) -> Child:
        """Returns itself if the command succeeded."""
        if self.code != 0:
            words = "\n  ".join(self.stderr.strip().splitlines()[-SHOWN_LINES:])
            raise BenchError(f"`{self.line()}` ended with code {self.code}:\n  {words or '(no message)'}")
        return self


def run(command: list[str], timeout_s: float, alongside: Callable[[int], None] | None = None) -> Child:
    """Runs a command to its end; after the timeout it is interrupted, and killed if that has no effect.

    `alongside` is called with its process id once it runs, and the wait begins when that returns.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        except OSError as error:
            raise BenchError(f"cannot run `{shlex.join(command)}`: {error.strerror}") from error
        try:
            if alongside:
                alongside(process.pid)
        except BaseException:
            process.terminate()
            _wait(process, timeout_s)
            raise
        usage = _wait(process, timeout_s)
        wall_s = time.monotonic() - start
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    cpu_s = usage.ru_utime + usage.ru_stime
    return Child(command, process.returncode, texts[0], texts[1], wall_s, cpu_s, usage.ru_maxrss * 1024)


def _wait(process: subprocess.Popen, timeout_s: float) -> os.struct_rusage:
    """Waits for the end and returns the resources used, which `Popen.wait` would discard."""
    timers = [
        threading.Timer(timeout_s, os.kill, (process.pid, signal.SIGINT)),
        threading.Timer(timeout_s + GRACE_S, os.kill, (process.pid, signal.SIGKILL)),
    ]
    for timer in timers:
        timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        for timer in timers:
            timer.cancel()
    return usage
