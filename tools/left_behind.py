"""What a run changed on this machine and did not restore: settings, CPUs, mounts, processes, files of quell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# Folders in which tests write, and quell's own folders.
FOLDERS = ("/tmp", "/dev/shm", "/run", "/var/lib", "/var/tmp", "/sys/fs/bpf", "/sys/fs/cgroup/cpuset", "/run/netns")  # noqa: S108
# Kept on purpose: the lock with which tests take turns, and empty folders of `quell tune`.
KEPT = {"/tmp/quell-tests.lock", "/run/quell", "/var/lib/quell"}  # noqa: S108
# Settings that change by themselves.
MOVING = (
    "kernel/ns_last_pid",
    "kernel/perf_event_max_sample_rate",
    "kernel/random/",
    "kernel/sched_domain/",
    "kernel/tainted",
    "fs/binfmt_misc",
    "mm/damon/",
)
# The flag of kernel threads in /proc/PID/stat.
KERNEL_THREAD = 0x0020_0000


def unmount_tracing(before: Machine) -> None:
    """Unmounts what perf and trace-cmd mount and leave behind."""
    for line in read(Path("/proc/self/mountinfo")).splitlines():
        root, place = line.split()[3:5]
        if f"{root} {place}" not in before.mounts and place in {
            "/sys/kernel/tracing",
            "/sys/kernel/debug",
            "/sys/kernel/debug/tracing",
        }:
            subprocess.run(["umount", place], check=False)


class Machine:
    """The state of the machine."""

    def __init__(self) -> None:
        """Reads the current state."""
        self.settings = dict(settings())
        self.cpus = read(Path("/sys/devices/system/cpu/online"))
        self.mounts = {" ".join(line.split()[3:5]) for line in read(Path("/proc/self/mountinfo")).splitlines()}
        self.processes = dict(processes())
        self.files = set(files())

    def changes(self, now: Machine) -> list[str]:
        """What has changed since."""
        found = [
            f"{name} was {before!r} and is {now.settings[name]!r}"
            for name, before in self.settings.items()
            if now.settings.get(name, before) != before
        ]
        if now.cpus != self.cpus:
            found.append(f"CPUs {self.cpus} were online, and {now.cpus} are")
        found += [f"{mount} is still mounted" for mount in sorted(now.mounts - self.mounts)]
        found += [
            f"process {pid} ({name}) still runs"
            for pid, name in sorted(now.processes.items())
            if pid not in self.processes
        ]
        return found + [f"{file} is left" for file in sorted(now.files - self.files)]


def read(path: Path) -> str:
    """The text of a file, or an empty one."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def settings() -> list[tuple[str, str]]:
    """Writable settings below /proc/sys, and kernel settings in other places that quell knows."""
    found = []
    for top in ("/proc/sys", "/sys/kernel/mm", "/proc/irq"):
        for folder, _, names in os.walk(top):
            for name in names:
                path = Path(folder) / name
                if any(moving in str(path) for moving in MOVING) or not path.stat().st_mode & 0o200:
                    continue
                found.append((str(path), read(path)))
    return found


def processes() -> list[tuple[int, str]]:
    """Processes that look like a test's, without kernel threads."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        name, _, rest = read(path).partition("(")[2].rpartition(")")
        fields = rest.split()
        if not fields or int(fields[6]) & KERNEL_THREAD or fields[0] == "Z":
            continue
        if any(
            word in name for word in ("quell", "slurm", "munged", "sshd", "mpirun", "hydra", "orted", "lmp", "hpcc")
        ):
            found.append((int(path.parent.name), name))
    return found


def files() -> list[str]:
    """Files with quell's name in folders where tests write."""
    here = (entry for folder in FOLDERS if Path(folder).is_dir() for entry in Path(folder).iterdir())
    return [str(entry) for entry in here if "quell" in entry.name and str(entry) not in KEPT]
