"""What the pages on De, Kothari & Mann (IEEE Cluster 2008) share: their curves, and how these look."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from report import HERE

if TYPE_CHECKING:
    from report import Bench

MODELS = HERE / "models"
RANKS = [16, 32, 64, 128, 256, 512, 1024, 2048]


@dataclass(frozen=True)
class Curve:
    """One curve of Figures 5 and 6."""

    system: str
    model: str
    sync: str
    phases: int
    skew: str
    paper_percent: float  # at 2,048 processors

    def predict(self, quell: str, ranks: list[int]) -> dict:
        """Runs `quell predict` and returns its document."""
        return self.run(quell, "predict", "--noise", self.noise, "--ranks", listed(ranks), "--phases", str(self.phases))

    def run(self, quell: str, verb: str, *options: str) -> dict:
        """Runs a verb on 1 ms phases synchronised as this curve's are, and returns its document."""
        command = [quell, verb, *options, "--json", "--seed", "1", "--quantum", "1ms", "--sync", self.sync]
        result = subprocess.run([*command, "--skew", self.skew], check=True, stdout=subprocess.PIPE)
        return json.loads(result.stdout)

    @property
    def noise(self) -> str:
        """The model's file."""
        return str(MODELS / self.model)

    @property
    def words(self) -> str:
        """System and synchronisation."""
        return f"{self.system}, {SYNC_WORDS[self.sync]}"


# What a timer's detour costs on virtual machines, where this one is too busy to measure it.
ASSUMED_COST = "20us"


def validate(bench: Bench, noise: str, seconds: int, *options: str) -> dict:
    """Runs `quell replay --validate` by a timer, and returns its document.

    Where other programs keep it from measuring what a detour costs, that is assumed, and `assumed` says so.
    """
    words = [bench.quell, "-q", "replay", noise, "--context", "timer", "--validate", "--json", "--seed", "1"]
    words += ["--duration", f"{seconds}s", *options]
    ran = bench.run(*words, check=False)
    assumed = ran.returncode != 0 and "cannot calibrate the timer" in ran.stderr
    if assumed:
        ran = bench.run(*words, "--overhead", ASSUMED_COST)
    # With 3 it has warned that fewer detours came than were due, as on a busy machine.
    if ran.returncode not in (0, 3):
        raise RuntimeError(f"`{' '.join(words)}` ended with {ran.returncode}:\n{ran.stderr[-2000:]}")
    return {**json.loads(ran.stdout), "assumed": assumed}


def listed(ranks: list[int]) -> str:
    """Writes ranks as an option takes them."""
    return ",".join(map(str, ranks))


OFF_THE_SHELF = ("off-the-shelf Linux", "de-2008-off-the-shelf.toml")
IO_NODE = ("BlueGene/L I/O node", "de-2008-bgl-io-node.toml")

# Nodes in step are as good as one node: they see less of the trace, so they need more phases.
# The skews are the paper's own (V-C): the largest desynchronisation of a run that began in step.
CURVES = [
    Curve(*OFF_THE_SHELF, sync="none", phases=1_000, skew="0ns", paper_percent=99.0),
    Curve(*OFF_THE_SHELF, sync="start", phases=20_000, skew="5.3ms", paper_percent=13.0),
    Curve(*OFF_THE_SHELF, sync="phase", phases=20_000, skew="0ns", paper_percent=0.7),
    Curve(*IO_NODE, sync="none", phases=1_000, skew="0ns", paper_percent=20.0),
    Curve(*IO_NODE, sync="start", phases=20_000, skew="3.82ms", paper_percent=6.0),
    Curve(*IO_NODE, sync="phase", phases=20_000, skew="0ns", paper_percent=0.9),
]

# Okabe and Ito's palette, distinguished with any colour vision; shapes and lines say the same again.
COLOURS = {OFF_THE_SHELF[0]: "#D55E00", IO_NODE[0]: "#0072B2"}
MARKERS = {"none": "o", "start": "s", "phase": "^"}
LINES = {"none": "-", "start": "--", "phase": ":"}
SYNC_WORDS = {"none": "not synchronised", "start": "at the start", "phase": "in each phase"}
