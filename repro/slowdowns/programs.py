"""The MPI programs whose slowdown is held against predictions, and the inputs of those that take one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# HPCC's input: one small solve by HPL, and PTRANS for each of COUNT sizes with each of COUNT block sizes.
HPCC = """\
HPLinpack benchmark input file
as HPCC reads it
HPL.out
8
1
100
1
32
0
1
1
2
16.0
1
2
1
4
1
2
1
1
1
1
1
0
2
64
0
0
1
8
PTRANS
{count}
{sizes}
{count}
{blocks}
"""
HPCC_SIZE = 600
# HPCC keeps this number of values of a list at most, the one for HPL included.
HPCC_MOST = 20


def hpcc_count(iterations: int) -> int:
    """How many values each list has in addition to the one of HPL, for about as many pairs of them."""
    return min(HPCC_MOST, max(2, round(math.sqrt(iterations)))) - 1


def hpcc_input(folder: Path, iterations: int) -> int:
    """Writes the input for about this number of pairs of sizes; their number."""
    count = hpcc_count(iterations)
    sizes, blocks = " ".join([str(HPCC_SIZE)] * count), " ".join(["32"] * count)
    text = HPCC.format(count=count, sizes=sizes, blocks=blocks)
    (folder / "hpccinf.txt").write_text(text, encoding="utf-8")
    return (count + 1) ** 2


@dataclass(frozen=True)
class Program:
    """A program whose run can be made longer: by a number of iterations among its arguments, or by its input."""

    name: str
    source: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    phase_at: str = ""
    # Whether all ranks wait for each other after each phase.
    bulk: bool = True
    # Writes the input for about as many iterations, and returns how many it has.
    input: Callable[[Path, int], int] | None = None


PROGRAMS = (
    Program("bsp, barrier", "loop.c", (), ("TURNS", "barrier", "8")),
    Program("bsp, allreduce", "loop.c", (), ("TURNS", "allreduce", "8")),
    Program("halo, 1 KiB", "loop.c", (), ("TURNS", "halo", "1024"), phase_at="pcontrol"),
    Program("conjugate gradients", "cg.c", (), ("48",)),
    Program("wavefront (LU)", "wavefront.c", (), ("20", "500", "20"), bulk=False),
    Program("LAMMPS, melt", "lmp", ("-in", "in.melt", "-log", "none", "-screen", "none", "-var", "steps"), ()),
    Program("HPCC, PTRANS", "hpcc", (), (), phase_at="barrier", input=hpcc_input),
)

# A Lennard-Jones melt as in LAMMPS' own example, whose ranks agree in each step whether to look for neighbours.
MELT = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 12 0 12 0 12
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 1 delay 0 check yes
fix 1 all nve
run ${steps}
"""
