"""Where one id is in the files of a table: looked for once in each file, whatever versions share it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from lance.file import LanceFileReader

from omnigraph.storage.lance.lance_errors import is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.tables import Table, files_of, reclaimed

_BATCH_ROWS = 65_536


class RowFinder:
    """Finds the row of one id in any version of a table.

    A data file never changes, so an id is at one place in it or not in it at all; what a version deleted
    is asked of that version. One finder serves one table.
    """

    def __init__(self, row_id: str) -> None:
        self._id = row_id
        self._offsets: dict[str, int | None] = {}

    def rows(self, table: Table) -> pa.Table:
        """The row, or no row."""
        columns = table.schema.names
        for fragment in table.dataset.get_fragments():
            files = files_of(fragment)
            if files not in self._offsets:
                # The id is among the columns a fragment was first written with.
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
        """The place of the id in a data file, deleted or not."""
        try:
            reader = LanceFileReader(
                table.store.location.child(f"{table.folder}/data/{file}"),
                storage_options=table.store.location.storage_options,
                columns=["id"],
            )
            start = 0
            for batch in reader.read_all(batch_size=_BATCH_ROWS).to_batches():
                offset = pc.index(batch.column("id"), self._id).as_py()
                if offset >= 0:
                    return int(start + offset)
                start += batch.num_rows
        except lance_errors() as error:
            what = f"a data file of table '{table.folder}' cannot be read"
            if is_missing(error):
                raise reclaimed(what) from error
            raise storage_failure(error, table.store.location, what) from error
        return None
