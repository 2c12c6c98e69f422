"""Derived structures of a graph on an object store, beside its tables.

Large structures are computed once: a load and `optimize` upload the entries of the local disk cache to `__cache`, and
another machine downloads an entry when a query needs it. Entries are immutable. The arrays of an upload have a folder
of their own; the object `<entry>.<upload>.json`, written last, makes it visible. It is a cache, never authority: an
entry that is missing, damaged or removed while it is read is computed again.

An entry of several mebibytes whose structure knows the ranges that a query reads is not downloaded as a whole. Its
small arrays are; of the others, blocks are fetched when they are needed (`ranged_arrays`). The description of an upload
names the arrays and the size of a block under `blocks`, and the SHA-256 of the object `<upload>/blocks.crc`, which has
the checksums of their blocks. An upload without it, and small entries, are downloaded completely.

A bucket has other writers than the local cache folder. A download is verified by its checksums, and its values are
checked like those of a copied entry before they are used.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache, entry_checks
from omnigraph.engine.cache.disk_cache import FOLDER, RANGED, Subject
from omnigraph.engine.cache.ranged_arrays import block_sums, sums_path
from omnigraph.engine.exec.cancellation import add_note, checkpoint
from omnigraph.errors import StorageError
from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.parallel import each_request

_NAME = re.compile(r"([0-9a-f]{32}-[0-9a-f]{32})\.([0-9a-f]{32})\.json")
_ABOUT_BYTES_MAX = 64 << 20
_PART_BYTES = 8 << 20
_BLOCKS = "blocks"
_SUMS = "blocks.crc"
_BLOCK_BYTES_MAX = 16 << 20
_PARTS_AT_ONCE = 8
_DISK_SHARE = 0.9
"""Share of the free disk space that a download may fill."""
_log = logging.getLogger(__name__)

About = Mapping[str, Any]


@dataclass(frozen=True)
class _Upload:
    """An entry on the object store."""

    name: str
    upload: str

    @property
    def about(self) -> str:
        """The object that describes the entry."""
        return f"{_folder()}/{self.name}.{self.upload}.json"

    @property
    def folder(self) -> str:
        """The folder of its arrays."""
        return f"{_folder()}/{self.upload}"


def _folder() -> str:
    return f"{FOLDER}/{disk_cache.GENERATION}"


class RemoteCache:
    """The entries of `__cache` of a graph on an object store, and the local disk cache that they are copied to."""

    def __init__(self, objects: ObjectStore, folder: Path, *, read_only: bool) -> None:
        self._objects = objects
        self._local = folder
        self._read_only = read_only
        self._lock = Lock()
        self._listed: list[_Upload] = []
        self._listed_at = float("-inf")
        self._tried: set[_Upload] = set()

    def exists(self, subject: Subject) -> bool:
        """Return True if there is an entry of a subject, possibly of another version."""
        try:
            return any(self._of([subject]))
        except StorageError as error:
            _log.warning("the search structures of the graph cannot be listed: %s", error.message)
            return False

    def fetch(
        self, subjects: Sequence[Subject], is_better: Callable[[list[About]], bool], ranged: Collection[str] = ()
    ) -> bool:
        """Download the entries of some subjects if their descriptions are better than what is kept locally.

        The subjects belong together: local entries of those without a remote entry are removed. Of the arrays `ranged`
        of a large entry, nothing is downloaded yet. Returns True if an entry was downloaded. An entry that cannot be
        read is not downloaded.
        """
        with self._locked():
            try:
                found = self._of(subjects)
                if all(one in self._tried for one in found):
                    return False
                self._tried.update(found)
                documents = {one: self._document(one) for one in found}
                known = {one: document for one, document in documents.items() if document is not None}
                if not known or not is_better([document["entry"] for document in known.values()]):
                    return False
                done = [one for one, document in known.items() if self._download(one, document, ranged)]
            except (StorageError, *disk_cache.BAD) as error:
                _log.warning("a search structure cannot be downloaded: %s", _reason(error))
                return False
            if done:
                for subject in subjects:
                    if not any(one.name.startswith(disk_cache.prefix_of(subject)) for one in known):
                        disk_cache.remove(self._local, subject)
            return bool(done)

    def upload(self, is_current: Callable[[About], bool], *, sweep: bool = False) -> None:
        """Upload the local entries that describe the current version and are not on the object store.

        Earlier entries of the same subjects are removed; with `sweep`, also the remains of interrupted uploads and the
        entries of earlier releases. A failure is logged: other machines then compute the structures.
        """
        with self._locked():
            try:
                self._listed_at = float("-inf")
                listed = {one.name for one in self._list()}
                for path, entry in disk_cache.descriptions(self._local):
                    if path.name not in listed and is_current(entry):
                        self._upload(path, entry)
                if sweep:
                    self._sweep()
            except (StorageError, OSError) as error:
                _log.warning("search structures were not uploaded: %s", _reason(error))

    def remove_of(self, tables: Collection[str]) -> int:
        """Remove every entry of some tables, by their folders, and arrays without an entry; return their number."""
        removed = 0
        with self._locked():
            self._listed_at = float("-inf")
            kept: set[str] = set()
            for one in self._list():
                about = self._objects.read(one.about)
                if disk_cache.describes(about.decode(errors="replace") if about is not None else None, tables):
                    self._remove(one)
                    removed += 1
                else:
                    kept.add(one.folder)
            for folder in self._objects.folders(_folder()):
                if folder not in kept:
                    self._objects.delete_folder(folder)
            self._listed_at = float("-inf")
        return removed

    # -- reading ---------------------------------------------------------------------------------

    def _list(self) -> list[_Upload]:
        """Return all entries, as listed a short time ago; of several uploads of one entry, only one."""
        if time.monotonic() - self._listed_at > tuning.current.remote_cache_list_s:
            found: dict[str, _Upload] = {}
            for name in self._objects.list(_folder()):
                match = _NAME.fullmatch(name.rpartition("/")[2])
                if match is not None:
                    found[match[1]] = _Upload(match[1], match[2])
            self._listed, self._listed_at = list(found.values()), time.monotonic()
        return self._listed

    def _of(self, subjects: Iterable[Subject]) -> list[_Upload]:
        prefixes = tuple(map(disk_cache.prefix_of, subjects))
        return [one for one in self._list() if one.name.startswith(prefixes)]

    def _document(self, one: _Upload) -> dict[str, Any] | None:
        """Read the description of an entry; None if it is missing or damaged."""
        text = b""
        try:
            for chunk in self._objects.chunks(one.about):
                text += chunk
                entry_checks.check(len(text) <= _ABOUT_BYTES_MAX, "its description is too large")
            document: dict[str, Any] = json.loads(text)
            disk_cache.check_document(document)
            return document
        except FileNotFoundError:
            return None
        except disk_cache.BAD as error:
            self._discard(one, error)
            return None

    def _download(self, one: _Upload, document: Mapping[str, Any], ranged: Collection[str]) -> bool:
        """Copy an entry to the local disk cache; return False if it is missing or damaged."""
        if (self._local / one.name).exists():
            return True
        entry = {key: value for key, value in document["entry"].items() if key != RANGED}
        try:
            sizes = {name: disk_cache.bytes_of(name, facts) for name, facts in entry["arrays"].items()}
            later = _ranged_arrays(entry, sizes, ranged)
            total = sum(size for name, size in sizes.items() if name not in later)
            if total > _DISK_SHARE * shutil.disk_usage(self._local.parent).free:
                add_note(f"not downloaded: {total:,} bytes do not fit the disk")
                return False
            add_note(f"{total:,} bytes of the cache downloaded")
            sums = self._sums(one, entry, sizes) if later else {}
            if later:
                checksums = {name: zlib.crc32(sums[name]) for name in later}
                entry[RANGED] = {"folder": one.folder, "block": entry[_BLOCKS]["bytes"], "arrays": checksums}
            with disk_cache.placing_entry(self._local, one.name, entry) as temporary:
                for name in later:
                    sums_path(temporary, name).write_bytes(sums[name])
                    _write_sparse(temporary / name, sizes[name])
                self._copy(one, {name: size for name, size in sizes.items() if name not in later}, temporary)
        except FileNotFoundError:
            return False
        except OSError:
            raise
        except disk_cache.BAD as error:
            self._discard(one, error)
            return False
        return True

    def _sums(self, one: _Upload, entry: About, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """Read the checksums of the blocks of the large arrays of an upload."""
        blocks = entry[_BLOCKS]
        counts = {name: -(-sizes[name] // int(blocks["bytes"])) * 4 for name in blocks["arrays"]}
        data = self._objects.read_range(f"{one.folder}/{_SUMS}", 0, sum(counts.values()))
        entry_checks.check(hashlib.sha256(data).hexdigest() == blocks["sha256"], f"'{_SUMS}' has a wrong checksum")
        found: dict[str, bytes] = {}
        start = 0
        for name, size in counts.items():
            found[name] = data[start : start + size]
            start += size
        return found

    def read_part(self, name: str, start: int, end: int, size: int) -> bytes:
        """Return a range of an object of a size; raise `BadEntry` if it has another size."""
        try:
            return self._objects.read_range(name, start, end)
        except StorageError:
            # A store refuses a range behind the end of an object.
            found = self._objects.size(name)
            entry_checks.check(found in (0, size), f"'{name.rpartition('/')[2]}' is too short")
            if not found:
                raise FileNotFoundError(name) from None
            raise

    def lose(self, path: Path, folder: str, reason: str | None) -> None:
        """Remove an incomplete local entry whose arrays are missing on the object store, or damaged for a reason."""
        one = _Upload(path.name, folder.rpartition("/")[2])
        self._tried.add(one)
        disk_cache.remove_entry(path)
        if reason is not None:
            self._discard(one, entry_checks.BadEntry(reason))

    def _copy(self, one: _Upload, sizes: Mapping[str, int], folder: Path) -> None:
        """Copy the arrays of an entry to a folder, several parts at a time."""
        parts: list[tuple[Path, int, int]] = []
        for name, size in sizes.items():
            path = folder / name
            _write_sparse(path, size)
            parts += [(path, start, min(start + _PART_BYTES, size)) for start in range(0, size, _PART_BYTES)]

        def copy(part: tuple[Path, int, int]) -> None:
            path, start, end = part
            data = self._objects.read_range(f"{one.folder}/{path.name}", start, end)
            entry_checks.check(len(data) == end - start, f"'{path.name}' is too short")
            with path.open("rb+") as file:
                file.seek(start)
                file.write(data)

        for first in range(0, len(parts), _PARTS_AT_ONCE):
            checkpoint()
            each_request(copy, parts[first : first + _PARTS_AT_ONCE])

    # -- writing ---------------------------------------------------------------------------------

    def _upload(self, path: Path, entry: About) -> None:
        one = _Upload(path.name, uuid4().hex)
        for name in entry["arrays"]:
            checkpoint()
            self._objects.write_file(f"{one.folder}/{name}", path / name)
        entry = {**entry, _BLOCKS: self._upload_sums(one, path, entry)}
        self._objects.write(one.about, disk_cache.portable(entry).encode())
        subject: Subject = tuple(entry["what"])
        stale = [disk_cache.prefix_of(subject)]
        if subject[-1].isdigit():
            later = [(*subject[:-1], str(at)) for at in range(int(subject[-1]) + 1, tuning.current.segments_max + 1)]
            stale += [disk_cache.prefix_of(other) for other in later if not disk_cache.exists(self._local, other)]
        for other in self._listed:
            if other.name.startswith(tuple(stale)):
                self._remove(other)
        self._listed = [other for other in self._listed if not other.name.startswith(tuple(stale))] + [one]

    def _upload_sums(self, one: _Upload, path: Path, entry: About) -> dict[str, Any]:
        """Upload the checksums of the blocks of large arrays; return their description."""
        block = tuning.current.remote_block_bytes
        large = tuning.current.disk_cache_large_bytes
        names = [name for name, facts in entry["arrays"].items() if disk_cache.bytes_of(name, facts) >= large]
        sums = b""
        for name in names:
            checkpoint()
            sums += block_sums(path / name, block)
        if names:
            self._objects.write(f"{one.folder}/{_SUMS}", sums)
        return {"bytes": block, "arrays": names, "sha256": hashlib.sha256(sums).hexdigest()}

    def _remove(self, one: _Upload) -> None:
        self._objects.delete(one.about)
        self._objects.delete_folder(one.folder)

    def _discard(self, one: _Upload, error: Exception) -> None:
        """Remove the description of a damaged entry, so that the next `optimize` uploads it again."""
        _log.warning("the search structure %s of the bucket is damaged and is built again: %s", one.name, error)
        if not self._read_only:
            self._objects.delete(one.about)
        self._listed = [other for other in self._listed if other != one]

    def _sweep(self) -> None:
        """Remove old arrays that no entry has, and entries of earlier releases."""
        known = {one.folder for one in self._list()}
        unused = {
            folder: written_at for folder, written_at in self._objects.folders(_folder()).items() if folder not in known
        }
        generations = [folder.rpartition("/")[2] for folder in self._objects.folders(FOLDER)]
        for generation in generations:
            if generation.isdecimal() and int(generation) < disk_cache.GENERATION:
                self._objects.delete_folder(f"{FOLDER}/{generation}")
        if unused:
            before = self._objects.now() - timedelta(seconds=tuning.current.disk_cache_orphan_s)
            for folder, written_at in unused.items():
                if written_at < before:
                    self._objects.delete_folder(folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        while not self._lock.acquire(timeout=tuning.current.poll_s):
            checkpoint()
        try:
            yield
        finally:
            self._lock.release()


def _ranged_arrays(entry: About, sizes: Mapping[str, int], ranged: Collection[str]) -> list[str]:
    """Return the arrays of an entry that are read by range: those of `ranged` that are large, if the entry is."""
    blocks = entry.get(_BLOCKS)
    if not ranged or blocks is None or sum(sizes.values()) < tuning.current.remote_ranged_bytes_min:
        return []
    size = int(blocks["bytes"])
    entry_checks.check(8 <= size <= _BLOCK_BYTES_MAX and size % 8 == 0, f"'{_BLOCKS}' is malformed")
    large = tuning.current.disk_cache_large_bytes
    return [name for name in blocks["arrays"] if name in ranged and sizes[name] >= max(large, 1)]


def _write_sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def covered_rows(pieces: Iterable[Iterable[Any]], rows_of: Mapping[str, int]) -> int:
    """Return the rows of a version, given by data file, whose fragments are in one of some lists of fragments."""
    files = {str(fragment[0]) for some in pieces for fragment in some}
    return sum(rows for file, rows in rows_of.items() if file in files)


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, StorageError) else str(error)
