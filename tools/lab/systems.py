"""Applies, verifies and reverts mitigations on whole systems: Debian with systemd, and what runs on nodes with it."""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import machine

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

PACKAGES = [
    *("systemd-sysv", "udev", "dbus", "kmod", "procps", "iproute2", "linux-image-amd64", "initramfs-tools"),
    *("grub2-common", "grub-efi-amd64-bin", "tuned", "irqbalance", "munge", "slurmd", "slurmctld", "slurm-client"),
]
UNITS = ["quell-recover.service", "quell-tune@.service"]
# What only the guest of the same name starts.
SERVICES = ["tuned", "irqbalance", "munge", "slurmd", "slurmctld"]
LAB = """[Unit]
Description=The check of this guest
After=basic.target
[Service]
ExecStart=/bin/bash /lab/main.sh
[Install]
WantedBy=multi-user.target
"""
MAIN = """. /lab/system.sh
. /lab/system-$(sed 's/.*lab.system=\\([a-z]*\\).*/\\1/' /proc/cmdline).sh
say END
sleep inf
"""
# The first boot loader's part that is not on the guest's disk.
GRUB = """search --no-floppy --set=root --file /lab/system.sh
configfile /boot/grub/grub.cfg
"""
OVMF = "/usr/share/ovmf/OVMF.fd"


@dataclass
class System:
    """A guest: its topology, and what it is to show."""

    about: str
    smp: str = "4"
    more: list[str] = field(default_factory=list)
    services: list[str] = field(default_factory=list)


def two_nodes() -> list[str]:
    """Two NUMA nodes of eight CPUs each."""
    words = []
    for node, cpus in enumerate(["0-7", "8-15"]):
        words += ["-object", f"memory-backend-ram,size=1G,id=m{node}", "-numa", f"node,cpus={cpus},memdev=m{node}"]
    return words


SYSTEMS = {
    "cgroup": System("systemd, cgroup v2 with an isolated partition, CPU hotplug"),
    "topology": System("16 CPUs: two sockets, two NUMA nodes, SMT", "16,sockets=2,cores=4,threads=2", two_nodes()),
    "tuned": System("TuneD's daemon", services=["tuned"]),
    "irqbalance": System("irqbalance", services=["irqbalance"]),
    "slurm": System("Slurm with core specialisation", services=["munge", "slurmctld", "slurmd"]),
    "boot": System("GRUB, reboots, quell's units, a power cut"),
}


def root(folder: Path) -> Path:
    """Debian's packages, unpacked and configured; made once."""
    tree = folder / "debian"
    if not (tree / "usr").exists():
        print("makes a Debian root, which takes some minutes", flush=True)
        packages = ",".join(PACKAGES)
        machine.run("mmdebstrap", "--variant=minbase", f"--include={packages}", "bookworm", tree)
    return tree


def disk(folder: Path, quell: Path) -> Path:
    """The disk that all guests begin with."""
    tree = root(folder)
    # Its own libraries stay: the packages need them.
    machine.put_program(quell, tree, "usr/bin/quell", replace=False)
    for unit in UNITS:
        machine.put(machine.ROOT / "packaging" / "systemd" / unit, tree, f"etc/systemd/system/{unit}")
    shutil.rmtree(tree / "lab", ignore_errors=True)
    for script in [machine.GUEST / "system.sh", *(machine.GUEST / f"system-{name}.sh" for name in SYSTEMS)]:
        machine.put(script, tree, f"lab/{script.name}")
    (tree / "lab" / "main.sh").write_text(MAIN)
    (tree / "boot" / "grub").mkdir(exist_ok=True)
    system = tree / "etc" / "systemd" / "system"
    (system / "lab.service").write_text(LAB)
    wanted = system / "multi-user.target.wants"
    wanted.mkdir(parents=True, exist_ok=True)
    for name in SERVICES:
        (wanted / f"{name}.service").unlink(missing_ok=True)
    # A login there would take the console from the checks.
    getty = system / "serial-getty@ttyS0.service"
    if not getty.is_symlink():
        getty.symlink_to("/dev/null")
    lab = wanted / "lab.service"
    if not lab.is_symlink():
        lab.symlink_to("/etc/systemd/system/lab.service")
    (tree / "etc" / "hostname").write_text("lab\n")
    (tree / "etc" / "hosts").write_text("127.0.0.1 localhost\n127.0.1.1 lab\n")
    (tree / "etc" / "fstab").write_text("/dev/vda / ext4 rw 0 1\n")
    (tree / "etc" / "machine-id").write_text("00000000000000000000000000000001\n")
    (tree / "etc" / "default" / "grub").write_text(
        'GRUB_TIMEOUT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="console=ttyS0 lab.system=boot"\n'
    )
    image = folder / "debian.img"
    machine.make_disk(tree, image, "3G")
    return image


def boot_loader(folder: Path) -> list[str]:
    """QEMU's options for a start by UEFI and GRUB, which reads the menu on the guest's disk."""
    config = folder / "grub.cfg"
    config.write_text(GRUB)
    loader = folder / "esp" / "EFI" / "BOOT" / "BOOTX64.EFI"
    loader.parent.mkdir(parents=True, exist_ok=True)
    machine.run("grub-mkstandalone", "-O", "x86_64-efi", "-o", loader, f"boot/grub/grub.cfg={config}")
    return [
        "-bios",
        OVMF,
        "-drive",
        f"file=fat:{folder / 'esp'},format=raw,if=none,id=esp,readonly=on",
        "-device",
        "virtio-blk,drive=esp",
    ]


def one(name: str, given: argparse.Namespace, folder: Path, base: Path) -> int:
    """Runs one guest to its end; returns how many of its checks failed."""
    system = SYSTEMS[name]
    kept = folder / f"{name}.qcow2"
    kept.unlink(missing_ok=True)
    machine.run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", base, kept)
    boot = folder / "debian" / "boot"
    kernel = next(boot.glob("vmlinuz-*"))
    # An Intel CPU shows its siblings to the guest; that of `max` alone is AMD's, which does not by emulation.
    by_grub = machine.Boot(
        kept, accelerator=given.accelerator, cpu="max,vendor=GenuineIntel", smp=system.smp, memory="2G"
    )
    by_grub.more = system.more
    by_grub.silent_s = 300
    by_grub.log = folder / f"{name}.log"
    by_grub.log.unlink(missing_ok=True)
    direct = dataclasses.replace(by_grub, kernel=kernel, first_root=next(boot.glob("initrd.img-*")))
    direct.words = f"root=/dev/vda rw lab.system={name} " + " ".join(
        f"systemd.wants={each}.service" for each in system.services
    )
    print(f"{name}: {system.about}; kernel {kernel.name.removeprefix('vmlinuz-')}", flush=True)
    failed = 0
    guest = machine.Guest(direct)
    while True:
        try:
            reported = guest.until("END", "CUT", "BAD", "OK")
        except machine.SilentError as silent:
            print(f"  BAD {silent}", flush=True)
            return failed + 1
        print(f"  {reported[-1]}", flush=True)
        failed += reported[-1].startswith("BAD")
        if reported[-1].startswith(("END", "CUT")):
            guest.cut()
            if reported[-1].startswith("END"):
                break
            by_grub.more = boot_loader(folder)
            guest = machine.Guest(by_grub)
    return failed


def systems(given: argparse.Namespace, folder: Path) -> int:
    """Runs the guests one after the other."""
    base = disk(folder, given.quell)
    failed = {name: one(name, given, folder, base) for name in machine.chosen(given.guest, SYSTEMS)}
    for name, count in failed.items():
        print(f"{name}: {count or 'no'} failed checks")
    return sum(failed.values())
