"""Removal of rows from stored versions of a table: every version gets a counterpart without the rows.

A data file that contains such a row, live or deleted, is written again without it. Versions share data files, so each
file is written once, however many versions refer to it. A counterpart refers to the new files: its fragments keep
their ids and order, their rows keep their row ids, and deletion files are written again for the new offsets. It is
committed detached on the version that it replaces and promoted to a numbered version, which nothing pins yet.

The indexes of a table with such rows are dropped, because their files contain values of the rows. Reads do not depend
on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checked, checkpoint
from omnigraph.errors import Damaged
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files.layout import detached_manifest
from omnigraph.storage.files.new_files import finish_files
from omnigraph.storage.lance.deletions import Offsets, deleted_offsets
from omnigraph.storage.lance.digests import file_digests, version_file, with_large_values
from omnigraph.storage.lance.fragments import replace_fragments
from omnigraph.storage.lance.indexes import segments_of
from omnigraph.storage.lance.lance_errors import is_missing, lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.scan import Scan
from omnigraph.storage.lance.table_store import TableStore, new_session
from omnigraph.storage.lance.table_versions import restored
from omnigraph.storage.lance.tables import Table, data_path, stored_field, transaction_of
from omnigraph.storage.lance.version_files import new_files
from omnigraph.storage.lance.version_parts import PARTS_PROPERTY, parts_property

_DELETIONS = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
"""The columns of a deletion file."""
_INDEX_PAGES = "page_data.lance"
"""The file of a sorted index with the values of its column."""

Metadata = lance.fragment.FragmentMetadata
Files = tuple[str, ...]
"""The data files of a fragment, which identify its rows."""
Fields = frozenset[int]
"""The field ids of columns that data files contain and a version shows."""


class RowCondition(Protocol):
    """Selects rows of a table by the values of some text columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns."""

    def selects(self, values: pa.Array) -> pa.Array:
        """Return which values of one of the columns select their rows, as booleans without nulls."""


@dataclass(frozen=True)
class NewVersion:
    """The counterpart of a version without the rows."""

    version: int
    transaction: str
    replaces: str
    """The transaction of the version that it replaces; empty if that is unknown."""
    row_count: int
    digests: Mapping[str, str]
    """File → digest of the manifest, and of files that take the place of files of the version."""


@dataclass
class _File:
    """The rows of the data files of a fragment."""

    gone: Offsets
    """The offsets of the rows to remove."""
    ids: list[str]
    """Their ids."""
    rows: int
    sources: dict[Fields, tuple[int, int]] = field(default_factory=dict)
    """Columns → a version that shows them and the fragment in it. No version shows more than one of these sets."""
    written: dict[Fields, Metadata] = field(default_factory=dict)
    """Columns → the new fragment with them."""

    def source_of(self, visible: Fields) -> Fields:
        """Return the largest set of columns that contains the columns which a version shows."""
        return max((fields for fields in self.sources if visible <= fields), key=len)


@dataclass
class Removal:
    """The removal of rows from one table. It is repeated for versions that appear meanwhile."""

    store: TableStore
    folder: str
    condition: RowCondition
    new: dict[int, NewVersion] = field(default_factory=dict)
    """Version → its counterpart, for versions with such rows or with an index that may contain them."""
    ids: set[str] = field(default_factory=set)
    """The ids of the rows."""
    replaced: dict[str, str | None] = field(default_factory=dict)
    """File → the file that takes its place, None for none; relative to the table's folder."""
    drops_indexes: bool = False
    """True if a counterpart lacks an index of its version."""
    bytes_read: int = 0
    """The size of the files that contained rows."""
    bytes_written: int = 0
    """The size of the files that take their place."""
    bytes_manifests: int = 0
    """The size of the manifests of the counterparts."""
    _files: dict[Files, _File] = field(default_factory=dict)
    _known: set[int] = field(default_factory=set)
    """The versions that were examined."""
    _deletions: dict[tuple[Files, str], lance.fragment.DeletionFile | None] = field(default_factory=dict)
    _row_ids: dict[tuple[Files, str], Any] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)
    _unfinished: dict[Path, int | None] = field(default_factory=dict)
    """New files that are neither checked nor flushed yet."""
    _read_back: set[Files] = field(default_factory=set)
    """New data files that were read completely."""
    _segments: dict[str, bool] = field(default_factory=dict)
    """Index segment → True if it contains a selected value."""
    _live: dict[int, frozenset[str]] = field(default_factory=dict)
    _session: Any = field(default_factory=new_session)

    # -- finding ---------------------------------------------------------------------------------

    def find(self, versions: Iterable[int]) -> None:
        """Examine the files of versions that were not examined yet; versions that do not exist are skipped."""
        for version in checked(sorted(set(versions) - self._known)):
            table = self._open(version)
            self._known.add(version)
            if table is None:
                continue
            for fragment in table.dataset.get_fragments():
                self._examine(table, fragment)
            for segment in _index_segments(table):
                if segment.uuid not in self._segments:
                    self._segments[segment.uuid] = self._index_matches(segment.uuid)

    def _open(self, version: int) -> Table | None:
        try:
            dataset = lance.dataset(
                self.store.location.child(self.folder),
                version=version,
                storage_options=self.store.location.storage_options,
                session=self._session,
            )
        except lance_errors() as error:
            if is_missing(error):
                return None
            raise storage_failure(error, self.store.location, f"table '{self.folder}' cannot be opened") from error
        return Table(self.store, self.folder, dataset)

    def _examine(self, table: Table, fragment: lance.LanceFragment) -> None:
        metadata = fragment.metadata
        files = _files_of(metadata)
        known = self._files.get(files)
        if known is None:
            known = self._files[files] = self._matches(table, fragment)
        if len(known.gone):
            visible = table.fields_in(metadata.files)
            if not any(visible <= fields for fields in known.sources):
                known.sources[visible] = (table.version, fragment.fragment_id)

    def _matches(self, table: Table, fragment: lance.LanceFragment) -> _File:
        """Return the rows of a fragment that the condition selects, including deleted rows."""
        columns = list(dict.fromkeys([*self.condition.columns, "id"]))
        offsets: list[Offsets] = []
        ids: list[str] = []
        start = 0
        with table.reading():
            scan = Scan(table, columns, fragments=[fragment], with_row_id=True, include_deleted_rows=True)
            for batch in scan.batches():
                checkpoint()
                chosen = np.zeros(batch.num_rows, bool)
                for name in self.condition.columns:
                    chosen |= self.condition.selects(batch.column(name)).to_numpy(zero_copy_only=False)
                found = np.flatnonzero(chosen)
                offsets.append(found + start)
                ids += batch.column("id").take(pa.array(found)).to_pylist()
                start += batch.num_rows
        gone = np.concatenate(offsets) if offsets else np.empty(0, np.int64)
        self.ids.update(ids)
        return _File(gone.astype(np.int64), ids, start)

    def _index_matches(self, uuid: str) -> bool:
        """Return True if the pages of an index contain a value that the condition selects."""
        path = f"{self.store.location.child(self.folder)}/_indices/{uuid}/{_INDEX_PAGES}"
        try:
            reader = lance.file.LanceFileReader(
                path, storage_options=self.store.location.storage_options, columns=["values"]
            )
            values = one_array(reader.read_all().to_table()["values"])
        except lance_errors(ValueError) as error:
            # The pages of an index of an earlier release may have another form.
            return not is_missing(error)
        if not pa.types.is_string(values.type):
            return False
        return bool(self.condition.selects(values).to_numpy(zero_copy_only=False).any())

    @property
    def is_affected(self) -> bool:
        """True if a file of an examined version contains a selected row or value."""
        return any(len(file.gone) for file in self._files.values()) or any(self._segments.values())

    @property
    def found(self) -> Mapping[Files, int]:
        """Data files → number of selected rows in them, for those that contain some."""
        return {files: len(file.gone) for files, file in self._files.items() if len(file.gone)}

    # -- rewriting -------------------------------------------------------------------------------

    def rewrite(self, versions: Iterable[int]) -> None:
        """Make the counterparts of versions that have none yet, and check and flush their files."""
        self.find(versions)
        if not self.is_affected:
            return
        made: list[tuple[Table, NewVersion]] = []
        for version in checked(sorted(set(versions) - self.new.keys())):
            table = self._open(version)
            if table is not None and (self._has_rows(table) or _index_segments(table)):
                made.append((table, self._counterpart(table)))
                reach("purge.rewritten")
        try:
            finish_files(self._unfinished, sync=self.store.sync)
        except OSError as error:
            raise storage_failure(error, self.store.location, f"table '{self.folder}' cannot be rewritten") from error
        self._unfinished = {}
        for table, new in made:
            self._check_stored(table, new)
            self.new[table.version] = new

    def _has_rows(self, table: Table) -> bool:
        return any(len(self._files[_files_of(fragment.metadata)].gone) for fragment in table.dataset.get_fragments())

    def contains_rows(self, version: int) -> bool:
        """Return True if a file of a version contains selected rows, live or deleted."""
        self.find([version])
        table = self._open(version)
        return table is not None and self._has_rows(table)

    def live_ids(self, version: int) -> frozenset[str]:
        """Return the ids of the live selected rows of a version."""
        if version not in self._live:
            table = self._open(version)
            found: set[str] = set()
            for fragment in table.dataset.get_fragments() if table is not None else ():
                file = self._files[_files_of(fragment.metadata)]
                if len(file.gone):
                    assert table is not None
                    dead = np.isin(file.gone, deleted_offsets(table, fragment))
                    found.update(id_ for id_, is_dead in zip(file.ids, dead.tolist(), strict=True) if not is_dead)
            self._live[version] = frozenset(found)
        return self._live[version]

    def changed_ids(self, version: int) -> list[list[str]]:
        """Return the ids that each write of the group changed that made a version; none if it was no group."""
        table = self._open(version)
        return _parts(_properties(table)) if table is not None else []

    def _counterpart(self, table: Table) -> NewVersion:
        updated: list[Metadata] = []
        removed: list[int] = []
        for fragment in table.dataset.get_fragments():
            metadata = fragment.metadata
            file = self._files[_files_of(metadata)]
            if not len(file.gone):
                continue
            new = self._new_fragment(table, fragment, file)
            if new is None:
                removed.append(metadata.id)
            else:
                updated.append(new)
        properties = _properties(table)
        if PARTS_PROPERTY in properties:
            kept = [[id_ for id_ in ids if id_ not in self.ids] for ids in _parts(properties)]
            properties[PARTS_PROPERTY] = parts_property(kept)
        store = self.store
        try:
            made = table.dataset
            steps: list[int] = []
            if updated or removed:
                operation = replace_fragments(made, removed=removed, updated=updated, new=[])
                made = _detached(made, operation, properties)
                steps.append(made.version)
            indexes = [one for index in table.dataset.describe_indices() for one in segments_of(index)]
            if indexes:
                self.drops_indexes = True
                made = _detached(made, lance.LanceOperation.CreateIndex([], indexes), properties)
                steps.append(made.version)
            numbered = restored(table, made.version, properties)
        except lance_errors() as error:
            raise storage_failure(error, store.location, f"table '{self.folder}' cannot be rewritten") from error
        for step in steps:
            store.objects.delete(f"{self.folder}/{detached_manifest(step)}")
        store.saw(self.folder, numbered.version)
        self._unfinished |= new_files(table, table.at(numbered))
        manifest = version_file(numbered.version)
        digests = file_digests(store, self.folder, [manifest])
        paths = [path for one in updated for path in _paths_of(table, one)]
        digests |= {path: self._digests[path] for path in paths if path in self._digests}
        self.bytes_manifests += store.objects.size(f"{self.folder}/{manifest}")
        made_by, count = transaction_of(numbered), numbered.count_rows()
        return NewVersion(numbered.version, made_by, table.transaction, count, digests)

    def _check_stored(self, table: Table, new: NewVersion) -> None:
        """Read the new files of a counterpart back; the version and files that it replaces are removed later."""
        stored = Table(self.store, self.folder, self.store.load(self.folder, new.version))
        expected = table.row_count - len(self.live_ids(table.version))
        if stored.row_count != expected:
            raise self._unlike(new, f"it has {stored.row_count} rows, not {expected}")
        for fragment in stored.dataset.get_fragments():
            files = _files_of(fragment.metadata)
            if files in self._read_back or f"data/{files[0]}" not in self._digests:
                continue
            with stored.reading():
                scan = Scan(stored, stored.schema.names, fragments=[fragment])
                count, found = fragment.count_rows(), sum(batch.num_rows for batch in scan.batches())
            if found != count:
                raise self._unlike(new, f"{found} of {count} rows of '{files[0]}' could be read")
            self._read_back.add(files)

    def _unlike(self, new: NewVersion, problem: str) -> Damaged:
        return Damaged(
            f"version {new.version} of table '{self.folder}' differs from what was written: {problem}",
            hint="nothing was removed; check the disk, and purge again",
        )

    def _new_fragment(self, table: Table, fragment: lance.LanceFragment, file: _File) -> Metadata | None:
        """Return the description of a fragment without the rows; None if no row is left."""
        metadata = fragment.metadata
        for path in _paths_of(table, metadata, deletions=False):
            if path not in self.replaced:
                self.replaced[path] = None
                self.bytes_read += self.store.objects.size(f"{self.folder}/{path}")
        if metadata.deletion_file is not None:
            self.replaced.setdefault(metadata.deletion_file.path(metadata.id), None)
        if len(file.gone) == file.rows:
            return None
        fields = file.source_of(table.fields_in(metadata.files))
        if fields not in file.written:
            file.written[fields] = self._written(file, fields)
        files = _files_of(metadata)
        rows = file.rows - len(file.gone)
        deletion = self._new_deletion(table, fragment, file)
        if deletion is not None and deletion.num_deleted_rows == rows:
            return None
        assert metadata.row_id_meta is not None, "all tables have stable row ids"
        row_ids = json.dumps(metadata.to_json()["row_id_meta"])
        if (files, row_ids) not in self._row_ids:
            sequence = lance.fragment.RowIdSequence.from_inline_metadata(metadata.row_id_meta).to_pyarrow().to_numpy()
            kept = np.delete(sequence, file.gone).tolist()
            self._row_ids[files, row_ids] = lance.fragment.RowIdSequence(kept).to_inline_metadata()
        return lance.fragment.FragmentMetadata(
            id=metadata.id,
            files=file.written[fields].files,
            physical_rows=rows,
            deletion_file=deletion,
            row_id_meta=self._row_ids[files, row_ids],
        )

    def _written(self, file: _File, fields: Fields) -> Metadata:
        """Write columns of a data file again without the selected rows."""
        version, fragment_id = file.sources[fields]
        table = self._open(version)
        assert table is not None, "a version that was examined exists"
        fragment = table.dataset.get_fragment(fragment_id)
        assert fragment is not None
        names = [name for name, number in table.field_ids.items() if number in fields]
        schema = pa.schema([stored_field(table.schema.field(name)) for name in names])

        def batches() -> Iterator[pa.RecordBatch]:
            start = 0
            with table.reading():
                scan = Scan(table, names, fragments=[fragment], with_row_id=True, include_deleted_rows=True)
                for batch in scan.batches():
                    checkpoint()
                    gone = file.gone[(file.gone >= start) & (file.gone < start + batch.num_rows)] - start
                    kept = np.delete(np.arange(batch.num_rows), gone)
                    rows = pa.Table.from_batches([batch]).select(names).take(pa.array(kept))
                    yield from rows.cast(schema).combine_chunks().to_batches()
                    start += batch.num_rows

        try:
            made = lance.fragment.write_fragments(
                pa.RecordBatchReader.from_batches(schema, batches()),
                table.writer,
                mode="append",
                max_rows_per_file=max(file.rows, 1),
            )
        except lance_errors() as error:
            raise storage_failure(error, self.store.location, f"table '{self.folder}' cannot be rewritten") from error
        assert len(made) == 1, "the rows of a fragment are written to one fragment"
        old = _paths_of(table, fragment.metadata, deletions=False)
        new = _paths_of(table, made[0], deletions=False)
        for path in old:
            self.replaced[path] = new[0]
        for path in new:
            self.bytes_written += self.store.objects.size(f"{self.folder}/{path}")
        self._digests |= file_digests(self.store, self.folder, new)
        return made[0]

    def _new_deletion(
        self, table: Table, fragment: lance.LanceFragment, file: _File
    ) -> lance.fragment.DeletionFile | None:
        """Write the deletion file of a fragment for the offsets of the new data file; None if nothing is deleted."""
        metadata = fragment.metadata
        if metadata.deletion_file is None:
            return None
        name = metadata.deletion_file.path(metadata.id)
        key = (_files_of(metadata), name)
        if key not in self._deletions:
            old = np.setdiff1d(deleted_offsets(table, fragment), file.gone, assume_unique=True)
            offsets = old - np.searchsorted(file.gone, old)
            self._deletions[key] = self._write_deletion(metadata.id, table.version, offsets) if len(offsets) else None
            made = self._deletions[key]
            if made is not None:
                self.replaced[name] = made.path(metadata.id)
                self._digests |= file_digests(self.store, self.folder, [made.path(metadata.id)])
        return self._deletions[key]

    def _write_deletion(self, fragment: int, version: int, offsets: Offsets) -> lance.fragment.DeletionFile:
        made = lance.fragment.DeletionFile(
            read_version=version, id=uuid4().int >> 65, file_type="array", num_deleted_rows=len(offsets), base_id=None
        )
        sink = pa.BufferOutputStream()
        rows = pa.Table.from_arrays([pa.array(offsets.astype(np.uint32))], schema=_DELETIONS)
        with pa.ipc.new_file(sink, _DELETIONS) as writer:
            writer.write_table(rows)
        self.store.objects.write(f"{self.folder}/{made.path(fragment)}", sink.getvalue().to_pybytes())
        return made


def _detached(dataset: lance.LanceDataset, operation: Any, properties: Mapping[str, str]) -> lance.LanceDataset:
    transaction = lance.Transaction(dataset.version, operation, transaction_properties=dict(properties))
    return lance.LanceDataset.commit(dataset, transaction, detached=True)


def _properties(table: Table) -> dict[str, str]:
    """Return the transaction properties of a version."""
    try:
        transaction = table.dataset.read_transaction(table.version)
    except lance_errors(TypeError):
        # A compaction that rewrote an index: Lance cannot return its transaction, and it has no properties.
        return {}
    return dict(transaction.transaction_properties or {}) if transaction is not None else {}


def _parts(properties: Mapping[str, str]) -> list[list[str]]:
    text = properties.get(PARTS_PROPERTY)
    return [list(map(str, ids)) for ids in json.loads(text)] if text else []


def _index_segments(table: Table) -> list[Any]:
    with table.reading():
        return [segment for index in table.dataset.describe_indices() for segment in index.segments]


def _files_of(metadata: Metadata) -> Files:
    return tuple(map(data_path, metadata.files))


def _paths_of(table: Table, metadata: Metadata, *, deletions: bool = True) -> list[str]:
    """Return the files of a fragment, with those of large values, relative to the table's folder; data files first."""
    data = [f"data/{data_path(file)}" for file in metadata.files]
    large = sorted(with_large_values(table, data).difference(data))
    gone = [metadata.deletion_file.path(metadata.id)] if deletions and metadata.deletion_file is not None else []
    return [*data, *large, *gone]


def file_contains(store: TableStore, name: str, condition: RowCondition) -> bool:
    """Return True if a data file, by its name in the graph, contains selected rows; False if it is incomplete."""
    try:
        reader = lance.file.LanceFileReader(
            store.location.child(name),
            storage_options=store.location.storage_options,
            columns=list(condition.columns),
        )
        rows = reader.read_all().to_table()
    except lance_errors():
        return False
    columns = [one_array(rows[column]) for column in rows.column_names]
    return any(condition.selects(values).to_numpy(zero_copy_only=False).any() for values in columns)
