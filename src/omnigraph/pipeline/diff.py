"""Diff as a job: each task compares one range of the ids of a table and writes the changes to a file.

The comparison is `versioning.compare.diff`, range by range. A file holds the changes of one range as JSON lines, ids in
ascending order, in the form of all interfaces. Sorted file names give the order of tables and ids.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from omnigraph.checkpoints import checkpoint
from omnigraph.errors import InputError
from omnigraph.operations.merge.column_mapping import shown_names
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Runner
from omnigraph.storage.files.location import Location, locate
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store
from omnigraph.storage.lance.version_diff import IdRange
from omnigraph.versioning.compare.diff import (
    ROWS_MAX,
    DiffView,
    Names,
    TableChanges,
    TableDiff,
    changed_pairs,
    diff_pair,
    split_ids,
)
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.snapshot_view import PinnedTable
from omnigraph.versioning.write.repository import Repository

SUMMARY = "_diff.json"
OPS = ("insert", "update", "delete")
Side = tuple[str, int, str] | None
"""The folder, version and transaction of a table; None if a side does not have the table."""


@dataclass(frozen=True)
class DiffRequest:
    """A diff of two snapshots, written to the new folder `out`. `wanted` selects tables by key."""

    before: Snapshot
    after: Snapshot
    out: str
    wanted: Callable[[str], bool] = lambda _: True
    rows_max: int = ROWS_MAX
    """Approximate number of rows per id range."""


@dataclass(frozen=True)
class DiffWork:
    """One id range of one table, and the file for its changes."""

    key: str
    before: Side
    after: Side
    names: Names
    low: str | None
    high: str | None
    out: Location
    name: str


@dataclass(frozen=True)
class DiffResult:
    """Counts of a diff: rows by table key and kind of change, and the files with the changes."""

    out: str
    tables: dict[str, dict[str, int]]
    files: tuple[str, ...]

    @property
    def changes(self) -> int:
        """Total number of changed rows."""
        return sum(sum(counts.values()) for counts in self.tables.values())


def diff_files(repository: Repository, runner: Runner, request: DiffRequest, environ: Mapping[str, str]) -> DiffResult:
    """Write the changes between two snapshots to a new folder."""
    after, out = request.after, request.out
    target, files = locate(out, environ), _new_folder(out, environ)
    job = Job(new_ulid(repository.clock()), repository.location, after.schema.ir, {})
    work = _plan(request, target)
    tables: dict[str, dict[str, int]] = {}
    names: list[str] = []
    try:
        for one, counts in zip(work, runner.run("diff", diff_range, job, work), strict=True):
            total = tables.setdefault(one.key, dict.fromkeys(counts, 0))
            for kind, rows in counts.items():
                total[kind] += rows
            if any(counts.values()):
                names.append(one.name)
    except BaseException:
        for one in work:
            files.delete(one.name)
        raise
    return _finished(request, tables, names, files)


def diff_visible_files(request: DiffRequest, seen: DiffView, environ: Mapping[str, str]) -> DiffResult:
    """Write the visible changes between two snapshots to a new folder, as `diff_files` does, in this process."""
    before, after = request.before, request.after
    files = _new_folder(request.out, environ)
    tables: dict[str, dict[str, int]] = {}
    names: list[str] = []
    try:
        for pair in changed_pairs(before, after, request.wanted, seen):
            for changes in diff_pair(pair, before, after, shown_names, seen).ranges():
                checkpoint()
                names.append(_file_name(pair.key, len(names)))
                files.write(names[-1], _lines(changes))
                total = tables.setdefault(pair.key, dict.fromkeys(OPS, 0))
                for kind, rows in _counts(changes).items():
                    total[kind] += rows
    except BaseException:
        for name in names:
            files.delete(name)
        raise
    return _finished(request, tables, names, files)


def _new_folder(out: str, environ: Mapping[str, str]) -> ObjectStore:
    files = object_store(locate(out, environ))
    if not files.is_empty():
        raise InputError(f"'{out}' is not empty", code="not_empty", hint="write a diff to a new folder")
    return files


def _finished(
    request: DiffRequest, tables: dict[str, dict[str, int]], names: list[str], files: ObjectStore
) -> DiffResult:
    """Write the summary and return the result."""
    changed = {key: total for key, total in tables.items() if any(total.values())}
    summary = {
        "from": request.before.commit_id,
        "to": request.after.commit_id,
        "tables": changed,
        "files": names,
    }
    files.write(SUMMARY, json.dumps(summary, indent=1).encode())
    return DiffResult(request.out, changed, tuple(names))


def _file_name(key: str, number: int) -> str:
    return f"{key.replace(':', '-')}.{number:05}.jsonl"


def _counts(changes: TableChanges) -> dict[str, int]:
    rows = changes.inserted.num_rows, changes.new.num_rows, changes.deleted.num_rows
    return dict(zip(OPS, rows, strict=True))


def _lines(changes: TableChanges) -> bytes:
    lines = (json.dumps(change.to_json(), ensure_ascii=False, default=_spelt) + "\n" for change in changes.rows())
    return "".join(lines).encode()


def _plan(request: DiffRequest, target: Location) -> list[DiffWork]:
    """One unit of work for each id range of each changed table."""
    before, after = request.before, request.after
    columns = shown_names(before, after) if before.schema_hash != after.schema_hash else {}
    work: list[DiffWork] = []
    for pair in changed_pairs(before, after, request.wanted):
        sides = diff_pair(pair, before, after, shown_names).sides
        for low, high in split_ids(sides, request.rows_max) if sides else ():
            name = _file_name(pair.key, len(work))
            ends = (_side(pair.before), _side(pair.after))
            work.append(DiffWork(pair.key, *ends, columns.get(pair.identity), low, high, target, name))
    return work


def diff_range(job: Job, work: DiffWork) -> dict[str, int]:
    """Compare one range and write its changes. Return the number of rows inserted, updated and deleted."""
    before, after = (job.store.open(*side) if side is not None else None for side in (work.before, work.after))
    changes = TableDiff(work.key, before, after, work.names).changes(IdRange(work.low, work.high))
    counts = _counts(changes)
    if any(counts.values()):
        object_store(work.out).write(work.name, _lines(changes))
    return counts


def _side(table: PinnedTable | None) -> Side:
    return None if table is None else table.open_args


def _spelt(value: Any) -> str:
    """Encode a value that has no JSON form."""
    if isinstance(value, bytes):
        return "base64:" + base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert isinstance(value, date), f"a row holds a {type(value).__name__}"
    return value.isoformat()
