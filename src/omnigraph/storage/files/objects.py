"""Small objects beside the tables: intents, claims, the readable copy of the schema.

There is one interface with two implementations, local and S3. Everything else relies on `write_if_absent`: exactly one
of any number of callers gets True. `prove_conditional_writes` tests this once per store, because some object stores
accept the condition and ignore it.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from uuid import uuid4

import pyarrow as pa

from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.observer import timed
from omnigraph.storage.files import layout
from omnigraph.storage.files.fsync import sync_folder, sync_folders_of
from omnigraph.storage.files.location import Location
from omnigraph.storage.files.object_errors import object_store_error
from omnigraph.storage.lance.lance_errors import store_errors

if TYPE_CHECKING:
    from obstore.store import S3Store

_TEMPORARY = ".writing-"
_PROBE_TRIES = 4
_CHUNK_BYTES = 4 << 20
_SECONDS_MAX = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


class ObjectStore(ABC):
    """Objects by name, relative to the root of the graph."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return the content of an object; None if and only if it does not exist."""

    @abstractmethod
    def open(self, name: str) -> pa.NativeFile:
        """Open an existing object as a file that is read on demand."""

    @abstractmethod
    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of an object in parts, by one request; raise `FileNotFoundError` if it does not exist."""

    @abstractmethod
    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Return a range of bytes, fewer if the object is shorter; raise `FileNotFoundError` if it does not exist."""

    @abstractmethod
    def write_file(self, name: str, path: Path) -> None:
        """Create or replace an object with the content of a local file, which may be larger than memory."""

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Create or replace an object atomically."""

    @abstractmethod
    def write_if_absent(self, name: str, data: bytes) -> bool:
        """Create an object unless it exists; return True if it was created."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete an object if it exists."""

    def delete_all(self, names: Sequence[str]) -> None:
        """Delete objects in the given order; stop at the first failure."""
        for name in names:
            self.delete(name)

    @abstractmethod
    def list(self, folder: str) -> list[str]:
        """Return the full names of the objects directly in a folder, sorted."""

    @abstractmethod
    def list_times(self, folder: str) -> Sequence[tuple[str, datetime]]:
        """Return the objects directly in a folder as `list` does, with the times they were written."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return True if there is nothing below the root."""

    @abstractmethod
    def folders(self, parent: str) -> dict[str, datetime]:
        """Return the folders directly in a folder, by full name, with the time anything below each was last written."""

    @abstractmethod
    def delete_folder(self, folder: str) -> None:
        """Delete a folder and everything below it, if it exists."""

    @abstractmethod
    def remove_unfinished(self, older_than: datetime) -> None:
        """Delete old temporary files and probes of processes that died."""

    @abstractmethod
    def written_at(self, name: str) -> datetime | None:
        """Return when an object was last written, by the store's clock; None if it does not exist."""

    def now(self) -> datetime:
        """Return the store's current time, taken from a probe object that is written now.

        Ages of objects are differences of such times. The clocks of two hosts are never compared.
        """
        name = f"{layout.PROBE}{uuid4().hex}"
        self.write(name, b"1")
        try:
            found = self.written_at(name)
        finally:
            self.delete(name)
        if found is None:
            raise StorageError("the store does not show an object that was just written")
        return found

    def prove_conditional_writes(self, token: str) -> None:
        """Write probe objects twice; refuse a store that accepts the second write.

        A lost response proves nothing about the store. The object itself shows the outcome; if it does not, the test is
        repeated under a new name.
        """
        failure: StorageError | None = None
        for attempt in range(_PROBE_TRIES):
            name = f"{layout.PROBE}{token}_{attempt}" if attempt else f"{layout.PROBE}{token}"
            try:
                honoured = self._probe(name)
            except StorageError as error:
                if error.code != "unreachable":
                    raise
                failure = error
                continue
            if honoured is None:
                continue
            if honoured:
                return
            raise StorageError(
                "this object store ignores conditional writes (If-None-Match), so two writers could overwrite "
                "each other's commits",
                hint="use a store that honours them, such as AWS S3 or SeaweedFS",
            )
        raise failure or StorageError(
            "the object store did not respond to a test of conditional writes",
            code="unreachable",
            hint="try again",
        )

    def _probe(self, name: str) -> bool | None:
        """Return True if the second of two conditional writes is refused; None if the responses are inconclusive."""
        try:
            if not self.write_if_absent(name, b"1") and self.read(name) != b"1":
                return None
            if not self.write_if_absent(name, b"2"):
                # Refused; or accepted by a store whose response was lost before the client repeated the request.
                return self.read(name) == b"1" or None
            return None if self.read(name) is None else False
        finally:
            self.delete(name)


def object_store(location: Location, *, sync: bool = True) -> ObjectStore:
    """Return the object store of a location; with `sync`, local writes wait for the disk."""
    return LocalObjects(location.path, sync=sync) if location.path is not None else S3Objects(location)


class LocalObjects(ObjectStore):
    """Objects in a local folder. A write completes a temporary file and then renames or links it into place."""

    def __init__(self, root: Path, *, sync: bool = True) -> None:
        self.root = root
        self._sync = sync

    @timed("storage", "read")
    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""
        path = self.root / name
        try:
            # Opening a pipe would block until it has a writer.
            with open(path, "rb", opener=_open_nonblocking) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise StorageError(f"'{path}' is not a regular file", code="io_error", hint="remove it")
                return file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _local_error(error, path) from error

    def open(self, name: str) -> pa.NativeFile:
        """Open a file as a memory map."""
        try:
            return pa.memory_map(str(self.root / name))
        except OSError as error:
            raise _local_error(error, self.root / name) from error

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file in parts."""
        with (self.root / name).open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                yield chunk

    @timed("storage", "read")
    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Return a range of bytes of a file."""
        try:
            with (self.root / name).open("rb") as file:
                file.seek(start)
                return file.read(end - start)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _local_error(error, self.root / name) from error

    @timed("storage", "write")
    def write_file(self, name: str, path: Path) -> None:
        """Create or replace a file with the content of another file."""
        target = self.root / name
        try:
            temporary = self._temporary(target, b"")
            shutil.copyfile(path, temporary)
            temporary.replace(target)
            if self._sync:
                sync_folders_of([target])
        except OSError as error:
            raise _local_error(error, target) from error

    @timed("storage", "write")
    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file atomically."""
        target = self.root / name
        try:
            temporary = self._temporary(target, data)
            temporary.replace(target)
            if self._sync:
                sync_folders_of([target])
        except OSError as error:
            raise _local_error(error, target) from error

    @timed("storage", "write")
    def create_whole(self, name: str, data: bytes, *, sync: bool) -> bool:
        """Create a file in an existing folder unless it exists; return True if it was created.

        It appears with its whole content, or not at all; `write_if_absent` may leave a partial file if the file system
        has no hard links. With `sync`, the file and its folder are synced once.
        """
        target = self.root / name
        try:
            temporary = self._temporary(target, data, sync=sync)
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            finally:
                temporary.unlink(missing_ok=True)
            if sync:
                sync_folder(target.parent)
        except OSError as error:
            raise _local_error(error, target) from error
        return True

    @timed("storage", "write")
    def write_if_absent(self, name: str, data: bytes) -> bool:
        """Create a file unless it exists; return True if it was created."""
        target = self.root / name
        try:
            temporary = self._temporary(target, data)
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            except OSError:
                # The file system has no hard links. An exclusive create is atomic too, but a crash may leave a partial
                # file.
                return self._create_exclusively(target, data)
            finally:
                temporary.unlink(missing_ok=True)
            if self._sync:
                sync_folders_of([target])
        except OSError as error:
            raise _local_error(error, target) from error
        return True

    @timed("storage", "delete")
    def delete(self, name: str) -> None:
        """Delete a file if it exists."""
        try:
            self._inside(name).unlink(missing_ok=True)
        except OSError as error:
            raise _local_error(error, self.root / name) from error

    def _inside(self, name: str) -> Path:
        """Return a path for deletion; refuse it if its folder is outside the graph's folder."""
        path = self.root / name
        folder = Path(os.path.realpath(path.parent))
        if path.name in ("", "..") or not folder.is_relative_to(os.path.realpath(self.root)):
            raise StorageError(
                f"'{path}' is not inside the graph's folder; nothing was deleted",
                code="no_access",
                hint="remove the symbolic link, or the file that names the path",
            )
        return path

    def now(self) -> datetime:
        """Return the current time of the file system, taken from a probe file."""
        probe = self.root / f"{_TEMPORARY}{uuid4().hex}"
        try:
            with probe.open("xb") as file:
                file.write(b"1")
            found = probe.stat().st_mtime
            probe.unlink()
        except OSError as error:
            raise _local_error(error, probe) from error
        return datetime.fromtimestamp(found, UTC)

    def written_at(self, name: str) -> datetime | None:
        """Return the modification time of a file; None if it does not exist."""
        try:
            return _moment((self.root / name).stat().st_mtime)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _local_error(error, self.root / name) from error

    @timed("storage", "list")
    def list(self, folder: str) -> list[str]:
        """Return the full names of the files directly in a folder, sorted; hidden files are skipped."""
        try:
            found = sorted(entry.name for entry in os.scandir(self.root / folder) if _is_file(entry))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _local_error(error, self.root / folder) from error
        return [f"{folder}/{name}" for name in found if not name.startswith(".")]

    def list_times(self, folder: str) -> Sequence[tuple[str, datetime]]:
        """Return the files directly in a folder with their modification times; files that vanish are skipped."""
        found = ((name, self.written_at(name)) for name in self.list(folder))
        return [(name, written_at) for name, written_at in found if written_at is not None]

    def is_empty(self) -> bool:
        """Return True if the folder is empty or does not exist."""
        try:
            with os.scandir(self.root) as entries:
                return not any(entries)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise _local_error(error, self.root) from error

    def folders(self, parent: str) -> dict[str, datetime]:
        """Return the folders directly in a folder, by full name, with the newest modification time below each."""
        try:
            found = [Path(entry) for entry in os.scandir(self.root / parent) if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _local_error(error, self.root / parent) from error
        return {f"{parent}/{folder.name}": _newest(folder) for folder in found}

    def delete_folder(self, folder: str) -> None:
        """Delete a folder and everything below it, if it exists; a symbolic link is removed, not followed."""
        path = self._inside(folder)
        try:
            if path.is_symlink():
                path.unlink()
            else:
                shutil.rmtree(path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise _local_error(error, path) from error

    def remove_unfinished(self, older_than: datetime) -> None:
        """Delete old temporary files and probes of processes that died."""
        for pattern in (f"{_TEMPORARY}*", f"*/{_TEMPORARY}*", f"{layout.PROBE}*"):
            for file in self.root.glob(pattern):
                try:
                    if datetime.fromtimestamp(file.lstat().st_mtime, UTC) < older_than:
                        self._inside(str(file.relative_to(self.root))).unlink()
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise _local_error(error, file) from error

    def _temporary(self, target: Path, data: bytes, *, sync: bool = False) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.parent / f"{_TEMPORARY}{uuid4().hex}"
        # `tempfile` creates files with mode 0600; files of a shared graph follow the umask.
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                self._fill(file, data, sync=sync)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    def _create_exclusively(self, target: Path, data: bytes) -> bool:
        try:
            handle = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(handle, "wb") as file:
            self._fill(file, data)
        return True

    def _fill(self, file: BinaryIO, data: bytes, *, sync: bool = False) -> None:
        file.write(data)
        file.flush()
        if self._sync or sync:
            os.fsync(file.fileno())


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
            for chunk in obstore.get(self._store, self._key(name)).stream(min_chunk_size=_CHUNK_BYTES):
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


def _newest(folder: Path) -> datetime:
    times: list[float] = [0.0]
    for file in (folder, *folder.rglob("*")):
        with suppress(FileNotFoundError):
            times.append(file.lstat().st_mtime)
    return _moment(max(times))


def _moment(seconds: float) -> datetime:
    """Convert a file time. File systems can hold times that a datetime cannot; they are clamped to its range."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), _SECONDS_MAX), UTC)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        # A symbolic link to itself.
        return False


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _local_error(error: OSError, path: Path) -> OmniGraphError:
    code, hint = {
        errno.EACCES: ("no_access", "check the permissions of the graph's folder"),
        errno.EPERM: ("no_access", "check the permissions of the graph's folder"),
        errno.EROFS: ("no_access", "the file system is read-only: open the graph with read_only=True"),
        errno.ENOSPC: ("disk_full", "free some space; nothing was published, and a cleanup removes what was written"),
        errno.EDQUOT: ("disk_full", "free some space; nothing was published, and a cleanup removes what was written"),
    }.get(error.errno or 0, ("io_error", None))
    return StorageError(f"'{path}': {error.strerror or error}", code=code, hint=hint)
