"""Results and previews of merges and reverts from documents."""

from __future__ import annotations

from msgspec import UNSET

from omnigraph.client.failures import reading, unreadable
from omnigraph.client.results.conflicts import conflict_of
from omnigraph.operations.merge.merge import MergeResult
from omnigraph.operations.merge.merge_preview import MergePreview, PreviewTable, SettledRow
from omnigraph.operations.merge.revert import RevertResult
from omnigraph.wire.branches import MergeDocument, MergePreviewDocument, RevertDocument, RevertPreviewDocument
from omnigraph.wire.errors import untyped_conflict
from omnigraph.wire.typed_values import untyped_value


def merge_result_of(document: MergeDocument) -> MergeResult:
    """Return the result of a merge."""
    return MergeResult(
        document.source,
        document.target,
        document.outcome,
        document.commit_id,
        document.actor_id,
        None if document.branch_deleted is UNSET else document.branch_deleted,
        None if document.branch_delete_error is UNSET else document.branch_delete_error,
        () if document.schema_steps is UNSET else tuple(document.schema_steps),
    )


def revert_result_of(document: RevertDocument) -> RevertResult:
    """Return the result of a revert."""
    return RevertResult(document.reverted_commit_id, document.branch, document.commit_id)


@reading
def preview_of(document: MergePreviewDocument | RevertPreviewDocument) -> MergePreview:
    """Return the preview of a merge or a revert."""
    if document.source_commit is UNSET or document.renamed_tables is UNSET:
        raise unreadable("it has no full preview")
    return MergePreview(
        document.outcome,
        document.source_commit,
        {
            key: PreviewTable(table.inserted, table.updated, table.deleted, table.adopted)
            for key, table in document.tables.items()
        },
        tuple(document.dropped_tables),
        document.renamed_tables,
        document.schema_changes,
        tuple(document.schema_steps),
        [conflict_of(untyped_conflict(conflict)) for conflict in document.conflicts],
        0 if document.hidden_conflicts is UNSET else document.hidden_conflicts,
        document.hidden_changes is True,
        ()
        if document.settled is UNSET
        else tuple(SettledRow(each.table_key, each.row_id, untyped_value(each.row)) for each in document.settled),
        query_changes=0 if document.query_changes is UNSET else document.query_changes,
        broken_rules=() if document.broken_rules is UNSET else tuple(document.broken_rules),
    )
