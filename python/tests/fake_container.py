#!/usr/bin/env python3
"""A container in memory, served over a socket in place of a running quell: for tests, and to try programs.

`fake_container.py -- PROGRAM [ARGS]` runs a program, which finds an empty slot for itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import socket
import struct
import subprocess
import sys
import threading

# Generated (layout) by tools/make_contract.py from contract/container.py and kernel.py: change it there.
MAGIC, VERSION = 0x6C6C657571, 1
HEADER = struct.Struct("=Q4I")
SLOT_SIZE = 256
TID, ON_CPU, NS, COUNT = 16, 40, 64, 128
TASK_LEVEL = 3
# End of what is generated.
PEER = struct.Struct("=3i")


def pid_namespace() -> int:
    """The PID namespace of this process, as a slot identifies it."""
    return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 (a link to no path)


class FakeContainer:
    """The container, its server, and writers like the BPF programs.

    Attributes:
        name: The name of the socket, for QUELL_METRICS.
        sent: The descriptor that the server sends; None for none.
        byte: The byte that it sends.
        greet: Give each process that connects a slot, for its first thread.
    """

    def __init__(self, slots: int, *, seals: int = fcntl.F_SEAL_SHRINK, greet: bool = False) -> None:
        """Starts the server."""
        self.slots = slots
        self.fd = os.memfd_create("container", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, slots * SLOT_SIZE)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, seals)
        self.memory = mmap.mmap(self.fd, slots * SLOT_SIZE)
        self.header()
        self.sent: int | None = self.fd
        self.byte = b"q"
        self.greet = greet
        self.name = f"quell-metrics-fake-{os.getpid()}-{self.fd}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(b"\0" + self.name.encode())
        self._listener.listen()
        self._server = threading.Thread(target=self._serve, daemon=True)
        self._server.start()

    def header(self, *, magic: int = MAGIC, version: int = VERSION, slot_size: int = SLOT_SIZE, slots: int = 0) -> None:
        """Writes the header; by default a valid one."""
        HEADER.pack_into(self.memory, 0, magic, version, slot_size, slots or self.slots, os.getpid())

    def give(self, number: int, tid: int, namespace: int) -> None:
        """Gives a slot to a thread."""
        self.begin(number, TASK_LEVEL)
        struct.pack_into("=4I", self.memory, number * SLOT_SIZE + TID, tid, namespace, tid, tid)
        self.end(number, TASK_LEVEL)

    def begin(self, number: int, level: int) -> None:
        """Makes a level's number odd."""
        self._step(number, level)

    def end(self, number: int, level: int) -> None:
        """Makes a level's number even."""
        self._step(number, level)

    def put(self, number: int, offset: int, *values: int) -> None:
        """Writes 64-bit fields of a slot."""
        struct.pack_into(f"={len(values)}Q", self.memory, number * SLOT_SIZE + offset, *values)

    def close(self) -> None:
        """Ends the server."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._server.join()
        self._listener.close()
        self.memory.close()
        os.close(self.fd)

    def _step(self, number: int, level: int) -> None:
        offset = number * SLOT_SIZE + 4 * level
        (value,) = struct.unpack_from("=I", self.memory, offset)
        struct.pack_into("=I", self.memory, offset, (value + 1) & 0xFFFFFFFF)

    def _serve(self) -> None:
        greeted = 0
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                if self.greet:
                    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
                    greeted = greeted % (self.slots - 1) + 1
                    self.give(greeted, PEER.unpack(peer)[0], pid_namespace())
                with contextlib.suppress(BrokenPipeError):  # a reader that does not trust us has left
                    socket.send_fds(connection, [self.byte], [] if self.sent is None else [self.sent])


def main() -> int:
    """Runs a program under a container."""
    command = sys.argv[1:]
    if command[:1] == ["--"]:
        del command[0]
    if not command:
        print(__doc__, file=sys.stderr)
        return 2
    container = FakeContainer(64, greet=True)
    try:
        return subprocess.run(command, env={**os.environ, "QUELL_METRICS": container.name}, check=False).returncode
    finally:
        container.close()


if __name__ == "__main__":
    sys.exit(main())
