"""The metric container: memory that quell's BPF programs write, and that any process may read."""

from __future__ import annotations

from contract.kernel import CONTAINER_VERSION, KINDS, LEVELS
from contract.rows import Field, Struct

MAGIC = int.from_bytes(b"quell", "little")
VERSION = CONTAINER_VERSION
# A container of more slots than this (1 GiB) is taken for a broken one.
MOST_SLOTS = 1 << 22
# The variable with the name of quell's socket, and the name that a program tries without it.
VARIABLE = "QUELL_METRICS"
COMMON_NAME = "quell-metrics"

SLOT = Struct(
    "quell_slot",
    (
        Field("level_seq", "u32", len(LEVELS), "QUELL_LEVELS", note="odd while that level writes"),
        Field("tid", "u32", note="as the thread itself sees it (its own PID namespace); 0: the slot is free"),
        Field("pid_namespace", "u32", note="inode number of that namespace, as in /proc/self/ns/pid"),
        Field("global_tid", "u32", note="as the first PID namespace sees it"),
        Field("global_pid", "u32"),
        Field("start_ns", "u64", note="CLOCK_MONOTONIC, when the thread came under watch"),
        Field("on_cpu_ns", "u64", note="time on a CPU up to its last switch, interrupts included"),
        Field("on_since_ns", "u64", note="CLOCK_MONOTONIC, when it came onto its CPU; 0 while it is on none"),
        Field(
            "run_delay_ns",
            "u64",
            note="runnable and waiting since its birth, by the kernel's own account, up to its last switch",
        ),
        Field("ns", "u64", len(KINDS), "QUELL_KINDS", note="cache line 1: net time taken, per kind"),
        Field("count", "u64", len(KINDS), "QUELL_KINDS", note="cache line 2: how often"),
        Field(
            "off_since_ns",
            "u64",
            note="when it lost its CPU while runnable; 0: it did not",
            head="cache line 3: the fields for the kernel side only",
        ),
        Field("fault_since_ns", "u64", note="when the page fault began that it is in; 0: none"),
        Field("fault_base_ns", "u64", note="time that everything else had taken until then"),
        Field("preemptor_pid", "u32"),
        Field("cpu", "u32", note="the CPU it was on last"),
        Field("preemptor", "char", 16),
        Field("comm", "char", 16),
    ),
    aligned=256,
)
# The first field that readers do not know.
NOTES = "off_since_ns"

HEADER = Struct(
    "quell_header",
    (
        Field("magic", "u64"),
        Field("version", "u32"),
        Field("slot_size", "u32"),
        Field("slots", "u32", note="with the header"),
        Field("recorder_pid", "u32"),
    ),
    doc="Slot 0, seen as a header.",
)
