"""The statistics document of a table version: all summaries of its columns and degrees, and its fragments.

The document is one entry of the disk cache. A later version measures how much it changed by the fragments that it
shares with the document. An entry is never authority: without it, summaries are computed again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache, entry_checks
from omnigraph.engine.cache.table_cache import DataCache, TableData
from omnigraph.engine.statistics.column_statistics import ColumnStatistics
from omnigraph.engine.statistics.degree_statistics import DegreeStatistics

Summary = ColumnStatistics | DegreeStatistics
_log = logging.getLogger(__name__)
S = TypeVar("S", ColumnStatistics, DegreeStatistics)
_KIND = "statistics"
_FORMAT = 1
_DOCUMENT = "document"
_DEGREES = "degrees:"


@dataclass(frozen=True)
class Change:
    """The difference between a table version and the version that a document describes."""

    added: int
    """Rows in fragments that the document does not describe."""
    removed: int
    """Rows that the document describes and the version does not have."""
    rows: int
    """The rows that the document describes."""

    @property
    def is_small(self) -> bool:
        """True if the statistics of the document serve the version."""
        return max(self.added, self.removed) <= self._most

    @property
    def is_growth(self) -> bool:
        """True if the version mostly adds rows."""
        return self.removed <= self._most

    @property
    def _most(self) -> float:
        return tuning.current.statistics_change_share * self.rows


@dataclass(frozen=True, eq=False)
class TableStatistics:
    """The summaries of one table version. A stored summary is decoded on first use."""

    rows: int
    version: int
    fragments: frozenset[str]
    """The data files of the fragments."""
    summaries: Mapping[str, Summary | memoryview]
    """By name: `column_part` and `degrees_part`."""

    @classmethod
    def of(cls, data: TableData, summaries: Mapping[str, Summary]) -> TableStatistics:
        """Return the document of a version."""
        return cls(data.row_count, data.version, frozenset(files for files, _, _ in data.fragments), summaries)

    def with_summaries(self, more: Mapping[str, Summary]) -> TableStatistics:
        """Return the document with further summaries."""
        return TableStatistics(self.rows, self.version, self.fragments, {**self.summaries, **more})

    def find(self, name: str, kind: type[S]) -> S | None:
        """Return a summary; None if the document has no valid one of this name."""
        found = self.summaries.get(name)
        if isinstance(found, memoryview):
            if name not in self._decoded:
                self._decoded[name] = _decoded(name, found)
            found = self._decoded[name]
        return found if isinstance(found, kind) else None

    @cached_property
    def _decoded(self) -> dict[str, Summary | None]:
        return {}

    def change(self, data: TableData) -> Change:
        """Compare a version with the described one."""
        known = self.fragments
        added = sum(rows for files, rows, _ in data.fragments if files not in known)
        return Change(added, max(self.rows + added - data.row_count, 0), self.rows)

    @property
    def nbytes(self) -> int:
        """The approximate size in memory."""
        sizes = (one.nbytes if not isinstance(one, memoryview) else len(one) for one in self.summaries.values())
        return sum(sizes) + sum(map(len, self.fragments))


def column_part(data: TableData, name: str) -> str:
    """Return the name of the summary of a column. Renaming a column keeps it."""
    return data.column_key(name)


def degrees_part(end: str) -> str:
    """Return the name of the summary of the degrees at one end of the edges."""
    return f"{_DEGREES}{end}"


def known_statistics(cache: DataCache, data: TableData) -> TableStatistics | None:
    """Return the newest document of a table, from memory or from the disk cache."""
    subject = _subject(data)
    found: TableStatistics | None = cache.base(subject)
    if found is None and cache.folder is not None:
        found = disk_cache.load(cache.folder, subject, _read, discard=cache.keep_in is not None)
        if found is not None:
            cache.set_base(subject, found)
    return found


def keep_statistics(cache: DataCache, data: TableData, found: Mapping[str, Summary]) -> bool:
    """Add summaries of a version to the document of its table in memory.

    A document that the version hardly differs from keeps describing its own version, so that changes add up. An older
    version replaces nothing; the result is False then.
    """
    known = known_statistics(cache, data)
    if known is not None and known.change(data).is_small:
        cache.set_base(_subject(data), known.with_summaries(found))
    elif known is None or known.version <= data.version:
        cache.set_base(_subject(data), TableStatistics.of(data, found))
    else:
        return False
    return True


def write_statistics(cache: DataCache, data: TableData) -> None:
    """Write the document of a table in memory to the disk cache, unless the table is small."""
    document: TableStatistics | None = cache.base(_subject(data))
    if cache.keep_in is None or document is None or document.rows < tuning.current.statistics_stored_rows_min:
        return
    _write(cache.keep_in, _subject(data), document)


def _subject(data: TableData) -> disk_cache.Subject:
    return _KIND, data.folder


# -- stored form -------------------------------------------------------------------------------------


def _write(folder: Path, subject: disk_cache.Subject, document: TableStatistics) -> None:
    parts = {name: _encoded(one) for name, one in sorted(document.summaries.items())}
    sizes = [[name, len(part)] for name, part in parts.items()]
    data = b"".join([*parts.values(), msgspec.msgpack.encode(sorted(document.fragments))])
    about = {
        "format": _FORMAT,
        "rows": document.rows,
        "version": document.version,
        "parts": sizes,
        # The name of an entry is a digest of this description.
        "digest": hashlib.sha256(data).hexdigest(),
    }
    disk_cache.save(folder, subject, about, {_DOCUMENT: np.frombuffer(data, np.uint8)})


def _encoded(one: Summary | memoryview) -> bytes | memoryview:
    return one if isinstance(one, memoryview) else msgspec.msgpack.encode(one.pack())


def _read(entry: disk_cache.CacheEntry) -> TableStatistics:
    about = entry.about
    entry_checks.check(about["format"] == _FORMAT, "it has another format")
    document = entry.arrays[_DOCUMENT]
    entry_checks.check(document.dtype == np.uint8, "it does not consist of bytes")
    # Copied: the file may be removed, and it is small.
    data = memoryview(document.tobytes())
    summaries: dict[str, Summary | memoryview] = {}
    start = 0
    for name, size in about["parts"]:
        entry_checks.check(size >= 0, "a part has no size")
        summaries[name] = data[start : start + size]
        start += size
    files = msgspec.msgpack.decode(data[start:], type=list[str])
    return TableStatistics(int(about["rows"]), int(about["version"]), frozenset(files), summaries)


def _decoded(name: str, part: memoryview) -> Summary | None:
    """Return a stored summary; None if it is malformed."""
    try:
        packed = msgspec.msgpack.decode(part)
        return DegreeStatistics.unpack(packed) if name.startswith(_DEGREES) else ColumnStatistics.unpack(packed)
    except (msgspec.DecodeError, ValueError, TypeError, OverflowError) as error:
        _log.warning("stored statistics of '%s' are damaged and are computed again: %s", name, error)
        return None
