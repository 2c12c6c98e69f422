"""One table at one version, for reading.

A table is a Lance dataset that is never read at "latest": readers and writers always specify the version. `staging`
makes changes; `table_versions` handles whole versions; `table_store` opens them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import fixed_width, one_array
from omnigraph.errors import Damaged, GraphReplaced, Hint
from omnigraph.observer import timed
from omnigraph.storage.lance.lance_errors import is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.scan import BATCH_BYTES, BATCH_ROWS, Scan, take_in_parts, take_live
from omnigraph.storage.lance.value_lookup import ADDRESS, ROW_ID, find_rows

if TYPE_CHECKING:
    from omnigraph.storage.lance.table_store import TableStore

_BLOB = {"lance-encoding:blob": "true"}
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
FRAGMENT_ROWS = 262_144
"""Maximum number of rows of a fragment. Replacing one row rewrites the row ids of its whole fragment."""


FragmentKey = tuple[str, int, str]
"""Identifies the rows of a fragment: its files, their number of rows, and its deletion file."""

_TRANSACTION_FILE = re.compile(rb"[0-9]+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.txn\Z")

_STREAM_ROWS = 65_536
_SMALL_BATCH_BYTES = 4 * 1024 * 1024
"""Batches of so many bytes at most have more rows; Lance reads several of them ahead."""
_STREAM_BYTES = 8 * 1024 * 1024
_BLOB_ROWS = 16
"""Rows with large values are read in small batches."""
IO_BYTES = 32 * 1024 * 1024
"""Read-ahead limit of a scan; Lance's default is gigabytes."""
_LOOKUP_BY_INDEX_MAX = 2_000
DETACHED = 2**63
"""Versions without a place in the sequence have numbers from here on."""
_TAKE_ROWS = 10_000
_SAMPLE_ROWS = 16
_COMPRESSION, _COMPRESSION_OF_LONG = 16, 1_024
"""Largest assumed ratio of the size of a value in memory to its size on disk, and of a long one."""
_LONG_VALUE_BYTES = 1_024
OFFSET = "_rowoffset"
"""Column of Lance: the row number, the position among the live rows of the version."""
_KEPT_MAX = 4_096
"""Rows of a version whose places or ids are kept."""
_PLACE = frozenset({"id", ROW_ID, ADDRESS})
_SMALL_FRAGMENT_ROWS = 64
"""Fragments of at most this many rows are read faster by row number than by a scan."""


class Table:
    """A table at one version."""

    is_new: bool = False
    """True if this handle made the version and the digests of its files are not recorded yet."""
    built_on: tuple[int, ...] = ()
    """Unpinned versions that this one was built from. If a cleanup removes one of them, files of this version may be
    removed with it.
    """
    part_of: Table | None = None
    """The numbered version on which this part of a version was written; None for a numbered version."""

    def __init__(self, store: TableStore, folder: str, dataset: lance.LanceDataset) -> None:
        self.store = store
        self.folder = folder
        self.dataset = dataset
        self.version: int = dataset.version
        self._located = _LocatedRows()
        self._known_ids: set[str] = set()
        """Ids that were found to exist."""
        self._mean_bytes: dict[str, int] = {}
        """The mean size of the values of columns, from a sample."""
        self._batch_rows_max = 2**31
        """Rows of a batch; fewer once a batch overflowed."""

    @cached_property
    def transaction(self) -> str:
        """The id of the transaction that made the version; empty if the manifest does not name one."""
        return transaction_of(self.dataset)

    def at(self, dataset: lance.LanceDataset) -> Table:
        """Return another version of this table."""
        return Table(self.store, self.folder, dataset)

    @cached_property
    def identity(self) -> str:
        """Identifies the content of the version, even if its number was used before or is used again."""
        if self.transaction:
            return self.transaction
        content = repr((self.fragments, sorted(self.field_ids.items())))
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def is_made_by(self, transaction: str) -> bool:
        """Return False if another transaction made this version. An unknown transaction matches any."""
        return not transaction or not self.transaction or self.transaction == transaction

    def private(self) -> lance.LanceDataset:
        """Open a second Lance handle of this version.

        Lance locks a handle while it builds an index, compacts or reads a transaction, and every concurrent use of that
        handle fails. Such calls therefore never use `dataset`, which readers in other threads share.
        """
        return self.store.load(self.folder, self.version, writable=True)

    @cached_property
    def writer(self) -> lance.LanceDataset:
        """The Lance handle that writes files of new versions; in a folder, `dataset` does not report every failure."""
        return self.private() if self.store.location.is_local else self.dataset

    # -- reading ---------------------------------------------------------------------------------

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns; a Blob has type large binary, however it is stored."""
        return pa.schema(
            [
                pa.field(field.name, pa.large_binary(), field.nullable) if _is_blob(field) else field.remove_metadata()
                for field in self.dataset.schema
            ]
        )

    @cached_property
    def blobs(self) -> frozenset[str]:
        """The columns whose values are stored beside the rows."""
        return frozenset(field.name for field in self.dataset.schema if _is_blob(field))

    @cached_property
    def row_count(self) -> int:
        """The number of rows of the version; reads no data."""
        with self.reading():
            return int(self.dataset.count_rows())

    def count_values(self, column: str) -> int:
        """Return the number of rows that have a value in a column."""
        with self.reading():
            return int(self.dataset.count_rows(filter=f"`{column}` IS NOT NULL"))

    @property
    def fragment_count(self) -> int:
        """The number of fragments of the version."""
        return len(self.dataset.get_fragments())

    def property(self, key: str) -> str | None:
        """Return the transaction property `key` of the change that made this version; None if there is none."""
        with self.reading():
            transaction = self.private().read_transaction(self.version)
        found: str | None = (transaction.transaction_properties or {}).get(key) if transaction is not None else None
        return found

    def read(
        self,
        columns: Sequence[str] | None = None,
        *,
        filter: str | None = None,
        limit: int | None = None,
        fragments: Sequence[int] | None = None,
    ) -> pa.Table:
        """Return rows as one Arrow table; `filter` is SQL over the columns, `fragments` are given by position."""
        with self.reading():
            return self._scan(columns, filter=filter, limit=limit, fragments=fragments).to_table()

    def read_with(
        self, by: Sequence[str], values: Sequence[str], columns: Sequence[str], fragments: Sequence[int] | None = None
    ) -> pa.Table:
        """Return the rows with one of `values` in one of the text columns `by`, by a scan; `fragments` as in `read`."""
        listed = ", ".join(map(sql_text, values))
        return self.read(columns, filter=" OR ".join(f"`{name}` IN ({listed})" for name in by), fragments=fragments)

    def _fragments(self, positions: Sequence[int]) -> list[lance.LanceFragment]:
        every = self.dataset.get_fragments()
        return [every[position] for position in positions]

    def batches(
        self, columns: Sequence[str] | None = None, *, filter: str | None = None, fragments: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows as Arrow batches, for tables larger than memory; of all fragments, or of some by position."""
        with self.reading():
            if fragments is None or fragments:
                rows = self._scanned_rows(self.schema.names if columns is None else columns)
                yield from self._scan(columns, filter=filter, fragments=fragments, batch_rows=rows).batches()

    def _scanned_rows(self, columns: Sequence[str]) -> int:
        """Return the size of the batches of a scan: larger ones take less time if their rows are certainly small."""
        widths = [fixed_width(self.schema.field(name).type) for name in columns if name in self.schema.names]
        known = [width for width in widths if width is not None]
        size = sum(known) if len(known) == len(columns) else self.largest_bytes // max(self.row_count, 1)
        return _STREAM_ROWS if size * _STREAM_ROWS <= _SMALL_BATCH_BYTES else BATCH_ROWS

    def matches(self, columns: Sequence[str], filter: str | None) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows that pass an SQL filter, and as the last column `OFFSET`, their row numbers.

        The rows are read batch by batch in row order; little is read ahead.
        """
        with self.reading():
            yield from Scan(self, [*columns, OFFSET], filter=filter, io_buffer_size=IO_BYTES).batches()

    def batch_rows(self, columns: Iterable[str]) -> int:
        """Return how many rows of some columns need about 64 MiB, from a sample."""
        names = [name for name in columns if name in self.schema.names and name not in self.blobs]
        missing = [name for name in names if name not in self._mean_bytes]
        if missing and self.row_count:
            numbers = sorted({self.row_count * at // _SAMPLE_ROWS for at in range(_SAMPLE_ROWS)})
            sample = self.take(missing, pa.array(numbers, pa.int64()))
            self._mean_bytes.update({name: int(sample[name].nbytes) // len(numbers) for name in missing})
        width = sum(self._mean_bytes.get(name, 0) for name in names)
        return max(1, min(BATCH_ROWS, BATCH_BYTES // max(width, 1)))

    def limit_batch(self, rows: int, columns: Sequence[str]) -> int:
        """Return the size of a batch of `rows` rows, less if their values are long.

        Lance decodes so many rows at a time, whatever the limit in bytes is, and cannot decode 2 GiB of text at a time.
        """
        rows = min(rows, self._batch_rows_max)
        return min(rows, self.batch_rows(columns)) if self.has_long_values else rows

    def batch_overflowed(self, rows: int) -> None:
        """Record that later batches may have at most so many rows: a larger one had 2 GiB of text."""
        self._batch_rows_max = min(self._batch_rows_max, rows)

    @cached_property
    def has_long_values(self) -> bool:
        """True if a row has more than a kibibyte on disk besides values of fixed size; reads nothing.

        Long texts that repeat themselves are compressed the most, so the size on disk says little of that in memory.
        """
        return self.stored_bytes // max(self.row_count, 1) - self._fixed_width > _LONG_VALUE_BYTES

    @cached_property
    def largest_bytes(self) -> int:
        """A size that all values in memory do not exceed, except with an unusual compression; reads nothing."""
        ratio = _COMPRESSION_OF_LONG if self.has_long_values else _COMPRESSION
        return self._fixed_width * self.row_count + ratio * self.stored_bytes

    @cached_property
    def _fixed_width(self) -> int:
        return sum(fixed_width(field.type) or 0 for field in self.schema)

    def stream(
        self,
        columns: Sequence[str],
        batch_rows: int = _STREAM_ROWS,
        fragments: Sequence[int] | None = None,
        filter: pc.Expression | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of all fragments, or of some by position, in batches of at most `batch_rows` rows and about 8 MiB.

        Little is read ahead. With a filter, only the rows that pass it are yielded.
        """
        if fragments is not None and not fragments:
            return
        with self.reading():
            scan = self._scan(
                columns,
                fragments=fragments,
                filter=filter,
                batch_rows=self.stream_rows(columns, batch_rows),
                batch_bytes=_STREAM_BYTES,
                batch_readahead=2,
                fragment_readahead=1,
                io_buffer_size=IO_BYTES,
            )
            for batch in scan.batches():
                for start in range(0, batch.num_rows, batch_rows):
                    yield batch.slice(start, batch_rows)

    def stream_rows(self, columns: Sequence[str], batch_rows: int) -> int:
        """Return the largest number of rows of a batch of `stream`."""
        return _BLOB_ROWS if self.blobs.intersection(columns) else batch_rows

    def read_all_rows(self, columns: Sequence[str], fragment: int) -> pa.Table:
        """Return columns of a fragment at all offsets, including deleted rows, in order."""
        with self.reading():
            chosen = self.dataset.get_fragments()[fragment]
            _, rows, gone = self.fragments[fragment]
            if not gone and rows <= _SMALL_FRAGMENT_ROWS:
                return take_in_parts(partial(chosen.take, columns=[*columns]), list(range(rows)))
            options: dict[str, Any] = {"with_row_id": True, "include_deleted_rows": True} if gone else {}
            return Scan(self, columns, fragments=[chosen], **options).to_table().select([*columns])

    def read_fragments(self, columns: Sequence[str], fragments: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
        """Yield columns of some fragments without deleted rows, each with its position, by one scan."""
        if not fragments:
            return
        with self.reading():
            rows = self._scan(columns, fragments=fragments).to_table()
        start = 0
        for position in fragments:
            count = self.fragments[position][1]
            yield position, rows.slice(start, count)
            start += count

    def read_with_deleted(self, name: str, fragment: int) -> pa.Array:
        """Return a column of a fragment at all offsets, including deleted rows, in order."""
        with self.reading():
            scan = self._scan([name], fragments=[fragment], with_row_id=True, include_deleted_rows=True)
            return one_array(scan.to_table()[name])

    @cached_property
    def fragments(self) -> tuple[FragmentKey, ...]:
        """The fragments of the version in row order. Equal keys in any two versions mean equal rows."""
        return tuple(map(_fragment_key, self._metadata))

    @cached_property
    def _metadata(self) -> tuple[lance.fragment.FragmentMetadata, ...]:
        """The metadata of the fragments, in row order."""
        return tuple(fragment.metadata for fragment in self.dataset.get_fragments())

    def fragments_in_memory(self) -> int:
        """The number of fragments whose metadata was read."""
        return len(vars(self).get("_metadata", ()))

    def rows_in(self, fragment: int) -> int:
        """Return the number of live rows of a fragment, which is given by its position; reads no data."""
        metadata = self._metadata[fragment]
        return int(metadata.physical_rows) - int(metadata.num_deletions)

    @cached_property
    def files(self) -> frozenset[str]:
        """The data and deletion files of the version, relative to the table's folder."""
        found: set[str] = set()
        with self.reading():
            for metadata in self._metadata:
                found.update(f"data/{data_path(file)}" for file in metadata.files)
                if metadata.deletion_file is not None:
                    found.add(metadata.deletion_file.path(metadata.id))
        return frozenset(found)

    @cached_property
    def stored_bytes(self) -> int:
        """The size of the data files of the version, as far as their sizes are recorded."""
        with self.reading():
            return sum(file.file_size_bytes or 0 for metadata in self._metadata for file in metadata.files)

    @cached_property
    def field_ids(self) -> dict[str, int]:
        """Column → field id.

        It identifies a column across renames; a name may later denote another column of the same files.
        """
        return {field.name(): field.id() for field in self.dataset.lance_schema.fields()}

    @cached_property
    def _field_of_part(self) -> dict[int, int]:
        """Field id of a column or of a part of it → field id of the column."""
        found: dict[int, int] = {}
        for field in self.dataset.lance_schema.fields():
            parts = [field]
            while parts:
                part = parts.pop()
                found[part.id()] = field.id()
                parts += part.children()
        return found

    def fields_in(self, files: Iterable[lance.fragment.DataFile]) -> frozenset[int]:
        """Return the field ids of the columns that data files contain.

        A file lists the fields of the items of a list, not that of the list.
        """
        known = self._field_of_part
        return frozenset(known[part] for file in files for part in file.fields if part in known)

    def read_from(self, columns: Sequence[str], first_fragment: int) -> pa.Table:
        """Return the rows of all fragments from a position on."""
        with self.reading():
            fragments = self.dataset.get_fragments()[first_fragment:]
            if not fragments:
                return self.schema.empty_table().select(list(columns))
            return Scan(self, columns, fragments=fragments).to_table()

    def read_file(self, name: str) -> bytes:
        """Return the content of a small file of the table, by its name below the table's folder."""
        data = self.store.objects.read(f"{self.folder}/{name}")
        if data is None:
            raise reclaimed(f"a data file of table '{self.folder}' cannot be read")
        return data

    @timed("storage", "table_find")
    def rows_of(self, ids: Sequence[str], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows with these ids, in no guaranteed order."""
        wanted = [*columns] if columns is not None else self.schema.names
        if len(ids) > _LOOKUP_BY_INDEX_MAX:
            table = self.read(wanted if "id" in wanted else [*wanted, "id"])
            return table.filter(pc.is_in(table["id"], value_set=pa.array(ids, pa.utf8()))).select(wanted)
        if not ids:
            return self.schema.empty_table().select([name for name in wanted if name in self.schema.names])
        known = self._located.pop(ids) if _PLACE.issuperset(wanted) else None
        return known.select(wanted) if known is not None else find_rows(self, ["id"], ids, wanted)

    def rows_with(self, column: str, values: Sequence[str], columns: Sequence[str]) -> pa.Table:
        """Return the rows whose text `column` is one of `values`, in no guaranteed order."""
        if column == "id" and [*columns] == ["id"] and len(values) <= _KEPT_MAX:
            return self._existing(values)
        return find_rows(self, [column], values, columns)

    def _existing(self, ids: Sequence[str]) -> pa.Table:
        """Return the ids that exist. They are kept: edges often end at the same nodes."""
        known = self._known_ids
        found = [id_ for id_ in dict.fromkeys(ids) if id_ in known]
        if len(found) < len(ids):
            rows = find_rows(self, ["id"], [id_ for id_ in ids if id_ not in known], ["id"])
            if len(known) + rows.num_rows > _KEPT_MAX:
                self._known_ids = known = set()
            known.update(rows["id"].to_pylist())
            if not found:
                return rows
            found += rows["id"].to_pylist()
        return pa.Table.from_arrays([pa.array(found, pa.utf8())], ["id"])

    def locate(self, by: Sequence[str], values: Sequence[str], columns: Sequence[str]) -> pa.Table:
        """Return the rows with one of `values` in one of the text columns `by`, to change them.

        Their places are kept, so a later `rows_of` reads nothing.
        """
        rows = find_rows(self, by, values, list(dict.fromkeys([*columns, "id", ROW_ID, ADDRESS])))
        self._located.add(rows)
        return rows.select([*columns])

    def remember_written(self, fragments: Iterable[lance.fragment.FragmentMetadata], rows: pa.Table) -> None:
        """Index new fragments of a change of this version from the rows that were written to them, in order."""
        written = ((_files_of(metadata), metadata.physical_rows) for metadata in fragments)
        self.store.lookups.remember(self, written, rows)

    @timed("storage", "table_take")
    def take(self, columns: Sequence[str], rows: Sequence[int] | pa.Array) -> pa.Table:
        """Return columns of the rows with these row numbers, in the given order; reads nothing else.

        The row number of a row is its position among the live rows of the version.
        """
        with self.reading():
            return take_live(self, columns, rows)

    @timed("storage", "table_find")
    def take_rows(self, row_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return some columns of the rows with these row ids, in no guaranteed order; reads nothing else."""
        parts = [
            self.read(columns, filter=f"_rowid IN ({', '.join(map(str, row_ids[start : start + _TAKE_ROWS]))})")
            for start in range(0, len(row_ids), _TAKE_ROWS)
        ]
        known = [name for name in columns if name in self.schema.names]
        return pa.concat_tables(parts) if parts else self.schema.empty_table().select(known)

    def _scan(self, columns: Sequence[str] | None, *, fragments: Sequence[int] | None = None, **options: Any) -> Scan:
        """Return a scan of all fragments, or of some by position."""
        chosen = None if fragments is None else self._fragments(fragments)
        return Scan(self, self.schema.names if columns is None else columns, fragments=chosen, **options)

    def blob_handling(self, columns: Iterable[str]) -> Literal["all_binary"] | None:
        """The `blob_handling` argument of a scan: the bytes of a Blob are read only if its column is requested."""
        return "all_binary" if self.blobs.intersection(columns) else None

    def reading(self) -> AbstractContextManager[None]:
        """Return a context for every use of `dataset` that converts Lance's exceptions into typed errors."""
        return _Reading(self)

    def aligned(self, rows: pa.Table) -> pa.Table:
        """Return rows with the columns, column order and types of the table."""
        aligned = rows.select(self.schema.names).cast(self.schema).combine_chunks()
        return aligned.cast(pa.schema([stored_field(field) for field in self.schema])) if self.blobs else aligned


class _LocatedRows:
    """The places of rows of one version that were read to be changed, by id; they are used once."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, int]] = {}

    def add(self, rows: pa.Table) -> None:
        """Keep the places of some rows."""
        if rows.num_rows > _KEPT_MAX:
            return
        if len(self._places) + rows.num_rows > _KEPT_MAX:
            self._places = {}
        places = zip(rows[ROW_ID].to_pylist(), rows[ADDRESS].to_pylist(), strict=True)
        self._places.update(zip(rows["id"].to_pylist(), places, strict=True))

    def pop(self, ids: Sequence[str]) -> pa.Table | None:
        """Return the places of some rows, and forget all; None if one is not known."""
        known = self._places
        found = {id_: known[id_] for id_ in ids if id_ in known}
        if not known or not all(id_ in found for id_ in ids):
            return None
        self._places = {}
        row_ids, addresses = zip(*found.values(), strict=True)
        columns = [pa.array(found, pa.utf8()), pa.array(row_ids, pa.uint64()), pa.array(addresses, pa.uint64())]
        return pa.Table.from_arrays(columns, ["id", ROW_ID, ADDRESS])


class _Reading(AbstractContextManager[None]):
    """Converts Lance's exceptions into typed errors around a read."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and isinstance(error, lance_errors()):
            table = self.table
            what = f"table '{table.folder}' at version {table.version} cannot be read"
            # A cleanup or a restored copy may have removed the version under an open handle.
            if is_missing(error):
                if not table.store.has_version(table.folder, table.version):
                    raise reclaimed(what) from error
                if not table.store.has_version(table.folder, table.version, table.transaction):
                    raise replaced(what) from error
            raise storage_failure(error, table.store.location, what) from error


def reclaimed(what: str) -> Damaged:
    """Return the error for a version or file that no longer exists."""
    return Damaged(
        f"{what}: it was reclaimed or lost",
        code="version_reclaimed",
        hint="a cleanup removes old versions; read a newer commit",
    )


def replaced(what: str) -> GraphReplaced:
    """Return the error for a folder that now contains another history than the handle was opened on."""
    return GraphReplaced(
        f"{what}: the graph was replaced while it was in use",
        hint=Hint(
            "try again; if it fails again, a part of the folder comes from another copy: verify() lists it",
            cli="try again; if it fails again, a part of the folder comes from another copy: "
            "'omnigraph verify' lists it",
        ),
    )


def transaction_of(dataset: lance.LanceDataset) -> str:
    """Return the id of the transaction that made a handle's version; empty if its manifest does not name one.

    It is taken from the manifest in memory. `read_transaction` opens the version by number again, and that number may
    belong to another history by then.
    """
    manifest: bytes = dataset._ds.serialized_manifest()
    end = manifest.rfind(b".txn") + len(b".txn")
    found = _TRANSACTION_FILE.search(manifest[max(0, end - 64) : end])
    return found[1].decode() if found is not None else ""


def is_manifest_of(path: Path, transaction: str) -> bool:
    """Return True if the manifest file of a version exists and names this transaction."""
    try:
        return transaction.encode() in path.read_bytes()
    except OSError:
        return False


def files_of(fragment: lance.LanceFragment) -> str:
    """Return a text that identifies the rows of a fragment: its data files, which are never written twice.

    The fragment id does not identify them: two branches give the same id to different rows.
    """
    return _files_of(fragment.metadata)


def data_path(file: lance.fragment.DataFile) -> str:
    """Return the path of a data file. `DataFile.path` makes a class on every access."""
    return str(file._path)


def _files_of(metadata: lance.fragment.FragmentMetadata) -> str:
    files = metadata.files
    return data_path(files[0]) if len(files) == 1 else "|".join(map(data_path, files))


def _fragment_key(metadata: lance.fragment.FragmentMetadata) -> FragmentKey:
    """Return the key of a fragment: its files, its number of rows and its deletion file."""
    gone = metadata.deletion_file.json() if metadata.deletion_file is not None else ""
    return _files_of(metadata), metadata.physical_rows, gone


def stored_field(field: pa.Field) -> pa.Field:
    """Return a column as Lance stores it: `id` as primary key, binary columns as blobs beside the rows."""
    if field.name == "id":
        return field.with_metadata(PRIMARY_KEY)
    return field.with_metadata(_BLOB) if pa.types.is_large_binary(field.type) else field


def _is_blob(field: pa.Field) -> bool:
    return isinstance(field.type, pa.BaseExtensionType) or (field.metadata or {}).get(b"lance-encoding:blob") == b"true"


def sql_text(text: str) -> str:
    """Return a string literal for a filter."""
    return "'" + text.replace("'", "''") + "'"
