"""The files of a new version of a table: each is checked and flushed to disk before a commit pins the version."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from omnigraph.errors import Damaged
from omnigraph.storage.files.layout import detached_manifest, manifest_file
from omnigraph.storage.files.new_files import check_file, finish_files, incomplete_file
from omnigraph.storage.lance.deletions import parse_deletions
from omnigraph.storage.lance.lance_errors import lance_errors, storage_failure
from omnigraph.storage.lance.lance_module import lance
from omnigraph.storage.lance.tables import DETACHED, Table, data_path

_BLOB_ID_DIGITS = 32
_IN_FILES = (1, 2)
"""Kinds of large values that are stored in files of their own: several in one file, or one."""


def finish_versions(made: Iterable[tuple[Table, Table]]) -> None:
    """Check and flush the files that new versions have and the versions before them do not have.

    Raises `StorageError` if a file is incomplete. Nothing may pin the new versions yet.
    """
    pairs = list(made)
    if not pairs:
        return
    store = pairs[0][1].store
    folders = "', '".join(after.folder for _, after in pairs)
    try:
        files = {path: length for before, after in pairs for path, length in new_files(before, after).items()}
        finish_files(files, sync=store.sync)
    except lance_errors() as error:
        raise storage_failure(error, store.location, f"a change of table '{folders}' cannot be written") from error


def new_files(before: Table, after: Table) -> dict[Path, int | None]:
    """Return the files that a version has and an earlier one does not have, with their recorded lengths.

    There are none on an object store. The transaction files of Lance are not among them: a version contains its
    transaction. The versions that it was built from are among them, because Lance reads them when it commits.
    """
    root = after.store.location.path
    if root is None:
        return {}
    folder = root / after.folder
    files: dict[Path, int | None] = {}
    for uuid in _indexes_of(after.dataset) - _indexes_of(before.dataset):
        files |= {Path(file): None for file in os.scandir(folder / "_indices" / uuid)}
    earlier = {fragment.fragment_id: fragment.metadata for fragment in before.dataset.get_fragments()}
    for fragment in after.dataset.get_fragments():
        old = earlier.get(fragment.fragment_id)
        if old != fragment.metadata:
            files |= _files_of(after, fragment, old, folder)
    versions = {after.version, *after.built_on}.difference(before.built_on)
    return files | {_manifest_of(folder, version): None for version in sorted(versions)}


def _manifest_of(folder: Path, version: int) -> Path:
    return manifest_file(folder, version) if version < DETACHED else folder / detached_manifest(version)


def _files_of(
    table: Table, fragment: lance.LanceFragment, old: lance.fragment.FragmentMetadata | None, folder: Path
) -> dict[Path, int | None]:
    """Return the files of a fragment that an earlier state of it does not have."""
    metadata = fragment.metadata
    old_paths = {data_path(file) for file in old.files} if old is not None else set()
    files: dict[Path, int | None] = {}
    for file in metadata.files:
        name = data_path(file)
        if name in old_paths:
            continue
        path = folder / "data" / name
        files[path] = file.file_size_bytes
        columns = [column for column in table.blobs if table.field_ids[column] in file.fields]
        if columns:
            check_file(path, file.file_size_bytes)
            files.update(_large_values(fragment, columns, path.with_suffix("")))
    deletions = metadata.deletion_file
    if deletions is not None and (old is None or deletions != old.deletion_file):
        path = folder / deletions.path(metadata.id)
        files[path] = _length_of_deletions(path, deletions)
    return files


def _large_values(fragment: lance.LanceFragment, columns: list[str], folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the files of large values beside a data file, with the ends of the last values in them."""
    ends: dict[int, int] = {}
    scanner = fragment.scanner(
        columns=columns, blob_handling="blobs_descriptions", with_row_id=True, include_deleted_rows=True
    )
    for batch in scanner.to_batches():
        for column in columns:
            for value in batch[column].to_pylist():
                if value is not None and value["kind"] in _IN_FILES:
                    end = value["position"] + value["size"]
                    ends[value["blob_id"]] = max(end, ends.get(value["blob_id"], 0))
    for number, end in ends.items():
        yield folder / f"{f'{number:0{_BLOB_ID_DIGITS}b}'[::-1]}.blob", end


def _length_of_deletions(path: Path, file: lance.fragment.DeletionFile) -> int | None:
    """Return the length of a deletion file after a check that it lists the rows that its version counts."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        parse_deletions(data, file)
    except (ValueError, IndexError, Damaged, pa.ArrowException) as error:
        raise incomplete_file(path, len(data), None) from error
    return len(data)


def _indexes_of(dataset: lance.LanceDataset) -> set[str]:
    return {segment.uuid for index in dataset.describe_indices() for segment in index.segments}
