"""Scans and takes in batches that Arrow can hold.

Lance decodes a batch of rows as one array, whose 32-bit offsets count less than 2 GiB of text. How many rows fit is
estimated from the size on disk and from a sample. Where the estimate is wrong, because values are compressed unusually
well or few rows are much longer than the others, Lance raises an offset overflow and the batch is made smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.checkpoints import checked
from omnigraph.storage.lance.lance_errors import is_offset_overflow, lance_errors

if TYPE_CHECKING:
    from omnigraph.storage.lance.lance_module import lance
    from omnigraph.storage.lance.tables import Table

BATCH_ROWS = 8_192
BATCH_BYTES = 64 * 1024 * 1024
_SMALLER = 16
"""The factor by which a batch that overflows is made smaller."""


def smaller(rows: int) -> int:
    """Return the size of the batches that follow one that overflowed."""
    return max(1, rows // _SMALLER)


def _names(filter: str | pc.Expression, column: str) -> bool:
    """Return True if a filter can use a column."""
    return f"`{column}`" in filter if isinstance(filter, str) else column in str(filter)


class Scan:
    """A scan of columns of a table version in row order.

    A filter is SQL or an Arrow expression. `options` are those of a Lance scanner. The batches get smaller once one of
    them overflows; rows that were returned before are not returned again.
    """

    def __init__(
        self,
        table: Table,
        columns: Sequence[str],
        *,
        filter: str | pc.Expression | None = None,
        batch_rows: int = BATCH_ROWS,
        batch_bytes: int | None = BATCH_BYTES,
        **options: Any,
    ) -> None:
        self._table = table
        used = [name for name in table.schema.names if filter is not None and _names(filter, name)]
        self._rows = table.limit_batch(batch_rows, [*columns, *used])
        self._options = {
            "columns": [*columns],
            "filter": filter,
            "batch_size_bytes": batch_bytes,
            "blob_handling": table.blob_handling(columns),
            **options,
        }

    def _scanner(self) -> lance.LanceScanner:
        return self._table.dataset.scanner(batch_size=self._rows, **self._options)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, batch by batch, with a checkpoint before each."""
        returned = 0
        while True:
            start = 0
            try:
                for batch in checked(self._scanner().to_batches()):
                    end = start + batch.num_rows
                    if end > returned or not end:
                        new = batch.slice(max(returned - start, 0))
                        returned = end
                        yield new
                    start = end
                return
            except lance_errors() as error:
                if not is_offset_overflow(error) or self._rows == 1:
                    raise
                self._rows = smaller(self._rows)
                self._table.batch_overflowed(self._rows)

    def to_table(self) -> pa.Table:
        """Return all rows."""
        batches = list(self.batches())
        return pa.Table.from_batches(batches, batches[0].schema if batches else self._scanner().to_reader().schema)


def take_in_parts(take: Callable[[Any], pa.Table], rows: Sequence[int] | pa.Array) -> pa.Table:
    """Return the rows that `take` reads, in halves if they overflow; a column then has several chunks."""
    try:
        return take(rows)
    except lance_errors() as error:
        if not is_offset_overflow(error) or len(rows) < 2:
            raise
    half = len(rows) // 2
    return pa.concat_tables([take_in_parts(take, rows[:half]), take_in_parts(take, rows[half:])])


def take_live(table: Table, columns: Sequence[str], rows: Sequence[int] | pa.Array) -> pa.Table:
    """Return columns of rows by their numbers, in the given order.

    For a fragment with deleted rows, Lance's take of a version counts the live rows before each row again; that of the
    fragment does not.
    """
    whole = partial(table.dataset.take, columns=[*columns])
    changed = [at for at, (_, _, gone) in enumerate(table.fragments) if gone]
    if not changed or not len(rows) or table.blobs.intersection(columns):
        return take_in_parts(whole, rows)
    asked = np.asarray(rows, np.int64)
    # The take of a fragment accepts ascending rows only.
    numbers, back = np.unique(asked, return_inverse=True)
    ends = np.cumsum([table.rows_in(at) for at in range(len(table.fragments))])
    which = np.searchsorted(ends, numbers, side="right")
    places = [np.flatnonzero(~np.isin(which, changed))]
    parts = [take_in_parts(whole, pa.array(numbers[places[0]]))]
    for at in np.intersect1d(which, changed).tolist():
        places.append(np.flatnonzero(which == at))
        inside = numbers[places[-1]] - (int(ends[at]) - table.rows_in(at))
        fragment = table.dataset.get_fragments()[at]
        parts.append(take_in_parts(partial(fragment.take, columns=[*columns]), pa.array(inside)))
    taken = pa.concat_tables(part for part in parts if part.num_rows or len(parts) == 1)
    order = np.argsort(np.concatenate(places), kind="stable")[back]
    return taken if bool((order == np.arange(len(order))).all()) else taken.take(pa.array(order))
