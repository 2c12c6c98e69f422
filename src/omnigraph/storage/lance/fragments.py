"""Fragments that workers write before a table version refers to them.

A worker opens the table at the version that its job pinned, writes fragments beside it and returns their descriptions.
No reader sees them. The driver of the job collects the descriptions in a `PreparedFragments` change, which is staged,
promoted and published like any other change. If that does not happen, the fragments are unreferenced files.

Descriptions are plain data, so they can be sent between processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.files.layout import detached_manifest
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.lance.lance_errors import lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.scan import Scan

if TYPE_CHECKING:
    from omnigraph.storage.lance.table_store import TableStore
    from omnigraph.storage.lance.tables import Table

ROWS_PER_FRAGMENT_MAX = 1_000_000
RowIds = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class NewFragment:
    """A written fragment that no version refers to yet; `files` are relative to the table's folder."""

    metadata: str
    rows: int
    files: tuple[str, ...]
    digests: tuple[tuple[str, str], ...] = ()
    """File and digest of every file that was written, including the files of large values."""
    row_ids: bytes = b""
    """The row ids that the first rows keep, as 64-bit numbers. In the text of Lance, a row id takes 12 to 30 bytes."""


@dataclass(frozen=True, slots=True)
class PreparedFragments:
    """A change whose fragments are already written.

    `new` fragments are added, `changed` ones lost some of their rows, `removed` ones lost all rows. With `replaces`,
    the new fragments are the whole content of the table.
    """

    new: tuple[NewFragment, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[int, ...] = ()
    replaces: bool = False


def write_new_fragments(table: Table, rows: pa.Table, row_ids: RowIds | None = None) -> tuple[NewFragment, ...]:
    """Write rows as fragments of a table; the first rows keep the row ids in `row_ids`."""
    if not rows.num_rows:
        return ()
    kept = b"" if row_ids is None else row_ids.astype(np.uint64).tobytes()
    limit = rows.num_rows if kept else ROWS_PER_FRAGMENT_MAX
    try:
        written = lance.fragment.write_fragments(
            table.aligned(rows), table.writer, mode="append", max_rows_per_file=limit
        )
    except lance_errors() as error:
        raise storage_failure(error, table.store.location, f"rows of '{table.folder}' cannot be written") from error
    if kept:
        assert len(written) == 1, "rows that keep their identity are written in one fragment"
    return tuple(_with_digests(table, _described(metadata, kept)) for metadata in written)


def _with_digests(table: Table, fragment: NewFragment) -> NewFragment:
    from omnigraph.storage.lance.digests import file_digests, with_large_values  # noqa: PLC0415 (import cycle)

    found = file_digests(table.store, table.folder, with_large_values(table, fragment.files))
    return replace(fragment, digests=tuple(found.items()))


def _described(metadata: lance.fragment.FragmentMetadata, row_ids: bytes) -> NewFragment:
    files = tuple(f"data/{file.path}" for file in metadata.files)
    return NewFragment(_text(metadata), metadata.physical_rows, files, row_ids=row_ids)


def _metadata(new: NewFragment) -> lance.fragment.FragmentMetadata:
    metadata = lance.fragment.FragmentMetadata.from_json(new.metadata)
    if new.row_ids:
        row_ids = np.frombuffer(new.row_ids, np.uint64).tolist()
        metadata.row_id_meta = lance.fragment.RowIdSequence(row_ids).to_inline_metadata()
    return metadata


def read_new_fragment(table: Table, new: NewFragment) -> pa.Table:
    """Return the rows of a fragment in the order in which they were written."""
    try:
        if table.blobs:
            # Large values can be read through a version only. This detached version is never visible to readers.
            operation = lance.LanceOperation.Append([_metadata(replace(new, row_ids=b""))])
            dataset = lance.LanceDataset.commit(
                table.dataset, lance.Transaction(table.version, operation), detached=True
            )
            last = dataset.get_fragments()[-1]
            rows = dataset.scanner(columns=table.schema.names, fragments=[last], blob_handling="all_binary").to_table()
            path = table.store.location.path
            if path is not None:
                (path / table.folder / detached_manifest(dataset.version)).unlink(missing_ok=True)
            return rows.cast(table.schema)
        parts = [
            lance.file.LanceFileReader(
                f"{table.store.location.child(table.folder)}/{file}",
                storage_options=table.store.location.storage_options,
            )
            .read_all()
            .to_table()
            for file in new.files
        ]
    except lance_errors() as error:
        raise storage_failure(error, table.store.location, f"rows of '{table.folder}' cannot be read") from error
    return parts[0].select(table.schema.names).cast(table.schema)


def read_new_ids(table: Table, new: NewFragment) -> pa.ChunkedArray:
    """Return the ids of the rows of a fragment, which its first file contains."""
    path = f"{table.store.location.child(table.folder)}/{new.files[0]}"
    try:
        reader = lance.file.LanceFileReader(path, storage_options=table.store.location.storage_options, columns=["id"])
        return reader.read_all().to_table()["id"]
    except lance_errors() as error:
        raise storage_failure(error, table.store.location, f"rows of '{table.folder}' cannot be read") from error


def stored_fragments(table: Table) -> list[tuple[int, int]]:
    """Return the fragments of a version in row order: the id and the number of rows of each."""
    with table.reading():
        return [(fragment.fragment_id, fragment.count_rows()) for fragment in table.dataset.get_fragments()]


def read_fragment(
    table: Table, fragment_id: int, columns: Sequence[str], *, filter: str | None = None, batch_size: int = 65_536
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one fragment of a version, in order; `_rowid` and `_rowaddr` can be requested as columns."""
    with table.reading():
        fragment = table.dataset.get_fragment(fragment_id)
        assert fragment is not None, f"table '{table.folder}' has no fragment {fragment_id}"
        scan = Scan(table, columns, fragments=[fragment], filter=filter, batch_rows=batch_size, batch_bytes=None)
        yield from scan.batches()


def without_rows(table: Table, fragment_id: int, offsets: Sequence[int]) -> str | None:
    """Return the description of a fragment without the rows at some offsets; None if no row is left."""
    try:
        fragment = table.writer.get_fragment(fragment_id)
        assert fragment is not None, f"table '{table.folder}' has no fragment {fragment_id}"
        left = fragment.delete_rows(list(offsets))
    except lance_errors() as error:
        raise storage_failure(error, table.store.location, f"rows of '{table.folder}' cannot be removed") from error
    return None if left is None else _text(left)


def delete_files(store: TableStore, folder: str, files: Iterable[str]) -> None:
    """Delete unreferenced files of a table and the files of large values beside them."""
    objects = object_store(store.location, sync=False)
    for file in files:
        objects.delete(f"{folder}/{file}")
        objects.delete_folder(f"{folder}/{file.removesuffix('.lance')}")


def prepared_transaction(table: Table, change: PreparedFragments) -> lance.Transaction | None:
    """Return the change as one transaction on the base version of its fragments; None if it changes nothing."""
    new = [_metadata(fragment) for fragment in change.new]
    if change.replaces:
        if not new and not table.row_count:
            return None
        return lance.Transaction(table.version, lance.LanceOperation.Overwrite(table.dataset.lance_schema, new))
    if not change.changed and not change.removed:
        return lance.Transaction(table.version, lance.LanceOperation.Append(new)) if new else None
    changed = [lance.fragment.FragmentMetadata.from_json(text) for text in change.changed]
    operation = replace_fragments(table.dataset, removed=list(change.removed), updated=changed, new=new)
    return lance.Transaction(table.version, operation)


def replace_fragments(
    dataset: lance.LanceDataset,
    *,
    removed: list[int],
    updated: list[lance.fragment.FragmentMetadata],
    new: list[lance.fragment.FragmentMetadata],
) -> lance.LanceOperation.Update:
    """Return the operation that removes, updates and adds fragments in one commit."""
    return lance.LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=updated,
        new_fragments=new,
        fields_modified=[],
        # Omitting a field would mark the new fragments as covered by the index of that field.
        fields_for_preserving_frag_bitmap=[field.id() for field in dataset.lance_schema.fields()],
        update_mode="rewrite_rows",
    )


def _text(metadata: lance.fragment.FragmentMetadata) -> str:
    return json.dumps(metadata.to_json(), separators=(",", ":"))
