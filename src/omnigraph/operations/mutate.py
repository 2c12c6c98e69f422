"""Runs a change: compile, execute in memory, judge, publish; again from the start when the branch moved."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.engine.constraints import check_delta
from omnigraph.engine.embed import Embedder, Remembered
from omnigraph.engine.mutate import Counts, MutationRun
from omnigraph.errors import InputError
from omnigraph.operations.catalogs import Catalogs
from omnigraph.query import ir
from omnigraph.query.compile import compile_query
from omnigraph.query.params import bind_params
from omnigraph.values import Fetch
from omnigraph.versioning.ids import new_ulid
from omnigraph.versioning.repository import Repository
from omnigraph.versioning.transaction import Transaction, WriteOptions, write

COUNTS = "affected"
"""Where a commit that can be asked for again keeps its counts."""


@dataclass(frozen=True)
class MutationResult:
    """What a change did; no commit when it had no effect."""

    affected_nodes: int
    affected_edges: int
    commit_id: str | None

    def to_json(self) -> dict[str, Any]:
        """The form surfaces show."""
        return {
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "commit_id": self.commit_id,
        }


def mutate(
    repository: Repository,
    catalogs: Catalogs,
    source: str,
    name: str | None,
    params: dict[str, Any] | None,
    options: WriteOptions,
    *,
    embedder: Embedder | None = None,
    fetch: Fetch | None = None,
    source_name: str = "<query>",
) -> MutationResult:
    """Run one mutation query of `source` as one commit."""
    now = repository.clock()
    counts = Counts()
    embedder = Remembered(embedder) if embedder is not None else None
    if options.idempotency_key is not None:
        options = replace(options, request_hash=_request_hash(options.branch, source, name, params))
    outcome = dict(options.metadata)

    def prepare(transaction: Transaction) -> None:
        nonlocal counts
        catalog = catalogs.of(transaction.snapshot)
        plan = compile_query(catalog, source, name, source_name=source_name)
        if not isinstance(plan, ir.MutationIR):
            raise InputError(
                f"query '{plan.name}' reads and changes nothing", hint="run it with query, or 'omnigraph read'"
            )
        bound = bind_params(plan.params, params)
        run = MutationRun(
            plan,
            catalog,
            transaction.snapshot,
            bound.values,
            now_ms=now // 1000,
            new_id=lambda: new_ulid(repository.clock()),
            embedder=embedder,
            fetch=fetch,
        )
        pending = run.run()
        check_delta(catalog, pending.delta())
        for table in pending.touched():
            transaction.change(table.key, table.change())
        counts = run.counts
        if options.idempotency_key is not None:
            # Whoever repeats the request gets the same answer.
            outcome[COUNTS] = [counts.nodes, counts.edges]

    commit = write(repository, prepare, replace(options, kind="mutation", metadata=outcome))
    if commit is not None and COUNTS in commit.metadata:
        counts = Counts(*commit.metadata[COUNTS])
    return MutationResult(counts.nodes, counts.edges, commit.id if commit else None)


def _request_hash(branch: str, source: str, name: str | None, params: dict[str, Any] | None) -> str:
    request = json.dumps([branch, source, name, params], sort_keys=True, default=repr)
    return hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()
