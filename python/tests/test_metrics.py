#!/usr/bin/env python3
"""The Python reader of the metric container, against a server in the test itself: needs no eBPF."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fake_container import COUNT, NS, ON_CPU, TASK_LEVEL, VERSION, FakeContainer, pid_namespace
from quell import metrics as reader
from quell.metrics import Kind, Metrics, MetricsError, SlotBusyError, ThreadEndedError

HARDIRQ_LEVEL = 1
NOBODY = 65534
READS = 20_000


def in_child(work: object) -> int:
    """The exit code of a forked child that runs a function."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def descriptors() -> int:
    """Number of open descriptors of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


class WithContainer(unittest.TestCase):
    def setUp(self) -> None:
        self.container = FakeContainer(100)
        self.addCleanup(self.container.close)
        change = mock.patch.dict(os.environ, {reader.VARIABLE: self.container.name})
        change.start()
        self.addCleanup(change.stop)
        self.tid = threading.get_native_id()

    def open(self) -> Metrics:
        metrics = Metrics.open()
        self.addCleanup(metrics.close)
        return metrics

    def refused(self, words: str) -> None:
        with self.assertRaisesRegex(MetricsError, words):
            Metrics.open()


class Reads(WithContainer):
    def test_what_was_written(self) -> None:
        self.container.put(99, 32, 1, 2, 3, 4)
        self.container.put(99, NS, *range(1000, 1000 + len(Kind)))
        self.container.put(99, COUNT, *range(10, 10 + len(Kind)))
        self.container.give(99, self.tid, pid_namespace())
        open_before = descriptors()
        metrics = self.open()
        reading = metrics.read()
        self.assertEqual((reading.tid, reading.pid_namespace), (self.tid, pid_namespace()))
        times = (reading.start_ns, reading.on_cpu_ns, reading.on_since_ns, reading.run_delay_ns)
        self.assertEqual(times, (1, 2, 3, 4))
        self.assertEqual(
            (reading.ns, reading.count), (tuple(range(1000, 1000 + len(Kind))), tuple(range(10, 10 + len(Kind))))
        )
        self.assertEqual((reading.ns[Kind.STEAL], reading.count[Kind.NMI]), (1007, 10))
        self.assertEqual(metrics.recorder_pid, os.getpid())
        for _ in range(100):  # Python's mapping keeps a descriptor of its own; the socket's server closes its end
            if descriptors() <= open_before + 1:
                return
            time.sleep(0.01)
        self.fail("a descriptor is left")

    def test_every_thread_under_watch(self) -> None:
        for number, tid in ((2, 20), (50, 21), (99, 22)):
            self.container.give(number, tid, 7)
        found = [(slot.number, slot.read().tid) for slot in self.open().threads()]
        self.assertEqual(found, [(2, 20), (50, 21), (99, 22)])

    def test_a_namespace_that_is_not_ours(self) -> None:
        metrics = self.open()
        self.container.give(1, self.tid, 7)
        self.assertIsNone(metrics.thread())
        with self.assertRaisesRegex(MetricsError, "not under watch"):
            metrics.read()
        self.container.give(2, self.tid, pid_namespace())
        self.assertEqual(metrics.thread().number, 2)

    def test_a_thread_that_moved_or_ended(self) -> None:
        metrics = self.open()
        self.container.give(1, 77, pid_namespace())
        slot = metrics.thread(77)
        self.assertEqual(slot.number, 1)
        self.container.give(1, 0, 0)
        self.assertIsNone(metrics.thread(77))
        with self.assertRaises(ThreadEndedError):
            slot.read()
        self.container.give(5, 77, pid_namespace())
        self.assertEqual(metrics.thread(77).number, 5)

    def test_a_forked_child_finds_its_own(self) -> None:
        metrics = self.open()
        self.container.give(1, self.tid, pid_namespace())
        self.assertEqual(metrics.thread().number, 1)

        def child() -> None:
            self.assertIsNone(metrics.thread())
            self.container.give(2, threading.get_native_id(), pid_namespace())
            self.assertEqual(metrics.thread().number, 2)

        self.assertEqual(in_child(child), 0)
        self.assertEqual(metrics.thread().number, 1)

    def test_a_writer_that_is_held_up(self) -> None:
        metrics = self.open()
        self.container.give(1, self.tid, pid_namespace())
        slot = metrics.thread()
        for level in range(4):
            self.container.begin(1, level)
            with self.assertRaises(SlotBusyError):
                slot.read()
            self.container.end(1, level)
            slot.read()


class Tears(WithContainer):
    """Writers in another process; a high level writes in the middle of a low one's write."""

    def write(self) -> None:
        deadline = time.monotonic() + 60
        turn = 0
        while time.monotonic() < deadline:
            turn += 1
            self.container.begin(1, TASK_LEVEL)
            self.container.put(1, ON_CPU, 7 * turn)
            if turn % 2:
                self.container.begin(1, HARDIRQ_LEVEL)
                self.container.put(1, NS + 8, 1000 * turn)
                self.container.put(1, COUNT + 8, turn)
                self.container.end(1, HARDIRQ_LEVEL)
            self.container.put(1, COUNT + 40, turn)
            self.container.end(1, TASK_LEVEL)
            for _ in range(20):
                pass

    @staticmethod
    def whole(reading: reader.Reading) -> bool:
        tick = reading.ns[Kind.TICK] == 1000 * reading.count[Kind.TICK]
        return tick and reading.on_cpu_ns == 7 * reading.count[Kind.TASK]

    def blindly(self, metrics: Metrics) -> reader.Reading:
        """The slot, read without checking its levels."""
        fields = reader._SLOT.unpack_from(metrics._map, reader.SLOT_SIZE)
        return reader.Reading(*fields[reader._THREAD], ns=fields[reader._NS], count=fields[reader._COUNT])

    def test_reads_are_whole(self) -> None:
        self.container.give(1, self.tid, pid_namespace())
        metrics = self.open()
        slot = metrics.thread()
        child = os.fork()
        if child == 0:
            self.write()
            os._exit(0)
        try:
            read = 0
            for _ in range(2 * READS):
                with contextlib.suppress(SlotBusyError):
                    self.assertTrue(self.whole(slot.read()))
                    read += 1
            self.assertGreater(read, READS)
            self.assertGreater(slot.read().count[Kind.TASK], 1)
            blind = (self.whole(self.blindly(metrics)) for _ in range(50 * READS))
            self.assertFalse(all(blind), "reads that do not look at the levels must tear, or this proves nothing")
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)


class Refusals(WithContainer):
    def test_headers(self) -> None:
        for words, change in (
            ("not a metric container", {"magic": 1}),
            (f"version {VERSION + 1}, and this reader knows {VERSION}", {"version": VERSION + 1}),
            ("broken", {"slot_size": 128}),
            ("may shrink|smaller", {"slots": 101}),
            ("broken", {"slots": 0xFFFFFFFF}),
        ):
            self.container.header(**change)
            self.refused(words)
        self.container.header()
        self.open()

    def test_what_could_be_cut_short(self) -> None:
        unsealed = FakeContainer(100, seals=0)
        self.addCleanup(unsealed.close)
        self.container.sent = unsealed.fd
        self.refused("may shrink")
        with tempfile.TemporaryFile() as file:
            file.write(self.container.memory[:])
            file.flush()
            self.container.sent = file.fileno()
            self.refused("ordinary file|may shrink")

    def test_no_container(self) -> None:
        self.container.sent = None
        self.refused("sent no container")
        self.container.byte = b"n"
        self.refused("its own user, root, and the processes that it follows")
        with mock.patch.dict(os.environ, {reader.VARIABLE: "quell-metrics-absent"}):
            self.refused("quell record -- PROGRAM")

    def test_another_user(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root can try another user")

        def child() -> None:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            Metrics.open().close()  # root's is trusted

        self.assertEqual(in_child(child), 0)
        with mock.patch("os.geteuid", return_value=NOBODY):
            Metrics.open().close()
        peer = reader._PEER.pack(1, NOBODY, NOBODY)
        with mock.patch.object(reader.socket.socket, "getsockopt", return_value=peer):
            self.refused("offered by user 65534")


if __name__ == "__main__":
    unittest.main()
