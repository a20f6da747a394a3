"""Writes the four examples of Nataraj et al. 2007, Figure 2, as OTF2 archives: `examples.py FOLDER`.

Needs python3-otf2.
"""

import sys
from pathlib import Path

import otf2
from otf2.enums import CollectiveOp, GroupType, Paradigm, Type

MS = 1_000_000


class Archive:
    """An archive that is being made: ranks, and what happens on them. Times in ms."""

    def __init__(self, trace: otf2.writer.Writer, ranks: int) -> None:
        """Defines what the examples need."""
        d, mpi = trace.definitions, {"paradigm": Paradigm.MPI}
        node = d.system_tree_node("node")
        groups = [d.location_group(f"rank {rank}", system_tree_parent=node) for rank in range(ranks)]
        locations = [d.location("main", group=group) for group in groups]
        d.group("all", GroupType.COMM_LOCATIONS, members=tuple(locations), **mpi)
        world = d.group("world", GroupType.COMM_GROUP, members=tuple(range(ranks)), **mpi)
        self.comm = d.comm("MPI_COMM_WORLD", world)
        self.main = d.region("main")
        self.region = {name: d.region(f"MPI_{name}", **mpi) for name in ("Send", "Recv", "Barrier")}
        member = d.metric_member("quell.noise.timer_interrupt", unit="ns", value_type=Type.UINT64)
        self.noise = d.metric_class((member,))
        self.ranks = [trace.event_writer_from_location(location) for location in locations]
        for rank in self.ranks:
            rank.enter(0, self.main)

    def had(self, rank: int, at: int, noise: int) -> None:
        """The noise of the rank up to now."""
        self.ranks[rank].metric(at * MS, self.noise, (noise * MS,))

    def send(self, rank: int, at: int) -> None:
        """A send to rank 1."""
        to, region = self.ranks[rank], self.region["Send"]
        to.enter(at * MS, region)
        to.mpi_send(at * MS, receiver=1, communicator=self.comm, msg_tag=1, msg_length=64)
        to.leave(at * MS, region)

    def receive(self, rank: int, begin: int, end: int) -> None:
        """A receive from rank 0."""
        to, region = self.ranks[rank], self.region["Recv"]
        to.enter(begin * MS, region)
        to.mpi_recv(end * MS, sender=0, communicator=self.comm, msg_tag=1, msg_length=64)
        to.leave(end * MS, region)

    def barrier(self, rank: int, begin: int, end: int) -> None:
        """A barrier of all."""
        to, region = self.ranks[rank], self.region["Barrier"]
        to.enter(begin * MS, region)
        to.mpi_collective_begin(begin * MS)
        none = 2**32 - 1
        to.mpi_collective_end(
            end * MS, CollectiveOp.BARRIER, communicator=self.comm, root=none, size_sent=0, size_received=0
        )
        to.leave(end * MS, region)

    def end(self, at: int) -> None:
        """All ranks end."""
        for rank in self.ranks:
            rank.leave(at * MS, self.main)


def example_a(to: Archive) -> None:
    """100 ms of the sender's are passed on."""
    to.had(0, 1000, 100)
    to.send(0, 1000)
    to.receive(1, 200, 1000)
    to.end(1500)


def example_b(to: Archive) -> None:
    """70 of the receiver's 100 ms are absorbed, for it waits."""
    to.had(0, 2000, 30)
    to.send(0, 2000)
    to.had(1, 1000, 100)
    to.receive(1, 1000, 2000)
    to.end(2500)


def example_c(to: Archive) -> None:
    """67 of 100 ms are absorbed, although it does not wait."""
    to.had(0, 1000, 30)
    to.send(0, 1000)
    to.had(1, 1001, 100)
    to.receive(1, 1001, 1003)
    to.end(1500)


def example_d(to: Archive) -> None:
    """A barrier."""
    to.had(0, 1000, 100)
    to.barrier(0, 1000, 1003)
    to.had(1, 950, 20)
    to.barrier(1, 950, 1003)
    to.barrier(2, 700, 1003)
    to.end(1100)


EXAMPLES = {"a": (2, example_a), "b": (2, example_b), "c": (2, example_c), "d": (3, example_d)}

for name, (ranks, fill) in EXAMPLES.items():
    with otf2.writer.open(str(Path(sys.argv[1]) / name), timer_resolution=1_000_000_000) as opened:
        fill(Archive(opened, ranks))
