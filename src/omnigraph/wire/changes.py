"""Documents of row changes: diffs, changes of a commit, the change feed, and the history of one row."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType, field

from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import Document

ChangeOp = Literal["insert", "update", "delete"]
RowValues = dict[str, Any]


class EndpointsDocument(Document):
    """The ids of the nodes that an edge connects."""

    src: str | None
    dst: str | None


class RowChangeDocument(Document, kw_only=True):
    """One changed row of a diff, before and after."""

    table_key: str
    kind: Literal["node", "edge"]
    type_name: str
    id: str
    op: ChangeOp
    before: RowValues | None
    after: RowValues | None
    endpoints: EndpointsDocument | UnsetType = UNSET


class DiffDocument(Document, kw_only=True):
    """The changes between two points; `truncated` is present if a limit was requested."""

    from_: str | None = field(name="from")
    to: str | None
    schema_steps: list[str]
    aliases: list[str] | UnsetType = UNSET
    changes: list[RowChangeDocument]
    truncated: bool | UnsetType = UNSET
    next: str | UnsetType = UNSET
    from_commit_id: str | UnsetType = UNSET
    to_commit_id: str | UnsetType = UNSET


class TableCountsDocument(Document):
    """The number of changed rows of one table, by operation."""

    table_key: str
    insert: int
    update: int
    delete: int


class DiffCountsDocument(Document):
    """The number of changes between two points, by table."""

    schema_steps: list[str]
    tables: list[TableCountsDocument]


class FeedTypeDocument(Document):
    """The identity of a type, which a rename keeps, and its name."""

    id: str
    name: str


class FeedChangeDocument(Document, kw_only=True):
    """One changed row of a commit; an absent image is omitted."""

    kind: Literal["node", "edge"]
    type: FeedTypeDocument
    id: str
    op: ChangeOp
    before: RowValues | UnsetType = UNSET
    after: RowValues | UnsetType = UNSET


class CauseDocument(Document):
    """The commit that made changes."""

    graph_commit_id: str
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    authored_branch: str
    actor_id: str | None
    authored_at: int
    message: str | None
    schema_changed: bool
    commit: CommitDocument | UnsetType = UNSET
    """In typed answers only."""


class CommitBlockDocument(Document):
    """A commit and its changes, or those that fit into a page."""

    cause: CauseDocument
    changes: list[FeedChangeDocument]


class CommitChangesDocument(CommitBlockDocument):
    """The changes of one commit; `page` continues them."""

    page: str | None


class FeedPageDocument(Document):
    """Commits of the change feed, and the cursor that continues after them."""

    blocks: list[CommitBlockDocument]
    cut_commit_id: str | None
    cursor: str | None
    page: str | None
    caught_up: bool


class BaselineDocument(Document):
    """The result of writing a baseline to a file."""

    branch: str
    path: str
    rows: int
    snapshot_commit_id: str
    resume_cursor: str


class RowVersionDocument(Document):
    """One change in the history of a row; `op` is `found` if older states of the row cannot be read any more."""

    graph_commit_id: str
    actor_id: str | None
    created_at: int
    message: str | None
    op: Literal["insert", "update", "delete", "found"]
    properties: list[str]
    before: RowValues | None
    after: RowValues | None
    commit: CommitDocument | UnsetType = UNSET
    """In typed answers only."""


class HistoryDocument(Document):
    """The changes of one row, newest first."""

    type_name: str
    id: str
    changes: list[RowVersionDocument]
    next: str | UnsetType = UNSET


class PropertyBlameDocument(Document):
    """The value of a property and the commit that last set it."""

    property: str
    value: Any
    known: bool
    graph_commit_id: str
    actor_id: str | None
    created_at: int
    message: str | None
    commit: CommitDocument | UnsetType = UNSET
    """In typed answers only."""


class BlameDocument(Document):
    """The commit that last set each property of one row."""

    type_name: str
    id: str
    properties: list[PropertyBlameDocument]


class OpCountDocument(Document):
    """Numbers of changed rows by operation."""

    insert: int
    update: int
    delete: int


class _DiffPoints(Document, kw_only=True):
    """The commits that were compared; these members follow those of the subclass."""

    tables: dict[str, OpCountDocument]
    schema_steps: list[str]
    from_commit_id: str
    to_commit_id: str


class DiffSummaryDocument(_DiffPoints):
    """The numbers of changes between two points, by table."""


class DiffNodeDocument(Document):
    """A node of the graph of a diff; `op` is null for an unchanged neighbour."""

    type: str
    id: str
    op: ChangeOp | None
    data: dict[str, Any]


class NodeNameDocument(Document):
    """The type and id of a node."""

    type: str
    id: str


class DiffEdgeDocument(Document):
    """An edge of the graph of a diff; `op` is null for an unchanged one."""

    type: str
    id: str
    op: ChangeOp | None
    source: NodeNameDocument
    target: NodeNameDocument


class DiffGraphDocument(_DiffPoints):
    """The first changes between two points as a graph, with one ring of unchanged neighbours; `tables` counts all."""

    nodes: list[DiffNodeDocument]
    edges: list[DiffEdgeDocument]
    changes_omitted: int
    neighbors_omitted: bool
