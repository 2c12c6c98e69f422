"""Tables of columns: the protocol that expressions and binding tables read, and its in-memory implementation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.engine.cache.column_access import select_rows

if TYPE_CHECKING:
    from omnigraph.engine.cache.dictionary_codes import DictionaryCodes
    from omnigraph.engine.cache.table_cache import Mask, Numbers
    from omnigraph.engine.cache.union_table import UnionTable

Derived = TypeVar("Derived")


class ColumnSource(Protocol):
    """Rows with named columns: a stored version, a union of tables, paths or rows in memory."""

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the contents."""

    @property
    def row_count(self) -> int:
        """The number of rows."""

    @property
    def union(self) -> UnionTable | None:
        """The union behind the rows, if they are nodes of several types."""

    @property
    def visible(self) -> Mask | None:
        """A mask of the visible rows; None if no row is hidden."""

    def column(self, name: str) -> pa.Array:
        """Return a whole column as one array."""

    def column_for(self, name: str, rows: int) -> pa.Array | None:
        """Return a whole column if it is in memory or is to be read for a query that needs so many rows; else None."""

    def take(self, name: str, numbers: Numbers) -> pa.Array:
        """Return the values of some rows."""

    def take_columns(self, names: Sequence[str], numbers: Numbers) -> dict[str, pa.Array]:
        """Return the values of several columns of some rows."""

    def mean_bytes(self, name: str, rows: int) -> int:
        """Return the approximate size of a value of a column; 0 if so many values are small or in memory."""

    def codes(self, name: str, rows: int | None = None) -> DictionaryCodes | None:
        """Return the dictionary codes of a text column; None if it has too many distinct values or is not encoded.

        With `rows`, also None if so few rows would be read alone.
        """

    def derived(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Return a structure computed from the rows; it is computed once."""


class TransientColumns(ABC):
    """Columns that exist for one query: not dictionary-encoded; derived structures are kept as long as the rows."""

    union = None
    visible = None

    def __init__(self) -> None:
        self._derived: dict[str, object] = {}

    @abstractmethod
    def column(self, name: str) -> pa.Array:
        """Return a whole column as one array."""

    def column_for(self, name: str, rows: int) -> pa.Array | None:  # noqa: ARG002
        """Return a whole column: it is in memory."""
        return self.column(name)

    def take(self, name: str, numbers: Numbers) -> pa.Array:
        """Return the values of some rows."""
        return select_rows(self.column(name), numbers)

    def take_columns(self, names: Sequence[str], numbers: Numbers) -> dict[str, pa.Array]:
        """Return the values of several columns of some rows."""
        return {name: self.take(name, numbers) for name in names}

    def mean_bytes(self, name: str, rows: int) -> int:  # noqa: ARG002
        """Return 0: the columns are in memory."""
        return 0

    def codes(self, name: str, rows: int | None = None) -> DictionaryCodes | None:  # noqa: ARG002
        """Return None: the columns are not encoded."""
        return None

    def derived(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Return a structure computed from the rows; it is kept as long as the rows."""
        if name not in self._derived:
            self._derived[name] = make()
        return cast(Derived, self._derived[name])


class MemoryTable(TransientColumns):
    """Rows in memory."""

    def __init__(self, columns: Mapping[str, pa.Array | pa.ChunkedArray], row_count: int) -> None:
        super().__init__()
        self._columns = columns
        self.row_count = row_count
        self.key = ("", hex(id(self)))

    @classmethod
    def of(cls, rows: pa.Table) -> MemoryTable:
        """Wrap an Arrow table."""
        return cls(dict(zip(rows.column_names, rows.columns, strict=True)), rows.num_rows)

    def column(self, name: str) -> pa.Array:
        """Return a whole column as one array."""
        return one_array(self._columns[name])
