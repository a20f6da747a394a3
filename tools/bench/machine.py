"""What a reader of a benchmark must know about the machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

CLOCKSOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def facts(quell: Path) -> list[list[str]]:
    """Name and value of each fact; unknown ones are listed as unknown."""
    system = os.uname()
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return [
        ["processor", processor()],
        ["CPUs", f"{os.cpu_count()}, of which {len(os.sched_getaffinity(0))} may be used"],
        ["kernel", f"{system.sysname} {system.release} {system.machine}"],
        ["virtualised", virtualised()],
        ["clocksource", read(CLOCKSOURCE)],
        ["frequency governor", read(GOVERNOR)],
        ["load before the start (1, 5, 15 minutes)", load],
        ["quell", version(quell)],
    ]


def read(path: Path) -> str:
    """A file of one line."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"


def processor() -> str:
    """The processor's model name."""
    found = re.search(r"^model name\s*:\s*(.+)$", read(Path("/proc/cpuinfo")), re.MULTILINE)
    return found.group(1) if found else "unknown"


def virtualised() -> str:
    """Whether this is a virtual machine, and its hypervisor."""
    if shutil.which("systemd-detect-virt"):
        kind = output(["systemd-detect-virt", "--vm"])
        if kind:
            return "no" if kind == "none" else f"yes ({kind})"
    if re.search(r"^flags\s*:.*\bhypervisor\b", read(Path("/proc/cpuinfo")), re.MULTILINE):
        return "yes"
    return "not reported by the processor" if os.uname().machine == "x86_64" else "unknown"


def version(quell: Path) -> str:
    """The version under test, as it reports itself."""
    return output([str(quell), "--version"]) or "unknown"


def output(command: list[str]) -> str:
    """The output of a short command; empty if it cannot be run."""
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip()
