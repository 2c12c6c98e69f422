"""Rights by the difference that a change makes to the schema and the stored queries of a branch.

A merge, a revert and a landing bring a state to a branch that other calls made. What they need does not follow from
their names: a revert can bring back a query with the rights of another actor. They need the rights with which the
caller could make the difference itself. Changes of rows are judged by the right to the call and the rules for rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.checkpoints import checkpoint
from omnigraph.errors import Denied
from omnigraph.operations.merge.column_mapping import document
from omnigraph.operations.stored_queries import queries_of
from omnigraph.query.stored_queries import QuerySet, StoredQuery, changed_queries
from omnigraph.versioning.model.manifest_objects import SchemaRecord
from omnigraph.versioning.model.snapshot import Snapshot, on_branch

if TYPE_CHECKING:
    from omnigraph.operations.graph_context import GraphContext

DifferenceCheck = Callable[[Snapshot, SchemaRecord, QuerySet], None]
"""`check_difference` for one caller."""


def check_difference(context: GraphContext, before: Snapshot, schema: SchemaRecord, queries: QuerySet) -> None:
    """Raise `Denied` if the caller may not make a change of a branch.

    `before` is the head of the branch; the change gives it a schema and stored queries.
    """
    if context.access is None:
        return
    changed = [queries.queries.get(name) for name, _, _ in changed_queries(queries_of(before), queries)]
    try:
        # Identity numbers are never reused, so a difference of the counter alone is no change.
        if replace(document(schema), next_id=0) != replace(document(before.schema), next_id=0):
            context.check("schema_apply", None, before.branch)
        if changed:
            check_storing(context, [query for query in changed if query is not None], lambda: before)
    except Denied as error:
        error.hint = error.hint or f"the call changes more of '{before.branch}' than rows: its schema or stored queries"
        raise


def check_storing(context: GraphContext, queries: Sequence[StoredQuery], head: Callable[[], Snapshot]) -> None:
    """Raise `Denied` if the caller may not store queries on a branch with a head; without queries, not delete any."""
    context.check("query_store")
    if any(query.runs_as_definer for query in queries):
        context.check("query_define")
    if any(query.check is not None for query in queries):
        _check_sees_all(context, head)


def _check_sees_all(context: GraphContext, head: Callable[[], Snapshot]) -> None:
    """Refuse checks of a caller whom rules limit: their results would tell of rows that it cannot read."""
    if not context.has_row_rules:
        return
    snapshot = head()
    # A proposal runs them on the trial, and its target can be any branch.
    for name in context.repository.state().branches():
        checkpoint()
        if context.visibility_of(on_branch(snapshot, name)) is not None:
            reason = "a check reads all rows, and rules limit the rows that you may see"
            raise Denied(f"'query_store' of a query with '@check' is denied: {reason}", (reason,))
