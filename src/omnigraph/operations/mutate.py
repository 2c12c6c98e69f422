"""Runs a mutation: compile, execute in memory, validate, publish; it starts over if the branch moved."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from omnigraph.display import html_of
from omnigraph.engine.result.result import Result
from omnigraph.engine.result.result_graph import ResultGraph, result_graph_of
from omnigraph.engine.write.fill_vectors import CachingEmbedder
from omnigraph.engine.write.overlay import WriteOverlay
from omnigraph.engine.write.statements import MutationCounts, MutationRun, MutationServices
from omnigraph.engine.write.unify import UnifyReport
from omnigraph.errors import InputError, KeyReused
from omnigraph.observer import current
from omnigraph.operations.embed.embedder import ColumnEmbedder
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.lost_structures import repeated_if_lost
from omnigraph.operations.requests import MutationRequest, QueryText
from omnigraph.query.compile import pick_query
from omnigraph.query.params import bind_params
from omnigraph.query.plan import ir
from omnigraph.query.plan.plan_hash import plan_hash
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.idempotency import GeneratedKey
from omnigraph.versioning.write.transaction import Transaction
from omnigraph.versioning.write.write import write_once

if TYPE_CHECKING:
    from omnigraph.engine.write.row_guard import GuardedWrite
    from omnigraph.query.visibility import Visibility
    from omnigraph.query.write_guard import WriteGuard
    from omnigraph.schema.catalog import Catalog

COUNTS, ROWS, UNIFIED, SEEN = "affected", "returned", "unified", "seen"
"""Metadata keys of a commit with an idempotency key: its counts, the name and returned rows of its query, the report
of `unify`, and the digest of what the actor could see of the graph, if rules limited it."""
_ROWS_BYTES_MAX = 65_536
"""Maximum size of returned rows in the metadata of a commit; all commits are read together."""


@dataclass(frozen=True)
class MutationResult:
    """Counts, commit and returned rows of a mutation; the commit is None if nothing changed."""

    affected_nodes: int
    affected_edges: int
    commit_id: str | None
    rows: Result = field(default_factory=Result.empty, compare=False, repr=False)
    """The rows of the `return` clause; without columns if the query has none."""
    tables: Mapping[str, Mapping[str, int]] | None = None
    """Of a dry run: table key → the numbers of rows to insert, update and delete; None for a mutation."""
    unified: UnifyReport | None = None
    """The report of `unify`; None if the mutation has no such statement, or it had no effect."""

    def _repr_html_(self) -> str:
        return html_of(self)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; `rows` is present only if the query has a `return` clause."""
        done: dict[str, Any] = {
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "commit_id": self.commit_id,
        }
        if self.tables is not None:
            done["tables"] = {key: dict(counts) for key, counts in self.tables.items()}
        if self.unified is not None:
            done["unified"] = self.unified.to_json()
        return {**done, "rows": self.rows.to_rows()} if self.rows.columns else done


@dataclass(frozen=True)
class _Attempt:
    """Result of one attempt."""

    counts: MutationCounts
    rows: pa.Table
    query_name: str
    shape: ResultGraph = field(default_factory=ResultGraph)
    snapshot_id: str = ""
    overlay: WriteOverlay | None = None
    unified: UnifyReport | None = None
    seen: str | None = None
    """The digest of what the actor sees of the graph; None if it sees everything."""

    def metadata(self, *, required: bool) -> dict[str, Any]:
        """Return the metadata that answers a repeated request.

        Rows above the size limit are left out, or raise `InputError` if `required`."""
        counts: dict[str, Any] = {COUNTS: [self.counts.nodes, self.counts.edges]}
        if self.unified is not None:
            counts[UNIFIED] = self.unified.to_json()
        if self.seen is not None:
            counts[SEEN] = self.seen
        if not self.rows.column_names:
            return counts
        packed = _encode_rows(self.rows)
        if len(packed) > _ROWS_BYTES_MAX and required:
            raise InputError(
                f"the mutation returns {self.rows.num_rows:,} rows, {len(packed):,} bytes; at most "
                f"{_ROWS_BYTES_MAX:,} bytes are stored for a repeated request",
                code="rows_too_large",
                hint="return fewer rows, or omit the idempotency key",
            )
        encoded = base64.b64encode(packed).decode() if len(packed) <= _ROWS_BYTES_MAX else None
        return {**counts, ROWS: [self.query_name, encoded]}

    @classmethod
    def of_commit(cls, commit: Commit) -> Self:
        """Return the result of the attempt that made a commit."""
        name, rows = commit.metadata.get(ROWS, ("", None))
        if ROWS in commit.metadata and rows is None:
            raise InputError(
                f"the mutation was already applied as commit {commit.id}; its returned rows were too large to store",
                code="rows_too_large",
                hint="read the rows with a query",
            )
        unified = UnifyReport.from_json(commit.metadata[UNIFIED]) if UNIFIED in commit.metadata else None
        returned = pa.table({}) if rows is None else _decode_rows(rows)
        return cls(MutationCounts(*commit.metadata[COUNTS]), returned, name, unified=unified)


@repeated_if_lost
def mutate(context: GraphContext, request: MutationRequest) -> MutationResult:
    """Run one mutation query as one commit; a dry run ends before the commit."""
    started = time.perf_counter()
    repository, query, options = context.repository, request.query, request.options
    now = repository.clock()
    done: _Attempt | None = None
    observer = current()
    embedder = CachingEmbedder(context.embedder)
    if options.idempotency_key is not None:
        options = replace(options, request_hash=_request_hash(options.branch, query))
    generated = isinstance(options.idempotency_key, GeneratedKey)
    outcome = dict(options.metadata)

    def prepare(transaction: Transaction) -> None:
        nonlocal done
        catalog = context.catalogs.of(transaction.snapshot)
        rules = context.guard_of(transaction.snapshot)
        seen = None if rules is None else rules.visibility
        plan = _plan(context, transaction.snapshot, query, seen)
        compiled = time.perf_counter()
        params = bind_params(plan.params, query.params)
        embedding = ColumnEmbedder(embedder, transaction.snapshot.embedding, catalog)
        services = MutationServices(now // 1000, lambda: new_ulid(repository.clock()), embedding, context.fetch)
        below = transaction.pending
        assert below is None or isinstance(below, WriteOverlay)
        overlay = WriteOverlay(transaction.snapshot, below)
        guard = None if rules is None else _guarded(rules, catalog, overlay)
        run = MutationRun(plan, catalog, overlay, params, services, guard)
        run.run()
        # A statement that deletes nodes deletes their edges.
        context.catalogs.rules(transaction.snapshot).check(overlay.delta(cascaded=True, guard=guard))
        if observer is not None:
            observer.phase("run", compiled, time.perf_counter())
        transaction.record(overlay)
        if run.aliases.changed is not None:
            transaction.set_aliases(run.aliases.changed)
        embedding.record(transaction)
        visible = None if seen is None else context.catalogs.of(transaction.snapshot, seen)
        done = _Attempt(
            run.counts,
            run.returned(visible),
            plan.name,
            result_graph_of(plan),
            transaction.based_on,
            overlay,
            run.unified if run.unified.nodes else None,
            None if seen is None else seen.digest,
        )
        if options.idempotency_key is not None and not request.dry_run:
            outcome.update(done.metadata(required=not generated))

    if request.dry_run:
        # The transaction is never committed.
        transaction = Transaction(repository, replace(options, idempotency_key=None, request_hash=None))
        prepare(transaction)
        return _tried(context, transaction, done, started)
    written = write_once(repository, prepare, replace(options, kind="mutation", metadata=outcome, queued=True))
    commit = written.commit
    if written.earlier is not None and commit is not None:
        _check_sees_alike(context, commit)
    if commit is not None and COUNTS in commit.metadata and not generated:
        # If the key was used before, this is the commit of the earlier request, not of the attempt above.
        done = _Attempt.of_commit(commit)
        if not done.query_name:
            # The commit keeps the name of a query that returns rows.
            done = replace(done, query_name=_query_name(query))
    assert done is not None, "a published write was prepared"
    rows = Result(
        done.rows,
        query_name=done.query_name,
        commit_id=commit.id if commit else done.snapshot_id,
        elapsed_ms=(time.perf_counter() - started) * 1000,
        shape=lambda: done.shape,
    )
    commit_id = commit.id if commit else None
    return MutationResult(done.counts.nodes, done.counts.edges, commit_id, rows, unified=done.unified)


def _check_sees_alike(context: GraphContext, commit: Commit) -> None:
    """Refuse to return rows of an earlier request again if the caller sees other rows or values than it did then."""
    if ROWS not in commit.metadata and UNIFIED not in commit.metadata:
        return
    if not context.has_row_rules:
        return
    snapshot = context.repository.find_point(commit.id)
    if snapshot is not None:
        visibility = context.visibility_of(snapshot)
        if visibility is None or visibility.digest == commit.metadata.get(SEEN):
            return
    raise KeyReused(
        f"the mutation was already applied as commit {commit.id}, and you see other rows or values now than then; "
        "nothing was written",
        hint="read the rows with a query",
    )


def _tried(context: GraphContext, transaction: Transaction, done: _Attempt | None, started: float) -> MutationResult:
    """Return the result of a mutation that is not committed."""
    assert done is not None, "the mutation was prepared"
    assert done.overlay is not None, "the mutation was prepared"
    seen = {type_.table_key for type_ in context.catalog(transaction.snapshot).tables()}
    tables = {key: counts for key, counts in done.overlay.op_counts().items() if key in seen}
    rows = Result(
        done.rows,
        query_name=done.query_name,
        commit_id=done.snapshot_id,
        elapsed_ms=(time.perf_counter() - started) * 1000,
        shape=lambda: done.shape,
    )
    return MutationResult(done.counts.nodes, done.counts.edges, None, rows, tables, done.unified)


def _guarded(guard: WriteGuard, catalog: Catalog, overlay: WriteOverlay) -> GuardedWrite:
    from omnigraph.engine.write.row_guard import GuardedWrite  # noqa: PLC0415 (only for a guard)

    return GuardedWrite(guard, catalog, overlay)


def _plan(context: GraphContext, snapshot: Snapshot, query: QueryText, visibility: Visibility | None) -> ir.MutationIR:
    """Return the plan of a mutation, compiled or reused, and report it."""
    observer = current()
    started = time.perf_counter()
    plan = context.plans.get_mutation(snapshot, query, visibility)
    if observer is not None:
        observer.phase("compile", started, time.perf_counter())
        observer.planned(plan.name, lambda: plan_hash(plan), None)
    return plan


def _query_name(query: QueryText) -> str:
    """Return the name of a query; the text was compiled by an earlier request with the same key."""
    return query.name or pick_query(parse_queries(query.text), None).name.text


def _encode_rows(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _decode_rows(text: str) -> pa.Table:
    with pa.ipc.open_stream(base64.b64decode(text)) as stream:
        return stream.read_all()


def _request_hash(branch: str, query: QueryText) -> str:
    request = json.dumps([branch, query.text, query.name, query.params], sort_keys=True, default=repr)
    return hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()
