"""Debian's packages and kernels, of any suite and architecture, without a change of the host's own lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import machine

if TYPE_CHECKING:
    from pathlib import Path

MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass
class Suite:
    """One suite for one architecture, and the folder for what comes from it."""

    name: str
    arch: str
    folder: Path

    def apt(self) -> list[str]:
        """The options with which apt knows only this suite."""
        state = self.folder / f"apt-{self.name}-{self.arch}"
        if not state.exists():
            for name in ("lists/partial", "cache/archives/partial", "etc"):
                (state / name).mkdir(parents=True)
            (state / "status").touch()
            (state / "etc" / "sources.list").write_text(f"deb [signed-by={KEYS}] {MIRROR} {self.name} main\n")
        options = {
            "Dir::Etc": state / "etc",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State": state,
            "Dir::State::status": state / "status",
            "Dir::Cache": state / "cache",
            "APT::Architecture": self.arch,
            "APT::Architectures::": self.arch,
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        if not list((state / "lists").glob("*Packages*")):
            machine.run("apt-get", *words, "-qq", "update")
        return words

    def download(self, package: str) -> Path:
        """Brings a package."""
        words = self.apt()
        kept = self.folder / f"{self.name}-{self.arch}"
        kept.mkdir(exist_ok=True)
        if not list(kept.glob(f"{package}_*.deb")):
            machine.run("apt-get", *words, "-qq", "download", package, cwd=kept)
        return next(kept.glob(f"{package}_*.deb"))

    def depends(self, package: str) -> list[str]:
        """What a package depends on."""
        lines = machine.run("apt-cache", *self.apt(), "depends", package).splitlines()
        return [line.split()[-1] for line in lines if line.strip().startswith("Depends:")]

    def kernel(self) -> machine.Kernel:
        """Brings the kernel for clouds."""
        wanted = self.depends(f"linux-image-cloud-{self.arch}")
        package = next(name for name in wanted if name.startswith("linux-image-"))
        # Newer suites have the image and the modules in packages of their own.
        parts = [name for name in self.depends(package) if name.startswith(("linux-binary-", "linux-modules-"))]
        unpacked = self.folder / f"{self.name}-{self.arch}" / "kernel"
        for archive in [self.download(name) for name in [package, *parts]]:
            machine.run("dpkg-deb", "-x", archive, unpacked)
        modules = next(path for path in (*unpacked.glob("lib/modules/*"), *unpacked.glob("usr/lib/modules/*")))
        # Newer packages have the image next to the modules.
        image = next(path for path in (*unpacked.glob("boot/vmlinuz-*"), modules / "vmlinuz") if path.exists())
        return machine.Kernel(image, modules, modules.name)
