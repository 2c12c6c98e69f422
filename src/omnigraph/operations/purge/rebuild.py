"""Indexes and search structures of purged tables, built again after a purge.

A purge drops them, because their files contain values. Those of `main` are built again, as background maintenance does;
on other branches, the first query builds its search structures, and `optimize` the sorted indexes. The purge is
complete before: an interruption costs speed, never a result.
"""

from __future__ import annotations

from omnigraph.errors import OmniGraphError
from omnigraph.operations.derived import build_derived, reason_of
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.indexing import wanted_indexes
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.model.purges import PurgeRecord
from omnigraph.versioning.purge.plan import PurgePlan
from omnigraph.versioning.upkeep.maintenance import ensure_indices
from omnigraph.versioning.write.transaction import WriteOptions


def rebuild_indexes(context: GraphContext, record: PurgeRecord, plan: PurgePlan) -> dict[str, str]:
    """Build the indexes of the purged tables on `main` again; return table key → why some were not built.

    Sorted indexes are one commit, and only those of tables that had some. Search structures are built without a commit.
    """
    repository = context.repository
    failed: dict[str, str] = {}
    try:
        if plan.indexed:
            wanted = wanted_indexes(context.catalogs.of(repository.snapshot(MAIN)))
            options = WriteOptions(MAIN, record.actor, f"build the indexes that purge {record.id} dropped")
            ensure_indices(repository, options, {key: wanted[key] for key in plan.indexed if key in wanted})
    except OmniGraphError as error:
        failed |= dict.fromkeys(plan.indexed, reason_of(error))
    try:
        not_built = build_derived(context, repository.snapshot(MAIN), set(plan.rows))
    except OmniGraphError as error:
        return {**failed, **dict.fromkeys(plan.rows, reason_of(error))}
    return {**failed, **{one.table_key: one.reason for one in not_built}}
