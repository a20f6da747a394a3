"""Tables: Arrow for who has it, plain columns for who has not."""

from __future__ import annotations

import html
from array import array
from typing import TYPE_CHECKING, Any

from quell._native import native

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quell import _internal

# So many rows are shown in a notebook.
_SHOWN = 20


class Table:
    """A table in memory, which others take without a copy.

    `pyarrow.table(t)`, `polars.from_arrow(t)`, `duckdb.sql("from t")` and `pandas.DataFrame.from_arrow(t)`
    all take it as it is, through the Arrow PyCapsule interface. Without any of them `column()` gives plain values.
    """

    def __init__(self, inner: _internal.Table) -> None:
        """Around what the native module gave."""
        self._inner = inner

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]], counts: Sequence[str] = ()) -> Table:
        """A table of records; a column for each key whose values are all numbers, words, yes or no, or None.

        `counts` are the columns, all of whole numbers, that are there without a row too.
        """
        if not rows:
            return cls(native().Table.of([(name, "uint", []) for name in counts]))
        names = dict.fromkeys(name for row in rows for name in row)
        columns = []
        for name in names:
            values = [row.get(name) for row in rows]
            kind = _kind(values)
            if kind is not None:
                columns.append((name, kind, values))
        return cls(native().Table.of(columns))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for who speaks Arrow."""
        return self._inner.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns for who speaks Arrow."""
        return self._inner.__arrow_c_schema__()

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._inner)

    @property
    def columns(self) -> dict[str, str]:
        """The names of the columns, each with its type in Arrow's words."""
        return dict(zip(self._inner.column_names, self._inner.column_types))

    def column(self, name: str) -> array[Any] | list[Any]:
        """A column: an `array.array` of numbers, which NumPy takes without a copy.

        It is a list where cells are empty, or hold text or yes and no.

        Raises:
            KeyError: If there is no such column.
        """
        numbers = self._inner.numbers(name)
        if numbers is None:
            return self._inner.values(name)
        code, content = numbers
        values = array(code)
        values.frombytes(content)
        return values

    def rows(self) -> list[dict[str, Any]]:
        """All rows as dicts: fine for a curve, slow for a million detours."""
        names = list(self.columns)
        return [dict(zip(names, cells)) for cells in zip(*(self.column(name) for name in names))]

    def __repr__(self) -> str:
        """Its size and its columns."""
        return f"<quell.Table: {len(self):,} rows; {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        names = list(self.columns)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        columns = [self.column(name)[:_SHOWN] for name in names]
        rows = "".join(f"<tr>{''.join(f'<td>{cell(value)}</td>' for value in row)}</tr>" for row in zip(*columns))
        more = len(self) - _SHOWN
        rest = f"<p>and {more:,} more rows</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}"


def _kind(values: list[Any]) -> str | None:
    """What a column of these holds; None for what is no cell."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "uint" if min(value for value in values if value is not None) >= 0 else "int"
    if kinds and kinds <= {int, float}:
        return "float"
    return "text" if kinds <= {str} else None


def cell(value: object) -> str:
    """A value for a cell of HTML."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return html.escape(str(value))
