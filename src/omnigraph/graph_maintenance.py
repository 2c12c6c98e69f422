"""`GraphMaintenance`: the part of `Graph` that indexes, compacts, cleans up, recovers and verifies."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from omnigraph.cancellation import Limits
from omnigraph.checkpoints import checkpoint
from omnigraph.engine.cache import disk_cache
from omnigraph.operations.derived import build_derived
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.indexing import wanted_indexes
from omnigraph.operations.proposals.proposal_upkeep import clean_proposals, verify_proposals
from omnigraph.operations.proposals.proposals import logs_of
from omnigraph.operations.store_statistics import store_statistics
from omnigraph.pipeline.orphan_jobs import sweep
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.lance.indexes import PendingIndex
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.upkeep import maintenance, verify
from omnigraph.versioning.upkeep.claim import claimed, is_claimed
from omnigraph.versioning.upkeep.coverage import TableCoverage, coverage
from omnigraph.versioning.upkeep.maintenance import CleanupStats, TableStats
from omnigraph.versioning.upkeep.verify import EdgeEnds, Expected, Problem
from omnigraph.versioning.write import recovery
from omnigraph.versioning.write.recovery import Recovered
from omnigraph.versioning.write.ref_changes import RefRequest
from omnigraph.versioning.write.transaction import WriteOptions


class GraphMaintenance:
    """Maintenance of one opened graph."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context
        self._repository = context.repository

    def ensure_indices(self, options: WriteOptions) -> list[TableStats]:
        """Build the missing indexes and search structures of a branch."""
        catalog = self._context.catalogs.of(self._repository.snapshot(options.branch))
        at_once = self._context.maintenance_concurrency
        limits = Limits()
        done = maintenance.ensure_indices(self._repository, options, wanted_indexes(catalog), at_once=at_once)
        return self._with_derived(done, options.branch, limits)

    def optimize(self, options: WriteOptions, tables: Collection[str] | None = None) -> list[TableStats]:
        """Compact tables of a branch, update their indexes, and store their search structures and statistics."""
        catalog = self._context.catalogs.of(self._repository.snapshot(options.branch))
        wanted, at_once = wanted_indexes(catalog), self._context.maintenance_concurrency
        limits = Limits()
        done = maintenance.optimize(self._repository, options, wanted=wanted, tables=tables, at_once=at_once)
        done = self._with_derived(done, options.branch, limits)
        treated = [table.table_key for table in done]
        store_statistics(self._repository, options.branch, treated, self._context.cache, self._context.catalogs)
        return done

    def _with_derived(self, done: list[TableStats], branch: str, limits: Limits) -> list[TableStats]:
        """Build the search structures of the maintained tables; those that cannot be built are pending."""
        snapshot = self._repository.snapshot(branch)
        with limits.applied():
            failed = build_derived(self._context, snapshot, [table.table_key for table in done])
        pending: dict[str, list[PendingIndex]] = {}
        for one in failed:
            pending.setdefault(one.table_key, []).append(PendingIndex(one.column, f"not built: {one.reason}"))
        return [replace(table, pending=(*table.pending, *pending.get(table.table_key, ()))) for table in done]

    def coverage(self, branch: str) -> list[TableCoverage]:
        """Return the fragments of each table of a branch and the rows that its indexes do not cover."""
        snapshot = self._repository.snapshot(branch)
        return coverage(snapshot, wanted_indexes(self._context.catalogs.of(snapshot)))

    def claimed(self) -> AbstractContextManager[bool]:
        """Return a context that holds the claim on background maintenance; its value is False if another holds it."""
        return claimed(self._repository)

    @property
    def is_claimed(self) -> bool:
        """True if a process holds the claim on background maintenance."""
        return is_claimed(self._repository)

    def cleanup(
        self, request: RefRequest, *, keep: int | None, older_than: timedelta | None, confirm: bool
    ) -> list[CleanupStats]:
        """Delete expired branches and remove old table versions; without `confirm`, only report them."""
        self._context.check("maintain")
        if confirm:
            clean_proposals(self._repository, logs_of(self._repository))
        return maintenance.cleanup(
            self._repository,
            keep=keep,
            older_than=older_than,
            confirm=confirm,
            request=request,
            at_once=self._context.maintenance_concurrency,
        )

    def recover(self) -> list[Recovered]:
        """Finish or undo the writes of crashed processes and remove the files of abandoned jobs."""
        self._context.check("maintain")
        return [*recovery.recover(self._repository), *sweep(self._repository).problems]

    def verify(self, *, deep: bool) -> list[Problem]:
        """Return every violated invariant of the stored graph, and every damaged cache entry."""
        self._context.check("maintain")
        cached = [
            Problem(f"cache entry {name}", f"is damaged ({reason}); it is ignored and rebuilt")
            for name, reason in disk_cache.find_damaged(self._context.cache.folder)
        ]
        found = verify.verify(self._repository, self._expected, deep=deep)
        found += verify_proposals(logs_of(self._repository))
        # What a cancelled verification could not read is no problem of the graph.
        checkpoint()
        return found + cached

    def _expected(self, snapshot: Snapshot) -> Expected:
        catalog = self._context.catalogs.of(snapshot)
        columns: dict[str, Any] = {type_.table_key: table_schema(type_) for type_ in catalog.tables()}
        edges = [
            EdgeEnds(edge.table_key, source.table_key, target.table_key, source.end_column, target.end_column)
            for edge in catalog.edges.values()
            for source, target in [(catalog.nodes[edge.from_type], catalog.nodes[edge.to_type])]
        ]
        return Expected(columns, edges)
