"""The reader of the audit log: the records of all chains in order of time, with a cursor."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from omnigraph.errors import InputError, NotFound
from omnigraph.server.audit.chain_files import ChainFile, files_of, parse_line
from omnigraph.wire.audit import AuditDecision, AuditRecord

_CURSOR = re.compile(r"[0-9a-f]{16}-\d{1,18}(?:\.[0-9a-f]{16}-\d{1,18})*")
_BEFORE_ALL, _AFTER_ALL = "", "~"
"""Texts that sort before and after every time."""


@dataclass(frozen=True)
class AuditFilter:
    """Conditions on records; None permits every value."""

    since: datetime | None = None
    until: datetime | None = None
    """The first time that is no longer included."""
    actor: str | None = None
    action: str | None = None
    decision: AuditDecision | None = None

    def matches(self, record: AuditRecord) -> bool:
        """Return True if a record matches apart from its time."""
        return (
            self.actor in (None, record.actor)
            and self.action in (None, record.action)
            and self.decision in (None, record.decision)
        )


def read(
    folder: Path, wanted: AuditFilter | None = None, *, after: str | None = None, limit: int | None = None
) -> AuditReader:
    """Return the matching records of an audit folder, oldest first, after a cursor, at most `limit` of them."""
    if not folder.is_dir():
        raise NotFound(f"there is no audit folder '{folder}'", code="no_audit_log", hint="give the folder of audit.dir")
    return AuditReader(files_of(folder), wanted or AuditFilter(), _positions(after), limit)


class AuditReader(Iterator[AuditRecord]):
    """An iterator of records that reads files as it goes.

    Records of one chain come in their order; chains are merged by time. `cursor` names the position of every chain, so
    a reader that continues from it misses no record, even one that another process stamped with an earlier time.
    """

    def __init__(
        self,
        chains: Mapping[str, list[ChainFile]],
        wanted: AuditFilter,
        positions: dict[str, int],
        limit: int | None = None,
    ) -> None:
        self.unreadable = 0
        """Number of lines so far that are not records; `verify` lists them."""
        self._wanted = wanted
        self._first = _stamp(wanted.since) if wanted.since else _BEFORE_ALL
        self._end = _stamp(wanted.until) if wanted.until else _AFTER_ALL
        self._positions = positions
        self._left = limit
        sources = [self._records(chain, files, positions.get(chain, 0)) for chain, files in chains.items()]
        self._merged = heapq.merge(*sources, key=lambda found: found[1].at)

    @property
    def cursor(self) -> str:
        """The position after the last record that was returned or did not match; empty at the start of the log."""
        return ".".join(f"{chain}-{seq}" for chain, seq in sorted(self._positions.items()))

    def __next__(self) -> AuditRecord:
        if self._left == 0:
            raise StopIteration
        for chain, record in self._merged:
            self._positions[chain] = record.seq
            if self._first <= record.at < self._end and self._wanted.matches(record):
                self._left = self._left - 1 if self._left is not None else None
                return record
        raise StopIteration

    def _records(self, chain: str, files: list[ChainFile], after: int) -> Iterator[tuple[str, AuditRecord]]:
        first, end = (time[:10].replace("-", "") for time in (self._first, self._end))
        for file in files:
            if not first <= file.day <= end:
                continue
            for line, complete in file.lines():
                record = parse_line(line) if complete else None
                if record is None:
                    self.unreadable += 1
                elif record.seq > after:
                    yield chain, record


def read_time(text: str) -> datetime:
    """Parse a time or a date in ISO 8601; without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f"'{text}' is not a time", code="bad_time", hint="write 2027-01-31 or 2027-01-31T12:00:00Z"
        ) from None


def _stamp(time: datetime) -> str:
    """Return a time in the form of `AuditRecord.at`."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def _positions(cursor: str | None) -> dict[str, int]:
    if not cursor:
        return {}
    if not _CURSOR.fullmatch(cursor):
        raise InputError(
            "the cursor is not one of the audit log",
            code="bad_audit_cursor",
            hint="give the cursor of the previous page",
        )
    pairs = (part.split("-") for part in cursor.split("."))
    return {chain: int(seq) for chain, seq in pairs}
