"""Changes of rows from documents: diffs, the change feed, and the history of a row."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from omnigraph.client.failures import reading
from omnigraph.client.results.history import commit_of
from omnigraph.operations.exploration.diff_graph import DiffEdge, DiffGraph, DiffNode, DiffSummary
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.diff import RowChange
from omnigraph.versioning.feed.commit_changes import CommitBlock, CommitChange
from omnigraph.versioning.feed.feed import ChangePage
from omnigraph.versioning.feed.row_history import Blame, EntityChange
from omnigraph.wire.change_feed import (
    ChangeBlockDocument,
    ChangesDocument,
    CommitChangesAnswerDocument,
    ImageChangeDocument,
    ImageDocument,
)
from omnigraph.wire.changes import (
    DiffGraphDocument,
    DiffSummaryDocument,
    PropertyBlameDocument,
    RowChangeDocument,
    RowVersionDocument,
)
from omnigraph.wire.document import plain
from omnigraph.wire.typed_values import untyped_value

Row = dict[str, Any]


def row_change_of(document: RowChangeDocument) -> RowChange:
    """Return one changed row of a diff."""
    return RowChange(
        TableKey(document.table_key), document.id, untyped_value(document.before), untyped_value(document.after)
    )


@reading
def page_of(document: ChangesDocument) -> ChangePage:
    """Return a poll of the change feed."""
    return ChangePage(
        tuple(map(_block, document.blocks)),
        given(document.cut_commit_id) or "",
        given(document.cursor),
        given(document.next_page_token),
        document.caught_up,
    )


@reading
def block_of(document: CommitChangesAnswerDocument) -> CommitBlock:
    """Return the changes of one commit."""
    return _block(document, given(document.next_page_token))


def _block(document: ChangeBlockDocument, page: str | None = None) -> CommitBlock:
    changes = tuple(map(_commit_change, document.changes))
    return CommitBlock(commit_of(document.cause.commit), changes, document.cause.schema_changed, page)


def _commit_change(document: ImageChangeDocument) -> CommitChange:
    key = TableKey.of(document.kind, document.type.name)
    before, after = (_row(document.id, image) for image in (document.before, document.after))
    return CommitChange(document.type.id, RowChange(key, document.id, before, after))


def _row(id: str, image: ImageDocument | UnsetType) -> Row | None:
    if image is UNSET:
        return None
    ends = {} if image.endpoints is UNSET else {"src": image.endpoints.from_, "dst": image.endpoints.to}
    properties = {name: untyped_value(value) for name, value in image.properties.items()}
    return {"id": id, **ends, **properties}


@reading
def entity_change_of(document: RowVersionDocument) -> EntityChange:
    """Return one change of the history of a row."""
    return EntityChange(
        commit_of(document.commit),
        untyped_value(document.before),
        untyped_value(document.after),
        document.op != "found",
    )


@reading
def blame_of(document: PropertyBlameDocument) -> Blame:
    """Return the commit that last set a property."""
    return Blame(document.property, untyped_value(document.value), commit_of(document.commit), document.known)


def given(value: str | UnsetType | None) -> str | None:
    """Return a member, None if it is absent."""
    return None if value is UNSET else value


def summary_of(document: DiffSummaryDocument | DiffGraphDocument) -> DiffSummary:
    """Return the summary of a diff."""
    commits = document.from_commit_id, document.to_commit_id
    return DiffSummary(plain(document.tables), tuple(document.schema_steps), commits)


@reading
def diff_graph_of(document: DiffGraphDocument) -> DiffGraph:
    """Return the graph of a diff."""
    return DiffGraph(
        tuple(
            DiffNode(
                node.type,
                node.id,
                node.op,
                {"id": node.id, **{name: untyped_value(value) for name, value in node.data.items()}},
            )
            for node in document.nodes
        ),
        tuple(
            DiffEdge(
                edge.type, edge.id, edge.op, (edge.source.type, edge.source.id), (edge.target.type, edge.target.id)
            )
            for edge in document.edges
        ),
        summary_of(document),
        document.changes_omitted,
        document.neighbors_omitted,
    )
