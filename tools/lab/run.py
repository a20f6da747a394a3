"""Boots virtual machines, and tests in them what one host cannot show: `./x lab [SCENARIO...]`.

`power` cuts the power at each step of `quell tune apply` and `quell tune revert`.
`systems` applies, verifies and reverts mitigations on systems with systemd, TuneD, irqbalance, Slurm, SMT and NUMA,
and over a reboot.
`kernels` runs the recorder and the probe on Debian's kernels, old and new.

Guests run by emulation (TCG) unless --accelerator is given. Kernels and packages come by apt into .x/lab.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import machine
from kernels import kernels
from power import power
from systems import systems

SCENARIOS = {"power": power, "systems": systems, "kernels": kernels}
MORE_TOOLS = {"systems": ["qemu-img", "mmdebstrap", "grub-mkstandalone"]}


def main() -> int:
    """Runs scenarios."""
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="./x lab", description=__doc__, formatter_class=about)
    parser.add_argument("scenario", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS), default=["power"])
    parser.add_argument("--quell", type=Path, default=machine.ROOT / "target" / "debug" / "quell")
    parser.add_argument("--quell-arm64", type=Path, help="what packaging/arm64.sh made, for `kernels` on arm64")
    parser.add_argument("--first", choices=["apply", "revert"], default="apply", help="where `power` begins")
    parser.add_argument("--guest", action="append", help="only this guest of `systems` or `kernels`; may be repeated")
    parser.add_argument("--accelerator", default="tcg,thread=multi", help="QEMU's -accel; kvm where that works")
    given = parser.parse_args()
    unknown = [name for name in given.scenario if name not in SCENARIOS]
    if unknown:
        parser.error(f"no such scenario: {unknown[0]}; there are {', '.join(SCENARIOS)}")
    if not given.quell.exists():
        print(f"no {given.quell}: run cargo build first", file=sys.stderr)
        return 1
    missing = machine.missing(tool for name in given.scenario for tool in MORE_TOOLS.get(name, []))
    if missing:
        print(f"not here: {', '.join(missing)}; ./x lab installs them", file=sys.stderr)
        return 1
    wrong = 0
    for name in given.scenario:
        folder = machine.KEPT / name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            wrong += SCENARIOS[name](given, folder)
        except machine.UnknownGuestError as unknown_guest:
            parser.error(str(unknown_guest))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
