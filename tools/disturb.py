#!/usr/bin/env python3
"""Disturbs CPU 1 in a known way until it is ended: `disturb.py daemon|timer-storm|tlb [--seconds N]`. For tools/pictures.py."""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import struct
import sys
import threading
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
CLOCK_MONOTONIC = 1


def daemon(until: float) -> None:
    """Wakes every half second for 5 ms."""
    Path("/proc/self/comm").write_text("healthd", "utf-8")
    os.sched_setaffinity(0, {1})
    while time.monotonic() < until:
        time.sleep(0.495)
        end = time.monotonic() + 0.005
        while time.monotonic() < end:
            pass


def timer_storm(until: float) -> None:
    """A timer every 200 us that wakes nobody."""
    os.sched_setaffinity(0, {1})
    timer = LIBC.timerfd_create(CLOCK_MONOTONIC, 0)
    every = struct.pack("qqqq", 0, 200_000, 0, 200_000)
    if timer < 0 or LIBC.timerfd_settime(timer, 0, every, None) != 0:
        sys.exit(f"disturb: no timer: {os.strerror(ctypes.get_errno())}")
    time.sleep(until - time.monotonic())


def tlb(until: float) -> None:
    """A thread on CPU 0 gives memory back again and again; one on CPU 1 computes in the same address space."""

    def compute() -> None:
        os.sched_setaffinity(0, {1})
        data = bytes(1 << 20)
        while time.monotonic() < until:
            hashlib.sha256(data)

    threading.Thread(target=compute).start()
    os.sched_setaffinity(0, {0})
    while time.monotonic() < until:
        with mmap.mmap(-1, 1 << 16) as memory:
            memory[0] = 1
        time.sleep(0.0005)


def main() -> None:
    """Says that it begins, then does."""
    ways = {"daemon": daemon, "timer-storm": timer_storm, "tlb": tlb}
    if len(sys.argv) < 2 or sys.argv[1] not in ways:
        sys.exit(__doc__)
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 60.0  # noqa: PLR2004  # behind the way and --seconds
    print("begins", flush=True)
    ways[sys.argv[1]](time.monotonic() + seconds)


if __name__ == "__main__":
    main()
