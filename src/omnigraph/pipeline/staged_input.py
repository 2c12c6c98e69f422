"""A staged input as the driver sees it: the result of each split by table, and the origin of each row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from omnigraph.errors import RecordError
from omnigraph.operations.load.load_rules import RejectReason, SourceLine
from omnigraph.operations.load.record_sources import add_columns, is_about
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.shuffle import Shuffle
from omnigraph.pipeline.splits import Input, Split
from omnigraph.pipeline.stage_task import StagedSplit, StagedTable, locate, originals, stage
from omnigraph.pipeline.violations import PackedError, row_of, split_of
from omnigraph.storage.lance.fragments import NewFragment
from omnigraph.table_key import TableKey


class InputSource(Protocol):
    """An input of a job: stages its splits and locates its rows."""

    @property
    def bytes(self) -> int:
        """Approximate size of the input."""

    def stage(self, runner: Runner, job: Job) -> Iterator[StagedSplit]:
        """Stage every split. Results are in ascending order of split number."""

    def locations(self, staging: StagedInput, key: str, positions: Iterable[int]) -> dict[int, SourceLine]:
        """Position → file and line."""

    def lines_before(self, splits: Mapping[int, StagedSplit]) -> dict[int, int]:
        """For each split, the number of lines before it in the same file."""

    def originals(self, staging: StagedInput, errors: Sequence[RecordError]) -> None:
        """Add the original records to errors about them."""


@dataclass(frozen=True)
class FileSource:
    """Files, divided into splits."""

    input: Input

    @property
    def bytes(self) -> int:
        """Estimated uncompressed size of the files."""
        return self.input.bytes

    def stage(self, runner: Runner, job: Job) -> Iterator[StagedSplit]:
        """Stage the splits, one task per split."""
        return runner.run("read", stage, job, self.input.splits, at_once=job.at_once)

    def locations(self, staging: StagedInput, key: str, positions: Iterable[int]) -> dict[int, SourceLine]:
        """Position → file and line, by reading the affected splits again: staged rows do not store their lines."""
        wanted = by_split(positions)
        work: list[tuple[Split, str, list[int], frozenset[int]]] = []
        for split, those in sorted(wanted.items()):
            wrong = frozenset(fault.line for fault in staging.splits[split].faults if fault.line is not None)
            work.append((self.input.splits[split], key, [row_of(position) for position in those], wrong))
        found: dict[int, SourceLine] = {}
        for one, lines in zip(work, staging.runner.run("locate", locate, staging.job, work), strict=True):
            number = one[0].number
            for position in wanted[number]:
                source, line = lines[row_of(position)]
                found[position] = (source, staging.lines_before[number] + line)
        return found

    def lines_before(self, splits: Mapping[int, StagedSplit]) -> dict[int, int]:
        """For each split, the number of lines before it in the same file."""
        before: dict[int, int] = {}
        for split, previous in zip(self.input.splits, (None, *self.input.splits), strict=False):
            same = previous is not None and previous.file is split.file
            number = split.number
            before[number] = before[number - 1] + splits[number - 1].lines if same else 0
        return before

    def originals(self, staging: StagedInput, errors: Sequence[RecordError]) -> None:
        """Add the original records to errors by reading the affected splits again."""
        work: list[tuple[Split, frozenset[int]]] = []
        for split in self.input.splits:
            before = staging.lines_before[split.number] if split.table_split is None else 0
            last = before + staging.splits[split.number].lines if split.table_split is None else None
            lines = frozenset(
                error.line - before
                for error in errors
                if is_about(error, split.file)
                and error.line
                and before < error.line
                and (not last or error.line <= last)
            )
            if lines:
                work.append((split, lines))
            if split.table_split is not None:
                add_columns(errors, split.file, staging.job.catalog)
        found: dict[tuple[str | None, str | None, int], Any] = {}
        for (split, _), records in zip(work, staging.runner.run("rejects", originals, staging.job, work), strict=True):
            before = staging.lines_before[split.number] if split.table_split is None else 0
            by_type = split.label, split.file.type_name
            found |= {(*by_type, before + line): record for line, record in records.items()}
        for error in errors:
            if error.record is None and error.line is not None:
                typed, plain = (error.source, error.type_name, error.line), (error.source, None, error.line)
                error.record = found[typed] if typed in found else found.get(plain)


@dataclass(frozen=True)
class RowSource:
    """Rows that another component reads in parts, such as the partitions of a DataFrame. `read` stages the parts in
    ascending order.

    Parts of one type are consecutive, and their rows are numbered continuously.
    """

    bytes: int
    read: Callable[[Job], Iterable[StagedSplit]]

    def stage(self, runner: Runner, job: Job) -> Iterator[StagedSplit]:  # noqa: ARG002 (`read` runs the tasks)
        """Stage the parts with `read`."""
        return iter(self.read(job))

    def locations(
        self,
        staging: StagedInput,
        key: str,  # noqa: ARG002 (a part has rows of one table)
        positions: Iterable[int],
    ) -> dict[int, SourceLine]:
        """Position → row number: the row's index among the staged rows, plus the number of wrong rows before it."""
        found: dict[int, SourceLine] = {}
        for split, those in by_split(positions).items():
            wrong = sorted(fault.line or 0 for fault in staging.splits[split].faults)
            for position in those:
                line = row_of(position) + 1
                for other in wrong:
                    line += other <= line
                found[position] = (None, staging.lines_before[split] + line)
        return found

    def lines_before(self, splits: Mapping[int, StagedSplit]) -> dict[int, int]:
        """For each part, the number of rows before it in parts of the same type."""
        before: dict[int, int] = {}
        count: dict[str, int] = {}
        for number, staged in sorted(splits.items()):
            key = ",".join(sorted(staged.tables))
            before[number] = count.get(key, 0)
            count[key] = before[number] + staged.lines
        return before

    def originals(self, staging: StagedInput, errors: Sequence[RecordError]) -> None:
        """Do nothing: the rows cannot be read again."""


def by_split(positions: Iterable[int]) -> dict[int, list[int]]:
    """Split → the positions of its rows."""
    wanted: dict[int, list[int]] = {}
    for position in positions:
        wanted.setdefault(split_of(position), []).append(position)
    return wanted


@dataclass
class InputTable:
    """One table of the input, over all splits."""

    key: str
    rows: int = 0
    fresh: bool = True
    embedded: int = 0
    waiting: int = 0
    fragments: dict[int, list[NewFragment]] = field(default_factory=dict)
    first_rows: dict[int, list[int]] = field(default_factory=dict)
    """Split → for each of its fragments, the number of its first row among the split's rows of the table."""
    adds_again: bool = False
    absent: frozenset[str] = frozenset()
    """The columns that a merge takes from committed rows, because some records lack them."""
    excluded: set[int] = field(default_factory=set)
    """The positions of staged records that are set aside."""

    def add(self, split: int, table: StagedTable) -> None:
        """Add the table of one split."""
        self.rows += table.rows
        self.fresh = self.fresh and table.fresh
        self.adds_again = self.adds_again or table.adds_again
        self.absent |= table.absent
        self.embedded += table.embedded
        self.waiting += table.waiting
        self.fragments[split] = table.fragments
        self.first_rows[split] = table.first_rows


@dataclass
class StagedInput:
    """An input staged for one schema. Tables are in the order in which their records are validated."""

    job: Job
    runner: Runner
    source: InputSource
    splits: dict[int, StagedSplit]
    tables: dict[str, InputTable] = field(default_factory=dict)
    rejects: list[RecordError] = field(default_factory=list)

    def copy(self, job: Job) -> StagedInput:
        """A copy for validation on another snapshot."""
        tables = {key: replace(rows, excluded=set(rows.excluded)) for key, rows in self.tables.items()}
        return replace(self, job=job, tables=tables, rejects=list(self.rejects))

    def shuffles(self) -> dict[Shuffle, list[str]]:
        """The files of every shuffle, in input order."""
        found: dict[Shuffle, list[str]] = {}
        for staged in self.splits.values():
            for shuffle, names in staged.shuffles.items():
                found.setdefault(shuffle, []).extend(names)
        return found

    def set_aside(self, key: str, reasons: Mapping[int, RejectReason]) -> None:
        """Set records aside: position → reason."""
        locations = self.locations(key, reasons)
        name = TableKey.parse(key).type_name
        for position, reason in sorted(reasons.items()):
            self.rejects.append(reason.error(name, locations[position]))
        self.tables[key].excluded.update(reasons)

    def locations(self, key: str, positions: Iterable[int]) -> dict[int, SourceLine]:
        """Position → file and line."""
        return self.source.locations(self, key, positions)

    @cached_property
    def lines_before(self) -> dict[int, int]:
        """For each split, the number of lines before it in the same file."""
        return self.source.lines_before(self.splits)


def stage_input(runner: Runner, source: InputSource, job: Job) -> StagedInput:
    """Stage an input, or raise the first wrong record."""
    staging = _read(runner, source, job)
    aliases = _aliases(staging)
    if not aliases:
        return staging
    # Edges anywhere in the input may use the old spellings, so it is read again.
    name = job.new_name("aliases")
    job.files.write(name, json.dumps(aliases).encode())
    again = _read(runner, source, replace(job, aliases=name))
    again.rejects = staging.rejects
    for key, rows in staging.tables.items():
        again.tables[key].excluded = rows.excluded
    return again


def _read(runner: Runner, source: InputSource, job: Job) -> StagedInput:
    done = {staged.split: staged for staged in source.stage(runner, job)}
    staging = StagedInput(job, runner, source, done)
    _raise_faults(staging)
    for key in sorted({key for staged in done.values() for key in staged.tables}, key=_by_type):
        rows = staging.tables[key] = InputTable(key)
        for staged in done.values():
            if key in staged.tables:
                rows.add(staged.split, staged.tables[key])
    staging.rejects = [fault.error(staging.lines_before[fault.split]) for s in done.values() for fault in s.faults]
    return staging


def _by_type(key: str) -> tuple[str, str]:
    return TableKey.parse(key).type_name, key


def _raise_faults(staging: StagedInput) -> None:
    """Raise the first wrong record: wrong shapes before wrong values, values in the order of types."""
    for staged in staging.splits.values():
        if isinstance(staged.shape, PackedError):
            raise staged.shape.error()
        if staged.shape is not None:
            raise staged.shape.error(staging.lines_before[staged.split])
    values = [(key, fault) for staged in staging.splits.values() for key, fault in staged.values.items()]
    if values:
        _, fault = min(values, key=lambda item: (_by_type(item[0]), item[1].split))
        raise fault.error(staging.lines_before[fault.split])


def _aliases(staging: StagedInput) -> dict[str, dict[str, str]]:
    """Table key → old spelling → id, over the whole input. A spelling that maps to two ids is wrong."""
    found: dict[str, dict[str, str]] = {}
    for staged in staging.splits.values():
        for key, table in staged.tables.items():
            for old, id_, position in table.aliases:
                known = found.setdefault(key, {}).setdefault(old, id_)
                if known == id_:
                    continue
                name = TableKey.parse(key).type_name
                reason = f"the id '{old}' of {name} stands for two keys, '{known}' and '{id_}'"
                staging.set_aside(key, {position: RejectReason(reason, "id", "id")})
                if not staging.job.collect:
                    raise staging.rejects[-1]
    return found
