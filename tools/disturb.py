#!/usr/bin/env python3
"""Computes on CPU 1, disturbed in a known way: `disturb.py compute|timer-storm|tlb SECONDS`. For tools/pictures.py."""

from __future__ import annotations

import hashlib
import mmap
import os
import signal
import sys
import threading
import time


def compute(until: float) -> None:
    """Computes on CPU 1, without deliberate disturbance."""
    os.sched_setaffinity(0, {1})
    data = bytes(1 << 20)
    while time.monotonic() < until:
        hashlib.sha256(data)


def timer_storm(until: float) -> None:
    """Computes, and is interrupted by a timer every 200 us."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 200e-6, 200e-6)
    compute(until)
    signal.setitimer(signal.ITIMER_REAL, 0)


def tlb(until: float) -> None:
    """Computes, while a thread on CPU 0 maps and unmaps memory of the same address space."""
    threading.Thread(target=compute, args=(until,)).start()
    os.sched_setaffinity(0, {0})
    while time.monotonic() < until:
        with mmap.mmap(-1, 1 << 16) as memory:
            memory[0] = 1
        time.sleep(0.0005)


WAYS = {"compute": compute, "timer-storm": timer_storm, "tlb": tlb}


def main() -> None:
    """Runs the chosen disturbance for the given time."""
    try:
        way, seconds = WAYS[sys.argv[1]], float(sys.argv[2])
    except (IndexError, KeyError, ValueError):
        sys.exit(__doc__)
    way(time.monotonic() + seconds)


if __name__ == "__main__":
    main()
