"""Reads the metric container: the kernel noise that each thread under `quell record -- CMD` suffered.

The container is memory that a running quell's BPF programs write and all other processes can only read.
`quell_metrics.h` of crates/kernel is its layout, and `quell_metrics_read.h` the same reader in C. Needs the standard
library and Linux.

    from quell.metrics import Metrics

    with Metrics.open() as metrics:
        print(metrics.read())                # the calling thread
        for slot in metrics.threads():       # every thread that is followed
            print(slot.read())
"""

from __future__ import annotations

import enum
import mmap
import os
import socket
import stat
import struct
import threading
from dataclasses import dataclass
from fcntl import fcntl
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

# Generated (layout) by tools/make_contract.py from contract/container.py and kernel.py: change it there.
MAGIC = 0x6C6C657571  # "quell"
VERSION = 1
SLOT_SIZE = 256
MOST_SLOTS = 1 << 22
VARIABLE = "QUELL_METRICS"
DEFAULT_NAME = "quell-metrics"

_HEADER = struct.Struct("=Q4I")
_LEVELS = struct.Struct("=4I")
# From the levels to the counts; what follows is the kernel side's own.
_SLOT = struct.Struct("=4I4I4Q8Q8Q")
# Where in what that unpacks the thread's own fields are, the times and the counts.
_THREAD, _NS, _COUNT = slice(4, 12), slice(12, 20), slice(20, 28)
_TID_WORD = 4
# End of what is generated.
_WORDS = SLOT_SIZE // 4

TIMEOUT_S = 5.0
TRIES = 1000

_GET_SEALS = 1024 + 10  # F_GET_SEALS, which Python defines only if its C library did
_SEAL_SHRINK = 2
_PEER = struct.Struct("=3i")


class MetricsError(Exception):
    """Why the container, or a slot of it, cannot be read."""


class SlotBusyError(MetricsError):
    """A writer on another CPU was stopped in the middle of its write; read again later."""


class ThreadEndedError(MetricsError):
    """The slot is free: its thread has ended."""


class Kind(enum.IntEnum):
    """What takes a CPU from a thread, in the order of the container."""

    # Generated (kinds) by tools/make_contract.py from contract/kernel.py: change it there.
    NMI = 0
    TICK = 1
    IRQ = 2
    IPI = 3
    SOFTIRQ = 4
    TASK = 5
    FAULT = 6
    STEAL = 7
    # End of what is generated.


@dataclass(frozen=True)
class Reading:
    """What one thread has suffered since quell began to follow it, as one consistent snapshot.

    Attributes:
        tid: The thread's id in its own PID namespace.
        pid_namespace: The inode number of that namespace.
        global_tid: The thread's id in the first PID namespace.
        global_pid: The id of its process, likewise.
        start_ns: When quell began to follow it (CLOCK_MONOTONIC).
        on_cpu_ns: Its time on a CPU up to its last switch, interrupts included.
        on_since_ns: When it came onto its CPU (CLOCK_MONOTONIC); 0 while it is not on one.
        run_delay_ns: Its time runnable and waiting, by the kernel's own accounting.
        ns: Net time taken, per `Kind`.
        count: How often, per `Kind`.
    """

    tid: int
    pid_namespace: int
    global_tid: int
    global_pid: int
    start_ns: int
    on_cpu_ns: int
    on_since_ns: int
    run_delay_ns: int
    ns: tuple[int, ...]
    count: tuple[int, ...]


class _Identity(NamedTuple):
    tid: int
    pid_namespace: int


class Slot:
    """One thread's place in the container."""

    def __init__(self, metrics: Metrics, number: int) -> None:
        self._metrics = metrics
        self.number = number

    def read(self) -> Reading:
        """What the thread has suffered so far.

        Raises:
            ThreadEndedError: The slot is free.
            SlotBusyError: Its writer is stopped in the middle of a write.
        """
        found = self._metrics._snapshot(self.number)  # noqa: SLF001 (the two classes are one reader)
        if found.tid == 0:
            raise ThreadEndedError(f"slot {self.number} is free: its thread has ended")
        return found


class Metrics:
    """The container of a running quell. Any number of threads may share one; a forked child may continue to use it."""

    def __init__(self, fd: int) -> None:
        """Maps the container behind a descriptor, which the caller still owns and may close."""
        _check_size(fd, SLOT_SIZE)
        # The first page has the size, which a map's descriptor does not; a file must not be mapped beyond its end.
        page = min(mmap.PAGESIZE, os.fstat(fd).st_size or mmap.PAGESIZE)
        with mmap.mmap(fd, page, mmap.MAP_SHARED, mmap.PROT_READ) as first:
            header = _HEADER.unpack_from(first)
        slots = _check_header(header)
        _check_size(fd, slots * SLOT_SIZE)
        try:
            self._map = mmap.mmap(fd, slots * SLOT_SIZE, mmap.MAP_SHARED, mmap.PROT_READ)
        except (OSError, ValueError) as error:
            raise MetricsError(f"the container is smaller than the {slots} slots that it claims: {error}") from error
        self.recorder_pid: int = header[4]
        self._known: dict[_Identity, int] = {}

    @classmethod
    def open(cls, name: str | None = None) -> Metrics:
        """Requests the container from the running quell.

        Args:
            name: The name of quell's socket in the abstract namespace. By default the variable QUELL_METRICS, or else
                `quell-metrics`.
        """
        name = name or os.environ.get(VARIABLE) or DEFAULT_NAME
        fd = _receive(name)
        try:
            return cls(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Unmaps the container; its slots can no longer be read."""
        self._map.close()

    def __enter__(self) -> Metrics:  # noqa: PYI034 (`Self` is of Python 3.11)
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it."""
        self.close()

    def thread(self, tid: int | None = None) -> Slot | None:
        """The slot of a thread of this PID namespace, by default the calling one; None if it has none."""
        wanted = _Identity(tid or threading.get_native_id(), os.stat("/proc/self/ns/pid").st_ino)  # noqa: PTH116 (hot)
        number = self._known.get(wanted)
        if number is not None and self._belongs(number, wanted):
            return Slot(self, number)
        for number, found in self._tids():
            if found == wanted.tid and self._belongs(number, wanted):
                self._known[wanted] = number
                return Slot(self, number)
        return None

    def read(self, tid: int | None = None) -> Reading:
        """What a thread of this PID namespace, by default the calling one, has suffered so far."""
        slot = self.thread(tid)
        if slot is None:
            who = "this thread" if tid is None else f"thread {tid}"
            raise MetricsError(f"{who} is not under watch: start the program with `quell record -- PROGRAM`")
        return slot.read()

    def threads(self) -> Iterator[Slot]:
        """The slots in use now, of all PID namespaces. A thread may end before its slot is read."""
        for number, _ in self._tids():
            yield Slot(self, number)

    def _tids(self) -> list[tuple[int, int]]:
        """Number and tid of each slot in use, unchecked."""
        with memoryview(self._map) as raw, raw.cast("I") as words, words[_WORDS + _TID_WORD :: _WORDS] as column:
            return [(number, tid) for number, tid in enumerate(column.tolist(), 1) if tid]

    def _belongs(self, number: int, wanted: _Identity) -> bool:
        try:
            found = self._snapshot(number)
        except SlotBusyError:
            return False
        return (found.tid, found.pid_namespace) == wanted

    def _snapshot(self, number: int) -> Reading:
        """A slot's fields as one consistent snapshot: no level was writing before, and none has written since.

        The operations between the loads must keep a weakly ordered processor from reordering them. Python has no
        fence, but releasing and acquiring a lock is one: no load before the release moves after it, and none after
        the acquisition moves before it.
        """
        start = number * SLOT_SIZE
        fence = threading.Lock()
        fence.acquire()
        for _ in range(TRIES):
            before = _LEVELS.unpack_from(self._map, start)
            fence.release()
            fence.acquire()
            fields = _SLOT.unpack_from(self._map, start)
            fence.release()
            fence.acquire()
            after = _LEVELS.unpack_from(self._map, start)
            if before == after and not any(level & 1 for level in before):
                return Reading(*fields[_THREAD], ns=fields[_NS], count=fields[_COUNT])
        raise SlotBusyError(f"slot {number} is being written by a CPU that is held up; read again later")


def _receive(name: str) -> int:
    """The descriptor that a running quell sends to a process that may read; it is closed on exec."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(b"\0" + os.fsencode(name))
            _check_peer(connection, name)
            received, fds, _, _ = socket.recv_fds(connection, 1, 1, socket.MSG_CMSG_CLOEXEC)
        except ConnectionRefusedError as error:
            advice = "start the program with `quell record -- PROGRAM`, in the same network namespace"
            raise MetricsError(f"no quell answers under the name {name!r}: {advice}") from error
        except OSError as error:
            raise MetricsError(f"cannot get the container of {name!r}: {error}") from error
    if received == b"n" and not fds:
        advice = "start the program with `quell record -- PROGRAM`"
        raise MetricsError(
            f"{name!r} gives its container to its own user, root, and the processes that it follows: {advice}"
        )
    if not received or len(fds) != 1:
        raise MetricsError(f"{name!r} sent no container: check that {VARIABLE} names a running quell")
    return fds[0]


def _check_peer(connection: socket.socket, name: str) -> None:
    """Checks the peer, since any process can bind an abstract name: only root and the reader's own user are trusted."""
    _, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if uid not in (0, os.geteuid()):
        raise MetricsError(f"{name!r} is offered by user {uid} instead of root: quell does not trust it")


def _check_header(header: tuple[int, ...]) -> int:
    """Checks the header, and returns the number of slots."""
    magic, version, slot_size, slots, _ = header
    if magic != MAGIC:
        raise MetricsError("the received memory is not a metric container")
    if version != VERSION:
        raise MetricsError(f"the container is of version {version}, and this reader knows {VERSION}")
    if slot_size != SLOT_SIZE or not 0 < slots <= MOST_SLOTS:
        raise MetricsError(f"the container is broken: {slots} slots of {slot_size} bytes")
    return slots


def _seals(fd: int) -> int | None:
    """The seals of a memfd; None for anything else."""
    try:
        return fcntl(fd, _GET_SEALS)
    except OSError:
        return None


def _check_size(fd: int, size: int) -> None:
    """Rejects a file that could be truncated under the reader, which SIGBUS would end. A BPF map never shrinks."""
    file = os.fstat(fd)
    seals = _seals(fd)
    if seals is None:
        if stat.S_ISREG(file.st_mode) and file.st_size > 0:
            raise MetricsError("the received descriptor is an ordinary file, not a metric container")
    elif not seals & _SEAL_SHRINK or file.st_size < size:
        raise MetricsError(
            f"the received descriptor is {file.st_size} bytes of memory that may shrink, not a metric container"
        )
