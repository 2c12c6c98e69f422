"""`LocalObjects`: the objects of a graph in a local folder."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import pyarrow as pa

from omnigraph.errors import OmniGraphError, OutcomeUnknown, StorageError
from omnigraph.file_replacement import TEMPORARY, replacement
from omnigraph.observer import timed
from omnigraph.storage.files import layout
from omnigraph.storage.files.fsync import sync_folder, sync_folders_of
from omnigraph.storage.files.object_store import CHUNK_BYTES, ObjectStore

_TEMPORARY_OF_LANCE = "*#[0-9]*"
"""Files that Lance writes before it gives them their names; it does not list them."""
_FOLDERS_OF_LANCE = (*layout.TABLES, layout.MANIFEST, layout.RECOVERY_LOG)
_SECONDS_MAX = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


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
            while chunk := stream.read(CHUNK_BYTES):
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
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacement(target, sync=False) as file, path.open("rb") as source:
                shutil.copyfileobj(source, file)
                self._flush(file)
            if self._sync:
                sync_folders_of([target])
        except OSError as error:
            raise _local_error(error, target) from error

    @timed("storage", "write")
    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file atomically."""
        target = self.root / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacement(target, sync=False) as file:
                file.write(data)
                self._flush(file)
            if self._sync:
                sync_folders_of([target])
        except OSError as error:
            raise _local_error(error, target) from error

    @timed("storage", "write")
    def create_whole(self, name: str, data: bytes, *, sync: bool) -> bool:
        """Create a file in an existing folder unless it exists; return True if it was created.

        It appears with its whole content, or not at all; `write_if_absent` may leave a partial file if the file system
        has no hard links. With `sync`, the file and its folder are synced once. If the folder cannot be synced,
        the file exists, and a power failure can remove it: `OutcomeUnknown`.
        """
        target = self.root / name
        try:
            temporary = self._temporary(target, data, sync=sync)
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            finally:
                _remove_temporary(temporary)
        except OSError as error:
            raise _local_error(error, target) from error
        try:
            if sync:
                sync_folder(target.parent)
        except OSError as error:
            raise OutcomeUnknown(
                f"'{target}': {error.strerror or error}; the file exists, and a power failure can remove it",
                hint="check the disk, and read the branch before trying again",
            ) from error
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
                _remove_temporary(temporary)
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
        probe = self.root / f"{TEMPORARY}{uuid4().hex}"
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

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return every file below a folder with its size, including hidden files; links are not followed."""
        found: dict[str, int] = {}
        for parent, _, names in os.walk(self.root / folder, onerror=_raise_unreadable):
            for name in names:
                path = Path(parent, name)
                if (status := _status(path)) is not None:
                    found[path.relative_to(self.root).as_posix()] = status.st_size
        return dict(sorted(found.items()))

    def size(self, name: str) -> int:
        """Return the size of a file, 0 if it does not exist."""
        try:
            return (self.root / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return 0
        except OSError as error:
            raise _local_error(error, self.root / name) from error

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
        of_lance = [f"{folder}/**/{_TEMPORARY_OF_LANCE}" for folder in _FOLDERS_OF_LANCE]
        for pattern in (f"{TEMPORARY}*", f"*/{TEMPORARY}*", f"{layout.PROBE}*", *of_lance):
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
        temporary = target.parent / f"{TEMPORARY}{uuid4().hex}"
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
        try:
            with os.fdopen(handle, "wb") as file:
                self._fill(file, data)
        except OSError:
            target.unlink(missing_ok=True)
            raise
        return True

    def _fill(self, file: BinaryIO, data: bytes, *, sync: bool = False) -> None:
        file.write(data)
        self._flush(file, sync=sync)

    def _flush(self, file: BinaryIO, *, sync: bool = False) -> None:
        file.flush()
        if self._sync or sync:
            os.fsync(file.fileno())


def _remove_temporary(temporary: Path) -> None:
    """Remove a file that has another name by now; if it cannot be removed, it remains until a cleanup."""
    with suppress(OSError):
        temporary.unlink()


def _newest(folder: Path) -> datetime:
    walk = os.walk(folder, onerror=_raise_unreadable)
    statuses = [_status(Path(parent, name)) for parent, folders, names in walk for name in ("", *folders, *names)]
    return _moment(max((status.st_mtime for status in statuses if status is not None), default=0.0))


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a file or link; None if it does not exist."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _local_error(error, path) from error


def _raise_unreadable(error: OSError) -> None:
    """Raise the error of a folder that cannot be listed, unless it does not exist."""
    if not isinstance(error, FileNotFoundError):
        raise _local_error(error, Path(error.filename)) from error


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
