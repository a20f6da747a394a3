"""The recorder runs on the oldest kernel that quell supports: a virtual machine boots it."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
sys.path.insert(0, str(TOOLS / "lab"))
import kernels  # noqa: E402 (its folder is named above)
import machine  # noqa: E402
from debian import Suite  # noqa: E402

QUELL = TOOLS.parent / "target" / "debug" / "quell"


def why_not() -> str:
    """Why no virtual machine can boot here, if that is so."""
    if not QUELL.exists():
        return f"no {QUELL}: `./x test` builds it"
    if platform.machine() != "x86_64":
        return f"the virtual machine is an x86-64, and this is {platform.machine()}"
    if missing := [*machine.missing(), *(["apt-get"] if not shutil.which("apt-get") else [])]:
        return f"not here: {', '.join(missing)}; `./x test` installs them"
    return ""


class Boot(unittest.TestCase):
    def setUp(self) -> None:
        if why := why_not():
            self.skip(why)

    def skip(self, why: str) -> None:
        print(f"test_boot: skipped: {why}", file=sys.stderr)
        self.skipTest(why)

    def test_records_on_the_oldest_kernel(self) -> None:
        # Not the folder of ./x lab, which may run at the same time.
        kept = machine.KEPT / "boot"
        kept.mkdir(parents=True, exist_ok=True)
        node = kernels.Node("bullseye", words="lab.brief=1")
        try:
            Suite(node.suite, node.arch, kept).kernel()
        except (OSError, StopIteration, subprocess.CalledProcessError) as error:
            self.skip(f"Debian's kernel cannot be had: {error}")
        with tempfile.TemporaryDirectory() as folder:
            quell = Path(folder) / "quell"
            subprocess.run(["strip", "-o", quell, QUELL], check=True)
            # The machine may be busy with other tests, and emulation is slow.
            boot = machine.Boot(Path(folder) / "disk.img", memory="2G", silent_s=1800)
            kernel, found = kernels.look(node, quell, kept, boot)
        self.assertTrue(kernel.version.startswith("5.10."), kernel.version)
        self.assertEqual(found["both"], "0", found.get("both-error"))
        seen = {source["source"].partition(":")[0] for source in found["both-show"]["sources"]}
        self.assertLessEqual({"tick", "softirq", "task"}, seen)


if __name__ == "__main__":
    unittest.main()
