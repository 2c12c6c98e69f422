"""Verification of an audit folder: missing, altered, reordered and repeated records, and missing files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from omnigraph.errors import NotFound
from omnigraph.server.audit.chain_files import GENESIS, ChainFile, Mark, files_of, head_path, line_hash, parse_line
from omnigraph.wire.audit import AuditRecord

ProblemKind = Literal["missing", "altered", "reordered", "repeated", "missing_file", "bad_head", "torn"]


@dataclass(frozen=True)
class AuditProblem:
    """A place where a chain is not as it was written."""

    kind: ProblemKind
    file: str
    line: int | None
    what: str

    @property
    def damage(self) -> bool:
        """False for a line that a crash left incomplete: no answer was sent for its request."""
        return self.kind != "torn"


@dataclass(frozen=True)
class AuditReport:
    """The result of a verification."""

    chains: int
    files: int
    records: int
    problems: list[AuditProblem]
    """What is damaged, and torn lines, in order of chains, files and lines."""

    @property
    def sound(self) -> bool:
        """True if nothing is damaged."""
        return not any(problem.damage for problem in self.problems)


def verify(folder: Path, *, since: datetime | None = None) -> AuditReport:
    """Check every chain of a folder; the server may be writing to it.

    `since` skips the files of earlier days, so that files removed after their retention are not reported.
    """
    if not folder.is_dir():
        raise NotFound(f"there is no audit folder '{folder}'", code="no_audit_log", hint="give the folder of audit.dir")
    first_day = f"{since.astimezone(UTC):%Y%m%d}" if since else ""
    checks = [_ChainCheck(folder, chain, first_day) for chain in files_of(folder)]
    problems = [problem for check in checks for problem in check.run()]
    return AuditReport(
        len(checks), sum(check.files for check in checks), sum(check.records for check in checks), problems
    )


@dataclass
class _Gap:
    """Numbers of records that were not found where they belong."""

    start: int
    end: int
    """The last missing number."""
    place: _Place


@dataclass(frozen=True)
class _Place:
    file: str
    line: int | None


class _ChainCheck:
    """One pass over a chain."""

    def __init__(self, folder: Path, chain: str, first_day: str) -> None:
        self.records = 0
        # The head is read before the files are listed: a server may append meanwhile, and a head is never ahead.
        self._head_name = head_path(folder, chain).name
        self._head = _read_head(folder / self._head_name)
        listed = files_of(folder).get(chain, [])
        self._files = [file for file in listed if file.day >= first_day]
        self._from_start = not first_day
        self._next = 1 if self._from_start else None
        """The number of the next record; None if the first one of the pass may have any number."""
        self._hash: str | None = GENESIS if self._from_start else None
        """The hash of the record before it; None if it is unknown."""
        self._previous = _Place(self._head_name, None)
        self._unreadable = 0
        """Number of lines since the previous record that are not records."""
        self._gaps: list[_Gap] = []
        self._altered: set[_Place] = set()

    @property
    def files(self) -> int:
        """The number of files that are checked."""
        return len(self._files)

    def run(self) -> Iterator[AuditProblem]:
        """Yield the problems of the chain."""
        if self._head is None:
            yield AuditProblem("bad_head", self._head_name, None, "the head of the chain is missing or damaged")
        yield from self._missing_files()
        for file in self._files:
            yield from self._check_file(file)
        if self._head is not None and self._next is not None and self._head.seq >= self._next:
            self._gaps.append(_Gap(self._next, self._head.seq, self._previous))
        yield from map(_missing, self._gaps)

    def _missing_files(self) -> Iterator[AuditProblem]:
        expected = 1 if self._from_start or not self._files else self._files[0].number
        for file in self._files:
            if file.number > expected:
                what = _numbers("file", expected, file.number - 1)
                yield AuditProblem("missing_file", file.path.name, None, f"{what} missing before this one")
            expected = file.number + 1

    def _check_file(self, file: ChainFile) -> Iterator[AuditProblem]:
        for number, (line, complete) in enumerate(file.lines(), 1):
            place = _Place(file.path.name, number)
            if not complete:
                yield _problem("torn", place, "the line is incomplete; the process ended while it was written")
            elif (record := parse_line(line)) is None:
                self._unreadable += 1
                yield from self._alter(place, "the line is not a record")
            else:
                self.records += 1
                yield from self._check_record(place, record, line_hash(line))

    def _check_record(self, place: _Place, record: AuditRecord, found: str) -> Iterator[AuditProblem]:
        if self._next is not None and record.seq < self._next and record.prev != self._hash:
            yield self._out_of_place(place, record.seq)
            return
        if self._head is not None and record.seq == self._head.seq and found != self._head.hash:
            yield from self._alter(place, "the record does not match the hash in the head of the chain")
        yield from self._check_link(place, record)
        # A record with the right hash and a wrong number is in its place.
        in_place = self._next is not None and record.prev == self._hash
        self._next = (self._next if in_place and self._next is not None else record.seq) + 1
        self._hash, self._previous, self._unreadable = found, place, 0

    def _check_link(self, place: _Place, record: AuditRecord) -> Iterator[AuditProblem]:
        """Compare number and hash of a record with those of the record before it."""
        if self._next is None:
            return
        if record.prev == self._hash:
            if record.seq != self._next:
                yield from self._alter(place, f"the record has the number {record.seq} instead of {self._next}")
        elif record.seq == self._next:
            altered = place if self._next == 1 else self._previous
            yield from self._alter(altered, f"the record does not match the hash in record {record.seq}")
        elif record.seq - self._next != self._unreadable:
            self._gaps.append(_Gap(self._next, record.seq - 1, place))

    def _out_of_place(self, place: _Place, seq: int) -> AuditProblem:
        for gap in self._gaps:
            if gap.start <= seq <= gap.end:
                self._gaps.remove(gap)
                parts = (_Gap(gap.start, seq - 1, gap.place), _Gap(seq + 1, gap.end, gap.place))
                self._gaps += [part for part in parts if part.start <= part.end]
                return _problem("reordered", place, f"record {seq} is after a later record")
        return _problem("repeated", place, f"record {seq} was read before")

    def _alter(self, place: _Place, what: str) -> Iterator[AuditProblem]:
        if place not in self._altered:
            self._altered.add(place)
            yield _problem("altered", place, what)


def _read_head(path: Path) -> Mark | None:
    return Mark.parse(path.read_bytes()) if path.is_file() else None


def _missing(gap: _Gap) -> AuditProblem:
    return _problem("missing", gap.place, f"{_numbers('record', gap.start, gap.end)} missing here")


def _numbers(word: str, start: int, end: int) -> str:
    return f"{word} {start} is" if start == end else f"{word}s {start} to {end} are"


def _problem(kind: ProblemKind, place: _Place, what: str) -> AuditProblem:
    return AuditProblem(kind, place.file, place.line, what)
