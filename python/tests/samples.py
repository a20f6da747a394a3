"""Recordings and archives for the tests, made by the command itself, so that no privileges, eBPF or MPI are needed."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from package import QUELL

MODEL = """name = "daemon"

[[component]]
name = "daemon"
periodic = { period = "20ms" }
duration = { constant = "80us" }
"""

GOAL = """num_ranks 2
rank 0 {
l1: calc 1000
l2: send 8b to 1 tag 0
l2 requires l1
}
rank 1 {
l1: recv 8b from 0 tag 0
}
"""


class Samples:
    """A folder with samples, kept until the program ends.

    Attributes:
        folder: Contains `fleet` (three nodes), `run` (an archive), `model.toml`, `app.goal`, `selfish.txt`.
    """

    def __init__(self) -> None:
        """Creates the samples."""
        self._kept = tempfile.TemporaryDirectory(prefix="quell-samples-")
        self.folder = Path(self._kept.name)
        self.quell("generate-fleet", "-o", "fleet", "--nodes", "3", "--cpus", "2", "--duration", "4s")
        run = ["--ranks", "4", "--phases", "50", "--quantum", "1ms", "--detour", "40us"]
        self.quell("generate-run", "-o", "run", *run)
        (self.folder / "model.toml").write_text(MODEL)
        (self.folder / "app.goal").write_text(GOAL)
        self.quell("convert", "fleet/node00000.quell", "selfish.txt", "--cpu", "0")

    def quell(self, *words: str) -> str:
        """The command's output, run in the samples' folder."""
        done = self.run(*words)
        if done.returncode:
            raise AssertionError(f"quell {' '.join(words)}: {done.stderr}")
        return done.stdout

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs the command in the samples' folder."""
        return subprocess.run([QUELL, *words], cwd=self.folder, capture_output=True, text=True, check=False)

    def close(self) -> None:
        """Removes the samples."""
        self._kept.cleanup()
