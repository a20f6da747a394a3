"""Compares the messages of two GOAL schedules: compare_schedules.py ONE.goal OTHER.goal.

Messages are equal if as many go from a rank to a rank with as many bytes, by the program and by its collectives each.
Work, order and tags are not compared. Prints how many differ, and the first; the exit code is 0 if none does. `quell
goal convert` makes text of binary schedules.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

RANK = re.compile(r"rank (\d+) \{")
SEND = re.compile(r"(?:\w+: )?send (\d+)b to (\d+)(?: tag (\d+))?")
# `quell track --goal` gives the messages of collectives tags from here.
COLLECTIVES = 1 << 31
MOST_SHOWN = 8


class Message(NamedTuple):
    """What makes messages equal."""

    of: str
    sender: int
    receiver: int
    bytes: int


def messages(schedule: Path) -> Counter[Message]:
    """How often a schedule has each message."""
    found: Counter[Message] = Counter()
    sender = 0
    with schedule.open(encoding="utf-8") as lines:
        for line in lines:
            if rank := RANK.match(line):
                sender = int(rank[1])
            elif send := SEND.match(line):
                of = "collectives" if int(send[3] or 0) >= COLLECTIVES else "program"
                found[Message(of, sender, int(send[2]), int(send[1]))] += 1
    return found


def pairs(found: dict[Message, int]) -> Counter[tuple[int, int]]:
    """How often each pair of ranks has a message."""
    counts: Counter[tuple[int, int]] = Counter()
    for message, count in found.items():
        counts[message.sender, message.receiver] += count
    return counts


def differences(one: Counter[Message], other: Counter[Message]) -> list[str]:
    """What differs, as lines; first the sums."""
    lines = []
    for of in ("program", "collectives"):
        both = [{m: count for m, count in found.items() if m.of == of} for found in (one, other)]
        if both[0] == both[1]:
            continue
        counts = [pairs(found) for found in both]
        if counts[0] == counts[1]:
            what = "sizes"
        elif counts[0].keys() == counts[1].keys():
            what = "counts and sizes"
        else:
            what = "pairs of ranks"
        sums = [f"{sum(b.values()):,} messages, {sum(m.bytes * n for m, n in b.items()):,} B" for b in both]
        lines.append(f"{of}: {what} differ: {sums[0]}; {sums[1]}")
        unequal = sorted(m for m in both[0].keys() | both[1].keys() if both[0].get(m) != both[1].get(m))
        lines += [
            f"  {m.sender} to {m.receiver}, {m.bytes} B: {both[0].get(m, 0)}; {both[1].get(m, 0)}"
            for m in unequal[:MOST_SHOWN]
        ]
        if len(unequal) > MOST_SHOWN:
            lines.append(f"  and {len(unequal) - MOST_SHOWN} more")
    return lines


def main(arguments: list[str]) -> int:
    """Compares two files."""
    try:
        one, other = (messages(Path(argument)) for argument in arguments)
    except ValueError:
        print(__doc__, file=sys.stderr)
        return 2
    found = differences(one, other)
    equal = f"equal: {sum(one.values()):,} messages, {sum(m.bytes * n for m, n in one.items()):,} B"
    print("\n".join(found) or equal)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
