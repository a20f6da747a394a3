"""Cuts the power at each step of `quell tune apply` and `quell tune revert`."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import machine
from debian import Suite

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def tree_of(folder: Path, quell: Path) -> Path:
    """A small system: busybox, quell, the configuration that it may write to, and the script that runs."""
    tree = folder / "root"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("dev", "proc", "sys", "tmp", "run", "etc/sysctl.d", "etc/default/grub.d", "var/lib", "boot/grub"):
        (tree / name).mkdir(parents=True)
    machine.put_shell(tree)
    machine.put_program(quell, tree, "usr/bin/quell")
    machine.put(machine.GUEST / "power.sh", tree, "main.sh")
    (tree / "etc" / "hostname").write_text("lab\n")
    (tree / "etc" / "default" / "grub").write_text('GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
    return tree


def power(given: argparse.Namespace, folder: Path) -> int:
    """Cuts the power at each step of an apply, and of a revert after a whole apply; returns how often that did harm.

    The disk is kept. After each cut the next boot recovers as quell-recover.service does, and everything must be as it
    was, byte by byte. If the commit of the apply was on disk, the plan must be in force before that, and `tune revert`
    must restore everything.
    """
    kernel = Suite("bookworm", "amd64", folder).kernel()
    disk = folder / "disk.img"
    machine.make_disk(tree_of(folder, given.quell), disk, "1G")
    first_root = machine.first_root(folder, kernel)
    before: list[str] | None = None
    cuts = committed = wrong = 0
    # At step 0 nothing is applied: it makes the plan.
    what, step = given.first, 0
    while True:
        words = f"lab.what={what} lab.step={step}"
        guest = machine.Guest(machine.Boot(disk, kernel.image, first_root, words, accelerator=given.accelerator))
        reported = guest.until("READY")
        state = [line for line in reported if line.startswith(("IMAGE", "OPEN"))]
        if before is None:
            before = state
        committed += "COMMIT whole" in reported
        is_torn = "COMMIT torn" in reported
        if is_torn:
            print(f"after the cut at step {step - 1} of {what}: committed, and not in force as a whole", flush=True)
        if state != before or is_torn:
            wrong += 1
            print(*(line for line in guest.console if "JOURNAL" in line), sep="\n")
            print(f"after the cut at step {step - 1} of {what}:", *(set(state) ^ set(before)), sep="\n  ", flush=True)
        if what == "end":
            break
        last = guest.until("CUT")[-1]
        guest.cut()
        cuts += 1
        print(f"{what} {step}: {last}", flush=True)
        # The step was beyond the last one: it ended as usual.
        if last.endswith(" 0") and step > 0:
            what, step = ("revert", 1) if what == "apply" else ("end", 0)
        else:
            step += 1
    guest.cut()
    if given.first == "apply" and not committed:
        wrong += 1
        print("no cut of apply came after its commit, so that was not tried", flush=True)
    print(
        f"kernel {kernel.version}: {cuts} power cuts, {committed} of them after a commit, "
        f"{wrong} of them with something out of place"
    )
    return wrong
