"""Loads records: read, type, embed, judge, publish; all or nothing, as one commit.

`overwrite` replaces each table the input names, `append` adds rows whose ids are new, `merge` adds rows or
replaces those with the same id. Asked to set wrong records aside, a load takes the rest, and whatever is
wrong only because of what was set aside goes with it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.constraints import Delta, TableDelta, Violation, violations
from omnigraph.engine.embed import Embedder, fill_vectors
from omnigraph.engine.pending import CommittedRows
from omnigraph.engine.records import Faults, Records, Rows, build_rows, iterate_lines, read_dicts, read_jsonl
from omnigraph.engine.tabular import read_arrow, read_table_file
from omnigraph.errors import BranchNotFound, InputError, KeyConflict, RecordError
from omnigraph.operations.catalogs import Catalogs
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.tables import Change
from omnigraph.versioning.ids import new_ulid
from omnigraph.versioning.repository import Repository
from omnigraph.versioning.transaction import Transaction, WriteOptions, write

Mode = Literal["overwrite", "append", "merge"]
MODES: tuple[Mode, ...] = ("overwrite", "append", "merge")
Source = Callable[[Catalog, Faults], dict[str, list[Records]]]


@dataclass(frozen=True)
class Reject:
    """A record that was set aside."""

    source: str | None
    line: int | None
    type_name: str | None
    property: str | None
    rule: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        """The form rejects are written in."""
        return {
            "source": self.source,
            "line": self.line,
            "type": self.type_name,
            "property": self.property,
            "rule": self.rule,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class LoadResult:
    """What a load did; counts are records of the input."""

    branch: str
    mode: Mode
    commit_id: str | None
    tables: tuple[tuple[str, int], ...]
    rejected: tuple[Reject, ...] = ()
    embedded_rows: int = 0
    pending_embeddings: int = 0
    base_branch: str | None = None
    branch_created: bool = False

    def to_json(self) -> dict[str, Any]:
        """The form surfaces show."""
        return {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": self.mode,
            "tables": [{"table_key": key, "rows_loaded": rows} for key, rows in self.tables],
            "commit_id": self.commit_id,
            "rejected": len(self.rejected),
            "embedded_rows": self.embedded_rows,
            "pending_embeddings": self.pending_embeddings,
        }


def load(
    repository: Repository,
    catalogs: Catalogs,
    data: Any,
    mode: str,
    options: WriteOptions,
    *,
    embedder: Embedder | None = None,
    set_aside: bool = False,
    from_branch: str | None = None,
) -> LoadResult:
    """Load records onto a branch; with `from_branch`, a missing branch is created from that one first."""
    if mode not in MODES:
        raise InputError(f"there is no load mode '{mode}'", hint=f"the modes are {', '.join(MODES)}")
    source = open_source(data)
    created = _ensure_branch(repository, options, from_branch)
    result: LoadResult | None = None

    def prepare(transaction: Transaction) -> None:
        nonlocal result
        catalog = catalogs.of(transaction.snapshot)
        faults = Faults(collect=set_aside)
        tables = _tables(source(catalog, faults), catalog, faults, repository)
        counts = {key: rows.table.num_rows for key, rows in tables.items()}
        embedded = waiting = 0
        for rows in tables.values():
            if isinstance(rows.type, NodeType) and rows.type.embeds:
                rows.table, done, left = _embed(rows, embedder)
                embedded, waiting = embedded + done, waiting + left
        committed = CommittedRows(transaction.snapshot)
        _judge(catalog, tables, mode, committed, faults)
        if mode == "append":
            _admit(tables, committed, faults)
        for key, rows in tables.items():
            transaction.change(key, _change(rows.table, mode))
        rejects = tuple(_reject(error) for error in faults.found)
        loaded = tuple(
            sorted((key, counts[key] if not set_aside else rows.table.num_rows) for key, rows in tables.items())
        )
        result = LoadResult(options.branch, mode, None, loaded, rejects, embedded, waiting)

    commit = write(repository, prepare, replace(options, kind="load", always_commit=True))
    assert result is not None
    return replace(result, commit_id=commit.id if commit else None, base_branch=from_branch, branch_created=created)


def _ensure_branch(repository: Repository, options: WriteOptions, from_branch: str | None) -> bool:
    if from_branch is None or repository.state().find_head(options.branch) is not None:
        return False
    if repository.state().find_head(from_branch) is None:
        raise BranchNotFound(f"there is no branch '{from_branch}' to start from")
    repository.create_branch(options.branch, from_branch=from_branch, owner=options.actor)
    return True


# -- sources -----------------------------------------------------------------------------------------


def open_source(data: Any) -> Source:
    """What to read: paths or globs, a stream of record dicts, or a table per type name."""
    if isinstance(data, str | os.PathLike):
        return _files([os.fspath(data)])
    if isinstance(data, Mapping) and not ("type" in data or "edge" in data):
        return lambda catalog, faults: _by_type(data, catalog, faults)
    if isinstance(data, list | tuple) and data and all(isinstance(item, str | os.PathLike) for item in data):
        return _files([os.fspath(item) for item in data])
    if not isinstance(data, Iterable) or isinstance(data, bytes | Mapping):
        raise InputError(
            f"cannot load a {type(data).__name__}",
            hint="give a path, a list of paths, an iterable of records, or a table for each type name",
        )
    kept = list(data)  # A write that has to start over reads its records again.
    return lambda catalog, faults: {key: [records] for key, records in read_dicts(kept, catalog, faults).items()}


def _files(patterns: list[str]) -> Source:
    paths: list[str] = []
    for pattern in patterns:
        found = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]  # noqa: PTH207
        if not found or not all(Path(path).is_file() for path in found):
            raise InputError(f"there is no file '{pattern}'", code="no_such_file")
        paths += found

    def source(catalog: Catalog, faults: Faults) -> dict[str, list[Records]]:
        tables: dict[str, list[Records]] = {}
        for path in paths:
            suffix = Path(path).suffix.lower()
            if suffix in (".jsonl", ".ndjson", ".json"):
                read = read_jsonl(
                    iterate_lines(Path(path).read_bytes()), catalog, faults, path if len(paths) > 1 else None
                )
            elif suffix in (".parquet", ".csv", ".arrow", ".feather"):
                read = read_table_file(Path(path), catalog, faults)
            else:
                raise InputError(f"'{path}' is of no known kind", hint="load .jsonl, .parquet, .csv or .arrow files")
            for key, part in read.items():
                tables.setdefault(key, []).append(part)
        return tables

    return source


def _by_type(data: Mapping[str, Any], catalog: Catalog, faults: Faults) -> dict[str, list[Records]]:
    tables: dict[str, list[Records]] = {}
    for name, table in data.items():
        for key, rows in read_arrow(name, table, catalog, faults).items():
            tables.setdefault(key, []).append(rows)
    return tables


def _tables(
    parts: Mapping[str, list[Records]], catalog: Catalog, faults: Faults, repository: Repository
) -> dict[str, Rows]:
    """One set of rows per table, edge ends written in old spellings put right."""
    tables: dict[str, Rows] = {}
    for key in sorted(parts):
        built = [build_rows(part, faults, lambda: new_ulid(repository.clock())) for part in parts[key]]
        first = built[0]
        for other in built[1:]:
            first.table = pa.concat_tables([first.table, other.table])
            first.lines = pa.concat_arrays([first.lines, other.lines])
            first.aliases |= other.aliases
        tables[key] = first
    for rows in tables.values():
        if isinstance(rows.type, EdgeType):
            for column, node in (("src", rows.type.from_type), ("dst", rows.type.to_type)):
                named = tables.get(catalog.nodes[node].table_key)
                if named is not None and named.aliases:
                    rows.table = _renamed(rows.table, column, named.aliases)
    return tables


def _renamed(table: pa.Table, column: str, aliases: Mapping[str, str]) -> pa.Table:
    new = pa.array([aliases.get(value, value) for value in table[column].to_pylist()], pa.utf8())
    return table.set_column(table.schema.get_field_index(column), table.schema.field(column), new)


# -- judging -----------------------------------------------------------------------------------------


def _embed(rows: Rows, embedder: Embedder | None) -> tuple[pa.Table, int, int]:
    assert isinstance(rows.type, NodeType)
    table, done, left = fill_vectors(rows.type, rows.table, embedder)
    for target in rows.type.embeds:
        if not rows.type.properties[target].type.nullable and table[target].null_count:
            line = rows.lines.filter(pc.is_null(table[target]).combine_chunks())[0].as_py()
            raise RecordError(
                f"{rows.type.name}.{target} is required, and its text is missing",
                source=rows.source,
                line=line,
                type_name=rows.type.name,
                property_name=target,
                rule="required",
            )
    return table, done, left


def _judge(catalog: Catalog, tables: dict[str, Rows], mode: str, committed: CommittedRows, faults: Faults) -> None:
    """Apply every rule; with wrong records set aside, again until what is left is sound."""
    for rows in tables.values():
        _repeats(rows, mode, faults)
    while True:
        delta = Delta(
            {key: TableDelta(rows.table, replaces=mode == "overwrite") for key, rows in tables.items()}, committed
        )
        if not faults.collect:
            for violation in violations(catalog, delta):
                raise _placed(violation, tables)
            return
        found = list(violations(catalog, delta))
        if not found:
            return
        removed = 0
        for key in {violation.table_key for violation in found}:
            mine = [violation for violation in found if violation.table_key == key]
            if key in tables:
                removed += _set_aside(tables[key], mine, faults)
        if not removed:
            raise _placed(found[0], tables)


def _repeats(rows: Rows, mode: str, faults: Faults) -> None:
    """One explicit id twice: the last record wins in a merge, elsewhere it is a conflict. Keys are a rule's."""
    if isinstance(rows.type, NodeType) and rows.type.key:
        return
    ids = rows.table["id"]
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    last: dict[str, int] = {id_: place for place, id_ in enumerate(ids.to_pylist())}
    if mode != "merge":
        seen: set[str] = set()
        twice = next(id_ for id_ in ids.to_pylist() if id_ in seen or seen.add(id_))  # type: ignore[func-returns-value]
        error = KeyConflict(
            rows.type.table_key, twice, f"{rows.type.name}: the id '{twice}' is given twice", hint="give each id once"
        )
        if not faults.collect:
            raise error
    keep = pa.array(sorted(last.values()), pa.int64())
    rows.table, rows.lines = rows.table.take(keep), rows.lines.take(keep)


def _admit(tables: Mapping[str, Rows], committed: CommittedRows, faults: Faults) -> None:
    """An append may not meet an id that is there already."""
    for key, rows in tables.items():
        there = committed.ids_among(key, rows.table["id"].combine_chunks())
        if not len(there):
            continue
        if not faults.collect:
            id_ = there[0].as_py()
            raise KeyConflict(
                key,
                id_,
                f"{rows.type.name}: the id '{id_}' exists already; nothing was written",
                hint="load with mode 'merge' to replace it",
            )
        for id_ in there.to_pylist():
            violation = Violation("unique", key, id_, f"the id '{id_}' exists already", "id")
            _set_aside(rows, [violation], faults)


def _set_aside(rows: Rows, found: list[Violation], faults: Faults) -> int:
    """Take the rows of some violations out of a load and note why; how many went."""
    by_id = {violation.row_id: violation for violation in reversed(found)}
    column = "src" if found[0].rule == "cardinality" else "id"
    bad = pc.is_in(rows.table[column], value_set=pa.array(list(by_id), pa.utf8())).combine_chunks()
    going = rows.table.filter(bad)
    for line, id_ in zip(rows.lines.filter(bad).to_pylist(), going[column].to_pylist(), strict=True):
        violation = by_id[id_]
        faults.add(
            RecordError(
                violation.message,
                source=rows.source,
                line=line,
                type_name=rows.type.name,
                property_name=violation.property,
                rule=violation.rule,
            )
        )
    keep = pc.invert(bad)
    rows.table, rows.lines = rows.table.filter(keep), rows.lines.filter(keep)
    return int(going.num_rows)


def _placed(violation: Violation, tables: Mapping[str, Rows]) -> Exception:
    """The violation as an error that names the line, when the row came from this input."""
    rows = tables.get(violation.table_key)
    error = violation.error()
    if rows is None:
        return error
    column = "src" if violation.rule == "cardinality" else "id"
    where = pc.index(rows.table[column], pa.scalar(violation.row_id, pa.utf8())).as_py()
    if where >= 0:
        line = rows.lines[where].as_py()
        place = f"{rows.source}, line {line}" if rows.source else f"line {line}"
        error.message = f"{place}: {error.message}"
        error.args = (error.message,)
    return error


def _change(table: pa.Table, mode: str) -> Change:
    if mode == "overwrite":
        return Change(overwrite=table)
    return Change(append=table) if mode == "append" else Change(upsert=table)


def _reject(error: RecordError) -> Reject:
    return Reject(error.source, error.line, error.type_name, error.property_name, error.rule, error.reason)
