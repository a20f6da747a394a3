"""Runs the recorder and the probe on Debian's kernels, old and new, and makes the table of what each has."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import machine
from debian import Suite

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

SUITES = ["bullseye", "bookworm", "trixie", "sid"]
# QEMU's program and machine, and the console, by Debian's name of the architecture.
ARCHITECTURES = {
    "amd64": ("qemu-system-x86_64", [], "ttyS0"),
    "arm64": ("qemu-system-aarch64", ["-M", "virt"], "ttyAMA0"),
}
KINDS = ["tick", "softirq", "irq", "ipi", "task", "work", "fault"]


@dataclass
class Node:
    """A guest: a suite's kernel, and what is particular about it."""

    suite: str
    about: str = ""
    smp: str = "2"
    words: str = ""
    # Whether the kernel refuses the recorder, for a reason that quell names.
    refuses: bool = False
    arch: str = "amd64"
    # Maximum time without a line on the console, in seconds.
    silent_s: int = 120


NODES = {
    **{suite: Node(suite) for suite in SUITES},
    "one-cpu": Node("bookworm", "one CPU", smp="1"),
    "16-cpus": Node(
        "bookworm",
        "two sockets, 16 CPUs with SMT",
        smp="16,sockets=2,cores=4,threads=2",
        words="lab.cpus=0,8",
        # Emulated on few real CPUs, 16 take minutes to come up.
        silent_s=1200,
    ),
    "no-btf": Node("bookworm", "without BTF", words="lab.hide=btf", refuses=True),
    "lockdown": Node("bookworm", "lockdown=confidentiality", words="lockdown=confidentiality", refuses=True),
    "cgroup-v1": Node("bookworm", "cgroup v1", words="lab.cgroup=1"),
    # Programs on arm64 have the atomic operations that the recorder's need from Linux 5.18 on.
    **{f"{suite}-arm64": Node(suite, "arm64", arch="arm64", refuses=suite == "bullseye") for suite in SUITES},
}


def busybox_of(folder: Path, node: Node) -> Path | None:
    """The busybox of another architecture; none for this host's."""
    if node.arch == "amd64":
        return None
    package = Suite("bookworm", node.arch, folder).download("busybox-static")
    unpacked = folder / f"busybox-{node.arch}"
    machine.run("dpkg-deb", "-x", package, unpacked)
    return unpacked / "bin" / "busybox"


def tree_of(folder: Path, node: Node, quell: Path) -> Path:
    """A small system: busybox, quell, and the script that runs."""
    tree = folder / f"root-{node.arch}"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("dev", "proc", "sys", "tmp", "run", "etc", "var/lib"):
        (tree / name).mkdir(parents=True)
    machine.put_shell(tree, busybox_of(folder, node))
    # The program of another architecture is static.
    put = machine.put_program if node.arch == "amd64" else machine.put
    put(quell, tree, "usr/bin/quell")
    machine.put(machine.GUEST / "kernels.sh", tree, "main.sh")
    return tree


def reports(lines: list[str]) -> dict[str, Any]:
    """What a guest reports: `NAME VALUE`, and documents as `NAME+ BASE64`, in parts."""
    found: dict[str, Any] = {}
    parts: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(" ")
        if name.endswith("+"):
            parts[name[:-1]] = parts.get(name[:-1], "") + value
        else:
            found[name] = value
    for name, text in parts.items():
        found[name] = json.loads(gzip.decompress(base64.b64decode(text)) or b"null")
    return found


def row(node: Node, kernel: machine.Kernel, found: dict[str, Any]) -> tuple[list[str], int]:
    """A line of the table, and how many things failed."""
    recording = found.get("kernel-show")
    wrong = 0
    wrong += found.get("probe") != "0"
    # Without types or with lockdown there are no sources, but the probe records.
    wrong += found.get("both") != "0"
    if recording:
        kinds = {source["source"].partition(":")[0] for source in recording["sources"]}
        seen = " ".join(kind for kind in KINDS if kind in kinds)
        lost = recording["lost"]
        missing = "; ".join(text for text in recording["warnings"] if ": " in text) or "none"
    else:
        seen, lost, missing = "refused", "", found.get("kernel-error", "")
        # These are to be refused, with a reason.
        wrong += not (node.refuses and missing)
    return [
        kernel.version,
        node.about or "as it comes",
        "runs" if found.get("probe") == "0" else found.get("probe-error", "fails"),
        seen,
        str(lost),
        missing,
    ], wrong


def look(node: Node, quell: Path, folder: Path, boot: machine.Boot) -> tuple[machine.Kernel, dict[str, Any]]:
    """Boots a guest as `boot` says, with its disk and kernel; returns the kernel and what the guest reports."""
    kernel = Suite(node.suite, node.arch, folder).kernel()
    machine.make_disk(tree_of(folder, node, quell), boot.disk, "1G")
    boot.kernel, boot.first_root = kernel.image, machine.first_root(folder, kernel, busybox_of(folder, node))
    boot.words, boot.smp, boot.silent_s = node.words, node.smp, node.silent_s
    boot.program, boot.more, boot.console = ARCHITECTURES[node.arch]
    guest = machine.Guest(boot)
    try:
        return kernel, reports(guest.until("END"))
    finally:
        guest.cut()


def kernels(given: argparse.Namespace, folder: Path) -> int:
    """Boots each guest, and prints the table; returns how many guests failed."""
    rows = []
    wrong = 0
    can_run = [name for name, node in NODES.items() if node.arch == "amd64" or given.quell_arm64]
    for name in machine.chosen(given.guest, can_run):
        node = NODES[name]
        quell = given.quell if node.arch == "amd64" else given.quell_arm64
        boot = machine.Boot(folder / "disk.img", accelerator=given.accelerator, memory="2G")
        boot.log = folder / f"{name}.log"
        boot.log.unlink(missing_ok=True)
        try:
            kernel, found = look(node, quell, folder, boot)
        except machine.SilentError as silent:
            kernel, found = Suite(node.suite, node.arch, folder).kernel(), {"probe-error": "silent"}
            print(silent, flush=True)
        cells, failed = row(node, kernel, found)
        wrong += failed
        rows.append(cells)
        print(f"{name}: {' | '.join(cells)}", flush=True)
    print("| kernel | guest | probe | kinds of sources seen | lost | missing |\n|---|---|---|---|---|---|")
    for cells in rows:
        print(f"| {' | '.join(cells)} |")
    return wrong
