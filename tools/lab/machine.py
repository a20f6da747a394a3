"""Virtual machines, the kernels that they boot, and the disks that they boot from."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parent.parent.parent
GUEST = ROOT / "tools" / "lab" / "guest"
# What it downloads and makes.
KEPT = ROOT / ".x" / "lab"
# The drivers of a virtual disk, in this order, as each needs those before it.
MODULES = ["virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_blk"]
# What every guest needs on the host.
TOOLS = ["qemu-system-x86_64", "busybox", "cpio", "mkfs.ext4"]
# What a line of a guest's console begins with that is for this program.
MARK = "LAB: "


@dataclass
class Kernel:
    """A kernel, unpacked."""

    image: Path
    modules: Path
    version: str


@dataclass
class Boot:
    """How a guest boots."""

    disk: Path
    # The kernel and its first root; none if the disk boots itself.
    kernel: Path | None = None
    first_root: Path | None = None
    words: str = ""
    # QEMU's -accel.
    accelerator: str = "tcg,thread=multi"
    cpu: str = "max"
    smp: str = "2"
    memory: str = "1G"
    more: list[str] = field(default_factory=list)
    # Maximum time without a line on the console, in seconds.
    silent_s: int = 120
    program: str = "qemu-system-x86_64"
    console: str = "ttyS0"
    # What gets the lines of the console.
    log: Path | None = None


def run(*command: object, cwd: Path | None = None) -> str:
    """Runs a command and returns what it prints."""
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, text=True, capture_output=True, cwd=cwd).stdout


class UnknownGuestError(Exception):
    """A guest that a scenario does not have."""


def chosen(asked: list[str] | None, known: Iterable[str]) -> list[str]:
    """The guests that are asked for, or all."""
    names = list(known)
    for name in asked or []:
        if name not in names:
            raise UnknownGuestError(f"no guest {name} here; there are {', '.join(names)}")
    return asked or names


def missing(more: Iterable[str] = ()) -> list[str]:
    """The tools that this host lacks, of those that every guest needs and of some more."""
    return [tool for tool in (*TOOLS, *more) if not shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin")]


def libraries(program: Path) -> list[Path]:
    """The libraries that a program loads."""
    words = run("ldd", program).split()
    return [Path(word) for word in words if word.startswith("/") and Path(word).exists()]


def put(source: Path, tree: Path, name: str) -> None:
    """Copies a file into a tree."""
    target = tree / name.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def put_program(program: Path, tree: Path, name: str, *, replace: bool = True) -> None:
    """Copies a program into a tree, with its libraries, and replaces those that are there or leaves them."""
    put(program, tree, name)
    for library in libraries(program):
        if replace or not (tree / str(library).lstrip("/")).exists():
            put(library, tree, str(library))


def put_shell(tree: Path, busybox: Path | None = None) -> None:
    """Puts busybox into a tree, under all its names: this host's, or another architecture's."""
    own = Path(shutil.which("busybox") or "/bin/busybox")
    put(busybox or own, tree, "bin/busybox")
    for name in run(own, "--list").split():
        link = tree / "bin" / name
        if not link.exists():
            link.symlink_to("busybox")


def first_root(folder: Path, kernel: Kernel, busybox: Path | None = None) -> Path:
    """The initial RAM file system: it loads the disk's driver and continues on the disk. `busybox`: not this host's."""
    tree = folder / "initramfs"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("dev", "proc", "sys", "disk"):
        (tree / name).mkdir(parents=True)
    put_shell(tree, busybox)
    for module in MODULES:
        # What a kernel has no module for, it has built in.
        for found in kernel.modules.rglob(f"{module}.ko*"):
            put(found, tree, f"modules/{found.name}")
            if found.suffix == ".xz":
                run("xz", "-d", tree / "modules" / found.name)
    put(GUEST / "init.sh", tree, "init")
    archive = folder / "initramfs.cpio"
    names = run("find", ".", cwd=tree)
    with archive.open("wb") as out:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], check=True, input=names.encode(), stdout=out, cwd=tree)
    return archive


def make_disk(tree: Path, image: Path, size: str) -> None:
    """Makes a disk with the files of a tree."""
    image.unlink(missing_ok=True)
    run("mkfs.ext4", "-q", "-d", tree, image, size)


class SilentError(Exception):
    """A guest that ended, or was silent, before it reported what was expected."""


class Guest:
    """A virtual machine, until the power is cut."""

    def __init__(self, boot: Boot) -> None:
        command = [boot.program, "-accel", boot.accelerator, "-cpu", boot.cpu, "-m", boot.memory]
        command += ["-smp", boot.smp, "-display", "none", "-monitor", "none", "-serial", "stdio", "-nic", "none"]
        if boot.kernel:
            command += ["-kernel", str(boot.kernel), "-append", f"console={boot.console} quiet panic=-1 {boot.words}"]
            command += ["-no-reboot"]
        if boot.first_root:
            command += ["-initrd", str(boot.first_root)]
        # Only what the guest has flushed is safe, as on a disk with a volatile cache.
        kind = "qcow2" if boot.disk.suffix == ".qcow2" else "raw"
        command += ["-drive", f"file={boot.disk},format={kind},if=virtio,cache=writeback", *boot.more]
        self.silent_s = boot.silent_s
        self.console: list[str] = []
        self.log = boot.log
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.heard = time.monotonic()
        self.watch = threading.Thread(target=self._watch, daemon=True)
        self.watch.start()

    def _watch(self) -> None:
        while self.process.poll() is None:
            if time.monotonic() - self.heard > self.silent_s:
                self.process.kill()
            time.sleep(1)

    def until(self, *words: str) -> list[str]:
        """What the guest reports up to a line that begins with one of the words, which is the last of the list."""
        reported: list[str] = []
        for line in self.process.stdout or ():
            self.heard = time.monotonic()
            self.console.append(line.rstrip())
            if self.log:
                with self.log.open("a") as log:
                    log.write(line)
            # The kernel may write to the same line.
            before, mark, report = line.partition(MARK)
            if mark and (not before or before.endswith(("]", " ", "\r", "m"))):
                reported.append(report.rstrip())
                if reported[-1].startswith(words):
                    return reported
        end = "\n".join(self.console[-25:])
        self.cut()
        raise SilentError(f"the guest ended or was silent before it reported {' or '.join(words)}:\n{end}")

    def cut(self) -> None:
        """Cuts the power."""
        self.process.kill()
        self.process.wait()
