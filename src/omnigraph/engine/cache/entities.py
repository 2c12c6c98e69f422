"""The entities of a table whose rows are periods: the rows that have one key.

Edges have a key as an end, so the rows at an end of an edge are those of an entity. Entities are numbered in the order
of their first rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.csr import I32, ranges
from omnigraph.engine.cache.id_index import IdHashIndex
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData, UseCounter
from omnigraph.engine.cache.visibility import StoredTable, VisibleTable, base_of
from omnigraph.fast_dataclass import dataclass


@dataclass(frozen=True)
class Entities:
    """The rows of each key of a table version."""

    keys: pa.Array
    of_row: I32
    """The entity of each row."""
    offsets: Numbers
    rows: I32
    """The rows of each entity, one entity after the other."""
    index: IdHashIndex

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return int(self.of_row.nbytes + self.offsets.nbytes + self.rows.nbytes) + self.index.nbytes

    @property
    def count(self) -> int:
        """The number of entities."""
        return len(self.keys)

    @classmethod
    def of(cls, data: TableData, column: str) -> Entities:
        """Return the entities of a table version by its key column."""
        return data.derived(f"entities:{data.column_key(column)}", lambda: cls._build(data, column))

    @classmethod
    def _build(cls, data: TableData, column: str) -> Entities:
        encoded = data.column(column).dictionary_encode()
        of_row = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        keys = encoded.dictionary
        offsets = np.zeros(len(keys) + 1, np.int64)
        np.cumsum(np.bincount(of_row, minlength=len(keys)), out=offsets[1:])
        rows = np.argsort(of_row, kind="stable").astype(np.int32)
        return cls(keys, of_row, offsets, rows, IdHashIndex(keys))

    def expand(self, entities: Numbers) -> tuple[Numbers, Numbers]:
        """Return the rows of entities: (position in `entities`, row)."""
        starts = self.offsets[entities]
        counts = self.offsets[entities + 1] - starts
        return np.arange(len(entities)).repeat(counts), self.rows[ranges(starts, counts)].astype(np.int64)

    def with_rows(self, mask: Mask) -> Mask:
        """Return which entities have a row of a mask."""
        seen = np.zeros(self.count, bool)
        seen[self.of_row[mask]] = True
        return seen


def rows_of_key(data: StoredTable, column: str, key: str) -> Numbers:
    """Return the visible rows with a key, ascending."""
    base = base_of(data)
    uses = base.derived("uses:entities", UseCounter).increment()
    if uses <= tuning.current.id_lookups_before_index:
        found = np.flatnonzero(pc.equal(base.column(column), key).to_numpy(zero_copy_only=False))
    else:
        entities = Entities.of(base, column)
        number = entities.index.find(key)
        bounds = slice(0, 0) if number is None else slice(*entities.offsets[number : number + 2].tolist())
        found = entities.rows[bounds].astype(np.int64)
    return found[data.sees(found)] if isinstance(data, VisibleTable) and len(found) else found


class EntityTable:
    """The entities of a node table at an end of edges: visible if one of their rows is."""

    def __init__(self, table: StoredTable, column: str) -> None:
        self.table = table
        self.column = column
        self.key = table.key

    @property
    def entities(self) -> Entities:
        """The rows of each entity."""
        return Entities.of(base_of(self.table), self.column)

    @property
    def row_count(self) -> int:
        """The number of entities."""
        return self.entities.count

    @property
    def visible(self) -> Mask | None:
        """A mask of the visible entities; None if no row is hidden."""
        mask = self.table.visible
        if mask is None or not isinstance(self.table, VisibleTable):
            return None
        return self.table.derived(f"visible entities:{self.column}", lambda: self.entities.with_rows(mask))

    def sees(self, numbers: Numbers) -> Mask:
        """Return which of some entities are visible."""
        mask = self.visible
        return np.ones(len(numbers), bool) if mask is None else mask[numbers]

    def numbers_of(self, keys: pa.Array) -> Numbers:
        """Return the entities of some keys that exist."""
        found: Numbers = pc.index_in(keys, value_set=self.entities.keys).to_numpy(zero_copy_only=False).astype(np.int64)
        return found
