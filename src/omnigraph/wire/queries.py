"""Documents of queries: rows of a read, the result of a change, and the result of an algorithm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import UNSET, UnsetType

from omnigraph.wire.changes import OpCountDocument
from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import Document

Rows = list[dict[str, Any]]


class QueryResult(Protocol):
    """The result of a read query, as far as its documents show it."""

    @property
    def query_name(self) -> str:
        """Name of the query."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    @property
    def commit_id(self) -> str | None:
        """Commit that was read."""

    @property
    def next(self) -> str | None:
        """Cursor of the next page."""

    def __len__(self) -> int: ...


class ReturnedRows(Protocol):
    """The rows that a change query returns."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    def to_rows(self) -> Rows:
        """Return the rows with JSON values."""


class ReportedUnion(Protocol):
    """What `unify` did."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""


class ChangeResult(Protocol):
    """The result of a change query, as far as its document shows it."""

    @property
    def affected_nodes(self) -> int:
        """Number of inserted, updated and deleted nodes."""

    @property
    def affected_edges(self) -> int:
        """Number of inserted, updated and deleted edges."""

    @property
    def rows(self) -> ReturnedRows:
        """The returned rows; without columns if the query returns none."""

    @property
    def unified(self) -> ReportedUnion | None:
        """What `unify` did; None if no nodes were unified."""

    @property
    def tables(self) -> Mapping[str, Mapping[str, int]] | None:
        """Of a dry run: the numbers of rows that would change, by table and operation."""


class TargetDocument(Document):
    """What a query read: a branch or a snapshot."""

    branch: str | None
    snapshot: str | None


class QueryDocument(Document, kw_only=True):
    """The rows of a read; `columns` is omitted if there are none, `next` if there is no further page."""

    query_name: str
    target: TargetDocument
    row_count: int
    columns: list[str] | UnsetType = UNSET
    rows: Rows
    graph_commit_id: str | None
    next: str | UnsetType = UNSET
    elapsed_ms: float | UnsetType = UNSET


class QueryMetadataDocument(Document, kw_only=True):
    """The first line of the rows of a read as JSON lines."""

    kind: Literal["metadata"] = "metadata"
    query_name: str
    target: TargetDocument
    row_count: int
    next: str | UnsetType = UNSET
    columns: list[str] | UnsetType = UNSET
    graph_commit_id: str | UnsetType | None = UNSET


class PlanNodeDocument(Document, kw_only=True):
    """One line of a plan; `children` are the lines of a nested block. Numbers that are not known are absent."""

    op: str
    text: str
    expected: float | UnsetType = UNSET
    """The estimated rows after the operator."""
    rows: int | UnsetType = UNSET
    """The actual rows after the operator."""
    ms: float | UnsetType = UNSET
    notes: list[str]
    children: list[PlanNodeDocument]


class ExplainDocument(Document):
    """The plan of a query, or its profile, as text and as a tree; `plan_hash` is equal for queries that differ only in
    constants.
    """

    text: str
    plan_hash: str
    plan: PlanNodeDocument | UnsetType = UNSET
    """Older servers send the text only."""


class SelfLoopDocument(Document):
    """An edge whose two ends became the same node."""

    type: str
    id: str
    node: str


class UnifyDocument(Document):
    """The numbers of unified nodes, and of re-pointed and folded edges; `loops` names the first self-loops."""

    nodes: int
    repointed: int
    folded: int
    self_loops: int
    loops: list[SelfLoopDocument]


class ResolvedPairDocument(Document):
    """Two nodes that may be one, with the scores and values of their properties."""

    keep: str
    drop: str
    score: float
    scores: dict[str, float | None]
    values: dict[str, list[Any]]


class ResolutionDocument(Document):
    """The first pairs of a resolution, the number of all, and the branch that was written."""

    type: str
    engine: str
    """Where the pairs were found: memory or spark."""
    compared: int
    pairs: list[ResolvedPairDocument]
    clusters: dict[str, list[str]]
    branch: str | None
    commit_id: str | None
    found: int


class ChangeDocument(Document, kw_only=True):
    """The result of a change query; `columns` and `rows` are present if it returns rows."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitDocument | None
    columns: list[str] | UnsetType = UNSET
    rows: Rows | UnsetType = UNSET
    rows_arrow: str | UnsetType = UNSET
    """The rows as an Arrow stream in base64, if the client requests typed values."""
    tables: dict[str, OpCountDocument] | UnsetType = UNSET
    """Of a dry run: the numbers of rows that would change, by table."""
    unified: UnifyDocument | UnsetType = UNSET
    """What `unify` did to edges; present if nodes were unified."""


class AnalysisDocument(Document):
    """The result of an algorithm, with the first nodes of each type.

    `tables_arrow` has the values of all nodes by type, as Arrow streams in base64, if the client requests typed values.
    """

    algorithm: str
    nodes: dict[str, int]
    stats: dict[str, Any]
    rows_written: int
    commit_id: str | None
    top: dict[str, Rows]
    commit: CommitDocument | UnsetType | None = UNSET
    tables_arrow: dict[str, str] | UnsetType = UNSET


def query_document(result: QueryResult, target: TargetDocument, columns: Sequence[Sequence[Any]]) -> QueryDocument:
    """Return the document of a read; `columns` are the JSON values of its columns."""
    return QueryDocument(
        query_name=result.query_name,
        target=target,
        row_count=len(result),
        columns=result.columns or UNSET,
        rows=list(row_objects(result.columns, columns)),
        graph_commit_id=result.commit_id,
        next=UNSET if result.next is None else result.next,
    )


def query_metadata(result: QueryResult, target: TargetDocument) -> QueryMetadataDocument:
    """Return the first line of a read as JSON lines."""
    return QueryMetadataDocument(
        query_name=result.query_name,
        target=target,
        row_count=len(result),
        next=UNSET if result.next is None else result.next,
    )


def change_document(
    result: ChangeResult, *, branch: str, query_name: str, actor: str | None, commit: CommitDocument | None
) -> ChangeDocument:
    """Return the document of a change query."""
    returns = bool(result.rows.columns)
    return ChangeDocument(
        branch=branch,
        query_name=query_name,
        affected_nodes=result.affected_nodes,
        affected_edges=result.affected_edges,
        actor_id=actor,
        commit=commit,
        columns=result.rows.columns if returns else UNSET,
        rows=result.rows.to_rows() if returns else UNSET,
        tables=UNSET
        if result.tables is None
        else {key: OpCountDocument(**counts) for key, counts in result.tables.items()},
        unified=UNSET if result.unified is None else UnifyDocument.of(result.unified.to_json()),
    )


def row_objects(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield each row as an object."""
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))
