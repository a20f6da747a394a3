"""Joins the rows of all pages into table.md; fails where a row lacks a value and a reason, or claims too much.

Usage: table.py. The pages' scripts run before it, and leave their rows in rows/.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict

from report import DOES_NOT_HOLD, HERE, ROWS, Row, load, machine, table
from report.papers import FIGURES

FAILED = "**failed**: no script gave a value or a reason"

RUNS = """

All scripts together took {:.1f} minutes. Budgets are for two CPUs that are idle; an effort of 1 is the usual one.
"""

INTRODUCTION = """\
Every figure and table of the papers behind quell: what is printed there, what quell makes of it on the machine named
below, and why they differ. Each page tells more, and how it was done. Written by `table.py` from `rows/`; do not
edit. `./x repro` measures all of it again, and fails where a row claims what its figures do not bear out.

- *reproduced*: the same figure, or the same within what the row says.
- *in shape*: another machine's figures, in the order and direction of the paper's.
- *differs*: other figures, for a known reason.
- *failed*: what the paper shows did not come out here.
- *cannot be shown here*: it takes a machine that is not at hand.
"""


# Scripts that show no figure of a paper.
NO_PAPER = {"table", "coverage", "reality"}


def documents() -> list[dict]:
    """What the pages' scripts left."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(ROWS.glob("*.json"))]


def pages() -> list[str]:
    """The scripts that leave rows, by their names."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NO_PAPER)


def cell(text: str) -> str:
    """Text in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def lines(figure: str, found: list[tuple[Row, str]]) -> list[list[str]]:
    """The lines of a figure, the failed one where there are none."""
    if not found:
        return [[figure, "", FAILED, "", "", ""]]
    named = []
    for row, page in found:
        link = f"[{page.removesuffix('.md')}]({page})"
        ours = cell(row.ours) or ("not shown" if row.why.strip() else FAILED)
        named.append([figure, cell(row.papers_value), ours, cell(row.verdict), cell(row.why), link])
    return named


def runs(left: list[dict]) -> str:
    """What each script took, and those that failed."""
    have = {document["page"].removesuffix(".md").replace("-", "_"): document for document in left}
    cells = []
    for script in pages():
        if script in have:
            one = have[script]
            numbers = [str(one["took_s"]), f"{one['budget_s'] * one['effort']:.0f}", f"{one['effort']:g}"]
            cells.append([f"`{script}.py`", one["date"], *numbers, one["load_before"]])
        else:
            cells.append([f"`{script}.py`", "**failed**", "", "", "", ""])
    header = ["script", "ran on", "took, s", "budget, s", "effort", "load before it (1, 5, 15 minutes)"]
    whole = sum(document["took_s"] for document in left)
    return table(header, cells, "llrrrl") + RUNS.format(whole / 60)


def main() -> int:
    """Writes the table; 1 where it has holes."""
    if len(sys.argv) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    left = documents()
    of: dict[tuple[str, str], list[tuple[Row, str]]] = defaultdict(list)
    for document in left:
        for fields in document["rows"]:
            of[fields["paper"], fields["figure"]].append((Row(**fields), document["page"]))
    wanted = {(paper, figure) for paper, figures in FIGURES.items() for figure in figures}
    parts = ["# Papers, and what this machine shows", INTRODUCTION.rstrip()]
    for paper, figures in FIGURES.items():
        cells = [line for figure in figures for line in lines(figure, of[paper, figure])]
        parts += [f"## {paper}", table(["what", "the paper", "quell, here", "verdict", "why", "page"], cells)]
    parts += ["## The run", runs(left).rstrip(), f"On {machine()}. Load at the end (1, 5, 15 minutes): {load()}."]
    text = "\n\n".join(parts) + "\n"
    (HERE / "table.md").write_text(text, encoding="utf-8")
    strangers = [key for key in of if of[key] and key not in wanted]
    for key in strangers:
        print(f"table.py: rows for {key}, which is not listed in report/papers.py", file=sys.stderr)
    broken = [row for found in of.values() for row, _ in found if row.verdict.startswith(DOES_NOT_HOLD)]
    for row in broken:
        print(f"table.py: {row.paper}, {row.figure}: {row.verdict}: {row.ours}", file=sys.stderr)
    return int(bool(strangers or broken) or "**failed**" in text)


if __name__ == "__main__":
    sys.exit(main())
