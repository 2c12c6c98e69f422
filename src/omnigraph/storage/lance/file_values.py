"""Values of single Lance files, decoded whether or not a version refers to them: for a search of everything stored.

The pages of a file are encoded and compressed, so a value may not occur in its bytes. The columns are decoded, and
their buffers can be searched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property

import pyarrow as pa

from omnigraph.checkpoints import checked, checkpoint
from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.garbage import list_versions
from omnigraph.storage.lance.lance_errors import is_missing, lance_errors
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.scan import Scan
from omnigraph.storage.lance.table_store import TableStore, new_session
from omnigraph.storage.lance.tables import Table, data_path

_BATCH_ROWS = 8_192
_BLOB = b"lance-encoding:blob"


class NotDecodable(Exception):
    """A file cannot be decoded; the message is the reason."""


def decoded_columns(
    location: Location, name: str, wanted: Collection[str] | None = None
) -> Iterator[tuple[str, pa.Array]]:
    """Yield columns of a Lance file, by its name in the graph, in batches: those of `wanted` it has, or all.

    Raises `NotDecodable` if the file is incomplete or contains large values, whose columns only a version can read.
    """
    path, options = location.child(name), location.storage_options
    try:
        reader = lance.file.LanceFileReader(path, storage_options=options)
        fields = [field for field in reader.metadata().schema if wanted is None or field.name in wanted]
        if any((field.metadata or {}).get(_BLOB) == b"true" for field in fields):
            raise NotDecodable("it contains large values and no version refers to it")
        if not fields:
            return
        if wanted is not None:
            columns = [field.name for field in fields]
            reader = lance.file.LanceFileReader(path, storage_options=options, columns=columns)
        for batch in reader.read_all(batch_size=_BATCH_ROWS).to_batches():
            checkpoint()
            yield from zip(batch.schema.names, batch.columns, strict=True)
    except lance_errors() as error:
        raise NotDecodable(str(error).partition(",")[0][:200]) from error


class TableFiles:
    """The data files of a table, read through versions that refer to them."""

    def __init__(self, store: TableStore, folder: str) -> None:
        self._store = store
        self._folder = folder
        self._session = new_session()

    @cached_property
    def _places(self) -> dict[str, tuple[int, int]]:
        """Data file → a version that refers to it, and the fragment: the version that shows the most columns."""
        found: dict[str, tuple[int, int, int]] = {}
        for file in checked(list_versions(self._store, self._folder)):
            table = self._open(file.version)
            if table is None:
                continue
            for fragment in table.dataset.get_fragments():
                for data in fragment.metadata.files:
                    count = len(table.fields_in([data]))
                    if count > found.get(data_path(data), (0, 0, 0))[0]:
                        found[data_path(data)] = (count, file.version, fragment.fragment_id)
        return {path: place[1:] for path, place in found.items()}

    def _open(self, version: int) -> Table | None:
        location = self._store.location
        try:
            dataset = lance.dataset(
                location.child(self._folder),
                version=version,
                storage_options=location.storage_options,
                session=self._session,
            )
        except lance_errors() as error:
            if is_missing(error):
                return None
            raise NotDecodable(str(error)[:200]) from error
        return Table(self._store, self._folder, dataset)

    def columns(self, name: str) -> Iterator[tuple[str, pa.Array]]:
        """Yield the columns of a data file, by its name in the graph, including deleted rows and large values."""
        place = self._places.get(name.rpartition("/")[2])
        table = self._open(place[0]) if place is not None else None
        if place is None or table is None:
            raise NotDecodable("no version refers to it")
        fragment = table.dataset.get_fragment(place[1])
        assert fragment is not None
        try:
            scan = Scan(table, table.schema.names, fragments=[fragment], with_row_id=True, include_deleted_rows=True)
            for batch in scan.batches():
                for column in table.schema.names:
                    yield column, batch.column(column)
        except lance_errors() as error:
            raise NotDecodable(str(error).partition(",")[0][:200]) from error
