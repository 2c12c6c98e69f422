"""Lookup of one id in the files of a table: each file is searched once, however many versions share it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.lance.lance_errors import is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.tables import Table, files_of, reclaimed

_BATCH_ROWS = 65_536


class RowFinder:
    """Finds the row of one id in any version of a table.

    A data file is immutable: it contains an id at one offset or not at all. Whether that row is deleted depends on the
    version. A finder serves one table.
    """

    def __init__(self, row_id: str) -> None:
        self.row_id = row_id
        self._offsets: dict[str, int | None] = {}

    def rows(self, table: Table) -> pa.Table:
        """Return the row, or an empty table."""
        columns = table.schema.names
        for fragment in table.dataset.get_fragments():
            files = files_of(fragment)
            if files not in self._offsets:
                # The first file of a fragment contains the columns it was first written with, including the id.
                self._offsets[files] = self._find(table, fragment.metadata.files[0].path)
            offset = self._offsets[files]
            if offset is None:
                continue
            with table.reading():
                found = table.dataset.scanner(
                    columns=columns,
                    fragments=[fragment],
                    filter=f"_rowaddr = {(fragment.fragment_id << 32) | offset}",
                    blob_handling=table.blob_handling(columns),
                ).to_table()
            if found.num_rows:
                return found
        return table.schema.empty_table()

    def _find(self, table: Table, file: str) -> int | None:
        """Return the offset of the id in a data file, deleted or not; None if it is absent."""
        try:
            reader = lance.file.LanceFileReader(
                table.store.location.child(f"{table.folder}/data/{file}"),
                storage_options=table.store.location.storage_options,
                columns=["id"],
            )
            start = 0
            for batch in reader.read_all(batch_size=_BATCH_ROWS).to_batches():
                offset = pc.index(batch.column("id"), self.row_id).as_py()
                if offset >= 0:
                    return int(start + offset)
                start += batch.num_rows
        except lance_errors() as error:
            what = f"a data file of table '{table.folder}' cannot be read"
            if is_missing(error):
                raise reclaimed(what) from error
            raise storage_failure(error, table.store.location, what) from error
        return None
