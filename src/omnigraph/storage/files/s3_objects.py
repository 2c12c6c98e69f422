"""`S3Objects`: the objects of a graph in a bucket."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import OmniGraphError
from omnigraph.observer import timed
from omnigraph.storage.files import layout
from omnigraph.storage.files.location import Location
from omnigraph.storage.files.object_errors import object_store_error
from omnigraph.storage.files.object_store import CHUNK_BYTES, ObjectStore
from omnigraph.storage.lance.lance_errors import store_errors

if TYPE_CHECKING:
    from obstore.store import S3Store


class S3Objects(ObjectStore):
    """Objects below a prefix of a bucket, accessed through obstore."""

    def __init__(self, location: Location) -> None:
        self._prefix = location.prefix
        self._where = location.uri
        self._store = bucket_store(location)

    @timed("storage", "read")
    def read(self, name: str) -> bytes | None:
        """Return the content of an object; None if it does not exist."""
        import obstore  # noqa: PLC0415

        try:
            return bytes(obstore.get(self._store, self._key(name)).bytes())
        except FileNotFoundError:
            return None
        except store_errors() as error:
            raise self._error(error) from error

    def open(self, name: str) -> pa.NativeFile:
        """Open an object as a file that is read by range requests."""
        import obstore  # noqa: PLC0415

        try:
            key = self._key(name)
            return pa.PythonFile(BucketFile(self._store, key, int(obstore.head(self._store, key)["size"])), mode="r")
        except store_errors() as error:
            raise self._error(error) from error

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of an object in parts."""
        import obstore  # noqa: PLC0415

        try:
            for chunk in obstore.get(self._store, self._key(name)).stream(min_chunk_size=CHUNK_BYTES):
                yield bytes(chunk)
        except FileNotFoundError:
            raise
        except store_errors() as error:
            raise self._error(error) from error

    @timed("storage", "read")
    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Return a range of bytes of an object by one request."""
        import obstore  # noqa: PLC0415

        try:
            return bytes(obstore.get_range(self._store, self._key(name), start=start, end=end))
        except FileNotFoundError:
            raise
        except store_errors() as error:
            raise self._error(error) from error

    @timed("storage", "write")
    def write_file(self, name: str, path: Path) -> None:
        """Create or replace an object with the content of a file; a large one is sent in parts."""
        import obstore  # noqa: PLC0415

        try:
            obstore.put(self._store, self._key(name), path)
        except store_errors() as error:
            raise self._error(error) from error

    @timed("storage", "write")
    def write(self, name: str, data: bytes) -> None:
        """Create or replace an object."""
        import obstore  # noqa: PLC0415

        try:
            obstore.put(self._store, self._key(name), data)
        except store_errors() as error:
            raise self._error(error) from error

    @timed("storage", "write")
    def write_if_absent(self, name: str, data: bytes) -> bool:
        """Create an object with a conditional write; return True if it was created."""
        import obstore  # noqa: PLC0415
        from obstore.exceptions import AlreadyExistsError, PreconditionError  # noqa: PLC0415

        try:
            obstore.put(self._store, self._key(name), data, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError, FileExistsError):
            return False
        except store_errors() as error:
            raise self._error(error) from error
        return True

    @timed("storage", "delete")
    def delete(self, name: str) -> None:
        """Delete an object if it exists."""
        import obstore  # noqa: PLC0415

        try:
            obstore.delete(self._store, self._key(name))
        except FileNotFoundError:
            return
        except store_errors() as error:
            raise self._error(error) from error

    @timed("storage", "delete")
    def delete_all(self, names: Sequence[str]) -> None:
        """Delete objects by as few requests as possible, in any order."""
        import obstore  # noqa: PLC0415

        if not names:
            return
        try:
            obstore.delete(self._store, [self._key(name) for name in names])
        except FileNotFoundError:
            return
        except store_errors() as error:
            raise self._error(error) from error

    @timed("storage", "list")
    def list(self, folder: str) -> list[str]:
        """Return the full names of the objects directly in a folder, sorted."""
        return [name for name, _ in self._listed(folder)]

    @timed("storage", "list")
    def list_times(self, folder: str) -> Sequence[tuple[str, datetime]]:
        """Return the objects directly in a folder with the times they were written, sorted."""
        return self._listed(folder)

    def _listed(self, folder: str) -> Sequence[tuple[str, datetime]]:
        import obstore  # noqa: PLC0415

        prefix = f"{self._key(folder)}/"
        try:
            found = obstore.list_with_delimiter(self._store, prefix)["objects"]
        except store_errors() as error:
            raise self._error(error) from error
        # Some stores list the folder itself once it was used.
        return sorted(
            (f"{folder}/{item['path'].removeprefix(prefix)}", item["last_modified"])
            for item in found
            if item["path"].startswith(prefix)
        )

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return every object below a folder, by default below the prefix, with its size."""
        import obstore  # noqa: PLC0415

        root = f"{self._prefix}/" if self._prefix else ""
        try:
            found = [
                item
                for batch in obstore.list(self._store, f"{root}{folder}/" if folder else root or None)
                for item in batch
            ]
        except store_errors() as error:
            raise self._error(error) from error
        return {item["path"].removeprefix(root): item["size"] for item in sorted(found, key=lambda item: item["path"])}

    def size(self, name: str) -> int:
        """Return the size of an object, 0 if it does not exist."""
        import obstore  # noqa: PLC0415

        try:
            return int(obstore.head(self._store, self._key(name))["size"])
        except FileNotFoundError:
            return 0
        except store_errors() as error:
            raise self._error(error) from error

    def is_empty(self) -> bool:
        """Return True if there is no object below the prefix."""
        import obstore  # noqa: PLC0415

        try:
            found = obstore.list(self._store, f"{self._prefix}/" if self._prefix else None, chunk_size=1)
            return not any(batch for batch in found)
        except store_errors() as error:
            raise self._error(error) from error

    def folders(self, parent: str) -> dict[str, datetime]:
        """Return the folders directly in a folder, by full name, with the newest write time below each."""
        newest: dict[str, datetime] = {}
        for path, written_at in self._below(parent):
            name, separator, _ = path.partition("/")
            if separator:
                folder = f"{parent}/{name}"
                newest[folder] = max(written_at, newest.get(folder, written_at))
        return newest

    def delete_folder(self, folder: str) -> None:
        """Delete every object below a folder."""
        for path, _ in self._below(folder):
            self.delete(f"{folder}/{path}")

    def written_at(self, name: str) -> datetime | None:
        """Return when an object was last written; None if it does not exist."""
        import obstore  # noqa: PLC0415

        try:
            return obstore.head(self._store, self._key(name))["last_modified"]
        except FileNotFoundError:
            return None
        except store_errors() as error:
            raise self._error(error) from error

    def _below(self, folder: str) -> Sequence[tuple[str, datetime]]:
        """Return every object below a folder, relative to it, with the time it was written."""
        import obstore  # noqa: PLC0415

        prefix = f"{self._key(folder)}/"
        try:
            found = [item for batch in obstore.list(self._store, prefix) for item in batch]
        except store_errors() as error:
            raise self._error(error) from error
        return [(item["path"].removeprefix(prefix), item["last_modified"]) for item in found]

    def remove_unfinished(self, older_than: datetime) -> None:
        """Delete old probes of processes that died."""
        import obstore  # noqa: PLC0415

        try:
            listing = obstore.list_with_delimiter(self._store, f"{self._prefix}/" if self._prefix else None)
        except store_errors() as error:
            raise self._error(error) from error
        for item in listing["objects"]:
            name = item["path"].rsplit("/", 1)[-1]
            if name.startswith(layout.PROBE) and item["last_modified"] < older_than:
                self.delete(name)

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _error(self, error: BaseException) -> OmniGraphError:
        return object_store_error(error, self._where)


class BucketFile(io.RawIOBase):
    """An object as a file: each read requests only the bytes it needs."""

    def __init__(self, store: S3Store, key: str, size: int) -> None:
        self._store = store
        self._key = key
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next read; reads nothing."""
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the bytes that are left; return their number."""
        import obstore  # noqa: PLC0415

        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        data = bytes(obstore.get_range(self._store, self._key, start=self._position, end=end))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def bucket_store(location: Location) -> S3Store:
    """Return obstore's client for the bucket of a location."""
    from obstore.store import S3Store  # noqa: PLC0415 (imported only if an object store is used)

    options: Any = dict(location.options)
    allow_http = options.pop("allow_http", "false") == "true"
    return S3Store(location.bucket, config=options, client_options={"allow_http": allow_http})
