"""Boots virtual machines with other kernels, and tests in them what one host cannot show.

`power`: cuts the power at each step of `quell tune apply` and `quell tune revert`, on a disk that is kept. After each
cut the next boot recovers as quell-recover.service does, and everything must be as it was, byte by byte.

Needs QEMU and busybox (`./x lab` installs them) and a Debian kernel, which it brings by apt into .x/lab. Guests run by
emulation (TCG) unless --accelerator is given.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
GUEST = HERE / "tools" / "lab"
KEPT = HERE / ".x" / "lab"
KERNEL = "linux-image-cloud-amd64"
# In this order, as each needs those before it.
MODULES = ["virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_blk"]
# What a line of a guest's console begins with that is for this program.
MARK = "LAB: "
# A guest that prints nothing for this long hangs, in seconds.
SILENT = 120


@dataclass
class Kernel:
    """A kernel of Debian, unpacked."""

    image: Path
    modules: Path
    version: str


def run(*command: object, cwd: Path | None = None) -> str:
    """Runs a command and returns what it prints."""
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, text=True, capture_output=True, cwd=cwd).stdout


def kernel(folder: Path) -> Kernel:
    """Brings Debian's kernel for clouds."""
    unpacked = folder / "kernel"
    if not unpacked.exists():
        folder.mkdir(parents=True, exist_ok=True)
        depends = run("apt-cache", "depends", KERNEL)
        package = next(line.split()[-1] for line in depends.splitlines() if "Depends: linux-image" in line)
        run("apt-get", "download", package, cwd=folder)
        run("dpkg-deb", "-x", next(folder.glob(f"{package}_*.deb")), unpacked)
    image = next((unpacked / "boot").glob("vmlinuz-*"))
    version = image.name.removeprefix("vmlinuz-")
    return Kernel(image, unpacked / "lib" / "modules" / version, version)


def libraries(program: Path) -> list[Path]:
    """The libraries that a program loads."""
    words = run("ldd", program).split()
    return [Path(word) for word in words if word.startswith("/") and Path(word).exists()]


def put(source: Path, tree: Path, name: str) -> None:
    """Copies a file into a tree."""
    target = tree / name.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def shell(tree: Path) -> None:
    """Puts busybox into a tree, under all its names."""
    busybox = Path(shutil.which("busybox") or "/bin/busybox")
    put(busybox, tree, "bin/busybox")
    for name in run(busybox, "--list").split():
        link = tree / "bin" / name
        if not link.exists():
            link.symlink_to("busybox")


def first_root(folder: Path, made: Kernel) -> Path:
    """The initial RAM file system: it loads the disk's driver and continues on the disk."""
    tree = folder / "initramfs"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("dev", "proc", "sys", "disk"):
        (tree / name).mkdir(parents=True)
    shell(tree)
    for module in MODULES:
        put(next(made.modules.rglob(f"{module}.ko*")), tree, f"modules/{module}.ko")
    put(GUEST / "init.sh", tree, "init")
    archive = folder / "initramfs.cpio"
    names = run("find", ".", cwd=tree)
    with archive.open("wb") as out:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], check=True, input=names.encode(), stdout=out, cwd=tree)
    return archive


def disk(folder: Path, quell: Path, script: str) -> Path:
    """A disk with a small system: busybox, quell, the configuration that it may write to, and the script that runs."""
    tree = folder / "root"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("dev", "proc", "sys", "tmp", "run", "etc/sysctl.d", "etc/default/grub.d", "var/lib", "boot/grub"):
        (tree / name).mkdir(parents=True)
    shell(tree)
    put(quell, tree, "usr/bin/quell")
    for library in libraries(quell):
        put(library, tree, str(library))
    put(GUEST / script, tree, "main.sh")
    (tree / "etc" / "hostname").write_text("lab\n")
    (tree / "etc" / "default" / "grub").write_text('GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n')
    image = folder / "disk.img"
    image.unlink(missing_ok=True)
    run("mkfs.ext4", "-q", "-d", tree, image, "1G")
    return image


class Guest:
    """A virtual machine, until the power is cut."""

    def __init__(self, folder: Path, made: Kernel, accelerator: str, words: str) -> None:
        command = ["qemu-system-x86_64", "-accel", accelerator, "-cpu", "max", "-m", "1G", "-smp", "2", "-no-reboot"]
        command += ["-display", "none", "-monitor", "none", "-serial", "stdio", "-nic", "none"]
        command += ["-kernel", str(made.image), "-initrd", str(folder / "initramfs.cpio")]
        command += ["-append", f"console=ttyS0 quiet panic=-1 {words}"]
        # Only what the guest has flushed is safe, as on a disk with a volatile cache.
        command += ["-drive", f"file={folder / 'disk.img'},format=raw,if=virtio,cache=writeback"]
        self.console: list[str] = []
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
            if time.monotonic() - self.heard > SILENT:
                self.process.kill()
            time.sleep(1)

    def until(self, word: str) -> list[str]:
        """What the guest reports up to a line that begins with a word, which is the last of the list."""
        reported: list[str] = []
        for line in self.process.stdout or ():
            self.heard = time.monotonic()
            self.console.append(line.rstrip())
            if line.startswith(MARK):
                reported.append(line.removeprefix(MARK).rstrip())
                if reported[-1].startswith(word):
                    return reported
        end = "\n".join(self.console[-25:])
        raise SystemExit(f"the guest ended or was silent before it reported `{word}`:\n{end}")

    def cut(self) -> None:
        """Cuts the power."""
        self.process.kill()
        self.process.wait()


def power(given: argparse.Namespace, folder: Path, made: Kernel) -> int:
    """Cuts the power at each step of an apply, and of a revert after a whole apply; returns how often that did harm."""
    disk(folder, given.quell, "power.sh")
    before: list[str] | None = None
    cuts = wrong = 0
    # At step 0 nothing is applied: it makes the plan.
    what, step = given.first, 0
    while True:
        guest = Guest(folder, made, given.accelerator, f"lab.what={what} lab.step={step}")
        state = [line for line in guest.until("READY") if line.startswith(("IMAGE", "OPEN"))]
        if before is None:
            before = state
        if state != before:
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
    print(f"kernel {made.version}: {cuts} power cuts, {wrong} of them with something out of place")
    return wrong


SCENARIOS = {"power": power}


def main() -> int:
    """Runs a scenario."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--quell", type=Path, default=HERE / "target" / "debug" / "quell")
    parser.add_argument("--first", choices=["apply", "revert"], default="apply", help="where `power` begins")
    parser.add_argument("--accelerator", default="tcg,thread=multi", help="QEMU's -accel; kvm where that works")
    given = parser.parse_args()
    if not given.quell.exists():
        print(f"no {given.quell}: run cargo build first", file=sys.stderr)
        return 1
    missing = [tool for tool in ("qemu-system-x86_64", "busybox", "cpio", "mkfs.ext4") if not shutil.which(tool)]
    if missing:
        print(f"not here: {', '.join(missing)}; ./x lab installs them", file=sys.stderr)
        return 1
    made = kernel(KEPT)
    folder = KEPT / given.scenario
    folder.mkdir(parents=True, exist_ok=True)
    first_root(folder, made)
    return 1 if SCENARIOS[given.scenario](given, folder, made) else 0


if __name__ == "__main__":
    sys.exit(main())
