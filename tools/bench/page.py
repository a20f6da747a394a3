"""A benchmark's result, and its page in Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt


@dataclass(frozen=True)
class Limit:
    """A stated limit, and the measured value."""

    what: str
    measured: float
    most: float
    unit: str = ""

    @property
    def holds(self) -> bool:
        """Whether the measured figure is within the limit."""
        return self.measured <= self.most

    def row(self) -> list[str]:
        """The limit as a row of its table."""
        measured, most = (figure(value) + self.unit for value in (self.measured, self.most))
        return [self.what, measured, most, "yes" if self.holds else "**no**"]


@dataclass
class Result:
    """The result of one benchmark."""

    question: str
    header: list[str]
    rows: list[list[str]]
    limits: list[Limit]
    commands: list[str]
    notes: list[str] = field(default_factory=list)
    # Further tables: title, header, rows.
    tables: list[tuple[str, list[str], list[list[str]]]] = field(default_factory=list)


def figure(value: float) -> str:
    """A number with at least four significant digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004 (four digits)


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def page(name: str, date: dt.date, result: Result, machine: list[list[str]]) -> str:
    """The whole page."""
    parts = [
        f"# {name}, {date.isoformat()}",
        result.question,
        table(result.header, result.rows),
        table(["limit", "measured", "at most", "holds"], [limit.row() for limit in result.limits]),
        *("\n".join(f"- {note}" for note in notes) for notes in [result.notes] if notes),
        *(part for title, header, rows in result.tables for part in (f"## {title}", table(header, rows))),
        "## Machine",
        table(["", ""], machine),
        "## Commands",
        "```\n" + "\n".join(result.commands) + "\n```",
    ]
    return "\n\n".join(parts) + "\n"
