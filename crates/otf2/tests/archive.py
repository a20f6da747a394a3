"""Writes an archive as other tools write it: `archive.py FOLDER comm|locations|offsets`."""

import sys

import _otf2
import otf2
from otf2.enums import (
    GroupFlag,
    GroupType,
    LocationType,
    MetricMode,
    Paradigm,
    Type,
)

folder, style = sys.argv[1:]
resolution = 1_000_000_000 if style == "offsets" else 2_500_000

with otf2.writer.open(folder, timer_resolution=resolution) as trace:
    d = trace.definitions
    node = d.system_tree_node("n1", class_name="node")
    groups = [d.location_group(f"process {i}", system_tree_parent=node) for i in range(2)]
    # The ranks are in the reverse order of their processes.
    first, second = d.location("second", group=groups[0]), d.location("first", group=groups[1])
    stream = d.location("gpu", group=groups[0], type=LocationType.ACCELERATOR_STREAM)
    mpi = {"paradigm": Paradigm.MPI}
    if style == "locations":
        world = d.group("world", GroupType.LOCATIONS, members=(second, first), **mpi)
        reverse = world
    else:
        d.group("all", GroupType.COMM_LOCATIONS, members=(second, first), **mpi)
        world = d.group("world", GroupType.COMM_GROUP, members=(0, 1), **mpi)
        flags = GroupFlag.GLOBAL_MEMBERS
        reverse = d.group("reverse", GroupType.COMM_GROUP, members=(1, 0), group_flags=flags, **mpi)
    comm = d.comm("MPI_COMM_WORLD", world)
    other = d.comm("reverse", reverse)
    threads = d.group("team", GroupType.LOCATIONS, members=(stream,), paradigm=Paradigm.OPENMP)
    d.comm("team", threads)
    send = d.region("MPI_Send", paradigm=Paradigm.MPI, source_file="a.c", begin_line_number=7)
    work = d.region("work", description="loop")
    ticks = d.metric_member("quell.noise.tick", unit="us", value_type=Type.DOUBLE)
    irqs = d.metric_member("quell.noise.irq", unit="ns", value_type=Type.UINT64)
    cache = d.metric_member("PAPI_L1_DCM", unit="#", value_type=Type.INT64)
    steal = d.metric_member(
        "quell.noise.steal", unit="ns", exponent=1, value_type=Type.INT64, metric_mode=MetricMode.RELATIVE_POINT
    )
    both = d.metric_class((cache, ticks, irqs))
    steals = d.metric_class((steal,))
    of_second = d.metric_instance(steals, recorder=second, scope=second)
    of_first = d.metric_instance(steals, recorder=second, scope=first)

    to = trace.event_writer_from_location(second)
    to.enter(100, work)
    to.enter(200, send)
    to.metric(200, both, (9, 1.5, (1 << 53) + 1))
    to.metric(200, of_second, (4,))
    to.metric(200, of_first, (1000,))
    to.mpi_send(200, receiver=1, communicator=comm, msg_tag=5, msg_length=6)
    to.mpi_send(200, receiver=1, communicator=other, msg_tag=5, msg_length=6)
    to.metric(300, both, (9, 1.5, (1 << 53) + 2))
    to.leave(300, send)
    to.metric(300, of_second, (1,))
    to.leave(1 << 62, work)
    to = trace.event_writer_from_location(first)
    to.enter(150, work)
    to.leave(250, work)
    to = trace.event_writer_from_location(stream)
    to.enter(150, work)
    if style == "offsets":
        local = _otf2.Archive_GetDefWriter(trace.handle, second._ref)  # noqa: SLF001 (the module has no other way)
        _otf2.DefWriter_WriteClockOffset(local, 100, 1000, 0.0)
        _otf2.DefWriter_WriteClockOffset(local, 300, 1200, 0.0)
        # Region 0 of this location is the archive's 1, and vice versa.
        swap = _otf2.IdMap_CreateFromUint64Array([1, 0], False)  # noqa: FBT003 (the module's order)
        _otf2.DefWriter_WriteMappingTable(local, _otf2.MAPPING_REGION, swap)
