"""The disk cache: derived structures that are expensive to compute, kept for the next process.

An entry is a folder of raw arrays and an `about.json`. It is a cache, never authority: it may be deleted at any time.
Entries are immutable. The name of an entry is derived from its subject and from the fragments it was built from, so a
name is never reused for other content. An entry appears by one rename. `about.json` contains its own checksum and the
size, type and checksum of every array. An entry that does not match is reported, removed and rebuilt.

Arrays are mapped, not read. A large array is synchronised to disk before the rename, and `about.json` records its
modification time. An entry whose large files still have their size and time is trusted: opening it reads none of them,
so the cost of a query depends on the pages it touches. A copied or modified entry is verified once, completely, and its
times are recorded again. Small arrays are always verified.

The checksum is a sum per block of one mebibyte, combined by CRC-32: it runs at memory speed, several times as fast as
CRC-32 over all bytes.

An entry of a graph on an object store can be incomplete: `about.json` then lists under `ranged` the arrays that are
read by range (`ranged_arrays`). When the last block is there, they are removed from the list, and the next process
verifies the entry like a copied one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache.entry_checks import BadEntry, check, checksum
from omnigraph.engine.cache.entry_writer import SCRATCH, EntryWriter, map_array
from omnigraph.engine.cache.ranged_arrays import AnyArray, RangedArray, RangedEntry, RangeSource
from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.lance.tables import FragmentKey

FOLDER = "__cache"
GENERATION = 6
"""The format of the entries."""
RANGED = "ranged"
"""The key of the description of an incomplete entry under which the arrays are listed that are read by range."""
_ABOUT = "about.json"
_log = logging.getLogger(__name__)

Subject = tuple[str, ...]
"""The subject of an entry: its kind first, then the tables and columns."""
T = TypeVar("T")


BAD = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError)
"""What reading a damaged entry can raise."""


@dataclass(frozen=True)
class CacheEntry:
    """The arrays of an entry and the metadata recorded with them."""

    about: Mapping[str, Any]
    arrays: Mapping[str, AnyArray]
    trusted: bool = False
    """True if there are large arrays and they are unchanged since they were verified. Their values need no check."""
    times: Mapping[str, int] = field(default_factory=dict)
    """The modification time of every file if one of the large files changed and all of them were verified."""
    ranged: Mapping[str, RangedArray] = field(default_factory=dict)
    """The arrays of an incomplete entry that are read by range; they are not in `arrays`."""

    def get(self, name: str) -> AnyArray | RangedArray:
        """Return an array that may be read by range."""
        found = self.ranged.get(name)
        return self.arrays[name] if found is None else found


def load(
    folder: Path | None,
    subject: Subject,
    read: Callable[[CacheEntry], T],
    *,
    discard: bool,
    source: RangeSource | None = None,
) -> T | None:
    """Return the newest valid entry of a subject, converted by `read`; None if there is none.

    `read` raises `BadEntry` for inconsistent arrays. A bad entry is reported and, with `discard`, removed. `source` is
    the object store from which incomplete entries are read.
    """
    if folder is None:
        return None
    for _ in range(tuning.current.disk_cache_tries):
        paths = _entries(folder, subject)
        for path in paths:
            try:
                entry = _open(path, source)
                if entry.about.get("generation") == GENERATION and entry.about.get("what") == list(subject):
                    found = read(entry)
                    if discard and entry.times:
                        _record_times(path, entry)
                    return found
            except BAD as error:
                if not path.exists():
                    continue  # removed by the process that replaced it
                _log.warning("the cache entry %s is damaged and is built again: %s", path.name, _reason(error))
            if discard:
                remove_entry(path)
        if all(path.exists() for path in paths):
            return None
    return None


def exists(folder: Path | None, subject: Subject) -> bool:
    """Return True if there is an entry of a subject, possibly of another version."""
    return folder is not None and bool(_entries(folder, subject))


def find_damaged(folder: Path | None) -> list[tuple[str, str]]:
    """Return the damaged entries: (name, reason)."""
    found: list[tuple[str, str]] = []
    for path in sorted(_visible(folder)) if folder is not None else []:
        if "-" not in path.name:
            continue  # written by an earlier release and never read
        try:
            _open(path, verify_all=True)
        except BAD as error:
            if path.exists():
                found.append((path.name, _reason(error)))
    return found


def save(folder: Path | None, subject: Subject, about: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    """Save an entry, completely or not at all. If the folder cannot be written, nothing is saved."""
    if folder is None:
        return
    try:
        with writing_entry(folder, subject, about) as writer:
            for name, array in arrays.items():
                writer.put(name, array)
    except OSError:
        # The disk is read-only or full: the next process computes the entry again.
        return


def remove(folder: Path, subject: Subject) -> None:
    """Remove every entry of a subject."""
    for path in _entries(folder, subject):
        remove_entry(path)


def remove_of(folder: Path, tables: Collection[str]) -> int:
    """Remove every entry of some tables, by their folders, and all unfinished entries; return the number of entries."""
    removed = 0
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.name.startswith((".making-", ".gone-")):
            shutil.rmtree(path, ignore_errors=True)
        elif path.is_dir() and describes(_about_text(path), tables):
            remove_entry(path)
            removed += 1
    return removed


def describes(about: str | None, tables: Collection[str]) -> bool:
    """Return True if the description of an entry names one of some tables, or cannot be read."""
    return about is None or any(f'"{table}"' in about or f"{table}/" in about for table in tables)


def _about_text(path: Path) -> str | None:
    try:
        return (path / _ABOUT).read_text()
    except (OSError, ValueError):
        return None


@contextmanager
def writing_entry(folder: Path, subject: Subject, about: Mapping[str, Any]) -> Iterator[EntryWriter]:
    """Write an entry in a temporary folder; rename it when it is complete."""
    folder.mkdir(exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder, prefix=".making-"))
    try:
        writer = EntryWriter(temporary)
        yield writer
        shutil.rmtree(temporary / SCRATCH, ignore_errors=True)
        entry = {**about, "generation": GENERATION, "what": list(subject), "arrays": writer.described()}
        (temporary / _ABOUT).write_text(_document(entry))
        _place(folder, temporary, f"{prefix_of(subject)}{_digest(json.dumps(about, sort_keys=True))}", subject)
        _sweep(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _place(folder: Path, temporary: Path, name: str, subject: Subject, *, replace: bool = True) -> None:
    """Make a finished entry visible and remove the earlier entries of its subject.

    Without `replace`, raises `FileExistsError` if another process was faster.
    """
    path = folder / name
    older = [one for one in _entries(folder, subject) if one != path]
    if path.exists() and replace:
        # Another process built the same content, or the existing entry is damaged.
        remove_entry(path)
    try:
        os.replace(temporary, path)  # noqa: PTH105
    except OSError as error:
        if path.exists() and not replace:
            raise FileExistsError(path) from error
        raise
    for one in older:
        remove_entry(one)


@contextmanager
def placing_entry(folder: Path, name: str, entry: Mapping[str, Any]) -> Iterator[Path]:
    """Fill a temporary folder with the arrays of an entry from elsewhere; verify and rename it when it is complete.

    Raises `BadEntry` if an array does not match its checksum. The values are checked when the entry is opened first.
    """
    folder.mkdir(exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder, prefix=".making-"))
    try:
        yield temporary
        (temporary / _ABOUT).write_text(portable(entry))
        try:
            _open(temporary, verify_all=True)
            subject = tuple(map(str, entry["what"]))
            check(name.startswith(prefix_of(subject)), "its name is that of another subject")
        except BAD as error:
            raise BadEntry(_reason(error)) from error
        with suppress(FileExistsError):
            # Another process placed the same entry: its blocks stay in use.
            _place(folder, temporary, name, subject, replace=False)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def descriptions(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the complete entries of the current format and their descriptions; damaged ones are skipped."""
    for path in sorted(_visible(folder)):
        try:
            document = json.loads((path / _ABOUT).read_bytes())
            check_document(document)
        except BAD:
            continue
        if document["entry"]["generation"] == GENERATION and not is_incomplete(document["entry"]):
            yield path, document["entry"]


def portable(entry: Mapping[str, Any]) -> str:
    """Return the description of an entry without modification times, so that a copy is verified."""
    arrays = {
        name: {key: value for key, value in facts.items() if key != "time"} for name, facts in entry["arrays"].items()
    }
    return _document({**entry, "arrays": arrays})


def check_document(document: Any) -> None:
    """Raise `BadEntry` if a description does not match its checksum."""
    text = json.dumps(document["entry"], sort_keys=True)
    check(hashlib.sha256(text.encode()).hexdigest() == document["sha256"], f"'{_ABOUT}' has a wrong checksum")


def is_incomplete(entry: Mapping[str, Any]) -> bool:
    """Return True if arrays of an entry are read by range."""
    return RANGED in entry


def bytes_of(name: str, facts: Mapping[str, Any]) -> int:
    """Return the size of an array of a description; raise `BadEntry` if the description is malformed."""
    try:
        kind, shape = np.dtype(facts["type"]), tuple(facts["shape"])
        check("/" not in name and not name.startswith("."), f"'{name}' is not the name of an array")
        check(kind.kind in "iuf" and all(int(size) == size >= 0 for size in shape), f"'{name}' is malformed")
    except BAD as error:
        raise BadEntry(_reason(error)) from error
    return int(np.prod(shape, dtype=object) * kind.itemsize)


def fragments_of(written: Any) -> tuple[FragmentKey, ...]:
    """Return the fragment keys from their JSON form."""
    return tuple((str(files), int(rows), str(gone)) for files, rows, gone in written)


# -- files -------------------------------------------------------------------------------------------


def _open(path: Path, source: RangeSource | None = None, *, verify_all: bool = False) -> CacheEntry:
    """Open an entry. Large arrays are verified if their files changed, or with `verify_all`."""
    document = json.loads((path / _ABOUT).read_bytes())
    check_document(document)
    entry = document["entry"]
    arrays: dict[str, AnyArray] = {}
    times: dict[str, int] = {}
    large: list[str] = []
    ranged = _open_ranged(path, entry, source) if is_incomplete(entry) else {}
    for name, facts in entry["arrays"].items():
        bytes_of(name, facts)
        if name in ranged:
            continue
        times[name] = (path / name).stat().st_mtime_ns
        arrays[name] = array = map_array(path / name, np.dtype(facts["type"]), tuple(facts["shape"]))
        if array.nbytes < tuning.current.disk_cache_large_bytes:
            _verify(name, array, facts)
        else:
            large.append(name)
    if not verify_all and all(times[name] == entry["arrays"][name].get("time") for name in large):
        return CacheEntry(entry, arrays, trusted=bool(large) and not ranged, ranged=ranged)
    for name in large:
        _verify(name, arrays[name], entry["arrays"][name])
    for name, part in ranged.items():
        check(not verify_all or part.is_sound(), f"'{name}' has a wrong checksum")
    return CacheEntry(entry, arrays, times={} if ranged else times, ranged=ranged)


def _open_ranged(path: Path, entry: Mapping[str, Any], source: RangeSource | None) -> dict[str, RangedArray]:
    """Open the arrays of an incomplete entry that are read by range."""
    facts = entry[RANGED]

    def completed() -> None:
        # The maps keep the folder's files if it was replaced meanwhile.
        complete = {key: value for key, value in entry.items() if key != RANGED}
        _replace_about(path, portable(complete))

    opened = RangedEntry(path, str(facts["folder"]), int(facts["block"]), dict(facts["arrays"]), source, completed)
    for name in facts["arrays"]:
        array = entry["arrays"][name]
        opened.arrays[name] = RangedArray(opened, name, np.dtype(array["type"]), tuple(array["shape"]))
    return opened.arrays


def _verify(name: str, array: AnyArray, facts: Mapping[str, Any]) -> None:
    check(checksum(array) == facts["checksum"], f"'{name}' has a wrong checksum")


def _record_times(path: Path, entry: CacheEntry) -> None:
    """Record the modification times of the files of a verified entry. If that fails, it is verified again."""
    try:
        for name in entry.arrays:
            with (path / name).open("rb+") as file:
                os.fsync(file.fileno())
    except OSError:
        return
    arrays = {name: {**facts, "time": entry.times[name]} for name, facts in entry.about["arrays"].items()}
    _replace_about(path, _document({**entry.about, "arrays": arrays}))


def _replace_about(path: Path, text: str) -> None:
    """Replace the description of an entry. If that fails, it stays as it is."""
    temporary = path / f".{uuid4().hex}"
    try:
        temporary.write_text(text)
        temporary.replace(path / _ABOUT)
    except OSError:
        temporary.unlink(missing_ok=True)


def _document(entry: Mapping[str, Any]) -> str:
    text = json.dumps(entry, sort_keys=True)
    return json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest(), "entry": entry})


def _entries(folder: Path, subject: Subject) -> list[Path]:
    """Return the entries of a subject, newest first."""
    prefix = prefix_of(subject)
    found: list[tuple[int, Path]] = []
    for path in _visible(folder):
        if path.name.startswith(prefix):
            try:
                found.append((path.stat().st_mtime_ns, path))
            except OSError:
                continue
    return [path for _, path in sorted(found, reverse=True)]


def _visible(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError:
        return []


def remove_entry(path: Path) -> None:
    """Remove an entry in one step, so that no reader sees an incomplete entry."""
    gone = path.with_name(f".gone-{uuid4().hex}")
    try:
        path.rename(gone)
    except OSError:
        return
    if gone.is_dir():
        shutil.rmtree(gone, ignore_errors=True)
    else:
        gone.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove the temporary folders of processes that died, and entries of earlier releases."""
    for path in _visible(folder):
        if _is_of_earlier_release(path):
            remove_entry(path)
    before = time.time() - tuning.current.disk_cache_orphan_s
    earlier = [path for path in _visible(folder) if "-" not in path.name]
    for path in [*folder.glob(".*-*"), *earlier]:
        try:
            if path.stat().st_mtime < before:
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue


def _is_of_earlier_release(path: Path) -> bool:
    """Return True if the format of an entry is older than the one that is read."""
    try:
        entry = json.loads((path / _ABOUT).read_bytes())["entry"]
        return int(entry["generation"]) < GENERATION
    except BAD:
        return False


def _reason(error: BaseException) -> str:
    if isinstance(error, BadEntry):
        return str(error)
    return "a file is missing" if isinstance(error, FileNotFoundError) else "it cannot be read"


def prefix_of(subject: Subject) -> str:
    """Return the beginning of the names of all entries of a subject."""
    return _digest("|".join(subject)) + "-"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
