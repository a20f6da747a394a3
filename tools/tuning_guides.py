#!/usr/bin/env python3
"""Writes docs/reference/tuning-guides.md: what tuning guides set, and which entry of the catalogue covers it.

`tuning_guides.py [--check] [--tuned FOLDER]` reads docs/reference/tuning-guides.csv, whose rows are settings of guides,
each with ids of the catalogue or a reason to refuse it. With --check it writes nothing, and fails if the page is stale.
With --tuned it also fails if a checkout of TuneD has settings in these profiles without a row. Needs only Python 3.9.
"""

from __future__ import annotations

import argparse
import configparser
import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = ROOT / "crates/tune/catalogue"
ROWS = ROOT / "docs/reference/tuning-guides.csv"
PAGE = ROOT / "docs/reference/tuning-guides.md"
COLUMNS = ["guide", "section", "setting", "value", "covered by", "refused because"]

TUNED = "tuned-"
# Sections of a profile without settings of the machine.
NO_SETTINGS = {"main", "variables"}


class Guide(NamedTuple):
    """A guide, where its rows come from, and the guides whose rows it includes."""

    title: str
    source: str
    includes: tuple[str, ...] = ()


GUIDES = {
    "tuned-latency-performance": Guide("TuneD: latency-performance", "TuneD at 2bfa442, profiles/latency-performance"),
    "tuned-network-latency": Guide(
        "TuneD: network-latency", "TuneD at 2bfa442, profiles/network-latency", ("tuned-latency-performance",)
    ),
    "tuned-hpc-compute": Guide(
        "TuneD: hpc-compute", "TuneD at 2bfa442, profiles/hpc-compute", ("tuned-latency-performance",)
    ),
    "tuned-realtime": Guide("TuneD: realtime", "TuneD at 2bfa442, profiles/realtime", ("tuned-network-latency",)),
    "tuned-cpu-partitioning": Guide(
        "TuneD: cpu-partitioning", "TuneD at 2bfa442, profiles/cpu-partitioning", ("tuned-network-latency",)
    ),
    "llnl": Guide(
        "LLNL",
        "Rosenthal, León, Moody: Mitigating System Noise With Simultaneous Multi-Threading (poster, SC 2013); León, "
        "Karlin, Moody: System Noise Revisited (IPDPS 2016). The list of services is read in part",
    ),
    "lumi": Guide("LUMI: low-noise mode", "LUMI's documentation of its GPU nodes, read in part"),
    "frontier": Guide("Frontier: low-noise mode", "OLCF: Frontier User Guide, read in part"),
    "cscs": Guide("CSCS: low-noise mode", "CSCS's documentation of Santis (cscs-docs, pull request 77)"),
    "red-hat": Guide(
        "Red Hat: low latency",
        "Red Hat: Optimizing RHEL 9 for Real Time for low latency operation, read in part",
    ),
}


class Row(NamedTuple):
    """A setting of a guide, and quell's answer: ids of the catalogue, or a reason."""

    guide: str
    section: str
    setting: str
    value: str
    covered: str
    refused: str


def read(file: Path) -> list[Row]:
    """The rows of the table."""
    with file.open(newline="", encoding="utf-8") as text:
        head, *rows = csv.reader(text)
    if head != COLUMNS:
        raise SystemExit(f"{file.name}: its columns must be {', '.join(COLUMNS)}")
    wrong = next((row for row in rows if len(row) != len(COLUMNS)), None)
    if wrong is not None:
        raise SystemExit(f"{file.name}: {wrong} does not have {len(COLUMNS)} columns")
    return [Row(*row) for row in rows]


def faults(rows: list[Row], ids: set[str]) -> Iterator[str]:
    """What is wrong with the rows."""
    seen: set[tuple[str, str, str]] = set()
    for row in rows:
        where = f"{row.guide}, {row.section}, {row.setting}"
        if row[:3] in seen:
            yield f"{where}: it is there twice"
        seen.add(row[:3])
        if row.guide not in GUIDES:
            yield f"{where}: no such guide in GUIDES"
        if not (row.section and row.setting):
            yield f"{where}: it names no setting"
        if bool(row.covered.strip()) == bool(row.refused.strip()):
            yield f"{where}: name the entries that cover it, or say why it is refused; one of the two"
        if row.refused and not row.refused.endswith("."):
            yield f"{where}: a reason is a sentence"
        for one in row.covered.split():
            if one not in ids:
                yield f"{where}: `{one}` is not in the catalogue"
    for guide in sorted(set(GUIDES) - {row.guide for row in rows}):
        yield f"{guide}: no row"


def settings(folder: Path, profile: str) -> Iterator[tuple[str, str]]:
    """Section and name of each setting of a profile of TuneD; each word of its kernel command line is one."""
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",), allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(folder / "profiles" / profile / "tuned.conf", encoding="utf-8")
    for section in sorted(set(parser.sections()) - NO_SETTINGS):
        for name, value in parser.items(section):
            if name.startswith("cmdline"):
                yield from ((section, word.lstrip("+").split("=")[0]) for word in value.split())
            else:
                yield section, name


def missing(rows: list[Row], folder: Path) -> Iterator[str]:
    """Settings of TuneD's profiles without a row. One row may name several settings."""
    for guide in (guide for guide in GUIDES if guide.startswith(TUNED)):
        here = {(row.section, name) for row in rows if row.guide == guide for name in row.setting.split(", ")}
        found = sorted(set(settings(folder, guide[len(TUNED) :])))
        if not found:
            yield f"{guide}: no profile below {folder}"
        for section, name in found:
            # `${variable}` stands for words that the variables choose.
            if (section, name) not in here and not name.startswith("${"):
                yield f"{guide}: [{section}] {name} has no row"


def cell(text: str) -> str:
    """A text as a cell of a table, without markup."""
    return text.replace("|", "\\|").replace("*", "\\*")


def page(rows: list[Row]) -> str:
    """The page."""
    covered = sum(bool(row.covered) for row in rows)
    about = "What guides and sites set against noise, and what `quell tune` has for it: the entries of its "
    about += "[catalogue](mitigations.md), or the reason why it has none."
    lines = [
        "# Tuning guides",
        "",
        "Made from `docs/reference/tuning-guides.csv` by `tools/tuning_guides.py`.",
        "",
        about,
        "",
        f"{len(rows)} settings: {covered} covered, {len(rows) - covered} refused.",
    ]
    for name, guide in GUIDES.items():
        lines += ["", f"## {guide.title}", "", f"Source: {guide.source}."]
        if guide.includes:
            lines[-1] += f" It includes {' and '.join(GUIDES[one].title.split(': ')[-1] for one in guide.includes)}."
        lines += ["", "| section | setting | value | quell |", "|---|---|---|---|"]
        for row in (row for row in rows if row.guide == name):
            answer = ", ".join(f"[{one}](mitigations.md#{one})" for one in row.covered.split())
            value = cell(row.value)
            answer = answer or f"refused: {cell(row.refused)}"
            lines.append(f"| {cell(row.section)} | {cell(row.setting)} | {value} | {answer} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Checks the rows, and writes the page or compares it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is stale")
    parser.add_argument("--tuned", type=Path, metavar="FOLDER", help="a checkout of TuneD, whose settings need rows")
    arguments = parser.parse_args()
    rows = read(ROWS)
    found = list(faults(rows, {file.stem for file in CATALOGUE.glob("*.toml")}))
    if arguments.tuned:
        found += missing(rows, arguments.tuned)
    for fault in found:
        print(f"{ROWS.relative_to(ROOT)}: {fault}", file=sys.stderr)
    if found:
        return 1
    text = page(rows)
    if not arguments.check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE.relative_to(ROOT)} is stale: python3 tools/tuning_guides.py writes it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
