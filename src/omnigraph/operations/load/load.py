"""Load in memory: read, convert, validate, embed and publish records as one commit.

`overwrite` replaces each table in the input. `append` adds rows with new ids. `merge` adds rows, or sets the given
properties of existing rows (`engine.write.upsert`). `load_rules` decides which records are loaded. A load without
records makes no commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.checkpoints import checked
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.ingest.records import NOTHING_WITHHELD, Faults, LoadedRows, NewIds, RecordSet
from omnigraph.engine.statistics.summaries import LoadedSample, Samples, tables_to_summarise
from omnigraph.engine.write.constraints import RuleSet
from omnigraph.engine.write.delta import Delta, TableDelta, Violation
from omnigraph.engine.write.fill_vectors import CachingEmbedder, Embedder, fill_vectors
from omnigraph.engine.write.overlay import CommittedRows
from omnigraph.engine.write.upsert import match_columns, merge_records, needs_matching, with_ids
from omnigraph.errors import BranchExists, BranchNotFound, OmniGraphError
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.embed.embedder import ColumnEmbedder
from omnigraph.operations.load.guarded_load import GuardedLoad, guarded_load, with_whole_types
from omnigraph.operations.load.load_request import LoadRequest, Mode
from omnigraph.operations.load.load_result import (
    LoadResult,
    Reject,
    finished,
    load_notes,
    load_options,
    merge_notes,
    record_result,
)
from omnigraph.operations.load.load_rules import (
    LoadChecks,
    RejectReason,
    SourceLine,
    checks_ids,
    drop_aliases,
    drops_repeats,
    incomplete,
    node_aliases_of,
    refused_ids,
    repeated_records,
    resolve_aliases,
    rows_of,
    set_message,
    validate_load,
    with_current_ids,
)
from omnigraph.operations.load.record_sources import RecordSource, open_source
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.model.ids import new_ulids
from omnigraph.versioning.write.branches import create_branch
from omnigraph.versioning.write.ref_changes import RefRequest
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction
from omnigraph.versioning.write.write import Prepare, write_once


def load(
    repository: Repository,
    catalogs: CatalogCache,
    data: Any,
    request: LoadRequest,
    embedder: Embedder | None = None,
    samples: Samples | None = None,
) -> LoadResult:
    """Load records onto a branch as one commit. Samples of large tables are added to `samples`."""
    source = open_source(data, request.environ, request.format, request.input_bytes_max)
    caching = CachingEmbedder(embedder) if embedder is not None and request.embed and not request.dry_run else None
    if request.dry_run:
        trial = _MemoryLoad(repository, catalogs, source, request, None)
        return tried(repository, request, trial.prepare, lambda: trial.result)
    created = ensure_branch(repository, request)
    run = _MemoryLoad(repository, catalogs, source, request, caching, samples)

    def prepare(transaction: Transaction) -> None:
        interruptible(partial(run.prepare, transaction))

    with on_new_branch(request, created):
        written = write_once(repository, prepare, load_options(request, created=created))
    return finished(run.result, written, request, created=created)


def tried(
    repository: Repository, request: LoadRequest, prepare: Prepare, made: Callable[[], LoadResult | None]
) -> LoadResult:
    """Prepare a load on a transaction that is never committed. A branch that does not exist is not created."""
    options = replace(request.keyed_options, idempotency_key=None, request_hash=None)
    if request.from_branch is not None and repository.state().find_head(options.branch) is None:
        options = replace(options, branch=request.from_branch)
    prepare(Transaction(repository, options))
    result = made()
    assert result is not None, "the load was prepared"
    return replace(result, notes=(*result.notes, "dry run: nothing was written"))


@contextmanager
def on_new_branch(request: LoadRequest, created: bool) -> Iterator[None]:
    """Wrap a load: if it fails, add to the error that the branch created for it stays."""
    try:
        yield
    except OmniGraphError as error:
        if created:
            branch, base = request.options.branch, request.from_branch
            set_message(error, f"{error.message}; branch '{branch}' was created from '{base}' and stays there")
        raise


def ensure_branch(repository: Repository, request: LoadRequest) -> bool:
    """Create the branch of a load from `from_branch` if it does not exist. Return True if it was created."""
    base, options = request.from_branch, request.options
    if base is None or repository.state().find_head(options.branch) is not None:
        return False
    if repository.state().find_head(base) is None:
        raise BranchNotFound(f"base branch '{base}' does not exist")
    if request.check_base is not None:
        request.check_base(repository.snapshot(base))
    by = RefRequest(options.actor, options.message, options.metadata)
    try:
        create_branch(repository, options.branch, from_branch=base, if_commit=options.if_commit, request=by)
    except BranchExists:
        # Another writer created it in the meantime, unless a tag has its name.
        if repository.state().find_head(options.branch) is None:
            raise
        return False
    return True


@dataclass
class _MemoryLoad:
    """One load. `prepare` runs once for each attempt to publish it."""

    repository: Repository
    catalogs: CatalogCache
    source: RecordSource
    request: LoadRequest
    embedder: Embedder | None
    samples: Samples | None = None
    result: LoadResult | None = None

    def prepare(self, transaction: Transaction) -> None:
        """Read and validate the records on the snapshot of a transaction, and add the changes to it."""
        mode, snapshot = self.request.mode, transaction.snapshot
        catalog = self.catalogs.of(snapshot)
        guard = guarded_load(self.request, snapshot, catalog)
        # Hidden types and properties do not exist for the records.
        visible = catalog if guard is None else self.catalogs.of(snapshot, guard.visibility)
        faults = Faults(collect=self.request.set_aside)
        records = self.source.read(visible, faults)
        if guard is not None:
            records = with_whole_types(records, catalog)
        tables = self._tables(records, faults, guard)
        known = node_aliases_of(snapshot, mode)
        for table in tables.values():
            resolve_aliases(table, known, guard)
        rows = _LoadedTables(tables, mode, self.catalogs.rules(snapshot), CommittedRows(snapshot), faults, guard)
        for key in rows.tables:
            if mode == "merge":
                rows.apply(key, self._new_ids)
            elif faults.collect:
                rows.drop_repeats(key)
            if guard is not None and mode != "merge":
                guard.assigned(rows.tables[key])
        validate_load(rows, set_aside=faults.collect)
        loaded = tuple((key, table.record_count) for key, table in sorted(rows.tables.items()))
        embedded, waiting = self._write(transaction, catalog, rows.tables, guard)
        rejects = _rejects(faults, self.source, visible)
        merged: tuple[str, ...] = ()
        if mode == "merge" and self.request.dry_run:
            existing = rows.existing_ids()
            merged = merge_notes(existing, {key: len(ids) for key, ids in existing.items()})
        self.result = LoadResult(
            self.request.options.branch,
            mode,
            None,
            loaded,
            rejects,
            embedded,
            waiting,
            rejected_count=len(rejects),
            notes=(*faults.notes, *load_notes(loaded, rows.added_again()), *merged),
        )
        record_result(transaction, self.result)

    def _new_ids(self, count: int) -> pa.Array:
        return new_ulids(self.repository.clock(), count)

    def _tables(
        self, records: Mapping[str, list[RecordSet]], faults: Faults, guard: GuardedLoad | None
    ) -> dict[str, LoadedRows]:
        """Convert records to rows, table by table in the order of type names."""
        fetch, mode, keep = self.request.fetch, self.request.mode, self.request.keeps
        tables: dict[str, LoadedRows] = {}
        for key in sorted(records, key=lambda key: (records[key][0].type.name, key)):
            withheld = NOTHING_WITHHELD if guard is None else guard.withheld(key)
            tables[key] = rows_of(records[key], faults, self._new_ids, fetch, mode, keep=keep, withheld=withheld)
        aliases = {key: rows.aliases for key, rows in tables.items()}
        for rows in tables.values():
            rows.table = with_current_ids(rows, aliases)
        return tables

    def _write(
        self, transaction: Transaction, catalog: Catalog, tables: Mapping[str, LoadedRows], guard: GuardedLoad | None
    ) -> tuple[int, int]:
        """Fill vectors and add the rows to the transaction. Return the number of embedded and of pending vectors."""
        mode = self.request.mode
        embedding = None
        if self.embedder is not None:
            recorded = transaction.snapshot.embedding
            embedding = ColumnEmbedder(self.embedder, recorded, catalog, renew=mode == "overwrite")
        embedded = waiting = 0
        summarised = tables_to_summarise({key: rows.table.num_rows for key, rows in tables.items()})
        for key, rows in checked(tables.items()):
            table = rows.table
            if isinstance(rows.type, NodeType) and rows.type.embeds:
                targets = None if guard is None else guard.embedded(rows.type)
                table, done, left = fill_vectors(rows.type, table, embedding, targets=targets)
                embedded, waiting = embedded + done, waiting + left
            if self.samples is not None and key in summarised:
                self.samples[key] = LoadedSample.of(table)
            transaction.change(key, _table_write(table, "append" if rows.fresh and mode == "merge" else mode))
        if mode == "overwrite":
            drop_aliases(transaction, tables)
        if embedding is not None:
            embedding.record(transaction)
        return embedded, waiting


@dataclass
class _LoadedTables:
    """The rows of a load in memory. The position of a row is its index in its table."""

    tables: dict[str, LoadedRows]
    mode: Mode
    rules: RuleSet
    committed: CommittedRows
    faults: Faults
    guard: GuardedLoad | None = None

    @property
    def table_keys(self) -> Collection[str]:
        """The tables of the load."""
        return self.tables.keys()

    def check(self) -> LoadChecks:
        """Check all rows lazily, rule by rule; a guard raises `Denied` at once."""
        replaces, appends = self.mode == "overwrite", self.mode == "append"
        changes = {
            key: TableDelta(rows.rule_input(), replaces=replaces, appends=appends) for key, rows in self.tables.items()
        }
        delta = Delta(changes, self.committed, guard=None if self.guard is None else self.guard.write)
        return LoadChecks(self.rules.by_rule(delta), self._refused())

    def _refused(self) -> Iterator[Violation]:
        for key, rows in self.tables.items():
            if checks_ids(self.mode, fresh=rows.fresh):
                ids = one_array(rows.table["id"])
                appends = self.mode == "append"
                existing = self.committed.ids_among(key, ids) if appends else pa.array([], pa.utf8())
                if self.guard is not None:
                    # The rules report the ids of hidden rows.
                    existing = self.guard.visible_ids(rows.type, existing)
                yield from refused_ids(rows.type, ids, existing)

    def set_aside(self, table_key: str, reasons: Mapping[int, RejectReason]) -> None:
        """Remove rows and add an error for each of their records."""
        if not reasons:
            return
        rows = self.tables[table_key]
        for position, reason in sorted(reasons.items()):
            for error in rows.faults(position, reason.message, reason.property, reason.rule):
                self.faults.add(error)
        rows.keep(pa.array([position not in reasons for position in range(rows.table.num_rows)], pa.bool_()))

    def source_line(self, table_key: str, position: int) -> SourceLine:
        """The file and line of the last record of a row."""
        return self.tables[table_key].origin_of(position)

    def drop_repeats(self, key: str) -> None:
        """Set aside the records with the id of an earlier record."""
        rows = self.tables[key]
        if drops_repeats(rows.type, self.mode, fresh=rows.fresh):
            self.set_aside(key, repeated_records(rows.table["id"]))

    def apply(self, key: str, new_ids: NewIds) -> None:
        """Merge the records of each id with the committed row. Rows without a required property are wrong."""
        rows, guard = self.tables[key], self.guard
        columns = match_columns(rows.type)
        if columns is not None and not rows.fresh:
            unmatched = rows.table.filter(needs_matching(rows.table, columns))
            rows.adds_again = unmatched.num_rows < rows.table["id"].null_count
            sources = one_array(pc.unique(unmatched["src"]))
            wanted = list(dict.fromkeys(["id", *columns]))
            if guard is None:
                known = self.committed.rows_among(key, "src", sources, wanted)
            else:
                known = guard.edges_from(rows.type, sources, wanted)
            rows.table = with_ids(rows.table, columns, known, new_ids)
        if guard is not None:
            guard.assigned(rows)
        if rows.fresh:
            return
        read = partial(self.committed.rows_with_ids, key) if guard is None else partial(guard.rows_with_ids, rows.type)
        merged = merge_records(rows.type, rows.table, rows.given, read)
        rows.table, rows.given, rows.present, rows.records = merged.table, {}, {}, merged.records
        rows.made = None if rows.made is None else rows.made.take(pa.array(merged.last))
        withheld = NOTHING_WITHHELD if guard is None else guard.withheld(key)
        reasons = {
            row: incomplete(rows.type, name, rows.table["id"][row].as_py(), withheld) for row, name in merged.lacking
        }
        if reasons and not self.faults.collect:
            first = min(reasons)
            raise reasons[first].error(rows.type.name, self.source_line(key, first))
        self.set_aside(key, reasons)

    def existing_ids(self) -> dict[str, list[str]]:
        """The ids of the rows of each node table that exist, without hidden ones."""
        existing: dict[str, list[str]] = {}
        for key, rows in self.tables.items():
            if isinstance(rows.type, NodeType) and not rows.fresh:
                ids = self.committed.ids_among(key, one_array(rows.table["id"]))
                if self.guard is not None:
                    ids = self.guard.visible_ids(rows.type, ids)
                existing[key] = ids.to_pylist()
        return existing

    def added_again(self) -> list[str]:
        """The tables of a merge with records that a second load would add again."""
        if self.mode != "merge":
            return []
        return [key for key, rows in self.tables.items() if rows.adds_again and rows.table.num_rows]


def _table_write(table: pa.Table, mode: Mode) -> TableWrite:
    match mode:
        case "overwrite":
            return TableWrite(overwrite=table)
        case "append":
            return TableWrite(append=table)
        case "merge":
            return TableWrite(upsert=table)
        case _:
            assert_never(mode)


def _rejects(faults: Faults, source: RecordSource, catalog: Catalog) -> tuple[Reject, ...]:
    """The rejected records with their originals, ordered by file and line."""
    found = sorted(faults.found, key=lambda error: (error.source or "", error.line or 0))
    if found:
        for error, record in zip(found, source.originals(catalog, found), strict=True):
            error.record = record if error.record is None else error.record
    return tuple(map(Reject.of, found))
