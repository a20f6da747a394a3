"""Tables: as Arrow for libraries that support it, as plain columns otherwise."""

from __future__ import annotations

import html
from array import array
from typing import TYPE_CHECKING, Any

from quell._native import native

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quell import _internal

# Maximum number of rows shown in a notebook.
_SHOWN = 20


class Table:
    """A table in memory, which other libraries take without a copy.

    `pyarrow.table(t)`, `polars.from_arrow(t)`, `duckdb.sql("from t")` and `pandas.DataFrame.from_arrow(t)`
    all accept it, through the Arrow PyCapsule interface. Without any of them, `column()` returns plain values.
    """

    def __init__(self, inner: _internal.Table) -> None:
        """Wraps a table of the native module."""
        self._inner = inner

    @classmethod
    def of_rows(cls, rows: Sequence[Mapping[str, Any]], counts: Sequence[str] = ()) -> Table:
        """A table of records, with a column for each key whose values are all numbers, text, booleans, or None.

        `counts` are integer columns that exist even if there are no rows.
        """
        if not rows:
            return cls(native().Table.from_columns([(name, "uint", []) for name in counts]))
        names = dict.fromkeys(name for row in rows for name in row)
        columns = []
        for name in names:
            values = [row.get(name) for row in rows]
            kind = _kind(values)
            if kind is not None:
                columns.append((name, kind, values))
        return cls(native().Table.from_columns(columns))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, for Arrow consumers."""
        return self._inner.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The columns, for Arrow consumers."""
        return self._inner.__arrow_c_schema__()

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._inner)

    @property
    def columns(self) -> dict[str, str]:
        """The names of the columns, each with its type by Arrow's name."""
        return dict(zip(self._inner.column_names, self._inner.column_types))

    def column(self, name: str) -> array[Any] | list[Any]:
        """A column: an `array.array` of numbers, which NumPy takes without a copy.

        It is a list if cells are empty, or contain text or booleans.

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
        """All rows as dicts: suitable for a curve, slow for a million detours."""
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
    """The kind of a column with these values; None if one of them cannot be in a cell."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "uint" if min(value for value in values if value is not None) >= 0 else "int"
    if kinds and kinds <= {int, float}:
        return "float"
    return "text" if kinds <= {str} else None


def cell(value: object) -> str:
    """A value as HTML."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return html.escape(str(value))
