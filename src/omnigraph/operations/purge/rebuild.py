"""Search structures of purged tables, built again after a purge.

A purge drops them, because their files contain values. Those of `main` are built again; on other branches, the first
query builds them. Sorted indexes belong to table versions, so they need a commit, and a purge makes none: `optimize`,
or the background maintenance of a server, builds them. The purge is complete before: an interruption costs speed, never
a result.
"""

from __future__ import annotations

from omnigraph.errors import OmniGraphError
from omnigraph.operations.derived import build_derived, reason_of
from omnigraph.operations.graph_context import GraphContext
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.purge.plan import PurgePlan

_SORTED = "a purge makes no commit, which sorted indexes need"


def rebuild_indexes(context: GraphContext, plan: PurgePlan) -> dict[str, str]:
    """Build the search structures of the purged tables on `main` again; return table key → why an index is missing."""
    left = dict.fromkeys(plan.indexed, _SORTED)
    try:
        not_built = build_derived(context, context.repository.snapshot(MAIN), set(plan.rows))
    except OmniGraphError as error:
        return {**left, **dict.fromkeys(plan.rows, reason_of(error))}
    return {**left, **{one.table_key: one.reason for one in not_built}}
