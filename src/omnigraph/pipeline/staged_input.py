"""A staged input as the driver sees it: what every split became, table by table, and where each row came from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from omnigraph.errors import RecordError
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.shuffle import Deal
from omnigraph.pipeline.splits import Input, Split
from omnigraph.pipeline.stage_task import Staged, StagedTable, locate, originals, stage
from omnigraph.pipeline.violations import Raised, place_of, split_of
from omnigraph.storage.lance.fragments import NewFragment


class Source(Protocol):
    """An input of a job: how it is staged, and how its rows are called."""

    @property
    def bytes(self) -> int:
        """About how much there is to read."""

    def stage(self, runner: Runner, job: Job) -> Iterator[Staged]:
        """Every split, staged, by ascending number."""

    def places(self, staging: Staging, key: str, positions: Iterable[int]) -> dict[int, tuple[str | None, int]]:
        """The file and line of rows."""

    def lines_before(self, splits: Mapping[int, Staged]) -> dict[int, int]:
        """For each split, how many lines of the same file come before it."""

    def originals(self, staging: Staging, errors: Sequence[RecordError]) -> None:
        """Add the records as they were given to errors about them."""


@dataclass(frozen=True)
class FileSource:
    """Files, cut into splits."""

    input: Input

    @property
    def bytes(self) -> int:
        """See `Source`."""
        return self.input.bytes

    def stage(self, runner: Runner, job: Job) -> Iterator[Staged]:
        """See `Source`."""
        return runner.run("read", stage, job, self.input.splits, at_once=job.at_once)

    def places(self, staging: Staging, key: str, positions: Iterable[int]) -> dict[int, tuple[str | None, int]]:
        """Nobody keeps lines: the splits concerned are read once more."""
        wanted = _by_split(positions)
        work: list[tuple[Split, str, list[int], frozenset[int]]] = []
        for split, those in sorted(wanted.items()):
            wrong = frozenset(fault.line for fault in staging.splits[split].faults if fault.line is not None)
            work.append((self.input.splits[split], key, [place_of(position) for position in those], wrong))
        found: dict[int, tuple[str | None, int]] = {}
        for one, lines in zip(work, staging.runner.run("locate", locate, staging.job, work), strict=True):
            number = one[0].number
            for position in wanted[number]:
                source, line = lines[place_of(position)]
                found[position] = (source, staging.lines_before[number] + line)
        return found

    def lines_before(self, splits: Mapping[int, Staged]) -> dict[int, int]:
        """See `Source`."""
        before: dict[int, int] = {}
        for split, previous in zip(self.input.splits, (None, *self.input.splits), strict=False):
            same = previous is not None and previous.file is split.file
            number = split.number
            before[number] = before[number - 1] + splits[number - 1].lines if same else 0
        return before

    def originals(self, staging: Staging, errors: Sequence[RecordError]) -> None:
        """Read the splits concerned once more."""
        work: list[tuple[Split, frozenset[int]]] = []
        for split in self.input.splits:
            before = staging.lines_before[split.number] if split.stretch is None else 0
            last = before + staging.splits[split.number].lines if split.stretch is None else None
            lines = frozenset(
                error.line - before
                for error in errors
                if error.source == split.label
                and error.line
                and before < error.line
                and (not last or error.line <= last)
            )
            if lines:
                work.append((split, lines))
        found: dict[tuple[str | None, int], Any] = {}
        for (split, _), records in zip(work, staging.runner.run("rejects", originals, staging.job, work), strict=True):
            before = staging.lines_before[split.number] if split.stretch is None else 0
            found |= {(split.label, before + line): record for line, record in records.items()}
        for error in errors:
            if error.record is None and error.line is not None:
                error.record = found.get((error.source, error.line))


@dataclass(frozen=True)
class RowSource:
    """Rows that come in parts from elsewhere, such as the partitions of a frame; `read` stages them, by number.

    Parts of one type follow one another; their rows are numbered through.
    """

    bytes: int
    read: Callable[[Job], Iterable[Staged]]

    def stage(self, runner: Runner, job: Job) -> Iterator[Staged]:  # noqa: ARG002 (whoever has the rows runs the tasks)
        """See `Source`."""
        return iter(self.read(job))

    def places(
        self,
        staging: Staging,
        key: str,  # noqa: ARG002 (a part has rows of one table only)
        positions: Iterable[int],
    ) -> dict[int, tuple[str | None, int]]:
        """A row's number is its place, and one more for each row before it that was no record."""
        found: dict[int, tuple[str | None, int]] = {}
        for split, those in _by_split(positions).items():
            wrong = sorted(fault.line or 0 for fault in staging.splits[split].faults)
            for position in those:
                line = place_of(position) + 1
                for other in wrong:
                    line += other <= line
                found[position] = (None, staging.lines_before[split] + line)
        return found

    def lines_before(self, splits: Mapping[int, Staged]) -> dict[int, int]:
        """See `Source`."""
        before: dict[int, int] = {}
        count: dict[str, int] = {}
        for number, staged in sorted(splits.items()):
            key = ",".join(sorted(staged.tables))
            before[number] = count.get(key, 0)
            count[key] = before[number] + staged.lines
        return before

    def originals(self, staging: Staging, errors: Sequence[RecordError]) -> None:
        """See `Source`; rows that came from elsewhere cannot be read again."""


def _by_split(positions: Iterable[int]) -> dict[int, list[int]]:
    wanted: dict[int, list[int]] = {}
    for position in positions:
        wanted.setdefault(split_of(position), []).append(position)
    return wanted


@dataclass
class TableRows:
    """What is known of one table of the input."""

    key: str
    rows: int = 0
    fresh: bool = True
    embedded: int = 0
    waiting: int = 0
    pieces: dict[int, list[NewFragment]] = field(default_factory=dict)
    firsts: dict[int, list[int]] = field(default_factory=dict)
    """Split → its pieces, and the place of the first row of each among the split's rows of the table."""
    adds_again: bool = False
    excluded: dict[int, str] = field(default_factory=dict)
    """Position → why, of records that were staged and will not be published."""

    def add(self, split: int, table: StagedTable) -> None:
        """Take over what one split has."""
        self.rows += table.rows
        self.fresh = self.fresh and table.fresh
        self.adds_again = self.adds_again or table.adds_again
        self.embedded += table.embedded
        self.waiting += table.waiting
        self.pieces[split] = table.pieces
        self.firsts[split] = table.firsts


@dataclass
class Staging:
    """The input, staged for one schema; tables are in the order their records are judged."""

    job: Job
    runner: Runner
    source: Source
    splits: dict[int, Staged]
    tables: dict[str, TableRows] = field(default_factory=dict)
    rejects: list[RecordError] = field(default_factory=list)

    def copy(self, job: Job) -> Staging:
        """The same input, to be judged from another snapshot."""
        tables = {key: replace(rows, excluded=dict(rows.excluded)) for key, rows in self.tables.items()}
        return replace(self, job=job, tables=tables, rejects=list(self.rejects))

    def deals(self) -> dict[Deal, list[str]]:
        """The files of every deal, in the order of the input."""
        found: dict[Deal, list[str]] = {}
        for staged in self.splits.values():
            for deal, names in staged.deals.items():
                found.setdefault(deal, []).extend(names)
        return found

    def reject(self, key: str, reasons: Mapping[int, str], rules: Mapping[int, tuple[str | None, str]]) -> None:
        """Set rows aside: position → why, and → which property and rule."""
        places = self.places(key, reasons)
        name = key.partition(":")[2]
        for position, reason in sorted(reasons.items()):
            source, line = places[position]
            property_name, rule = rules[position]
            error = RecordError(
                reason, source=source, line=line, type_name=name, property_name=property_name, rule=rule
            )
            self.rejects.append(error)
            self.tables[key].excluded[position] = reason

    def places(self, key: str, positions: Iterable[int]) -> dict[int, tuple[str | None, int]]:
        """The file and line of rows."""
        return self.source.places(self, key, positions)

    @cached_property
    def lines_before(self) -> dict[int, int]:
        """For each split, how many lines of the same file come before it."""
        return self.source.lines_before(self.splits)


def stage_input(runner: Runner, source: Source, job: Job) -> Staging:
    """Stage an input, or raise the first record that is wrong by itself."""
    staging = _read(runner, source, job)
    aliases = _aliases(staging)
    if not aliases:
        return staging
    # Edges may use old spellings of ids, wherever in the input those were found: it is read again.
    name = job.new_name("aliases")
    job.files.write(name, json.dumps(aliases).encode())
    again = _read(runner, source, replace(job, aliases=name))
    again.rejects = staging.rejects
    for key, rows in staging.tables.items():
        again.tables[key].excluded = rows.excluded
    return again


def _read(runner: Runner, source: Source, job: Job) -> Staging:
    done = {staged.split: staged for staged in source.stage(runner, job)}
    staging = Staging(job, runner, source, done)
    _raise_faults(staging)
    for key in sorted({key for staged in done.values() for key in staged.tables}, key=_by_type):
        rows = staging.tables[key] = TableRows(key)
        for staged in done.values():
            if key in staged.tables:
                rows.add(staged.split, staged.tables[key])
    staging.rejects = [fault.error(staging.lines_before[fault.split]) for s in done.values() for fault in s.faults]
    return staging


def _by_type(key: str) -> tuple[str, str]:
    return key.partition(":")[2], key


def _raise_faults(staging: Staging) -> None:
    """Raise the first record that is wrong by itself: shape before values, values type by type."""
    for staged in staging.splits.values():
        if isinstance(staged.shape, Raised):
            raise staged.shape.error()
        if staged.shape is not None:
            raise staged.shape.error(staging.lines_before[staged.split])
    values = [(key, fault) for staged in staging.splits.values() for key, fault in staged.values.items()]
    if values:
        _, fault = min(values, key=lambda item: (_by_type(item[0]), item[1].split))
        raise fault.error(staging.lines_before[fault.split])


def _aliases(staging: Staging) -> dict[str, dict[str, str]]:
    """Table key → old spelling → id, over the whole input; one that stands for two keys is wrong."""
    found: dict[str, dict[str, str]] = {}
    for staged in staging.splits.values():
        for key, table in staged.tables.items():
            for old, id_, position in table.aliases:
                known = found.setdefault(key, {}).setdefault(old, id_)
                if known == id_:
                    continue
                name = key.partition(":")[2]
                reason = f"the id '{old}' of {name} stands for two keys, '{known}' and '{id_}'"
                staging.reject(key, {position: reason}, {position: ("id", "id")})
                if not staging.job.collect:
                    raise staging.rejects[-1]
    return found
