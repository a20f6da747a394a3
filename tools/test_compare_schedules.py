"""The comparison of schedules finds what differs, and only that."""

import tempfile
import unittest
from pathlib import Path

import compare_schedules

SCHEDULE = """num_ranks 2

rank 0 {
l1: calc 100
l2: send 8b to 1 tag 0
l3: send 16b to 1 tag 2147483648
l3 requires l2
}

rank 1 {
l1: recv 8b from 0 tag 0
l2: recv 16b from 0 tag 2147483648
l3: send 8b to 0
}
"""


class ComparisonTest(unittest.TestCase):
    """Differences between two schedules."""

    def compare(self, other: str) -> list[str]:
        """The differences from the schedule above."""
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, name) for name in ("one.goal", "other.goal")]
            for file, text in zip(files, (SCHEDULE, other)):
                file.write_text(text, encoding="utf-8")
            return compare_schedules.differences(*map(compare_schedules.messages, files))

    def test_work_and_tags_are_not_compared(self) -> None:
        """Only messages are."""
        self.assertEqual(self.compare(SCHEDULE.replace("calc 100", "calc 7").replace("tag 0", "tag 3")), [])
        self.assertEqual(self.compare(SCHEDULE.replace("2147483648", "2147483650")), [])

    def test_sizes_differ(self) -> None:
        """With the ranks and both counts."""
        found = self.compare(SCHEDULE.replace("send 8b to 1", "send 9b to 1"))
        sums = "program: sizes differ: 2 messages, 16 B; 2 messages, 17 B"
        self.assertEqual(found, [sums, "  0 to 1, 8 B: 1; 0", "  0 to 1, 9 B: 0; 1"])

    def test_counts_and_pairs_differ(self) -> None:
        """Each is named."""
        more = self.compare(SCHEDULE.replace("calc 100", "send 8b to 1 tag 0"))
        self.assertTrue(more[0].startswith("program: counts and sizes differ: 2 messages"))
        other = self.compare(SCHEDULE.replace("l3: send 16b to 1", "l3: send 16b to 0"))
        self.assertTrue(other[0].startswith("collectives: pairs of ranks differ: 1 messages, 16 B; 1 messages"))


if __name__ == "__main__":
    unittest.main()
