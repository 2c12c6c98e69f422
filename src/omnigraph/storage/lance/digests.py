"""Content digests of the files of a table.

A file of a table is written once and never changes. Its digest is computed when it is written, from the bytes on the
store, and recorded in the manifest. A later comparison finds every change of its content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from omnigraph.errors import OmniGraphError
from omnigraph.storage.files.layout import manifest_name
from omnigraph.storage.lance.table_store import TableStore
from omnigraph.storage.lance.tables import Table, reclaimed
from omnigraph.storage.parallel import each_request

_DIGITS = 32
"""128 bits of SHA-256."""


def version_file(version: int) -> str:
    """Return the name of the manifest file of a numbered version, relative to the table's folder."""
    return f"_versions/{manifest_name(version)}"


def files_of_version(table: Table, *, indexes: bool) -> set[str]:
    """Return the data and deletion files of a version, relative to the table's folder; with `indexes`, its index files
    too.
    """
    found = set(table.files)
    if not indexes:
        return found
    with table.reading():
        segments = [segment for index in table.dataset.describe_indices() for segment in index.segments]
    for segment in segments:
        found.update(_listed(table, f"_indices/{segment.uuid}"))
    return found


def with_large_values(table: Table, files: Iterable[str]) -> set[str]:
    """Return the files and the files beside data files that store large values."""
    found = set(files)
    if table.blobs:
        for file in [file for file in found if file.startswith("data/")]:
            found.update(_listed(table, file.removesuffix(".lance")))
    return found


def record_digests(
    table: Table, before: Table | None, known: Mapping[str, str] | None = None, *, indexes: bool = False
) -> dict[str, str]:
    """Return file → digest for the files of a new version that an earlier version does not have.

    Digests in `known` are reused.
    """
    files = files_of_version(table, indexes=indexes)
    if before is not None:
        files -= files_of_version(before, indexes=indexes)
    files = with_large_values(table, files) | {version_file(table.version)}
    digests = {file: digest for file, digest in (known or {}).items() if file in files}
    return digests | file_digests(table.store, table.folder, files.difference(digests))


def file_digests(store: TableStore, folder: str, files: Iterable[str]) -> dict[str, str]:
    """Return file → digest of its bytes on the store."""
    chosen = sorted(files)
    if store.location.path is not None:
        return {file: file_digest(store, folder, file) for file in chosen}
    return dict(zip(chosen, each_request(lambda file: file_digest(store, folder, file), chosen), strict=True))


def file_digest(store: TableStore, folder: str, file: str) -> str:
    """Return the digest of a file's bytes on the store."""
    digest = hashlib.sha256()
    for chunk in _chunks(store, folder, file):
        digest.update(chunk)
    return digest.hexdigest()[:_DIGITS]


def _chunks(store: TableStore, folder: str, file: str) -> Iterator[bytes]:
    try:
        yield from store.objects.chunks(f"{folder}/{file}")
    except OmniGraphError:
        raise
    except OSError as error:
        raise reclaimed(f"file '{file}' of table '{folder}' cannot be read") from error


def _listed(table: Table, folder: str) -> list[str]:
    """Return the files directly in a folder of a table."""
    names = table.store.objects.list(f"{table.folder}/{folder}")
    return [name.removeprefix(f"{table.folder}/") for name in names]
