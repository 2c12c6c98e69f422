"""Ranged reads of values that Lance stores beside the rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.tables import Table, sql_text

_OFFSET_BITS = 32
"""A row address is a fragment id followed by an offset of 32 bits."""


@dataclass(frozen=True)
class StoredBlob:
    """A value of a Blob column in one table version."""

    table: Table
    file: lance.BlobFile
    size: int
    digest: str
    """Identifies the stored value: equal digests mean equal bytes."""

    def read_range(self, offset: int, length: int) -> bytes:
        """Return the bytes of a range within the value; nothing else is read from the store."""
        with self.table.reading():
            return bytes(self.file.read_range(offset, length))


def find_address(table: Table, row_id: str) -> int | None:
    """Return the address of the row with an id; None if there is no such row."""
    with table.reading():
        rows = table.dataset.scanner(columns=[], filter=f"id = {sql_text(row_id)}", with_row_address=True).to_table()
    return int(rows["_rowaddr"][0].as_py()) if rows.num_rows else None


def open_blob(table: Table, address: int, column: str) -> StoredBlob | None:
    """Open the value of a row in a Blob column; None if it is null."""
    with table.reading():
        [file] = table.dataset.take_blobs(column, addresses=[address], buffer_size=0)
        if file is None:
            return None
        return StoredBlob(table, file, int(file.size()), _digest(table, address, column))


def _digest(table: Table, address: int, column: str) -> str:
    """Return a digest of the place where a value is stored: data files are immutable and their names are unique."""
    fragment = table.dataset.get_fragment(address >> _OFFSET_BITS)
    assert fragment is not None, "the address belongs to a row of this version"
    field = table.field_ids[column]
    files = [file.path for file in fragment.metadata.files if field in file.fields]
    place = (table.folder, *files, field, address & ((1 << _OFFSET_BITS) - 1))
    return hashlib.sha256(repr(place).encode()).hexdigest()[:32]
